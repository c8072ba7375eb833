"""How a reduced program fails by another route into its frontend, and whether anybody knows of that."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from faults.onnx_faults import Silent, relu

from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, PASS, REFUSED, UNSUPPORTED, Limits, Outcome
from opera.run import driver as stage
from opera.run.probe import Question
from opera.store import verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import blame
from opera.triage.conditions import peculiar
from opera.triage.findings import findings
from opera.triage.part import ROUTE
from opera.triage.reducer import hidden, reducing
from opera.triage.reducer.asking import Asker
from opera.triage.reduction import Reduction

VALUE = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 1 elements", details={"max_rel": 1.0})
SHAPE = Outcome(INCONSISTENT, "infer", "shape", "output 'Y': shape [1] is expected")


def crash(message: str, place: str) -> Outcome:
    return Outcome(CRASH, "load", "OpConversionFailure", message, conversion_function=place)


FEWER = crash("got fewer inputs than are expected here", "aten::sum@utils.cpp:55")
BEYOND = crash("the dimension is out of range of the tensor", "aten::sum@shape_util.cpp:66")


def reduced(operator: str, outcome: Outcome, frontend: str = "openvino-torch") -> Reduction:
    shown = Instance("torch", f"torch.{operator}", {}, (Operand("x", Tensor.of(np.ones(1, "f4"))),), (), {})
    captured = Captured(shown, Provenance("s", "f", "t")).form()
    return Reduction("F1", "e", frontend, "exported-program", "t0", captured, outcome, stored=shown.id)


class Route:
    """A compiler that shows one outcome, whatever it is asked."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self.outcome for _ in programs]


@pytest.mark.parametrize(
    ("own", "shown", "known", "new"),
    [
        (VALUE, SHAPE, [], True),
        (VALUE, VALUE, [], False),
        (VALUE, Outcome(PASS), [], False),
        (VALUE, Outcome(UNSUPPORTED, "load", "", "no rule"), [], False),
        (VALUE, msgspec.structs.replace(FEWER, verdict=REFUSED), [], False),
        (FEWER, BEYOND, [], True),
        (FEWER, BEYOND, [reduced("sum", BEYOND)], False),
        (FEWER, BEYOND, [reduced("sum", BEYOND, "tvm-torch")], True),  # another compiler's
        (FEWER, BEYOND, [reduced("amax", BEYOND)], False),  # the place is known
        (VALUE, SHAPE, [reduced("amax", SHAPE)], True),
        (VALUE, SHAPE, [reduced("sum", SHAPE)], False),
    ],
)
def test_another_route_fails_otherwise_than_anybody_knows(
    own: Outcome, shown: Outcome, known: list[Reduction], new: bool
) -> None:
    found = reduced("sum", own)
    assert hidden.otherwise(Route(shown), found, [found, *known], found.program().program) == new  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "number"), [("float32", -np.inf), ("float16", np.inf), ("float64", np.nan), ("int64", -np.inf)]
)
def test_what_computes_nothing_is_given_the_number_that_is_expected_of_it(dtype: str, number: float) -> None:
    inputs = (Operand("data", Tensor.of(np.ones((2, 0, 3), dtype))), Operand("axes", Tensor.of(np.ones(1, "int64"))))
    program = Instance("onnx", "ReduceMax", {}, inputs, ("reduced",), {"opset": {"": 20}})
    made = peculiar.filled(program, number)
    if dtype == "int64":
        assert made is None
    else:
        assert isinstance(made, Instance) and isinstance(made.inputs[0].value, Tensor)
        np.testing.assert_equal(made.inputs[0].value.array(), np.full((2, 1, 3), number, dtype))
        assert made.inputs[1] == program.inputs[1]


