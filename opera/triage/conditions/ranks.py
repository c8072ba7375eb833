"""What may be told of the ranks of tensors, and how ranks and shapes of several stand to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from opera.programs.program import Program
from opera.triage.conditions import peculiar
from opera.triage.conditions.stated import Feature, data, shape_of
from opera.triage.shrink import smaller

End: TypeAlias = Callable[[Iterable[int]], int]
ALL = ("both inputs of rank ", "all inputs of rank ")
"""How it is told that several tensors have one rank: of two, and of more."""


def features(program: Program, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield the rank of the first tensor, or all of that rank; of several tensors by name."""
    rank, names = rank_of(program), data(program)
    if rank is None:
        return
    shapes = [shape_of(program, x) for x in names]
    if len(names) > 1 and all(x is not None and len(x) == rank for x in shapes):
        many = ALL[0] if len(names) == 2 else ALL[1]
        yield Feature(f"{many}{rank}", partial(all_of_rank, names=names, rank=rank))
        every = [x.name for x in program.inputs if shape_of(program, x.name) is not None]
        if len(every) > len(names) and all_of_rank(program, every, rank):  # an index may have the rank of its data
            yield Feature(f"{ALL[1]}{rank}", partial(all_of_rank, names=every, rank=rank))
    named = f"{names[0]} of rank" if len(names) > 1 else peculiar.RANK
    yield Feature(f"{named} {rank}" if len(names) > 1 else peculiar.of_rank(rank), lambda x: rank_of(x) == rank)
    if rank > 1:  # without an axis nothing is computed along one
        yield Feature(f"{named} {rank} or more", lambda x: (rank_of(x) or 0) >= rank)
        yield Feature(f"{named} {rank} or less", lambda x: (rank_of(x) or 0) <= rank)
    for least in range(rank if rank == 1 else rank - 1, 0, -1):
        yield Feature(f"{named} {least} or more", lambda x, least=least: (rank_of(x) or 0) >= least)  # type: ignore[misc]
    if rank != 1:
        yield Feature(f"{names[0] if len(names) > 1 else 'an input'} of another rank than 1", lambda x: rank_of(x) != 1)
    if len(names) > 1:  # one of them is enough
        for other in sorted({len(x) for x in (shape_of(y, names[0]) for y in passing) if x is not None}):
            made = Feature(f"an input of another rank than {other}", partial(_any_other_rank, names=names, rank=other))
            yield from [made] if made.holds(program) else ()
    yield from _unlike(program)
    for name, shape in zip(names[1:], shapes[1:], strict=True):
        if shape is not None:
            yield Feature(f"{name} of rank {len(shape)}", partial(all_of_rank, names=[name], rank=len(shape)))
    yield from _of_two(program, names[:2], passing) if len(names) > 1 else ()


def _of_two(program: Program, names: Sequence[str], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield of the first two tensors that one has few axes, or many, and which rank the lower or the higher one has not."""
    one, other = names
    for of, words, side in ((min, "lower", "less"), (max, "higher", "more")):
        own = _end(program, names, of)
        if own is None:
            return
        yield Feature(f"{one} or {other} of rank {own} or {side}", partial(_reaches, names=names, of=of, rank=own))
        for rank in sorted({y for y in (_end(x, names, of) for x in passing) if y is not None} - {own}):
            says = f"the {words} rank of {one} and {other} other than {rank}"
            yield Feature(says, partial(_is_another, names=names, of=of, rank=rank))


def _end(program: Program, names: Sequence[str], of: End) -> int | None:
    """Return the lowest or the highest rank of these inputs; None where one of them is not given."""
    shapes = [shape_of(program, x) for x in names]
    return None if None in shapes else of(len(x) for x in shapes if x is not None)


def _reaches(program: Program, names: Sequence[str], of: End, rank: int) -> bool:
    """Whether the lowest rank is this one or less, or the highest this one or more."""
    end = _end(program, names, of)
    return end is not None and of((end, rank)) == end


def _is_another(program: Program, names: Sequence[str], of: End, rank: int) -> bool:
    end = _end(program, names, of)
    return end is not None and end != rank


def all_of_rank(program: Program, names: Sequence[str], rank: int) -> bool:
    """Whether all of these inputs are given and have so many axes."""
    return all((shape := shape_of(program, x)) is not None and len(shape) == rank for x in names)


def _unlike(program: Program) -> Iterator[Feature]:
    """Yield which tensors have another rank than the first one, or another shape."""
    held = {x.name: shape for x in program.inputs if (shape := shape_of(program, x.name)) is not None}
    first, *others = held or [""]
    for name in (x for x in others if held[x] != held[first]):
        order = (len(held[name]) > len(held[first])) - (len(held[name]) < len(held[first]))
        if order:
            side = f"{name} of {'higher' if order > 0 else 'lower'} rank than {first}"
            yield Feature(side, partial(_rank_order, one=name, other=first, order=order))
            yield Feature(f"{name} of another rank than {first}", partial(_unlike_ranks, one=name, other=first))
        yield Feature(f"{name} of another shape than {first}", partial(_unlike_shapes, one=name, other=first))


def _rank_order(program: Program, one: str, other: str, order: int) -> bool:
    first, second = shape_of(program, one), shape_of(program, other)
    return first is not None and second is not None and (len(first) - len(second)) * order > 0


def _unlike_ranks(program: Program, one: str, other: str) -> bool:
    return any(_rank_order(program, one, other, x) for x in (1, -1))


def _unlike_shapes(program: Program, one: str, other: str) -> bool:
    return shape_of(program, one) != shape_of(program, other)


def _any_other_rank(program: Program, names: Sequence[str], rank: int) -> bool:
    return not all_of_rank(program, names, rank)


def rank_of(program: Program) -> int | None:
    found = smaller.leaves(program)
    return len(found[0].shape) if found else None
