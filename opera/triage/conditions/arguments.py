"""Near programs of one call that is given something else: other parameters, operands in their places, or neither."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec
import numpy as np

from opera import libraries
from opera.libraries import Typing
from opera.programs.program import Instance, Operand, Program, with_params
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import dtypes
from opera.triage.conditions.forms import TENSORS, counted_leaf, shaped, tensor
from opera.triage.conditions.peculiar import SIZES, changed
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults, Leaf

WRITTEN = "out"
"""Parameter of NumPy and PyTorch that says where a result is written: no operand, and nothing of the mathematics."""


FLAG = re.compile(r"mode|keep|causal|noop|largest|sorted|saturate|outside|antialias|include|training|reverse")
"""Names of truth values that are written as 0 and 1."""


OTHER_DTYPES = ("float32", "int32")
"""Dtypes that a parameter names, or inputs have while it names theirs."""


def axes(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield programs of one rank more or less, and of this one, of which a parameter names an axis, counted from the end where
    it is given so; others may have only the axes from there on, or one more or less as well."""
    held = {x: y for x, y in known.items() if type(y) is int} | program.params
    names = [x for x, y in held.items() if smaller.is_axes(x) and type(y) is int]
    found = smaller.leaves(program)
    own = found[0].shape if names and found else ()
    given_as = program.params.get(names[0]) if names else None
    behind = isinstance(given_as, int) and given_as < 0
    for shape in ((2, *own), own, own[1:]) if own else ():
        for axis, others in itertools.product(range(len(shape)), ("all", "on", "so")):

            def change(leaf: Leaf, axis: int = axis, others: str = others, shape: tuple[int, ...] = shape) -> Leaf:
                if leaf is found[0]:
                    return shaped(leaf, shape)
                if smaller.states(leaf):
                    return leaf
                alike = {len(own) + 1: (2, *leaf.shape), len(own): leaf.shape, len(own) - 1: leaf.shape[1:]}
                return shaped(leaf, shape if others == "all" else shape[axis:] if others == "on" else alike[len(shape)])

            made = changed(change, program)
            if isinstance(made, Instance) and (len(found) > 1 or others == "all"):
                named = axis - len(shape) if behind else axis
                yield smaller.with_param(made, names[0], named) or smaller.given(made, names[0], named)


def with_entries(program: Program) -> Iterator[Program | None]:
    """Yield programs with an axis of length 2 more before the others, and lists of numbers that have entries for axes (two for
    each, from the last axis on, or first all that begin) with those of an axis more."""
    found = smaller.leaves(program)
    if not isinstance(program, Instance) or not found or not found[0].shape:
        return
    rank = len(found[0].shape)
    more = changed(lambda x: shaped(x, (2, *x.shape)) if len(x.shape) == rank and not _lists(x, found) else x, program)
    held = {name: smaller.integers(x) for name, x in program.params.items() if isinstance(x, list | tuple)}
    held |= {
        x.name: x.value.array().tolist()
        for x in program.inputs
        if isinstance(x.value, Tensor) and _lists(x.value, found)
    }
    for name, own in held.items():
        if isinstance(more, Instance) and own and not smaller.is_axes(name):
            half = len(own) // 2
            both = [[*own, *own[-2:]], [*own[:1], *own[:half], *own[half : half + 1], *own[half:]]]
            for longer in (*(both if len(own) % 2 == 0 else ()), [*own, *own[-1:]]):
                yield _relisted(more, name, longer)


def as_long(program: Program) -> Iterator[Program | None]:
    """Yield programs with the lengths of the first tensor in an input that states sizes, of all axes, and of the last alone."""
    found = smaller.leaves(program)
    if isinstance(program, Instance) and found and found[0].shape:
        for x in (y for y in program.inputs if isinstance(y.value, Tensor) and _lists(y.value, found)):
            if SIZES.search(x.name):
                yield _relisted(program, x.name, list(found[0].shape))
                yield _relisted(program, x.name, list(found[0].shape[-1:]))


def _relisted(program: Instance, name: str, numbers: list[int]) -> Program | None:
    """Return a call with another list of integers, which is a parameter or an input."""
    own, held = program.params.get(name), tensor(program, name)
    if isinstance(own, list | tuple):
        return smaller.with_param(program, name, type(own)(numbers))
    return with_input(program, name, simpler.numbered(np.array(numbers), held.dtype)) if held is not None else None


def _lists(leaf: Leaf, found: list[Leaf]) -> bool:
    return leaf is not found[0] and smaller.states(leaf) and len(leaf.shape) == 1


