"""Which of the calls that a program is made of is wrong: what an operator is exported to is the suspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opera.oracle import location
from opera.programs import values
from opera.programs.program import Program, parse
from opera.programs.values import Value
from opera.programs.verdicts import Outcome
from opera.run.library_side import Known
from opera.triage.failure import both_invalid, loses, misvalued, moved
from opera.triage.reducer.asking import Asker


def innermost(ask: Asker, kept: list[Program], defaults: dict[str, Mapping[str, Value]]) -> Known:
    """Append to `kept` the program that its last is made of and that fails so, what that is made of, and so on.

    What the library knows of the last is returned; `defaults` gets those of all operators that are called. Raises Spent.
    """
    of = known(ask, kept[-1], defaults)
    while (piece := _piece(ask, kept[-1], _further(of, kept))) is not None:
        kept.append(piece)
        ask.target = ask.outcomes[piece.id]
        of = ask.probe.known(piece.library, piece)
    return of


def _further(of: Known, kept: Iterable[Program]) -> list[Program]:
    """Return the programs that one is made of, without those that it was itself found in: two may be made of each other."""
    found = {x.id for x in kept}
    return [x for x in map(parse, of.pieces) if x.id not in found]


def known(ask: Asker, program: Program, defaults: dict[str, Mapping[str, Value]]) -> Known:
    """Return what the library knows of a program; `defaults` gets those of its operators."""
    of = ask.probe.known(program.library, program)
    defaults.update({name: {key: values.decode(x) for key, x in told.items()} for name, told in of.defaults.items()})
    return of


def _piece(ask: Asker, program: Program, pieces: Sequence[Program]) -> Program | None:
    """Return the first of the programs that one is made of which fails so, at the same place as far as places are told; which
    call is wrong is what we want to know. Where none does, the one operator that gives wrong numbers, else the one that
    makes a number of a NaN or an infinity which arises inside, or the other way round, else the one of which no valid file
    is made (`_misvalued`).
    """
    target, called = ask.target, set(program.operators)
    shown = list[Outcome]()
    while len(shown) < len(pieces) and target is not None:
        batch = pieces[len(shown) : len(shown) + ask.batch]
        shown += ask.look(batch)
        now = shown[-len(batch) :]
        failed = [ask.fails(x, elsewhere=True) and not moved(target, x, called) for x in now]
        for piece, fails in zip(batch, ask.passed(batch, failed), strict=True):
            if fails:
                return piece
    for suspected in (misvalued, loses, both_invalid):
        wrong = [x for x, now in zip(pieces, shown, strict=True) if target is not None and suspected(target, now)]
        if (found := _misvalued(ask, wrong, called)) is not None:
            return found
    return None


def _misvalued(ask: Asker, wrong: list[Program], called: set[str]) -> Program | None:
    """Return the first of these calls inside that are wrong, where they are of one operator, or one converter's: what
    others make of a wrong number may be none, or the other way round (the logarithm of a 0 that should be 0.1); and what
    reads an invalid shape may be what a checker names.

    Another implementation gives what is expected of a wrong number, and its place is not another than the program's.
    """
    target, shown = ask.target, [ask.outcomes[x.id] for x in wrong]
    if target is None or len({_suspect(x, now) for x, now in zip(wrong, shown, strict=True)}) != 1:
        return None
    fair = [
        (both_invalid(target, now) or ask.agreed(x)) and not moved(target, now, called)
        for x, now in zip(wrong, shown, strict=True)
    ]
    return next((x for x, good in zip(wrong, ask.passed(wrong, fair), strict=True) if good), None)


def _suspect(program: Program, shown: Outcome) -> str:
    """Return who is suspected of what a call shows: the code that converts it, where it is known, else its operator."""
    place = location.canonical(location.shared(shown.conversion_function))
    return place if location.names_converter(place) else location.canonical(program.operator)
