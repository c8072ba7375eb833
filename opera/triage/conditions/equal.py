"""Equal elements of an input, anywhere or along the axis that a parameter names: which of them comes first is a rule that some
operators have; and a search for the largest may begin at the least number, and find none.

That something is so of some elements says less than of all: what else is drawn at random may have it where it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions import peculiar
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature, data, value_of
from opera.triage.sentence import EQUAL
from opera.triage.shrink import simpler, smaller

Array: TypeAlias = peculiar.Array
ONLY_LEAST = "nothing but the least number of its dtype"
"""How it begins that no element along an axis is above the number from which a search for the largest begins."""


def features(program: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield whether the first input has equal elements, and none but the least: along the one axis that a parameter names, or
    anywhere."""
    for name in data(program)[:1]:
        for axis in dict.fromkeys(x for x in (*program.params, *known) if smaller.is_axes(x)):
            for says, repeated in ((ONLY_LEAST, _only_least), ("equal elements", _repeated)):
                holds = partial(_along, name=name, axis=axis, known=known, of=repeated)
                along = Feature(f"{says} along {axis} in {name}", holds)
                yield from [along] if along.holds(program) else []
        for says, held in ((f"{ONLY_LEAST} in {name}", partial(_whole, name=name)), (EQUAL, partial(has, name=name))):
            yield from [Feature(says, held)] if held(program) else []


def has(program: Program, name: str) -> bool:
    """Whether an input holds a number twice."""
    numbers = _numbers(program, name)
    return numbers is not None and bool(_repeated(numbers.ravel()))


def _along(program: Program, name: str, axis: str, known: Mapping[str, Value], of: Callable[[Array], bool]) -> bool:
    numbers, at = _numbers(program, name), value_of(program, axis, known)
    if numbers is None or type(at) is not int or not -numbers.ndim <= at < numbers.ndim:
        return False
    return any(map(of, np.moveaxis(numbers, at, -1).reshape(-1, numbers.shape[at]) if numbers.size else ()))


def _whole(program: Program, name: str) -> bool:
    numbers = _numbers(program, name)
    return numbers is not None and _only_least(numbers)


def _only_least(numbers: Array) -> bool:
    return numbers.dtype.kind in "iu" and numbers.size > 0 and bool((numbers == np.iinfo(numbers.dtype).min).all())


def _repeated(numbers: Array) -> bool:
    return len(set(numbers.tolist())) < numbers.size


def _numbers(program: Program, name: str) -> Array | None:
    held = tensor(program, name)
    return simpler.numbers(held) if isinstance(held, Tensor) and held.dtype != "string" else None


def in_part(program: Program, told: Iterable[str]) -> bool:
    """Whether something is told of elements of inputs, and some have it but not all: it may not matter where they do."""
    return any(_of_some(program, where) for says, where in WHOLE.items() if any(x.startswith(says) for x in told))


def _of_some(program: Program, where: Callable[[Array], Array]) -> bool:
    held = [simpler.numbers(x) for x in smaller.leaves(program) if isinstance(x, Tensor) and x.dtype != "string"]
    marks = [np.asarray(where(x)) for x in held if x.size and not np.iscomplexobj(x)]
    return any(x.any() and not x.all() for x in marks) and not any(x.all() for x in marks)


def _twice(numbers: Array) -> Array:
    values, counts = np.unique(numbers, return_counts=True)
    return np.isin(numbers, values[counts > 1])


WHOLE: Mapping[str, Callable[[Array], Array]] = {"equal elements": _twice, **peculiar.TOLD}
"""How it begins that something is told of elements, and which have it."""