def parameters(program: Program, defaults: Defaults) -> Iterator[Program | None]:
    """Yield other values of the parameters of each call: numbers near, and lists of them; flags turned."""
    for call in program.instances():
        for params in _other_parameters(call, defaults.get(call.operator, {})):
            if params is not None:
                yield with_params(program, lambda x, of=call, params=params: params if x == of else x.params)  # type: ignore[misc]


def _other_parameters(call: Instance, known: Mapping[str, Value]) -> Iterator[dict[str, Value] | None]:
    for name, value in call.params.items():
        flag = isinstance(value, int) and value in (0, 1) and known.get(name) in (0, 1)
        if isinstance(value, bool) or flag:
            continue
        others: list[Value] = []
        if simpler.is_type(name):
            others = dtypes.named(value)
        elif isinstance(value, int):
            rank = max((len(x.shape) for x in smaller.leaves(call)), default=0)
            others = [*range(-rank, rank)] if smaller.is_axes(name) else [2, 3, value + 1, 1]
            others += ([(value,)] if _listed(call) else []) if smaller.is_axes(name) else [0, -value]
        elif isinstance(value, float):
            others = [value / 2, value * 2, 0.0, math.inf, -math.inf]
        elif isinstance(value, list | tuple) and value and all(type(x) is int for x in value):
            others = [type(value)([x + 1 for x in smaller.integers(value)])]
            if not smaller.is_axes(name):
                others += [type(value)(x) for x in evenly(smaller.integers(value))]
                others += [type(value)([x] * len(value)) for x in (1, 0)]  # what they are where none is given
            else:
                others += [type(value)([x - 1 for x in smaller.integers(value)]), type(value)([0]), type(value)([0, 1])]
        yield from ({**call.params, name: x} for x in others if not smaller.same(x, value))


def evenly(numbers: list[int]) -> list[list[int]]:
    """Return equal numbers of the same sum, where there are such: parts of one size."""
    each, rest = divmod(sum(numbers), len(numbers))
    return [[each] * len(numbers)] if not rest and len(set(numbers)) > 1 else []


def is_flag(name: str, value: Value, known: Mapping[str, Value]) -> bool:
    """Whether a whole number is a truth value by its name: of other names, 0 and 1 may count something (`padding=1`)."""
    return type(value) is int and value in (0, 1) and known.get(name) in (0, 1) and bool(FLAG.search(name))


