"""Members are asked themselves whether they have the cause that a reduction shows; that divides findings, and unites them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from faults.onnx_faults import Silent
from filled import fill
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Message, Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, INVALID, PASS, UNSUPPORTED, Limits, Outcome
from opera.run import driver as stage
from opera.store import families, verdicts
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.distinct import belonging, causes, dividing
from opera.triage.distinct.belonging import BELONGS, LACKS, OTHERWISE, SAME, UNTOLD, Asked, Membership
from opera.triage.distinct.causes import conclude
from opera.triage.distinct.dividing import Called, Reduced
from opera.triage.failure import alike
from opera.triage.findings import TWO_CAUSES, findings
from opera.triage.reducer import reducing
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts

pytest.importorskip("onnx")

from onnx import TensorProto, helper

WRONG = Outcome(INCONSISTENT, "infer", "value", "output 'y': 1 of 2 elements")
DEFAULTS = {"Resize": {"mode": "nearest", "antialias": 0}}


def program(operator: str = "Resize", dtype: str = "float32", *more: str, **params: Any) -> Instance:
    inputs = [Operand(name, Tensor.of(np.ones(2, dtype))) for name in ("X", *more)]
    return Instance("onnx", operator, params, tuple(inputs), ("y",), {"opset": {"": 22}})


def double(name: str) -> Instance:
    """Return a program one of whose inputs is float64."""
    inputs = [Operand(x, Tensor.of(np.ones(2, "float64" if x == name else "float32"))) for x in ("X", "scales")]
    return Instance("onnx", "Resize", {}, tuple(inputs), ("y",), {"opset": {"": 22}})


def reduced(
    shown: Program,
    *besides: str,
    deciding: tuple[str, ...] = (),
    test: str = "t0",
    outcome: Outcome = WRONG,
    **more: Any,
) -> Reduction:
    captured = Captured(shown, Provenance("s", "f", "t")).form()
    return Reduction(
        "F1",
        "e",
        "a-onnx",
        "inputs",
        test,
        captured,
        outcome,
        stored=f"of {shown.id}",
        deciding=deciding,
        besides=besides,
        **more,
    )


def first(shown: Program) -> Any:
    return shown.inputs[0].value


class Compiler:
    """Shows of a program what a function says: a verdict, or whether it fails as it is looked for."""

    def __init__(self, shows: Callable[[Program], bool | str]) -> None:
        self.shows, self.asked = shows, list[Program]()

    def look(self, programs):
        self.asked += programs
        seen = map(self.shows, programs)
        return [Outcome(x) if isinstance(x, str) else WRONG if x else Outcome(PASS) for x in seen]

    def fails(self, outcome):
        return outcome == WRONG


# ---------------------------------------------------------------------- one member

LINEAR = reduced(program(mode="linear"), deciding=("mode='linear'",))
DOUBLE = reduced(program(mode="linear"), "float64 inputs", deciding=("mode='linear'",))
BARE = reduced(program("Resize", "float32", "scales"))
CRASHES = Outcome(CRASH, "load", "Fail", "bad type of an operand")
ANSWERS = [
    (LINEAR, program(mode="cubic"), lambda x: "mode" in x.params, BELONGS),
    (LINEAR, program(mode="cubic"), lambda x: True, SAME),
    (LINEAR, program(mode="cubic"), lambda x: "mode" in x.params or CRASH, OTHERWISE),
    (LINEAR, program(mode="cubic"), lambda x: "mode" in x.params or INVALID, UNTOLD),
    (LINEAR, program(mode="cubic"), lambda x: "mode" in x.params or UNSUPPORTED, UNTOLD),
    (LINEAR, program(antialias=1), lambda x: True, LACKS),
    (LINEAR, program(mode="nearest"), lambda x: True, LACKS),
    (LINEAR, program("Pad", mode="linear"), lambda x: True, LACKS),
    (DOUBLE, program(mode="cubic"), lambda x: "mode" in x.params, LACKS),
    (DOUBLE, program("Resize", "float64", mode="cubic"), lambda x: "mode" in x.params, BELONGS),
    (DOUBLE, program("Resize", "float64", mode="a"), lambda x: bool(x.params) or first(x).dtype != "float32", BELONGS),
    (msgspec.structs.replace(DOUBLE, outcome=CRASHES), program(mode="cubic"), lambda x: "mode" in x.params, BELONGS),
    (msgspec.structs.replace(DOUBLE, outcome=CRASHES), program(antialias=1), lambda x: True, LACKS),
    (BARE, program("Resize", "float32", "scales", mode="cubic"), lambda x: True, UNTOLD),
    (BARE, program("Resize", "float32", "sizes"), lambda x: True, LACKS),
    (reduced(program("Resize", "float64"), "float64 inputs"), program(), lambda x: True, LACKS),
    (reduced(double("scales"), "float64 inputs"), double("X"), lambda x: first(x).dtype == "float64", LACKS),
    (reduced(double("X"), "float64 inputs"), double("X"), lambda x: first(x).dtype == "float64", BELONGS),
    (reduced(program("Max")), program("Attention"), lambda x: True, LACKS),
    (reduced(program("RNN")), program("LSTM"), lambda x: True, UNTOLD),
    (reduced(program(), "length 1 of axis 0"), program(), lambda x: False, UNTOLD),
]  # fmt: skip


@pytest.mark.parametrize(("of", "member", "shows", "wanted"), ANSWERS)
def test_what_decides_is_taken_away_from_the_member(of, member, shows, wanted):
    assert belonging.answer(Compiler(shows), member, DEFAULTS, of) == wanted


@pytest.mark.parametrize(
    ("actual", "wanted"), [("(1, 3)", LACKS), ("(1, 3, 2, 1, 1)", BELONGS), ("(3, 1, 2)", BELONGS), ("(1, 6)", LACKS)]
)
def test_an_axis_too_few_is_another_cause_than_an_axis_too_many(actual, wanted):
    """OpenVINO's DFT of one side: forward it returns (1, 3, 1, 2) for (1, 3, 2), and inverse an axis too few."""
    more, own = (
        Outcome(INCONSISTENT, "infer", "shape", details={"expected": "(1, 3, 2)", "actual": x})
        for x in ("(1, 3, 1, 2)", actual)
    )
    of = msgspec.structs.replace(LINEAR, outcome=more)
    found = belonging.answer(Compiler(lambda x: "mode" in x.params), program(mode="cubic"), DEFAULTS, of, own)
    assert found == wanted
    assert alike("openvino-onnx", more, own) is (wanted == BELONGS)


