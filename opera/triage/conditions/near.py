"""Programs near a failing one of a single call: ordinary inputs first, then one thing changed at a time.

Whether they mean anything is asked of their library, as of any candidate (opera.triage.reducer.reduce).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import arguments, dtypes, forms
from opera.triage.shrink import shapes, simpler, smaller
from opera.triage.shrink.smaller import Defaults, Leaf

CONVERTS = re.compile(
    r"cast|convert|quantize|(?:\.|^)(?:to|type|type_as|astype|bfloat16|half|float|double|int|short|char)$", re.I
)
"""Operators that make numbers of one dtype those of another."""


MAGNITUDES = (1.0, 500.0, -500.0, 1e6, np.nan, np.inf, -np.inf, 1e-40, 1e300)
"""Numbers within and out of the ranges of dtypes, of which other dtypes' are."""


LARGE = 300.0
"""Numbers that are larger may be out of a range."""


def alone(program: Program) -> Program | None:
    """Return the program of which the first output alone is asked for, None where it is said to have no other.

    It may be one that the program itself does not ask for. A library that does not name outputs tells whether there are others:
    it rejects this where there is one.
    """
    names = program.outputs or ("output_0",)
    if not names[0] and isinstance(program, Instance):
        return msgspec.structs.replace(program, outputs=("output_0",))
    if program.outputs and len(names) < 2:  # a node may have outputs without a name, which nobody takes
        return None
    return msgspec.structs.replace(program, outputs=tuple(filter(None, names))[:1])


def near(program: Program, defaults: Defaults) -> list[Iterator[Program | None]]:
    """Return several rows of programs near one, valid and invalid ones, the most telling of each first."""
    ordinary = next((x for x in forms.ordinary(program) if x is not None), program)
    parameters = chain(arguments.parameters(program, defaults), arguments.parameters(ordinary, defaults))
    lower = (smaller.applied(step, program) for step in shapes.ranks(program, defaults))
    ranks = chain(arguments.with_entries(program), arguments.as_long(program), lower, forms.ranks(program))
    rows = [
        forms.ordinary(program),
        chain(_of_one(program), _dtypes(program)),
        ranks,
        chain(_magnitudes(program), _signs(program)),
        parameters,
    ]
    if isinstance(program, Instance) and isinstance(ordinary, Instance):
        known = defaults.get(program.operator, {})
        rows += [
            arguments.simplest(program, known),
            arguments.given(program, known),
            arguments.unset(program, known),
            arguments.multiples(program),
        ]
        rows += [chain(arguments.axes(ordinary, known), arguments.axes(program, known))]
        numbers = [y for x in (ordinary, program) for y in (*arguments.as_number(x), *arguments.as_tensor(x, known))]
        others = [
            *arguments.unlike(program),
            *arguments.mirrored(program, known),
            *numbers,
            *arguments.strings(program),
        ]
        typed = list(arguments.typed(program, known))
        rows += [iter(x) for x in (others, typed) if x]
    return [*rows, chain(_stated(program), forms.each_counted(program)), forms.sizes(program)]


def _dtypes(program: Program) -> Iterator[Program | None]:
    """Yield programs with tensors of another dtype, if their numbers are the same in it."""
    for dtype in dict.fromkeys(x.dtype for x in smaller.leaves(program) if x.dtype in dtypes.ASKED):
        for other in dtypes.ASKED:
            made = (
                smaller.applied(partial(smaller.as_dtype, dtype=dtype, other=other), program)
                if other != dtype
                else None
            )
            if made is not None and dtypes.about_equal(made, program):
                yield made


def _of_one(program: Program) -> Iterator[Program | None]:
    """Yield a program of data of several dtypes, truth values among them, with all of it in one: what a test of two dtypes
    fails of, one of each may not."""
    held = [x for n, x in enumerate(smaller.leaves(program)) if not n or not smaller.states(x)]
    several = list(dict.fromkeys(x.dtype for x in held))
    if len(several) < 2 or not {*several} <= {*dtypes.ASKED, "bool"}:
        return

    def change(leaf: Leaf, dtype: str) -> Leaf:
        return simpler.as_dtype(leaf, leaf.dtype, dtype) if any(leaf is x for x in held) else leaf

    for dtype in dict.fromkeys(("float32", "int32", *several)):
        yield smaller.applied(lambda x, dtype=dtype: smaller.mapped(x, partial(change, dtype=dtype)), program)  # type: ignore[misc]


def _with_numbers(leaf: Leaf, numbers: np.ndarray[Any, Any]) -> Leaf:
    return simpler.numbered(numbers, leaf.dtype)


def _stated(program: Program) -> Iterator[Program | None]:
    """Yield other numbers of small inputs beside the first: sizes one more, 1 or 2; scales a half, two, three quarters."""
    for place, leaf in list(enumerate(smaller.leaves(program)))[1:]:
        if not isinstance(leaf, Tensor) or len(leaf.shape) != 1 or not 0 < leaf.shape[0] <= smaller.SPELLED:
            continue
        numbers = simpler.numbers(leaf)
        for at in range(leaf.shape[0]) if leaf.dtype in ("int32", "int64", "float32") else ():
            old = numbers[at]
            more = old + int("int" in leaf.dtype and old < np.iinfo(numbers.dtype).max)
            for new in (more, 1, 2) if "int" in leaf.dtype else (0.5, 2.0, 0.75) if old != 1 else ():
                made = np.where(np.arange(leaf.shape[0]) == at, new, numbers)
                yield smaller.applied(smaller.at(place, partial(_with_numbers, numbers=made)), program)
        for evenly in arguments.evenly(numbers.tolist()) if "int" in leaf.dtype else ():
            yield smaller.applied(smaller.at(place, partial(_with_numbers, numbers=np.array(evenly))), program)


def _magnitudes(program: Program) -> Iterator[Program | None]:
    """Yield other numbers in the first tensor of what converts numbers, or of which some are special: in and out of ranges."""
    first = next(iter(smaller.leaves(program)), None)
    if not isinstance(first, Tensor) or first.dtype == "string" or not first.array().size:
        return
    numbers = simpler.numbers(first)
    odd = numbers.dtype.kind == "f" and not (np.isfinite(numbers) & (np.abs(numbers) < LARGE)).all()
    if odd or any(CONVERTS.search(x) for x in program.operators):
        for number in MAGNITUDES if numbers.dtype.kind == "f" else (1, 3, -1, 100):
            with np.errstate(over="ignore", invalid="ignore"):
                made = np.full(first.shape, number, np.float64).astype(numbers.dtype)
            if not np.isfinite(number) or np.isfinite(made).all():
                yield smaller.applied(smaller.at(0, partial(_with_numbers, numbers=made)), program)


def _signs(program: Program) -> Iterator[Program | None]:
    """Yield programs with the other sign of all numbers of a tensor that has negative ones, or is of integers beside the first:
    indices count from the other end then."""
    for place, leaf in enumerate(smaller.leaves(program)[: forms.TENSORS]):
        if isinstance(leaf, Tensor) and re.fullmatch(r"int\d+|b?float(16|32|64)", leaf.dtype) and leaf.array().size:
            numbers = simpler.numbers(leaf)
            negative = bool((numbers < 0).any())
            for made in (np.abs(numbers),) if negative else (-np.maximum(numbers, 1),) if place else ():
                yield smaller.applied(smaller.at(place, partial(_with_numbers, numbers=made)), program)
