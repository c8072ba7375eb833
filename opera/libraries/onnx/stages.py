"""In which dtype an operator is said to compute, whatever its inputs are of: nobody is wrong by what that rounds.

GroupNormalization, LayerNormalization and RMSNormalization compute the first stage in what `stash_type` says, which is float32
unless it is given; Attention its softmax in `softmax_precision`, and QuantizeLinear its quotient in `precision`
(https://onnx.ai/onnx/operators/). Range has a `stash_type` as well, "no effect" on what is wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opera.libraries.onnx.codec import DTYPES
from opera.oracle import comparison

STATED = ("stash_type", "softmax_precision", "precision")
"""Attributes that name the dtype of a stage; 0 is none."""
WITHOUT_EFFECT = ("Range",)


def granted(
    nodes: Iterable[Any], versions: Mapping[str, int], rtol: float | None, atol: float | None
) -> tuple[float | None, float | None]:
    """Return the tolerance of a test whose model has these nodes: its own, or that of a stage's dtype where that is more."""
    for dtype in sorted({x for node in nodes for x in _stated(node, versions)}):
        rtol, atol = comparison.tolerance(dtype, rtol, atol)
    return rtol, atol


def _stated(node: Any, versions: Mapping[str, int]) -> list[str]:
    """Return the dtypes that a node's attributes, or their defaults, name for a stage of it."""
    import onnx

    version = versions.get(node.domain, 0)
    if node.op_type in WITHOUT_EFFECT or not onnx.defs.has(node.op_type, version, node.domain):
        return []
    attributes = onnx.defs.get_schema(node.op_type, version, node.domain).attributes
    stated = {name: attributes[name].default_value.i for name in STATED if name in attributes}
    stated |= {x.name: x.i for x in node.attribute if x.name in stated}
    return [DTYPES[x] for x in stated.values() if x in DTYPES]
