"""The plain form of what fails by an exported file: the nodes of the file that fail so, as a program of the file's own library,
or where no library has such files, the plainest call that becomes the operator that fails.

A compiler that cannot read a node of a file which PyTorch's exporter wrote is told of it best by a model of that node. Of the
file's nodes, in their order, the first is looked for with which those before it fail; of these the last few which fail alone,
given what the others return. That program is reduced as any other is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import msgspec

from opera import compilers, libraries
from opera.errors import OperaError
from opera.libraries import Lowering
from opera.libraries.pieces import run, with_constants
from opera.programs import values
from opera.programs.program import Call, Graph, Operand, Program, parse
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, REFUSED, Outcome
from opera.run import plan
from opera.run.probe import Probe
from opera.store import examined
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import reduction, sentence
from opera.triage.failure import alike
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.incidental import place
from opera.triage.reducer.reduce import NotReduced, about, reduce
from opera.triage.reduction import Reduction
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

NODES = 3
"""Calls that a plain program has at most, but for those without inputs: else the library's own call is plainer."""
BODIES = 1000
"""Bytes of the bodies that it holds at most: about a dozen nodes."""
CUT = 0.5
"""Share of the time for the search of the nodes; the rest is for reducing them."""


def renew(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Reduction | None:
    """Store the plain form of a reduction, in place of an earlier one of it; return it, None where there is none."""
    try:
        found = plain(workspace, probe, of, seconds)
    except (NotReduced, OperaError, Spent):
        found = None
    reduction.save_plain(workspace, of, found)
    return found


def plain(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Reduction | None:
    """Return the smallest program of nodes of the file by which a reduction fails, if few fail so, or of the plainest call that
    becomes the operator of such a file; its test is stored.

    Raises NotReduced, OperaError or Spent where that cannot be told.
    """
    compiler, _, library = of.frontend.rpartition("-")
    kind = compilers.artefact(compiler, library, of.variant)
    if kind == library:
        return None
    if not _reads(compiler, kind):
        called = _called(about(probe, of, Budget(CUT * seconds)), of)
        return None if called is None else _reduced(workspace, probe, of, of, called, seconds)
    opened = probe.opened(kind, of.stored, kind)
    if not opened.program:
        raise NotReduced(opened.why)
    frontend = compilers.frontend_name(compiler, kind)
    variant = compilers.frontend(compiler, kind).VARIANTS[0].name
    there = msgspec.structs.replace(of, frontend=frontend, variant=variant)
    ask = about(probe, there, Budget(CUT * seconds))
    whole, known = parse(opened.program), {name: values.decode(x) for name, x in opened.values.items()}
    part = nodes(ask, whole, known)
    if part is None:
        return None
    fed = "drawn" not in of.outcome.details and _fails(ask, [_as_whole(whole, known)]) != [True]
    found = _reduced(workspace, probe, of, there, part, seconds)
    return found and msgspec.structs.replace(found, fed=fed)


def _reduced(
    workspace: Workspace, probe: Probe, of: Reduction, there: Reduction, part: Program, seconds: float
) -> Reduction | None:
    """Return what a program that fails as a reduction does is reduced to, where that is plain; its test is stored.

    Args:
        there: The reduction, at the frontend and variant that the program is asked of.
    """
    ask = about(probe, there, Budget(seconds))
    test = plan.test_id(part.id, plan.exporter_id(part.library))
    shown = probe(msgspec.structs.replace(ask.question, program=ask.captured(part), keep=workspace.tests_folder))
    examined.save_test(workspace, examined.Examined(of.finding, of.environment, test, b""), part)
    began = Verdict(test, there.frontend, there.variant, of.environment, shown, of.finding)
    found = reduce(workspace, probe, [began], seconds)
    program = found.program().program
    same = alike(there.frontend, of.outcome, found.outcome, elsewhere=True) or _drawn(of.outcome, found.outcome)
    _, bodies, *_ = smaller.measure(program, {})
    if not same or bodies > BODIES or sum(bool(x.inputs) for x in program.instances()) > NODES:
        return None
    examined.save_test(workspace, examined.Examined(of.finding, of.environment, found.stored, b""), program)
    return found


def _called(ask: Asker, of: Reduction) -> Program | None:
    """Return the plainest call that its library's exporter makes the operator of at which a reduction fails, and that fails in
    the same words at the same line; None where it calls one of the plainest itself, or an answer is wrong: any two may be.
    TVM's importer reads begin and size of a SLICE one after the other, and fails so at either.
    """
    library = libraries.get(of.frontend.rpartition("-")[2])
    lowered = sentence.lowered(of.outcome.conversion_function)
    if not lowered or of.outcome.verdict not in (CRASH, REFUSED) or not hasattr(library, "plainest"):
        return None
    calls = cast(Lowering, library).plainest(lowered)
    if set(of.program().program.operators) & {x.operator for x in calls}:
        return None
    shown = zip(calls, ask.look(calls), strict=True)
    return next((x for x, now in shown if ask.fails(now) and place(now) == place(of.outcome)), None)


def _reads(compiler: str, kind: str) -> bool:
    """Whether files of this kind are the models of a library, and the compiler has a frontend for them."""
    known = kind in libraries.registered() and hasattr(libraries.get(kind), "opened")
    return known and kind in compilers.get(compiler).FRONTENDS


def nodes(ask: Asker, program: Program, known: Mapping[str, Value]) -> Program | None:
    """Return the fewest calls of a file's program that fail as the target does; None where the whole does not.

    What the file holds as constants is held by the program; where that does not fail, it is fed, all or one. Raises Spent.

    Args:
        known: Name of an input or result → its value.
    """
    if not isinstance(program, Graph):
        return program if _fails(ask, [program]) == [True] else None
    if not any(x.inputs for x in program.calls):  # all of it was folded by the exporter
        return _first(ask, [run(program, [x], known) for x in program.calls])
    if ask.target is not None and "drawn" in ask.target.details:  # of a model of several nodes no law is known
        alone = sorted(program.calls, key=lambda x: not x.inputs)
        if found := _first(ask, [run(program, with_constants(program, [x]), known) for x in alone]):
            return found
    if ask.target is not None and ask.target.verdict in (
        CRASH,
        REFUSED,
    ):  # what reads a constant, whoever wrote it there
        alone = list({_kind(x): x for x in reversed(program.calls) if not x.inputs}.values())[::-1][: ask.batch]
        if found := _first(ask, [run(program, [x], known) for x in alone]):
            return found
    held = [x.outputs[0] for x in program.calls if not x.inputs and x.params]
    for graph in (program, _fed(program, held, known), *(_fed(program, [x], known) for x in held if len(held) > 1)):
        last = [place for place, call in enumerate(graph.calls) if call.inputs]
        if not last or _fails(ask, [_as_whole(graph, known)]) != [True]:
            continue
        good, bad = -1, len(last) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            begins = run(graph, with_constants(graph, [graph.calls[x] for x in last[: middle + 1]]), known)
            good, bad = (good, middle) if _fails(ask, [begins]) == [True] else (middle, bad)
        led = _leading(graph, graph.calls[last[bad]])
        return _first(ask, [run(graph, with_constants(graph, led[-count:]), known) for count in range(1, len(led) + 1)])
    return None


def _kind(call: Call) -> tuple[str, ...]:
    """Return what a call without inputs is to who reads it: its operator, and what it is given."""
    return call.operator, *sorted(call.params), *(x.dtype for x in call.params.values() if isinstance(x, Tensor))


def _as_whole(program: Program, known: Mapping[str, Value]) -> Program:
    return run(program, program.calls, known) if isinstance(program, Graph) else program


def _first(ask: Asker, programs: Sequence[Program]) -> Program | None:
    """Return the first of these that fails as the target does."""
    for begin in range(0, len(programs), ask.batch):
        batch = programs[begin : begin + ask.batch]
        if failing := [x for x, fails in zip(batch, _fails(ask, batch), strict=True) if fails]:
            return failing[0]
    return None


def _fails(ask: Asker, programs: Sequence[Program]) -> list[bool]:
    return [ask.fails(x, elsewhere=True) or _drawn(ask.target, x) for x in ask.look(programs)]


def _drawn(one: Outcome | None, other: Outcome) -> bool:
    """Whether both draw wrongly, in whatever manner: what a node may draw is not what the whole may."""
    return one is not None and one.verdict == other.verdict and "drawn" in one.details and "drawn" in other.details


def _fed(graph: Graph, names: Collection[str], known: Mapping[str, Value]) -> Graph:
    """Return a program of which constants are inputs."""
    calls = tuple(x for x in graph.calls if not set(names) & set(x.outputs))
    return msgspec.structs.replace(
        graph, calls=calls, inputs=(*graph.inputs, *(Operand(name, known[name]) for name in names))
    )


def _leading(graph: Graph, call: Call) -> list[Call]:
    """Return the calls with inputs on which a call hangs, and it, in the order of the graph."""
    needed, found = {x.of for x in call.inputs}, [call]
    for earlier in reversed(graph.calls[: graph.calls.index(call)]):
        if earlier.inputs and needed & set(earlier.outputs):
            found.insert(0, earlier)
            needed |= {x.of for x in earlier.inputs}
    return found
