"""Programs beside a failing one that pass: they show that a compiler takes programs of its ranks, shapes and values.

A compiler may refuse small programs lawfully, which nobody sees as long as a bug comes first: an `Upsample` of one axis. The
script of such a program would fail still once the bug is mended.
"""

from __future__ import annotations

from collections.abc import Iterator

from opera.programs.program import Program
from opera.programs.values import Value
from opera.programs.verdicts import INVALID, PASS
from opera.triage.conditions import deciding, peculiar
from opera.triage.conditions.deciding import Look
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Defaults


class Neighbours:
    """What passes beside the program that a search begins with, once something is taken away from it.

    Attributes:
        told: What may be taken away so that it passes, as `opera.triage.conditions.deciding.conditions` tells it.
        ranks: Operator, input or parameter, and rank of each of its tensors.
    """

    def __init__(self, ask: Look, program: Program, defaults: Defaults) -> None:
        """Ask what passes. Raises Spent."""
        self.ask, self.defaults = ask, defaults
        self.told, self.ranks = deciding.passing(ask, program, defaults), set(_ranks(program))

    def has(self, program: Program) -> bool:
        """Whether a failing program still passes once one of these things is taken away from it. Raises Spent.

        Where nothing can be said, because nothing is known to pass or the library rejects what it would be, it must keep the
        ranks of the first one.
        """
        valid = False
        for says in self.told:
            shown = deciding.without(self.ask, program, says, self.defaults) or ()
            if any(outcome.verdict == PASS for _, outcome in shown):
                return True
            valid |= any(outcome.verdict != INVALID for _, outcome in shown)
        return not valid and set(_ranks(program)) <= self.ranks

    def chosen(self, says: str) -> bool:
        """Whether a condition is a rank that the search alone has chosen: the first program has none such."""
        ranked = peculiar.is_rank(says)
        return ranked and peculiar.unnamed_rank(says) not in {peculiar.of_rank(rank) for _, _, rank in self.ranks}


def _ranks(program: Program) -> Iterator[tuple[str, str, int]]:
    for call in program.instances():
        held: dict[str, Value] = {**call.params, **{x.name: x.value for x in call.inputs}}
        for name, value in held.items():
            yield from ((call.operator, name, len(x.shape)) for x in smaller.within(value))
