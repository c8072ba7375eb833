"""What decides that a program fails: take it away, and see whether the program passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import CONTAINERS, NO_DEFAULT, Named, RandomTensor, Tensor, Value
from opera.programs.verdicts import PASS, Outcome
from opera.triage import simpler, smaller
from opera.triage.minimise import Spent
from opera.triage.sentence import EQUAL, LENGTH_ONE, LIMIT
from opera.triage.smaller import Defaults, Leaf

Array: TypeAlias = np.ndarray[Any, Any]

PLAINER = ("float32", "int64", "int32")
"""Dtypes that tensors are tried in, to see whether their own decides."""
FLOATS, INTEGERS = ("float32", "float64"), ("int8", "uint8", "int16", "int32", "int64")
NUDGE = 2.0**-10
"""What is added to a number, relatively, to see whether it decides that it is just this one."""
SPECIAL: dict[str, Callable[[Array], Array]] = {
    "NaN": np.isnan,
    "infinity": np.isinf,
    "a negative number": lambda numbers: np.isfinite(numbers) & (numbers < 0),
}
"""What elements may be that decides → which of them are so; 1 takes their place."""


class Look(Protocol):
    """Tells what programs show. Raises Spent."""

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what they show."""


def parameters(ask: Look, program: Program, defaults: Defaults) -> Iterator[str]:
    """Yield the parameters without which a program passes; what says how large something is decides nothing."""
    if not isinstance(program, Instance):
        return
    known = defaults.get(program.operator, {})
    for name, value in smaller.nondefault(program, defaults):
        plain = smaller.default(known, name)
        other = smaller.without(program, name)
        if other is None and plain != NO_DEFAULT:
            other = smaller.with_param(program, name, plain)
        if other is None or (plain == NO_DEFAULT and isinstance(value, int) and not simpler.is_type(name)):
            continue
        if _passes(ask, [other]):
            yield f"{name}={_said(value)}"
    yield from (f"{name} left out" for name, others in _given_for(program, known) if _passes(ask, others))


def _given_for(program: Instance, known: Mapping[str, Value]) -> Iterator[tuple[str, list[Program]]]:
    """Yield the parameters that have no value, None by default, and programs that give one the value of a number beside it."""
    numbers = [x for x in program.params.values() if isinstance(x, int | float) and not isinstance(x, bool)]
    for name, plain in known.items():
        if plain is None and program.params.get(name) is None and name not in {x.name for x in program.inputs}:
            made = [smaller.given(program, name, x) for x in numbers]
            yield name, [x for x in made if x is not None]


def besides(ask: Look, program: Program, _: Defaults) -> Iterator[str]:
    """Yield what else must be so: inputs that may be left out, dtypes, ranks, empty tensors, NaN, infinity, negative numbers.

    Of each, another program is asked about that differs in it alone; nothing is said where its library rejects that.
    """
    yield from _dtypes(ask, program)
    for says, others in _variations(program):
        if _passes(ask, [x for x in others if x is not None and x != program]):
            yield says


def _passes(ask: Look, programs: Sequence[Program]) -> bool:
    """Whether one of the programs passes; not, where there is no time left to ask."""
    try:
        return any(shown.verdict == PASS for shown in ask.look(programs))
    except Spent:
        return False


def relations(ask: Look, program: Program, _: Defaults) -> Iterator[str]:
    """Yield how numbers and sizes must stand to each other: an axis of length 1, equal elements, a number just at a limit.

    It is asked only where nothing else is known to decide: a small program has many of these by chance.
    """
    for says, others in _related(program):
        if _passes(ask, [x for x in others if x is not None and x != program]):
            yield says


def _related(program: Program) -> Iterator[tuple[str, list[Program | None]]]:
    found = smaller.leaves(program)
    if any(1 in x.shape for x in found):
        for axis in range(max(len(x.shape) for x in found)):
            yield f"{LENGTH_ONE} {axis}", [_mapped(partial(_longer, axis=axis), program)]
    yield EQUAL, [_mapped(_distinct, program)]
    for name, made in _nudged(program):
        yield f"{name} {LIMIT}", made


