"""Bodies of control flow lose what does not matter, and all that is tried is a program that can be stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper  # noqa: E402

from opera.libraries import get  # noqa: E402
from opera.libraries.onnx import codec, opsets, probing, subgraphs  # noqa: E402
from opera.libraries.onnx import wrap as onnx_model  # noqa: E402
from opera.programs import migrated  # noqa: E402
from opera.programs.program import Argument, Call, Captured, Graph, Instance, Operand, Program, Provenance, parse  # noqa: E402
from opera.programs.values import Message, Tensor  # noqa: E402
from opera.triage.shrink import smaller  # noqa: E402


def body(nodes: list[Any], inputs: str, outputs: str) -> Message:
    sides = [[helper.make_empty_tensor_value_info(x) for x in names.split()] for names in (inputs, outputs)]
    return Message("onnx.GraphProto", helper.make_graph(nodes, "g", *sides).SerializeToString(deterministic=True))


def operand(name: str, *shape: int) -> Operand:
    return Operand(name, Tensor.of(np.arange(np.prod(shape), dtype="f4").reshape(shape)))


def scan() -> Instance:
    """A state and an input that matter, an input that does not, a scanned output, and two values from outside."""
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Mul", ["e", "unused"], ["m"]),
        helper.make_node("Add", ["s", "m"], ["s1"]), helper.make_node("Mul", ["s1", "k"], ["p"]),
        helper.make_node("Sub", ["p", "b"], ["y"]),
    ]  # fmt: skip
    held = body(nodes, "s x unused", "s1 y")
    operands = [operand("state", 2), operand("xs", 3, 2), operand("us", 3, 2), operand("b"), operand("k")]
    context = {"opset": {"": 20}, "captured": ["b", "k"]}
    return Instance("onnx", "Scan", {"body": held, "num_scan_inputs": 2}, tuple(operands), ("c", "d"), context)


def nodes_of(program: Program) -> list[str]:
    [call] = [x for x in program.instances() if x.operator in ("Scan", "If")]
    held = [codec.parse(x) for x in call.params.values() if isinstance(x, Message)]
    return [node.op_type for graph in held for node in graph.node]


def least(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return what is left where the smallest that ONNX runs is taken each time."""
    while True:
        made = sorted(subgraphs.shortened(program), key=lambda x: smaller.measure(x, {}))
        assert all(parse(x.form()) == x for x in made)
        size = smaller.measure(program, {})
        good = (x for x in made if smaller.measure(x, {}) < size and fails(x) and probing.runs(x.instances()[-1]))
        found = next(good, None)
        if found is None:
            return program
        program = found


@pytest.mark.parametrize(("operator", "left", "inputs"), [("Exp", 2, 2), ("Sub", 2, 3), ("Scan", 1, 2)])
def test_a_scan_keeps_the_node_that_matters(operator: str, left: int, inputs: int) -> None:
    found = least(scan(), lambda x: operator in (*nodes_of(x), *x.operators)).instances()[0]
    assert len(nodes_of(found)) <= left and len(found.inputs) <= inputs and found.params["num_scan_inputs"] <= 1
    assert set(found.context.get("captured", ())) <= {x.name for x in found.inputs}


def test_an_output_of_if_is_left_out_of_both_branches_and_a_constant_that_nothing_takes_goes() -> None:
    one, other = (
        [helper.make_node(x, ["k"], [f"{x}{n}"]) for n in (0, 1) for x in names] for names in (["Abs"], ["Neg"])
    )
    params = {"then_branch": body(one, "", "Abs0 Abs1"), "else_branch": body(other, "", "Neg0 Neg1")}
    context = {"opset": {"": 20}}
    calls = (
        Call("Constant", {"value": Tensor.of(np.float32(2))}, (), ("k",), context),
        Call("If", params, (Argument("cond", "c"), Argument("k", "k")), ("y", "z"), {**context, "captured": ["k"]}),
    )
    cond = Operand("c", Tensor.of(np.array(True)))
    graph = Graph("onnx", (cond,), calls, ("y", "z"))
    made = subgraphs.shortened(graph)
    fewer = [x for x in made if len(x.outputs) == 1]
    assert {x.outputs for x in fewer} == {("y",), ("z",)} and all(
        nodes_of(x) in (["Abs", "Neg"], ["Neg", "Abs"]) for x in fewer
    )


