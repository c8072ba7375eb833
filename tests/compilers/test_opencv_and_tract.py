"""OpenCV and tract: how values travel, what is theirs by design, and how they name what fails."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from opera.compilers import Compiler, opencv, tract
from opera.compilers.shared.packing import CannotCarry
from opera.oracle.comparison import compare
from opera.programs.values import Tensor

pytest.importorskip("cv2")
pytest.importorskip("tract")

COMPILERS: list[Any] = [opencv, tract]
FLOATS = Tensor.of(np.float32([[1, -2, 3], [4, 5, -6]]))
each = pytest.mark.parametrize("compiler", COMPILERS, ids=lambda module: module.NAME)


@each
def test_a_right_answer_passes_and_a_wrong_expectation_is_caught(compiler: Compiler, make: Any, run: Any) -> None:
    right = Tensor.of(np.maximum(FLOATS.array(), 0))
    case = make("Relu", [FLOATS], [right])
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare([right], outputs, case.outputs, None, None).symptom == ""
    assert compare([FLOATS], outputs, case.outputs, None, None).symptom == "value"
    assert compiler.FRONTENDS["onnx"].conversion_function(case, None) == "Relu"


@each
def test_outputs_come_in_the_order_asked_for_and_scalars_stay_scalars(compiler: Compiler, make: Any, run: Any) -> None:
    parts = [Tensor.of(FLOATS.array()[:1]), Tensor.of(FLOATS.array()[1:])]
    case = make("Split", [FLOATS], parts, axis=0, num_outputs=2)
    assert run(compiler, case) == ("done", parts)
    zero = Tensor.of(np.float32(-2))
    assert run(compiler, make("Abs", [zero], [zero])) == ("done", [Tensor.of(np.float32(2))])


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@each
def test_integers_travel_unchanged(compiler: Compiler, dtype: str, make: Any, run: Any) -> None:
    """Of 64 bits, OpenCV's setInput keeps 32."""
    limits = np.iinfo("int32" if compiler is opencv and dtype.endswith("64") else dtype) if dtype != "bool" else None
    least = 0 if limits is None or dtype.startswith("u") else limits.min
    values = Tensor.of(np.array([least, 1 if limits is None else limits.max, 1], dtype))
    assert run(compiler, make("Flatten", [values], [Tensor.of(values.array()[:, None])], axis=1)) == (
        "done", [Tensor.of(values.array()[:, None])],
    )  # fmt: skip


@each
def test_float16_and_nothing_come_as_the_model_states(compiler: Compiler, make: Any, run: Any) -> None:
    """OpenCV hands out float32, by design, and None for what is empty."""
    half = Tensor.of(np.float16([1, -2, 0.5]))
    assert run(compiler, make("Abs", [half], [half])) == ("done", [Tensor.of(np.abs(half.array()))])
    empty = Tensor.of(np.zeros((0, 3), np.float32))
    assert run(compiler, make("Abs", [empty], [empty])) == ("done", [empty])


def test_bfloat16_is_read_from_its_bits(make: Any, run: Any) -> None:
    bits = Tensor.of(np.uint16([0x3F80, 0xC000]), "bfloat16")
    case = make("Cast", [Tensor.of(np.float32([1, -2]))], [bits], to=onnx.TensorProto.BFLOAT16)
    assert run(opencv, case) == ("done", [bits])


STRINGS = Tensor.of(np.array(["a"], dtype=object))
UNSUPPORTED = {
    "opencv": {"CumProd": "no layer for CumProd", "Identity": "its tensors are never STRING"},
    "tract": {"CumProd": "CumProd is not implemented", "Identity": "opera: cannot feed string"},
}


@each
def test_the_compilers_own_words_make_it_unsupported(compiler: Compiler, make: Any, run: Any) -> None:
    square = Tensor.of(np.eye(2, dtype=np.float32))
    given: dict[str, Any] = {
        "CumProd": ([square, Tensor.of(np.int64(0))], [square]),
        "Identity": ([STRINGS], [STRINGS]),
    }
    for operator, said in UNSUPPORTED[compiler.NAME].items():
        case = make(operator, *given[operator], opset=26)
        stage, error = run(compiler, case)
        assert stage in ("load", "infer") and isinstance(error, Exception)
        assert str(compiler.FRONTENDS["onnx"].unsupported(case, stage, error)).startswith(said)


@each
def test_an_invalid_model_is_a_crash_at_load(compiler: Compiler, make: Any, run: Any) -> None:
    case = make("Abs", [FLOATS], [FLOATS])
    case.model.write_bytes(b"\xff" * 40)
    stage, error = run(compiler, case)
    assert stage == "load" and isinstance(error, Exception)
    assert compiler.FRONTENDS["onnx"].unsupported(case, stage, error) is None