def multiples(program: Instance) -> Iterator[Program | None]:
    """Yield programs with a whole number one more, or 1, and as many times the lengths that are multiples of it (blocks,
    groups): of the first tensor alone, and of all."""
    for name, value in program.params.items():
        if type(value) is int and value > 1 and not smaller.is_axes(name) and not simpler.is_type(name):
            for new in (value + 1, 1):

                def change(leaf: Leaf, value: int = value, new: int = new) -> Leaf:
                    sizes = tuple(x // value * new if x % value == 0 else x for x in leaf.shape)
                    return leaf if smaller.states(leaf) else shaped(leaf, sizes)

                made = smaller.with_param(program, name, new)
                if made is not None:
                    yield smaller.applied(smaller.at(0, change), made)
                    yield changed(change, made)


def unset(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield programs with another value of a parameter that has its default: a flag turned, 1 for 0 and 0 for 1, 2 or 3 for a
    number and one more than all numbers beside it, a half."""
    taken = {x.name for x in program.inputs}
    most = max((x for value in program.params.values() for x in smaller.integers(value)), default=0)
    for name, default in known.items():
        if name in taken or simpler.is_type(name) or smaller.is_axes(name):
            continue
        if not smaller.same(program.params.get(name, default), default):
            continue
        others: tuple[Value, ...] = ()
        if isinstance(default, bool):
            others = (not default,)
        elif isinstance(default, int) and is_flag(name, default, known):
            others = (1 - default,)
        elif isinstance(default, int):
            flag = (1 - default,) if default in (0, 1) else ()
            others = (*flag, 3 if default == 2 else 2, most + 1)
        elif isinstance(default, float):
            others = (default / 2 or 0.5,)
        for other in others:
            yield smaller.with_param(program, name, other) or smaller.given(program, name, other)


def simplest(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield the call as simply as it may be meant: parameters left out or at their defaults, all or those that have one, and
    inputs beside the first of one element, or as long as one of its axes: what it can lack none of alone (blocks, a scale for
    each) it may lack together.
    """
    for required in (True, False):
        made = program
        for name in reversed(list(program.params)):
            plain = smaller.default(known, name)
            if not (required and plain == NO_DEFAULT):
                made = smaller.without(made, name) or smaller.with_param(made, name, plain) or made
        yield made
        first = next(iter(smaller.leaves(made)), None)
        for shape in dict.fromkeys(((), (1,), *((x,) for x in reversed(getattr(first, "shape", ()))))):

            def change(leaf: Leaf, shape: tuple[int, ...] = shape, first: Leaf | None = first) -> Leaf:
                return leaf if leaf is first or 0 in leaf.shape else shaped(leaf, shape)

            yield changed(change, made)


def given(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield programs with parameters that have no value given one: the number that another has, which may lose its own; a
    tensor as long as an axis of the first, of the shape of another, or of none, all together and each; 1, 2.0, 0, true, an
    axis. None of those that name a dtype (`typed`): PyTorch takes `prod(x, 0)` for an axis."""
    names = [x for x in unstated(program, known) if not simpler.is_type(x)]
    numbers = {x: y for x, y in program.params.items() if isinstance(y, int | float) and not isinstance(y, bool)}
    for name in names:
        for other, number in numbers.items():
            if known.get(other, "") is None:
                made = smaller.given(program, name, number)
                yield made
                yield smaller.with_param(made, other, None) if made is not None else None
    found = smaller.leaves(program)
    dtype = next((x.dtype for x in found if "float" in x.dtype), "float32")
    channels = [(x,) for shape in (y.shape for y in found[:1]) for x in (*shape[1:2], *shape[-1:], *shape)]
    for shape in (
        dict.fromkeys((*channels, *(x.shape for x in found), ())) if _listed(program) else ()
    ):  # else they have places
        value = counted_leaf(simpler.numbered(np.ones(shape), dtype))
        whole: Instance | None = program
        for name in names:
            whole = with_input(whole, name, value) if whole is not None else None
        yield whole
        yield from (with_input(program, name, value) for name in names if len(names) > 1)
    plain: tuple[Value, ...] = (1, 2.0, 0, True, (0,))
    for value, name in itertools.product(plain, names):
        yield smaller.given(program, name, value)


def typed(program: Instance, known: Mapping[str, Value]) -> Iterator[Program | None]:
    """Yield programs that state the dtype of what they return: the first tensor's, which has another then; and another."""
    library, found = libraries.get(program.library), smaller.leaves(program)
    names = (
        [x for x in unstated(program, known) if x.rpartition("_")[2] == "dtype"] if hasattr(library, "typed") else []
    )
    for name, own in itertools.product(names[:1], [x.dtype for x in found[:1]]):
        form = cast(Typing, library).typed
        for other in OTHER_DTYPES:
            turned = smaller.as_dtype(program, own, other) if other != own else program
            yield smaller.given(turned, name, form(own)) if isinstance(turned, Instance) else None
            yield smaller.given(program, name, form(other)) if other != own else None


def unstated(program: Instance, known: Mapping[str, Value]) -> list[str]:
    """Return the parameters, and inputs that stand among them, that have no value; what has no default need not be given, if
    it is not."""
    taken = {x.name for x in program.inputs if x.value is not None}
    without = (x for x, value in known.items() if value is None or value == NO_DEFAULT)
    names = dict.fromkeys([*(x for x, value in program.params.items() if value is None), *without])
    return [x for x in names if x not in (*taken, WRITTEN) and program.params.get(x) is None]


def with_input(program: Instance, name: str, value: Value, order: Instance | None = None) -> Instance | None:
    """Return a call that is given an input in place of what it has under that name; None where it cannot be given one.

    Args:
        order: A call that has all inputs in their places.
    """
    if any(x.name == name for x in program.inputs):
        changed_one = tuple(Operand(name, value) if x.name == name else x for x in program.inputs)
        return msgspec.structs.replace(program, inputs=changed_one)
    made = program if name in program.params else smaller.given(program, name, None)
    if made is None:
        return None
    known = {x.name: x for x in (*made.inputs, Operand(name, value))}
    places = [x.name for x in order.inputs] if order is not None else []
    places = places if known.keys() <= set(places) else list(known)
    last = max(map(places.index, known))
    inputs = tuple(known.get(x, Operand(x, None)) for x in places[: last + 1])
    return msgspec.structs.replace(made, params={x: y for x, y in made.params.items() if x != name}, inputs=inputs)


def as_number(program: Instance) -> Iterator[Instance]:
    """Yield a call with a number of Python's in place of each of its tensors, beside another one: `x ** 2`, which a library
    promotes to the dtype of the tensor, and for which a compiler may have a path of its own; of integers and truth values also
    one of the next kind."""
    held = {x.name: leaf for x in program.inputs if isinstance(leaf := tensor(program, x.name), Tensor)}
    for name, leaf in held.items() if len(held) > 1 and _listed(program) else []:
        kinds: tuple[tuple[str, tuple[Value, ...]], ...] = (
            ("int", (2, 2.0)),
            ("float", (2.0,)),
            ("bool", (True, 2, 2.0)),
        )
        numbers = next((of for part, of in kinds if part in leaf.dtype), ())
        left = tuple(x for x in program.inputs if x.name != name)
        for number in numbers:
            yield msgspec.structs.replace(program, inputs=left, params={**program.params, name: number})


def as_tensor(program: Instance, known: Mapping[str, Value]) -> Iterator[Instance | None]:
    """Yield a call with a whole number in place of each fraction that has no default, or 2.0 in place of a whole one; and
    with a tensor in place of either, in the form of its first one: `x / y`; of a call without any, of no axes."""
    first = next((x.value for x in program.inputs if isinstance(x.value, Tensor)), None)
    for name, number in program.params.items() if _listed(program) else ():
        plain = (
            isinstance(number, int | float) and not isinstance(number, bool) and known.get(name) in (None, NO_DEFAULT)
        )
        if plain and not (smaller.is_axes(name) or smaller.SIZED.search(name)):
            yield smaller.with_param(program, name, 2 if isinstance(number, float) else 2.0)
            own = (
                ("float32" if isinstance(number, float) else "int64", ())
                if first is None
                else (first.dtype, first.shape)
            )
            filled = simpler.numbered(np.full(own[1], number), own[0])
            left = {key: value for key, value in program.params.items() if key != name}
            yield msgspec.structs.replace(program, inputs=(*program.inputs, Operand(name, filled)), params=left)


def mirrored(program: Instance, known: Mapping[str, Value]) -> Iterator[Instance]:
    """Yield a call with a number of Python's in the place of a tensor, and a tensor in that of the number that it has, and that
    has no default: it may be no matter which of the two is one."""
    held = {x.name: leaf for x in program.inputs if isinstance(leaf := tensor(program, x.name), Tensor)}
    numbers = {x: y for x, y in program.params.items() if isinstance(y, int | float) and not isinstance(y, bool)}
    for other, (name, number) in itertools.product(held, numbers.items()) if _listed(program) else ():
        plain = known.get(name) in (None, NO_DEFAULT) and held[other].dtype not in ("bool", "string")
        if not plain or smaller.is_axes(name) or smaller.SIZED.search(name):
            continue
        inputs = tuple(Operand(name, held[other]) if x.name == other else x for x in program.inputs)
        yield msgspec.structs.replace(
            program, inputs=inputs, params={x: y for x, y in program.params.items() if x != name} | {other: number}
        )


def _listed(program: Instance) -> bool:
    """Whether a call says how it is written, and so takes whatever stands in the place of an argument."""
    return any(isinstance(x, dict) and {"args", "kwargs"} <= x.keys() for x in program.context.values())


def unlike(program: Instance) -> Iterator[Program]:
    """Yield a call of which two tensors have one form, and are exchanged; and of which one of two dtypes is that of truth
    values: what is asked of pairs is which of them matters, and whether it matters that they differ. Indices take
    the place of a mask."""
    held = {x.name: leaf for x in program.inputs if isinstance(leaf := tensor(program, x.name), Tensor)}
    first, *others = [x for x in held if not smaller.states(held[x]) or x == next(iter(held))] or [""]
    for name in others[: TENSORS - 1]:
        one, other = held[first], held[name]
        made: list[Program | None] = []
        if one.shape != other.shape:
            made = [
                with_input(program, name, shaped(other, one.shape)),
                with_input(program, first, shaped(one, other.shape)),
            ]
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            put = with_input(program, first, other)
            made.append(with_input(put, name, one) if put is not None else None)
        for place, x in ((first, one), (name, other)) if one.dtype != other.dtype else ():
            truths = np.resize(np.array([True, False]), x.shape)
            made.append(with_input(program, place, Tensor.of(truths)) if x.dtype != "bool" else None)
        yield from (x for x in made if x is not None)
    for name in [x for x in held if held[x].dtype == "bool" and x != next(iter(held))][: TENSORS - 1]:
        made = [with_input(program, name, Tensor.of(np.zeros(held[name].shape, "int64")))]
        yield from (x for x in made if x is not None)


def strings(program: Instance) -> Iterator[Program]:
    """Yield a call with other strings: words, words with spaces about and between them, none with a letter."""
    for words in (("a", "b c", "d"), (" a ", "b  c"), ("",), (" ",)):

        def change(leaf: Leaf, words: tuple[str, ...] = words) -> Leaf:
            if leaf.dtype != "string" or not math.prod(leaf.shape):
                return leaf
            return Tensor.of(np.resize(np.array(words, object), leaf.shape), "string")

        made = changed(change, program)
        yield from [made] if made is not None and made != program else []
