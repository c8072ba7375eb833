"""Programs of versions of an operator, and who answers what they show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.shrink.minimise import Spent


def f32(*shape: int) -> Tensor:
    return Tensor.of((np.arange(np.prod(shape)) / 8 + 0.125).astype("f4").reshape(shape))


class Opsets:
    """Answers as a compiler that is wrong from `wrong` on; other implementations know the versions `confirmed`.

    What is expected changed with the version `changed`.
    """

    def __init__(self, wrong: int, confirmed: range, changed: int = 0, spent: bool = False) -> None:
        self.wrong, self.confirmed, self.changed, self.spent = wrong, confirmed, changed, spent
        self.outcomes = dict[str, Outcome]()
        self.others: list[range] = []

    def version(self, program: Program) -> int:
        return int(program.instances()[0].context["opset"][""])

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        return [self.fails(x) for x in self.look(programs)]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        if self.spent and programs:
            raise Spent
        for x in programs:
            if x.id not in self.outcomes:
                self.outcomes[x.id] = shown(2.0 if self.version(x) >= self.wrong else 3.0)
        return [self.outcomes[x.id] for x in programs]

    def fails(self, outcome: Outcome, *, elsewhere: bool = False) -> bool:
        return outcome.verdict == INCONSISTENT

    def reference(self, program: Program) -> int:
        return int(self.version(program) >= self.changed)

    def agreed(self, program: Program) -> bool:
        return self.version(program) in self.confirmed

    def without(self, program: Program) -> list[range]:
        return [x for x in self.others if self.version(program) not in x]

    def passes(self, program: Program, by: range) -> bool:
        return self.version(program) in by


def shown(actual: float, *tags: str) -> Outcome:
    details = {"index": "[0]", "expected": 1.0, "actual": actual, "tags": tags}
    return Outcome(INCONSISTENT, "infer", "value", "wrong", details=details)


def quantize(version: int) -> Instance:
    return Instance("onnx", "QuantizeLinear", {}, (), ("y",), {"opset": {"": version}})