# ---------------------------------------------------------------------- what follows from it

TESTS = [f"t{n}" for n in range(6)]
ONE = st.tuples(
    st.sampled_from(TESTS), st.sampled_from(["", "mode='a'", "antialias=1"]), st.sampled_from(["", "input B"])
)
SOME = st.lists(ONE, max_size=5, unique_by=lambda x: x[0])
SAID = st.lists(
    st.tuples(st.sampled_from(TESTS), st.sampled_from(TESTS), st.sampled_from([BELONGS, LACKS, SAME, OTHERWISE]))
)


def found_of(some: list[tuple[str, str, str]]) -> list[Reduced]:
    return [
        Reduced(
            "F1",
            reduced(program(), *filter(None, [beside]), deciding=tuple(filter(None, [text])), test=test, nondefault=1),
        )
        for test, text, beside in some
    ]


def called_of(test: str) -> Called:
    return Called(("Resize",), frozenset({("0 mode", test)}))


def concluded(found, seen):
    return conclude(found, {"F1": TESTS}, {x: called_of(x) for x in TESTS}, {"F1": 1.0}, {}, seen)


@given(SOME, SAID, st.randoms())
def test_the_order_of_what_is_stored_does_not_matter(some, said, random):
    seen = {("F1", test): {other: says} for test, other, says in said if test != other}
    found = found_of(some)
    once = concluded(found, seen)
    random.shuffle(found)
    again = concluded(found, dict(sorted(seen.items(), key=lambda _: random.random())))
    assert once == again
    assert all(once.kept(once.of("F1", test)) == once.of("F1", test) for test in TESTS)


