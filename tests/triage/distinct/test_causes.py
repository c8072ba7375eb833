"""Reductions divide findings and make several one: whatever the order, every failing verdict belongs to exactly one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from caused import VALUE, concluded, program, reduced, tensor
from filled import fill, instance_of, judged
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Argument, Call, Graph, Operand
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.report import show
from opera.store import verdicts
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace
from opera.triage import across, reduction
from opera.triage.distinct import belonging, causes, dividing, kinship
from opera.triage.distinct.causes import Causes
from opera.triage.distinct.dividing import Called, Reduced, divide
from opera.triage.findings import findings
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts

# ---------------------------------------------------------------------- invariants

MEMBERS = {f"F{n}": [f"t{n}{m}" for m in range(4)] for n in range(4)}
DECIDING = st.sampled_from(["", "mode='linear'", "antialias=1", "ceil_mode=True"])
ONE = st.tuples(st.sampled_from([(f, t) for f, of in MEMBERS.items() for t in of]), DECIDING, st.integers(0, 3))
SOME = st.lists(ONE, max_size=12, unique_by=lambda x: x[0])
TOLD = st.fixed_dictionaries({test: st.sampled_from("ab") for of in MEMBERS.values() for test in of})


def made(some: list[tuple[tuple[str, str], str, int]]) -> list[Reduced]:
    return [reduced(f, t, program(f"Op{n}"), *filter(None, [text])) for (f, t), text, n in some]


@given(SOME, TOLD, st.randoms())
def test_the_order_of_reductions_does_not_matter(some: Any, told: dict[str, str], random: Any) -> None:
    found = made(some)
    once = concluded(found, MEMBERS, told)
    random.shuffle(found)
    assert concluded(found, MEMBERS, told) == once


@given(SOME, TOLD)
def test_every_member_belongs_to_one_finding_whose_name_is_final(some: Any, told: dict[str, str]) -> None:
    result = concluded(made(some), MEMBERS, told)
    for finding, of in MEMBERS.items():
        for test in of:
            name = result.of(finding, test)
            assert result.kept(name) == name
            assert name in result.names.values() or name == finding or name in result.parts[finding].values()
    assert not set(result.names) & set(result.names.values())


@given(SOME, TOLD)
def test_names_stay_when_a_finding_is_added(some: Any, told: dict[str, str]) -> None:
    before = concluded(made(some), MEMBERS, told)
    more = [*made(some), reduced("Fnew", "n0", program("Op1")), reduced("Fnew", "n1", program("Op9"), "mode='linear'")]
    after = concluded(more, {**MEMBERS, "Fnew": ["n0", "n1"]}, told)
    for finding, of in MEMBERS.items():
        assert [after.of(finding, test) for test in of] == [before.of(finding, test) for test in of]


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")), st.sampled_from("abcdef"))
def test_a_chain_of_aliases_ends(names: dict[str, str], start: str) -> None:
    assert Causes(names).kept(start) in {start, *names.values()}


# ---------------------------------------------------------------------- one finding, several causes


def test_members_that_another_parameter_decides_are_another_finding() -> None:
    found = [
        reduced("F1", "t0", program(mode="linear"), "mode='linear'"),
        reduced("F1", "t1", program(antialias=1), "antialias=1"),
        reduced("F1", "t2", program(mode="linear"), "mode='linear'"),
    ]
    result = concluded(
        found, {"F1": ["t0", "t1", "t2", "t3", "t4"]}, {"t1": "cubic", "t3": "cubist", "t0": "l", "t4": "x"}
    )
    assert [result.of("F1", f"t{n}") for n in (0, 2, 4)] == ["F1"] * 3
    assert result.of("F1", "t1") == result.of("F1", "t3") != "F1"
    assert len(result.of("F1", "t1")) == 9
    reordered = concluded(list(reversed(found)), {"F1": ["t0", "t1", "t2"]}, {})
    assert reordered.of("F1", "t1") == result.of("F1", "t1")


def test_one_form_of_an_operator_does_not_go_with_a_piece_of_another_unasked() -> None:
    """A maximum in what Attention is expanded to is no reason why the Attention that is converted as one is wrong."""
    own = dividing.kinds_of([reduced("F", "expanded", program("ReduceMax"))])
    body = frozenset({(dividing.EXPANDED, "")})
    whole, expanded = Called(("Attention",), frozenset()), Called(("Attention",), body)
    told = {"expanded": expanded, "another": expanded, "whole": whole, "maximum": Called(("ReduceMax",), frozenset())}
    parts = divide("F", [*told, "other", "unknown"], own, {**told, "other": Called(("Conv",), frozenset())})
    assert list(parts) == ["whole"]
    assert not divide("F", list(told), own, told, {("F", "whole"): {"expanded": belonging.BELONGS}}), "it was asked"
    attention = dividing.kinds_of([reduced("F", "expanded", program("Attention"))])
    assert not divide("F", list(told), attention, told), "it calls what was reduced"


def test_operators_that_one_place_refuses_are_named_the_most_frequent_first() -> None:
    def after_shape(name: str) -> Reduction:
        calls = (
            Call("Shape", {}, (Argument("data", "x"),), ("s",), {}),
            Call(name, {}, (Argument("data", "s"),), ("end",), {}),
        )
        return reduced("F", name, Graph("onnx", (Operand("x", tensor(1.0)),), calls, ("end",))).reduction

    found = [after_shape(x) for x in ("Div", "Size", "Sub", "Size")]
    assert reduction.named(found) == ("Size", "Div", "Sub")
    assert reduction.named(found[:1]) == reduction.named([]) == ()


@pytest.mark.parametrize(
    ("one", "other", "several"),
    [
        (reduced("F", "a", program(axis=1), "axis=1"), reduced("F", "b", program(axis=2), "axis=2"), False),
        (reduced("F", "a", program("Conv")), reduced("F", "b", program("Pad")), True),
        (reduced("F", "a", program("LSTM")), reduced("F", "b", program("GRU")), False),
        (reduced("F", "a", program()), reduced("F", "b", program(value=tensor(1.0, dtype="float16"))), False),
        (reduced("F", "a", program()), reduced("F", "b", program(value=tensor(1.0, dtype="float64"))), True),
        (reduced("F", "a", program()), reduced("F", "b", program(value=tensor(1, dtype="int8"))), True),
        (reduced("F", "a", program("Conv")), reduced("F", "b", program("Pad"), finished=False), False),
        (reduced("F", "a", program("Conv")), reduced("F", "b", program("Pad"), nondefault=1), True),
        (reduced("F", "a", program(), "keep='yes'"), reduced("F", "b", program(), "keep='no'"), False),
        (reduced("F", "a", program(), "keep='yes'"), reduced("F", "b", program(), "other='no'"), True),
        (
            reduced(
                "F", "a", program(), outcome=Outcome(INCONSISTENT, "infer", "nan-mask", "expected inf, got 3.4e+38")
            ),
            reduced("F", "b", program(), outcome=Outcome(INCONSISTENT, "infer", "nan-mask", "expected 448.0, got nan")),
            True,
        ),
    ],
)
def test_what_divides(one: Reduced, other: Reduced, several: bool) -> None:
    parts = divide("F", ["a", "b"], dividing.kinds_of([one, other]), {})
    assert bool(parts) == several


def test_a_crash_whose_assertion_is_known_is_one_whatever_operator_and_dtype_reached_it() -> None:
    crash = Outcome(
        CRASH, "load", "TypeError", "operands must have the same data type", conversion_function="fx:_convolution"
    )
    double = tensor(1.0, dtype="float64")
    both = [
        reduced("F", "a", program("Conv"), outcome=crash),
        reduced("F", "b", program("ConvTranspose", value=double), outcome=crash),
    ]
    assert not divide("F", ["a", "b"], dividing.kinds_of(both), {})


@pytest.mark.parametrize(
    ("converter", "one"),
    [("onnx_frontend:Constant._impl_v13", True), ("expanded If", False), ("torch.cond", False), ("", False)],
)
def test_a_crash_in_a_named_converter_is_one_whichever_operator_holds_the_node(converter: str, one: bool) -> None:
    crash = Outcome(CRASH, "load", "ValueError", "no value in Constant", conversion_function=converter)
    both = [
        reduced("F", "a", program("Constant", value_floats=[1.0]), outcome=crash),
        reduced("F", "b", program("If", value=tensor(1, dtype="bool")), outcome=crash),
    ]
    assert bool(divide("F", ["a", "b"], dividing.kinds_of(both), {})) != one


# ---------------------------------------------------------------------- several findings, one cause


@pytest.mark.parametrize(
    ("place", "stage", "left"),
    [
        ("importer:_any", "load", True),
        ("importer:_sum", "load", False),
        ("importer:_sum[sum.default]", "load", False),
        ("importer:_any", "compile", False),  # where its converter is not what raised it
        ("importer:_any@shape_util.cpp:66", "load", True),
        ("aten::any", "load", False),  # an operator, no function
        ("", "load", False),
    ],
)
def test_a_failure_that_left_its_converter(place: str, stage: str, left: bool) -> None:
    shown = Outcome(CRASH, stage, "ValueError", "the axis is out of range", conversion_function="importer:_sum")
    assert kinship.elsewhere(place, shown) is left
    there = msgspec.structs.replace(shown, conversion_function="importer:_sum@core.cpp:6")
    assert not kinship.elsewhere("importer:_any@core.cpp:6", there), "one place is below both"


def test_a_reduction_that_left_its_converter_is_none(workspace: Workspace) -> None:
    environment = fill(workspace)["tvm"]
    crash = {"stage": "load", "symptom": "KeyError", "message": "no such key", "finding": "F99999999"}
    member = judged("t3", "tvm-onnx", "inputs", environment, CRASH, **crash)
    workspace.save_verdicts(0, [member], {"F99999999": b'{"conversion_function": "onnx_frontend:Conv._impl_v1"}'})
    for at, kept in (
        ("onnx_frontend:Pad._impl_v1", 0),
        ("onnx_frontend:Conv._impl_v11", 0),
        ("onnx_frontend:Conv._impl_v1", 1),
    ):
        shown = Outcome(CRASH, "load", "KeyError", "no such key", conversion_function=at)
        store(workspace, reduced("F99999999", "t3", program(), outcome=shown, environment=environment))
        assert len(causes.reduced(workspace)) == kept


def test_a_part_of_one_finding_may_be_another() -> None:
    crash = Outcome(INCONSISTENT, "infer", "value", VALUE.message)
    found = [
        reduced("F2", "a", program("Conv")),
        reduced("F2", "b", program("Pad")),
        reduced("F1", "c", program("Pad"), outcome=crash),
    ]
    result = concluded(found, {"F1": ["c"], "F2": ["a", "b"]})
    assert (result.of("F2", "a"), result.of("F2", "b"), result.of("F1", "c")) == ("F2", "F1", "F1")


# ---------------------------------------------------------------------- in a workspace


def store(workspace: Workspace, *found: Reduced) -> None:
    for _, x in found:
        reduction.save(workspace, x)


def divided(workspace: Workspace) -> tuple[str, str]:
    """Divide Faaaaaaaa; return the environment and the id of its new part."""
    environment = fill(workspace)["tvm"]
    store(
        workspace,
        reduced("Faaaaaaaa", "t0", program("Conv"), environment=environment),
        reduced("Faaaaaaaa", "t2", program("Pad"), environment=environment),
    )
    return environment, causes.causes(workspace).of("Faaaaaaaa", "t2")


def test_findings_scripts_and_names_know_parts(workspace: Workspace) -> None:
    environment, part = divided(workspace)
    found = {x.id: x for x in findings(workspace, environment=environment)}
    assert found["Faaaaaaaa"].members == ("t0",) and found[part].members == ("t2",)
    assert sum(len(x.members) for x in findings(workspace)) == 7
    assert {x.test for x in scripts.members(workspace)[part]} == {"t2"}
    assert causes.resolve(workspace, part) == [part]
    assert [x.test for x in causes.reductions(workspace, part)] == ["t2"]
    assert [x.test for x in causes.members(workspace, part, environment)] == ["t2"]


def test_a_finding_that_is_another_is_found_by_both_names(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = fill(workspace)["tvm"]
    store(
        workspace,
        reduced("Faaaaaaaa", "t0", program(), environment=environment),
        reduced("Fbbbbbbbb", "t1", program(), environment=environment),
    )
    both = {"Faaaaaaaa", "Fbbbbbbbb"}
    kept = {name for x in both for name in causes.resolve(workspace, x)}
    assert len(kept) == 1 and kept < both
    (name,), (other,) = kept, both - kept
    merged = next(x for x in findings(workspace, environment=environment) if x.id == name)
    assert set(merged.members) == {"t0", "t1", "t2"} and merged.aliases == (other,)
    show.show(workspace, other)
    told = capsys.readouterr().out
    assert name in told and f"also called {other}" in " ".join(told.split())
    assert causes.distinct(workspace, [other]) == []
    assert causes.distinct(workspace, [*both]) == [name]


def test_what_was_renamed_for_good_is_followed(workspace: Workspace) -> None:
    fill(workspace)
    workspace.move_verdicts([], {}, {"F00000000": "F11111111", "F11111111": "Faaaaaaaa"}, [])
    assert causes.resolve(workspace, "F0") == causes.resolve(workspace, "F11111111") == ["Faaaaaaaa"]
    assert causes.resolve(workspace, "Fnothing") == []


def test_a_reduction_of_what_does_not_fail_any_more_says_nothing(workspace: Workspace) -> None:
    environment, _ = divided(workspace)
    workspace.save_verdicts(3, [judged("t2", "tvm-onnx", "inputs", environment, "pass")], {})
    assert causes.causes(workspace).parts == {}


def test_members_worth_reducing_differ_in_operator_or_options(workspace: Workspace) -> None:
    environment = fill(workspace)["tvm"]
    found = dividing.diverse(workspace, causes.members(workspace, "Faaaaaaaa", environment))
    assert [x.test for x in found] == ["t0", "t2"]
    workspace.save_tests("exporter", [MigratedTest(f"n{n}", instance_of(0), "valid") for n in range(20)])
    more = [judged(f"n{n}", "tvm-onnx", "inputs", environment, "crash", "load", finding="Faaaaaaaa") for n in range(20)]
    workspace.save_verdicts(2, more, {})
    assert len(dividing.diverse(workspace, causes.members(workspace, "Faaaaaaaa", environment))) == 2
    assert len(dividing.diverse(workspace, causes.members(workspace, "Faaaaaaaa", environment), most=1)) == 1


def test_every_failing_verdict_belongs_to_exactly_one_finding(workspace: Workspace) -> None:
    divided(workspace)
    shown = [(test, x.environment, x.frontend) for x in findings(workspace) for test in x.members]
    stored = {(x.test, x.environment, x.frontend) for x in verdicts.counted(workspace)}
    assert sorted(shown) == sorted(stored)


# ---------------------------------------------------------------------- across frontends


def test_the_same_wrong_answer_of_two_compilers_is_one_cause(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    names = fill(workspace)
    tvm, openvino = (
        judged("t5", f"{compiler}-onnx", "inputs", names[compiler], "inconsistent", "infer", "value", finding=finding,
               message=f"output 'Y': 3 of 4 elements, first at [0]: expected 1.0, got {got}; by at most 7")
        for compiler, finding, got in (("tvm", "F55555555", 5.00001), ("openvino", "F66666666", 5.00002))
    )  # fmt: skip
    workspace.save_verdicts(4, [tvm, openvino], {"F55555555": b"{}", "F66666666": b"{}"})
    found = {x.findings: x for x in across.across(workspace, findings(workspace))}
    assert found[("F66666666", "F55555555")].frontends == ("openvino-onnx", "tvm-onnx")
    show.by_cause(workspace, "")
    told = capsys.readouterr().out
    assert "F55555555" in told and "F66666666" in told and "1 causes of several frontends" in told
    show.by_cause(workspace, "xla-keras")
    assert "No cause" in capsys.readouterr().out
    other = judged("t5", "openvino-onnx", "inputs", names["openvino"], "inconsistent", "infer", "value", finding="F66666666",
                   message="output 'Y': 3 of 4 elements, first at [0]: expected 1.0, got 9.0")  # fmt: skip
    workspace.save_verdicts(5, [other], {})
    assert ("F66666666", "F55555555") not in {x.findings for x in across.across(workspace, findings(workspace))}


def test_what_a_later_run_superseded_has_no_part_in_causes(workspace: Workspace) -> None:
    names = fill(workspace)
    newer = workspace.save_environment({**workspace.environments()[names["tvm"]], "exporter": {"onnx": "1.3"}})
    wrong = {"message": VALUE.message}
    found = [
        judged("t5", f"{name}-onnx", "inputs", names[name], INCONSISTENT, "infer", "value", finding=finding, **wrong)
        for name, finding in (("tvm", "F55555555"), ("openvino", "F66666666"))
    ]
    workspace.save_verdicts(4, found, {"F55555555": b"{}", "F66666666": b"{}"})
    store(
        workspace,
        reduced("F55555555", "t5", program(), environment=names["tvm"]),
        reduced("F66666666", "t5", program(), environment=names["openvino"], frontend="openvino-onnx"),
    )
    both = [x.findings for x in across.across(workspace, findings(workspace))]
    assert ("F66666666", "F55555555") in both
    workspace.save_verdicts(5, [judged("t3", "tvm-onnx", "inputs", newer, "pass")], {})
    assert {x.id for x in findings(workspace)}.isdisjoint({"F55555555"})
    assert across.across(workspace, findings(workspace)) == []


def test_one_equal_reduction_is_enough_however_many_members_there_are(workspace: Workspace) -> None:
    names = fill(workspace)
    tests = {"tvm": ("t4", "t5", "t6"), "openvino": ("t1", "t2", "t3")}
    ids = {"tvm": "F55555555", "openvino": "F66666666"}
    found = [
        judged(test, f"{compiler}-onnx", "more", names[compiler], INCONSISTENT, "infer", "value", finding=ids[compiler],
               message=f"output 'Y': 3 of 4 elements, first at [0]: expected 1.0, got {test}")
        for compiler, of in tests.items() for test in of
    ]  # fmt: skip
    workspace.save_verdicts(4, found, dict.fromkeys(ids.values(), b"{}"))
    assert across.across(workspace, findings(workspace)) == []
    for compiler, of in tests.items():
        own = reduced(
            ids[compiler], of[0], program(), environment=names[compiler], frontend=f"{compiler}-onnx"
        ).reduction
        reduction.save(workspace, msgspec.structs.replace(own, variant="more"))
    (cause,) = across.across(workspace, findings(workspace))
    assert set(cause.findings) == set(ids.values())


def test_members_that_have_another_cause_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO's DFT: of one-sided transforms the shape has an axis too many, of inverse ones an axis too few."""
    found: Any = Causes(both=frozenset({("Fa", "inverse"), ("Fb", "forward")}))
    monkeypatch.setattr(causes, "causes", lambda _: found)
    of = [judged(test, "openvino-onnx", "inputs", "e", INCONSISTENT, finding="Fa") for test in ("forward", "inverse")]
    workspace: Any = None
    assert causes.apart(workspace, of) == {"inverse"}
