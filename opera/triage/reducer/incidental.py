"""Whether the operator of a program matters at all: what its library's simplest calls do with the same input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

from opera import libraries
from opera.libraries import Cast, Plain, simplest
from opera.oracle import location, randomness
from opera.oracle.messages import gist
from opera.oracle.signature import normalise
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import ABORT, CRASH, ERROR, INCONSISTENT, INVALID, REFUSED, UNEXPORTED, Outcome
from opera.triage.failure import is_invalid, nodes, spoils_memory
from opera.triage.reducer.asking import Asker
from opera.triage.shrink import simpler, smaller

FLOAT = "float32"
"""The dtype of which nobody thinks that it decides."""
SILENT = (INVALID, ERROR, UNEXPORTED)
"""Verdicts on programs that the compiler never saw."""
OTHER = 5
"""First of the numbers in the place of those of a program, to see whether what it returns hangs on them."""


class Incidental(NamedTuple):
    """Which other operators fail of the same input, that of the program among them, none where its operator matters; and
    whether no simple call passes that is given that, and at least half of them fail alike.
    """

    others: tuple[str, ...] = ()
    always: bool = False


def incidental(ask: Asker, kept: list[Program]) -> Incidental:
    """Append the simplest call of the same input that fails as the last of `kept` does, for the same reason, if one does.

    Return which others do so. Raises Spent.

    Only what stops, or returns another form, is asked about: a wrong number of a simple call may be of another mistake.
    """
    program, target = kept[-1], ask.target
    library = libraries.get(program.library)
    if target is None or not _tells(target) or not hasattr(library, "simplest"):
        return Incidental()
    at = nodes(target) if is_invalid(target) else ()  # of the exported file
    every = cast(Plain, library).simplest(program, cast=_cast(ask, program, target), nodes=at)
    calls = [x for x in every if x.id != program.id]
    found = [x for x in _alike(ask, program, calls) if _given_decides(ask, program, x)]
    if not found:
        return Incidental()
    more = cast(Plain, library).simplest(found[0], panel=True)
    alike = [*found, *_alike(ask, program, more)]
    given = [x for x in (*every, *more) if x.inputs[0].value == found[0].inputs[0].value]
    judged = [x for x in given if x.id in ask.outcomes and ask.outcomes[x.id].verdict not in SILENT]
    always = (
        not (found[0].params and target.verdict == INCONSISTENT)
        and not any(map(ask.vanished, judged))
        and 2 * sum(x in [program, *alike] for x in judged) >= len(judged)
    )
    others, simple = [x.operator for x in alike], [x.operator for x in every]
    if program.operator in simple[: simple.index(others[0]) + 1]:  # it is as simple itself
        return Incidental(tuple(dict.fromkeys(x for x in others if x != program.operator)), always)
    kept.append(found[0])
    ask.target = ask.outcomes[found[0].id]
    names = dict.fromkeys(x for x in (*program.operators, *others[1:]) if x != others[0])
    return Incidental(tuple(names), always)


def _cast(ask: Asker, program: Program, shown: Outcome) -> Cast | None:
    """Return from which dtype to which a result should have been cast, where it has another than expected; or an input is,
    where those of a crash or refusal have several, and the result one of them; of one that is odd, to that. Raises Spent.
    """
    if shown.verdict == INCONSISTENT and shown.symptom == "dtype" and "expected" in shown.details:
        return Cast(str(shown.details["actual"]), str(shown.details["expected"]))
    given = list(dict.fromkeys(x.dtype for x in smaller.leaves(program)))
    if shown.verdict not in (CRASH, REFUSED) or not given:
        return None
    if len(given) == 1:
        return Cast(FLOAT, given[0]) if given[0] not in simplest.ORDINARY else None
    first = next(iter(ask.reference(program) or ()), None)
    ends = first.dtype if isinstance(first, Tensor) else ""
    begins = next((x for x in given if x != ends), "")
    return Cast(begins, ends) if ends in given else None


def _alike(ask: Asker, program: Program, calls: Sequence[Instance]) -> list[Instance]:
    """Return the calls that fail as the program does. Raises Spent."""
    target = cast(Outcome, ask.target)
    shown = zip(calls, ask.look(calls), strict=True)
    failed = [ask.fails(now, elsewhere=True) and _same(program, target, x, now) for x, now in shown]
    return [x for x, fails in zip(calls, ask.passed(calls, failed), strict=True) if fails]


def _tells(shown: Outcome) -> bool:
    """Whether a failure is of a kind that two programs show for one reason alone, if they show the same."""
    return shown.verdict in (ABORT, CRASH, REFUSED) or (
        shown.verdict == INCONSISTENT and shown.symptom in randomness.FORMS
    )


def _same(program: Program, one: Outcome, call: Instance, other: Outcome) -> bool:
    """Whether two failures are the same to the letter, and at one place; what names its own operator is about that. An invalid
    file must be so at a node of the same operator: `abs` of complex numbers is a Pow of them, which no Conv is.

    A cast that a program has made of its input or result may be named by both: that is what fails then.
    """
    if one.verdict == ABORT:
        alike = len({normalise(gist(x.message)) for x in (one, other)}) == 1
        return alike or (spoils_memory(one) and spoils_memory(other))
    if one.verdict == INCONSISTENT:
        return all(one.details.get(x) == other.details.get(x) for x in ("expected", "actual", "output"))
    if is_invalid(one) and nodes(one) != nodes(other):
        return False
    said = [gist(x.message) for x in (one, other)]
    words = location.telling(normalise(said[0]))  # else its numbers are all that it says
    texts = {normalise(x) if words else x for x in said}
    if len(texts) > 1 or place(one) != place(other):
        return False
    functions = [location.shared(x.conversion_function).partition("@")[0] for x in (one, other)]
    of_all = functions[0] == functions[1]  # code that all come by is named for none of them
    by = functions if not call.params else functions[:1]
    own = _names(*program.operators, *([] if call.params else [call.operator]), *([] if of_all else by))
    return (words or bool(place(one))) and not own.intersection(re.findall(r"[a-z]{3,}", " ".join(said).lower()))


def place(shown: Outcome) -> str:
    """Return where a compiler stopped: a `file:line` of native code, else the last line of its own in Python."""
    frames = shown.seen.frames if shown.seen is not None else ()
    return shown.line or next((x for x in reversed(frames) if not x.startswith("opera.")), shown.location)


def _names(*called: str) -> set[str]:
    """Return the words of what is called, and of what it is to a compiler."""
    last = [x.rpartition(".")[2].rpartition(":")[2] for x in called]
    return {x.lower() for name in last for x in re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}", name)} | {
        x.lower() for x in last
    }


def _given_decides(ask: Asker, program: Program, call: Instance) -> bool:
    """Whether it is what the two have in common that makes a program fail: it does not in float32; or where they are given
    nothing odd, what both return hangs on no input.
    """
    given = call.inputs[0].value
    if not isinstance(given, Tensor | RandomTensor) or call.params:
        return True
    if given.dtype != FLOAT and not ask.fails(
        ask.look([smaller.as_dtype(program, given.dtype, FLOAT)])[0], elsewhere=True
    ):
        return True
    if 0 in given.shape or given.shape == ():
        return True
    change = partial(simpler.counted, first=OTHER)
    return all(ask.reference(x) == ask.reference(smaller.mapped(x, change)) is not None for x in (program, call))
