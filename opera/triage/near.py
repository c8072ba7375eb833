"""Programs near a failing one of a single call: ordinary inputs first, then one thing changed at a time.

Whether they mean anything is asked of their library, as of any candidate (opera.triage.reduce).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import msgspec
import numpy as np

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage import simpler, smaller
from opera.triage.peculiar import changed
from opera.triage.smaller import Defaults, Leaf

DTYPES = ("float16", "float64", "float32", "int64", "int32", "uint8", "int8")
"""Dtypes that take another's place."""
TENSORS = 3
"""Inputs of which each axis is changed."""


def counted(program: Instance) -> Instance:
    """Return a program with 1, 2, 3, ... in the floats of its first tensor, and of all of that rank: scales are no data."""
    rank = len(next((x.shape for x in smaller.leaves(program)), ()))
    made = smaller.mapped(program, lambda leaf: _counted(leaf) if len(leaf.shape) == rank else leaf)
    return made if isinstance(made, Instance) else program


def near(program: Instance, defaults: Defaults) -> Iterator[Instance]:
    """Yield valid and invalid programs near one, the most telling first, each once."""
    known, seen = defaults.get(program.operator, {}), {program.id}
    ordinary = next((x for x in _ordinary(program) if isinstance(x, Instance)), program)
    for made in chain(
        _ordinary(program),
        _in_turn(
            _dtypes(program),
            _ranks(program),
            _given(program, known),
            chain(_parameters(program, known), _parameters(ordinary, known)),
            chain(_axes(ordinary), _axes(program)),
            chain(_stated(program), _each_counted(program)),
            _sizes(program),
        ),
    ):
        if isinstance(made, Instance) and made.id not in seen:
            seen.add(made.id)
            yield made


def _in_turn(*several: Iterator[Program | None]) -> Iterator[Program | None]:
    return chain.from_iterable(zip_longest(*several))


def _each_counted(program: Instance) -> Iterator[Program | None]:
    for place in range(len(smaller.leaves(program))):
        yield smaller.applied(smaller.at(place, _counted), program)


def _axes(program: Instance) -> Iterator[Program | None]:
    """Yield programs of one rank more or less, and of this one, of which a parameter names an axis; others may have only the
    axes from there on."""
    names = [x for x, y in program.params.items() if smaller.is_axes(x) and type(y) is int]
    found = smaller.leaves(program)
    own = found[0].shape if names and found else ()
    for shape in ((2, *own), own, own[1:]) if own else ():
        for axis, cut in itertools.product(range(len(shape)), (False, True)):

            def change(leaf: Leaf, begin: int = axis * cut, shape: tuple[int, ...] = shape) -> Leaf:
                beside = smaller.states(leaf) and leaf is not found[0]
                return leaf if beside else shaped(leaf, shape if leaf is found[0] else shape[begin:])

            made = changed(change, program)
            if isinstance(made, Instance):
                yield msgspec.structs.replace(made, params={**made.params, names[0]: axis})


def _counted(leaf: Leaf) -> Leaf:
    return simpler.counted(leaf) if "float" in leaf.dtype else leaf


