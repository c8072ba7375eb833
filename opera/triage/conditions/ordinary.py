"""Tests of an operator that pass where a program of it fails, and the programs between the two: one difference at a time.

They are labelled already, and they are ordinary: what a person wrote to show what the operator does. After Zeller, Isolating
Cause-Effect Chains from Computer Programs (FSE 2002): a difference matters if it makes the failing one pass, or the passing one
fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opera.programs.program import Instance, Operand, Program, parse
from opera.programs.values import RandomTensor, Tensor, Value
from opera.store import instances as stored_instances
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.conditions.arguments import with_input
from opera.triage.conditions.forms import shaped
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Leaf

MOST, HANDFUL = 60, 6
"""Passing tests that are read, and of which programs between are made."""
LARGE = 4096
"""Tests with more elements are not asked about again."""
BYTES = 16_384
"""Programs of the corpus that take more to write down are not read."""
WORLD = ("opset", "domain", "body", "kind", smaller.TRAINING)
"""What in the context of a call says what it means, and not how it was written down."""


def passing(workspace: Workspace, verdict: Verdict, program: Program) -> list[Instance]:
    """Return the tests of a program's operator that pass where it fails; none of a program of several calls."""
    if not isinstance(program, Instance):
        return []
    found = stored_verdicts.passed(workspace, verdict, program.library, program.operator, MOST)
    return [x for x in map(parse, found) if isinstance(x, Instance)]


def captured(workspace: Workspace, program: Program) -> list[Instance]:
    """Return programs of the corpus that call a program's operator, as it is called there: what others wrote, or generated, who
    knew nothing of the failure. None of a program of several calls.
    """
    if not isinstance(program, Instance):
        return []
    read = stored_instances.of_operator(workspace, program.library, program.operator, MOST, BYTES)
    found = (called_as(x, program) for x in map(parse, read) if isinstance(x, Instance))
    return [x for x in {x.id: x for x in found}.values() if comparable(x, program) and smaller.elements(x) <= LARGE]


def comparable(test: Program, program: Program) -> bool:
    """Whether calls of the same operators mean the same: they are of one version of each, in one mode."""
    pairs = zip(test.instances(), program.instances(), strict=True)
    return all((x.context.get(of) or None) == (y.context.get(of) or None) for x, y in pairs for of in WORLD)


def between(program: Program, tests: Iterable[Program]) -> Iterator[Instance]:
    """Yield programs between a failing one and passing tests, those of the most alike test first.

    Of each test: itself, as the failing program is called; the failing program with all tensors of the test, and with each of
    its parameters and inputs; the test with each of those of the failing program.
    """
    if not isinstance(program, Instance):
        return
    for test in handful(program, [x for x in tests if isinstance(x, Instance)]):
        made = called_as(test, program)
        yield made
        yield from _with_tensors(program, made)
        for name in differing(program, made):
            yield from _with(program, made, name)
        for name in differing(program, made):
            yield from _with(made, program, name)


def handful(program: Instance, tests: Iterable[Instance]) -> list[Instance]:
    """Return a few tests that differ from a program in different things, first those that differ in few."""
    found = [x for x in tests if smaller.elements(x) <= LARGE]
    found.sort(key=lambda x: (len(differing(program, x)), abs(_rank(program) - _rank(x)), smaller.elements(x), x.id))
    kinds = {(_rank(x), _dtypes(x), tuple(sorted(differing(program, x)))): x for x in reversed(found)}
    return [x for x in found if any(x is y for y in kinds.values())][:HANDFUL]


def differing(program: Instance, test: Instance) -> list[str]:
    """Return the parameters that two calls give other values, and the inputs that one of them alone is given, or of another
    dtype; what only says how large something is comes last.
    """
    one, other = _given(program), _given(test)
    names = [x for x in dict.fromkeys((*other, *one)) if not _same(one.get(x), other.get(x))]
    return sorted(names, key=lambda x: bool(smaller.SIZED.search(x.rpartition(".")[2])))


