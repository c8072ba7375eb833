"""How many elements a program may have and fails: where nothing else explains it, much larger ones are asked about.

Compilers, and the libraries' own exporters, treat small tensors otherwise than large ones: TensorFlow folds what has fewer than
1,000 elements to a constant, kernels take blocks of 8 or 16, or several threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from opera.programs.program import Instance, Program
from opera.triage.conditions.forms import shaped
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import smaller

Asked: TypeAlias = Callable[[Iterable[Program]], list[Labelled]]
FAR = (32, 1 << 12)
"""Elements of the first tensor in place of a few."""
STEPS = 12
"""How often the middle between a length that fails and one that passes is asked about: it is told exactly then."""
FEWER = "fewer than"


def elements(program: Program) -> int:
    """Return how many elements the first tensor has; 0 where there is none."""
    return next((math.prod(x.shape) for x in smaller.leaves(program)), 0)


def grown(program: Program, count: int) -> Program | None:
    """Return a program whose first tensor, and all of its shape, have so many elements along the last axis, and one along the
    others; None where the first has no axis.
    """
    first = next(iter(smaller.leaves(program)), None)
    if first is None or not first.shape or 0 in first.shape:
        return None
    shape = (*(1 for _ in first.shape[1:]), count)
    return smaller.mapped(program, lambda leaf: shaped(leaf, shape) if leaf.shape == first.shape else leaf)


def asked_about(program: Instance, asked: Asked) -> Iterator[Labelled]:
    """Yield larger programs with their labels: much larger ones, and those between one that fails and one that passes, until
    the border is known to the element. Raises Spent.
    """
    far = {x: made for x in FAR if (made := grown(program, x)) is not None}
    found = asked(far.values())
    yield from found
    known = {elements(x.program): x.fails for x in found}
    good = min((x for x, fails in known.items() if not fails), default=None)
    bad = max((x for x, fails in known.items() if fails and good is not None and x < good), default=1)
    for _ in range(STEPS if good is not None else 0):
        made = grown(program, (bad + (good or 0)) // 2) if good is not None and good - bad > 1 else None
        answer = asked([made]) if made is not None else []
        if not answer:
            return
        yield from answer
        if answer[0].fails:
            bad = elements(answer[0].program)
        else:
            good = elements(answer[0].program)


def border(failing: Sequence[Program], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield that the first tensor has fewer elements than the smallest that passes, where one that fails has just one less; of
    none at all that is told where one without any fails."""
    most = max(map(elements, failing), default=0)
    least = min((x for x in map(elements, passing) if x), default=0)
    if 0 < most == least - 1:
        empty = any(map(_is_empty, failing)) and not any(map(_is_empty, passing))
        yield Feature(f"{FEWER} {least} elements", partial(_fewer, count=least, empty=empty))


def _fewer(program: Program, count: int, empty: bool) -> bool:
    return 0 < elements(program) < count or (empty and _is_empty(program))


def _is_empty(program: Program) -> bool:
    return any(0 in x.shape for x in smaller.leaves(program)[:1])
