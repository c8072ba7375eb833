"""Which numbers go wrong in what converts them: ordinary ones, or NaN, infinity and what is out of a range alone.

A conversion that gets every number wrong (a wrong bias of the exponent) and one that thinks of no NaN are two causes behind one
symptom: their tests hold all of these numbers at once. So members are asked with one kind of number alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opera.programs.program import Program
from opera.programs.values import CONTAINERS, Tensor, widen
from opera.programs.verdicts import FAILURES, INCONSISTENT, PASS, Outcome
from opera.store import examined
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.conditions.deciding import Look
from opera.triage.conditions.near import CONVERTS
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

ORDINARY, SPECIAL, OF_NARROW = "ordinary numbers", "special numbers", "special numbers of few bits"
"""What goes wrong: ordinary numbers, whatever else; special ones alone, of what is converted to few bits, or of few bits."""
USUAL, ODD = (1.0, 2.0), ((np.nan,), (np.inf,), (1e6,), (6e4,))
"""Numbers that every dtype holds; and those that a dtype may not hold, each asked about alone."""
Array: TypeAlias = np.ndarray[Any, Any]
Found: TypeAlias = Mapping[tuple[str, str], str]
"""(finding, member) → which numbers go wrong in it."""


def converts(operators: Iterable[str], shown: Outcome) -> bool:
    """Whether it tells causes apart which numbers go wrong: where values are wrong, and numbers were converted."""
    wrong = shown.verdict == INCONSISTENT and shown.symptom in ("value", "nan-mask")
    return wrong and any(CONVERTS.search(x) for x in operators)


def ordinary(program: Program) -> Program | None:
    """Return a program whose first tensor, if it is of floating-point numbers, holds ordinary numbers alone."""
    return _full(program, USUAL)


def wrong(ask: Look, program: Program) -> str:
    """Return which numbers go wrong in the first tensor of a program that converts them; empty where that cannot be told.

    Raises Spent.
    """
    if (usual := ordinary(program)) is None:
        return ""
    odd = [_full(program, x) for x in ODD]
    [shown] = ask.look([usual])
    if shown.verdict in FAILURES:
        return ORDINARY
    if shown.verdict != PASS or not any(x.verdict in FAILURES for x in ask.look([x for x in odd if x is not None])):
        return ""
    return OF_NARROW if _narrow(smaller.leaves(program)[0]) else SPECIAL


def _full(program: Program, numbers: tuple[float, ...]) -> Program | None:
    """Return a program whose first tensor holds these numbers alone; None where its dtype, or it, has none."""
    first = next(iter(smaller.leaves(program)), None)
    held = _held(first.dtype, numbers) if isinstance(first, Tensor) and first.array().size else None
    if held is None:
        return None
    return smaller.applied(smaller.at(0, lambda leaf: Tensor.of(np.resize(held, leaf.shape), leaf.dtype)), program)


def _held(dtype: str, numbers: tuple[float, ...]) -> Array | None:
    """Return numbers as elements of a floating-point dtype; None where it does not hold one of them, or is another."""
    if "float" not in dtype:
        return None
    if CONTAINERS[dtype] == "uint8":
        table = widen(np.arange(16 if "float4" in dtype else 256, dtype=np.uint8), dtype)
        codes = [np.flatnonzero(np.isnan(table) if np.isnan(x) else table == x)[:1] for x in numbers]
        return np.concatenate(codes).astype(np.uint8) if all(x.size for x in codes) else None
    with np.errstate(over="ignore"):
        made = simpler.numbered(np.array(numbers), dtype)
    return made.array() if (np.isfinite(made.numbers()) == np.isfinite(numbers)).all() else None


def _narrow(leaf: Leaf) -> bool:
    return CONTAINERS[leaf.dtype] == "uint8"


# ---------------------------------------------------------------------- what is stored


def save(workspace: Workspace, verdicts: Iterable[Verdict], numbers: str) -> None:
    """Store which numbers go wrong in members, in place of what was before."""
    for x in verdicts:
        found = examined.Examined(x.finding, x.environment, x.test, numbers.encode())
        examined.save(workspace, examined.NUMBERS, found)


def stored(workspace: Workspace) -> dict[tuple[str, str], str]:
    """Return (finding, member) → which numbers go wrong in it, of those that were asked."""
    return {(x.finding, x.test): x.document.decode() for x in examined.documents(workspace, examined.NUMBERS)}


def telling(known: Found) -> Found:
    """Return what is known of members of findings in which not everywhere the same numbers go wrong: that divides these."""
    of: dict[str, set[str]] = defaultdict(set)
    for (finding, _), numbers in known.items():
        of[finding] |= {numbers} - {""}
    return {key: numbers for key, numbers in known.items() if numbers and len(of[key[0]]) > 1}
