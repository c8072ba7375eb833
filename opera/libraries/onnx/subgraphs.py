"""Less in the bodies of If, Loop and Scan: what a reduction tries, where one node of many fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from opera.libraries.onnx import codec
from opera.libraries.onnx import nodes as onnx_nodes
from opera.programs.program import Call, Graph, Instance, Program
from opera.programs.values import Message

BODY = "onnx.GraphProto"
IN_PLACE = 4
"""Values that a node's result is replaced by: inputs of the body and of the node itself."""


def shortened(program: Program) -> list[Program]:
    """Return programs with less in a subgraph of a call, each once; whether they mean anything is not looked at.

    A branch stands in the place of an `If` within. A result of a node is one of its inputs, or an input of the subgraph,
    instead; an output, or an input that nothing reads, is left out on either side. Nodes that nothing reads go, and what only
    they took from outside.
    """
    found: dict[str, Program] = {}
    calls: Sequence[Call | Instance] = program.calls if isinstance(program, Graph) else [program]
    for place, call in enumerate(calls):
        bodies = {name: codec.parse(x) for name, x in call.params.items() if isinstance(x, Message) and x.type == BODY}
        changed = [*_taken(bodies), *_replaced(bodies), *_narrowed(call, bodies)] if bodies else []
        for graphs, taken, given, fewer in changed:
            made = _tidied(program, place, graphs, taken, given, fewer)
            if made is not None and _is_whole(made):
                found[made.id] = made
    return list(found.values())


Change = tuple[dict[str, Any], int | None, int | None, int]
"""Subgraphs, the place of an input and of an output of the call that go, and how many inputs less are scanned."""


def _taken(bodies: dict[str, Any]) -> Iterator[Change]:
    for name, graph in bodies.items():
        for number, node in enumerate(graph.node):
            for branch in (x.g for x in node.attribute if node.op_type == "If"):
                yield {**bodies, name: _with_branch(graph, number, branch)}, None, None, 0


def _with_branch(graph: Any, number: int, branch: Any) -> Any:
    """Return a copy of a graph in which a branch of a node stands in its place."""
    from onnx import helper

    made, inner = type(graph)(), type(graph)()
    made.CopyFrom(graph)
    inner.CopyFrom(branch)
    before, node, after = made.node[:number], made.node[number], made.node[number + 1 :]
    pairs = [(x.name, y) for x, y in zip(inner.output, node.output, strict=False) if y]
    computed = {x for each in inner.node for x in each.output}
    own = {x: y for x, y in pairs if x in computed}
    onnx_nodes.rename(inner, lambda x: own.get(x, x))
    handed = [helper.make_node("Identity", [x], [y]) for x, y in pairs if x not in computed]
    nodes = [type(x).FromString(x.SerializeToString()) for x in (*before, *inner.node, *handed, *after)]
    del made.node[:]
    made.node.extend(nodes)
    made.initializer.extend(inner.initializer)
    return made


def _replaced(bodies: dict[str, Any]) -> Iterator[Change]:
    for name, graph in bodies.items():
        formals = [x.name for x in graph.input]
        for number in reversed(range(len(graph.node))):
            node = graph.node[number]
            for result in filter(None, node.output):
                for other in list(dict.fromkeys([*node.input, *formals]))[:IN_PLACE]:
                    if other and not (node.op_type == "Identity" and other == node.input[0]):
                        yield {**bodies, name: _instead(graph, number, result, other)}, None, None, 0


def _instead(graph: Any, number: int, result: str, other: str) -> Any:
    """Return a copy of a graph in which a node's result is another value."""
    from onnx import helper

    made = type(graph)()
    made.CopyFrom(graph)
    nodes = list(made.node)
    if result in (x.name for x in graph.output):
        nodes.insert(number, helper.make_node("Identity", [other], [result]))
        number += 1
    else:
        for node in nodes:
            node.input[:] = [other if x == result else x for x in node.input]
    nodes[number].output[:] = ["" if x == result else x for x in nodes[number].output]
    kept = [x for x in nodes if any(x.output)]
    del made.node[:]
    made.node.extend(kept)
    return made


