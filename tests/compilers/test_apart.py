"""What an importer made is run by numpy, and told apart from what it makes of another model: of real OpenVINO and TVM."""

import re
from contextlib import nullcontext
from typing import Any

import msgspec
import numpy as np
import onnx
import openvino
import openvino.opset16 as ops
import pytest
from onnx import TensorProto, helper

from opera.compilers import onnxruntime
from opera.compilers.openvino import interpreter
from opera.compilers.openvino.interpreter import NotEvaluated
from opera.compilers.openvino.onnx import PLACES
from opera.compilers.shared.packing import Faulty, Refusal, Unlawful
from opera.programs.values import Tensor
from opera.run import culprit
from opera.triage.part import KERNEL

X = np.array([[-1.5, 0.5, 2.5], [3.0, -0.25, 1.0]], np.float32)
Y = np.array([[2.0, 1.0, 0.5], [1.0, 4.0, 2.0]], np.float32)
MODELS = {
    "broadcast": lambda x, y: ops.broadcast(x, np.array([2, 2, 3])),
    "clamp": lambda x, y: ops.clamp(x, -1.0, 1.0),
    "concat": lambda x, y: ops.concat([x, y], 1),
    "convert": lambda x, y: ops.convert(x, "i32"),
    "divide": lambda x, y: ops.divide(x, y),
    "fake_quantize": lambda x, y: ops.fake_quantize(x, -1.0, 2.0, -10.0, 20.0, 256),
    "floor_mod": lambda x, y: ops.floor_mod(x, y),
    "is_inf": lambda x, y: ops.is_inf(ops.divide(x, ops.subtract(y, y)), {"detect_negative": False, "detect_positive": True}),
    "matmul": lambda x, y: ops.matmul(x, y, False, True),
    "mod": lambda x, y: ops.mod(x, y),
    "reduce_max": lambda x, y: ops.reduce_max(x, np.array([1]), True),
    "reduce_mean": lambda x, y: ops.reduce_mean(x, np.array([0, 1])),
    "relu": lambda x, y: ops.relu(x),
    "reshape": lambda x, y: ops.reshape(x, np.array([0, 1, 3]), True),
    "round": lambda x, y: ops.round(x, "half_to_even"),
    "round_away": lambda x, y: ops.round(x, "half_away_from_zero"),
    "select": lambda x, y: ops.select(ops.less(x, y), x, y),
    "shape": lambda x, y: ops.shape_of(x),
    "sigmoid": lambda x, y: ops.sigmoid(x),
    "squeeze": lambda x, y: ops.squeeze(ops.unsqueeze(x, np.array([0, 2])), np.array([2])),
    "transpose": lambda x, y: ops.transpose(x, np.array([1, 0])),
}  # fmt: skip


def model(make) -> openvino.Model:
    x, y = (ops.parameter([2, 3], openvino.Type.f32, name=name) for name in "xy")
    return openvino.Model([make(x, y)], [x, y])


def test_numpys_meaning_of_operators_is_openvinos_on_ordinary_numbers():
    x, y = (ops.parameter([2, 3], openvino.Type.f32, name=name) for name in "xy")
    made = openvino.Model([make(x, y) for make in MODELS.values()], [x, y])
    found = interpreter.evaluated(made, {"x": X, "y": Y})
    wanted = openvino.Core().compile_model(made, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X, Y])
    for place, (name, got) in enumerate(zip(MODELS, found, strict=True)):
        assert got.dtype == wanted[place].dtype, name
        np.testing.assert_allclose(got, wanted[place], rtol=1e-6, err_msg=name)


def test_what_numpy_does_not_settle_is_not_evaluated():
    for make in (
        lambda x, y: ops.normalize_l2(x, np.array([1]), 1e-6, "add"),
        lambda x, y: ops.convert(ops.multiply(x, np.float32(1e10)), "i32"),
        lambda x, y: ops.multiply(ops.convert(y, "i8"), ops.constant(np.array(100, np.int8))),
        lambda x, y: ops.convert(x, "f8e4m3"),
    ):
        with pytest.raises(NotEvaluated):
            interpreter.evaluated(model(make), {"x": X, "y": Y})
    x = ops.parameter([1], openvino.Type.f32, name="x")
    most = openvino.Model([ops.reduce_max(x, np.array([0]))], [x])
    assert interpreter.evaluated(most, {"x": np.array([-np.inf], np.float32)}) == [
        -np.inf
    ]  # which its kernels make finite