@given(SOME, SAID)
def test_a_member_goes_with_the_reduction_whose_cause_it_has(some, said):
    seen = {("F1", test): {other: says} for test, other, says in said if test != other}
    result = concluded(found_of(some), seen)
    counted = {x for of in dividing.kinds_of(found_of(some), seen).values() for x in of}
    for (_, test), of in seen.items():
        for other, says in of.items():
            if says == BELONGS and other in counted:
                assert result.of("F1", test) == result.of("F1", other)


@given(SOME)
def test_without_questions_all_is_as_it_was(some):
    """What older workspaces hold is read as ever: parameters alone tell causes apart."""
    found = found_of(some)
    bare = [Reduced(x.finding, msgspec.structs.replace(x.reduction, besides=())) for x in found]
    assert dividing.kinds_of(found) == dividing.kinds_of(bare)


def two(says: str, **more: Any) -> causes.Causes:
    """Return what becomes of two members of one operator, of which only one is decided by an input."""
    found = [
        Reduced("F1", reduced(program(), test="t0", **more)),
        Reduced("F1", reduced(program("Resize", "float32", "B"), "input B", test="t1", **more)),
    ]
    return concluded(found, {("F1", "t1"): {"t0": says}})


@pytest.mark.parametrize("says", [LACKS, SAME])
def test_a_member_that_has_not_the_cause_is_a_part_if_something_else_decides_it(says):
    assert two(says).of("F1", "t1") != "F1" == two(says).of("F1", "t0")
    assert two(says, nondefault=1).of("F1", "t1") != "F1"
    assert two(OTHERWISE).of("F1", "t1") == two(UNTOLD).of("F1", "t1") == two(BELONGS).of("F1", "t1") == "F1"
    unfinished = [
        Reduced("F1", reduced(program(), test="t0")),
        Reduced("F1", reduced(program(), "input B", test="t1", finished=False)),
    ]
    assert "F1" not in concluded(unfinished, {("F1", "t1"): {"t0": says}}).parts


def test_members_that_another_parameter_seems_to_decide_are_one_where_they_have_one_cause():
    """RNN was told apart from GRU for hidden_size, without which it does not load."""
    found = [
        Reduced("F1", reduced(program("GRU"), deciding=("layout=1", "hidden_size=1"), test="t0")),
        Reduced("F1", reduced(program("RNN"), deciding=("layout=1",), test="t1")),
    ]
    assert concluded(found, {}).parts["F1"].keys() == {"t1"}
    assert "F1" not in concluded(found, {("F1", "t1"): {"t0": BELONGS}}).parts


def test_a_member_that_can_have_only_one_of_the_causes_has_that():
    found = [
        Reduced("F1", reduced(program(), deciding=("mode='a'",), test="t0")),
        Reduced("F1", reduced(program(), deciding=("antialias=1",), test="t1")),
    ]
    far = {x: Called(("Other",), frozenset()) for x in TESTS}
    for says, other in ((UNTOLD, "t1"), (OTHERWISE, "t0"), (LACKS, "t0")):
        result = conclude(found, {"F1": TESTS}, far, {"F1": 1.0}, {}, {("F1", "t2"): {"t0": LACKS, "t1": says}})
        assert result.of("F1", "t2") == result.of("F1", other)


def test_dtype_and_rank_alone_part_nothing():
    found = [
        Reduced("F1", reduced(program(), "float64 inputs", "an input of rank 3", test="t0")),
        Reduced("F1", reduced(program(), "a 0-d input", test="t1")),
    ]
    assert "F1" not in concluded(found, {("F1", "t1"): {"t0": SAME}}).parts


