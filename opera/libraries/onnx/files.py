"""The program of a model file: what an exporter wrote, node by node, with what each of them returns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_selected_functions

from opera.capture.recorder import LeftOut
from opera.errors import InvalidTest
from opera.libraries.onnx import nodes, references, wrap
from opera.libraries.onnx.codec import from_tensor_proto, materialise, parse, tensor_proto, type_proto
from opera.libraries.pieces import run, with_constants
from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program
from opera.programs.values import Message, Tensor, Value

NAME, BODY = "onnx", "onnx.GraphProto"
LONG = 24
"""Characters of a name that tells nothing but where it was made."""
COUNTED = re.compile(r"(?<=\w)(?:__\d+)?(?::\d+)?$")
"""What TensorFlow's exporter adds to names to tell them apart."""


def opened(model: Path, feeds: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
    """Return the program of a model file, and what each of its calls returns by the reference evaluator, by name.

    What the file holds as initializers is made by `Constant`, before what first reads it; what no output hangs on is left out.

    Args:
        feeds: Values of the inputs, by name.

    Raises InvalidTest where the evaluator cannot run it, or where it is no program of ONNX's own operators.
    """
    loaded = onnx.load(model)
    if loaded.functions:
        raise InvalidTest("the model has functions of its own")
    held = {item.name for item in loaded.graph.initializer}
    given = {item.name: materialise(feeds[item.name]) for item in loaded.graph.input if item.name not in held}
    named = _short_names()
    given = {named(name): value for name, value in given.items()}
    nodes.rename(loaded.graph, named)
    _loosen(loaded.graph)
    return _program(loaded, given)


def bodies(call: Instance, held: Collection[str] = ()) -> list[Program]:
    """Return the nodes of the bodies of a `Loop` or an `If`, each with what it is given, in a loop's first round, and with the
    constants that it reads as constants; then each body as a whole. A body that the evaluator cannot run is left out.

    Args:
        held: Names of inputs of the call that are constants.
    """
    found: list[Program] = []
    captured: Any = call.context.get("captured") or ()
    states = [x for x in call.inputs if x.name not in captured][2:]
    first = [Operand("", Tensor.of(np.array(0, "int64"))), Operand("", Tensor.of(np.array(True))), *states]
    outer = {x.name: x for x in call.inputs if x.name in captured}
    for graph in map(parse, (x for x in call.params.values() if isinstance(x, Message) and x.type == BODY)):
        taken = dict(zip((x.name for x in graph.input), first if call.operator == "Loop" else [], strict=False)) | outer
        values = {name: materialise(x.value) for name, x in taken.items() if x.value is not None}
        constant = {name for name in values if taken[name].name in held and isinstance(values[name], Tensor)}
        versions: Any = call.context.get("opset", {})
        imports = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        model.graph.ClearField("input")
        for name, value in values.items():
            if name in constant:
                model.graph.initializer.append(tensor_proto(value, name))
            else:
                model.graph.input.add(name=name, type=type_proto(value))
        with suppress(InvalidTest):
            program, known = _program(model, {name: x for name, x in values.items() if name not in constant})
            called = [x for x in program.calls if x.inputs]
            found += [program.instance(x, known) for x in called]
            parts = (with_constants(program, [x]) for x in called)
            found += [run(program, part, known) for part in parts if 1 < len(part) < len(program.calls)]
            found += [program] if len(program.calls) > 1 else []
    return found


def defined(call: Instance) -> list[Program]:
    """Return the node that ONNX defines a call by, if it is one and reads not all of the inputs: `Cast` of `CastLike`."""
    opset: Any = call.context.get("opset") or {}
    if "::" in call.operator or sum(x.value is not None for x in call.inputs) < 2:
        return []
    with suppress(onnx.defs.SchemaError, InvalidTest, LeftOut, RuntimeError):
        schema = onnx.defs.get_schema(call.operator, opset.get("", 0), "")
        if schema.has_function or schema.has_context_dependent_function:
            made = wrap.parts(call)
            whole = wrap.inferred(call, made)
            written = inline_selected_functions(whole, [("", call.operator)], inline_schema_functions=True)
            node, *more = written.graph.node
            if not more and node.op_type != call.operator and not set(made.inputs) <= set(node.input):
                return [nodes.instance(node, dict(zip(made.inputs, made.values, strict=True)), opset)]
    return []


def _program(model: Any, given: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
    """Return what `opened` does, of a model that it may change. Raises InvalidTest."""
    outputs = tuple(x.name for x in model.graph.output)
    _hold(model.graph)
    known = dict(given) | _computed(model, dict(given))
    calls, opset = [], nodes.opset_of(model)
    try:
        for node in model.graph.node:
            found = nodes.instance(node, known, opset)
            read = [*node.input, *found.context.get("captured", ())]
            taken = tuple(Argument(x.name, of) for x, of in zip(found.inputs, read, strict=True))
            calls.append(Call(found.operator, found.params, taken, tuple(node.output), found.context))
    except LeftOut as error:
        raise InvalidTest(str(error)) from None
    used = {x.of for call in calls for x in call.inputs}
    operands = tuple(Operand(name, value) for name, value in given.items() if name in used)
    made = {name for call in calls for name in call.outputs}
    return Graph(NAME, operands, tuple(calls), tuple(x for x in outputs if x in made)), known


def _short_names() -> Callable[[str], str]:
    """Return what gives names short ones that are identifiers, each its own: `functional_1/layer/Max__12:0` is `Max`."""
    found: dict[str, str] = {"": ""}
    taken: set[str] = set()

    def named(old: str) -> str:
        if old not in found:
            base = re.sub(r"\W+", "_", COUNTED.sub("", old.rpartition("/")[2])).strip("_") or "x"
            base = "value" if len(base) > LONG or base[0].isdigit() else base
            numbers = (f"{base}_{number}" for number in itertools.count(2))
            found[old] = next(x for x in itertools.chain([base], numbers) if x not in taken)
            taken.add(found[old])
        return found[old]

    return named


def _loosen(graph: Any) -> None:
    """Leave shapes and names of subgraphs out, and what an exporter remarks on nodes, which is longer than they are: a smaller
    program has other shapes, and need not state any.
    """
    graph.ClearField("metadata_props")
    for node in graph.node:
        node.ClearField("metadata_props")
        for attr in node.attribute:
            for inner in (*attr.graphs, *([attr.g] if attr.HasField("g") else [])):
                inner.name = attr.name
                inner.ClearField("value_info")
                for item in (*inner.input, *inner.output):
                    item.ClearField("metadata_props")
                    if item.type.tensor_type.shape.dim:  # a condition is, and stays, a scalar
                        item.type.tensor_type.ClearField("shape")
                _loosen(inner)


def _constant(name: str, held: Any) -> Any:
    """Return the node that makes what an initializer holds."""
    return onnx.helper.make_node("Constant", [], [name], value=tensor_proto(from_tensor_proto(held)))


def _hold(graph: Any) -> None:
    """Make initializers by nodes, and leave out what no output hangs on."""
    tensors = {item.name: item for item in graph.initializer}
    needed, kept = {x.name for x in graph.output}, list[Any]()
    for node in reversed(graph.node):
        if needed & set(filter(None, node.output)):
            kept.append(node)
            needed |= {*node.input, *nodes.outer_names(node)}
    made = list[Any]()
    for node in reversed(kept):
        for name in (*node.input, *nodes.outer_names(node)):
            if name in tensors:
                made.append(_constant(name, tensors.pop(name)))
        made.append(onnx.NodeProto.FromString(node.SerializeToString()))
    for name in (x.name for x in graph.output if x.name in tensors):  # what an exporter folded is returned as it is
        made.append(_constant(name, tensors.pop(name)))
    inputs = [x for x in graph.input if x.name not in {item.name for item in graph.initializer}]
    inputs = [onnx.ValueInfoProto.FromString(x.SerializeToString()) for x in inputs]
    for field in ("node", "initializer", "value_info", "input"):
        graph.ClearField(field)
    graph.node.extend(made)
    graph.input.extend(inputs)


def _computed(model: Any, given: dict[str, Value]) -> dict[str, Value]:
    """Return what each node of a model returns."""
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    names = list(dict.fromkeys(name for node in whole.graph.node for name in node.output if name))
    whole.graph.ClearField("output")
    for name in names:
        whole.graph.output.add(name=name)
    try:
        whole = onnx.shape_inference.infer_shapes(whole, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise InvalidTest(f"ONNX's type inference rejects it: {error}") from None
    return dict(zip(names, references.evaluate(whole, given), strict=True))
