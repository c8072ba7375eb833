"""Programs of one call of nothing in particular, and what is told of them where a function says which fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.further import Tried
from opera.triage.shrink import smaller

F32 = np.float32
NOTHING = Decided()
ONE = {"multiplier": 1}


def call(*arrays: Any, **params: Any) -> Instance:
    values = [x if isinstance(x, Tensor) else Tensor.of(np.asarray(x)) for x in arrays]
    given = tuple(Operand(f"x{n}", x) for n, x in enumerate(values))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


def listed(*arrays: Any) -> Instance:
    """Return a call that says which arguments it lists, as those of PyTorch and Keras do."""
    made = call(*arrays)
    return msgspec.structs.replace(made, context={"call": {"args": [x.name for x in made.inputs], "kwargs": []}})


def shape(program: Program, place: int = 0) -> tuple[int, ...]:
    return smaller.leaves(program)[place].shape


def dtype(program: Program) -> str:
    return smaller.leaves(program)[0].dtype


def number(program: Instance, name: str = "multiplier", default: int = 1) -> Any:
    return program.params.get(name, default)


def borne(
    program: Instance,
    fails: Callable[[Instance], bool | None],
    told: Decided = NOTHING,
    defaults: Any = None,
    **more: Any,
) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) else None for x in programs]

    return borne_out(label, program, {"Any": defaults or {}}, told, **more)._replace(tried=Tried(), passing_one=None)
