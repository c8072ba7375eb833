"""A program with other values of one thing alone: whole numbers and fractions, both signs, sizes; lists longer and shorter.

They are the first to say whether the value that is told decides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions import arguments, dtypes, forms, peculiar
from opera.triage.conditions.arguments import is_flag, with_input
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.peculiar import Array, changed
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

WHOLE, FRACTIONS = (0, 1, 2, -1, 3), (0.5, 1.5, 2.5, -0.5)
"""Numbers in place of another, of integers the first alone."""
EXACT = 2**24
"""Beyond it float32 holds no odd number: integers that are computed in it are right if it holds them."""
SEPARATORS = (" ", ",", "--", "a")
"""Strings in place of one without letters and digits."""
RANKS = (1, 2, 3, 4)
"""Ranks that two tensors are given, each with each."""
LIMITED = ("uint8", "int8")
"""Dtypes of integers that are passed by a number that makes nothing large."""
SEED = "seed"
"""What is in the name of a parameter that seeds draws."""
MOST, LEFT, LENGTHS = 12, 16, 4
"""Other values of one thing, and programs that are given what is left out, at most; and lengths that these are given."""


def numbers(own: float, default: object = None) -> list[Value]:
    """Return other numbers in place of one: whole ones and fractions, both signs, both sides of it and of its default."""
    sides = [default - 1, default + 1] if type(default) in (int, float) else []  # type: ignore[operator]
    made: list[float] = [*WHOLE, -own, own + 1, own - 1, 2 * own, *sides]
    if isinstance(own, float):
        made = [*WHOLE[:4], *FRACTIONS, -own, own / 2, 2 * own, 10 * own, *sides]
    alike: list[Value] = [float(x) if isinstance(own, float) else int(x) for x in made]
    return [x for x in dict.fromkeys(alike) if not smaller.same(x, own)]


def lists(own: Sequence[int], rank: int, *, axes: bool) -> list[list[int]]:
    """Return other lists in place of one: an element more and fewer, another order, none; of axes all, in order and not, and
    counted from the other end."""
    held = list(own)
    if axes:
        ends = [x - rank if x >= 0 else x + rank for x in held]
        more = next(([*held, x] for x in range(rank) if x not in held and x - rank not in held), held)
        made = [[*range(rank)], [*range(rank)][::-1], more, held[:-1], ends, held[::-1], [], [0], [rank - 1]]
    else:
        last = held[-1] if held else 1
        made = [[*held, last], [1, *held], held[:-1], held[::-1], [1] * len(held), [x + 1 for x in held], []]
    found = {tuple(x): x for x in made}
    found.pop(tuple(held), None)
    return [*found.values()]


def of_parameter(program: Instance, name: str, known: Mapping[str, Value]) -> Iterator[Instance]:
    """Yield a call with other values of a parameter, or of one that has its default: a flag turned, each axis, other dtypes and
    separators; lists of axes, with sizes and scales of these."""
    own, first = program.params.get(name, smaller.default(known, name)), next(iter(smaller.leaves(program)), None)
    rank = len(first.shape) if first is not None else 0
    others: list[Value] = []
    if isinstance(own, bool):
        others = [not own]
    elif isinstance(own, int) and is_flag(name, own, known):
        others = [1 - own]
    elif isinstance(own, int) and smaller.is_axes(name):
        others = [x for x in range(-max(rank, 1), max(rank, 1)) if x != own]  # 0-d tensors may be taken for 1-d ones
    elif simpler.is_type(name):
        others = dtypes.named(own)
    elif isinstance(own, str) and separates(own):
        others = [x for x in SEPARATORS if x != own]
    elif isinstance(own, int | float):
        others = numbers(own, smaller.default(known, name))
    elif isinstance(own, list | tuple) and all(type(x) is int for x in own):
        axes = lists(smaller.integers(own), rank, axes=smaller.is_axes(name))
        whole = peculiar.every_axis(program, name)
        yield from (x for of in axes if isinstance(whole, Instance) and (x := _along(whole, name, type(own)(of), rank)))
        others = [type(own)(x) for x in axes]
    put_in = smaller.with_param if name in program.params else smaller.given
    for value in others:
        if (put := put_in(program, name, value)) is not None:
            yield put


def separates(text: str) -> bool:
    """Whether a string is one that separates others, and no name of a way to do something."""
    return len(text) == 1 or (text != "" and not any(map(str.isalnum, text)))


def _along(whole: Instance, name: str, axes: Sequence[int], rank: int) -> Instance | None:
    """Return a call with a list of axes, and of inputs that have a number for each axis those of these axes."""
    if not all(-rank <= x < rank for x in axes) or not axes:
        return None
    made = smaller.given(whole, name, axes)
    for x in whole.inputs[1:] if made is not None else ():
        sized = peculiar.SIZES.search(x.name) or peculiar.SCALES.search(x.name)
        if isinstance(x.value, Tensor) and x.value.shape == (rank,) and sized and made is not None:
            made = with_input(made, x.name, simpler.numbered(x.value.array()[list(axes)], x.value.dtype))
    return made


def of_input(program: Instance, name: str) -> Iterator[Program]:
    """Yield a call with other numbers of an input: a list of integers as one of a parameter, else all the same number."""
    held, first = tensor(program, name), next(iter(smaller.leaves(program)), None)
    if not isinstance(held, Tensor) or held.dtype in ("bool", "string") or held.dtype.startswith("complex"):
        return
    made: list[Array] = []
    if held is not first and smaller.states(held) and len(held.shape) == 1 and first is not None:
        others = lists(held.array().tolist(), len(first.shape), axes=smaller.is_axes(name))
        made = [np.array(x, "int64") for x in others]
    for array in made:
        put = with_input(program, name, simpler.numbered(array, held.dtype))
        if put is not None:
            yield put
    whole = WHOLE if "float" not in held.dtype else (*WHOLE, *FRACTIONS)
    for number in whole:
        if (put := filled(program, name, number)) is not None and put != program:
            yield put


def told(
    program: Program, known: Mapping[str, Value], parameters: Iterable[str], inputs: Iterable[str], *, bare: bool
) -> Sequence[Program]:
    """Return the programs that put to the test what decides: with other values of these parameters and inputs; where nothing is
    known to decide (`bare`), with what is left out."""
    if not isinstance(program, Instance):
        return []
    rows = [of_input(program, x) for x in inputs] + [of_parameter(program, x, known) for x in parameters]
    turns = itertools.zip_longest(*(itertools.islice(x, MOST) for x in rows))
    made = [x for turn in turns for x in turn if x is not None]
    made += given(program, known) if bare else []
    return list({x.id: x for x in made}.values())


def given(program: Instance, known: Mapping[str, Value]) -> list[Instance]:
    """Return a call that is given what it has no value of, each alone: a length of its tensors where its name says that it is a
    size, else 1 and 2.0, and of a seed 0, which many take for none."""
    names = [x for x in arguments.unstated(program, known) if not simpler.is_type(x)]
    sized = [x for x in names if smaller.SIZED.search(x.rpartition(".")[2])]
    lengths = list(dict.fromkeys(size for leaf in smaller.leaves(program) for size in leaf.shape if size))
    pairs: list[tuple[Value, str]] = list(itertools.product(lengths[:LENGTHS], sized))
    pairs += [(x, name) for name in names if name not in sized for x in (1, 2.0, *((0,) if SEED in name else ()))]
    made = (smaller.given(program, name, x) for x, name in pairs)
    return list({x.id: x for x in made if x is not None}.values())[:LEFT]


def outputs(program: Instance, known: Iterable[Program]) -> list[Instance]:
    """Return a call that is asked for each output beside the first alone: of the outputs that most of these programs name."""
    names = max((x.outputs for x in (program, *known)), key=lambda x: sum(map(bool, x)))
    places = [n for n, x in enumerate(names) if n and x]
    made = [msgspec.structs.replace(program, outputs=(*("",) * n, names[n])) for n in places]
    return [x for x in made if x != program]


def restated(program: Instance, shape: Callable[[Program], Sequence[int] | None]) -> Iterator[Instance]:
    """Yield a call with other inputs, and with other values of each parameter that states a length of its output, if it need
    not be given: whatever relation it has to the inputs, it has another then. `shape` returns that of the first output.
    """
    own = shape(program)
    for name, value in program.params.items():
        if type(value) is not int or smaller.is_axes(name) or own is None or value not in own:
            continue
        without = smaller.without(program, name)
        first = next((x.name for x in program.inputs if tensor(program, x.name) is not None), "")
        if isinstance(without, Instance) and first and shape(without) == own:
            made = [filled(without, first, x) for x in (1, 2)]
            made += [with_input(without, first, x) for x in _longer(tensor(without, first))]
            for x in (y for y in made if y is not None):
                found = shape(x)
                put = smaller.given(x, name, found[own.index(value)]) if found and len(found) == len(own) else None
                if put is not None and put != program:
                    yield put


def _longer(held: Leaf | None) -> Iterator[Leaf]:
    """Yield a tensor with one element, and with twice as many along its last axis."""
    if held is not None and held.shape:
        yield from (forms.shaped(held, (*held.shape[:-1], x)) for x in (1, 2 * held.shape[-1]))


def ranks(program: Instance) -> Iterator[Instance]:
    """Yield a call of which the first two tensors have each a rank of its own, leading axes of length 2 before their last one:
    where a rank is told, it may be how the two stand to each other that decides (`inner`). A parameter that names all axes
    names all of a tensor of any rank: it may be a result without axes that decides (`moments`)."""
    yield from _along_all(program)
    held = {x.name: leaf for x in program.inputs if (leaf := tensor(program, x.name)) is not None}
    names = [x for n, x in enumerate(held) if not n or not smaller.states(held[x])][:2]
    for of in itertools.product(RANKS, repeat=2) if len(names) == 2 else ():
        made: Instance | None = program
        for name, rank in zip(names, of, strict=True):
            leaf = forms.shaped(held[name], ((2,) * rank + held[name].shape[-1:])[-rank:])
            made = with_input(made, name, leaf) if made is not None else None
        yield from [made] if made is not None and made != program else []


def _along_all(program: Instance) -> Iterator[Instance]:
    first = next((x.name for x in program.inputs if tensor(program, x.name) is not None), "")
    if (held := tensor(program, first)) is None or not held.shape:
        return
    for name in (x for x, value in program.params.items() if smaller.is_axes(x) and isinstance(value, list | tuple)):
        axes = {x % len(held.shape) for x in smaller.integers(program.params[name])}
        for rank in RANKS if len(axes) == len(held.shape) else ():
            made = with_input(program, first, forms.shaped(held, ((2,) * rank + held.shape[-1:])[-rank:]))
            put = smaller.with_param(made, name, type(program.params[name])(range(rank))) if made is not None else None
            yield from [put] if isinstance(put, Instance) and put != program else []


def of_dtype(program: Instance) -> Iterator[Instance]:
    """Yield a call with other numbers of its first input in the dtype that it has: ordinary ones, both signs, and the least and
    the greatest of a dtype of integers. Where these pass it is no dtype that decides, but its numbers.
    """
    name = next((x.name for x in program.inputs if tensor(program, x.name) is not None), "")
    held = tensor(program, name)
    if not isinstance(held, Tensor) or held.dtype in ("bool", "string") or held.dtype.startswith("complex"):
        return
    signs = np.resize((-1, 1, 1), held.shape) if not held.dtype.startswith("u") else np.ones(held.shape)
    counted = 2 + np.arange(signs.size).reshape(held.shape) % 100
    for array in (counted * signs, counted):
        if (put := with_input(program, name, simpler.numbered(array, held.dtype))) is not None:
            yield put
    wide = [x for x in (EXACT, EXACT + 1, EXACT + 2) if x < max(ends(held.dtype), default=0)]
    for number in (3, -3, 100, *wide, *ends(held.dtype)):
        if (put := filled(program, name, number)) is not None:
            yield put


def at_end(program: Instance, *, least: bool) -> Iterator[Instance]:
    """Yield a call of which the first input is the least, or the greatest, number of each dtype of integers."""
    name = next((x.name for x in program.inputs if tensor(program, x.name) is not None), "")
    held = tensor(program, name)
    for dtype in dtypes.ASKED if held is not None else ():
        numbers = ends(dtype) if dtype != held.dtype else ()  # type: ignore[union-attr]
        end = (min if least else max)(numbers, default=None)
        made = dtypes.of_other(program, held.dtype, dtype)  # type: ignore[union-attr]
        put = filled(made, name, end) if isinstance(made, Instance) and end is not None else None
        yield from [put] if put is not None else []


def past_ends(program: Instance, name: str) -> Iterator[Instance]:
    """Yield a call of which a parameter that is a number, and says of nothing how large it is, is the least or the greatest of
    the first input's integers, or the next one: of narrow dtypes; an integer as a float, too."""
    first = next((x.name for x in program.inputs if tensor(program, x.name) is not None), "")
    value, own = program.params.get(name), getattr(tensor(program, first), "dtype", "")
    sized = smaller.SIZED.search(name.rpartition(".")[2]) or smaller.is_axes(name) or simpler.is_type(name)
    if type(value) not in (int, float) or sized or not ends(own):
        return
    kinds = (float,) if isinstance(value, float) else (int, float)
    for dtype in LIMITED:
        made = program if dtype == own else dtypes.of_other(program, own, dtype)
        for number in (y + z for y, z in zip(ends(dtype) * 2, (-1, 1, 0, 0), strict=True)):
            puts = (
                [smaller.with_param(made, name, kind(number)) for kind in kinds] if isinstance(made, Instance) else []
            )
            yield from (x for x in puts if isinstance(x, Instance))