def test_what_tract_wants_as_a_constant_is_told(make: Any, run: Any) -> None:
    case = make("Reshape", [FLOATS, Tensor.of(np.int64([3, 2]))], [Tensor.of(FLOATS.array().reshape(3, 2))])
    stage, error = run(tract, case)
    assert (stage, tract.FRONTENDS["onnx"].unsupported(case, stage, error)) == (
        "load", "needs-constant: shape input is variable",
    )  # fmt: skip
    assert tract.FRONTENDS["onnx"].conversion_function(case, error) == "Reshape"


def test_what_opencv_fails_at_is_told_with_its_place(make: Any, run: Any) -> None:
    """A vector times a matrix: legal, and no word on support."""
    vector = Tensor.of(np.float32([1, 2]))
    case = make("MatMul", [vector, Tensor.of(np.eye(2, dtype=np.float32))], [vector])
    stage, error = run(opencv, case)
    frontend = opencv.FRONTENDS["onnx"]
    assert (stage, frontend.unsupported(case, stage, error)) == ("infer", None)
    assert frontend.conversion_function(case, error).startswith("matmul_layer.cpp:")


def test_what_tracts_model_states_is_a_way(make: Any, run: Any) -> None:
    frontend = tract.FRONTENDS["onnx"]
    for value, output in ((FLOATS, "float32"), (Tensor.of(np.array([[True, False]])), "bool")):
        case = make("Transpose", [value], [Tensor.of(value.array().T.copy())])
        stage, outputs = run(tract, msgspec.structs.replace(case, way="declared"))
        assert stage == "done" and [(x.dtype, x.shape) for x in outputs] == [(output, value.shape[::-1])]
    case = make("Shape", [FLOATS], [Tensor.of(np.int64([2, 3]))])
    stage, error = run(tract, msgspec.structs.replace(case, way="declared"))
    assert stage == "infer" and isinstance(error, CannotCarry)
    assert [way.name for way in frontend.WAYS] == ["declared"]


def test_a_prepared_worker_is_quiet_and_has_one_thread(make: Any) -> None:
    case = make("CumProd", [FLOATS, Tensor.of(np.int64(0))], [FLOATS], opset=26)
    code = (
        "import cv2; from opera.compilers import opencv, tract; opencv.prepare(); tract.prepare()\n"
        "from opera.compilers.recipes import opencv as one, tract as two\n"
        "for load in (one.load, two.load):\n"
        "    try: load(__import__('sys').argv[1])\n"
        "    except Exception as error: print(type(error).__name__, 'backtrace' in str(error))\n"
        "print(cv2.getNumThreads(), cv2.ocl.useOpenCL())"
    )
    done = subprocess.run([sys.executable, "-c", code, case.model], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["error False", "TractError False", "1 False"]
    assert done.stderr == ""


def test_what_opencvs_new_engine_lacks_is_told_where_the_classic_one_fails_elsewhere(make: Any, run: Any) -> None:
    """The classic engine then says something of another node: it computes no shapes at run time. What it prints is caught."""
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["a", "b"], ["c"]), onnx.helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "ab"],
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "cd"],
    )
    case = make("Scan", [Tensor.of(np.zeros(3, np.float32)), FLOATS], [Tensor.of(np.zeros(3, np.float32)), FLOATS])
    model = onnx.load(case.model)
    scan = onnx.helper.make_node("Scan", ["x0", "r"], ["y0", "y1"], body=body, num_scan_inputs=1)
    steps = [
        onnx.helper.make_node("Shape", ["x1"], ["s"]),
        onnx.helper.make_node("Constant", [], ["k"], value_ints=[1]),
        onnx.helper.make_node("Gather", ["s", "k"], ["g"]),
        onnx.helper.make_node("Constant", [], ["m"], value=onnx.numpy_helper.from_array(np.int64([-1]))),
        onnx.helper.make_node("Concat", ["m", "g"], ["t"], axis=0),
        onnx.helper.make_node("Reshape", ["x1", "t"], ["r"]),
    ]
    del model.graph.node[:]
    model.graph.node.extend([*steps, scan])
    onnx.save(model, case.model)
    stage, error = run(opencv, case)
    frontend = opencv.FRONTENDS["onnx"]
    assert stage == "load" and isinstance(error, Exception)
    assert "Scan" in str(frontend.unsupported(case, stage, error)), error
