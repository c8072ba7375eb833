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
