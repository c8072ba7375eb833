"""What is peculiar about the values and shapes of a program, each with programs that lack it (`triage.conditions.deciding`).

Everything here is a function of the program alone: special numbers, emptiness, ranks, shifts, masks, parts, branches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.oracle import ties
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import CONTAINERS, Message, RandomTensor, Tensor, Value
from opera.triage.conditions.representable import beyond
from opera.triage.sentence import BRANCH, EMPTY, EQUAL, LENGTH_ONE, LIMIT
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

Array: TypeAlias = np.ndarray[Any, Any]
Peculiar: TypeAlias = tuple[str, list[Program | None]]
"""How it is told, and the programs that lack it and are the same else."""

SCALAR, RANK = "a 0-d input", "an input of rank"
FAR, LOST = "a shift not below the width", "bits that are shifted out"
MASKED, SHORT = "a fully masked row", "a mask shorter than the keys"
PART, FRACTION = "a part of size 0 that is not the last", "scales that give no whole size"
TIE = "a tie to round"
NUDGE = 2.0**-10
"""What is added to a number, relatively, to see whether it decides that it is just this one."""
NEGATIVE, BEYOND_INT32 = "a negative number", "a number beyond int32"
NEGATIVE_INPUT = f"{NEGATIVE} in an input"
SPECIAL: dict[str, Callable[[Array], Array]] = {
    "NaN": np.isnan,
    "infinity": np.isinf,
    BEYOND_INT32: lambda numbers: (numbers.dtype.kind in "iu") & beyond(numbers, "int32"),
    NEGATIVE: lambda numbers: np.isfinite(numbers) & (numbers < 0),
}
"""What elements may be that decides → which of them are so; 1 takes their place, of a negative one its absolute value."""


def _end(numbers: Array, *, least: bool) -> Array:
    if numbers.dtype.kind not in ("i" if least else "iu"):
        return np.zeros(numbers.shape, bool)
    held = np.iinfo(numbers.dtype)
    return np.asarray(numbers == (held.min if least else held.max))


ENDS: dict[str, Callable[[Array], Array]] = {
    "the least number of its dtype": partial(_end, least=True),
    "the largest number of its dtype": partial(_end, least=False),
}
"""Which integers are the ends of their dtype: what compares with them, or turns their sign, is wrong of these alone."""
TOLD = {**SPECIAL, **ENDS, "0": lambda numbers: numbers == 0}
"""Which numbers in an input may be told to decide: 0, too, which most programs hold, and which is asked about last."""
ATTEND = ("Attention", "scaled_dot_product_attention")
"""Operators of which a boolean mask says what is attended to; others' say what is not."""
DISTINCT = ("float32", "float64", "int32", "int64")
"""Dtypes of which elements can differ by little."""
BRANCHES = ("then_branch", "else_branch")
SHIFT, SPLIT, SCALES, SIZES = (
    re.compile(x, re.IGNORECASE) for x in ("shift", "split", r"^scales?(_factors?)?$", r"^(sizes?|shape)$")
)
"""Operators that shift and split; inputs that state scales and sizes."""


def values(program: Program) -> Iterator[Peculiar]:
    """Yield what is peculiar, in the order in which it is asked about."""
    found = smaller.leaves(program)
    if isinstance(program, Instance):
        for says, made in (
            (BRANCH, _branch(program)), (FAR, _near(program)), (LOST, _kept(program)), (MASKED, _unmasked(program)),
            (SHORT, _longer_mask(program)),
            (PART, _parted(program)), (FRACTION, _whole(program)), (TIE, _untied(program)),
        ):  # fmt: skip
            if made is not None:
                yield says, [made]
    for says, where in SPECIAL.items():
        if any(has(x, where) for x in found):
            yield f"{says} in an input", [changed(partial(_plain, where=where), program)]
    if any(0 in x.shape for x in found):
        yield EMPTY, [changed(_filled, program)]
    for rank in sorted({len(x.shape) for x in found}):
        steps = [partial(step, rank=rank) for step in (_one_axis_more, _one_axis_less)]
        alone = [smaller.applied(smaller.at(0, step), program) for step in steps]
        more = [changed(_one_more, program)] if found and len(found[0].shape) == rank > 0 else []
        yield of_rank(rank), [*(changed(step, program) for step in steps), *alone, *more]