def inexact(program: Instance) -> Iterator[Instance]:
    """Yield a call of wide integers of which the first input is one that float32 does not hold, beside ones and twos: sums or
    products of these are none either, and no overflow."""
    first, *others = [x.name for x in program.inputs if tensor(program, x.name) is not None] or [""]
    own = getattr(tensor(program, first), "dtype", "")
    data = [x for x in others if getattr(tensor(program, x), "dtype", "") == own]
    for dtype, number in itertools.product(("int32", "int64"), (1, 2)) if own in dtypes.INTEGERS else ():
        made: Program | None = program if own == dtype else dtypes.of_other(program, own, dtype)
        for name, x in ((first, EXACT + 1), *((y, number) for y in data)):
            made = filled(made, name, x) if isinstance(made, Instance) else None
        yield from [made] if isinstance(made, Instance) else []


def ends(dtype: str) -> tuple[int, ...]:
    """Return the least number of a dtype of integers and the greatest."""
    if not re.fullmatch(r"u?int(8|16|32|64)", dtype):
        return ()
    held = np.iinfo(dtype)
    return int(held.min), int(held.max)


def filled(program: Instance, name: str, number: float) -> Instance | None:
    """Return a call with one number in all elements of an input; None where its dtype has no such number."""
    held = tensor(program, name)
    if not isinstance(held, Tensor) or (number < 0 and held.dtype.startswith("u")):
        return None
    kind = (
        held.dtype if held.dtype in dtypes.INTEGERS and isinstance(number, int) else "float64"
    )  # float64 has not all of int64
    return with_input(program, name, simpler.numbered(np.full(held.shape, number, kind), held.dtype))


