"""Whether programs that fail alike are wrong in one part of a compiler: a list of dtypes with which something fails may have
two causes, such as an importer that keeps integers where the library returns floats, and a kernel that float16 has not.

Each is asked what the importer made of it, by ways of the frontend (opera.compilers.Way): of some it is wrong already, of
others what comes after it. Programs of the same dtypes are taken to be alike in that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from opera import compilers
from opera.compilers import APART, DECLARED
from opera.programs.program import Program
from opera.programs.verdicts import INCONSISTENT, PASS, Outcome
from opera.run.probe import Question
from opera.triage.shrink import smaller


class Asking(Protocol):
    """Tells what programs show in other ways."""

    question: Question

    def by_way(self, program: Program, way: str) -> Outcome:
        """Return what a program shows in another way to run it. Raises Spent."""


class Imported:
    """Knows of which dtypes the importer's result is wrong already, of programs that fail as a target does."""

    def __init__(self, ask: Asking) -> None:
        self.ask = ask
        self.known: dict[frozenset[str], dict[str, bool]] = {}

    def __call__(self, program: Program) -> dict[str, bool]:
        """Return way → whether what was made of a program is right by it, where that shows. Raises Spent."""
        held = key(program)
        if held not in self.known:
            self.known[held] = {name: right for name, right in self._shown(program) if right is not None}
        return self.known[held]

    def apart(self, program: Program, of: Program) -> bool:
        """Whether a program of other dtypes is known to be wrong in another part than the one that is told of. Raises Spent."""
        return key(program) != key(of) and self.right(of, beside=program) is not None

    def right(self, program: Program, *, beside: Program) -> bool | None:
        """Return whether what was made of a program is right, where it is otherwise of the one beside it; None: that is not
        known. Raises Spent.

        It is right where no way says that it is wrong; a way that says so must say that of the other it is right.
        """
        own = self(program)
        other = self(beside) if own else {}
        wrong, others = ({name for name, right in of.items() if not right} for of in (own, other))
        if bool(wrong) == bool(others) or not (wrong | others) & own.keys() & other.keys():
            return None
        return not wrong

    def _shown(self, program: Program) -> Iterator[tuple[str, bool | None]]:
        for way in compilers.ways_of(self.ask.question.frontend, (DECLARED, APART)):
            shown = self.ask.by_way(program, way.name)
            ran = shown.verdict in (PASS, INCONSISTENT)
            wrong = shown.verdict != PASS and (way.kind == APART or shown.symptom == "dtype")
            yield way.name, not wrong if ran else None


def key(program: Program) -> frozenset[str]:
    """Return of which dtypes the tensors of a program are."""
    return frozenset(x.dtype for x in smaller.leaves(program))
