"""A failure that needs a setting which opera makes, and users need not, is told with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera import compilers
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, PASS, UNSUPPORTED, Outcome
from opera.run.probe import Probe, Question
from opera.triage.conditions.circumstances import Borne
from opera.triage.conditions.deciding import Decided
from opera.triage.reducer import settings
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import sentence, title
from opera.triage.shrink import simpler, smaller

NUMBERS = Operand("X", Tensor.of(np.float32([1, -2])))
PROGRAM = Instance("onnx", "Abs", {}, (NUMBERS,), ("Y",), {"opset": {"": 13}})
CAPTURED = Captured(PROGRAM, Provenance("", "", ""))


class Ask:
    """Ends its process, but by some ways."""

    def __init__(self, stage: str, *passing: str) -> None:
        self.passing, self.asked = passing, list[str]()
        self.outcomes = {PROGRAM.id: Outcome(ABORT, stage, "SIGSEGV", "")}
        self.question = Question(frontend="openvino-onnx")

    def look(self, programs: Any) -> list[Outcome]:
        return [self.outcomes[x.id] for x in programs]

    def by_way(self, program: Instance, way: str) -> Outcome:
        self.asked.append(way)
        return Outcome(PASS) if way in self.passing else self.outcomes[program.id]


@pytest.mark.parametrize(
    ("stage", "passing", "told"),
    [
        ("infer", ("threads", "precision"), ("INFERENCE_NUM_THREADS=1 is set", "INFERENCE_PRECISION_HINT=f32 is set")),
        ("compile", ("threads",), ("INFERENCE_NUM_THREADS=1 is set",)),
        ("infer", (), ()),
        ("load", ("threads",), ()),  # it differs from then on only
    ],
)
def test_each_setting_without_which_it_passes_is_needed(stage: str, passing: Any, told: Any) -> None:
    ask: Any = Ask(stage, *passing)
    assert settings.needed(ask, PROGRAM) == told
    assert ask.asked == (["threads", "precision"] if stage != "load" else [])


@pytest.mark.parametrize("frontend", ["openvino-onnx", "onnxruntime-onnx"])
def test_compilers_run_without_them(frontend: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip(frontend.partition("-")[0])
    ways = compilers.ways_of(frontend, compilers.UNSET)
    assert ways and all(x.told[0] for x in ways)
    with Probe(workers=1) as probe:
        for way in ways:
            question = Question(frontend=frontend, program=CAPTURED, way=way.name)
            assert probe(question).verdict == PASS


def test_it_is_told_in_sentence_and_title_whether_or_not_a_rule_is_known() -> None:
    of = Reduction(
        "F",
        "",
        "openvino-onnx",
        "",
        "t",
        CAPTURED.form(),
        Outcome(CRASH, "infer", "RuntimeError", "no"),
        settings=("A=1 is set",),
    )
    verdict: Any = type("Verdict", (), {"outcome": of.outcome, "frontend": of.frontend})()
    odd = msgspec.structs.replace(of, explained=False)
    for chosen in (Choice(verdict, verdict, of), Choice(verdict, verdict, odd)):
        assert chosen.settings == ("A=1 is set",) and chosen.settings[0] in chosen.sure
        assert "where A=1 is set" in sentence("OpenVINO", "Abs", of.outcome, chosen.sure)
        assert "where A=1 is set" in title("Abs", of.outcome, chosen.sure)


def pool(dtype: str) -> Instance:
    data = Operand("input", simpler.numbered(np.ones((1, 1, 2, 2)), dtype))
    context: dict[str, Any] = {"kind": "function", "call": {"args": ["input", "kernel_size"], "kwargs": []}}
    return Instance("torch", "torch.nn.functional.avg_pool2d", {"kernel_size": 2}, (data,), (), context)


class Exporter(Ask):
    """Writes invalid files of these dtypes, at its newest opset of some."""

    def __init__(self, failing: set[str], newest: set[str], right: Sequence[str] = ("opset-18", "opset-21")) -> None:
        self.failing, self.newest, self.right, self.asked = failing, newest, right, []
        self.question = Question(frontend="onnxexport-torch")

    def look(self, programs: Any) -> list[Outcome]:
        return [self.shown(x, self.failing) for x in programs]

    def by_way(self, program: Instance, way: str) -> Outcome:
        self.asked.append(way)
        return self.shown(program, self.newest if way == "newest" or way in self.right else self.failing)

    def shown(self, program: Instance, failing: set[str]) -> Outcome:
        found = {x.dtype for x in smaller.leaves(program)} & failing
        return Outcome(CRASH, "compile", "InferenceError", "T") if found else Outcome(PASS)

    def fails(self, outcome: Outcome) -> bool:
        return outcome.verdict == CRASH

    def go_on(self) -> None:
        self.more = True


LEFT = "opset_version is left at its default"


@pytest.mark.parametrize(
    ("own", "newest", "wanted", "left"),
    [
        ("bfloat16", {"int32", "int64"}, "bfloat16 inputs", (LEFT,)),
        ("int64", {"int32", "int64"}, "int32 or int64 inputs", ()),
        ("int64", {"bfloat16", "int32", "int64"}, "bfloat16, int32 or int64 inputs", ()),
        ("int64", set(), "bfloat16, int32 or int64 inputs", (LEFT,)),
    ],
)
def test_dtypes_that_a_newer_opset_has_are_another_cause(own: str, newest: set[str], wanted: str, left: Any) -> None:
    ask: Any = Exporter({"bfloat16", "int32", "int64"}, newest)
    borne = Borne(Decided((), ("bfloat16, int32 or int64 inputs",)), ("a 4-d input",))
    told, said = settings.at_newest(ask, pool(own), borne)
    assert (told.decided.besides, told.circumstances, said) == ((wanted,), ("a 4-d input",), left)
    assert ask.asked.count("newest") == 3


@pytest.mark.parametrize(
    ("right", "left"),
    [
        (["opset-22", "opset-23"], "opset_version is below 22"),
        (["opset-18", "opset-22"], LEFT),
        ([], LEFT),
    ],
)
def test_from_which_opset_on_an_exporter_is_right_is_told_as_a_bound(right: list[str], left: str) -> None:
    ask: Any = Exporter({"bfloat16"}, set(), right)
    borne = Borne(Decided((), ("bfloat16 inputs",)))
    assert settings.at_newest(ask, pool("bfloat16"), borne) == (borne, (left,))
    assert ask.more, "what went before may have taken all the time that there was"


def test_a_kind_of_dtypes_stays_a_kind_and_compilers_are_not_asked() -> None:
    ask: Any = Exporter({"int64"}, set())
    borne = Borne(Decided((), ("integer inputs",)))
    assert settings.at_newest(ask, pool("int64"), borne) == (borne, (LEFT,))
    but = Borne(Decided((), ("numeric inputs other than float16",)))
    assert settings.at_newest(ask, pool("int64"), but) == (but, (LEFT,))
    ask.question, ask.asked = Question(frontend="openvino-onnx"), []
    assert settings.at_newest(ask, PROGRAM, borne) == (borne, ()) and not ask.asked


@pytest.mark.parametrize(
    ("way", "passes"),
    [
        ("newest", True),
        pytest.param("opset-22", True, marks=pytest.mark.full),
        pytest.param("opset-21", False, marks=pytest.mark.full),
    ],
)
def test_pytorchs_exporter_writes_a_file_of_another_opset(way: str, passes: bool) -> None:
    """Version 22 of AveragePool takes bfloat16, which the default opset has not: ONNX's checker refuses that."""
    for name in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    asked = Captured(pool("bfloat16"), Provenance("", "", ""))
    with Probe(workers=1) as probe:
        shown = probe(Question(frontend="onnxexport-torch", program=asked, way=way))
    assert (shown.verdict in (PASS, UNSUPPORTED)) is passes, shown.message
