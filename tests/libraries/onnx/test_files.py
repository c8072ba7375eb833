"""A model file becomes a program that computes the same, with the value of each of its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opera.errors import InvalidTest
from opera.libraries import get
from opera.libraries.pieces import pieces, run
from opera.programs.program import Captured, Graph, Instance, Operand, Provenance, parse
from opera.programs.values import Message, Tensor, Value

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from opera.libraries.onnx import files, references  # noqa: E402

X = Tensor.of(np.array([1.0, -2.0, 3.0], "f4"))


def info(name: str, shape: tuple[int, ...] | None = (3,), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def held(name: str, value: object, dtype: str = "f4") -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def saved(folder: Path, nodes: list[onnx.NodeProto], initializers: list[onnx.TensorProto], output: str) -> Path:
    graph = helper.make_graph(nodes, "g", [info("layer/x:0")], [info(output, None)], initializers)
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


def looped() -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Return Relu, a loop of two rounds that adds a constant from outside, and a node that no output hangs on."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "layer/one:0"], ["w"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [info("i", (), TensorProto.INT64), info("c", (), TensorProto.BOOL), info("v")],
        [info("d", (), TensorProto.BOOL), info("w")],
    )
    nodes = [
        helper.make_node("Relu", ["layer/x:0"], ["other/x:0"]),
        helper.make_node("Exp", ["layer/x:0"], ["dead"]),
        helper.make_node("Loop", ["layer/n", "layer/go", "other/x:0"], ["layer/y:0"], body=body),
    ]
    return nodes, [
        held("layer/one:0", 1.0),
        held("layer/n", 2, "i8"),
        held("layer/go", True, "?"),
        held("layer/unread", 0.0),
    ]


def expected(program: Graph, folder: Path) -> list[Value]:
    from opera.programs import migrated

    get("onnx").wrap(Captured(program, Provenance("s", "f", "t")), "t", folder)
    return migrated.read_values(folder, "expected")


def test_a_file_is_a_program_of_short_names_that_computes_the_same(tmp_path: Path) -> None:
    program, known = files.opened(saved(tmp_path, *looped(), "layer/y:0"), {"layer/x:0": X})
    assert program.operators == ("Relu", "Constant", "Constant", "Constant", "Loop"), (
        "constants stand before what reads them"
    )
    assert program.outputs == ("y",) and [x.name for x in program.inputs] == ["x"]
    assert program.calls[-1].context["captured"] == ["one"]
    wanted = Tensor.of(np.array([3.0, 2.0, 5.0], "f4"))
    assert known["y"] == wanted and known["x_2"] == Tensor.of(np.array([1.0, 0.0, 3.0], "f4"))
    assert expected(parse(program.canonical()), tmp_path / "t") == [wanted]  # type: ignore[arg-type]


def test_a_constant_that_is_an_output_is_made_by_a_node(tmp_path: Path) -> None:
    """PyTorch's exporter folds `linspace` of no steps: its file has no node, and the program returns a constant."""
    program, known = files.opened(saved(tmp_path, [], [held("full", np.ones(0))], "full"), {"layer/x:0": X})
    assert [x.operator for x in program.calls] == ["Constant"] and program.outputs == ("full",)
    assert known["full"] == Tensor.of(np.ones(0, "f4"))


def test_what_an_exporter_remarks_on_nodes_of_a_body_is_left_out(tmp_path: Path) -> None:
    def size() -> int:
        program, _ = files.opened(saved(tmp_path, nodes, initializers, "layer/y:0"), {"layer/x:0": X})
        return len(program.calls[-1].params["body"].data)  # type: ignore[union-attr]

    nodes, initializers = looped()
    before = size()
    for node in nodes[-1].attribute[0].g.node:
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="a file and a line " * 20)
    assert size() == before


def test_a_part_of_it_is_given_what_the_others_return(tmp_path: Path) -> None:
    program, known = files.opened(saved(tmp_path, *looped(), "layer/y:0"), {"layer/x:0": X})
    part = run(program, program.calls[1:], known)
    assert [x.name for x in part.inputs] == ["x_2"] and part.operators == ("Constant",) * 3 + ("Loop",)
    assert expected(part, tmp_path / "t") == [known["y"]]  # type: ignore[arg-type]
    alone = run(program, program.calls[-1:], known)
    assert expected(alone, tmp_path / "u") == [known["y"]]  # type: ignore[arg-type]