@pytest.mark.full
def test_behind_the_maximum_of_nothing_stands_that_of_minus_infinity(workspace: Workspace) -> None:
    """TVM begins neither: memory that nobody wrote hides that the least number is none."""
    pytest.importorskip("tvm")
    pytest.importorskip("onnx")
    inputs = (
        Operand("data", Tensor.of(np.ones((2, 0, 4), "f4"))),
        Operand("axes", Tensor.of(np.ones(1, "int64"))),
    )
    call = Instance("onnx", "ReduceMax", {"keepdims": 1}, inputs, ("reduced",), {"opset": {"": 20}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "of_nothing"))])
    stage.run(workspace, stage.Options(compilers=("tvm", "onnxruntime"), workers=1, limits=Limits(120.0)), Silent())
    [whole] = [x for x in findings(workspace) if x.frontend == "tvm-onnx"]
    reducing.reduce_all(workspace, [whole.id], 60.0, 600.0, lambda _: None, workers=1)
    found = [x for x in findings(workspace) if x.frontend == "tvm-onnx"]
    [behind] = [x for x in found if x.id != whole.id]
    assert behind.origins == ("of_nothing of -inf in place of nothing",) and behind.symptom == "nan-mask"


@pytest.mark.full
def test_what_its_member_did_not_come_to_is_a_finding_with_its_own_reduction(workspace: Workspace) -> None:
    pytest.importorskip("onnx")
    workspace.add_captured([relu(1, "LeakyRelu")])
    stage.run(
        workspace, stage.Options(compilers=("faults.onnx_faults:routes",), workers=1, limits=Limits(20.0)), Silent()
    )
    before = {x.symptom: x for x in findings(workspace)}
    assert {x: before[x].variants for x in before} == {"value": ("first",), "RuntimeError": ("second",)}
    told = list[str]()
    reducing.reduce_all(workspace, [before["value"].id], 60.0, 600.0, told.append, workers=1)
    by = {x.symptom: x for x in findings(workspace)}
    assert by.keys() == {*before, "shape"} and by["shape"].variants == ("second",)
    assert by["shape"].origins == ("LeakyRelu1 reduced, as second",)
    assert sum(by["shape"].id in x and "blame" not in x for x in told) == 1, (
        "it is reduced itself, and tells of no third"
    )
    assert len({x.test for x in verdicts.shown(workspace)}) == 1, "it is no part of the corpus"


