"""An instance of ONNX for tests that need any."""

from __future__ import annotations

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor


def captured(number: int, test: str = "t", operator: str = "Relu", expected: bool = True) -> Captured:
    tensor = Tensor("int8", (1,), bytes([number]))
    instance = Instance("onnx", operator, {}, (Operand("X", tensor),), ("Y",), {"opset": {"": 14}})
    return Captured(instance, Provenance("suite", "file", test), (tensor,) if expected else None)
