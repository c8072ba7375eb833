"""Which operators a TensorFlow Lite model is of. Needs the package tflite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opera.compilers import LOWERED, Way

OPERATORS = Way("operators", LOWERED, "the operators of the TFLite model", "load")
PLUMBING = {"CAST", "CONCATENATION", "EXPAND_DIMS", "FILL", "PACK", "RESHAPE", "SHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE",
            "STRIDED_SLICE", "TRANSPOSE", "UNPACK"}  # fmt: skip
"""Operators that the TFLite converter puts around the one that matters."""

NONE = "NO_OPERATOR"
"""In place of an operator where a model has none: the converter has computed all of it, and what it returns is a constant
or an input."""


def nodes(path: Path) -> list[tuple[str, list[str]]]:
    """Return the operators of a model's main graph, in order (`CONV_2D`), each with the names of the tensors that it makes:
    runtimes call a node by its result.
    """
    import tflite

    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    graph, found = model.Subgraphs(0), list[tuple[str, list[str]]]()
    for node in map(graph.Operators, range(graph.OperatorsLength())):
        kind = model.OperatorCodes(node.OpcodeIndex())
        made = [
            graph.Tensors(node.Outputs(n)).Name().decode() for n in range(node.OutputsLength()) if node.Outputs(n) >= 0
        ]
        found.append((tflite.opcode2name(max(kind.BuiltinCode(), kind.DeprecatedBuiltinCode())), made))
    return found


def operators(path: Path) -> list[str]:
    """Return the names of the operators of a model's main graph, in order; NONE where there is none."""
    return [name for name, _ in nodes(path)] or [NONE]


def telling(codes: Iterable[str]) -> list[str]:
    """Return each of these operators once, without plumbing where there is anything else; NONE of no operators."""
    codes = list(dict.fromkeys(codes)) or [NONE]
    return [code for code in codes if code not in PLUMBING] or codes
