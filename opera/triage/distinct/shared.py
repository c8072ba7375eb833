"""What crashes of several operators have in common where they are one cause that lies in code which all of them share.

A converter that is given what the importer made of a graph's input says what it will; whoever mends that mends all of them. So
it is with a function of the compiler's that several converters call. The same words alone are no such thing, for each converter
may have a line of its own that says them: what decides must be the same, and be nothing of the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator

from opera import compilers
from opera.oracle import draws, location
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.program import Instance
from opera.programs.verdicts import CRASH, Outcome
from opera.run import exporters
from opera.triage.conditions import dtypes, removable
from opera.triage.distinct import kinship
from opera.triage.reduction import Reduction
from opera.triage.sentence import GRAPH_INPUT

OF_PYTHON = (
    "KeyError",
    "IndexError",
    "AttributeError",
    "AssertionError",
    "NotImplementedError",
    "TypeError",
    "ValueError",
)
"""Exceptions that Python code raises itself; what bindings raise may come from any depth of a library."""
INCIDENTAL = "of whatever operator"
BEFORE = "before any operator is converted"
COMPLEX = re.compile(r"unsupported type: tensor\(complex\d+\)")
"""How ONNX's checker says that a file has an operator of complex numbers: no operator that computes takes any."""
COMPLEXES = frozenset(("complex64", "complex128"))
VOID = "nothing is returned"
DRAWN_ONCE = "an exporter draws once"
EMPTY_LIST = "an empty list"
"""What decides where a parameter is a list without elements, whichever it is called."""


def shared(x: Reduction) -> Iterator[Hashable]:
    """Yield what failures of one frontend that are one cause have in common, whatever operators they are of.

    - A sequence is a graph's input, which nothing else is told to decide, and the same words say that it is none.
    - A function that is no operator's own converter stops, in the same words but for names of types, at a list that is empty:
      a parameter that decides, or that the message names.
    - The operator is incidental: of the same that decides, the simplest calls fail so, too, and in the same words.
    - What should be returned has no elements, and a runtime stops in the same words when that is run, whatever was computed.
    - An exporter that no operator has a converter of its own in writes down what was drawn once: nothing in its file is random,
      whoever runs it.
    - A refusal that contradicts what the compiler declares is of one omission, as the table of its refusals says.
    - An exporter writes an operator of complex numbers, of which ONNX has none that computes: which one is no matter, unless it
      fails so of other dtypes, too.
    - Python code stops before any operator is converted, at one place and in the same words to the letter (`KeyError: 10`, for
      a table of dtypes), where nothing but dtypes is told to decide.
    """
    shown, program = x.outcome, x.program().program
    told = kinship.decides(x)
    if x.incidental and told:
        yield INCIDENTAL, shown.stage, shown.symptom, normalise(cause(shown.message)), told
    if omission := shown.details.get("omission"):
        yield omission, shown.stage
    if shown.details.get("drawn") == draws.CONSTANT and _converts_none(x):
        yield DRAWN_ONCE, shown.stage
    if shown.verdict != CRASH:
        return
    said = _said(shown, program.operators)
    if x.void and not location.names_converter(shown.conversion_function):
        yield VOID, shown.stage, shown.symptom, normalise(cause(shown.message))
    held = [dtypes.members(says) for says in told if removable.is_dtype(says)]
    if _exports(x) and COMPLEX.search(shown.message) and all(names and names <= COMPLEXES for names in held):
        yield COMPLEX.pattern, shown.stage, shown.symptom
    if all(map(removable.is_dtype, told)) and _is_before(shown):
        yield BEFORE, shown.symptom, shown.location, shown.message
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


def _converts_none(x: Reduction) -> bool:
    """Whether a file is run that a library's exporter wrote, and nobody names code of their own for the operator."""
    compiler, _, library = x.frontend.rpartition("-")
    written = bool(exporters.makers(library, compilers.artefact(compiler, library, x.variant)))
    return (_exports(x) or written) and not location.names_converter(x.outcome.conversion_function)


def _exports(x: Reduction) -> bool:
    """Whether an exporter is under test."""
    compiler, _, library = x.frontend.rpartition("-")
    return compilers.exporter(compiler, library)


def _is_before(shown: Outcome) -> bool:
    """Whether Python code raised while a model was loaded, and the converter of its operator was not running."""
    frames, whole = (shown.seen.frames, shown.seen.whole) if shown.seen is not None else ((), False)
    functions = [x.split(":")[1] for x in frames if x.count(":") > 1]
    own = location.shared(shown.conversion_function).partition("@")[0].rpartition(":")[2]
    converting = location.names_converter(shown.conversion_function) and own in functions
    return shown.stage == "load" and shown.symptom in OF_PYTHON and bool(shown.location) and whole and not converting


def _is_shared(shown: Outcome) -> bool:
    """Whether the function of the compiler's that raised is known, and none that converts the operator itself."""
    own = location.shared(shown.conversion_function).partition("@")[0].rpartition(".")[2]
    raised = shown.location.rpartition(":")[2].rpartition(".")[2]
    return location.names_converter(shown.conversion_function) and raised not in ("", own, "__call__")
