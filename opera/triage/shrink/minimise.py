"""The search for a smaller program: greedy, coarse to fine, several candidates at a time. It knows nothing of compilers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from opera.programs.program import Program
from opera.triage.shrink import shapes, smaller, wiring
from opera.triage.shrink.smaller import Defaults, Step, Trait, applied, measure, traits

PASSES: tuple[Callable[[Program, Defaults], Iterator[Step]], ...] = (
    smaller.dtypes, wiring.bypasses, shapes.sizes, smaller.structure, shapes.ranks, smaller.values_of_tensors,
    smaller.values_of_params,
)  # fmt: skip
"""What is tried, what is exotic first, then coarse to fine; again from the first as long as something helps."""


class Spent(Exception):
    """The budget is used up."""


class Ask(Protocol):
    """Tells which programs fail as the first one did. Raises Spent."""

    batch: int
    """How many programs should be asked about at a time."""

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        """Return for each program whether it fails so."""

    def vanished(self, program: Program) -> bool:
        """Whether a program that was asked about passes."""

    def stands(self, program: Program) -> bool:
        """Whether a program that fails as the first one did is a fair one: its values hide no other failure, and one beside it
        passes, if one did at first."""


Keep = Callable[[Program], None]


def minimise(program: Program, defaults: Defaults, ask: Ask, keep: Keep) -> Program:
    """Return a program of which no single step makes a smaller one that fails; `keep` is told each one that is found.

    Every accepted program is smaller by `measure`, whose values are well-founded: so the search ends, even if everything
    fails. What the failure needs at first (a parameter, an input, a dtype, without which it vanishes) is kept to the end: a
    failure that later does without it has another cause. Raises Spent where asking does.
    """
    search = _Search(program, defaults, ask, keep)
    search.look()
    while True:
        before = search.program
        for steps in PASSES:
            search.go(steps(search.program, defaults))
        if search.program == before:
            return before


class _Search:
    """The smallest program so far.

    Attributes:
        needed: Traits that every candidate must have.
    """

    def __init__(self, program: Program, defaults: Defaults, ask: Ask, keep: Keep) -> None:
        self.program, self.defaults, self.ask, self.keep = program, defaults, ask, keep
        self.needed: list[Trait] = []
        self.tried = {program.id}

    def go(self, steps: Iterator[Step]) -> None:
        """Try the steps of one pass, each once, on what the ones before left."""
        left = deque(steps)
        while left:
            candidates: list[tuple[Step, Program]] = []
            while left and len(candidates) < self.ask.batch:
                step = left.popleft()
                made = self._smaller(step, self.program)
                if made is not None and made.id not in self.tried:
                    self.tried.add(made.id)
                    candidates.append((step, made))
            good = [
                pair for pair, failed in zip(candidates, self.ask([x for _, x in candidates]), strict=True) if failed
            ]
            if good:
                good.sort(key=lambda pair: measure(pair[1], self.defaults))
                while good and not self.ask.stands(good[0][1]):
                    good = good[1:]
            if good:
                self._take(good[0][1])
                self._together([step for step, _ in good[1:]])

    def look(self) -> None:
        """Try the program without each of its traits: it is left without those that do not matter, and needs the others."""
        left = traits(self.program, self.defaults)
        whole, spare = self.program, list[Step]()
        while left:
            batch, left = left[: self.ask.batch], left[self.ask.batch :]
            made = [(trait, x) for trait in batch if (x := applied(trait.without, whole)) is not None]
            for (trait, x), failed in zip(made, self.ask([x for _, x in made]), strict=True):
                if failed:
                    spare.append(trait.without)
                elif self.ask.vanished(x):
                    self.needed.append(trait)
        self._together(spare)

    def _take(self, program: Program) -> None:
        self.program = program
        self.keep(program)

    def _together(self, steps: list[Step]) -> None:
        """Take what steps that each helped alone make of the program one after the other, if that fails, too."""
        made = self.program
        for step in steps:
            made = self._smaller(step, made) or made
        if made.id not in self.tried:
            self.tried.add(made.id)
            if self.ask([made]) == [True] and self.ask.stands(made):
                self._take(made)

    def _smaller(self, step: Step, program: Program) -> Program | None:
        """Return what a step makes of a program, None where that is not smaller, or lacks what is needed, or where a tensor
        becomes 0-d or empty: that is a case of its own, which may fail of something else once the bug is mended.
        """
        made = applied(step, program)
        if made is None or not all(trait.held(made, self.defaults) for trait in self.needed):
            return None
        odd = shapes.corners(program)
        if any(corner and odd.get(name) is False for name, corner in shapes.corners(made).items()):
            return None
        return made if measure(made, self.defaults) < measure(program, self.defaults) else None
