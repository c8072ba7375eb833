"""Labels of the programs near a failing one: whether they fail alike, asked of as many as there is time for.

Which programs: triage.conditions.near and triage.conditions.ordinary. What follows: triage.conditions.circumstances.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from opera.programs.program import Instance, Program
from opera.triage.conditions import dtypes, usual
from opera.triage.conditions.arguments import as_number, unlike
from opera.triage.conditions.forms import counted, plain
from opera.triage.conditions.near import alone, near
from opera.triage.conditions.ordinary import between, comparable
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

Label: TypeAlias = Callable[[Sequence[Program]], list[bool | None]]
"""Tells of programs whether they fail alike; None where they neither do so nor pass. Raises Spent."""
NEAR = 54
"""Near programs that are asked about, and those of a turn more at most."""
SILENT = 4
"""A row of so many programs of which nothing is said is asked on when the others have ended."""


class Labelled(NamedTuple):
    """A program, and whether it fails alike; if not, it passes."""

    program: Program
    fails: bool


class Row:
    """Near programs that differ in one kind of thing, and how many of the last ones said nothing."""

    def __init__(self, programs: Iterator[Program | None]) -> None:
        self.programs, self.silent = programs, 0


def labelled(
    label: Label,
    program: Program,
    defaults: Defaults,
    seen: Iterable[Labelled],
    ordinary: list[tuple[Program, bool | None]] | None = None,
) -> list[Labelled]:
    """Return near programs with their labels, what was `seen` before first, as many as there is time to ask about.

    Ordinary ones (forms.plain) come first, and are appended to `ordinary` with what was said of them; then what tells of which
    of two tensors something is, and all dtypes. Rows of programs are asked in turn, those of which nothing is said again and
    again when the others have ended: of a layer whose parameters state sizes no other size is valid. Passing tests of another
    version of the operator lie on no row's other side, but programs between them and this one do.
    """
    known = [x for x in seen if x.program.operator == program.operator]
    found = {x.program.id: x for x in known if x.fails or comparable(x.program, program)}
    done, asked = {program.id, *found}, 0

    def ask(programs: Sequence[Program]) -> list[bool | None]:
        labels = label(programs) if programs else []
        found.update((x.id, Labelled(x, fails)) for x, fails in zip(programs, labels, strict=True) if fails is not None)
        return labels

    def new(programs: Iterable[Program | None]) -> Program | None:
        made = next((x for x in programs if x is not None and x.id not in done), None)
        done.update([made.id] if made is not None else [])
        return made

    try:
        base = program
        for change in (alone, counted):
            made = change(base)
            ask([x for x in (new([made]),) if x is not None])
            if made is not None and made.id in found and found[made.id].fails:
                base = made  # else its numbers, or its other outputs, matter
        first = plain(base)
        simple = {x.id: x for x in usual.calls(base, defaults) if x.id not in done}
        done.update(simple)
        ask([*simple.values()])
        ask([x for x in first if x.id not in done])
        done.update(x.id for x in first)
        ask([made for x in _of_two(base) if (made := new([x])) is not None])
        _of_other_dtypes(ask, base, done)
        if ordinary is not None:
            ordinary += ((x, found[x.id].fails if x.id in found else None) for x in first)
        rows = [Row(x) for x in (between(base, [x.program for x in known if not x.fails]), *near(base, defaults))]
        while rows and asked < NEAR:
            turn = [x for x in rows if x.silent < SILENT] or rows
            batch = {x: made for x in turn if (made := new(x.programs)) is not None}
            rows = [x for x in rows if x in batch or x not in turn]
            for row, fails in zip(batch, ask(list(batch.values())), strict=True):
                row.silent = row.silent + 1 if fails is None else 0
            asked += len(batch)
    except Spent:
        pass  # those that were asked about tell what they tell
    return [x for x in found.values() if x.program.id != program.id]


def _of_two(program: Program) -> list[Program]:
    """Return the program with one of two tensors of another kind, a number of Python's in place of the last one, or both of
    one shape."""
    if not isinstance(program, Instance):
        return dtypes.unlike(program)
    return [*dtypes.unlike(program), *[*as_number(program)][-2:], *itertools.islice(unlike(program), 2)]


def _of_other_dtypes(ask: Label, program: Program, done: set[str]) -> None:
    """Ask about a program in all other dtypes, with ordinary numbers if it fails with these, too; else those that hold its own.

    The first tensor's dtype is changed alone where nothing is said of all of it: which inputs share a type is not known here.
    """
    plain = dtypes.ordinary(program)
    fails = [x for x in (plain,) if x is not None and x.id not in done]
    base = plain if plain is not None and (ask(fails) == [True] or plain.id == program.id) else program
    done.update(x.id for x in fails)
    said = dict[str, bool]()
    for made in dtypes.others(base):
        for names in (dtypes.ASKED[: dtypes.COMMON], tuple(made)):
            if said and all(said.values()):  # in common dtypes it fails alike: it is none of numbers that decides
                break
            new = {x: made[x] for x in names if x in made and x not in said and made[x].id not in done}
            done.update(x.id for x in new.values())
            labels = zip(new, ask([*new.values()]), strict=True)
            said |= {x: fails_so for x, fails_so in labels if fails_so is not None}
    truth = [x for x in (dtypes.as_bool(program),) if x is not None and x.id not in done]
    ask(truth)  # which many a library computes as integers
    done.update(x.id for x in truth)
