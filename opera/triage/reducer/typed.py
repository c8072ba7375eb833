"""The dtypes of a reduced program, once all else is small: no more than it needs, and the odd one where that decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from opera.programs.program import Program
from opera.programs.verdicts import CRASH, PASS, REFUSED
from opera.triage.conditions import dtypes
from opera.triage.reducer.asking import Asker
from opera.triage.shrink import simpler, smaller

WHOLE = "int64"
"""What sizes, places and counts are of."""
MOST = 6
"""Inputs each of which is asked about alone."""


def of_one_dtype(ask: Asker, program: Program) -> list[Program]:
    """Give each further tensor of integers the dtype of a first one of floats, if it fails so, too: what may state sizes is
    left as it is before, and two dtypes may be a fault of their own (`clamp` of float32 with an int64 `min` on TVM).
    """
    kept, found = [program], smaller.leaves(program)
    for place, leaf in enumerate(found):
        if place and found[0].dtype in dtypes.FLOATS and leaf.dtype in dtypes.INTEGERS:
            step = partial(simpler.as_dtype, dtype=leaf.dtype, other=found[0].dtype)
            kept += _failing(ask, smaller.applied(smaller.at(place, step), kept[-1]))
    return kept[1:]


def widened(ask: Asker, program: Program) -> list[Program]:
    """Make float64 of narrow floats with which it stops, if it does so too: more compilers have kernels of that, so that who
    mends what is told sees it run. What returns a wrong dtype or number of narrow floats is about these.
    """
    kept = [program]
    narrow = {x.dtype for x in smaller.leaves(program) if "float" in x.dtype} - {simpler.FLOAT, simpler.WIDE}
    for dtype in sorted(narrow) if ask.outcomes[program.id].verdict in (CRASH, REFUSED) else ():
        kept += _failing(ask, smaller.applied(partial(smaller.as_dtype, dtype=dtype, other=simpler.WIDE), kept[-1]))
    return kept[1:]


def odd_one(ask: Asker, program: Program) -> list[Program]:
    """Leave the one dtype of several inputs to the only one that needs it, where with all of another it runs: `OneHot` of
    float32 stops at its `depth` on TVM, and who mends that meets what is wrong of the others in the same script; `Attention`
    of float64 at its `attn_mask` on ONNX Runtime.
    """
    found = smaller.leaves(program)
    several = ask.beside and 1 < len(found) <= MOST
    if not several or len({x.dtype for x in found}) > 1 or ask.outcomes[program.id].verdict not in (CRASH, REFUSED):
        return []
    own = found[0].dtype
    for other in (simpler.FLOAT, *([WHOLE] if own in dtypes.FLOATS else [])):
        if other != own and (made := _odd_one(ask, program, own, other)):
            return made
    return []


def _odd_one(ask: Asker, program: Program, own: str, other: str) -> list[Program]:
    step = partial(simpler.as_dtype, dtype=own, other=other)
    whole = smaller.applied(lambda x: smaller.mapped(x, step), program)
    if whole is None or ask.look([whole])[0].verdict != PASS:
        return []
    made = [
        smaller.applied(smaller.at(n, partial(simpler.as_dtype, dtype=other, other=own)), whole)
        for n in range(len(smaller.leaves(program)))
    ]
    known = [x for x in made if x is not None]
    failing = [x for x, now in zip(known, ask.look(known), strict=True) if ask.admits(x) and ask.fails(now)]
    if len(failing) != 1 or ask.excused(failing[0]) or ask.passed(failing, [True], lenient=True) != [True]:
        return []
    return failing if ask.agreed(failing[0]) and ask.stands(failing[0]) else []


def mixed(program: Program) -> Iterator[Program]:
    """Yield a program whose tensors are of one dtype of floats with another in each alone, and in all others: of which of them
    a dtype decides nobody knows from programs in which all change together."""
    found = smaller.leaves(program)
    kinds = {x.dtype for x in found}
    if not 1 < len(found) <= MOST or len(kinds) > 1 or not kinds <= set(dtypes.FLOATS):
        return
    own = found[0].dtype
    step = partial(simpler.as_dtype, dtype=own, other=simpler.WIDE if own == simpler.FLOAT else simpler.FLOAT)
    for n in range(len(found)):
        yield from (x for x in (smaller.applied(smaller.at(n, step), program),) if x is not None)
        others = (x for x in range(len(found)) if x != n)
        made: Program | None = program
        for place in others:
            made = None if made is None else smaller.applied(smaller.at(place, step), made)
        yield from [made] if made is not None else []


def swapped(ask: Asker, program: Program) -> list[Program]:
    """Exchange two dtypes with which it stops, where it runs with the second alone, and not with the first: who casts the one
    to the other meets nothing else then (a Pow of int32 and float32 on TVM, which has none of integers).
    """
    found = list(dict.fromkeys(x.dtype for x in smaller.leaves(program)))
    if len(found) != 2 or ask.outcomes[program.id].verdict not in (CRASH, REFUSED):
        return []
    first, second = found
    pairs = ((second, first), (first, second))
    alone = [smaller.applied(partial(smaller.as_dtype, dtype=x, other=y), program) for x, y in pairs]
    known = [x for x in alone if x is not None]
    if [x.verdict == PASS for x in ask.look(known)] != [False, True]:
        return []
    other = {first: second, second: first}
    return _failing(ask, smaller.applied(lambda x: smaller.mapped(x, partial(_exchanged, other=other)), program))


def _exchanged(leaf: smaller.Leaf, other: Mapping[str, str]) -> smaller.Leaf:
    return simpler.as_dtype(leaf, leaf.dtype, other[leaf.dtype])


def _failing(ask: Asker, made: Program | None) -> list[Program]:
    return [made] if made is not None and ask([made]) == [True] and ask.stands(made) else []
