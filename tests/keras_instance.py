"""Makes instances of Keras as a capture would."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor, Value


def instance(operator: str, params: dict[str, Any], context: dict[str, Value] | None = None, **inputs: Any) -> Instance:
    """An instance whose call passes its inputs by position, and everything that is no constructor's argument by keyword."""
    operands = tuple(Operand(name, Tensor.of(np.asarray(value))) for name, value in inputs.items())
    layer = operator.startswith("keras.layers")
    kwargs = [name for name in params if not layer or name.startswith("call.")]
    call = {"args": list(inputs), "kwargs": kwargs}
    return Instance("keras", operator, params, operands, (), {"training": False, "call": call, **(context or {})})
