"""Which operators a TensorFlow Lite model is of. Needs the package tflite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PLUMBING = {"CAST", "CONCATENATION", "EXPAND_DIMS", "FILL", "PACK", "RESHAPE", "SHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE",
            "STRIDED_SLICE", "TRANSPOSE", "UNPACK"}  # fmt: skip
"""Operators that the TFLite converter puts around the one that matters."""


def operators(path: Path) -> list[str]:
    """Return the names of the operators of a model's main graph, in order (`CONV_2D`)."""
    import tflite

    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    graph = model.Subgraphs(0)
    kinds = [model.OperatorCodes(graph.Operators(place).OpcodeIndex()) for place in range(graph.OperatorsLength())]
    return [tflite.opcode2name(max(kind.BuiltinCode(), kind.DeprecatedBuiltinCode())) for kind in kinds]


def results(path: Path) -> dict[str, str]:
    """Return name of a tensor → name of the operator of the main graph that makes it: runtimes call nodes by their results."""
    import tflite

    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    graph, found = model.Subgraphs(0), dict[str, str]()
    for place, name in enumerate(operators(path)):
        made = graph.Operators(place).OutputsAsNumpy()
        found |= {graph.Tensors(x).Name().decode(): name for x in made if x >= 0}
    return found


def telling(codes: Iterable[str]) -> list[str]:
    """Return each of these operators once, without plumbing where there is anything else."""
    codes = list(dict.fromkeys(codes))
    return [code for code in codes if code not in PLUMBING] or codes
