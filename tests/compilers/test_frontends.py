"""ONNX Runtime, OpenVINO and TVM: what passes, what is unsupported, what crashes, and how values of every type travel."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest

from opera.compilers import Compiler, onnxruntime
from opera.compilers.openvino import compiler as openvino
from opera.compilers.shared import messages
from opera.compilers.shared.messages import Claimed
from opera.compilers.shared.packing import BITS, CannotCarry
from opera.compilers.tvm import compiler as tvm
from opera.compilers.tvm import values as tvm_values
from opera.oracle.comparison import compare
from opera.programs import values
from opera.programs.values import Optional, Sequence, Tensor

COMPILERS: list[Any] = [onnxruntime, openvino, tvm]
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
    assert "Relu" in compiler.FRONTENDS["onnx"].conversion_function(case, None)


@each
def test_outputs_come_in_the_order_asked_for_and_scalars_stay_scalars(compiler: Compiler, make: Any, run: Any) -> None:
    parts = [Tensor.of(FLOATS.array()[:1]), Tensor.of(FLOATS.array()[1:])]
    case = make("Split", [FLOATS], parts, axis=0, num_outputs=2)
    assert run(compiler, case) == ("done", parts)
    zero = Tensor.of(np.float32(-2))
    assert run(compiler, make("Abs", [zero], [zero])) == ("done", [Tensor.of(np.float32(2))])


@each
def test_an_input_passed_through_keeps_its_values(compiler: Compiler, make: Any, run: Any) -> None:
    """OpenVINO returns such an input's own memory, which must still be alive."""
    assert run(compiler, make("Max", [FLOATS], [FLOATS], opset=13)) == ("done", [FLOATS])


UNSUPPORTED = {
    "onnxruntime": ("Det", [Tensor.of(np.eye(2))], [Tensor.of(np.float64(1))], 22, "no kernel for Det"),
    "openvino": ("Det", [Tensor.of(np.eye(2))], [Tensor.of(np.float64(1))], 22, "no conversion rule for Det-22"),
    "tvm": ("Det", [Tensor.of(np.eye(2))], [Tensor.of(np.float64(1))], 22, "no converter for Det"),
}


@each
def test_the_compilers_own_words_make_it_unsupported(compiler: Compiler, make: Any, run: Any) -> None:
    operator, inputs, outputs, opset, reason = UNSUPPORTED[compiler.NAME]
    case = make(operator, inputs, outputs, opset=opset)
    stage, error = run(compiler, case)
    assert stage == "load" and compiler.FRONTENDS["onnx"].unsupported(case, stage, error) == reason


def test_what_tvm_refuses_against_its_own_claim(make: Any, run: Any) -> None:
    """Shape, Cast, Size converts; Shape, Size does not. The form of Constant is legal in the version that it registers."""
    case = make("Shape", [FLOATS], [Tensor.of(np.int64(0))])
    info = onnx.helper.make_tensor_value_info("y0", onnx.TensorProto.INT64, [])
    shape, size = onnx.helper.make_node("Shape", ["x0"], ["s"]), onnx.helper.make_node("Size", ["s"], ["y0"])
    cast = onnx.helper.make_node("Cast", ["s"], ["c"], to=onnx.TensorProto.INT64)
    number = onnx.helper.make_node("Constant", [], ["y0"], value_int=2)
    told = []
    for nodes in ([shape, cast, onnx.helper.make_node("Size", ["c"], ["y0"])], [shape, size], [number]):
        model = onnx.load(case.model)
        del model.graph.node[:], model.graph.output[:]
        model.graph.node.extend(nodes)
        model.graph.output.append(info)
        onnx.checker.check_model(model)
        onnx.save(model, case.model)
        try:
            tvm.FRONTENDS["onnx"].load(case)
        except Exception as error:
            reason = tvm.FRONTENDS["onnx"].unsupported(case, "load", error)
            told.append(type(reason))
        else:
            told.append(None)
    assert told == [None, Claimed, Claimed]


