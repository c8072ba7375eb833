"""Another way to give a compiler the same model: it is right where the way that opera goes fails."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opera import compilers
from opera.compilers import GIVEN, Case
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


@pytest.mark.parametrize(
    ("compiler", "graph", "feeds", "wanted"),
    [
        ("openvino", hands_through(), (1.0, 2.0), [7.0, 2.0]),
        ("tvm", expanded(), ([2.0, 4.0], [2.0]), [[1.0, 2.0]]),
    ],
)
def test_it_is_right_in_the_other_way_alone(compiler, graph, feeds, wanted, tmp_path: Path) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path, frontend = tmp_path / "model.onnx", compilers.frontend(compiler, "onnx")
    path.write_bytes(model.SerializeToString())
    named = dict(zip("xy", (Tensor.of(np.float32(x)) for x in feeds), strict=True))
    [way] = (x for x in compilers.ways(frontend) if x.kind == GIVEN)
    assert compilers.given(compiler, "onnx") == {way.about: way.told}
    for name in ("", way.name):
        case = Case("onnx", "x", path, named, tuple(x.name for x in graph.output), artefact="onnx", way=name)
        if name:
            found = frontend.infer(frontend.compile(frontend.load(case), case), case)
            assert [x.array().tolist() for x in found] == wanted
        else:
            with pytest.raises(RuntimeError):
                frontend.compile(frontend.load(case), case)


def test_it_is_asked_of_what_can_be_given_so_alone() -> None:
    for name in ("openvino-torch", "openvino-keras", "tvm-torch", "tvm-keras"):
        compiler, _, library = name.rpartition("-")
        frontend = compilers.frontend(compiler, library)
        found = [x for x in compilers.ways(frontend) if x.kind == GIVEN]
        asked = [[x.name for x in frontend.VARIANTS if x.artefact in way.artefacts] for way in found]
        assert asked == ([["onnx"], ["exported-program"]] if name == "openvino-torch" else [["onnx"]])
    assert compilers.given("gone", "onnx") == {}