def test_a_member_that_needs_what_another_does_without_has_another_cause():
    """Both need `mode`; the second passes without it, and without B, which the first has not: so it is another cause."""
    plain = reduced(program(mode="linear"), deciding=("mode='linear'",))
    more = reduced(program("Resize", "float32", "B", mode="linear"), "input B", deciding=("mode='linear'",), test="t1")
    found = [Reduced("F1", plain), Reduced("F1", more)]
    for back, kinds in ((LACKS, 2), (UNTOLD, 1)):
        seen = {("F1", "t1"): {"t0": BELONGS}, ("F1", "t0"): {"t1": back}}
        assert len(set(dividing.kinds_of(found, seen)["F1"].values())) == kinds


def test_what_was_asked_of_an_earlier_reduction_counts_no_more(workspace: Workspace):
    now = reduced(program(mode="linear"), deciding=("mode='linear'",))
    earlier = [Asked(now.stored, ("hidden_size=1",), LACKS), Asked("of another", belonging.wanted(now), LACKS)]
    kept = Membership("F1", "e", "a-onnx", "inputs", "t1", (*earlier, belonging.asked(now, BELONGS)))
    belonging.save(workspace, kept)
    belonging.save(workspace, msgspec.structs.replace(kept, frontend="b-onnx", test="t2"))
    assert {x.test for x in belonging.stored(workspace)} == {"t1", "t2"}
    assert belonging.stored(workspace, ["t1"]) == [kept]
    assert belonging.answers(belonging.stored(workspace), [("F1", now)]) == {("F1", "t1"): {"t0": BELONGS}}


def test_a_member_of_two_causes_is_told_and_stays(workspace: Workspace):
    environment = fill(workspace)["tvm"]
    of = {"finding": "Faaaaaaaa", "environment": environment, "frontend": "tvm-onnx"}
    one = msgspec.structs.replace(reduced(program("Conv", mode="linear"), deciding=("mode='linear'",)), **of)
    reduction.save(workspace, one)
    assert reducing.unasked_members(workspace) == ["Faaaaaaaa"]
    for says, tagged in ((OTHERWISE, True), (BELONGS, False)):
        belonging.save(workspace, Membership(**of, variant="inputs", test="t2", asked=(belonging.asked(one, says),)))
        [found] = [x for x in findings(workspace, environment=environment) if x.id == "Faaaaaaaa"]
        assert (TWO_CAUSES in found.tags) is tagged and found.members == ("t0", "t2")
    assert reducing.unasked_members(workspace) == []
    said: list[str] = []
    assert reducing.reduce_all(workspace, [], 1.0, 1.0, said.append) == said == [], "no names are not all names"


