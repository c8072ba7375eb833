"""Documented domains: what is outside of them, and the same call within."""

from __future__ import annotations

import numpy as np

from opera.oracle import domains
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor


def test_inputs_outside_a_documented_domain() -> None:
    def of(*numbers: float) -> str:
        operands = (Operand("images", Tensor.of(np.float32(numbers).reshape(1, 1, -1))),)
        return domains.outside(Instance("keras", "keras.ops.image.hsv_to_rgb", {}, operands, (), {}))

    assert of(0.0, 0.5, 1.0) == ""
    assert "2 of 3 elements" in of(-0.1, 0.5, 1.1) and "only well defined" in of(2, 2, 2)
    assert of(np.nan, 0, 0)
    assert all(
        domain.source.startswith("https://") for name in ("keras", "onnx", "torch") for domain in domains.declared(name)
    )


def test_a_domain_may_be_what_a_parameter_says() -> None:
    def of(low: float, **params: list[float]) -> str:
        operands = (Operand("data", Tensor.of(np.float32([low, 1]))),)
        return domains.outside(Instance("keras", "keras.layers.RandomPosterization", params, operands, (), {}))

    assert "outside [0, 255]" in of(-1) and of(0) == ""
    assert of(0.5, value_range=[1.0, 0.5]) == "" and "outside [0.5, 1]" in of(0, value_range=[1.0, 0.5])
