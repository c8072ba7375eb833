"""Programs of several elements that differ, beside one whose first tensor has one element, or elements that are all alike.

Such a program is right by luck: of one element a mean is that element, and what is left out or mixed up does not show. So what
other routes and compilers make of it is asked of these as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from opera.libraries import bounds
from opera.programs.program import Program
from opera.programs.values import Tensor
from opera.run.probe import Probe
from opera.triage.conditions import readable
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

MOST = 3
"""Programs of several elements that are asked about: the library may reject some."""
LARGEST = 2**31 - 1
"""Integers that are counted down from, at most."""


def hides(program: Program) -> bool:
    """Whether the numbers or truth values of the first tensor are all the same one."""
    first = next(iter(smaller.leaves(program)), None)
    return isinstance(first, Tensor) and first.dtype != "string" and _kinds(first) == 1


def beside(probe: Probe, program: Program) -> list[Program]:
    """Return a few programs of several elements beside one that hides what these tell; none beside any other.

    They are within what documentation states, as far as the program is. Raises NoAnswer where the library is not asked.
    """
    if not hides(program):
        return []
    stated = probe.known(program.library, program).bounds
    broken = bounds.broken(stated, program)
    return list(islice((x for x in several(program) if bounds.broken(stated, x) <= broken), MOST))


def several(program: Program) -> Iterator[Program]:
    """Yield the program with numbers that differ, then with longer axes as well, with one where it has none; what is counted
    down first.

    Integers of the first tensor stay within those that it has and 0, for they may be indices.
    """
    seen, first = {program.id}, smaller.leaves(program)[0]
    most = max(int(simpler.numbers(first).max(initial=0)), 1) if isinstance(first, Tensor) and _whole(first) else 0
    most = min(most, LARGEST)  # of uint64 numpy counts no further
    bases = [program] if first.shape else list(readable.filled(program))
    for sized in (y for x in bases for y in (x, *readable.sized(x))):
        for down in (True, False):
            made = smaller.applied(smaller.at(0, partial(_unlike, most=most, down=down)), sized) or sized
            made = next(readable.counted(made), made)
            first = smaller.leaves(made)[0]
            if made.id not in seen and isinstance(first, Tensor) and _kinds(first) > 1:
                seen.add(made.id)
                yield made


def _whole(leaf: Leaf) -> bool:
    return leaf.dtype == "bool" or "int" in leaf.dtype


def _unlike(leaf: Leaf, most: int, down: bool) -> Leaf:
    """Return a tensor of integers or truth values with n, n - 1, ..., 0, and again from n, or with 0, ..., n."""
    if not isinstance(leaf, Tensor) or not _whole(leaf):
        return leaf
    order = np.arange(int(np.prod(leaf.shape))).reshape(leaf.shape) % (most + 1)
    return simpler.numbered(most - order if down else order, leaf.dtype)


def _kinds(tensor: Tensor) -> int:
    return len(set(simpler.numbers(tensor).ravel().tolist()))
