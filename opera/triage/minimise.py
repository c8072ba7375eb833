"""The search for a smaller program: greedy, coarse to fine, several candidates at a time. It knows nothing of compilers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from opera.programs.program import Program
from opera.triage.smaller import PASSES, Defaults, Step, applied, measure


class Spent(Exception):
    """The budget is used up."""


class Ask(Protocol):
    """Tells which programs fail as the first one did. Raises Spent."""

    batch: int
    """How many programs should be asked about at a time."""

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        """Return for each program whether it fails so."""


Keep = Callable[[Program], None]


def minimise(program: Program, defaults: Defaults, ask: Ask, keep: Keep) -> Program:
    """Return a program of which no single step makes a smaller one that fails; `keep` is told each one that is found.

    Every accepted program is smaller by `measure`, whose values are well-founded: so the search ends, even if nobody is
    ever content. A step that helped is not tried again before all others were. Raises Spent where asking does.
    """
    tried = {program.id}
    while True:
        before = program
        for steps in PASSES:
            program = _pass(program, steps(program, defaults), defaults, ask, keep, tried)
        if program == before:
            return program


def _pass(
    program: Program, steps: Iterator[Step], defaults: Defaults, ask: Ask, keep: Keep, tried: set[str]
) -> Program:
    """Try the steps of one pass, each once, on what the ones before left."""
    left = deque(steps)
    while left:
        candidates: list[tuple[Step, Program]] = []
        while left and len(candidates) < ask.batch:
            step = left.popleft()
            made = _smaller(step, program, defaults)
            if made is not None and made.id not in tried:
                tried.add(made.id)
                candidates.append((step, made))
        good = [pair for pair, failed in zip(candidates, ask([x for _, x in candidates]), strict=True) if failed]
        if not good:
            continue
        good.sort(key=lambda pair: measure(pair[1], defaults))
        program = good[0][1]
        keep(program)
        together = _together(program, [step for step, _ in good[1:]], defaults)
        if together.id not in tried:
            tried.add(together.id)
            if ask([together]) == [True]:
                program = together
                keep(program)
    return program


def _smaller(step: Step, program: Program, defaults: Defaults) -> Program | None:
    made = applied(step, program)
    return made if made is not None and measure(made, defaults) < measure(program, defaults) else None


def _together(program: Program, steps: list[Step], defaults: Defaults) -> Program:
    """Return what steps make of a program one after the other, each of which helped alone."""
    for step in steps:
        program = _smaller(step, program, defaults) or program
    return program
