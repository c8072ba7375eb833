"""What stands around a call: what it returns as a result that another call takes, and what it is given as what another returns.

A compiler may do to outputs of a model what it does to no other result, and to inputs likewise. PyTorch's ONNX exporter drops
the cast of a sum of float16 where the model returns the sum itself.
"""

from __future__ import annotations

from typing import cast

import msgspec
import numpy as np

from opera import libraries
from opera.libraries import Negating
from opera.programs.program import Argument, Call, Graph, Instance, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions import dtypes
from opera.triage.shrink import simpler

BOUND = frozenset({"body", "captured"})
"""What of a call's context is bound to the names of its inputs."""
NEGATED = frozenset({*dtypes.ASKED, "bool", "complex64", "complex128"})
"""Dtypes of what is negated to be the result of another call; narrower ones do not hold all that it gives."""


def negated(program: Program) -> list[Program]:
    """Return a call whose first result another one negates, which is returned in its place; none where no library knows how."""
    if not isinstance(program, Instance) or (library := _negating(program)) is None:
        return []
    of, made = (_free(program, x) for x in ("result", next(iter(program.outputs), "") or "output_0"))
    inputs = tuple(x for x in program.inputs if x.value is not None)
    first = Call(program.operator, program.params, _arguments(program), (of,), program.context)
    calls = library.negations(program, of, made)
    return [Graph(program.library, inputs, (first, x), (made,)) for x in calls]


def unread(program: Program) -> list[Program]:
    """Return models of two inputs, of which a call that uses none of what it is given takes the first, and the second is
    negated; and the other way round; none of calls that take more, or where no library knows how."""
    if not isinstance(program, Instance) or (library := _negating(program)) is None:
        return []
    given = [x for x in program.inputs if x.value is not None]
    if len(given) != 1 or not isinstance(held := given[0].value, Tensor) or held.dtype not in NEGATED:
        return []
    inputs = tuple(msgspec.structs.replace(given[0], name=x) for x in ("first", "second"))
    found = list[Program]()
    for unused, used in (("first", "second"), ("second", "first")):
        own = Call(program.operator, program.params, (Argument(given[0].name, unused),), ("result",), program.context)
        other = library.negations(program, used, "negated")[held.dtype == "bool"]
        calls = (own, other) if unused == "first" else (other, own)
        found.append(Graph(program.library, inputs, calls, ("result", "negated")))
    return found


def computable(program: Program, value: Value) -> bool:
    """Whether another call can make what an input of a call is: numbers or truth values, if its library knows how."""
    held = isinstance(value, Tensor) and value.dtype in NEGATED
    return held and isinstance(program, Instance) and _negating(program) is not None


def computed(program: Program, name: str) -> list[Program]:
    """Return a call with the same numbers in an input, which another call makes of those that it negates; none where that
    cannot be."""
    value = next((x.value for x in program.inputs if x.name == name), None)
    if not isinstance(program, Instance) or (library := _negating(program)) is None:
        return []
    if not isinstance(value, Tensor) or value.dtype not in NEGATED:
        return []
    of, outputs = _free(program, "computed"), tuple(filter(None, program.outputs)) or (_free(program, "output_0"),)
    numbers, truth = simpler.numbers(value), value.dtype == "bool"
    with np.errstate(over="ignore"):
        other = simpler.numbered(np.logical_not(numbers) if truth else np.negative(numbers), value.dtype)
    given = (msgspec.structs.replace(x, value=other) if x.name == name else x for x in program.inputs)
    inputs = tuple(x for x in given if x.value is not None)
    arguments = tuple(msgspec.structs.replace(x, of=of) if x.name == name else x for x in _arguments(program))
    last = Call(program.operator, program.params, arguments, program.outputs or outputs, program.context)
    first = library.negations(program, name, of)[truth]
    return [Graph(program.library, inputs, (first, last), outputs)]


def _negating(program: Instance) -> Negating | None:
    library = libraries.get(program.library)
    known = hasattr(library, "negations") and not program.context.keys() & BOUND
    return cast(Negating, library) if known else None


def _free(program: Instance, name: str) -> str:
    """Return a name that no input has."""
    return f"{name}{'_' * (name in {x.name for x in program.inputs})}"


def _arguments(program: Instance) -> tuple[Argument, ...]:
    return tuple(Argument(x.name, "" if x.value is None else x.name) for x in program.inputs)
