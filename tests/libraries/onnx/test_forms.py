"""Other forms of bodies compute the same, lack what is told of them, and are programs that ONNX takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from opera.libraries.onnx import library  # noqa: E402
from opera.programs import migrated  # noqa: E402
from opera.programs.program import Argument, Call, Captured, Graph, Instance, Operand, Program, Provenance, parse  # noqa: E402
from opera.programs.values import Message, Tensor, Value  # noqa: E402

OUTSIDE = ["a value from outside its body that is computed or fed", "a value from outside its body"]
UNTYPED, HANDED = "an input of its body of no stated type", "a value that its body hands through"
TWO = Tensor.of(np.float32([1, 2]))


def body(nodes: list[Any], inputs: str, outputs: str, *, typed: bool = False) -> Message:
    sides = [
        [
            helper.make_tensor_value_info(x, TensorProto.FLOAT, None)
            if typed
            else helper.make_empty_tensor_value_info(x)
            for x in names.split()
        ]
        for names in (inputs, outputs)
    ]
    return Message("onnx.GraphProto", helper.make_graph(nodes, "g", *sides).SerializeToString(deterministic=True))


def scan(outputs: str = "s1 y", captured: str = "k", *, typed: bool = False) -> Instance:
    """A state that grows by what is scanned times a value from outside."""
    nodes = [helper.make_node("Mul", ["x", captured], ["y"]), helper.make_node("Add", ["s", "y"], ["s1"])]
    held = {"body": body(nodes, "s x", outputs, typed=typed), "num_scan_inputs": 1}
    operands = [Operand("state", TWO), Operand("xs", Tensor.of(np.float32([[1, 2], [3, 4], [5, 6]])))]
    operands += [Operand("k", Tensor.of(np.float32(3)))] if captured == "k" else []
    context: dict[str, Value] = {"opset": {"": 16}} | ({"captured": ["k"]} if captured == "k" else {})
    return Instance("onnx", "Scan", held, tuple(operands), ("c", "d"), context)


def computed(program: Program, folder: Path) -> list[Value]:
    (folder / program.id).mkdir()
    library.wrap(Captured(program, Provenance("s", "f", "t")), program.id, folder / program.id)
    return migrated.read_values(folder / program.id, "expected")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (scan(), [*OUTSIDE, UNTYPED]),
        (scan(captured="x", typed=True), []),
        (scan(captured="x"), [UNTYPED]),
        (scan("s y", typed=True), [*OUTSIDE, HANDED]),
    ],
    ids=["captured", "plain", "untyped", "handed"],
)
def test_each_form_computes_the_same_and_lacks_what_is_told(program: Instance, told: list[str], tmp_path: Path) -> None:
    found, expected = library.forms(program), computed(program, tmp_path)
    assert [x.says for x in found] == told
    for x in found:
        [made] = x.others()
        assert parse(made.form()) == made and computed(made, tmp_path) == expected
        assert x.says not in {y.says for y in library.forms(made)}


def test_of_several_calls_one_is_written_otherwise_and_what_it_takes_no_more_goes(tmp_path: Path) -> None:
    one = scan()
    names = ("state", "xs", "k")
    arguments = tuple(Argument(x, "t" if x == "state" else x) for x in names)
    calls = (
        Call("Neg", {}, (Argument("X", "state"),), ("t",), {"opset": {"": 16}}),
        Call("Scan", one.params, arguments, one.outputs, one.context),
    )
    program = Graph("onnx", one.inputs, calls, one.outputs)
    expected = computed(program, tmp_path)
    made = {x.says: x.others() for x in library.forms(program)}
    assert made[OUTSIDE[0]] == []  # that needs another call
    [held], [typed] = made[OUTSIDE[1]], made[UNTYPED]
    assert [x.name for x in held.inputs] == ["state", "xs"] and computed(held, tmp_path) == expected
    assert computed(typed, tmp_path) == expected


def test_an_optional_without_a_value_gets_one(tmp_path: Path) -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    one = TensorProto.FLOAT
    full = [
        helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", one, [2], [1.0, 2.0])),
        helper.make_node("Optional", ["c"], ["o"]),
    ]
    bodies = {
        "then_branch": full,
        "else_branch": [helper.make_node("Optional", [], ["o"], type=kind.optional_type.elem_type)],
    }
    params = {
        x: Message(
            "onnx.GraphProto",
            helper.make_graph(nodes, "g", [], [helper.make_value_info("o", kind)]).SerializeToString(
                deterministic=True
            ),
        )
        for x, nodes in bodies.items()
    }
    cond = Operand("cond", Tensor.of(np.array(True)))
    program = Instance("onnx", "If", params, (cond,), ("y",), {"opset": {"": 16}})
    [form] = library.forms(program)
    [made] = form.others()
    assert form.says == "an empty Optional in its branches" and library.forms(made) == []
    assert computed(made, tmp_path) == computed(program, tmp_path)  # the branch is not taken


def test_what_holds_no_program_has_no_other_form() -> None:
    assert library.forms(Instance("onnx", "Abs", {}, (Operand("X", TWO),), ("Y",), {"opset": {"": 13}})) == []


def test_openvino_loads_a_scan_in_either_form_of_what_its_body_takes_from_outside(tmp_path: Path) -> None:
    """Once it loads the scan itself, what is told of it is no more."""
    openvino = pytest.importorskip("openvino")

    def loads(program: Program) -> bool:
        computed(program, tmp_path)
        try:
            openvino.Core().read_model(tmp_path / program.id / "model.onnx")
        except RuntimeError:
            return False
        return True

    found = {x.says: [loads(made) for made in x.others()] for x in library.forms(scan(typed=True))}
    assert found == {OUTSIDE[0]: [True], OUTSIDE[1]: [True]}
    assert not loads(scan(typed=True))


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"value_int": 3}, ["value_int in place of value"]),
        ({"value_floats": [1.5, 2.0]}, ["value_floats in place of value"]),
        ({"value": TWO}, []),
    ],
)
def test_a_constant_is_written_as_a_tensor(params: dict[str, Value], told: list[str], tmp_path: Path) -> None:
    call = Instance("onnx", "Constant", params, (), ("output",), {"opset": {"": 13}})
    found = list(library.forms(call))
    assert [x.says for x in found] == told
    for other in (y for x in found for y in x.others()):
        assert other.id != call.id and computed(other, tmp_path) == computed(call, tmp_path)