@pytest.mark.full
def test_what_one_element_hides_by_another_route_is_a_finding_and_is_not_told_as_right(workspace: Workspace) -> None:
    pytest.importorskip("onnx")
    x = Operand("X", Tensor.of(np.array([0.5], "f4")))
    call = Instance("onnx", "Elu", {"alpha": 0.5}, (x,), ("Y",), {"opset": {"": 16}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "elu"))])
    options = stage.Options(compilers=("faults.onnx_faults:routes",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    [before] = findings(workspace)
    reducing.reduce_all(workspace, [before.id], 60.0, 600.0, lambda _: None, workers=1)
    found = {x.variants: x for x in findings(workspace)}
    assert found.keys() == {("first",), ("second",)}
    assert found["second",].origins == ("elu reduced, with several elements, as second",)
    laid = {x.finding: x for x in blame.stored(workspace)}
    assert laid.keys() >= {x.id for x in found.values()}, "each is asked about"
    rows = [x for x in laid[found["first",].id].evidence if x.kind == ROUTE]
    assert [x.lucky for x in rows] == [True]


def test_what_gives_wrong_outputs_without_a_word_is_remembered_of_what_crashes() -> None:
    def call(*shape: int) -> Instance:
        return Instance("torch", "torch.sum", {}, (Operand("x", Tensor.of(np.ones(shape, "f4"))),), (), {})

    infinite = msgspec.structs.replace(VALUE, details={"not_finite": True})
    shown = [
        (call(2), VALUE),
        (call(3), VALUE),
        (call(1), infinite),
        (call(0), SHAPE),
        (call(4), SHAPE),
        (call(5), Outcome(PASS)),
        (call(6), FEWER),
    ]
    for target, found in ((FEWER, [call(2), call(3), call(4)]), (VALUE, [])):
        ask = Asker(None, Question(frontend="f"))  # type: ignore[arg-type]
        ask.target, ask.programs = target, {x.id: x for x, _ in shown}
        ask.outcomes = {x.id: outcome for x, outcome in shown}
        assert ask.silent() == found


@pytest.mark.parametrize(
    ("verdict", "symptom", "random", "passes"),
    [
        (ABORT, "SIGABRT", True, True),
        (ABORT, "SIGABRT", False, True),
        (INCONSISTENT, "shape", True, True),
        (INCONSISTENT, "shape", False, False),
        (INCONSISTENT, "value", True, False),
    ],
)
def test_a_program_that_returns_passes_beside_one_that_ends(
    verdict: str, symptom: str, random: bool, passes: bool
) -> None:
    """Its numbers are others than the library's: of a random one they need be no others, beside what ends or has another form;
    wrong numbers do not end."""

    def drawn(std: float) -> Instance:
        return Instance("torch", "torch.any_draw", {"mean": 1.0, "size": [1], "std": std}, (), (), {})

    ask = Asker(None, Question(frontend="f"))  # type: ignore[arg-type]
    ask.target = Outcome(verdict, "infer", symptom)
    ask.programs = {x.id: x for x in (drawn(0.0), drawn(1.0))}
    returned = msgspec.structs.replace(VALUE, details={"nondeterministic": random})
    ask.outcomes = {drawn(0.0).id: ask.target, drawn(1.0).id: returned}
    assert [x.program for x in ask.seen() if not x.fails] == ([drawn(1.0)] if passes else [])


@pytest.mark.parametrize(("number", "found"), [(float("inf"), {"alpha"}), (float("nan"), {"alpha"}), (2.0, set())])
def test_what_a_search_made_infinite_is_known_and_norms_may_be_infinite(number: float, found: set[str]) -> None:
    """ONNX Runtime's LRN with `alpha=inf`, which opera had tried beside `alpha=0.0`, was a finding of its own."""

    def norm(alpha: float) -> Instance:
        return Instance("torch", "norm", {"ord": float("inf"), "alpha": alpha}, (), (), {})

    assert hidden.unbounded(norm(number)) - hidden.unbounded(norm(0.0)) == found


def test_what_has_not_what_decides_of_what_is_as_wrong_is_something_else(workspace: Workspace) -> None:
    """A wrong shape where a parameter is given says nothing of one where it is not."""

    class Right(Asker):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            self.outcomes.update((x.id, Outcome(PASS)) for x in programs if x.id not in self.outcomes)
            return [self.outcomes[x.id] for x in programs]

    plain = reduced("sum", SHAPE).program().program
    assert isinstance(plain, Instance)
    given = msgspec.structs.replace(plain, params={"keepdim": True})
    decides = msgspec.structs.replace(reduced("sum", SHAPE), deciding=("keepdim=True",))
    defaults = {"torch.sum": {"keepdim": False}}
    for program, alike, new in ((plain, [decides], True), (given, [decides], False), (plain, [], True)):
        ask = Right(
            SimpleNamespace(known=lambda *_: SimpleNamespace(defaults=defaults)), Question(frontend="openvino-torch")
        )  # type: ignore[arg-type]
        ask.target = ask.outcomes[program.id] = SHAPE
        assert hidden._lacking(workspace, ask, alike, program) is new


@pytest.mark.full
def test_a_wrong_answer_beside_a_crash_is_a_finding_of_its_own(workspace: Workspace) -> None:
    pytest.importorskip("onnx")
    x = Operand("X", Tensor.of(np.array([-0.5, -2.0], "f8")))
    call = Instance("onnx", "LeakyRelu", {}, (x,), ("Y",), {"opset": {"": 16}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "leaky"))])
    options = stage.Options(compilers=("faults.onnx_faults:beside",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    [before] = findings(workspace)
    for _ in range(2):  # once more, it makes no other
        reducing.reduce_all(workspace, [before.id], 60.0, 600.0, lambda _: None, workers=1)
        found = {x.symptom: x for x in findings(workspace)}
        assert found.keys() == {"RuntimeError", "value"}
        assert found["value"].origins == ("leaky varied",) and "float16" in found["value"].sentence


@pytest.mark.full
def test_a_small_error_is_told_by_louder_numbers_and_who_is_wrong_of_these_too(workspace: Workspace) -> None:
    pytest.importorskip("onnx")
    x = Operand("X", Tensor.of(np.array([-8.48, -1.77], "f4")))
    call = Instance("onnx", "LeakyRelu", {}, (x,), ("Y",), {"opset": {"": 16}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "leaky"))])
    faults = ("faults.onnx_faults:quiet", "faults.onnx_faults:coarse")
    stage.run(workspace, stage.Options(compilers=faults, workers=1, limits=Limits(20.0)), Silent())
    [before] = findings(workspace)
    assert (before.frontend, before.symptom) == (f"{faults[0]}-onnx", "value")
    reducing.reduce_all(workspace, [before.id], 60.0, 600.0, lambda _: None, workers=1)
    found = {x.frontend: x for x in findings(workspace)}
    assert "is -inf, not" in found[f"{faults[0]}-onnx"].sentence, "of 100, or -100"
    assert found[f"{faults[1]}-onnx"].origins == ("leaky reduced",)


