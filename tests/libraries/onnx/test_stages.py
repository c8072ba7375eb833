"""What a stage of an operator is said to be computed in grants what that rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from opera.libraries.onnx import library, stages
from opera.oracle.comparison import TOLERANCES, compare
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

FLOAT, FLOAT16, DOUBLE = 1, 10, 11


@pytest.mark.parametrize(
    ("operator", "opset", "given", "dtype"),
    [
        ("GroupNormalization", 21, {"num_groups": 1}, "float32"),
        ("LayerNormalization", 17, {}, "float32"),
        ("RMSNormalization", 23, {"stash_type": DOUBLE}, "float64"),
        ("LayerNormalization", 17, {"stash_type": FLOAT16}, "float16"),
        ("Attention", 24, {}, ""),
        ("Attention", 24, {"softmax_precision": FLOAT16}, "float16"),
        ("QuantizeLinear", 24, {"precision": 0}, ""),
        ("Range", 27, {}, ""),
        ("GroupNormalization", 18, {"num_groups": 1}, ""),
        ("Nobody", 21, {}, ""),
    ],
)
def test_the_dtype_of_a_stage_is_granted(operator: str, opset: int, given: dict[str, Any], dtype: str) -> None:
    node = helper.make_node(operator, ["X"], ["Y"], **given)
    assert stages.granted([node], {"": opset}, None, None) == (TOLERANCES[dtype] if dtype else (None, None))
    least = TOLERANCES.get(dtype, (0.0, 0.0))
    assert stages.granted([node], {"": opset}, 0.5, 1e-9) == (0.5, max(1e-9, least[1]))


def test_what_float32_rounds_of_a_group_s_mean_is_nobody_s_mistake(tmp_path: Path) -> None:
    """ONNX Runtime gives 0.21675962 where the evaluator has 0.21675992 and exact arithmetic 0.21675972."""
    one = Tensor.of(np.ones(4))
    given = (Operand("X", Tensor.of(np.array([[2.4, 8.0, 9.2, 1.0]]))), Operand("scale", one), Operand("bias", one))
    program = Instance("onnx", "GroupNormalization", {"num_groups": 1}, given, ("Y",), {"opset": {"": 21}})
    made = library.wrap(Captured(program, Provenance("s", "f", "t"), None), "t", tmp_path / "t")
    [expected] = migrated.read_values(tmp_path / "t", "expected")
    assert isinstance(expected, Tensor) and expected.dtype == "float64"
    exact = Tensor.of(np.array([[0.21675972, 1.81172174, 2.15349932, -0.18198078]]))
    for off, symptom in ((0.0, ""), (0.01, "value")):
        other = Tensor.of(exact.numbers() + off)
        assert compare([expected], [other], ("Y",), made.rtol, made.atol).symptom == symptom