def test_types_within_a_body_are_known_so_that_its_oldest_opset_is() -> None:
    program = scan()
    made = onnx_model.parts(program)
    types = opsets.value_types(onnx_model.inferred(program, made))
    assert {types[x] for x in ("s", "x", "e", "p", "y", "c")} == {"tensor(float)"}
    from opera.libraries.onnx import library

    assert min(x.program.instances()[0].context["opset"][""] for x in library.older(program)) == 9


def test_a_program_that_holds_none_has_no_smaller_body() -> None:
    assert subgraphs.shortened(Instance("onnx", "Abs", {}, (operand("X", 2),), ("Y",), {"opset": {"": 20}})) == []


def test_an_output_that_another_call_takes_does_not_go() -> None:
    call = scan()
    taken = tuple(Argument(x.name, x.name) for x in call.inputs)
    calls = (
        Call("Scan", call.params, taken, ("c", "d"), call.context),
        Call("Neg", {}, (Argument("X", "d"),), ("n",), {"opset": {"": 20}}),
    )
    made = subgraphs.shortened(Graph("onnx", call.inputs, calls, ("c", "n")))
    assert made and all(parse(x.form()) == x for x in made)


def test_a_branch_within_a_loop_stands_in_its_place(tmp_path: Path) -> None:
    """Of `If` in the body of a loop one branch may be all that matters; what it hands out from outside goes on."""
    branches = {"then_branch": body([helper.make_node("Abs", ["s"], ["a"])], "", "a"), "else_branch": body([], "", "s")}
    chosen = helper.make_node("If", ["c"], ["t"], **{name: codec.parse(x) for name, x in branches.items()})
    held = body([chosen, helper.make_node("Identity", ["c"], ["d"])], "i c s", "d t")
    count, go = (Operand(n, Tensor.of(np.array(x))) for n, x in (("M", 2), ("cond", True)))
    loop = Instance("onnx", "Loop", {"body": held}, (count, go, operand("v", 2)), ("y",), {"opset": {"": 20}})
    made = [x for x in subgraphs.shortened(loop) if "If" not in loops(x) and len(loops(x)) == 2]
    assert {tuple(loops(x)) for x in made} == {("Abs", "Identity"), ("Identity", "Identity")}
    [inlined] = [x for x in made if "Abs" in loops(x)]
    get("onnx").wrap(Captured(inlined, Provenance("s", "f", "t")), "t", tmp_path / "t")
    assert migrated.read_values(tmp_path / "t", "expected") == [operand("v", 2).value]


def test_a_program_keeps_the_only_output_that_it_has() -> None:
    one, other = (body([helper.make_node(x, ["k"], [x])], "", x) for x in ("Abs", "Neg"))
    context = {"opset": {"": 20}}
    calls = (
        Call("Constant", {"value": Tensor.of(np.float32(2))}, (), ("k",), context),
        Call(
            "If", {"then_branch": one, "else_branch": other}, (Argument("cond", "c"), Argument("k", "k")), ("y",),
            {**context, "captured": ["k"]},
        ),
    )  # fmt: skip
    program = Graph("onnx", (Operand("c", Tensor.of(np.array(True))),), calls, ("y",))
    assert all(x.outputs for x in subgraphs.shortened(program))


def loops(program: Program) -> list[str]:
    held = next(x for x in program.instances()[-1].params.values() if isinstance(x, Message))
    return [node.op_type for node in codec.parse(held).node]
