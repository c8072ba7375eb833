"""What numpy computes of a call of PyTorch: functions that both have under one name and meaning, and that round nothing.

Which they are is declared (`[exact]` of instrumentation/torch.toml), and held against PyTorch by its tests.
"""

from __future__ import annotations

import numpy as np

from opera import resources
from opera.oracle import location
from opera.oracle.opinions import Opinion
from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value

NAME = "numpy"
WHOLE = ("b", "i", "u")
"""Kinds of dtypes of whole numbers and truth values; of others only what is declared to be exact of floats, too, is asked."""


def declared() -> dict[str, dict[str, str]]:
    """Return `whole` and `floats`: name of a function of PyTorch → that of numpy's, of whole numbers and of any."""
    found: dict[str, dict[str, str]] = resources.declaration("instrumentation", "torch").get("exact", {})
    return found


def ask(program: Program, inputs: list[Value], expected: list[Value]) -> Opinion | None:
    """Return what numpy computes of one call of tensors of one dtype, None where it has no function for it."""
    calls = program.instances()
    if len(calls) != 1 or len(expected) != 1 or not isinstance(expected[0], Tensor):
        return None
    call, tensors = calls[0], [x for x in inputs if isinstance(x, Tensor)]
    plain = len(tensors) == len(inputs) == len(call.inputs) and len({x.dtype for x in tensors}) == 1
    if not plain or any(x is not None for x in call.params.values()) or tensors[0].dtype == "bfloat16":
        return None
    return _computed(call, tensors, expected[0])


def _computed(call: Instance, tensors: list[Tensor], expected: Tensor) -> Opinion | None:
    arrays, known = [x.array() for x in tensors], declared()
    name = location.canonical(call.operator).rpartition(".")[2]
    functions = {**known.get("floats", {}), **(known.get("whole", {}) if arrays[0].dtype.kind in WHOLE else {})}
    if name not in functions or len(tensors) != getattr(np, functions[name]).nin:
        return None
    with np.errstate(all="ignore"):
        try:
            found = Tensor.of(np.asarray(getattr(np, functions[name])(*arrays)))
        except (TypeError, ValueError):  # of a dtype that numpy's does not take, or of shapes that do not broadcast
            return None
    return Opinion(NAME, True, [found], equivalent=True) if found.dtype == expected.dtype else None
