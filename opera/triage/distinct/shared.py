"""What crashes of several operators have in common where they are one cause that lies in code which all of them share.

A converter that is given what the importer made of a graph's input says what it will; whoever mends that mends all of them. So
it is with a function of the compiler's that several converters call. The same words alone are no such thing, for each converter
may have a line of its own that says them: what decides must be the same, and be nothing of the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator

from opera.oracle import location
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.program import Instance
from opera.programs.verdicts import CRASH, Outcome
from opera.triage.conditions import deciding
from opera.triage.reduction import Reduction
from opera.triage.sentence import GRAPH_INPUT

EMPTY_LIST = "an empty list"
"""What decides where a parameter is a list without elements, whichever it is called."""


def shared(x: Reduction) -> Iterator[Hashable]:
    """Yield what crashes of one frontend that are one cause have in common, whatever operators they are of.

    - A sequence is a graph's input, which nothing else is told to decide, and the same words say that it is none.
    - A function that is no operator's own converter stops, in the same words but for names of types, at a list that is empty:
      a parameter that decides, or that the message names.
    """
    shown, program = x.outcome, x.program().program
    if shown.verdict != CRASH:
        return
    told = {deciding.key(says) for says in (*x.deciding, *x.besides, *x.circumstances)}
    said = _said(shown, program.operators)
    if told and all(says.endswith(f" {GRAPH_INPUT}") for says in told) and location.telling(said):
        yield GRAPH_INPUT, shown.stage, shown.symptom, said
    if isinstance(program, Instance) and _is_shared(shown):
        empty = {name for name, value in program.params.items() if value in ([], ())}
        if told <= empty and (told or empty & set(re.findall(r"[\"'`]([^\"'`\n]+)[\"'`]", shown.message))):
            yield EMPTY_LIST, shown.stage, shown.symptom, shown.location, said


def _said(shown: Outcome, operators: Collection[str]) -> str:
    """Return the words of a message, but for those of operators' names, and for such as are no words (`INTS`)."""
    names = {x.lower() for name in operators for x in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    words = re.findall(r"\b[A-Z]?[a-z]{2,}\b", normalise(cause(shown.message)))
    return " ".join(x.lower() for x in words if x.lower() not in names)


def _is_shared(shown: Outcome) -> bool:
    """Whether the function of the compiler's that raised is known, and none that converts the operator itself."""
    own = location.shared(shown.conversion_function).partition("@")[0].rpartition(".")[2]
    raised = shown.location.rpartition(":")[2].rpartition(".")[2]
    return location.names_converter(shown.conversion_function) and raised not in ("", own, "__call__")
