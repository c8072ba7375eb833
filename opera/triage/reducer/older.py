"""A program as of older versions of its operators: in which it fails so, too, and since which it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import msgspec

from opera.programs.program import Instance, Program, parse, stated_version
from opera.programs.values import Value
from opera.programs.verdicts import INCONSISTENT, Outcome, newer
from opera.triage.alike import same_answer, same_values
from opera.triage.reducer.asking import Asker
from opera.triage.reduction import SINCE
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

LATER = 3
"""Opsets after the one since which a program fails in which it is asked about."""
INTEGERS = {f"{kind}{bits}": bits for kind in ("uint", "int") for bits in (8, 16, 32, 64)}
"""Integer dtypes → their bits."""


def as_of_older(ask: Asker, program: Program) -> list[Program]:
    """Return the program as of older versions of its operators, in which it fails so, too, the oldest last; else nothing.

    Where the compiler knows none that admits its types, other integers than these are tried, of which the same bits or numbers
    are expected: a shift that takes signed integers today may have been as wrong of unsigned ones before.
    """

    def older(of: Program) -> tuple[tuple[dict[str, Any], bool], ...]:
        return ask.probe.known(of.library, of).older

    found = oldest(ask, program, older(program))
    if not newer(ask.outcomes[(found or [program])[-1].id]):
        return found
    with suppress(Spent):
        expected = ask.reference(program)
        for made in other_integers(program):
            forms = [parse(form) for form, _ in older(made)]
            failing = [x for x, fails in zip(forms, ask(forms), strict=True) if fails and not newer(ask.outcomes[x.id])]
            if told := [x for x in failing if same_values(ask.reference(x), expected) and ask.agreed(x)]:
                return told[-1:]
    return found


def other_integers(program: Program) -> Iterator[Program]:
    """Yield the program with another integer dtype in place of each, those of as many bits first, which keep the bits."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} & INTEGERS.keys()):
        for other in sorted(INTEGERS.keys() - {dtype}, key=lambda x: (abs(INTEGERS[x] - INTEGERS[dtype]), x)):
            yield smaller.as_dtype(program, dtype, other)


def oldest(ask: Asker, program: Program, older: Sequence[tuple[dict[str, Any], bool]]) -> list[Program]:
    """Return the program as of older versions of its operators, in which it fails so, too, the oldest last; else nothing.

    First the oldest that its library says the same of; then, of what the compiler does not declare to know, any other, if the
    library's reference computes the same there, bit for bit, and another implementation confirms that: a version with other
    words may have other rules, which defend what the newer ones forbid. Else the newest of those that somebody confirms who
    does not support the program as it is.

    Args:
        older: Forms of the program, the newest first, and whether the library says the same of them (opera.libraries.Older).
    """
    same = [parse(form) for form, alike in older if alike][-1:]
    found = [x for x, fails in zip(same, ask(same), strict=True) if fails]
    newest = (found or [program])[0]
    try:
        unknown, without = newer(ask.outcomes[newest.id]), ask.without(newest)
        others = [parse(form) for form, alike in older if not alike and (unknown or without)]
        failing = [x for x, shown in zip(others, ask.look(others), strict=True) if _as_before(ask, newest, shown)]
        expected = ask.reference(newest) if failing else None
        means = [x for x in failing if ask.reference(x) == expected]
        if unknown:
            return found + [x for x in means if ask.agreed(x)][-1:]
        return found + [x for x in means if any(ask.passes(x, by) for by in without)][:1]
    except Spent:  # what was found is no worse for it
        return found


class Since(NamedTuple):
    """That a program fails since a version of its operator: how it is told, and the program as of the one before, which
    passes."""

    says: str
    passing: Program


def since(ask: Asker, program: Program) -> Since | None:
    """Return that a program passes as of the newest older version of its operator of which its library says the same, else
    None; and fails in the next opsets, too, as far as it is one there. What passes is shown in the last opset before, if it
    does there: nobody doubts then where it begins.
    """
    if not isinstance(program, Instance):
        return None
    version = stated_version(program)
    forms = [parse(form) for form, same in ask.probe.known(program.library, program).older if same][:1]
    with suppress(Spent):
        if version is not None and forms and ask.label(forms) == [False] and ask.passes_afresh(forms[0]):
            passing = _just_before(ask, program, version, forms[0])
            return Since(f"{SINCE}{version}{' or later' if _later(ask, program, version) else ''}", passing)
    return None


def _just_before(ask: Asker, call: Instance, version: int, older: Program) -> Program:
    """Return a call in the last opset before a version of its operator, if it passes there, too; else as of the older version,
    also where one lies between that its library says otherwise of, or there is no time left to ask."""
    last = _in_opset(call, version - 1)
    known = [parse(form) for form, _ in ask.probe.known(call.library, call).older][:1]
    with suppress(Spent):
        if known == [older] and ask.label([last]) == [False] and ask.passes_afresh(last):
            return last
    return older


def _later(ask: Asker, call: Instance, version: int) -> bool:
    """Whether a call fails in the next opsets, too, in those in which it is one; not, where there is no time left to ask."""
    with suppress(Spent):
        return set(ask.label([_in_opset(call, version + x) for x in range(1, LATER + 1)])) - {None} == {True}
    return False


def _in_opset(call: Instance, version: int) -> Program:
    """Return a call with another version of its operator's domain."""
    opset = cast(dict[str, Value], call.context["opset"])
    opset = {**opset, call.operator.rpartition("::")[0]: version}
    return msgspec.structs.replace(call, context={**call.context, "opset": opset})


def _as_before(ask: Asker, program: Program, shown: Outcome) -> bool:
    """Whether an outcome is that of a program: one answer, or one crash; of what is newer, whichever converter raises it."""
    before = ask.outcomes[program.id]
    if before.verdict == INCONSISTENT:
        return ask.fails(shown) and same_answer(before, shown)
    return ask.fails(shown, elsewhere=newer(before))