def test_a_layer_is_asked_about_a_layer_and_the_call_inside_it_about_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call inside has no such parameter: of it, nobody could say whether the layer needs it."""
    layer, inner = program("Layer", depth=2), program("Inner")

    class Asking(Compiler):
        target, budget = WRONG, None
        outcomes = dict.fromkeys((layer.id, inner.id), WRONG)

    ask = Asking(lambda x: "depth" in x.params or x == inner)
    monkeypatch.setattr(reducing, "asker", lambda *_, **__: (ask, layer))
    monkeypatch.setattr(reducing, "innermost", lambda _, kept, defaults: kept.append(inner))
    of = reduced(program("Layer", depth=3), deciding=("depth > 1",)), reduced(program("Inner", "float32", "kernel"))
    asked, besides = reducing._answers(None, None, None, of, None)  # type: ignore[arg-type]
    assert [x.says for x in asked] == [BELONGS, LACKS] and not besides


# ---------------------------------------------------------------------- with a compiler that has two faults


def leaky(number: int, dtype: str = "float32", **params: float) -> Captured:
    x = np.asarray([number], dtype)
    call = Instance("onnx", "LeakyRelu", dict(params), (Operand("X", Tensor.of(x)),), ("Y",), {"opset": {"": 16}})
    y = np.where(x < 0, x * x.dtype.type(params.get("alpha", 0.01)), x)
    return Captured(call, Provenance("suite", "file", f"leaky{number}"), (Tensor.of(y),))


def expanded(number: int, alpha: float) -> Captured:
    """Return a test of an operator that is expanded to LeakyRelu and what does not matter."""
    of = leaky(number, alpha=alpha)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "XY"]
    nodes = [helper.make_node("LeakyRelu", ["X"], ["h"], alpha=alpha), helper.make_node("Identity", ["h"], ["Y"])]
    body = Message("onnx.GraphProto", helper.make_graph(nodes, "body", info[:1], info[1:]).SerializeToString())
    call = msgspec.structs.replace(of.program, operator="Celu", params={}, context={**of.program.context, "body": body})
    return msgspec.structs.replace(of, program=call)


@pytest.mark.full
def test_members_of_two_causes_are_divided_by_few_reductions(workspace: Workspace) -> None:
    """Four members of one signature: those that alpha decides need no reduction of their own to be told from the other, though
    one of them calls the operator only within the body of another.
    """
    workspace.add_captured([leaky(1, alpha=0.25), leaky(1, alpha=0.5), leaky(1, "float64"), expanded(1, 0.5)])
    options = stage.Options(compilers=("faults.onnx_faults:two_causes",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    [whole] = findings(workspace)
    assert len(whole.members) == 4
    said: list[str] = []
    reducing.reduce_all(workspace, list(scripts.members(workspace)), 60.0, 600.0, said.append, workers=1)
    assert len(reduction.stored(workspace)) == 2, said
    found = {len(x.members): x for x in findings(workspace)}
    assert found.keys() == {3, 1} and whole.id in {x.id for x in found.values()}
    assert "alpha" in found[3].sentence and "float64" in found[1].sentence
    told = [asked.says for x in belonging.stored(workspace) for asked in x.asked]
    assert BELONGS in told and LACKS in told, "the members themselves were asked"


@pytest.mark.full
def test_what_a_member_fails_of_besides_is_a_finding_of_its_own(workspace: Workspace) -> None:
    """One fault hides another; without what decides of the first, the test is one more, which is no part of the corpus."""
    pytest.importorskip("onnxruntime")
    workspace.add_captured([leaky(1, alpha=0.25), leaky(1, "float64", alpha=0.25)])
    options = stage.Options(compilers=("faults.onnx_faults:hidden", "onnxruntime"), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    [whole] = findings(workspace)
    reducing.reduce_all(workspace, [whole.id], 60.0, 600.0, lambda _: None, workers=1)
    found = {x.symptom: x for x in findings(workspace)}
    assert found.keys() == {"value", "shape"} and TWO_CAUSES in found["value"].tags
    assert found["shape"].origins == ("leaky1 without alpha",) and "float64" in found["shape"].sentence
    assert found["shape"].confirmed == 1
    assert causes.behind(workspace, whole.id, whole.origins) == [(found["shape"].id, "leaky1 without alpha")]
    assert causes.behind(workspace, found["shape"].id, found["shape"].origins) == []
    assert len(workspace.corpus("onnx")) == families.held(workspace).total() == 2, "it is counted nowhere"
    assert len({x.test for x in verdicts.shown(workspace)}) == 2
    assert (scripts.write(workspace, found["shape"].id, scripts.members(workspace)[found["shape"].id])) is not None


def test_a_part_that_is_none_any_more_is_another_name(workspace: Workspace) -> None:
    """Its id was told to people."""
    environment = fill(workspace)["tvm"]
    of = {"finding": "Faaaaaaaa", "environment": environment, "frontend": "tvm-onnx"}
    one = msgspec.structs.replace(reduced(program("Conv")), **of)
    other = msgspec.structs.replace(reduced(program("Pad")), **of, test="t2")
    for x in (one, other):
        reduction.save(workspace, x)
    before = causes.causes(workspace)
    part = before.of("Faaaaaaaa", "t2")
    assert part != "Faaaaaaaa" and causes.resolve(workspace, part) == [part]
    causes.remember(workspace, before)
    assert causes.resolve(workspace, part) == [part], "nothing changed"
    reduction.save(workspace, msgspec.structs.replace(other, captured=one.captured))
    causes.remember(workspace, before)
    assert causes.resolve(workspace, part) == ["Faaaaaaaa"]
    reduction.save(workspace, other)
    assert causes.resolve(workspace, part) == [part], "it is one again"