def _narrowed(call: Call | Instance, bodies: dict[str, Any]) -> Iterator[Change]:
    """Yield subgraphs without an output, or without an input that they do not read; a state is both."""
    captured = call.context.get("captured") or ()
    given = sum(x.name not in captured for x in call.inputs)
    scanned = call.params.get("num_scan_inputs", 0)
    states = {"If": 0, "Loop": given - 2}.get(call.operator, given - scanned)
    outer, inner, first = {"If": (1, 0, 0), "Loop": (2, 2, 1)}.get(call.operator, (0, 0, 0))
    graphs = bodies.values()
    unread = [
        all(graph.input[n].name not in _read(graph.node) for graph in graphs if n < len(graph.input))
        for n in range(max(len(graph.input) for graph in graphs))
    ]
    for n in reversed(range(states, len(call.outputs))):
        yield {x: _without(graph, None, first + n) for x, graph in bodies.items()}, None, n, 0
    for n in reversed(range(len(unread) - inner if call.operator != "If" else 0)):
        if unread[inner + n]:
            state = first + n if n < states else None
            narrow = {x: _without(graph, inner + n, state) for x, graph in bodies.items()}
            yield narrow, outer + n, n if n < states else None, int(n >= states)


def _without(graph: Any, taken: int | None, given: int | None) -> Any:
    made = type(graph)()
    made.CopyFrom(graph)
    for side, place in ((made.input, taken), (made.output, given)):
        if place is not None and place < len(side):
            del side[place]
    return made


def _read(nodes: Any) -> set[str]:
    """Return the names that nodes read, those in their subgraphs, too."""
    return {name for node in nodes for name in (*node.input, *onnx_nodes.outer_names(node))}


def _tidied(
    program: Program, place: int, graphs: dict[str, Any], taken: int | None, given: int | None, fewer: int
) -> Program | None:
    """Return the program with other subgraphs in a call, without what nothing reads any more; None where nothing is left."""
    call: Call | Instance = program.calls[place] if isinstance(program, Graph) else program
    used = set[str]()
    params = dict(call.params)
    for name, graph in graphs.items():
        _sweep(graph)
        used |= _read(graph.node)
        params[name] = Message(BODY, graph.SerializeToString(deterministic=True))
    if fewer:
        params["num_scan_inputs"] = call.params["num_scan_inputs"] - fewer
    captured = list(call.context.get("captured") or ())
    plain = [x for x in call.inputs if x.name not in captured]
    kept = [x for n, x in enumerate(plain) if n != taken]
    inputs = (*kept, *(x for x in call.inputs if x.name in captured and x.name in used))
    context = {key: x for key, x in call.context.items() if key != "captured"}
    if left := [x for x in captured if x in used]:
        context["captured"] = left
    outputs = tuple(x for n, x in enumerate(call.outputs) if n != given)
    made = msgspec.structs.replace(call, params=params, inputs=inputs, outputs=outputs, context=context)
    if isinstance(program, Instance) or isinstance(made, Instance):
        return cast(Instance, made)
    return _graph_of(program, place, made)


def _graph_of(program: Graph, place: int, call: Call) -> Program | None:
    """Return a program of several calls with another one in a place, without calls and inputs that nothing takes any more; None
    where it computes nothing then.
    """
    calls = [*program.calls[:place], call, *program.calls[place + 1 :]]
    defined = {name for x in calls for name in x.outputs}
    outputs = tuple(x for x in program.outputs if x in defined)
    kept: list[Call] = []
    needed = set(outputs)
    for x in reversed(calls):
        if needed & set(x.outputs):
            kept.insert(0, x)
            needed |= {y.of for y in x.inputs} | set(x.context.get("captured") or ())
    inputs = tuple(x for x in program.inputs if x.name in needed)
    made = msgspec.structs.replace(program, calls=tuple(kept), inputs=inputs, outputs=outputs)
    return made if len(kept) > 1 else made.instances()[0] if kept else None


def _is_whole(program: Program) -> bool:
    """Whether no call takes an output of another that went."""
    if isinstance(program, Instance):
        return True
    known = {x.name for x in program.inputs} | {name for call in program.calls for name in call.outputs}
    return {x.of for call in program.calls for x in call.inputs if x.of} <= known


def _sweep(graph: Any) -> None:
    """Take out nodes and constants that nothing reads."""
    needed, kept = {x.name for x in graph.output}, list[Any]()
    for node in reversed(list(graph.node)):
        if needed & set(node.output):
            kept.insert(0, node)
            needed |= _read([node])
    held = [x for x in graph.initializer if x.name in needed]
    stated = [x for x in graph.value_info if x.name in needed]
    for side, left in ((graph.node, kept), (graph.initializer, held), (graph.value_info, stated)):
        left = [type(x).FromString(x.SerializeToString()) for x in left]
        del side[:]
        side.extend(left)
