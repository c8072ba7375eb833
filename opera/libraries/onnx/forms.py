"""Other forms of constants, and of what the bodies of If, Loop and Scan say: each lacks one peculiarity, and computes the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np

from opera.errors import InvalidTest
from opera.libraries import Form
from opera.libraries.onnx import codec, opsets
from opera.libraries.onnx import nodes as onnx_nodes
from opera.programs.program import Argument, Call, Graph, Instance, Program
from opera.programs.values import Message, Optional, Sequence, Tensor, Value

BODY = "onnx.GraphProto"
OUTSIDE, COMPUTED = "a value from outside its {}", "a value from outside its {} that is computed or fed"
UNTYPED, HANDED = "an input of its {} of no stated type", "a value that its {} hands through"
ABSENT = "an empty Optional in its {}"
SPELT = "{} in place of value"
NUMBERS = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
"""Attributes of `Constant` that hold numbers → the dtype that these are of."""
Change = Callable[[Instance, Any], bool]
"""Changes a body of a call; returns whether there was anything to change."""


def forms(program: Program) -> Iterator[Form]:
    """Yield what is peculiar about the bodies of calls, and how constants are written, and the program without it.

    A value that a body takes from outside is a constant there, or within; inputs have types; what is handed through goes by way
    of an `Identity`. An `Optional` without a value gets one, which is the only change of what is computed.
    """
    if isinstance(program, Instance):
        yield from _of_call(program)
        return
    for place, call in enumerate(program.instances()):
        for x in _of_call(call):
            yield Form(x.says, partial(_in_place, program, place, x), x.one_of)


def _in_place(program: Graph, place: int, form: Form) -> list[Program]:
    """Return a program with another form of one of its calls, where that is one call itself."""
    made, old = list[Program](), program.calls[place]
    for x in form.others():
        if isinstance(x, Instance):
            left = {y.name for y in x.inputs}
            inputs = tuple(y for y in old.inputs if y.name in left)
            calls = list(program.calls)
            calls[place] = msgspec.structs.replace(old, params=x.params, inputs=inputs, context=x.context)
            used = {y.of for call in calls for y in call.inputs}
            given = tuple(y for y in program.inputs if y.name in used)
            made.append(msgspec.structs.replace(program, inputs=given, calls=tuple(calls)))
    return made


def _of_call(call: Instance) -> Iterator[Form]:
    graphs = {name: codec.parse(x) for name, x in call.params.items() if isinstance(x, Message) and x.type == BODY}
    taken = call.context.get("captured") or ()
    held = {x.name: x.value for x in call.inputs if x.name in taken and isinstance(x.value, Tensor)} if graphs else {}
    of = "branches" if call.operator == "If" else "body"
    if held:
        yield Form(COMPUTED.format(of), partial(_outer_constants, call, held), OUTSIDE)
        yield Form(OUTSIDE.format(of), partial(_changed, call, partial(_hold, held=held), tuple(held)), OUTSIDE)
    for name, dtype in NUMBERS.items() if call.operator == "Constant" else ():
        if name in call.params:
            value = Tensor.of(np.asarray(call.params[name], dtype))
            yield Form(SPELT.format(name), partial(_with_value, call, value))
    for says, change in ((UNTYPED, _type), (HANDED, _identity), (ABSENT, _fill)):
        if any(change(call, _copy(x)) for x in graphs.values()):
            yield Form(says.format(of), partial(_changed, call, change))


def _with_value(call: Instance, value: Tensor) -> list[Program]:
    return [msgspec.structs.replace(call, params={"value": value})]


def _copy(graph: Any) -> Any:
    made = type(graph)()
    made.CopyFrom(graph)
    return made


def _changed(call: Instance, change: Change, gone: tuple[str, ...] = ()) -> list[Program]:
    """Return the call with all bodies changed, without inputs of these names."""
    params = dict(call.params)
    for name, value in call.params.items():
        if isinstance(value, Message) and value.type == BODY:
            graph = codec.parse(value)
            change(call, graph)
            params[name] = Message(BODY, graph.SerializeToString(deterministic=True))
    context: dict[str, Value] = dict(call.context)
    if left := [x for x in context.pop("captured", None) or () if x not in gone]:
        context["captured"] = left
    inputs = tuple(x for x in call.inputs if x.name not in gone)
    return [msgspec.structs.replace(call, params=params, inputs=inputs, context=context)]


def _outer_constants(call: Instance, held: dict[str, Tensor]) -> list[Program]:
    """Return the call after nodes that make these inputs."""
    names = [x.name for x in call.inputs]
    if len(set(names)) < len(names) or set(names) & set(call.outputs):
        return []
    opset = {"opset": call.context.get("opset")}
    made = [Call("Constant", {"value": value}, (), (name,), opset) for name, value in held.items()]
    arguments = tuple(Argument(x.name, "" if x.value is None else x.name) for x in call.inputs)
    last = Call(call.operator, call.params, arguments, call.outputs, call.context)
    given = tuple(x for x in call.inputs if x.name not in held and x.value is not None)
    return [opsets.with_constants(Graph(call.library, given, (*made, last), tuple(filter(None, call.outputs))))]


def _hold(call: Instance, graph: Any, held: dict[str, Tensor]) -> bool:
    """Begin a body with constants that it takes from outside."""
    from onnx import helper

    read = {x.name for x in graph.output} | {x for y in graph.node for x in (*y.input, *onnx_nodes.outer_names(y))}
    given = [x for x in held if x in read]
    made = [helper.make_node("Constant", [], [x], value=codec.tensor_proto(held[x], x)) for x in given]
    _put(graph, [*made, *graph.node])
    return bool(given)


def _type(call: Instance, graph: Any) -> bool:
    """State the types of a body's inputs: those of what the call is given, and of a loop's count and condition."""
    captured = call.context.get("captured") or ()
    given = [x.value for x in call.inputs if x.name not in captured]
    if call.operator == "Loop":
        given = [Tensor.of(np.int64(0)), Tensor.of(np.bool_(True)), *given[2:]]
    found = False
    for formal, value in zip(graph.input, given, strict=False):
        if not formal.type.WhichOneof("value") or (
            formal.type.HasField("tensor_type") and not formal.type.tensor_type.elem_type
        ):
            try:
                formal.type.CopyFrom(codec.named_type(_type_name(value)))
                found = True
            except InvalidTest:
                continue
    return found


def _type_name(value: Value) -> str:
    match value:
        case Sequence(type=name):
            return f"sequence({name})"
        case Optional(type=name):
            return f"optional({name})"
    return str(getattr(value, "dtype", ""))


def _identity(call: Instance, graph: Any) -> bool:
    """Put an `Identity` before each output that is an input, or was put out before."""
    from onnx import helper

    made, own, seen = [], {x for node in graph.node for x in node.output}, set[str]()
    for n, output in enumerate(graph.output):
        name = output.name
        if name not in own or name in seen:
            output.name = f"{name}_{n}_out"
            made.append(helper.make_node("Identity", [name], [output.name]))
        seen.add(name)
    _put(graph, [*graph.node, *made])
    return bool(made)


def _fill(call: Instance, graph: Any) -> bool:
    """Give each `Optional` that holds nothing a value: zeros, or a sequence without elements."""
    from onnx import helper

    made = list[Any]()
    for node in graph.node:
        kind = next((x.tp for x in node.attribute if x.name == "type"), None)
        if node.op_type == "Optional" and not any(node.input) and kind is not None:
            name, of = f"{node.output[0]}_held", kind
            if of.HasField("tensor_type"):
                zero = Tensor.of(np.zeros([x.dim_value for x in of.tensor_type.shape.dim]))
                value = codec.tensor_proto(codec.cast(zero, codec.type_name(of)), name)
                made.append(helper.make_node("Constant", [], [name], value=value))
            else:
                element = of.sequence_type.elem_type.tensor_type.elem_type
                made.append(helper.make_node("SequenceEmpty", [], [name], dtype=element))
            made.append(helper.make_node("Optional", [name], list(node.output)))
        else:
            made.append(node)
    found = len(made) > len(graph.node)
    _put(graph, made)
    return found


def _put(graph: Any, nodes: list[Any]) -> None:
    kept = [type(x).FromString(x.SerializeToString()) for x in nodes]
    del graph.node[:]
    graph.node.extend(kept)
