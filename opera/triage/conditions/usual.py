"""Ordinary calls: what anybody writes first. Where one fails, an operator fails as such; where none does, something decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, RandomTensor, Tensor
from opera.triage.conditions import dtypes, forms, near
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

DTYPES = ("float32", "int64", "int32", "bool", "string")
"""Dtypes that are ordinary, the first of these of which something is known."""
TENSORS = 5
"""Tensors that an ordinary call is given at most: of more, some are optional, and what is given in all that fail may decide."""


def calls(program: Program, defaults: Defaults) -> Iterator[Program]:
    """Yield the call without parameters that have a default, in ordinary dtypes, shapes and numbers; integers beside the first
    tensor as they are, and of int64."""
    if not isinstance(program, Instance):
        return
    simple = next(smaller.plainer_params(program, defaults))(program) or program
    own = next((x.dtype for x in smaller.leaves(program)), "")
    for dtype in DTYPES[:2]:
        made = simple if dtype == own else dtypes.of_other(simple, own, dtype)
        made = made and dtypes.ordinary(made)
        if made is not None:
            yield from forms.plain(made)[: 2 if dtype == DTYPES[0] else 1]
            yield from forms.plain(smaller.mapped(made, _as_int64))[:1]


def _as_int64(leaf: smaller.Leaf) -> smaller.Leaf:
    return simpler.as_dtype(leaf, leaf.dtype, "int64") if leaf.dtype in dtypes.INTEGERS else leaf


def fails(
    labelled: Iterable[tuple[Program, bool]], defaults: Defaults, computes: Callable[[Program], bool], *, loud: bool
) -> bool:
    """Whether one of the programs that fail is ordinary, in the first of the ordinary dtypes that any program has of which
    something is known, or in a later one if none of those before it passes (where that is none, the dtype may be what decides),
    and has outputs with elements (`computes`, which is asked last); where the failure shows itself whatever is asked for
    (`loud`), it asks for the first output."""
    held = list(labelled)
    seen = {_dtype(x) for x, _ in held}
    known = [x for x in DTYPES if x in seen]
    if not known and seen - {""}:
        return False
    passing = {_dtype(x) for x, failing in held if not failing}
    first = next((n for n, x in enumerate(known) if x in passing), len(known))
    within = {*known[: first + 1], ""}
    asking = (x for x, failing in held if failing and (not loud or not x.outputs or x.outputs[0]))
    found = (x for x in asking if is_usual(x, defaults) and (not known or _dtype(x) in within))
    return any(map(computes, found))


def is_usual(program: Program, defaults: Defaults) -> bool:
    """Whether a program is one call with parameters at their defaults, or such as have none and are no fraction of 0 or below,
    of few tensors that are neither 0-d, nor empty, nor of one element, as far as data, and hold no special or large number."""
    if not isinstance(program, Instance):
        return False
    known, found = defaults.get(program.operator, {}), smaller.leaves(program)
    if len(found) > TENSORS:
        return False
    stated = [
        x for x, _ in smaller.nondefault(program, defaults) if smaller.default(known, x) not in (None, NO_DEFAULT)
    ]
    stated += [x for x, value in program.params.items() if isinstance(value, float) and not value > 0]
    data = not found or (max(found[0].shape, default=0) > 1 and all(0 not in x.shape for x in found))
    return not stated and data and all(map(_plain, found))


def _plain(leaf: smaller.Leaf) -> bool:
    if isinstance(leaf, RandomTensor) or leaf.dtype == "string":
        return True
    numbers = simpler.numbers(leaf)
    return bool((np.isfinite(numbers) & (np.abs(numbers) < near.LARGE)).all()) if isinstance(leaf, Tensor) else True


def _dtype(program: Program) -> str:
    return next((x.dtype for x in smaller.leaves(program)), "")
