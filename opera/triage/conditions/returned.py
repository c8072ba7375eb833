"""What a call returns, as a result that another call takes: a compiler may do to outputs of a model what it does to no other
result. PyTorch's ONNX exporter drops the cast of a sum of float16 where the model returns the sum itself.
"""

from __future__ import annotations

from typing import cast

from opera import libraries
from opera.libraries import Negating
from opera.programs.program import Argument, Call, Graph, Instance, Program

BOUND = frozenset({"body", "captured"})
"""What of a call's context is bound to the names of its inputs."""


def negated(program: Program) -> list[Program]:
    """Return a call whose first result another one negates, which is returned in its place; none where no library knows how."""
    library = libraries.get(program.library)
    if not isinstance(program, Instance) or not hasattr(library, "negations") or program.context.keys() & BOUND:
        return []
    taken = {x.name for x in program.inputs}
    of, made = (f"{x}{'_' * (x in taken)}" for x in ("result", next(iter(program.outputs), "") or "output_0"))
    inputs = tuple(x for x in program.inputs if x.value is not None)
    arguments = tuple(Argument(x.name, "" if x.value is None else x.name) for x in program.inputs)
    first = Call(program.operator, program.params, arguments, (of,), program.context)
    calls = cast(Negating, library).negations(program, of, made)
    return [Graph(program.library, inputs, (first, x), (made,)) for x in calls]
