"""Where the tracker of a finding is searched for it before it is filed, and for which words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opera import compilers
from opera.errors import UsageError
from opera.oracle.messages import gist, short
from opera.programs.program import JOINED
from opera.programs.verdicts import ABORT, INCONSISTENT, TIMEOUT, UNSTABLE, Outcome
from opera.report import trackers
from opera.triage import blame
from opera.triage.blame import Blame
from opera.triage.conditions import removable
from opera.triage.reproducers.choice import Choice

MOST = 3
"""Words beside the operator: a tracker finds what has all of them."""
OPERATORS = 2
"""Operators of a program that are searched for."""
WORD = re.compile(r"[A-Za-z_][\w.]*[A-Za-z\d]")
NAME = re.compile(r".*[a-z][A-Z].*|.*\w[_.]\w.*|(?:u?int|b?float|complex)\d+")
"""A word of a message that somebody made up: `NoneType`, `output_size`, `float16`."""
ASIDE = re.compile(r"\([^()]*\)|\S*/\S*|'[^']*\d[^']*'")
"""What of a message other programs have otherwise: what stands in brackets, paths, names with numbers."""
FORMS = ("shape", "dtype")
SILENT = (INCONSISTENT, UNSTABLE, ABORT, TIMEOUT)
"""Verdicts without words of their own: what a process said last need not be of what ended it."""
LEAST = 5
"""Letters of any other word that tells one message from others."""


def tracker(frontend: str, shown: str, laid: Blame | None) -> str:
    """Return the tracker of a finding on a frontend, whose script shows it on `shown`, another one for a plain form."""
    library, runtime = frontend.rpartition("-")[2], blame.runtime(frontend, laid)
    of = compilers.frontend_name(runtime, "onnx" if blame.body(laid) else library) if runtime else shown
    return trackers.default(of, laid.verdict if laid else "", blame.file(laid))


def address(name: str, operator: str, told: Iterable[str], outcome: Outcome) -> str:
    """Return where a tracker is searched for a finding.

    Args:
        name: Of the tracker.
        operator: Of what is shown; empty where it is incidental.
        told: What is told to decide.
    """
    return trackers.named(name).searched(words(operator, told, outcome))


def of(frontend: str, chosen: Choice, operator: str, laid: Blame | None) -> str:
    """Return where the tracker of a finding is searched for it; nothing where none is known."""
    try:
        name = tracker(frontend, chosen.verdict.frontend, laid)
    except UsageError:
        return ""
    return address(name, "" if chosen.incidental else operator, decides(chosen), chosen.verdict.outcome)


def decides(chosen: Choice) -> tuple[str, ...]:
    """Return what surely decides, that first of which it is as if it were not given."""
    unheeded = [f"{x} given" for x in (chosen.reduction.unheeded if chosen.reduction is not None else ())]
    return (*unheeded, *chosen.sure)


def words(operator: str, told: Iterable[str], outcome: Outcome) -> list[str]:
    """Return what is searched for: the operator, and what tells this failure of it from others. That is what a crash says;
    of a wrong output, of what ends its process, and of a crash that says nothing, what decides, parameters and dtypes by their
    names, and that its form is wrong, or the signal. In place of an operator that is incidental (`""`) stands what decides.
    """
    called = [x.rpartition(".")[2] for x in operator.split(JOINED) if x and x != "Constant"] or [operator]
    silent = outcome.verdict in SILENT
    lines = short(gist(outcome.message)).splitlines()[:1]
    own = rf"\w*(?:{'|'.join(map(re.escape, called))})\w*" if operator else r"(?!)"
    says = [] if silent else _telling(re.sub(own, " ", x) for x in lines)
    conditions = list(_conditions(told))
    form = [outcome.symptom] if outcome.symptom in FORMS else []
    signal = [outcome.symptom] if outcome.symptom.startswith("SIG") else []
    more = says or [*signal, *conditions, *form]
    return list(dict.fromkeys((*(called[:OPERATORS] if operator else conditions), *more[:MOST])))


def _telling(lines: Iterable[str]) -> list[str]:
    """Return the words of a message that tell most: names first, then the longest, in the order in which it has them."""
    every = [x for line in lines for x in WORD.findall(_plain(line))]
    found = list({x.lower(): x for x in reversed(every)}.values())[::-1]
    found = [x for x in found if NAME.fullmatch(x) or len(x) >= LEAST]
    best = sorted(found, key=lambda x: (NAME.fullmatch(x) is None, -len(x)))[:MOST]
    return [x for x in found if x in best]


def _plain(line: str) -> str:
    """Return a line without what other programs have otherwise, brackets within brackets as well."""
    while (less := ASIDE.sub(" ", line)) != line:
        line = less
    return line


def _conditions(told: Iterable[str]) -> Iterator[str]:
    """Yield the names in what is told to decide: of a parameter its name, else the first dtype or name."""
    for says in told:
        found = removable.named(says) or next((x for x in WORD.findall(says) if NAME.fullmatch(x)), "")
        if found:
            yield found
