"""What TensorRT tells by a return value and its log is raised here, in its own words, as a failure of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opera.compilers.shared.packing import Told


class ParserError(Told):
    """OnnxParser.parse_from_file returned False: a line for each of its errors."""


class BuildError(Told):
    """The builder, or the runtime, returned None: the lines that its logger was given."""


class ExecutionError(Told):
    """A call of the execution context returned False, or one of CUDA something else than success."""


class NothingConverted(Told):
    """Torch-TensorRT converted nothing, and said so in a log alone."""


KINDS = {kind.__name__: kind for kind in (ParserError, BuildError, ExecutionError, NothingConverted)}
"""The recipes' exceptions, by name: a script raises those."""
SAID = re.compile(r"^([A-Z_]+): .*? \(in (\S*) at (\S*):(\d+), node -?\d+ of (\S*)\)$", re.MULTILINE | re.DOTALL)
"""An error of the parser as the recipe tells it: code, function, file, line and operator."""
GENERIC = re.compile(
    r"parse|(?:import|check)\w*FallbackPlugin|import(?:Model|Inputs?|Graph|LocalFunctions)$|operator\(\)"
)
"""Functions of the parser that every operator goes through: `parseNode`, `importModel`, ..."""


@contextmanager
def told() -> Iterator[None]:
    """Raise what a recipe makes of TensorRT's answers as the failure that it is."""
    try:
        yield
    except RuntimeError as error:
        kind = KINDS.get(type(error).__name__)
        if kind is None or not type(error).__module__.startswith("opera.compilers.recipes."):
            raise
        raise kind(str(error)) from None


def importer(error: BaseException) -> str:
    """Return the parser's function that failed, or operator and place where it is one for all, as its first error says.

    An importer is named after its operator (`importConv`); its checker is another function of the same (`checkConv`).
    """
    found = SAID.search(str(error)) if isinstance(error, ParserError) else None
    if found is None:
        return ""
    _, function, file, line, operator = found.groups()
    if function and not GENERIC.match(function):
        return function
    place = f"{file.rsplit('/', 1)[-1]}:{line}" if file else ""
    return "@".join(filter(None, (operator, place)))
