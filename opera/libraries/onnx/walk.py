"""The nodes of ONNX models, those of subgraphs included; needs nothing of onnx, which takes long to import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs that a node's attributes hold."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in graphs(node):
            yield from all_nodes(graph.node)