def shaped(leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    """Return a tensor of another shape: elements go on as they begin (1, 2, 3, ...), or are repeated."""
    if not isinstance(leaf, Tensor):
        return msgspec.structs.replace(leaf, shape=shape)
    held = leaf.array()
    if leaf.dtype == "string" or shape == leaf.shape:
        return leaf
    if not held.size:
        return _counted(simpler.numbered(np.ones(shape), leaf.dtype))
    made = Tensor.of(np.resize(held, shape), leaf.dtype)
    return _counted(made) if _counted(leaf) == leaf else made


def _ordinary(program: Instance) -> Iterator[Program | None]:
    """Yield programs whose dimensions are 2 to 5 and differ, those of axes in line the same: from the front, and from the back;
    of all tensors, of those of the first one's rank, and of the first alone."""
    found = smaller.leaves(program)
    if not found:
        return
    rank = len(found[0].shape)

    def change(leaf: Leaf, last: bool, most: int, alone: bool) -> Leaf:
        if (smaller.states(leaf) and leaf is not found[0]) or (alone and len(leaf.shape) != rank):
            return leaf
        order = range(len(leaf.shape))
        sizes = (2 + (len(leaf.shape) - 1 - x if last else x) for x in order)
        return shaped(leaf, tuple(max(old, min(new, most)) for old, new in zip(leaf.shape, sizes, strict=True)))

    for most in (5, 2):
        for alone in (False, True):
            for last in (False, True):
                yield changed(partial(change, last=last, most=most, alone=alone), program)
        yield smaller.applied(smaller.at(0, partial(change, last=False, most=most, alone=False)), program)


def _dtypes(program: Instance) -> Iterator[Program | None]:
    """Yield programs with tensors of another dtype, if their numbers are the same in it."""
    for dtype in dict.fromkeys(x.dtype for x in smaller.leaves(program) if x.dtype in DTYPES):
        for other in DTYPES:
            made = (
                smaller.applied(partial(smaller.as_dtype, dtype=dtype, other=other), program)
                if other != dtype
                else None
            )
            if made is not None and all(map(_about_equal, smaller.leaves(made), smaller.leaves(program))):
                yield made


def _with_numbers(leaf: Leaf, numbers: np.ndarray[Any, Any]) -> Leaf:
    return simpler.numbered(numbers, leaf.dtype)


def _about_equal(one: Leaf, other: Leaf) -> bool:
    """Whether numbers are about the same in another dtype: 300 is no uint8, 1e6 no float16."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.dtype == other.dtype:
        return True
    now, before = (x.array().astype("float64") for x in (one, other))
    return bool(np.allclose(now, before, rtol=1e-2, atol=1.0 if "int" in one.dtype else 1e-2, equal_nan=True))


def _stated(program: Instance) -> Iterator[Program | None]:
    """Yield other numbers of small inputs beside the first: sizes one more, 1 or 2; scales a half, two, three quarters."""
    for place, leaf in list(enumerate(smaller.leaves(program)))[1:]:
        if not isinstance(leaf, Tensor) or len(leaf.shape) != 1 or not 0 < leaf.shape[0] <= smaller.SPELLED:
            continue
        numbers = simpler.numbers(leaf)
        for at in range(leaf.shape[0]) if leaf.dtype in ("int32", "int64", "float32") else ():
            old = numbers[at]
            for new in (old + 1, 1, 2) if "int" in leaf.dtype else (0.5, 2.0, 0.75) if old != 1 else ():
                made = np.where(np.arange(leaf.shape[0]) == at, new, numbers)
                yield smaller.applied(smaller.at(place, partial(_with_numbers, numbers=made)), program)


def _parameters(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield other values of parameters: numbers near, and lists of them; flags turned."""
    for name, value in program.params.items():
        flag = value in (0, 1) and known.get(name) in (0, 1)
        if simpler.is_type(name) or isinstance(value, bool) or flag:
            continue
        others: list[Value] = []
        if isinstance(value, int):
            rank = max((len(x.shape) for x in smaller.leaves(program)), default=0)
            others = [*range(-rank, rank)] if smaller.is_axes(name) else [2, 3, value + 1, 1]
        elif isinstance(value, float):
            others = [value / 2, value * 2]
        elif isinstance(value, list | tuple) and value and all(type(x) is int for x in value):
            others = [type(value)([x + 1 for x in smaller.integers(value)])]
            if smaller.is_axes(name):
                others += [type(value)([x - 1 for x in smaller.integers(value)]), type(value)([0]), type(value)([0, 1])]
        for other in others:
            yield smaller.with_param(program, name, other)


def _given(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield programs with parameters that have no value given one: the number that another has, which may lose its own; 1,
    true, an axis; a tensor as long as an axis of the first, each and all together."""
    names = unstated(program, known)
    numbers = {x: y for x, y in program.params.items() if isinstance(y, int | float) and not isinstance(y, bool)}
    for name in names:
        for other, number in numbers.items():
            if known.get(other, "") is None:
                made = smaller.given(program, name, number)
                yield made
                yield smaller.with_param(made, other, None) if made is not None else None
    first = next(iter(smaller.leaves(program)), None)
    for size in dict.fromkeys(first.shape if first is not None else ()):
        value = simpler.counted(Tensor.of(np.ones(size, "float32")))
        each = [_with_input(program, name, value) for name in names]
        yield from each
        made = program
        for name in names:
            made = _with_input(made, name, value)
        yield made if len(names) > 1 else None
    plain: tuple[Value, ...] = (1, True, (0,))
    for value, name in itertools.product(plain, names):
        yield smaller.given(program, name, value)


def unstated(program: Instance, known: Mapping[str, Value]) -> list[str]:
    """Return the parameters, and inputs that stand among them, that have no value."""
    taken = {x.name for x in program.inputs if x.value is not None}
    without = (x for x, value in known.items() if value is None)
    names = dict.fromkeys([*(x for x, value in program.params.items() if value is None), *without])
    return [x for x in names if x not in taken and program.params.get(x) is None]


def _with_input(program: Instance, name: str, value: Value) -> Instance:
    params = {x: y for x, y in program.params.items() if x != name}
    inputs = (*(x for x in program.inputs if x.name != name), Operand(name, value))
    return msgspec.structs.replace(program, params=params, inputs=inputs)


def _ranks(program: Instance) -> Iterator[Program | None]:
    """Yield programs with an axis of length 1 or 2 more before or after the others, or the first one less: of all tensors, of
    those of the first one's rank, and of the first alone."""
    found = smaller.leaves(program)
    if not found:
        return
    rank = len(found[0].shape)
    changes: list[Callable[[tuple[int, ...]], tuple[int, ...]]] = [
        lambda x: (2, *x), lambda x: (*x, 2), lambda x: (1, *x), lambda x: (*x, 1), lambda x: x[1:], lambda x: x[:-1],
    ]  # fmt: skip
    for change in changes:

        def all_of(leaf: Leaf, change: Callable[[tuple[int, ...]], tuple[int, ...]] = change) -> Leaf:
            return (
                leaf
                if smaller.states(leaf) and leaf is not found[0] and leaf.shape
                else shaped(leaf, change(leaf.shape))
            )

        def of_rank(leaf: Leaf, all_of: Callable[[Leaf], Leaf] = all_of) -> Leaf:
            return all_of(leaf) if len(leaf.shape) == rank else leaf

        yield changed(all_of, program)
        yield changed(of_rank, program)
        yield smaller.applied(smaller.at(0, all_of), program)


def _sizes(program: Instance) -> Iterator[Program | None]:
    """Yield programs with an axis longer or shorter: of one tensor, and of all where it is as long."""
    found = smaller.leaves(program)[:TENSORS]
    for turn in range(4):
        for place, leaf in enumerate(found):
            for axis, size in enumerate(leaf.shape):
                targets = {0: (1, 2, 3, 4), 1: (2, 3, 4, 0)}.get(size, (1, size + 1, 2 * size, size + 2))

                def one(leaf: Leaf, axis: int = axis, size: int = size, target: int = targets[turn]) -> Leaf:
                    if axis >= len(leaf.shape) or leaf.shape[axis] != size or (smaller.states(leaf) and size):
                        return leaf
                    return shaped(leaf, (*leaf.shape[:axis], target, *leaf.shape[axis + 1 :]))

                yield changed(one, program)
                yield smaller.applied(smaller.at(place, one), program)


def tensor(program: Program, name: str) -> Leaf | None:
    """Return the tensor that an input of this name is, None where it is none."""
    if not isinstance(program, Instance):
        return None
    value = next((x.value for x in program.inputs if x.name == name), None)
    return value if isinstance(value, Tensor | RandomTensor) else None
