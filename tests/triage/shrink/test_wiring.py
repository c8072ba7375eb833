"""Calls that are passed by: something else is what they returned."""

from __future__ import annotations

import numpy as np

from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.shrink import wiring
from opera.triage.shrink.minimise import minimise


def call(operator: str, made: str, *given: str) -> Call:
    return Call(operator, {}, tuple(Argument(f"x{n}", of) for n, of in enumerate(given)), (made,), {})


def graph(*calls: Call, returns: str) -> Graph:
    names = dict.fromkeys(x.of for c in calls for x in c.inputs if not any(x.of in y.outputs for y in calls))
    inputs = tuple(Operand(name, Tensor.of(np.ones(2, "f4"))) for name in names)
    return Graph("onnx", inputs, calls, (returns,))


def bypassed(program: Program) -> list[Program]:
    return [made for step in wiring.bypasses(program, {}) if (made := step(program)) is not None]


def test_each_call_is_passed_by_once_for_each_of_its_inputs() -> None:
    """What nothing takes any more goes with it; one call that is left is a program of one call; no input is returned."""
    program = graph(call("Range", "r", "n"), call("Equal", "e", "r", "k"), call("Mul", "m", "e", "x"), returns="m")
    assert [x.operators for x in bypassed(program)] == [
        ("Range", "Equal"),
        ("Range", "Mul"),
        ("Mul",),
        ("Equal", "Mul"),
    ]
    mul = next(x for x in bypassed(program) if x.operators == ("Mul",))
    assert isinstance(mul, Instance) and len(mul.inputs) == 2
    assert bypassed(mul) == []


def test_a_program_of_many_calls_is_halved_first() -> None:
    many = [call("Neg", f"r{n + 1}", f"r{n}") for n in range(wiring.MOST + 1)]
    assert not list(wiring.bypasses(graph(*many, returns=f"r{len(many)}"), {}))
    assert list(wiring.bypasses(graph(*many[1:], returns=f"r{len(many)}"), {}))


class FailsWith:
    """Fails as long as a program has these calls; what is given too little is none."""

    batch = 4

    def __init__(self, *operators: str) -> None:
        self.operators = operators

    def __call__(self, programs: list[Program]) -> list[bool]:
        return [set(self.operators) <= set(x.operators) and all(map(self._whole, x.instances())) for x in programs]

    def _whole(self, x: Instance) -> bool:
        return sum(y.value is not None for y in x.inputs) == {"Equal": 2, "Mul": 2}.get(x.operator, 1)

    def vanished(self, _: Program) -> bool:
        return False

    def stands(self, _: Program) -> bool:
        return True


def test_what_stands_between_two_calls_goes() -> None:
    program = graph(
        call("Range", "r", "n"), call("Exp", "e", "x"), call("Equal", "q", "k", "r"), call("Cast", "c", "q"),
        call("Mul", "m", "c", "e"), returns="m",
    )  # fmt: skip
    kept: list[Program] = []
    found = minimise(program, {}, FailsWith("Range", "Mul"), kept.append)
    assert found.operators == ("Range", "Mul") and isinstance(found, Graph)
    assert [x.of for x in found.calls[1].inputs] == ["r", "x"]
