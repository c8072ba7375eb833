"""MNN: how values of every type travel, what it prints becomes what is raised, and nothing is installed or reported."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from opera import compilers
from opera.compilers import mnn
from opera.compilers.shared.packing import CannotCarry
from opera.oracle.comparison import compare
from opera.programs.values import Sequence, Tensor
from opera.programs.verdicts import CRASH, UNSUPPORTED, Raised, Seen
from opera.run import culprit, judge

pytest.importorskip("MNN")
FLOATS = Tensor.of(np.float32([[1, -2, 3], [4, 5, -6]]))
ONNX = mnn.FRONTENDS["onnx"]


def test_a_right_answer_passes_and_a_wrong_expectation_is_caught(make: Any, run: Any) -> None:
    right = Tensor.of(np.maximum(FLOATS.array(), 0))
    case = make("Relu", [FLOATS], [right])
    stage, outputs = run(mnn, case)
    assert stage == "done", outputs
    assert compare([right], outputs, case.outputs, None, None).symptom == ""
    assert compare([FLOATS], outputs, case.outputs, None, None).symptom == "value"
    assert ONNX.conversion_function(case, None) == "Relu"


HELD = ["bool", "float16", "float64", "int16", "int64", "uint16", "uint32", "uint64"]
OWN = ["float32", "int32", "int8", "uint8"]


@pytest.mark.parametrize("dtype", [*HELD, *OWN])
@pytest.mark.parametrize("shape", [(3,), (), (0, 2)], ids=["vector", "scalar", "empty"])
def test_a_type_that_mnn_has_not_comes_back_as_it_was_declared(
    dtype: str, shape: tuple[int, ...], make: Any, run: Any
) -> None:
    tensor = Tensor.of(np.arange(3)[: np.prod(shape, dtype=int)].astype(dtype).reshape(shape))
    assert run(mnn, make("Identity", [tensor], [tensor])) == ("done", [tensor])


def test_bfloat16_travels_unchanged(make: Any, run: Any) -> None:
    tensor = Tensor.of(np.array([0x3F80, 0x4000, 0xC000], np.uint16), "bfloat16")
    assert run(mnn, make("Identity", [tensor], [tensor])) == ("done", [tensor])


def test_a_type_that_nothing_holds_stays_wrong(make: Any, run: Any) -> None:
    """Only what MNN's files state for every tensor of a type is its design: a cast that does not cast is none."""
    narrow = Tensor.of(np.uint8([0x38]), "float8_e4m3fn")
    case = make("Cast", [Tensor.of(np.float32([1.0]))], [narrow], to=17)
    stage, outputs = run(mnn, case)
    assert stage == "done" and compare([narrow], outputs, case.outputs, None, None).symptom == "dtype"