def of_rank(rank: int) -> str:
    """Return how it is told that an input has so many axes."""
    return f"a {rank}-d input" if rank < 2 else f"{RANK} {rank}"


def is_rank(says: str) -> bool:
    """Whether this tells how many axes an input has."""
    return unnamed_rank(says).startswith((RANK, of_rank(0), of_rank(1)))


def unnamed_rank(says: str) -> str:
    """Return how it is told without a name that an input of this name has so many axes (`B of rank 1`); all else as it is."""
    found = re.fullmatch(r"\S+ of rank (\d+)", says)
    return of_rank(int(found[1])) if found else says


def unnamed(says: str) -> str:
    """Return how it is told without a name what is told of one input by its name, a rank or a negative number; all else as it
    is."""
    return NEGATIVE_INPUT if re.fullmatch(rf"{NEGATIVE} in \S+", says) else unnamed_rank(says)


def group(program: Program, says: str) -> str:
    """Return the name of a group of which the first that decides is told; empty for what is of none.

    What is empty has, with another rank, another axis reduced. A shift that passes in wider integers is told by itself, not by
    their dtype.
    """
    if says == EMPTY or is_rank(says):
        return "form"
    found = _shift(program) if isinstance(program, Instance) and says in (FAR, LOST) else None
    return found[0].value.dtype if found is not None and isinstance(found[0].value, Tensor) else ""


def makes(name: str, says: str) -> bool:
    """Whether a parameter or an input of this name is but a way to what is told so."""
    ways = {MASKED: r"causal|mask|seqlen", SHORT: "mask", PART: "split", FRACTION: "scale"}
    return says in ways and name != says and re.search(ways[says], name.removeprefix("input ")) is not None


def is_special(program: Program) -> bool:
    """Whether NaN or infinity is among the numbers of a program's inputs."""
    return any(has(x, SPECIAL[says]) for x in smaller.leaves(program) for says in ("NaN", "infinity"))


def relations(program: Program) -> Iterator[Peculiar]:
    """Yield how numbers and sizes stand to each other: an axis of length 1, equal elements, a number just at a limit."""
    found = smaller.leaves(program)
    if any(1 in x.shape for x in found):
        for axis in range(max(len(x.shape) for x in found)):
            yield f"{LENGTH_ONE} {axis}", [changed(partial(_longer, axis=axis), program)]
    yield EQUAL, [changed(_distinct, program)]
    for name, made in _nudged(program):
        yield f"{name} {LIMIT}", made


def changed(change: Callable[[Leaf], Leaf], program: Program) -> Program | None:
    """Return the program with all inputs changed, and tensors in parameters."""
    return smaller.applied(lambda x: smaller.mapped(x, change), program)


# ---------------------------------------------------------------------- what values mean to an operator


def _branch(program: Instance) -> Program | None:
    """Put the branch that is taken in place of the other."""
    cond = next((x.value for x in program.inputs), None)
    if not isinstance(cond, Tensor) or cond.dtype != "bool" or cond.array().size != 1:
        return None
    taken, other = BRANCHES if cond.array().any() else reversed(BRANCHES)
    held = program.params.get(taken)
    return smaller.with_param(program, other, held) if isinstance(held, Message) else None


def _shift(program: Instance) -> tuple[Operand, Array, int] | None:
    """Return the input that says how far integers are shifted, its numbers, and the bits of what is shifted."""
    given = [x for x in program.inputs if isinstance(x.value, Tensor) and "int" in x.value.dtype]
    if not SHIFT.search(program.operator) or len(given) < 2 or not isinstance(given[-1].value, Tensor):
        return None
    numbers = given[-1].value.array()
    return given[-1], numbers, 8 * numbers.dtype.itemsize


