"""Reductions of small programs, and what findings are called by them: for tests of causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.distinct.causes import Causes, conclude
from opera.triage.distinct.dividing import Called, Reduced
from opera.triage.reduction import Reduction

VALUE = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 2 elements, first at [0]: expected 1.0, got 2.0")


def tensor(*numbers: float, dtype: str = "float32") -> Tensor:
    return Tensor.of(np.asarray(numbers, dtype))


def program(operator: str = "Conv", name: str = "x", value: Value = None, **params: Any) -> Instance:
    value = tensor(1.0) if value is None else value
    return Instance("onnx", operator, params, (Operand(name, value),), ("y",), {"opset": 26})


def reduced(
    finding: str,
    test: str,
    shown: Program,
    *deciding: str,
    outcome: Outcome = VALUE,
    environment: str = "e",
    **more: Any,
) -> Reduced:
    captured = Captured(shown, Provenance("s", "f", "t"), (tensor(1.0),)).form()
    frontend = more.pop("frontend", "tvm-onnx")
    return Reduced(
        finding, Reduction(finding, environment, frontend, "inputs", test, captured, outcome, deciding=deciding, **more)
    )


def concluded(found: Sequence[Reduced], members: dict[str, list[str]], told: dict[str, str] | None = None) -> Causes:
    created = {name: float(age) for age, name in enumerate(members)}
    called = {test: Called((mode[0],), frozenset({("mode", mode)})) for test, mode in (told or {}).items()}
    return conclude(found, members, called, created, {})
