"""The smaller programs that a program is made of: each call with what it was given, and shorter runs of calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from opera.libraries import Expanding, Library, Nesting
from opera.programs.program import Call, Graph, Operand, Program
from opera.programs.values import Value


def pieces(library: Library, program: Program) -> list[Program]:
    """Return the smaller programs, those of fewest calls first. Raises InvalidTest where the library cannot run it."""
    if isinstance(program, Graph):
        return list(_of_graph(library, program))
    if not hasattr(library, "expanded"):
        return []
    return list(cast(Expanding, library).expanded(program))


def _of_graph(library: Library, graph: Graph) -> Iterator[Program]:
    """Yield single calls, then each with what makes its constants, which a shape in a subgraph may hang on, and each with one
    that it takes a result of; then halves, three quarters, ... of all.

    What other calls return are inputs then.
    """
    steps = library.steps(graph)
    known: dict[str, Value] = {operand.name: operand.value for operand in graph.inputs}
    for call, (_, returned) in zip(graph.calls, steps, strict=True):
        known |= dict(zip((name for name in call.outputs if name), returned, strict=False))
    named = getattr(library, "NAMED", False)
    for instance, _ in steps:
        given = tuple(x for x in instance.inputs if named or x.value is not None)
        yield msgspec.structs.replace(instance, inputs=given, outputs=instance.outputs if named else ())
    if named and hasattr(library, "expanded"):  # the bodies of loops, in which one node fails
        for instance, _ in steps:
            yield from cast(Expanding, library).expanded(instance)
    if hasattr(library, "bodies"):  # what a loop takes may have to be a constant inside as well
        made = {name for call in graph.calls if not call.inputs for name in call.outputs}
        for call, (instance, _) in zip(graph.calls, steps, strict=True):
            if held := {x.name for x in call.inputs if x.of in made}:
                yield from cast(Nesting, library).bodies(instance, held)
    for call in graph.calls:
        part = with_constants(graph, [call])
        if 1 < len(part) < len(graph.calls):
            yield run(graph, part, known)
    for call in graph.calls:
        taken = {x.of for x in call.inputs}
        for earlier in graph.calls:
            if taken & set(earlier.outputs) - {""} and len(graph.calls) > 2:
                yield run(graph, (earlier, call), known)
    count = dropped = len(graph.calls)
    while dropped := dropped // 2:
        for begin, end in ((0, count - dropped), (dropped, count)):
            if end - begin >= 2:
                yield run(graph, graph.calls[begin:end], known)


def with_constants(graph: Graph, calls: Iterable[Call]) -> tuple[Call, ...]:
    """Return these calls, and those without inputs that they read, in the order of the graph."""
    kept = list(calls)
    read = {x.of for call in kept for x in call.inputs}
    return tuple(x for x in graph.calls if x in kept or (not x.inputs and read & set(x.outputs)))


def run(graph: Graph, calls: Sequence[Call], known: Mapping[str, Value]) -> Program:
    """Return some calls of a graph as a program of its own; what others return are inputs, whose values are `known`."""
    if len(calls) == 1:
        return graph.instance(calls[0], known)
    made = [name for call in calls for name in call.outputs if name]
    taken = [x.of for call in calls for x in call.inputs if x.of]
    inputs = tuple(Operand(name, known[name]) for name in dict.fromkeys(taken) if name not in made)
    kept = tuple(name for name in made if name not in taken or name in graph.outputs)
    return Graph(graph.library, inputs, tuple(calls), kept)