def _near(program: Instance) -> Program | None:
    """Shift by 1 what is shifted by its width or more."""
    if (found := _shift(program)) is None or not (found[1] >= found[2]).any():
        return None
    return _with(program, found[0].name, np.where(found[1] >= found[2], 1, found[1]))


def _kept(program: Instance) -> Program | None:
    """Shift left by a proper number of bits what fits into its dtype afterwards, too."""
    said = " ".join((program.operator, *(x for x in program.params.values() if isinstance(x, str))))
    if (found := _shift(program)) is None or "left" not in said.lower():
        return None
    operand, far, width = found
    first = next(x for x in program.inputs if isinstance(x.value, Tensor))
    held = first.value.array() if isinstance(first.value, Tensor) and first is not operand else None
    if held is None or held.dtype != far.dtype or ((far < 0) | (far >= width)).any():
        return None
    try:
        lost = np.asarray((held << far) >> far != held)
    except ValueError:  # shapes that do not go together
        return None
    if not lost.any():
        return None
    return _with(program, first.name, np.where(lost, 0, held) if lost.shape == held.shape else np.zeros_like(held))


def _unmasked(program: Instance) -> Program | None:
    """Let rows of an attention mask that exclude everything attend to the first element, and cut off rows that have no key."""
    q, k, past = _attended(program)
    if q is None or k is None or not isinstance(q.value, Tensor):
        return None
    causal = any("causal" in name and value in (1, True) for name, value in program.params.items())
    made, rows = program, q.value.shape[-2]
    for x in program.inputs:
        if not isinstance(x.value, Tensor):
            continue
        if x.name.lower().endswith("mask") and len(x.value.shape) > 1:
            made = _with(made, x.name, _opened(program, x.value, past if causal else None))
        elif "seqlen" in x.name and x.value.array().size:
            keys = np.maximum(x.value.array(), 1)
            made = _with(made, x.name, keys)
            if causal and keys.min() < rows:  # the last row sees all keys
                cut = q.value.array()[..., rows - int(keys.min()) :, :]
                made = with_input(made, q.name, Tensor.of(cut, q.value.dtype))
    return made if made != program else None


def _longer_mask(program: Instance) -> Program | None:
    """Exclude the keys that a mask is too short for, in its own words."""
    _, k, past = _attended(program)
    mask = next((x for x in program.inputs if x.name.lower().endswith("mask") and isinstance(x.value, Tensor)), None)
    if (
        k is None
        or mask is None
        or not isinstance(mask.value, Tensor)
        or not isinstance(k.value, Tensor | RandomTensor)
    ):
        return None
    numbers = mask.value.numbers()
    lacking = k.value.shape[-2] + past - (numbers.shape[-1] if numbers.ndim > 1 else 1 << 30)
    if lacking <= 0 or numbers.dtype.kind not in "bf":
        return None
    none = numbers.dtype.type(False if numbers.dtype == bool else -np.inf)
    more = np.pad(numbers, [*[(0, 0)] * (numbers.ndim - 1), (0, lacking)], constant_values=none)
    return _with(program, mask.name, more)


def _attended(program: Instance) -> tuple[Operand | None, Operand | None, int]:
    """Return the queries and keys of an attention, and how many keys stand before these."""
    held = {
        x.name.lower(): x
        for x in program.inputs
        if isinstance(x.value, Tensor | RandomTensor) and len(x.value.shape) > 1
    }
    q, k = (next((held[x] for x in names if x in held), None) for names in (("q", "query"), ("k", "key")))
    past = held["past_key"].value if "past_key" in held else None
    return q, k, past.shape[-2] if isinstance(past, Tensor | RandomTensor) else 0