@pytest.mark.parametrize("operator", ["RandomUniformLike", "RandomNormalLike"])
def test_the_evaluator_draws_in_the_likeness_of_a_scalar(tmp_path: Path, operator: str) -> None:
    reduced = helper.make_node("ReduceSum", ["layer/x:0"], ["s"], keepdims=0)
    nodes = [reduced, helper.make_node(operator, ["s"], ["y"])]
    _, known = files.opened(saved(tmp_path, nodes, [], "y"), {"layer/x:0": X})
    drawn = known["y"]
    assert isinstance(drawn, Tensor) and (drawn.dtype, drawn.shape) == ("float32", ())


def test_a_loop_without_a_condition_runs_and_one_without_an_end_is_none(tmp_path: Path) -> None:
    nodes, initializers = looped()
    nodes[-1].input[1] = ""
    _, known = files.opened(saved(tmp_path, nodes, initializers, "layer/y:0"), {"layer/x:0": X})
    assert known["y"] == Tensor.of(np.array([3.0, 2.0, 5.0], "f4"))
    many = [x if x.name != "layer/n" else numpy_helper.from_array(np.array(10**9), "layer/n") for x in initializers]
    with pytest.raises(InvalidTest, match="rounds"):
        files.opened(saved(tmp_path, nodes, many, "layer/y:0"), {"layer/x:0": X})
    nodes[-1].input[0] = ""
    with pytest.raises(InvalidTest, match="has no end"):
        files.opened(saved(tmp_path, nodes, initializers, "layer/y:0"), {"layer/x:0": X})


@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_what_the_rounds_of_a_loop_return_is_stacked(tmp_path: Path, shape: tuple[int, ...]) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["one", "one"], ["s"])],
        "body",
        [info("i", (), TensorProto.INT64), info("c", (), TensorProto.BOOL)],
        [info("d", (), TensorProto.BOOL), info("s", shape)],
    )
    nodes = [
        helper.make_node("Loop", ["n", "go"], ["y"], body=body),
        helper.make_node("ReduceSum", ["layer/x:0"], ["z"]),
    ]
    made = [held("one", np.ones(shape)), held("n", 2, "i8"), held("go", True, "?")]
    _, known = files.opened(saved(tmp_path, nodes, made, "y"), {"layer/x:0": X})
    assert known["y"] == Tensor.of(np.full((2, *shape), 2.0, "f4"))


def test_what_is_of_no_known_operators_is_no_program(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["layer/x:0"], ["y"])], [], "y")
    model = onnx.load(path)
    model.graph.node[0].domain = "nobody"
    onnx.save(model, path)
    with pytest.raises(InvalidTest):
        files.opened(path, {"layer/x:0": X})


def test_a_loop_is_made_of_what_its_body_computes_in_the_first_round(tmp_path: Path) -> None:
    program, known = files.opened(saved(tmp_path, *looped(), "layer/y:0"), {"layer/x:0": X})
    loop = program.instance(program.calls[-1], known)
    pieces = get("onnx").expanded(loop)  # type: ignore[attr-defined]
    assert [x.operators for x in pieces] == [("Add",), ("Identity",), ("Add", "Identity")]
    added = Tensor.of(np.array([2.0, 1.0, 4.0], "f4"))
    assert expected(pieces[0], tmp_path / "t") == [added]
    assert expected(pieces[-1], tmp_path / "u") == [Tensor.of(np.array(True)), added]


def test_a_constant_that_a_loop_takes_is_a_constant_within_it_too(tmp_path: Path) -> None:
    program, known = files.opened(saved(tmp_path, *looped(), "layer/y:0"), {"layer/x:0": X})
    loop = program.instance(program.calls[-1], known)
    fed = [x.operators for x in get("onnx").bodies(loop, ())]  # type: ignore[attr-defined]
    assert fed == [("Add",), ("Identity",), ("Add", "Identity")]
    held = get("onnx").bodies(loop, ("one",))  # type: ignore[attr-defined]
    assert [x.operators for x in held] == [
        ("Add",), ("Identity",), ("Constant", "Add"), ("Constant", "Add", "Identity"),
    ]  # fmt: skip
    assert [x.name for x in held[2].inputs] == ["v"]
    assert expected(held[2], tmp_path / "t") == [Tensor.of(np.array([2.0, 1.0, 4.0], "f4"))]
    made = [x.operators for x in pieces(get("onnx"), program)]
    assert ("Constant", "Add") in made, "what stands before the loop says what is a constant"