@pytest.mark.full
def test_dtypes_of_which_another_part_is_wrong_are_a_finding_of_their_own(workspace: Workspace) -> None:
    """TVM's importer keeps integers where PyTorch's `atan2` returns floats; of float16 it has no such kernel."""
    pytest.importorskip("tvm")
    given = tuple(Operand(x, Tensor.of(np.array([1, 2], "i4"))) for x in ("input", "other"))
    call = Instance("torch", "torch.atan2", {}, given, (), {"call": {"args": ["input", "other"], "kwargs": []}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "atan2"))])
    stage.run(workspace, stage.Options(compilers=("tvm", "torchexport"), workers=1, limits=Limits(60.0)), Silent())
    [before] = findings(workspace)
    reducing.reduce_all(workspace, [before.id], 60.0, 600.0, lambda _: None, workers=1)
    told = sorted(x.sentence.partition("(input=")[2].partition("(")[0] for x in findings(workspace))
    assert told == ["float16", "int32"]


def test_of_a_compiler_that_the_workspace_has_not_run_nothing_is_stored(workspace: Workspace) -> None:
    """A witness alone has no environment: its finding ended `opera reduce all` in an error."""
    program = reduced("sum", SHAPE).program().program
    witness = Verdict("t", "onnxruntime-onnx", "inputs", "", SHAPE)
    ask: Any = SimpleNamespace(probe=lambda _: pytest.fail("nothing is asked"))
    assert hidden.store(workspace, ask, witness, program, "varied") is None


def test_what_a_witness_shows_that_no_run_has_used_is_not_stored(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was, as a verdict of no environment: `opera operators`, JUnit and CSV reports ended in an error."""
    program = reduced("sum", SHAPE).program().program
    monkeypatch.setattr(workspace, "environments", lambda: {"e": {}})
    own = Question(frontend="onnxruntime-onnx", variant="inputs", environment="e")
    beside = [
        Question(frontend=x, variant="inputs", environment=y) for x, y in (("tvm-onnx", ""), ("openvino-onnx", "e"))
    ]
    ask: Any = SimpleNamespace(
        question=own, beside=beside, captured=lambda x: Captured(x, Provenance("made", "", "")),
        probe=lambda x: SHAPE if x.frontend == own.frontend else Outcome(PASS),
    )  # fmt: skip
    assert hidden.store(workspace, ask, Verdict("t", own.frontend, "inputs", "e", SHAPE), program, "varied") is not None
    stored = workspace.query("SELECT frontend, environment FROM verdicts ORDER BY 1")
    assert stored == [("onnxruntime-onnx", "e"), ("openvino-onnx", "e")]
