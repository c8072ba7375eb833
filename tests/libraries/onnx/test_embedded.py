"""A model that holds or makes an input computes what the one computes that is given it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor, Value

pytest.importorskip("onnx")

from opera.libraries.onnx import library

ONE = Tensor.of(np.int64(1))
DATA = Tensor.of(np.float32([[1, 2], [3, 4]]))
ITEMS = (Tensor.of(np.int64(5)), Tensor.of(np.int64(6)))
FLOATS = Sequence("tensor(int64)", ITEMS)


def call(operator: str, outputs: tuple[str, ...] = ("y",), **inputs: Value) -> Instance:
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    return Instance("onnx", operator, {}, operands, outputs, {"opset": {"": 21}})


def computed(program: Program, folder: Path) -> tuple[list[str], list[Value]]:
    """Return the names of the graph's inputs, and the expected outputs."""
    (folder / program.id).mkdir()
    made = library.wrap(Captured(program, Provenance("s", "f", "t")), program.id, folder / program.id)
    return list(made.inputs), migrated.read_values(folder / program.id, "expected")


@pytest.mark.parametrize(
    ("instance", "name", "left"),
    [
        (call("Gather", data=DATA, indices=Tensor.of(np.int64([1]))), "indices", ["data"]),
        (call("Gather", data=RandomTensor("float32", (2, 2), 1, 0.0, 1.0), indices=ONE), "data", ["indices"]),
        (call("Clip", input=DATA, min=None, max=Tensor.of(np.float32(2))), "max", ["input"]),
        (call("Identity", ("input",), input=DATA), "input", []),
        (call("SequenceLength", input_sequence=Sequence("string", ())), "input_sequence", []),
        (call("SequenceInsert", input_sequence=FLOATS, tensor=ITEMS[0]), "input_sequence",
         ["input_sequence_0", "input_sequence_1", "tensor"]),
    ],
    ids=lambda x: getattr(x, "operator", ""),
)  # fmt: skip
def test_it_computes_the_same(instance: Instance, name: str, left: list[str], tmp_path: Path) -> None:
    [made] = library.embedded(instance, name)
    given, expected = computed(made, tmp_path)
    assert given == left and expected == computed(instance, tmp_path)[1]


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        (call("SequenceLength", input_sequence=Sequence("tensor(int64)", ())), "input_sequence"),
        (call("Clip", input=DATA, min=None), "min"),
        (call("Clip", input=DATA), "other"),
        (call("OptionalGetElement", input=Optional("optional(tensor(int64))", ITEMS[1])), "input"),
    ],
)
def test_what_cannot_be_held_is_not(instance: Instance, name: str) -> None:
    assert library.embedded(instance, name) == []


def test_where_no_constant_may_be_of_its_dtype_the_model_is_of_a_newer_opset_that_says_the_same(tmp_path: Path) -> None:
    """Before 9, `Constant` is of floats alone; Scatter is not there yet."""
    expand = call("Expand", input=DATA, shape=Tensor.of(np.int64([2, 1, 1])))
    expand.context["opset"] = {"": 8}
    [made] = library.embedded(expand, "shape")
    assert [x.context["opset"] for x in made.instances()] == [{"": 9}] * 2
    assert computed(made, tmp_path) == (["input"], computed(expand, tmp_path)[1])
    [floats] = library.embedded(expand, "input")
    assert [x.context["opset"] for x in floats.instances()] == [{"": 8}] * 2
    scatter = call("Scatter", data=DATA, indices=ONE, updates=DATA)
    scatter.context["opset"] = {"": 8}
    assert [x.context["opset"] for x in library.embedded(scatter, "indices")[0].instances()] == [{"": 8}] * 2


@pytest.mark.parametrize("context", [{"body": Message("onnx.GraphProto", b"")}, {"captured": ["x"]}])
def test_what_is_bound_to_names_stays(context: dict[str, Any]) -> None:
    one = call("Clip", input=DATA)
    bound = Instance(one.library, one.operator, {}, one.inputs, one.outputs, {**one.context, **context})
    assert library.embedded(one, "input") and library.embedded(bound, "input") == []


def test_an_input_is_the_attribute_that_an_older_version_has_for_it(tmp_path: Path) -> None:
    """Of Clip-11 and later that is 6, of Upsample-9 it is 7, which the evaluator lacks; Gather never had one."""
    clip = call("Clip", input=DATA, min=Tensor.of(np.float32(2)))
    [made] = library.attributed(clip, "min")
    assert made.params == {"min": 2.0} and made.context["opset"] == {"": 10}
    assert computed(made, tmp_path)[1] == computed(clip, tmp_path)[1]
    upsample = call("Upsample", X=DATA, scales=Tensor.of(np.float32([1, 2])))
    upsample.context["opset"] = {"": 9}
    assert [x.context["opset"] for x in library.attributed(upsample, "scales")] == [{"": 8}]
    assert library.attributed(call("Gather", data=DATA, indices=ONE), "indices") == []