# ---------------------------------------------------------------------- all tensors


def varieties(program: Program) -> list[Program | None]:
    """Return the program with other numbers, and with dimensions that are one more, and one more than two and three times as
    many: those of its first tensor and of all that have several axes.
    """
    made: list[Program | None] = [changed(_counted, program)]
    first = next((x for x in smaller.leaves(program)), None)
    if first is not None and any(x > 1 for x in first.shape):
        for factor in (1, 2, 3):
            made.append(smaller.applied(partial(_grown, factor=factor), program))
    return made


def _counted(leaf: Leaf) -> Leaf:
    return simpler.counted(leaf) if "float" in leaf.dtype else leaf


def _grown(program: Program, factor: int) -> Program:
    places = iter(range(1 << 30))

    def change(leaf: Leaf) -> Leaf:
        if next(places) and len(leaf.shape) < 2:
            return leaf
        shape = tuple(x * factor + 1 if x > 1 else x for x in leaf.shape)
        if not isinstance(leaf, Tensor):
            return msgspec.structs.replace(leaf, shape=shape)
        return _counted(Tensor.of(np.resize(leaf.array(), shape), leaf.dtype))

    return smaller.mapped(program, change)


def zero(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, Tensor) or leaf.dtype not in dtypes.INTEGERS:
        return leaf
    return Tensor.of(np.zeros(leaf.shape, leaf.dtype), leaf.dtype)


def zero_unless_size(leaf: Leaf) -> Leaf:
    return leaf if smaller.states(leaf) else zero(leaf)