def test_what_onnx_runtime_lists_a_kernel_for_and_does_not_find(make: Any, run: Any) -> None:
    """Kernels without a last version, of operators that have a newer one in the opset that it declares, are never chosen."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    newest, frontend = onnxruntime.FRONTENDS["onnx"].opsets()[""], onnxruntime.FRONTENDS["onnx"]
    latest: dict[str, tuple[int, int]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == onnxruntime.CPU and kernel.domain == "":
            latest[kernel.op_name] = max(latest.get(kernel.op_name, (0, 0)), kernel.version_range)
    schemas = [x for x in onnx.defs.get_all_schemas_with_history() if x.domain == "" and x.name in latest]
    lost = {x.name for x in schemas if latest[x.name][0] < x.since_version <= min(newest, 22) <= latest[x.name][1]}
    rule = next(x for x in onnxruntime.UNSUPPORTED if x.kind == messages.CLAIMED)
    error = "NOT_IMPLEMENTED : Could not find an implementation for {}(22) node"
    assert {name for name in latest if rule.fits("load", RuntimeError(error.format(name)))} == lost
    assert run(onnxruntime, make("RandomUniformLike", [FLOATS], [FLOATS], opset=21))[0] == "done"
    newer = make("RandomUniformLike", [FLOATS], [FLOATS], opset=22)
    assert isinstance(frontend.unsupported(newer, *run(onnxruntime, newer)), Claimed)


@each
def test_what_a_compiler_declares_to_read_is_asked_of_it(compiler: Compiler) -> None:
    """ONNX Runtime's own message says it; OpenVINO and TVM read more than they have schemas and converters for."""
    declared = compiler.FRONTENDS["onnx"].opsets()
    assert set(declared) == {""} and 18 <= declared[""] <= onnx.defs.onnx_opset_version()


@pytest.mark.parametrize("compiler", [onnxruntime, openvino], ids=lambda module: module.NAME)
def test_what_a_compiler_ships_of_an_operator_is_asked_of_it(compiler: Compiler) -> None:
    """A name that neither holds is that of an attribute of the newest Attention, whose version is older than their opset."""
    frontend: Any = compiler.FRONTENDS["onnx"]
    assert {x: frontend.newest(x) for x in ("Abs", "LSTM", "Resize")} == {"Abs": 13, "LSTM": 22, "Resize": 19}
    assert frontend.newest("Nothing") is None
    windows = "left_window_size" in onnx.defs.get_schema("Attention", 25).attributes
    assert frontend.newest("Attention") == (24 if windows else 25)


def test_onnx_runtime_refuses_the_opset_after_the_one_that_it_declares(make: Any, run: Any) -> None:
    newest = onnxruntime.FRONTENDS["onnx"].opsets()[""]
    outputs = [Tensor.of(np.abs(FLOATS.array()))]
    assert run(onnxruntime, make("Abs", [FLOATS], outputs, opset=newest)) == ("done", outputs)
    case = make("Abs", [FLOATS], outputs, opset=newest + 1)
    stage, error = run(onnxruntime, case)
    reason = onnxruntime.FRONTENDS["onnx"].unsupported(case, stage, error)
    assert (stage, reason) == ("load", f"opset {newest + 1} is newer than the official support")


@each
def test_an_invalid_model_is_a_crash_at_load(compiler: Compiler, make: Any, run: Any) -> None:
    case = make("Reshape", [FLOATS, Tensor.of(np.int64([7, 7]))], [FLOATS])
    case.model.write_bytes(b"\xff" * 40)
    stage, error = run(compiler, case)
    assert stage == "load" and isinstance(error, Exception)
    assert compiler.FRONTENDS["onnx"].unsupported(case, stage, error) is None


def test_a_check_that_fails_in_openvino_names_its_place(make: Any, run: Any) -> None:
    case = make("Celu", [Tensor.of(np.float16([1, -1]))], [Tensor.of(np.float16([1, -1]))], alpha=2.0, opset=12)
    stage, error = run(openvino, case)
    assert stage == "load" and openvino.FRONTENDS["onnx"].unsupported(case, stage, error) is None
    assert openvino.FRONTENDS["onnx"].conversion_function(case, error) == "Celu@elementwise_args.cpp:18"


