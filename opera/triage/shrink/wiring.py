"""Fewer calls between one and another: what takes a result takes what that was made of instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from opera.programs.program import Call, Graph, Program
from opera.triage.shrink.smaller import Defaults, Step, unread_left_out

MOST = 8
"""Calls with inputs that a program has at most of which each is passed by; of more, halves are tried first."""


def bypasses(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield what leaves out each call of a program of several, one of its inputs in the place of its result, the last first."""
    if isinstance(program, Graph) and sum(bool(x.inputs) for x in program.calls) <= MOST:
        for call in reversed(program.calls):
            if sum(map(bool, call.outputs)) == 1:
                yield from (
                    partial(_bypassed, call=call, by=x) for x in dict.fromkeys(y.of for y in call.inputs if y.of)
                )


def _bypassed(program: Program, call: Call, by: str) -> Program | None:
    """Return a program in which something else is what a call returned; None where the program has no such call, or would
    return an input.
    """
    if not isinstance(program, Graph) or call not in program.calls:
        return None
    [made] = filter(None, call.outputs)
    if made in program.outputs and by in (*program.outputs, *(x.name for x in program.inputs)):
        return None
    calls = tuple(
        msgspec.structs.replace(
            x, inputs=tuple(msgspec.structs.replace(y, of=by) if y.of == made else y for y in x.inputs)
        )
        for x in program.calls
        if x != call
    )
    outputs = tuple(by if x == made else x for x in program.outputs)
    return unread_left_out(msgspec.structs.replace(program, calls=calls, outputs=outputs))
