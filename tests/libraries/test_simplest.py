"""The simplest calls are such as their library takes, of what another call is given that is odd."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from opera import libraries
from opera.libraries.simplest import declared
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Named, Sequence, Tensor, Value
from opera.run.probe import Probe
from opera.triage.reducer.asking import captured

CONTEXT: dict[str, Value] = {"opset": {"": 21}}
ANY = ("torch.abs", "torch.clone", "torch.add", "torch.maximum")
"""Asked of any odd input."""
ODD = Tensor.of(np.ones(2, "float64"))
PLAIN = Tensor.of(np.ones(2, "float32"))


def call(library: str, value: Value = PLAIN, **params: Value) -> Program:
    return Instance(library, "x", params, (Operand("x", value),), ("y",), CONTEXT)


def simplest(library: str, of: Program) -> list[str]:
    return [x.operator for x in libraries.get(library).simplest(of)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("library", ["onnx", "torch", "keras"])
def test_a_library_takes_them(library: str) -> None:
    importlib.import_module(library)
    held: dict[str, Value] = {"onnx": 11, "torch": Named("torch.dtype", "float64"), "keras": "float64"}
    given = [(call(library, ODD, dtype=held[library])), call(library, Tensor.of(np.ones(2, "bool")))]
    given += [call(library, Sequence("float32", (PLAIN,)))] if library == "onnx" else []
    with Probe(workers=1) as probe:
        calls, nodes = libraries.get(library).simplest, {x.node for x in declared(library)}  # type: ignore[attr-defined]
        made = [x for of in given for y in (False, True) for x in calls(of, panel=y, nodes=nodes)]
        taken = {x.operator for x in made if probe.expected(captured(x)) is not None}
    assert taken == {x.operator for x in declared(library)}


def test_what_becomes_a_node_is_asked_of_what_fails_at_such_alone() -> None:
    made = libraries.get("keras").simplest(call("keras", ODD), nodes={"ReduceMin"})  # type: ignore[attr-defined]
    assert {x.operator for x in made} - set(simplest("keras", call("keras", ODD))) == {"keras.ops.min"}


def test_what_is_odd_is_asked_of_and_what_returns_a_constant_of_anything() -> None:
    constants = ["torch.zeros_like", "torch.Tensor.new_ones"]
    assert simplest("torch", call("torch")) == constants and simplest("onnx", call("onnx")) == []
    for odd in (ODD, Tensor.of(np.ones((), "float32")), Tensor.of(np.ones((0, 2), "float32"))):
        assert simplest("torch", call("torch", odd)) == [*ANY, *constants]
    named = call("torch", dtype=Named("torch.dtype", "complex64"))
    assert simplest("torch", named) == [*constants, "torch.Tensor.to"]
    assert simplest("onnx", Instance("onnx", "x", {}, (Operand("x", ODD),), ("y",), {})) == []  # of no opset


def test_what_is_odder_comes_first_and_each_kind_once() -> None:
    inputs = [
        Tensor.of(np.ones(shape, dtype)) for shape, dtype in (((2,), "int64"), ((3,), "int64"), ((2,), "float64"))
    ]
    of = Instance("onnx", "x", {}, tuple(Operand(f"x{n}", x) for n, x in enumerate(inputs)), ("y",), CONTEXT)
    made = [x for x in libraries.get("onnx").simplest(of) if x.operator == "Identity"]  # type: ignore[attr-defined]
    assert [x.inputs[0].value for x in made] == [inputs[2], inputs[0]]
