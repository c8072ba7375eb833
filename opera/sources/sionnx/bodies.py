"""Bodies of control-flow operators: a few small graphs, which specifications name: `graph("loop", ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opera.errors import SourceError, near
from opera.sources.sionnx.scene import Scene


def graph(scene: Scene, name: str, *args: Any) -> bytes:
    """Return a serialized GraphProto. Raises SourceError for an unknown name."""
    if name not in BODIES:
        raise SourceError(f"{scene.spec.file}: there is no body {name!r}", cause=near(name, BODIES))
    data: bytes = BODIES[name](*args).SerializeToString(deterministic=True)
    return data


def _info(name: str, dtype: str, shape: list[int] | None) -> Any:
    from onnx import helper

    from opera.libraries.onnx.codec import ELEMENT_TYPES

    return helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], shape)


def _outer(name: str, operator: str, dtype: str, shape: list[int]) -> Any:
    """A body without inputs (of If): a constant of zeros, through an operator of one input."""
    from onnx import helper

    from opera.libraries.onnx.codec import ELEMENT_TYPES

    value = helper.make_tensor("value", ELEMENT_TYPES[dtype], shape, _zeros(dtype, shape))
    nodes = [
        helper.make_node("Constant", [], [f"{name}_c"], value=value),
        helper.make_node(operator, [f"{name}_c"], [name]),
    ]
    return helper.make_graph(nodes, f"{name}_body", [], [_info(name, dtype, shape)])


def _zeros(dtype: str, shape: list[int]) -> list[Any]:
    count = 1
    for size in shape:
        count *= size
    return [b"x"] * count if dtype == "string" else [1] * count


def _loop(operator: str, dtype: str, shape: list[int], scans: int) -> Any:
    """A body of Loop: the state through an operator, the condition kept, the state as it was given out as scans."""
    from onnx import helper

    nodes = [helper.make_node("Identity", ["cond_in"], ["cond_out"]), helper.make_node(operator, ["v_in"], ["v_out"])]
    nodes += [helper.make_node("Identity", ["v_in"], [f"scan_{place}"]) for place in range(scans)]
    inputs = [_info("iteration", "int64", []), _info("cond_in", "bool", []), _info("v_in", dtype, shape)]
    outputs = [_info("cond_out", "bool", []), _info("v_out", dtype, shape)]
    outputs += [_info(f"scan_{place}", dtype, shape) for place in range(scans)]
    return helper.make_graph(nodes, "loop_body", inputs, outputs)


def _scan(operator: str, dtype: str, shape: list[int]) -> Any:
    """A body of Scan: state and slice through a binary operator, which is the next state and what is given out."""
    from onnx import helper

    nodes = [helper.make_node(operator, ["state", "slice"], ["next"]), helper.make_node("Identity", ["next"], ["out"])]
    inputs = [_info("state", dtype, shape), _info("slice", dtype, shape)]
    return helper.make_graph(nodes, "scan_body", inputs, [_info("next", dtype, shape), _info("out", dtype, shape)])


def _mapped(operator: str, dtype: str) -> Any:
    """A body of SequenceMap: each item through an operator."""
    from onnx import helper

    node = helper.make_node(operator, ["item"], ["mapped"])
    return helper.make_graph([node], "map_body", [_info("item", dtype, None)], [_info("mapped", dtype, None)])


BODIES: dict[str, Callable[..., Any]] = {"branch": _outer, "loop": _loop, "scan": _scan, "map": _mapped}