def loaded(path, operator, inputs, **attributes):
    """Return a node as ONNX, in a file."""
    names = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in inputs]
    node = helper.make_node(operator, list(inputs), ["out"], **attributes)
    graph = helper.make_graph([node], "g", names, [helper.make_tensor_value_info("out", TensorProto.BOOL, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def test_two_models_are_told_apart_by_what_they_compute_and_not_by_names(tmp_path):
    make = MODELS["clamp"]
    assert interpreter.digest(model(make)) == interpreter.digest(model(make))  # nodes of both have other names
    assert interpreter.digest(model(make)) != interpreter.digest(model(lambda x, y: ops.clamp(x, -1.0, 2.0)))
    assert interpreter.digest(model(make)) != interpreter.digest(model(lambda x, y: ops.clamp(y, -1.0, 1.0)))
    read = openvino.Core().read_model
    found = [read(loaded(tmp_path / "m.onnx", "IsInf", "X", detect_negative=x)) for x in (0, 1)]
    assert interpreter.digest(found[0]) != interpreter.digest(found[1])


def test_tvms_importer_leaves_an_attribute_out_and_its_modules_say_so(tmp_path):
    from opera.compilers.recipes import tvm_onnx as recipe
    from opera.compilers.tvm.interpreter import digest

    found = [digest(recipe.load(loaded(tmp_path / "m.onnx", *x, **y))[0]) for x, y in (
        (("IsInf", "X"), {"detect_negative": 0}), (("IsInf", "X"), {}), (("IsNaN", "X"), {}),
    )]  # fmt: skip
    assert found[0] == found[1] != found[2]


def test_frames_of_native_code_name_the_file_that_it_called():
    from opera.compilers.tvm.onnx import PLACES as TVM

    code = compile("raise ValueError", "/env/lib/site-packages/tvm/topi/nn/rms_norm.py", "exec")
    try:
        exec(code, {"__name__": None})
    except ValueError as error:
        told = culprit.frames(error)[-1]
    assert told == "tvm/topi/nn/rms_norm.py:<module>:1"
    assert next(part for pattern, part in TVM.items() if re.search(pattern, told)) == KERNEL
    assert not any(re.search(pattern, told) for pattern in PLACES)


def relax_module(build: Any, dtype: str, *shape: int) -> Any:
    from tvm import relax

    x, builder = relax.Var("x", relax.TensorType(shape, dtype)), relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(build(relax.op, x)))
    return builder.get()


@pytest.mark.parametrize(
    ("build", "dtype", "shape", "says"),
    [
        (lambda op, x: op.clip(x, float("-inf"), 1), "int64", (1,), "clip of int64 is given -inf"),
        (lambda op, x: op.clip(x, 0, 1), "int64", (1,), "no rule"),
        (lambda op, x: op.clip(x, float("-inf"), 1), "float32", (1,), "no rule"),
        (lambda op, x: op.nn.conv2d_transpose(x, x, data_layout="NHWC"), "float32", (1, 1, 1, 1), "data_layout=NHWC"),
        (lambda op, x: op.nn.conv2d_transpose(x, x), "float32", (1, 1, 1, 1), "no rule"),
        (lambda op, x: op.add(x, op.negative(constant(0, "uint8"))), "uint8", (1,), "negative is called of uint8"),
        (lambda op, x: op.add(x, op.subtract(constant(1, "uint8"), constant(2, "uint8"))), "uint8", (1,), "of 1 and 2"),
        (lambda op, x: op.add(x, op.negative(constant(1, "int8"))), "int8", (1,), "no rule"),
        (lambda op, x: op.negative(x), "uint8", (1,), "no rule"),  # as a program may ask for
    ],
)
def test_what_no_kernel_can_make_up_for_is_the_importers(build: Any, dtype: str, shape: Any, says: str) -> None:
    from opera.compilers.tvm import lawful

    module = relax_module(build, dtype, *shape)
    with pytest.raises(Refusal if says == "no rule" else Unlawful, match=says):
        lawful.check(module)


@pytest.mark.parametrize("dtype", ["f16", "dynamic"])
def test_a_cast_to_no_dtype_is_the_importers(dtype: str) -> None:
    """OpenVINO's importer of live TensorFlow models has no bfloat16, and hands on a cast to nothing."""
    from openvino import opset13 as op

    from opera.compilers.openvino import lawful

    given = op.parameter([2], openvino.Type.f32)
    made = openvino.Model([op.convert(given, dtype)], [given])
    with pytest.raises(Refusal if dtype == "f16" else Unlawful, match="no rule" if dtype == "f16" else "to no dtype"):
        lawful.check(made)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, None])
def test_the_body_of_a_loop_whose_inputs_have_no_dtype_is_the_importers(tmp_path: Any, dtype: int | None) -> None:
    from opera.compilers.openvino import lawful

    inner = [helper.make_tensor_value_info("a", dtype, [2]) if dtype else onnx.ValueInfoProto(name="a")]
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "body", inner, [onnx.ValueInfoProto(name="b")])
    node = helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 2]) for name in "xy"]
    made = helper.make_model(helper.make_graph([node], "g", value[:1], value[1:]), ir_version=10)
    onnx.save(made, tmp_path / "scan.onnx")
    with pytest.raises(Refusal if dtype else Unlawful, match="no rule" if dtype else "without a dtype"):
        lawful.check(openvino.Core().read_model(tmp_path / "scan.onnx"))