def given_names(tests: Iterable[Program]) -> list[str]:
    """Return the inputs that tests of one call are given."""
    calls = [x for x in tests if isinstance(x, Instance)]
    return list(dict.fromkeys(x.name for call in calls for x in call.inputs if x.value is not None))


def _given(program: Instance) -> dict[str, Value]:
    held = {x.name: x.value for x in program.inputs} | program.params
    return {name: value for name, value in held.items() if value is not None}


def _same(one: Value, other: Value) -> bool:
    """Whether two values are one, or tensors of one dtype: those of a size that only the others have tell nothing alone."""
    if isinstance(one, Tensor | RandomTensor) and isinstance(other, Tensor | RandomTensor):
        return one.dtype == other.dtype
    return smaller.same(one, other)


def _rank(program: Instance) -> int:
    return max((len(x.shape) for x in smaller.leaves(program)[:1]), default=0)


def _dtypes(program: Instance) -> tuple[str, ...]:
    return tuple(x.dtype for x in smaller.leaves(program))


def called_as(test: Instance, program: Instance) -> Instance:
    """Return a test in the world of a program: of its version of the operator, in its mode, with its outputs."""
    left = {x: y for x, y in test.context.items() if x not in WORLD}
    world = {x: y for x, y in program.context.items() if x in WORLD}
    return msgspec.structs.replace(test, context={**left, **world}, outputs=program.outputs)


def _with_tensors(program: Instance, test: Instance) -> Iterator[Instance]:
    """Yield a program with the tensors of a test in place of its own."""
    theirs = {x.name: x.value for x in test.inputs if x.value is not None}
    inputs = tuple(
        Operand(x.name, theirs.get(x.name, x.value) if x.value is not None else None) for x in program.inputs
    )
    yield msgspec.structs.replace(program, inputs=inputs)


def _with(program: Instance, test: Instance, name: str) -> Iterator[Instance]:
    """Yield a program with what a test has under a name: a parameter's value, an input of the shape that fits, or nothing."""
    if name not in _given(test):
        left = smaller.input_left_out(program, name) or smaller.without(program, name)
        made = left or smaller.with_param(program, name, None)
        return iter((made,) if made is not None else ())
    value = _given(test)[name]
    values = _fitting(program, test, value) if isinstance(value, Tensor | RandomTensor) else [value]
    return (x for x in (_put(program, name, y, test) for y in values) if x is not None)


def _put(program: Instance, name: str, value: Value, test: Instance) -> Instance | None:
    if any(x.name == name for x in test.inputs):
        return with_input(program, name, value, test)
    if any(x.name == name for x in program.inputs):
        return None
    return smaller.with_param(program, name, value) or smaller.given(program, name, value)


def _fitting(program: Instance, test: Instance, value: Leaf) -> Iterator[Leaf]:
    """Yield a test's tensor in the shapes that may fit another program: that of the input whose shape it has in the test, axes
    as long as those of an input that are as long in the test; its own, if it is one of integers that may state sizes.
    """
    ours = {x.name: x.value.shape for x in program.inputs if isinstance(x.value, Tensor | RandomTensor)}
    theirs = {
        x.name: x.value.shape
        for x in test.inputs
        if isinstance(x.value, Tensor | RandomTensor) and x.value is not value
    }
    shared = [x for x in theirs if x in ours]
    shapes = [ours[x] for x in reversed(shared) if theirs[x] == value.shape]
    for name in shared:
        if len(ours[name]) == len(theirs[name]):
            sizes = dict(zip(reversed(theirs[name]), reversed(ours[name]), strict=True))
            shapes += [tuple(sizes[x] for x in value.shape)] if set(value.shape) <= sizes.keys() else []
    own = [value.shape] if smaller.states(value) else []
    for shape in dict.fromkeys((*shapes, *own)):
        yield shaped(value, shape)
