"""Programs that would refute what is told: it says that they fail, or pass, and something wider or narrower says they do not.

What is told of a few programs is one of many things that explain them: that a tensor has more than one element, or that its
last axis is longer than 1. Each is a rival, and only a program of which the two say different things tells which it is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import peculiar
from opera.triage.conditions.arguments import with_input
from opera.triage.conditions.forms import TENSORS, shaped
from opera.triage.conditions.near import near
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Defaults, Leaf

MOST, POOL, TRIALS, PAIRS = 40, 400, 2, 6
"""Rivals, programs among which those are looked for that tell, and how many are asked about of each rival and each answer;
and pairs of inputs that are exchanged."""


def rivals(told: Sequence[Feature], candidates: Iterable[Feature], passing: Sequence[Program]) -> list[list[Feature]]:
    """Return what may as well be told of labelled programs: with one thing left out, which is wider, or another in its place.

    Args:
        candidates: What all programs that fail have.
        passing: Those that pass, and for no other reason than that they lack something.
    """
    others, made = list(candidates), list[list[Feature]]()
    for place, own in enumerate(told):
        left = [x for n, x in enumerate(told) if n != place]
        having = [x for x in passing if all(y.holds(x) for y in left)]
        made += [] if having else [left]
        made += [[*left, x] for x in others if x.says != own.says and not any(map(x.holds, having))]
    return made[:MOST]


def programs(
    told: Sequence[Feature], others: Sequence[Sequence[Feature]], pool: Iterable[Program], asked: set[str]
) -> Iterator[Program]:
    """Yield the programs of which what is told and the most rivals say different things, a few of each rival and answer.

    Args:
        others: Its rivals.
        pool: Programs that are looked through.
        asked: Ids of programs that were asked about, to which those that are yielded are added.
    """
    held = {x.says: x for of in (told, *others) for x in of}
    done, left = set(asked), list[tuple[Program, frozenset[tuple[int, bool]]]]()
    for x in itertools.islice(pool, POOL) if others else ():
        if x.id not in done:
            done.add(x.id)
            true = {says for says, of in held.items() if of.holds(x)}
            fails = all(y.says in true for y in told)
            unlike = frozenset(
                (n, fails) for n, of in enumerate(others) if all(y.says in true for y in of) is not fails
            )
            left += [(x, unlike)] if unlike else []
    seen = Counter[tuple[int, bool]]()
    while left:
        new = [sum(seen[x] < TRIALS for x in unlike) for _, unlike in left]
        if not max(new):
            return
        made, unlike = left.pop(new.index(max(new)))
        seen.update(unlike)
        asked.add(made.id)
        yield made


def varied(bases: Sequence[Instance], defaults: Defaults) -> Iterator[Instance]:
    """Yield programs near these: with two inputs exchanged, with other lengths of one tensor and of all in which an axis is as
    long, of the first program of two axes; and with anything else changed.
    """
    rows: list[Iterator[Program | None]] = [itertools.chain(_exchanged(x), _lengths(x)) for x in bases]
    rows += [y for x in bases[:1] for made in _lengths(x) if isinstance(made, Instance) for y in (_lengths(made),)]
    rows += [itertools.chain.from_iterable(itertools.zip_longest(*near(x, defaults))) for x in bases]
    yield from (x for turn in itertools.zip_longest(*rows) for x in turn if isinstance(x, Instance))


def _exchanged(program: Instance) -> Iterator[Program]:
    """Yield programs of which two inputs of one dtype and shape are exchanged: limits stand the other way round."""
    held = [x for x in program.inputs if isinstance(x.value, Tensor)]
    for one, other in itertools.islice(itertools.combinations(held, 2), PAIRS):
        alike = [(x.value.dtype, x.value.shape) for x in (one, other) if isinstance(x.value, Tensor)]
        if alike[0] == alike[1] and one.value != other.value:
            put = with_input(program, one.name, other.value)
            made = with_input(put, other.name, one.value) if put is not None else None
            yield from [made] if made is not None else []


def _lengths(program: Instance) -> Iterator[Program | None]:
    """Yield programs with an axis of 1, 2, 3 or 0: of one tensor alone, and of all in which it is as long, integers that may
    state sizes or be labels among them or not."""
    for place, leaf in enumerate(smaller.leaves(program)[:TENSORS]):
        for (axis, size), target in itertools.product(enumerate(leaf.shape), (1, 2, 3, 0)):

            def change(x: Leaf, *, stated: bool, axis: int = axis, size: int = size, target: int = target) -> Leaf:
                if axis >= len(x.shape) or x.shape[axis] != size or (smaller.states(x) and not stated):
                    return x
                return shaped(x, (*x.shape[:axis], target, *x.shape[axis + 1 :]))

            yield smaller.applied(smaller.at(place, partial(change, stated=False)), program)
            for stated in (True, False):
                yield peculiar.changed(partial(change, stated=stated), program)