def low(dtype: str) -> Tensor:
    signed = dtype.startswith("int")
    items = {"int4": [-8, 7, 1], "uint4": [15, 0, 3], "int2": [-2, 1, 0], "uint2": [3, 0, 1]}.get(dtype, [1, 2, 3])
    return Tensor.of(np.array(items, dtype=np.int8 if signed else values.CONTAINERS[dtype]), dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@each
def test_low_precision_bits_travel_unchanged(compiler: Compiler, dtype: str, make: Any, run: Any) -> None:
    tensor = low(dtype)
    assert run(compiler, make("Identity", [tensor], [tensor])) == ("done", [tensor])


@pytest.mark.parametrize(("dtype", "number"), [("int4", 22), ("uint4", 21)])
@pytest.mark.parametrize("compiler", [onnxruntime, openvino], ids=lambda module: module.NAME)
def test_packed_elements_are_fed_and_read(compiler: Compiler, dtype: str, number: int, make: Any, run: Any) -> None:
    tensor = low(dtype)
    wide = Tensor.of(tensor.array().astype(np.float32))
    assert run(compiler, make("Cast", [tensor], [wide], to=1)) == ("done", [wide])
    assert run(compiler, make("Cast", [wide], [tensor], to=number)) == ("done", [tensor])


def test_what_opera_cannot_feed_to_tvm_is_no_crash(make: Any, run: Any) -> None:
    case = make("Optional", [Tensor.of(np.complex64([1j]))], [FLOATS])
    error = CannotCarry("opera cannot feed complex64 to TVM, which has no such type")
    assert "opera: cannot feed complex64" in str(tvm.FRONTENDS["onnx"].unsupported(case, "infer", error))
    with pytest.raises(CannotCarry, match="complex64"):
        tvm_values.feed(Tensor.of(np.complex64([1j])))


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_elements_of_less_than_a_byte_are_packed_for_tvm(dtype: str, make: Any, run: Any) -> None:
    """It compiles such models and its runtime takes them packed, as DLPack says; its code reads an element a byte."""
    tensor = low(dtype)
    assert tvm_values.read(tvm_values.feed(tensor)) == tensor
    assert run(tvm, make("Identity", [tensor], [tensor])) == ("done", [tensor])


def test_strings_of_any_rank_travel_unchanged_through_onnx_runtime(make: Any, run: Any) -> None:
    words = Tensor.of(np.array([["a", "bc"], ["", "ä"]], dtype=object))
    assert run(onnxruntime, make("Identity", [words], [words])) == ("done", [words])


def test_strings_are_unsupported_where_openvino_and_tvm_say_so(make: Any, run: Any) -> None:
    words, truth = Tensor.of(np.array(["a", "bc"], dtype=object)), Tensor.of(np.array([True, True]))
    for compiler, expected in (
        (openvino, ("compile", "unsupported type string")),
        (tvm, ("load", "unsupported type object")),
    ):
        case = make("Equal", [words, words], [truth])
        stage, error = run(compiler, case)
        assert (stage, compiler.FRONTENDS["onnx"].unsupported(case, stage, error)) == expected


def test_sequences_and_optionals_travel_through_onnx_runtime(make: Any, run: Any) -> None:
    sequence = Sequence("tensor(float)", (FLOATS, FLOATS))
    assert run(onnxruntime, make("Identity", [sequence], [sequence])) == ("done", [sequence])
    optional = Optional("tensor(float)", FLOATS)
    assert run(onnxruntime, make("OptionalGetElement", [optional], [FLOATS])) == ("done", [FLOATS])


def test_a_sequence_made_by_tvm_comes_back_as_one(make: Any, run: Any) -> None:
    expected = Sequence("float32", (FLOATS, FLOATS))
    assert run(tvm, make("SequenceConstruct", [FLOATS, FLOATS], [expected])) == ("done", [expected])


def test_tvm_names_the_converter_of_the_models_opset(make: Any) -> None:
    names = [
        tvm.FRONTENDS["onnx"].conversion_function(make("Softmax", [FLOATS], [FLOATS], opset=n), None) for n in (11, 13)
    ]
    assert names == ["onnx_frontend:Softmax._impl_v1", "onnx_frontend:Softmax._impl_v13"]


@each
def test_version_and_options_are_stated(compiler: Compiler) -> None:
    assert compiler.version()[0].isdigit()
    assert all(isinstance(value, str) for value in compiler.options().values())


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "tvm"])
def test_importing_the_module_imports_no_compiler(name: str) -> None:
    """`--help` must be instant, and a compiler that is not installed one line."""
    code = f"import sys, opera.compilers.{name}; sys.exit(bool({{'onnx', '{name}'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_openvino_feeds_an_input_whose_name_is_gone_after_loading(make: Any, run: Any) -> None:
    ratio = Tensor.of(np.float32(0.5))
    assert run(openvino, make("Dropout", [FLOATS, ratio], [FLOATS], opset=13)) == ("done", [FLOATS])