def _dtypes(ask: Look, program: Program) -> Iterator[str]:
    """Yield dtypes that decide; "integer" where every other integer dtype fails as well, and a float passes."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} - {"float32", "string", "bool"}):

        def passes(others: Iterable[str], dtype: str = dtype) -> bool:
            steps = (partial(smaller.as_dtype, dtype=dtype, other=x) for x in others if x != dtype)
            made = (smaller.applied(step, program) for step in steps)
            return _passes(ask, [x for x in made if x is not None and x != program])

        if dtype in INTEGERS and passes(FLOATS) and not passes(INTEGERS):
            yield "integer inputs"
        elif passes(PLAINER):
            yield f"{dtype} inputs"


def _variations(program: Program) -> Iterator[tuple[str, list[Program | None]]]:
    found = smaller.leaves(program)
    if isinstance(program, Instance):
        for operand in program.inputs:
            if operand.value is not None:
                yield f"input {operand.name}", [smaller.input_left_out(program, operand.name)]
    for rank in sorted({len(x.shape) for x in found}):
        says = "a 0-d input" if rank == 0 else f"an input of rank {rank}"
        yield says, [_mapped(partial(change, rank=rank), program) for change in (_one_axis_more, _one_axis_less)]
    if any(0 in x.shape for x in found):
        yield "an empty input", [_mapped(_filled, program)]
    for says, where in SPECIAL.items():
        yield f"{says} in an input", [_mapped(partial(_plain, where=where), program)]


def _mapped(change: Callable[[Leaf], Leaf], program: Program) -> Program | None:
    """Return the program with all inputs changed: tensors in parameters stay."""
    return smaller.applied(lambda x: smaller.mapped(x, change), program)


def _one_axis_more(leaf: Leaf, rank: int) -> Leaf:
    return _shaped(leaf, (1, *leaf.shape)) if len(leaf.shape) == rank else leaf


def _one_axis_less(leaf: Leaf, rank: int) -> Leaf:
    if len(leaf.shape) != rank or 1 not in leaf.shape:
        return leaf
    place = leaf.shape.index(1)
    return _shaped(leaf, leaf.shape[:place] + leaf.shape[place + 1 :])


def _shaped(leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    return msgspec.structs.replace(leaf, shape=shape)


def _longer(leaf: Leaf, axis: int) -> Leaf:
    """Repeat what has one element along an axis."""
    if axis >= len(leaf.shape) or leaf.shape[axis] != 1:
        return leaf
    if not isinstance(leaf, Tensor):
        return _shaped(leaf, (*leaf.shape[:axis], 2, *leaf.shape[axis + 1 :]))
    return Tensor.of(np.repeat(leaf.array(), 2, axis), leaf.dtype)


def _distinct(leaf: Leaf) -> Leaf:
    """Let the elements of floats differ, each a little more than the one before, where some are equal."""
    if not isinstance(leaf, Tensor) or leaf.dtype not in ("float32", "float64") or leaf.array().size < 2:
        return leaf
    numbers = simpler.numbers(leaf)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) == numbers.size:
        return leaf
    more = np.arange(numbers.size).reshape(numbers.shape) * NUDGE
    return simpler.numbered(numbers + more, leaf.dtype)


def _nudged(program: Program) -> Iterator[tuple[str, list[Program | None]]]:
    """Yield floating-point parameters and inputs of one element, and the program with a little more, and less, of each."""
    if not isinstance(program, Instance):
        return
    for name, value in program.params.items():
        if isinstance(value, float) and np.isfinite(value):
            yield name, [smaller.with_param(program, name, value + x) for x in _steps(value)]
    for operand in program.inputs:
        held = operand.value
        if isinstance(held, Tensor) and held.dtype in ("float32", "float64") and held.array().size == 1:
            number = float(held.array().ravel()[0])
            if len(program.inputs) > 1 and np.isfinite(number):
                made = [simpler.numbered(np.full(held.shape, number + x), held.dtype) for x in _steps(number)]
                yield operand.name, [_with_input(program, operand.name, x) for x in made]


def _steps(number: float) -> tuple[float, float]:
    size = NUDGE * (abs(number) or 1.0)
    return size, -size


def _with_input(program: Instance, name: str, value: Value) -> Program:
    inputs = (msgspec.structs.replace(x, value=value) if x.name == name else x for x in program.inputs)
    return msgspec.structs.replace(program, inputs=tuple(inputs))


def _filled(leaf: Leaf) -> Leaf:
    if 0 not in leaf.shape or leaf.dtype not in CONTAINERS:
        return leaf
    return simpler.numbered(np.ones([x or 1 for x in leaf.shape]), leaf.dtype)


def _plain(leaf: Leaf, where: Callable[[Array], Array]) -> Leaf:
    if not isinstance(leaf, Tensor) or leaf.dtype == "string":
        return leaf
    numbers = simpler.numbers(leaf)
    if numbers.dtype.kind not in "fi" or not (found := where(numbers)).any():
        return leaf
    one = simpler.numbered(np.ones(1), leaf.dtype).array()[0]
    return Tensor.of(np.where(found, one, leaf.array()), leaf.dtype)


def _said(value: Value) -> str:
    match value:
        case Named():
            return value.name
        case Tensor() | RandomTensor():
            return f"{value.dtype}{list(value.shape)}"
        case list() | tuple():
            return "[" + ", ".join(map(_said, value)) + "]"
    return repr(value)[:60]
