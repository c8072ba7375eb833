"""What a reduced program can spare at last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.triage.reducer import spare


class Failing:
    """Fails of every program, in the words that a parameter has; the library computes of each something else."""

    def __init__(self, verdict: str, stage: str) -> None:
        self.verdict, self.stage, self.outcomes = verdict, stage, dict[str, Outcome]()

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        for x in programs:
            said = (
                "another axis was left out"
                if "way" not in x.instances()[0].params
                else "arguments differ in what they hold"
            )
            self.outcomes[x.id] = Outcome(self.verdict, self.stage, "RuntimeError", said)
        return [True] * len(programs)

    def stands(self, program: Program) -> bool:
        return True

    def reference(self, program: Program) -> dict[str, Any]:
        return {x: y for x, y in program.instances()[0].params.items() if x != "axis"}


def call(**params: Any) -> Instance:
    return Instance("onnx", "Norm", params, (Operand("X", Tensor.of(np.float32([1, 2]))),), ("Y",), {"opset": {"": 17}})


@pytest.mark.parametrize(
    ("verdict", "stage", "left"),
    [
        (INCONSISTENT, "infer", {"p": 1.0, "way": 1}),  # `axis=0` is what `axis=-1` is, of one axis
        (CRASH, "infer", {"p": 1.0, "way": 1}),
        (CRASH, "load", {"way": 1}),  # nothing is computed: what the first one passes without says the same here
    ],
)
def test_what_means_nothing_of_a_smaller_program_is_left_out(verdict: str, stage: str, left: dict[str, Any]) -> None:
    ask: Any = Failing(verdict, stage)
    kept: list[Program] = [call(p=1.0, axis=0, way=1)]
    ask(kept)
    spare.parameters(ask, kept, {"Norm": {"p": 2.0, "axis": -1, "way": 0}})
    assert kept[-1].instances()[0].params == left, "of other words nothing is known"


@pytest.mark.parametrize(
    ("details", "witnessed", "left"),
    [({}, True, {}), ({"actual": "float16"}, True, {"p": 1.0}), ({}, False, {"p": 1.0})],
)
def test_what_is_of_the_same_wrong_dtype_by_another_converter_is_left_out(
    details: dict[str, Any], witnessed: bool, left: dict[str, Any]
) -> None:
    """PyTorch decomposes a conv3d with `padding='same'`: TVM returns float32 for bfloat16 by whichever converter."""
    program, bare = call(p=1.0), call()
    seen = {"output": "Y", "expected": "bfloat16", "actual": "float32", "wrong": {"Y": "dtype"}}

    class Elsewhere(Failing):
        def __call__(self, programs: Sequence[Program]) -> list[bool]:
            return [x == program for x in programs]

        def admits(self, program: Program) -> bool:
            return True

        def fails(self, outcome: Outcome, *, elsewhere: bool) -> bool:
            return elsewhere

        def excused(self, program: Program) -> bool:
            return False

        def passed(self, programs: Sequence[Program], failed: Sequence[bool]) -> list[bool]:
            return [witnessed]

    ask: Any = Elsewhere(INCONSISTENT, "infer")
    ask.outcomes = {
        program.id: Outcome(INCONSISTENT, "infer", "dtype", details=seen),
        bare.id: Outcome(INCONSISTENT, "infer", "dtype", details=seen | details),
    }
    kept: list[Program] = [program]
    spare.parameters(ask, kept, {"Norm": {"p": 2.0}})
    assert kept[-1].instances()[0].params == left
    assert left or ask.target == ask.outcomes[bare.id]
