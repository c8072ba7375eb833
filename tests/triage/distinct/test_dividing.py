"""Members of one finding that are several causes by what is wrong in them, before any of them is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from filled import fill, judged
from hypothesis import given
from hypothesis import strategies as st

from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, NEWER, Outcome
from opera.store.workspace import Workspace
from opera.triage.distinct import causes, dividing
from opera.triage.distinct.dividing import Called, Reduced, divide, kinds_of, unlike
from opera.triage.reduction import Reduction
from opera.triage.reproducers import choice

LARGEST, INFINITE, MADE = frozenset({"-inf>largest"}), frozenset({"largest>-inf"}), frozenset({"nan>finite"})


def reduced(test: str, *deciding: str, tags: tuple[str, ...] = ()) -> Reduced:
    shown = Instance("onnx", "Cast", {}, (Operand("x", Tensor.of(np.ones(1, "f4"))),), ("y",), {"opset": {"": 19}})
    outcome = Outcome(INCONSISTENT, "infer", "value", "output 'y'", details={"tags": list(tags)})
    captured = Captured(shown, Provenance("s", "f", "t")).form()
    return Reduced("F", Reduction("F", "e", "a-onnx", "inputs", test, captured, outcome, deciding=deciding))


def test_a_member_goes_where_its_own_special_numbers_are_made() -> None:
    """Both are casts of float16; one loses an infinity, the other makes one."""
    own = kinds_of([reduced("a", "to=11"), reduced("b", "round=1")])["F"]
    made, shown = {"a": LARGEST, "b": INFINITE}, {"a": LARGEST, "b": INFINITE, "c": INFINITE, "d": LARGEST, "e": MADE}
    out = unlike(own, made, shown)
    assert out["c"] == {own["a"]} and out["d"] == {own["b"]} and "e" not in out
    same = {x: Called(("Cast",), frozenset()) for x in shown}
    parts = divide("F", list(shown), {"F": own}, same, {("F", "c"): {"a": "belongs"}}, out)
    assert parts["b"] == parts["c"], "though it passes without what decides of the other"
    assert "d" not in parts and "e" not in parts


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([b"1", b"2"]), min_size=1),
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from([LARGEST, INFINITE, LARGEST | MADE, frozenset[str]()])),
)
def test_something_may_always_decide_a_member(own: dict[str, bytes], shown: dict[str, frozenset[str]]) -> None:
    out = unlike(own, {x: shown.get(x, frozenset()) for x in own}, shown)
    assert all(set(own.values()) - of for of in out.values())
    assert all(own[x] not in out.get(x, set()) for x in own if shown.get(x))


def test_what_needs_a_newer_version_is_not_what_the_old_one_does_wrong() -> None:
    kinds = kinds_of([reduced("a"), reduced("b", tags=(NEWER,))])["F"]
    assert kinds["a"] != kinds["b"]


def test_what_an_exporters_newest_version_has_is_not_what_none_has() -> None:
    """A pooling of bfloat16 is written rightly at opset 22, one of int64 at none."""
    left, one, other = (reduced(x, "k=1") for x in "abc")
    left = left._replace(
        reduction=msgspec.structs.replace(left.reduction, settings=("opset_version is left at its default",))
    )
    needed = one._replace(
        reduction=msgspec.structs.replace(one.reduction, settings=("INFERENCE_NUM_THREADS=1 is set",))
    )
    kinds = kinds_of([left, needed, other])["F"]
    assert kinds["a"] != kinds["b"] == kinds["c"]


def test_a_member_goes_with_those_whose_first_tensor_is_like_its_own() -> None:
    def called(dtype: str, *more: str) -> Called:
        return Called(("Cast",), frozenset({("input 0", dtype), *((x, "") for x in more)}))

    told = {"a": called("float16"), "b": called("float8_e5m2", "1", "2"), "c": called("float8_e4m3fn")}
    own = kinds_of([reduced("a", "to=11"), reduced("b", "round=1")])
    parts = divide("F", list(told), own, told)
    assert parts["c"] == parts["b"]


@pytest.mark.parametrize(("settled", "left"), [((), 1), (("t1",), 0)])
def test_one_member_of_each_form_that_nobody_looked_at_is_unseen(
    workspace: Workspace, settled: tuple[str, ...], left: int
) -> None:
    environment = fill(workspace)["tvm"]
    of: list[Any] = list(causes.members(workspace, "Fbbbbbbbb", environment))
    found = dividing.unseen(workspace, of, lambda x: x.test in settled)
    assert [x.test for x in found] == ["t1"][:left]
    crashes = causes.members(workspace, "Faaaaaaaa", environment)
    assert dividing.unseen(workspace, crashes, lambda _: False) == [], "a place tells these apart"


def test_members_that_lack_an_axis_are_a_cause_of_their_own() -> None:
    """OpenVINO's one-sided DFT has an axis too many, and inverse one too few; another size is no matter."""

    def shaped(test: str, actual: str) -> Reduced:
        outcome = Outcome(INCONSISTENT, "infer", "shape", details={"expected": "(1, 3, 2)", "actual": actual})
        return Reduced("F", msgspec.structs.replace(reduced(test, "onesided=1").reduction, outcome=outcome))

    kinds = kinds_of([shaped("a", "(1, 3, 1, 2)"), shaped("b", "(1, 3)"), shaped("c", "(1, 4, 2)")])["F"]
    assert kinds["a"] == kinds["c"] != kinds["b"]


def test_what_is_shown_is_confirmed_and_in_the_place_of_its_member(workspace: Workspace) -> None:
    def of(stored: str, elements: int, outcome: Outcome) -> Reduction:
        migrated.folder(workspace.tests_folder, stored).mkdir(parents=True)
        return msgspec.structs.replace(reduced("t1").reduction, stored=stored, elements=elements, outcome=outcome)

    def shown(*some: Reduction, outcome: Outcome) -> str:
        member = judged("t1", "a-onnx", "inputs", "e", outcome.verdict)
        found = choice.choose(workspace, [msgspec.structs.replace(member, outcome=outcome)], {"t1": list(some)})
        assert found is not None
        return found.verdict.test

    wrong = Outcome(INCONSISTENT, "infer", "value", "output 'y'")
    small, agreed = of("aa", 1, wrong), of("bb", 2, msgspec.structs.replace(wrong, details={"agreeing": "onnxruntime"}))
    assert shown(small, agreed, outcome=wrong) == "bb"
    whole = of("ee", 1, msgspec.structs.replace(wrong, conversion_function="expanded Layer"))
    told = of("ff", 2, msgspec.structs.replace(wrong, conversion_function="POOL"))
    assert shown(whole, told, outcome=wrong) == "ff"
    crash = Outcome(CRASH, "load", "ValueError", "the axis is out of range", conversion_function="importer:_any")
    left = of("cc", 1, msgspec.structs.replace(crash, conversion_function="importer:_sum"))
    stayed = of("dd", 2, crash)
    assert shown(left, stayed, outcome=crash) == "dd"
    plain, program = of("hh", 1, crash), Instance("onnx", "Cast", {"to": 1}, (), ("y",), {"opset": {"": 19}})
    stated = msgspec.structs.replace(of("gg", 1, crash), captured=Captured(program, Provenance("s", "f", "t")).form())
    shorter = msgspec.structs.replace(
        plain, captured=Captured(msgspec.structs.replace(program, params={}), Provenance("s", "f", "t")).form()
    )
    assert shown(stated, shorter, outcome=crash) == "hh", "of two alike the one that states no default"