def _opened(program: Instance, mask: Tensor, past: int | None) -> Array:
    """Return a mask each row of which attends to something; `past`: elements before the first that causality lets a row see."""
    numbers = mask.numbers()
    if (numbers.dtype == bool and program.operator.rpartition(".")[2] not in ATTEND) or numbers.dtype.kind not in "bf":
        return numbers
    allowed = numbers if numbers.dtype == bool else numbers > -np.inf
    seen = allowed if past is None else allowed & np.tril(np.ones(allowed.shape[-2:], bool), past)
    nothing = np.asarray(~seen.any(-1))
    numbers[..., :1] = np.where(nothing[..., None], numbers.dtype.type(numbers.dtype == bool), numbers[..., :1])
    return numbers


def _untied(program: Instance) -> Program | None:
    """Return a call that rounds no number exactly between two integers, None where it rounds none."""
    found = ties.untied(program)
    return None if found is None else _with(program, *found)


def _parted(program: Instance) -> Program | None:
    """Let no part but the last have size 0, where an input or a parameter tells the sizes of parts."""
    data = next((x for x in program.inputs if isinstance(x.value, Tensor)), None)
    if data is None or not isinstance(data.value, Tensor) or not SPLIT.search(program.operator):
        return None
    for name, sizes in _lists(program):
        shape = list(data.value.shape)
        if 0 not in sizes[:-1] or sum(sizes) not in shape:
            continue
        sized = [*(x or 1 for x in sizes[:-1]), 0]
        shape[shape.index(sum(sizes))] = sum(sized)
        return _with_list(_with(program, data.name, np.ones(shape)), name, sized)
    return None


def _whole(program: Instance) -> Program | None:
    """Let scales be such that sizes times them are whole numbers, rounded down; that passes of more and other numbers, too."""
    data = next((x for x in program.inputs if isinstance(x.value, Tensor)), None)
    scales = next((x for x in program.inputs if SCALES.search(x.name) and isinstance(x.value, Tensor)), None)
    if data is None or scales is None or not isinstance(scales.value, Tensor) or not isinstance(data.value, Tensor):
        return None
    factors, shape = scales.value.numbers().astype(np.float64), np.array(data.value.shape)
    if factors.shape != shape.shape or not shape.all() or not np.isfinite(factors).all():
        return None
    sizes = np.floor(factors.astype(np.float32) * shape.astype(np.float32))
    if (sizes < 1).any() or np.allclose(sizes, factors * shape, rtol=1e-5):
        return None
    longer = np.tile(data.value.array(), np.where(sizes == shape, 1, 3))
    made = with_input(program, data.name, simpler.counted(Tensor.of(longer, data.value.dtype)))
    return _with(made, scales.name, sizes / shape)


def every_axis(program: Program, name: str) -> Program | None:
    """Return the program with a parameter that lists some axes left out, and inputs of as many numbers given for all axes.

    Of axes that were not listed a size stays as it is, a scale is 1.
    """
    if not isinstance(program, Instance) or not smaller.AXES.search(name):
        return None
    data = next((x.value for x in program.inputs if isinstance(x.value, Tensor | RandomTensor)), None)
    axes: Any = program.params.get(name)
    if data is None or not isinstance(axes, list | tuple):
        return None
    if not all(isinstance(x, int) and -len(data.shape) <= x < len(data.shape) for x in axes):
        return None
    made = smaller.without(program, name)
    for operand in program.inputs[1:] if made is not None else ():
        if not isinstance(operand.value, Tensor) or not operand.value.array().size:
            continue
        given = operand.value.array()
        whole = np.array(data.shape) if SIZES.search(operand.name) else np.ones(len(data.shape))
        if given.shape != (len(axes),) or not (SIZES.search(operand.name) or SCALES.search(operand.name)):
            return None
        whole = whole.astype(given.dtype)
        whole[list(axes)] = given
        made = _with(made, operand.name, whole) if made is not None else None
    return made


