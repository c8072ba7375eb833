"""Dtypes of inputs: in which others a program is asked about, and how those are told with which it fails."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

import msgspec
import numpy as np

from opera.programs.program import Program
from opera.programs.values import CONTAINERS, Named, Tensor, Value
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

ASKED = (
    "float32", "float64", "int64", "int32", "float16", "bfloat16", "uint8", "int8", "uint64", "uint32", "int16", "uint16",
)  # fmt: skip
"""Dtypes that take another's place, those first that are the most common."""
COMMON = 4
"""So many of these are asked about first: where the program fails alike in all that say anything, no more are."""
FLOATS, UNSIGNED, INTEGERS = (frozenset(x for x in CONTAINERS if re.match(y, x)) for y in ("b?float", "uint", "u?int"))
INTEGER, FLOATING = "integer inputs", "floating-point inputs"
PROMOTED, TENSORS_PROMOTED = "inputs promoted to ", "tensors promoted to "
"""How it is told to which dtype inputs are promoted, with the numbers of Python's among them, or without."""
NUMERIC, WHOLE = "numeric inputs", "integer or bool inputs"
NARROW = "integer inputs narrower than 64 bits"
OTHER_FLOATS, NO_FLOAT32 = f"{FLOATING} other than float32", "non-float32 inputs"
KINDS: Mapping[str, frozenset[str]] = {
    "unsigned inputs": UNSIGNED,
    NARROW: INTEGERS - {"int64", "uint64"},
    INTEGER: INTEGERS,
    WHOLE: INTEGERS | {"bool"},
    OTHER_FLOATS: FLOATS - {"float32"},
    FLOATING: FLOATS,
    NO_FLOAT32: (FLOATS | INTEGERS | {"bool"}) - {"float32"},
    NUMERIC: FLOATS | INTEGERS,
}
"""How dtypes are told together, the fewest first."""
OTHERS: Mapping[str, frozenset[str]] = {f"{x} other than ": KINDS[x] for x in (INTEGER, NUMERIC)}
"""How it begins that they are told by those of a kind that pass, and the kind, the fewer first."""


def told(failing: Collection[str], passing: Collection[str]) -> str:
    """Return how it is told that programs of these dtypes fail; empty where those that fail are no kind.

    Several are told as the least kind that has them all, if none of it passes; that float32 is none of it, if it passes; and
    where nearly all were asked about, by those that pass, if these are fewer.
    """
    bad, good = frozenset(failing), frozenset(passing) - frozenset(failing)
    if good == {"bool"} and bad & FLOATS and bad & INTEGERS and bad <= KINDS[NUMERIC]:
        return NUMERIC
    mixed = "float32" in bad and not bad <= FLOATS
    for says, kind in KINDS.items() if len(bad) > 1 and not mixed else ():
        plain = "float32" in bad if says == FLOATING else "float32" in good or says not in (OTHER_FLOATS, NO_FLOAT32)
        plain = plain and (says != NARROW or "int64" in good) and says != NUMERIC
        if bad <= kind and not good & kind and plain:
            return says
    for says, kind in OTHERS.items():
        right = good & kind
        if bad <= kind and 1 <= len(right) < len(bad) - 1 and len((bad | right) & {*ASKED}) >= len(kind & {*ASKED}) - 1:
            return f"{says}{either(right).replace(' or ', ' and ')}"
    return f"{either(bad)} inputs" if bad and not mixed else ""


def either(dtypes: Iterable[str]) -> str:
    """Return names of dtypes as they are told: `float16, float64 or int8`."""
    *some, last = sorted(dtypes, key=lambda x: (x.rstrip("0123456789"), len(x), x))
    return f"{', '.join(some)} or {last}" if some else last


def members(says: str) -> frozenset[str]:
    """Return the dtypes that are told so: `float16 or float64 inputs`; none where something else is told."""
    for others, kind in OTHERS.items():
        if says.startswith(others):
            return kind - set(re.split(r", | and ", says.removeprefix(others)))
    names = re.split(r", | or ", says.removesuffix(" inputs")) if says.endswith(" inputs") else []
    return KINDS.get(says) or (frozenset(names) if CONTAINERS.keys() >= set(names) else frozenset())


def unpromoted(says: str) -> str:
    """Return how a dtype is told of inputs themselves where it is told that they are promoted to it."""
    form = next((x for x in (PROMOTED, TENSORS_PROMOTED) if says.startswith(x)), None)
    return says if form is None else f"{says.removeprefix(form)} inputs"


def name_of(value: Value) -> str:
    """Return the dtype that a parameter names, empty where it names none."""
    if isinstance(value, Named):
        return value.name if value.kind.endswith("dtype") else ""
    return value if isinstance(value, str) and value in CONTAINERS else ""


def promoted(program: Program) -> str:
    """Return the dtype to which those of all tensors are promoted, as PyTorch and Keras do it: floats before integers, the
    wider first, float32 of two that hold neither; empty of no tensors, and of dtypes that nobody promotes.

    In PyTorch tensors without axes have no say beside such as have some and are of their kind (torch.result_type).
    """
    every = smaller.leaves(program)
    held = {x.dtype for x in every}
    if len(held) < 2:
        return next(iter(held), "")
    if not held <= {*ASKED, "bool"}:
        return ""
    of = held & FLOATS or held - {"bool"}
    if of and program.instances()[0].library == "torch":
        of = {x.dtype for x in every if x.dtype in of and x.shape} or of
    if of & {"bfloat16"}:
        return next((x for x in ("float64", "float32") if x in of), "bfloat16" if len(of) == 1 else "float32")
    return str(np.result_type(*sorted(of)))