def test_a_state_that_begins_as_a_constant_is_one_in_the_first_round(tmp_path: Path) -> None:
    nodes, initializers = looped()
    nodes[-1].input[2] = "layer/begins"
    initializers.append(held("layer/begins", [1.0, 2.0, 3.0]))
    program, known = files.opened(saved(tmp_path, nodes, initializers, "layer/y:0"), {"layer/x:0": X})
    loop = program.instance(program.calls[-1], known)
    state = loop.inputs[2].name
    made = get("onnx").bodies(loop, (state,))  # type: ignore[attr-defined]
    assert [x.operators for x in made][2] == ("Constant", "Add")
    assert made[2].calls[0].params["value"] == Tensor.of(np.array([1.0, 2.0, 3.0], "f4"))


def test_a_call_is_the_node_that_defines_it_where_that_reads_less() -> None:
    context = {"opset": {"": 19}}
    target = Operand("target_type", Tensor.of(np.zeros(1, "u1"), "float8_e4m3fn"))
    like = Instance("onnx", "CastLike", {"saturate": 0}, (Operand("input", X), target), ("y",), context)
    [cast] = get("onnx").expanded(like)  # type: ignore[attr-defined]
    assert cast.operator == "Cast" and cast.params == {"to": 17, "saturate": 0}
    assert cast.inputs == (Operand("input", X),)
    bounds = [Operand("input", X), Operand("min", Tensor.of(np.float32(0)))]
    clip = Instance("onnx", "Clip", {}, tuple(bounds), ("y",), {"opset": {"": 13}})
    assert get("onnx").expanded(clip) == [], "Max is another operator of two tensors"  # type: ignore[attr-defined]
    nan = Instance("onnx", "IsNaN", {}, (Operand("X", X),), ("y",), {"opset": {"": 20}})
    assert get("onnx").expanded(nan) == []  # type: ignore[attr-defined]


def looping(v: tuple[int, ...], start: object, cond: object = True) -> Instance:
    """Return a loop of two rounds with a state declared of shape `v`, which nobody asks for, and what each round was given."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Neg", ["v"], ["w"])],
        "body",
        [info("i", (), TensorProto.INT64), info("c", None, TensorProto.BOOL), info("v", v)],
        [info("d", None, TensorProto.BOOL), info("w", v), info("v", v)],
    )
    given = {"M": np.array(2), "cond": np.array(cond), "v_initial": np.array(start, "f4")}
    operands = tuple(Operand(name, Tensor.of(x)) for name, x in given.items())
    params: dict[str, Value] = {"body": Message("onnx.GraphProto", body.SerializeToString())}
    return Instance("onnx", "Loop", params, operands, ("", "scanned"), {"opset": {"": 18}})


def wrapped(program: Instance, folder: Path) -> onnx.ModelProto:
    get("onnx").wrap(Captured(program, Provenance("t", "f", "t")), "t", folder)
    return onnx.load(folder / "model.onnx")


@pytest.mark.parametrize(
    ("v", "start", "cond", "why"),
    [
        ((), 1.0, True, ""),
        ((2,), [1.0, 2.0], True, ""),
        ((), [1.0], True, "declared"),
        ((1,), [1.0, 2.0], True, "declared"),
        ((), 1.0, [[True]], "no scalar"),
    ],
)
def test_what_flows_into_a_body_is_what_it_declares(
    v: tuple[int, ...], start: object, cond: object, why: str, tmp_path: Path
) -> None:
    """The evaluator alone runs it, and so would a reduction end there."""
    if not why:
        assert wrapped(looping(v, start, cond), tmp_path).graph.output[0].name == "scanned"
        return
    if why == "declared" and not references._tells_declared():
        pytest.skip("this onnx cannot tell")
    with pytest.raises(InvalidTest, match=why):
        wrapped(looping(v, start, cond), tmp_path)


def test_what_is_left_out_of_a_loops_outputs_has_a_name_and_what_is_optional_has_none(tmp_path: Path) -> None:
    [loop] = wrapped(looping((), 1.0), tmp_path).graph.node
    assert all(loop.output) and loop.output[1] == "scanned"
    x = Tensor.of(np.ones((1, 2), "f4"))
    norm = Instance(
        "onnx", "LayerNormalization", {}, (Operand("X", x), Operand("Scale", Tensor.of(np.ones(2, "f4")))),
        ("Y", "", "InvStdDev"), {"opset": {"": 17}},
    )  # fmt: skip
    [node] = wrapped(norm, tmp_path / "norm").graph.node
    assert list(node.output) == ["Y", "", "InvStdDev"]