def test_fractions_are_no_whole_numbers_that_it_holds_in_another_type() -> None:
    """It holds TFLite's uint32 and bool in float32: what its cast does not cut off, reading the result did."""
    pytest.importorskip("tflite")
    code = """
import numpy as np
from opera.compilers.recipes import mnn, mnn_tflite
held = mnn_tflite.HELD_OF_TFLITE
for numbers, dtype in (([1.7, 2], "uint32"), ([1, 2], "uint32"), ([0.5, 0], "bool"), ([1, 0], "bool"), ([1.5], "float16")):
    made = mnn.read(mnn.placed(np.float32(numbers), mnn.F.float, mnn.F.NHWC), dtype, mnn.F.NHWC, held)
    print("made", made.dtype, made.tolist())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [x.split()[1] for x in said if x.startswith("made")] == ["float32", "uint32", "float32", "bool", "float16"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Tensor.of(np.int64([1 << 31])), "opera: cannot feed int64 to MNN that int32 does not hold"),
        (Tensor.of(np.uint32([(1 << 32) - 1])), "opera: cannot feed uint32 to MNN that int32 does not hold"),
        (Tensor.of(np.int8([1]), "int4"), "opera: cannot feed int4 to MNN"),
        (Tensor.of(np.array(["a"], object)), "opera: cannot feed string to MNN"),
        (Sequence("tensor(float)", (FLOATS,)), "opera: cannot feed sequences to MNN"),
    ],
    ids=["int64", "uint32", "int4", "string", "sequence"],
)
def test_what_cannot_be_fed_is_no_crash(value: Any, reason: str, make: Any, run: Any) -> None:
    case = make("Identity", [value], [value])
    stage, error = run(mnn, case)
    assert stage == "infer" and isinstance(error, CannotCarry)
    assert ONNX.unsupported(case, stage, error) == reason


def concluded(case: Any, stage: str, error: Exception) -> tuple[str, str]:
    """Return verdict and message of what was raised, as a worker concludes them."""
    packages = culprit.packages_of(mnn, ONNX)
    seen = Seen(judge.observed(error, "/nowhere/"), culprit.blame(error, packages, culprit.adapter_of(ONNX)))
    assert isinstance(seen.raised[0], Raised)
    found = judge.conclude(ONNX, case, stage, seen, error)
    return found.verdict, found.message


def test_what_it_prints_is_what_is_raised(make: Any, run: Any) -> None:
    """Its converter returns True, and prints; its module returns nothing, and prints."""
    case = make("Hardmax", [FLOATS], [FLOATS])
    stage, error = run(mnn, case)
    assert (stage, str(error)) == ("load", "These Op Not Support: ONNX::Hardmax")
    assert concluded(case, stage, error) == (UNSUPPORTED, "no converter for Hardmax")
    assert ONNX.conversion_function(case, error) == "Hardmax"
    case = make("MatMul", [FLOATS, FLOATS], [FLOATS])
    stage, error = run(mnn, case)
    assert stage == "infer"
    assert concluded(case, stage, error) == (CRASH, "Compute Shape Error for y0\ncode=3 in onForward, 666")


def test_a_file_that_is_no_model_is_a_crash_at_load(make: Any, run: Any) -> None:
    case = make("Relu", [FLOATS], [FLOATS])
    case.model.write_bytes(b"\xff" * 40)
    stage, error = run(mnn, case)
    assert stage == "load" and concluded(case, stage, error)[0] == CRASH


def test_outputs_come_in_the_order_asked_for(make: Any, run: Any) -> None:
    parts = [Tensor.of(FLOATS.array()[:1]), Tensor.of(FLOATS.array()[1:])]
    assert run(mnn, make("Split", [FLOATS], parts, axis=0, num_outputs=2)) == ("done", parts)


def test_the_way_converts_without_optimisations(make: Any) -> None:
    import msgspec

    case = make("Relu", [FLOATS], [FLOATS])
    for way in ("", "unoptimised"):
        chosen = msgspec.structs.replace(case, variant="inputs", way=way)
        done = compilers.exported(ONNX, chosen, case.model.parent)
        assert ONNX.infer(ONNX.load(done), done) == [Tensor.of(np.maximum(FLOATS.array(), 0))]


def test_nothing_is_installed_and_nothing_reported() -> None:
    """What its command mnnconvert does beside converting is a module of its own, in whose place is an empty one."""
    code = """
import os, subprocess, sys
os.system = subprocess.Popen = None
from opera.compilers.recipes import mnn
assert not [name for name in sys.modules if name.partition(".")[0] in ("aliyun", "pip")]
import MNN.tools.mnnconvert
assert MNN.tools.mnnconvert.mnn_logger is None and os.environ["PIP_NO_INDEX"] == "1"
from MNN.tools.utils import log
assert not hasattr(log, "MNNLogger")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_module_imports_no_compiler() -> None:
    code = "import sys, opera.compilers.mnn; sys.exit(bool({'MNN', '_tools', 'onnx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert mnn.version()[0].isdigit() and all(isinstance(x, str) for x in mnn.options().values())


def test_what_is_printed_of_models_that_run_is_told_of_a_failure_only_alone() -> None:
    """Constants of truth values have MNN print that, and run."""
    from opera.compilers.recipes import mnn_told

    def says(*lines: str) -> str:
        return mnn_told.told(lambda: os.write(1, "\n".join(lines).encode()))[1]  # type: ignore[no-any-return]

    assert says("Unsupported data type! 0", "Don't support type [BatchMatMul]") == "Don't support type [BatchMatMul]"
    assert says("Unsupported data type! 0") == "Unsupported data type! 0"
    assert says("Converted Success!", "") == ""