def _lists(program: Instance) -> Iterator[tuple[str, list[int]]]:
    """Yield lists of integers that are parameters or inputs, by their names."""
    for name, value in program.params.items():
        if isinstance(value, list | tuple) and value and all(isinstance(x, int) for x in value):
            yield name, [int(x) for x in value if isinstance(x, int)]
    for x in program.inputs:
        if isinstance(x.value, Tensor) and x.value.dtype in ("int32", "int64") and len(x.value.shape) == 1:
            yield x.name, x.value.array().tolist()


def _with_list(program: Instance, name: str, numbers: list[int]) -> Instance:
    if name in program.params:
        return msgspec.structs.replace(program, params={**program.params, name: numbers})
    return _with(program, name, np.array(numbers))


def _with(program: Instance, name: str, numbers: Array) -> Instance:
    """Return a call with other numbers of an input, in its dtype."""
    held = next(x.value for x in program.inputs if x.name == name)
    if not isinstance(held, Tensor):
        return program
    made = simpler.numbered(numbers, held.dtype) if held.dtype != "bool" else Tensor.of(numbers)
    return with_input(program, name, made)


def with_input(program: Instance, name: str, value: Value) -> Instance:
    """Return a call with another value of an input."""
    inputs = (msgspec.structs.replace(x, value=value) if x.name == name else x for x in program.inputs)
    return msgspec.structs.replace(program, inputs=tuple(inputs))


# ---------------------------------------------------------------------- changed tensors


def _one_axis_more(leaf: Leaf, rank: int) -> Leaf:
    return _shaped(leaf, (1, *leaf.shape)) if len(leaf.shape) == rank else leaf


def _one_more(leaf: Leaf) -> Leaf:
    return _shaped(leaf, (1, *leaf.shape))


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
    """Let elements differ, each a little more than the one before, where some are equal."""
    if not isinstance(leaf, Tensor) or leaf.dtype not in DISTINCT or leaf.array().size < 2:
        return leaf
    numbers = simpler.numbers(leaf)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) == numbers.size:
        return leaf
    more = np.arange(numbers.size).reshape(numbers.shape) * (1 if numbers.dtype.kind == "i" else NUDGE)
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
                yield operand.name, [with_input(program, operand.name, x) for x in made]


def _steps(number: float) -> tuple[float, float]:
    size = NUDGE * (abs(number) or 1.0)
    return size, -size


def filled(program: Program, number: float) -> Program | None:
    """Return a program that computes on this number where it computes on nothing, in inputs of floating-point numbers."""

    def change(leaf: Leaf) -> Leaf:
        return Tensor.of(np.full([x or 1 for x in leaf.shape], number, leaf.dtype)) if 0 in leaf.shape else leaf

    held = [x for x in smaller.leaves(program) if 0 in x.shape]
    return changed(change, program) if all(x.dtype in ("float16", "float32", "float64") for x in held) else None


def _filled(leaf: Leaf) -> Leaf:
    if 0 not in leaf.shape or leaf.dtype not in CONTAINERS:
        return leaf
    return simpler.numbered(np.ones([x or 1 for x in leaf.shape]), leaf.dtype)


def _plain(leaf: Leaf, where: Callable[[Array], Array]) -> Leaf:
    if not isinstance(leaf, Tensor) or leaf.dtype == "string":
        return leaf
    numbers = simpler.numbers(leaf)
    if numbers.dtype.kind not in "fiu" or not (found := where(numbers)).any():
        return leaf
    if where is SPECIAL[NEGATIVE]:
        return simpler.numbered(np.where(found, np.abs(numbers), numbers), leaf.dtype)
    one = simpler.numbered(np.ones(1), leaf.dtype).array()[0]
    return Tensor.of(np.where(found, one, leaf.array()), leaf.dtype)


def has(leaf: Leaf, where: Callable[[Array], Array]) -> bool:
    """Whether a tensor holds such a number."""
    return _plain(leaf, where) != leaf
