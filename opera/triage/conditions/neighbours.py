"""Programs beside a failing one that pass: they show that a compiler takes programs of its ranks, shapes and values.

A compiler may refuse small programs lawfully, which nobody sees as long as a bug comes first: an `Upsample` of one axis. The
script of such a program would fail still once the bug is mended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import Protocol

import msgspec

from opera.programs.program import Graph, Instance, Program
from opera.programs.values import Value
from opera.programs.verdicts import FAILURES, INVALID, PASS, Outcome
from opera.triage.conditions import deciding, forms, peculiar
from opera.triage.conditions.deciding import Look
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Defaults


class Computing(Look, Protocol):
    """Tells also what the library computes. Raises Spent."""

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library computes for a program, None where it rejects it."""


class Neighbours:
    """What passes beside the program that a search begins with, once something is taken away from it.

    Attributes:
        told: What may be taken away so that it passes, as `opera.triage.conditions.removable.conditions` tells it.
        ranks: Operator, input or parameter, and rank of each of its tensors.
    """

    def __init__(self, ask: Computing, program: Program, defaults: Defaults) -> None:
        """Ask what passes. Raises Spent."""
        self.ask, self.program, self.defaults = ask, program, defaults
        self.told, self.ranks = deciding.passing(ask, program, defaults), set(_ranks(program))

    def has(self, program: Program) -> bool:
        """Whether a failing program still passes once one of these things is taken away from it, or from it with the parameters
        that the first one has besides: so its ranks, shapes and values are taken. Raises Spent.

        Where nothing can be said, because nothing is known to pass or the library rejects what it would be, it must keep the
        ranks of the first one, or pass with tensors of these ranks that have all one shape.
        """
        valid = False
        for says in self.told:
            shown = deciding.without(self.ask, program, says, self.defaults) or ()
            if any(outcome.verdict == PASS for _, outcome in shown):
                return True
            valid |= any(outcome.verdict != INVALID for _, outcome in shown)
        if valid and (full := self._full(program)) is not None:
            shown = [x for says in self.told for x in deciding.without(self.ask, full, says, self.defaults) or ()]
            return any(outcome.verdict == PASS for _, outcome in shown)
        own = set(_ranks(program))
        return not valid and (own <= self.ranks or own <= self.ranks | self._of_results or self._taken(program))

    def _taken(self, program: Program) -> bool:
        """Whether a call of the first one's operator passes with axes of 1 alone, or the shape of its first tensor for all of
        its rank. Raises Spent."""
        found = smaller.leaves(program)
        if not isinstance(program, Instance) or program.operator != self.program.operator or len(found) < 2:
            return False

        def change(leaf: smaller.Leaf, shape: tuple[int, ...]) -> smaller.Leaf:
            rank = len(leaf.shape)
            return forms.shaped(leaf, shape if shape and len(shape) == rank else (1,) * rank)

        made = [
            smaller.applied(partial(smaller.mapped, change=partial(change, shape=x)), program)
            for x in ((), found[0].shape)
        ]
        return any(x.verdict == PASS for x in self.ask.look([x for x in made if x is not None and x != program]))

    def spoilt(self, program: Program) -> bool:
        """Whether a larger failing program than the first one fails in another way where that passes, once one of these things
        is taken away: it has another failure besides. Raises Spent."""
        shown = [x for says in self.told for _, x in deciding.without(self.ask, program, says, self.defaults) or ()]
        own = _kind(self.ask.look([program])[0])
        return PASS not in {x.verdict for x in shown} and any(x.verdict in FAILURES and _kind(x) != own for x in shown)

    def _full(self, program: Program) -> Program | None:
        """Return a program with the parameters of the first one that it lacks; None where it lacks none, or is another call."""
        first = self.program
        if not (isinstance(first, Instance) and isinstance(program, Instance) and first.operator == program.operator):
            return None
        named = [x.name for x in first.inputs] == [x.name for x in program.inputs]
        if not named or not program.params.keys() < first.params.keys():
            return None
        opset = {x: y for x, y in program.context.items() if x == "opset"}
        return msgspec.structs.replace(
            program, params={**first.params, **program.params}, context={**first.context, **opset}
        )

    @cached_property
    def _of_results(self) -> set[tuple[str, str, int]]:
        """What `ranks` are of results that other calls of the first program take: a smaller one may be given such instead."""
        if not isinstance(self.program, Graph):
            return set()
        names = tuple(name for call in self.program.calls for name in call.outputs if name)
        made = self.ask.reference(msgspec.structs.replace(self.program, outputs=names))
        return set(_ranks(self.program, dict(zip(names, made or (), strict=False))))

    def chosen(self, says: str) -> bool:
        """Whether a condition is a rank that the search alone has chosen: the first program has none such."""
        ranked = peculiar.is_rank(says)
        return ranked and peculiar.unnamed_rank(says) not in {peculiar.of_rank(rank) for _, _, rank in self.ranks}


def _kind(shown: Outcome) -> tuple[str, str, str]:
    return shown.verdict, shown.stage, shown.symptom


def _ranks(program: Program, known: Mapping[str, Value] = MappingProxyType({})) -> Iterator[tuple[str, str, int]]:
    for call in program.instances(known) if isinstance(program, Graph) else program.instances():
        held: dict[str, Value] = {**call.params, **{x.name: x.value for x in call.inputs}}
        for name, value in held.items():
            yield from ((call.operator, name, len(x.shape)) for x in smaller.within(value))
