"""A failure that needs a setting which opera makes, and users need not, is told with it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from opera import compilers
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, PASS, Outcome
from opera.run.probe import Probe, Question
from opera.triage.reducer import reduce
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import sentence, title

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
        ("infer", ("threads", "precision"), ("INFERENCE_NUM_THREADS=1", "INFERENCE_PRECISION_HINT=f32")),
        ("compile", ("threads",), ("INFERENCE_NUM_THREADS=1",)),
        ("infer", (), ()),
        ("load", ("threads",), ()),  # it differs from then on only
    ],
)
def test_each_setting_without_which_it_passes_is_needed(stage: str, passing: Any, told: Any) -> None:
    ask: Any = Ask(stage, *passing)
    assert reduce._needed(ask, PROGRAM) == told
    assert ask.asked == (["threads", "precision"] if stage != "load" else [])


@pytest.mark.parametrize("frontend", ["openvino-onnx", "onnxruntime-onnx"])
def test_compilers_run_without_them(frontend: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip(frontend.partition("-")[0])
    ways = compilers.unset(frontend)
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
        settings=("A=1",),
    )
    verdict: Any = type("Verdict", (), {"outcome": of.outcome, "frontend": of.frontend})()
    odd = msgspec.structs.replace(of, explained=False)
    for chosen in (Choice(verdict, verdict, of), Choice(verdict, verdict, odd)):
        assert chosen.settings == ("A=1 is set",) and chosen.settings[0] in chosen.sure
        assert "where A=1 is set" in sentence("OpenVINO", "Abs", of.outcome, chosen.sure)
        assert "where A=1 is set" in title("Abs", of.outcome, chosen.sure)
