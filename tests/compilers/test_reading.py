"""What TVM's converters never read, by their source: of functions written here, and of TVM's own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx, onnx_frontend

from opera.compilers.tvm import interpreter, reading
from opera.compilers.tvm.onnx import _sources
from opera.compilers.tvm.reading import NAMED, NODE, PLACED, Given


class Converter:
    def retrieve_args(self, node: Any) -> Any: ...

    @classmethod
    def plain(cls, inputs: Any, attr: Any) -> Any:
        assert "b" not in attr
        return attr["a"], attr.get("c", 1), inputs[0], len(inputs)

    @classmethod
    def inherited(cls, inputs: Any, attr: Any) -> Any:
        return cls.plain(inputs, attr=attr)

    @classmethod
    def again(cls, inputs: Any, attr: Any) -> Any:
        return cls.again(inputs, attr) if attr["a"] else inputs[1]

    def written(self, inputs: Any, attr: Any) -> Any:
        attr["a"] = inputs[2]

    def sliced(self, inputs: Any, attr: Any) -> Any:
        return inputs[1:], inputs[-1], attr

    def handed(self, inputs: Any, attr: Any) -> Any:
        return dict(attr), [*inputs]

    def of_node(self, node: Any) -> Any:
        args = self.retrieve_args(node)
        return args[0], node.kwargs

    def of_args(self, node: Any) -> Any:
        args = node.args
        x = node.args[0]
        return args[1] if len(args) > 1 else node.kwargs.get("b", x)

    def unpacked(self, node: Any) -> Any:
        x, _ = node.args
        return x

    lambda_ = lambda self, node: node.args[0]  # noqa: E731


EVERY = {"a", "b", "c", "input 0", "input 1", "input 2"}


@pytest.mark.parametrize(
    ("function", "unread"),
    [
        (Converter.plain, {"input 1", "input 2"}),
        (Converter.inherited, {"input 1", "input 2"}),
        (functools.partial(Converter.inherited, inputs=1), {"input 1", "input 2"}),
        (Converter.again, {"b", "c", "input 0", "input 2"}),
        (Converter().written, {"a", "b", "c", "input 0", "input 1"}),
        (Converter().sliced, set()),
        (Converter().handed, set()),
    ],
)
def test_what_goes_where_nobody_sees_it_is_not_told(
    function: Any, unread: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PACKAGE", __name__)
    given = {
        "attr": Given(NAMED, {x: frozenset({x}) for x in "abc"}),
        "inputs": Given(PLACED, {f"input {n}": frozenset({n}) for n in range(3)}),
    }
    told = reading.told("f", function, given)
    assert told.startswith("test_reading.py:")
    assert set(told.partition(" never reads ")[2].split(", ")) - {""} == unread


def test_an_argument_of_a_node_is_read_by_place_or_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PACKAGE", __name__)
    given = {"node": Given(NODE, {x: frozenset({x, n}) for n, x in enumerate("abc")})}
    told = {
        name: reading.told(name, getattr(Converter(), name), given).partition(" never reads ")[2]
        for name in ("of_node", "of_args", "unpacked", "lambda_")
    }
    assert told == {"of_node": "", "of_args": "c", "unpacked": "", "lambda_": "b, c"}


@pytest.mark.parametrize(
    ("operator", "shape", "required", "name", "value"),
    [
        ("SpaceToDepth", [1, 1, 2, 2], {"blocksize": 2}, "mode", "CRD"),
        ("IsInf", [2], {}, "detect_negative", 0),
        ("Resize", [1, 1, 4], {"mode": "linear"}, "antialias", 1),
        ("DepthToSpace", [1, 8, 1, 1], {"blocksize": 2}, "mode", "CRD"),
        ("LeakyRelu", [2], {}, "alpha", 0.5),
        ("Resize", [1, 1, 4], {}, "mode", "linear"),
        ("Mod", [2], {}, "fmod", 1),
    ],
)
def test_what_is_never_read_is_what_changes_nothing_of_the_module(
    operator: str, shape: list[int], required: dict[str, Any], name: str, value: Any
) -> None:
    version = 28 if operator == "SpaceToDepth" else 19
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [3], [1, 1, 0.5])
    inputs = {"Resize": ["x", "", "scales"], "Mod": ["x", "x"]}.get(operator, ["x"])

    def digest(**attributes: Any) -> str:
        kind = TensorProto.BOOL if operator == "IsInf" else TensorProto.FLOAT
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph([helper.make_node(operator, inputs, ["y"], **attributes)], "g", [x], [y], [scales])
        return interpreter.digest(from_onnx(helper.make_model(graph), opset=version))

    function = onnx_frontend._get_convert_map()[operator].get_converter(version)
    told = reading.told(function.__qualname__, function, {"attr": Given(NAMED, {name: frozenset({name})})})
    assert f" {function.__qualname__}" in told
    assert told.endswith(f" never reads {name}") == (digest(**required) == digest(**required | {name: value}))


def test_an_input_that_is_read_as_a_constant_alone_is_dropped_where_it_is_fed(tmp_path: Path) -> None:
    fed = {
        "boxes": (TensorProto.FLOAT, [1, 1, 4]),
        "scores": (TensorProto.FLOAT, [1, 1, 1]),
        "most": (TensorProto.INT64, [1]),
    }
    given = [helper.make_tensor_value_info(name, *kind) for name, kind in fed.items()]
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])
    for constant in (False, True):
        kept = [helper.make_tensor("most", TensorProto.INT64, [1], [1])] if constant else []
        node = helper.make_node("NonMaxSuppression", [*fed], ["y"])
        graph = helper.make_graph([node], "g", given[: 2 if constant else 3], [result], kept)
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8), tmp_path / "m.onnx"
        )
        [line] = _sources(str(tmp_path / "m.onnx"))
        assert line.endswith(" makes nothing of input max_output_boxes_per_class") is not constant, line
