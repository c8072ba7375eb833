"""Bodies that calls hold, changed with the tensors that these are given."""

from __future__ import annotations

from functools import partial
from typing import cast

from opera import libraries
from opera.libraries import Nesting
from opera.programs.program import Instance, Program, with_params
from opera.programs.values import Message, Value
from opera.triage.shrink import simpler


def retyped(program: Program, dtype: str, other: str) -> Program:
    """Return a program in whose bodies all that is of one dtype is of another, as its tensors are."""
    held = any(isinstance(x, Message) for call in program.instances() for x in call.params.values())
    library = libraries.get(program.library) if held else None
    if not hasattr(library, "retyped"):
        return program
    of = partial(simpler.as_dtype, dtype=dtype, other=other)

    def body(value: Value) -> Value:
        return cast(Nesting, library).retyped(value, dtype, other, of) if isinstance(value, Message) else value

    def params(call: Instance) -> dict[str, Value]:
        return {name: body(x) for name, x in call.params.items()}

    return with_params(program, params)