@pytest.mark.parametrize(
    ("alignment", "seed", "faulty"), [("pytorch", 0, True), ("pytorch", 1, False), ("tensorflow", 0, False)]
)
def test_what_draws_is_run_by_itself(alignment: str, seed: int, faulty: bool) -> None:
    """Its CPU plugin draws the same in each run as PyTorch does with one seed, though none is given."""
    from opera.compilers.openvino import alone

    attributes = {"output_type": "f32", "global_seed": 0, "op_seed": seed, "alignment": alignment}
    given = [ops.constant(x) for x in (np.array([3], np.int64), np.float32(0), np.float32(1))]
    drawn = alone._made(given, attributes)
    with pytest.raises(Faulty, match="draws the same") if faulty else nullcontext():
        alone.check(openvino.Model([ops.relu(drawn)], []))


def test_what_draws_apart_is_not_taken_for_one() -> None:
    from opera.compilers.openvino import alone

    x = ops.parameter([3], openvino.Type.f32, name="x")
    attributes = {"output_type": "f32", "global_seed": 0, "op_seed": 0, "alignment": "tensorflow"}
    bounds = [ops.constant(np.float32(n)) for n in (0, 1)]
    two = [alone._made([ops.shape_of(x), *bounds], attributes) for _ in range(2)]
    parted = alone.parted(openvino.Model([ops.subtract(*two)], [x]))
    seeds = [y.get_attributes()["op_seed"] for y in parted.get_ordered_ops() if y.get_type_name() == alone.DRAWS]
    assert sorted(seeds) == [1, 2]
    with pytest.raises(Refusal, match="not several"):  # whose seeds are given
        alone.parted(parted)


def test_a_topk_is_told_to_keep_equal_numbers_in_their_order() -> None:
    """ONNX has the lower index first, and OpenVINO's TopK without `stable` promises nothing."""
    from opera.compilers.openvino import alone

    x = ops.parameter([2, 2], openvino.Type.f32, name="x")
    model = openvino.Model([ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value").output(1)], [x])
    compiled = openvino.Core().compile_model(alone.stable(model), "CPU")
    assert compiled([np.ones((2, 2), np.float32)])[0].tolist() == [[0, 1], [0, 1]]
    with pytest.raises(Refusal, match="no TopK"):
        alone.stable(model)


def constant(number: int, dtype: str) -> Any:
    from tvm import relax

    return relax.const(number, dtype)


def test_what_integers_cannot_hold_numpy_does_not_settle_for_tvm() -> None:
    from opera.compilers.tvm import interpreter

    x = np.array([200], np.uint8)
    assert interpreter.overflows("add", [x, x], None) and not interpreter.overflows("maximum", [x, x], None)
    assert not interpreter.overflows("subtract", [x, x], None)


def test_what_onnx_runtime_has_no_kernel_of_is_onnxs_function_body(make: Any, run: Any) -> None:
    zeros = Tensor.of(np.zeros(3, np.float32))
    for operator, expected in (("Bernoulli", np.ones(3)), ("Celu", None)):
        case = make(operator, [zeros], [zeros], opset=15)
        for way in ("body", "written-out"):
            stage, found = run(onnxruntime, msgspec.structs.replace(case, way=way))
            if expected is None:  # it has a kernel of Celu, though ONNX defines that by a function
                assert isinstance(found, Refusal), found
            else:
                assert stage == "done" and np.array_equal(
                    found[0].array(), expected
                )  # u > p, where the text says u < p


def test_numpys_meaning_of_softmax_and_of_constants_is_relaxs():
    import tvm
    from tvm import relax

    from opera.compilers.tvm import trial
    from opera.compilers.tvm.interpreter import Interpreted

    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [x]):
        scaled = builder.emit(relax.op.multiply(relax.const(np.array([2, 0.5, -1], np.float32)), x))
        made = [relax.op.nn.softmax(scaled, 0), relax.op.nn.softmax(scaled, -1), relax.op.nn.log_softmax(scaled, 1)]
        builder.emit_func_output(relax.Tuple([builder.emit(y) for y in made]))
    outputs = []
    for machine in (Interpreted(builder.get()), trial.machine(builder.get())):
        machine.set_input("main", tvm.runtime.tensor(X))
        machine.invoke_stateful("main")
        outputs.append([y.numpy() for y in machine.get_outputs("main")])
    for got, wanted in zip(*outputs, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
