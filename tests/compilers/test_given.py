"""Another way to give a compiler the same model: it is right where the way that opera goes fails."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opera import compilers
from opera.compilers import GIVEN, Case
from opera.compilers.shared.packing import Refusal
from opera.programs.values import Tensor


def scalar(name: str, dtype: int = TensorProto.FLOAT, shape: tuple[int, ...] = ()) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def hands_through() -> onnx.GraphProto:
    """Return a loop whose body hands an input through unchanged: OpenVINO's reader of paths counts that twice."""
    ins = [scalar("i", TensorProto.INT64), scalar("cond", TensorProto.BOOL), scalar("s"), scalar("one")]
    nodes = [helper.make_node("Identity", ["cond"], ["again"]), helper.make_node("Add", ["s", "one"], ["sum"])]
    body = helper.make_graph(nodes, "body", ins, [scalar("again", TensorProto.BOOL), scalar("sum"), scalar("one")])
    loop = helper.make_node("Loop", ["trips", "", "x", "y"], ["last", "kept"], body=body)
    trips = helper.make_tensor("trips", TensorProto.INT64, [], [3])
    return helper.make_graph([loop], "g", [scalar("x"), scalar("y")], [scalar("last"), scalar("kept")], [trips])


def expanded() -> onnx.GraphProto:
    """Return a quotient by what is expanded to a constant shape: as a parameter of the module, TVM does not know that shape."""
    nodes = [helper.make_node("Expand", ["y", "shape"], ["wide"]), helper.make_node("Div", ["x", "wide"], ["out"])]
    ins = [scalar("x", shape=(2,)), scalar("y", shape=(1,))]
    shape = helper.make_tensor("shape", TensorProto.INT64, [1], [2])
    return helper.make_graph(nodes, "g", ins, [scalar("out", shape=(2,))], [shape])


def empty() -> onnx.GraphProto:
    """Return a product of nothing and a constant of nothing: TVM takes an input's length of 0 for one that is not known."""
    nothing = helper.make_tensor("nothing", TensorProto.FLOAT, [0], [])
    nodes = [helper.make_node("Constant", [], ["k"], value=nothing), helper.make_node("Mul", ["k", "x"], ["out"])]
    return helper.make_graph(nodes, "g", [scalar("x", shape=(0,))], [scalar("out", shape=(0,))])


@pytest.mark.parametrize(
    ("compiler", "told", "graph", "feeds", "wanted"),
    [
        ("openvino", "", hands_through(), (1.0, 2.0), [7.0, 2.0]),
        ("tvm", "without keep_params_in_input", expanded(), ([2.0, 4.0], [2.0]), [[1.0, 2.0]]),
        ("tvm", "with shape_dict", empty(), ([],), [[]]),
    ],
)
def test_it_is_right_in_the_other_way_alone(compiler, told, graph, feeds, wanted, tmp_path: Path) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path, frontend = tmp_path / "model.onnx", compilers.frontend(compiler, "onnx")
    path.write_bytes(model.SerializeToString())
    named = dict(zip("xy"[: len(feeds)], (Tensor.of(np.float32(x)) for x in feeds), strict=True))
    ways = [x for x in compilers.ways(frontend) if x.kind == GIVEN]
    assert compilers.given(compiler, "onnx") == {x.about: x.told for x in ways}
    [way] = (x for x in ways if x.told[1] == told or not told)
    for name in ("", way.name):
        case = Case("onnx", "x", path, named, tuple(x.name for x in graph.output), artefact="onnx", way=name)
        if name:
            found = frontend.infer(frontend.compile(frontend.load(case), case), case)
            assert [x.array().tolist() for x in found] == wanted
        else:
            with pytest.raises(RuntimeError):
                frontend.compile(frontend.load(case), case)


def test_shapes_without_a_0_are_not_given_again(tmp_path: Path) -> None:
    path, frontend = tmp_path / "model.onnx", compilers.frontend("tvm", "onnx")
    model = helper.make_model(expanded(), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(Refusal, match="no input has an axis of length 0"):
        frontend.load(Case("onnx", "x", path, {}, ("out",), artefact="onnx", way="shaped"))


def test_it_is_asked_of_what_can_be_given_so_alone() -> None:
    for name in ("openvino-torch", "openvino-keras", "tvm-torch", "tvm-keras"):
        compiler, _, library = name.rpartition("-")
        frontend = compilers.frontend(compiler, library)
        found = [x for x in compilers.ways(frontend) if x.kind == GIVEN]
        asked = [[x.name for x in frontend.VARIANTS if x.artefact in way.artefacts] for way in found]
        own = {"openvino-torch": [["onnx"], ["exported-program", "torchscript"]], "openvino-keras": [["onnx"]]}
        assert asked == own.get(name, [["onnx"], ["onnx"]])
    assert compilers.given("gone", "onnx") == {}
