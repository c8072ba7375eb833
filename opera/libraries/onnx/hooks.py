"""Capture points of ONNX: node-test cases, nodes that the reference evaluator executes, and models that tests build.

`install` hooks the points of instrumentation/onnx.toml, by kind:

- `cases`: functions that append TestCases to a list of their module, as `expect()` of the node tests does;
- `evaluators`: classes like ReferenceEvaluator, whose nodes are seen with the concrete values they run on;
- `models`: functions that return a ModelProto, looked at when the test ends;
- `loads`: functions whose first argument is a ModelProto, such as a compiler's frontend.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

from opera.capture.recorder import LeftOut, Recorder, replace
from opera.capture.sites import Frames, Site
from opera.libraries.onnx import nodes
from opera.libraries.onnx.models import instances_of_model
from opera.programs.values import Message

_installed: list[Recorder] = []
_places: dict[bytes, Site] = {}
"""Node, serialised → its place in the model file that is run."""


def install(recorder: Recorder, points: dict[str, list[str]]) -> None:
    """Hook the points; see opera.capture.Capture."""
    _installed.append(recorder)
    for point in points.get("cases", ()):
        replace(point, functools.partial(_cases, recorder, importlib.import_module(point.partition(":")[0])))
    for point in points.get("evaluators", ()):
        replace(f"{point}.__init__", functools.partial(_evaluator, recorder))
    for point in points.get("models", ()):
        replace(point, functools.partial(_returned_model, recorder))
    for point in points.get("loads", ()):
        replace(point, functools.partial(_loaded_model, recorder))


def _cases(recorder: Recorder, module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Record every TestCase that one call of `expect` appends: the node itself, and its expanded bodies."""

    def expect(node_op: Any, *args: Any, **kwargs: Any) -> Any:
        before = len(module._NodeTestCases)
        try:
            with recorder.aside():
                return original(node_op, *args, **kwargs)
        finally:
            for case in module._NodeTestCases[before:]:
                recorder.observe(functools.partial(_case, recorder, node_op, case))

    return expect


def _case(recorder: Recorder, node: Any, case: Any) -> None:
    graph = case.model.graph
    opset = nodes.opset_of(case.model)
    single = len(graph.node) == 1 and (graph.node[0].domain, graph.node[0].op_type) == (node.domain, node.op_type)
    for inputs, outputs in case.data_sets:
        edges = {
            info.name: nodes.value(item, info.type) for info, item in zip(graph.input, inputs, strict=True)
        }  # fmt: skip
        expected = tuple(nodes.value(item, info.type) for info, item in zip(graph.output, outputs, strict=True))
        if single:
            instance = nodes.instance(graph.node[0], edges, opset)
        else:
            body = nodes.anonymous(graph, node.op_type)
            message = Message("onnx.GraphProto", body.SerializeToString(deterministic=True))
            instance = nodes.instance(node, edges, opset, body=message, nested=body.node)
        recorder.record(instance, test=case.name, expected=expected, rtol=case.rtol, atol=case.atol)


def _evaluator(recorder: Recorder, original: Callable[..., None]) -> Callable[..., None]:
    """Let every node that an evaluator prepares report the inputs it is run on.

    The evaluators of subgraphs and function bodies are made by the same class, so their nodes report too.
    """

    def prepare(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        recorder.observe(functools.partial(_executed_model, recorder, self))
        for node in getattr(self, "rt_nodes_", ()):
            if not hasattr(node.run, "__wrapped__"):
                node.run = _executed_node(recorder, node)

    return prepare


def _executed_model(recorder: Recorder, evaluator: Any) -> None:
    """A model that is executed shows its nodes with real inputs, so that none need be made up for it."""
    recorder.calls -= 1  # preparing is no call of an operator
    if hasattr(evaluator.proto_, "opset_import") and hasattr(evaluator.proto_, "graph"):
        recorder.keys.add(evaluator.proto_.SerializeToString(deterministic=True))


def _executed_node(recorder: Recorder, node: Any) -> Callable[..., Any]:
    original, seen = node.run, set()

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        def look() -> None:
            key = tuple(nodes.sketch(item) for item in args)
            if key not in seen:  # a loop runs a node thousands of times
                seen.add(key)
                _execution(recorder, node, args, kwargs.get("context") or {})

        recorder.observe(look)
        return original(*args, **kwargs)

    return run


def _execution(recorder: Recorder, node: Any, args: tuple[Any, ...], context: dict[str, Any]) -> None:
    proto = node.onnx_node
    opset = {nodes.domain(name): version for name, version in node.run_params["opsets"].items()}
    edges = {name: nodes.evaluated(item) for name, item in zip(proto.input, args, strict=False) if name}
    for name in nodes.outer_names(proto):
        if name in context:
            edges[name] = nodes.evaluated(context[name])
    instance = nodes.instance(proto, edges, opset)
    recorder.keys.add(nodes.specification(instance))
    key = nodes.specification(instance, values=True)
    _came(recorder, key, proto)
    if key not in recorder.keys:
        recorder.keys.add(key)
        recorder.record(nodes.compact(instance), key=key)


def _came(recorder: Recorder, key: bytes, node: Any) -> None:
    """Note the line that runs or loads a model, and the node in it."""
    if recorder.sited:
        name = node.name or next(filter(None, node.output), "")
        site = _places.get(node.SerializeToString(deterministic=True)) or _frames().site(sys._getframe(1), name)
        recorder.came(key, site, lambda: site)


def come_from(path: str, model: Any) -> None:
    """Note that the nodes of a model are those of a file: its lines are its nodes, counted from 1."""
    for number, node in enumerate(model.graph.node, 1):
        text = f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})"
        _places[node.SerializeToString(deterministic=True)] = Site(path, number, text, node.name)


def take_apart(model: Any) -> None:
    """Record every node of a model that cannot be run, as far as its inputs can be made up."""
    for recorder in _installed:
        recorder.observe(functools.partial(_model, recorder, model, anew=True))


@functools.cache
def _frames() -> Frames:
    return Frames((str(Path(onnx.__file__).parent),))


def _returned_model(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    def build(*args: Any, **kwargs: Any) -> Any:
        model = original(*args, **kwargs)
        recorder.defer(functools.partial(_model, recorder, model))
        return model

    return build


def _loaded_model(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    def load(model: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.observe(functools.partial(_model, recorder, model))
        return original(model, *args, **kwargs)

    return load


def _model(recorder: Recorder, model: Any, *, anew: bool = False) -> None:
    """Record every node of a model whose inputs are known or can be made up; `anew` one too that was seen executed."""
    raw = model.SerializeToString(deterministic=True)
    if raw in recorder.keys and not anew:
        return
    recorder.keys.add(raw)
    for place, found in enumerate(instances_of_model(model)):
        if isinstance(found, LeftOut):
            recorder.left_out[str(found)] += 1
            continue
        rough, exact = nodes.specification(found), nodes.specification(found, values=True)
        _came(recorder, exact, model.graph.node[place])
        if rough not in recorder.keys and exact not in recorder.keys:
            recorder.keys.add(exact)
            recorder.record(nodes.compact(found), key=exact)