def ordinary(program: Program) -> Program | None:
    """Return a program with 1, 2, 3, ... in all tensors of the first one's dtype that do not state sizes beside it; one
    number is a 2, for 1 is what it is squared, and true."""
    first = next(iter(smaller.leaves(program)), None)

    def change(leaf: Leaf) -> Leaf:
        data = first is not None and leaf.dtype == first.dtype and (leaf is first or not smaller.states(leaf))
        return simpler.counted(leaf, first=2 if leaf is first and math.prod(leaf.shape) == 1 else 1) if data else leaf

    return smaller.applied(lambda x: smaller.mapped(x, change), program)


def as_bool(program: Program) -> Program | None:
    """Return a program of truth values in place of numbers of the first tensor's dtype, True and False in turn; None where some
    of them may be sizes or indices."""
    found = smaller.leaves(program)
    first = found[0] if found and found[0].dtype in FLOATS | INTEGERS else None
    if first is None or any(x.dtype == first.dtype and smaller.states(x) for x in found[1:]):
        return None

    def change(leaf: Leaf) -> Leaf:
        truth = np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 2 == 0
        return Tensor.of(truth) if leaf.dtype == first.dtype else leaf

    return smaller.applied(lambda x: smaller.mapped(x, change), program)


def others(program: Program) -> Iterator[dict[str, Program]]:
    """Yield a program by the other dtypes that its tensors may have: all of the first one's, for these may share a type, then
    the first alone. Of what another dtype does not hold nothing is made."""
    found = smaller.leaves(program)
    dtype = found[0].dtype if found else ""
    for alone in (False, True) if sum(x.dtype == dtype for x in found) > 1 else (False,):
        made = {x: of_other(program, dtype, x, alone=alone) for x in _asked(dtype) if x != dtype}
        yield {x: y for x, y in made.items() if y is not None and about_equal(y, program)}


def unlike(program: Program) -> list[Program]:
    """Return the program with one alone of its first two tensors of one dtype of another kind: a float in place of an integer
    or a truth value, or an integer in place of a float; if its first two have two dtypes, with both in one of them. Which of
    two it is, or both, or that they differ, tells what is told of them."""
    found = smaller.leaves(program)
    dtype = found[0].dtype if found else ""
    if len(found) > 1 and found[1].dtype != dtype and {dtype, found[1].dtype} <= {*ASKED, "bool"}:
        pairs = [(1, found[1].dtype, dtype), (0, dtype, found[1].dtype)]
    else:
        places = [n for n, x in enumerate(found) if x.dtype == dtype != "string"][:2]
        pairs = [(n, dtype, "int64" if dtype in FLOATS else "float32") for n in places if len(places) > 1]
    made = [
        smaller.applied(smaller.at(place, partial(simpler.as_dtype, dtype=own, other=other)), program)
        for place, own, other in pairs
    ]
    return [x for x in made if x is not None and x != program]


def _asked(dtype: str) -> tuple[str, ...]:
    """Return the dtypes that are asked about beside one: of one of fewer than 8 bits, or a float of 8, all such, too; of
    complex numbers those of another width."""
    some = ([x for x in CONTAINERS if re.match(y, x)] for y in (r"float[48]|u?int[24]$", "complex"))
    return (*ASKED, *next((x for x in some if dtype in x), []))


def of_other(program: Program, dtype: str, other: str, *, alone: bool = False) -> Program | None:
    """Return a program with tensors of one dtype in another, all or the first alone; 1, 2, 3, ... take the place of strings."""

    def numbered(leaf: Leaf) -> Leaf:
        return simpler.counted(simpler.numbered(np.ones(leaf.shape), other)) if leaf.dtype == dtype else leaf

    change = numbered if dtype == "string" else partial(simpler.as_dtype, dtype=dtype, other=other)
    if alone:
        return smaller.applied(smaller.at(0, change), program)
    if dtype == "string":
        return smaller.applied(lambda x: smaller.mapped(x, change), program)
    return smaller.applied(partial(smaller.as_dtype, dtype=dtype, other=other), program)  # parameters that name it, too


def named(value: Value) -> list[Value]:
    """Return other dtypes in place of a parameter's value that names one: `torch.float16`, `"float16"`."""
    others = [x for x in _asked(name_of(value)) if x != name_of(value)] if name_of(value) else []
    return [msgspec.structs.replace(value, name=x) for x in others] if isinstance(value, Named) else [*others]


def about_equal(one: Program, other: Program) -> bool:
    """Whether numbers are about the same in other dtypes: 300 is no uint8, 1e6 no float16."""
    return all(map(about_equal_leaves, smaller.leaves(one), smaller.leaves(other)))


def about_equal_leaves(one: Leaf, other: Leaf) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.dtype == other.dtype:
        return True
    if "string" in (one.dtype, other.dtype):
        return True
    now, before = (simpler.numbers(x).real.astype("float64") for x in (one, other))
    return bool(np.allclose(now, before, rtol=1e-2, atol=1.0 if "int" in one.dtype else 1e-2, equal_nan=True))


def equal(one: Leaf, other: Leaf) -> bool:
    """Whether two tensors hold the same numbers, in whatever dtypes and shapes, as far as they are numbers."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or "string" in (one.dtype, other.dtype):
        return one == other
    numbers, others = (simpler.numbers(x).ravel() for x in (one, other))
    return bool(np.array_equal(numbers, others))
