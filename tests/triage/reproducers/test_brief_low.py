"""What numpy does not have is told in few lines, too: the script of a finding holds numbers, and no blob of bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opera.libraries.onnx import library
from opera.programs import literals
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Sequence, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT
from opera.triage.reproducers.brief import brief
from opera.triage.reproducers.reproducer import Exhibit

LIST = Sequence("int64", (Tensor.of(np.int64([2])), Tensor.of(np.int64([3]))))
F32, I64 = Tensor.of(np.float32([1.0, -1.0])), Tensor.of(np.int64([1]))
BF16 = Tensor.of(np.array([0x3F80, 0x40C0], np.uint16), "bfloat16")
F8 = Tensor.of(np.array([0x38, 0x48], np.uint8), "float8_e4m3fn")
F4 = Tensor.of(np.array([2, 7], np.uint8), "float4_e2m1fn")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (BF16, "np.array([1.0, 6.0], dtype=ml_dtypes.bfloat16)"),
        (F8, "np.array([1.0, 4.0], dtype=ml_dtypes.float8_e4m3fn)"),
        (F4, "np.array([1.0, 6.0], dtype=ml_dtypes.float4_e2m1fn)"),
        (Tensor.of(np.int8([1, -2]), "int4"), "np.array([1, -2], dtype=np.int8).astype(ml_dtypes.int4)"),
        (Sequence("int64", (I64,)), "[np.array([1], dtype=np.int64)]"),
    ],
)
def test_elements_are_spelled_as_numbers_of_their_dtype(value: Value, text: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert literals.source(value) == text
    made = eval(text, {"np": np, "ml_dtypes": ml_dtypes})
    if isinstance(value, Tensor):
        assert made.astype(np.float64).tolist() == value.numbers().tolist()


def test_a_nan_of_other_bits_is_spelled_by_its_bits() -> None:
    odd = Tensor.of(np.array([0x7FC1], np.uint16), "bfloat16")
    assert "view(ml_dtypes.bfloat16)" in literals.source(odd)


@pytest.mark.parametrize(
    ("compiler", "operator", "inputs", "params", "stage", "right"),
    [
        ("openvino", "Cast", {"input": F32}, {"to": 16}, "infer", True),
        ("openvino", "Neg", {"X": BF16}, {}, "infer", True),
        ("openvino", "Cast", {"input": F32}, {"to": 23}, "infer", False),
        ("onnxruntime", "Cast", {"input": F32}, {"to": 17}, "infer", True),
        ("onnxruntime", "Cast", {"input": BF16}, {"to": 1}, "infer", True),
        ("onnxruntime", "Neg", {"X": BF16}, {}, "load", False),
        pytest.param("tvm", "Neg", {"X": BF16}, {}, "infer", True, marks=pytest.mark.full),
        pytest.param("tvm", "SequenceInsert", {"s": LIST, "t": I64}, {}, "load", False, marks=pytest.mark.full),
    ],
)
def test_the_short_script_feeds_and_reads_them(
    tmp_path: Path,
    compiler: str,
    operator: str,
    inputs: dict[str, Value],
    params: dict[str, int],
    stage: str,
    right: bool,
) -> None:
    """It runs to its end where the compiler computes what is expected."""
    pytest.importorskip({"tvm": "tvm", "openvino": "openvino"}.get(compiler, compiler))
    operands = tuple(Operand(name, x) for name, x in inputs.items())
    instance = Instance("onnx", operator, dict(params), operands, ("y",), {"opset": {"": 23}})
    manifest = library.wrap(Captured(instance, Provenance("suite", "f", "t")), "t" * 20, tmp_path / "test")
    verdict = INCONSISTENT if stage == "infer" else CRASH
    exhibit = Exhibit("F1", f"{compiler}-onnx", compiler, {}, "onnx", verdict, stage, "value", "wrong")
    found = brief(exhibit, manifest, tmp_path / "test", instance)
    assert found is not None
    text = found.script(exhibit)
    both = "def given(" in text and "def taken(" in text
    assert len(text.splitlines()) <= (46 if both else 40) and "base64" not in text
    assert stage == "infer" or operator == "SequenceInsert" or "def " not in text, "it ends before anything is fed"
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "SyntaxError" not in done.stderr and "NameError" not in done.stderr
    assert not right or done.returncode == 0, done.stderr
