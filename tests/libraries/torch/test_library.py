"""A PyTorch instance becomes a module that PyTorch itself runs, exports and agrees with."""

import base64
import itertools
import math
import zlib
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

torch = pytest.importorskip("torch")

from opera.errors import InvalidTest  # noqa: E402
from opera.libraries.documented import Wrong  # noqa: E402
from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import codec as torch_codec  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.libraries.torch import modules as torch_modules  # noqa: E402
from opera.libraries.torch import source as torch_source  # noqa: E402
from opera.libraries.torch import wrap as torch_module  # noqa: E402
from opera.oracle import screens  # noqa: E402
from opera.programs import migrated  # noqa: E402
from opera.programs.program import Captured, Instance, Operand, Provenance  # noqa: E402
from opera.programs.values import Named, RandomTensor, Tensor  # noqa: E402
from opera.programs.verdicts import INCONSISTENT, Outcome  # noqa: E402

SEEN = Provenance("by-hand", "test_torch.py", "here")


def captured(operator, *args, **kwargs):
    return Captured(torch_calls.instance(operator, args, kwargs), SEEN)


def captured_module(operator, constructor, *args, training=False, **kwargs):
    init = constructor if isinstance(constructor, dict) else {}
    given = () if init else constructor
    made = torch_modules.constructed(operator, given, init)
    layer = getattr(torch.nn, operator.rpartition(".")[2])(*given, **init).train(training)
    return Captured(torch_modules.module_instance(operator, layer, made, args, kwargs), SEEN)


def wrap(case, folder):
    manifest = library.wrap(case, "t" * 20, folder)
    assert migrated.read_manifest(folder) == manifest
    return manifest, migrated.read_values(folder, "expected")


def text(folder):
    return torch_source.model(*torch_module.load(folder))


def ramp(*shape, dtype=torch.float32):
    return (torch.arange(math.prod(shape)).reshape(shape) / 4 - 1).to(dtype)


def channels_last(*shape):
    return ramp(*shape).to(memory_format=torch.channels_last)


CALLS = {
    "function": (("torch.add", ramp(2, 3), ramp(3)), {"alpha": 2}),
    "in place": (("torch.Tensor.add_", ramp(2, 3), ramp(3)), {}),
    "in place by name": (("torch.nn.functional.relu", ramp(4)), {"inplace": True}),
    "in place operator": (("torch.Tensor.__iadd__", ramp(3), 2), {}),
    "out": (("torch.exp", ramp(3)), {"out": torch.zeros(3)}),
    "several out": (("torch.sort", ramp(3)), {"out": (torch.zeros(3), torch.zeros(3, dtype=torch.int64))}),
    "view": (("torch.Tensor.view", ramp(2, 3), 3, 2), {}),
    "transposed view": (("torch.Tensor.t", ramp(2, 3)), {}),
    "expanded view": (("torch.Tensor.expand", ramp(1, 3), (2, 3)), {}),
    "output is the input": (("torch.Tensor.contiguous", ramp(2, 3)), {}),
    "scalar": (("torch.neg", torch.tensor(2.0)), {}),
    "empty": (("torch.abs", torch.zeros(0, 3)), {}),
    "complex": (("torch.mul", torch.tensor([1 + 2j, -1j]), 2 - 1j), {}),
    "conjugate view": (("torch.conj", torch.tensor([1 + 2j, -1j])), {}),
    "bool": (("torch.logical_not", torch.tensor([True, False])), {}),
    "integer": (("torch.bitwise_and", torch.tensor([6, 7]), 3), {}),
    "unsigned": (("torch.neg", torch.tensor([6, 7], dtype=torch.uint8)), {}),
    "bfloat16": (("torch.exp", ramp(3, dtype=torch.bfloat16)), {}),
    "float16": (("torch.exp", ramp(3, dtype=torch.float16)), {}),
    "list": (("torch.cat", [ramp(2, 3), ramp(1, 3)]), {"dim": 0}),
    "one after the other": (("torch.einsum", "ij,jk->ik", ramp(2, 3), ramp(3, 2)), {}),
    "named tuple": (("torch.sort", ramp(2, 3).flip(1)), {"dim": 1}),
    "decomposition": (("torch.linalg.qr", ramp(3, 2)), {"mode": "r"}),
    "many outputs": (("torch.unbind", ramp(12, 2)), {}),
    "property": (("torch.Tensor.T", ramp(2, 3)), {}),
    "operator": (("torch.Tensor.__matmul__", ramp(2, 3), ramp(3, 2)), {}),
    "reversed operator": (("torch.Tensor.__rsub__", ramp(3), 1), {}),
    "index": (("torch.Tensor.__getitem__", ramp(4, 3), (slice(1, None, 2), ..., None)), {}),
    "index by a tensor": (("torch.Tensor.__getitem__", ramp(4, 3), (torch.tensor([0, 2]), slice(None))), {}),
    "assignment": (("torch.Tensor.__setitem__", ramp(4), slice(0, 2), 7.0), {}),
    "channels last": (("torch.nn.functional.max_pool2d", channels_last(1, 3, 4, 4), 2), {}),
    "dtype": (("torch.sum", ramp(3)), {"dtype": torch.float64}),
    "device": (("torch.ones_like", ramp(3)), {"device": torch.device("cpu")}),
    "memory format": (("torch.Tensor.clone", ramp(1, 2, 2, 2)), {"memory_format": torch.channels_last}),
    "made of nothing": (("torch.full", (2, 2), math.inf), {}),
    "not a number": (("torch.nan_to_num", torch.tensor([math.nan, 1.0])), {"nan": math.nan}),
    "keyword of Python": (("torch.Tensor.random_", ramp(3)), {"from": 5, "to": 6}),
    "statistics": (("torch.nn.functional.batch_norm", ramp(2, 3), torch.zeros(3), torch.ones(3)), {"training": True}),
}
MODULES = {
    "linear": (("torch.nn.Linear", (3, 4), ramp(2, 3)), {}),
    "convolution": (("torch.nn.Conv2d", (3, 4, 2), channels_last(1, 3, 4, 4)), {}),
    "double": (
        ("torch.nn.Linear", {"in_features": 3, "out_features": 4, "dtype": torch.float64}, ramp(2, 3).double()),
        {},
    ),
    "lstm": (("torch.nn.LSTM", (3, 4), ramp(2, 1, 3)), {}),
    "lstm with state": (("torch.nn.LSTM", (3, 4), ramp(2, 1, 3), (ramp(1, 1, 4), ramp(1, 1, 4))), {}),
    "attention": (("torch.nn.MultiheadAttention", (4, 2), ramp(2, 1, 4), ramp(2, 1, 4), ramp(2, 1, 4)), {}),
    "None": (("torch.nn.MultiheadAttention", (4, 2), *[ramp(2, 1, 4)] * 3), {"need_weights": False}),
    "in place": (("torch.nn.ReLU", (True,), ramp(3)), {}),
    "training": (("torch.nn.BatchNorm1d", (3,), ramp(2, 3)), {"training": True}),
    "constant": (("torch.nn.CrossEntropyLoss", (torch.tensor([1.0, 2.0]),), ramp(1, 2), torch.tensor([1])), {}),
    "indices": (("torch.nn.Embedding", (5, 2), torch.tensor([[0, 4]])), {}),
}


def cases():
    for name, (args, kwargs) in CALLS.items():
        yield pytest.param(captured(*args, **kwargs), id=name)
    for name, (args, kwargs) in MODULES.items():
        yield pytest.param(captured_module(*args, **kwargs), id=f"module {name}")


def run(function, args):
    with torch.no_grad():
        return [torch_module.encoded(x) for x in torch_module.leaves(function(*args))]


def test_outputs_that_are_named_are_returned_alone(tmp_path):
    case = captured("torch.max", ramp(2, 3), 1)
    manifest, expected = wrap(case, tmp_path / "all")
    assert len(expected) == 2
    for names, kept in ((("values",), 0), (("", "indices"), 1)):
        one = msgspec.structs.replace(case, program=msgspec.structs.replace(case.program, outputs=names))
        manifest, alone = wrap(one, tmp_path / str(kept))
        assert alone == expected[kept : kept + 1]
        assert len(manifest.outputs) == 1
        assert torch.equal(
            library.live(manifest, tmp_path / str(kept)).module(*torch_module.tensors(one.program))[0],
            torch.max(ramp(2, 3), 1)[kept],
        )
    for operator, names in (
        ("torch.max", ("values", "indices")),
        ("torch.max", ("", "", "more")),
        ("torch.abs", ("values",)),
    ):
        of = captured(operator, ramp(2, 3), *((1,) if operator == "torch.max" else ()))
        one = msgspec.structs.replace(of, program=msgspec.structs.replace(of.program, outputs=names))
        with pytest.raises(InvalidTest, match="outputs are named"):
            wrap(one, tmp_path / "none")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", list(cases()))
def test_what_is_called_is_what_is_expected_and_exported(case, tmp_path):
    manifest, expected = wrap(case, tmp_path)
    assert (manifest.reference, manifest.offers) == ("eager", ("pt2", "torchscript", "onnx"))
    assert len(manifest.inputs) == len(case.program.inputs) and all(x.isidentifier() for x in manifest.inputs)
    assert len(manifest.outputs) == len(expected) > 0 and all(isinstance(x, Tensor) for x in expected)
    live = library.live(manifest, tmp_path)
    before = [torch_module.encoded(x) for x in live.args]
    assert "nondeterministic" in manifest.tags or run(live.module, live.args) == expected
    assert [torch_module.encoded(x) for x in live.args] == before, "a model never changes its inputs"
    if "nondeterministic" in manifest.tags or case.program.operator == "torch.nn.MultiheadAttention":
        return  # whose traced graph computes the same by other kernels
    made = library.export(manifest, tmp_path, "pt2")
    program = torch.export.load(tmp_path / made.file)
    assert made.feeds == manifest.inputs and run(program.module(), live.args) == expected
    made = library.export(manifest, tmp_path, "torchscript")
    found = run(torch.jit.load(tmp_path / made.file), live.args)
    assert [x.shape for x in found] == [x.shape for x in expected]
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x.numbers(), y.numbers(), rtol=1e-6)


def test_the_source_is_what_people_write(tmp_path):
    written = {
        "torch.Tensor.__matmul__": "return input @ other",
        "torch.Tensor.__rsub__": "return 1 - input",
        "torch.Tensor.T": "return input.T",
        "torch.Tensor.add_": "input = input.clone()\n        return input.add_(other)",
        "torch.linalg.qr": "result = torch.linalg.qr(input, mode='r')\n        return result[0], result[1]",
        "torch.unbind": "return tuple(torch.unbind(input))",
        "torch.full": "return torch.full((2, 2), float('inf'))",
        "torch.Tensor.random_": "return input.random_(**{'from': 5}, to=6)",
    }
    shown = {case.values[0].program.operator: case.values[0] for case in cases()}
    for number, (operator, line) in enumerate(written.items()):
        wrap(shown[operator], tmp_path / str(number))
        assert line in text(tmp_path / str(number)).replace("fill_value=", ""), operator
    wrap(captured(*CALLS["index"][0]), tmp_path)
    assert "return input[1::2, ..., None]" in text(tmp_path)
    wrap(captured(*CALLS["assignment"][0]), tmp_path)
    assert "return input" in text(tmp_path).splitlines()[-1]
    wrap(captured_module("torch.nn.Linear", (3, 4), ramp(2, 3)), tmp_path)
    assert "self.layer = torch.nn.Linear(3, 4)" in text(tmp_path) and "return self.layer(input)" in text(tmp_path)


@settings(max_examples=200, deadline=None)
@given(
    arrays(
        st.sampled_from(["float32", "float64", "float16", "int64", "int8", "uint16", "bool", "complex64"]),
        array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    )
)
def test_tensors_are_written_as_what_they_are(array):
    value = Tensor.of(array)
    made = eval(torch_source.tensor(value), {"torch": torch, "np": np, "unpack": unpack})
    assert made.numpy().tobytes() == value.data and list(made.shape) == list(value.shape)


def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()


def test_tensors_are_written_as_people_do():
    written = {
        "torch.tensor(1.5)": torch.tensor(1.5),
        "torch.tensor([[1.0, torch.nan]], dtype=torch.float64)": torch.tensor([[1.0, math.nan]], dtype=torch.float64),
        "torch.tensor([1, 2])": torch.tensor([1, 2]),
        "torch.tensor([0.5, -torch.inf], dtype=torch.bfloat16)": torch.tensor([0.5, -math.inf], dtype=torch.bfloat16),
        "torch.zeros([0, 2])": torch.zeros(0, 2),
    }
    assert [torch_source.tensor(torch_codec.tensor(x)) for x in written.values()] == list(written)


def test_only_what_is_not_none_and_a_tensor_is_an_output(tmp_path):
    attention = captured_module("torch.nn.MultiheadAttention", (4, 2), *[ramp(2, 1, 4)] * 3, need_weights=False)
    manifest, expected = wrap(attention, tmp_path)
    assert manifest.outputs == ("output_0",) and expected[0].shape == (2, 1, 4)
    manifest, expected = wrap(captured_module("torch.nn.LSTM", (3, 4), ramp(2, 1, 3)), tmp_path)
    assert [x.shape for x in expected] == [(2, 1, 4), (1, 1, 4), (1, 1, 4)]
    assert "result[0], result[1][0], result[1][1]" in text(tmp_path)


def test_layouts_are_restored(tmp_path):
    manifest, _ = wrap(captured("torch.abs", channels_last(1, 3, 4, 4)), tmp_path)
    assert library.live(manifest, tmp_path).args[0].is_contiguous(memory_format=torch.channels_last)
    manifest, _ = wrap(captured("torch.abs", ramp(4, 6)[:, ::2]), tmp_path)
    assert library.live(manifest, tmp_path).args[0].stride() == (6, 2)


@pytest.mark.parametrize(
    ("case", "random"),
    [
        (captured("torch.nn.functional.dropout", ramp(8), 0.5, True), True),
        (captured("torch.nn.functional.dropout", ramp(8), 0.5, False), False),
        (captured("torch.bernoulli", torch.full((8,), 0.5)), True),
        (captured("torch.Tensor.uniform_", ramp(8)), True),
        (captured_module("torch.nn.Dropout", (0.5,), ramp(8), training=True), True),
        (captured_module("torch.nn.Dropout", (0.5,), ramp(8)), False),
        (captured_module("torch.nn.LSTM", (3, 4), ramp(2, 1, 3)), False),
    ],
)
def test_what_draws_random_numbers_is_known(case, random, tmp_path):
    manifest, _ = wrap(case, tmp_path)
    assert ("nondeterministic" in manifest.tags) is random


def test_an_answer_that_holds_unwritten_memory_measures_nobody(tmp_path):
    case = captured("torch.nn.functional.pad", ramp(1, 1, 3, 2), pad=[-3, 2, -3, 1], mode="circular")
    manifest, _ = wrap(case, tmp_path)
    assert (screens.UNWRITTEN in manifest.tags) and "nondeterministic" not in manifest.tags
    actual = [Tensor.of(np.zeros((1, 1, 1, 1), dtype=np.float32))]
    wrong = Outcome(INCONSISTENT, "infer", "value")
    found = screens.screen(library, "openvino", manifest, tmp_path, case.program, actual, wrong)
    assert (found.reason, found.numbers) == (screens.UNDEFINED, {"why": screens.UNDECIDED})


def test_the_reference_of_a_module_draws_anew_each_time(tmp_path):
    """Modules are built with the seed 0, so that all have the same weights: what they draw is another matter."""
    case = captured_module("torch.nn.Dropout", (), torch.ones(64), training=True)
    manifest, _ = wrap(case, tmp_path)
    inputs = migrated.read_values(tmp_path, "inputs")
    drawn = [library.opinions(manifest, tmp_path, inputs, "tvm")[0].outputs for _ in range(4)]
    assert all(one != other for one, other in itertools.combinations(drawn, 2))


def test_weights_are_the_same_in_every_process(tmp_path):
    case = captured_module("torch.nn.Linear", (3, 4), ramp(2, 3))
    manifest, _ = wrap(case, tmp_path)
    torch.manual_seed(7)
    one = library.live(manifest, tmp_path).module.layer.weight
    torch.manual_seed(8)
    assert torch.equal(one, library.live(manifest, tmp_path).module.layer.weight)


def instance(operator, args=("input",), kwargs=(), params=None, inputs=None, kind="function", **context):
    inputs = inputs if inputs is not None else (Operand("input", Tensor.of(np.ones(3, np.float32))),)
    call = {"args": list(args), "kwargs": list(kwargs)}
    return Captured(Instance("torch", operator, params or {}, inputs, (), {"kind": kind, "call": call} | context), SEEN)


ONE = Operand("input", Tensor.of(np.ones(3, np.float32)))
NO_CALL = Captured(Instance("torch", "torch.abs", {}, (ONE,), (), {}), SEEN)
INVALID = [
    (captured("torch.matmul", ramp(2, 3), ramp(2, 3)), "PyTorch rejects it: RuntimeError: mat1"),
    (captured("torch.nn.functional.conv2d", ramp(1, 1, 2, 2), ramp(1, 1, 3, 3)), "rejects it"),
    (captured("torch.Tensor.div_", torch.tensor([1]), 2), "rejects it"),
    (captured("torch.Tensor.chalf", ramp(2)), "cannot be compared: dtype torch.complex32"),
    (instance("torch.nn.Linear", kind="module", init={"args": ["x"], "kwargs": []}, params={"x": "no"}), "constructor"),
    (instance("torch.abs", inputs=(ONE, ONE)), "two inputs"),
    (instance("torch.abs", args=("other",)), "no argument"),
    (instance("torch.abs", inputs=(Operand("input", 3),)), "no tensor"),
    (instance("torch.abs", layout={"input": [0]}), "strides"),
    (NO_CALL, "how it was called"),
    (instance("torch.cat", args=("tensors",), params={"tensors": [Named("torch.input", "nowhere")]}), "not there"),
    (instance("torch.add", args=("input", "o"), params={"o": Named("torch.dtype", "float32; import os")}), "called"),
    (instance("os.system", inputs=()), "no operator called"),
    (instance("torch.abs", inputs=(Operand("input", RandomTensor("float64", (1 << 26,), 0, 0.0, 1.0)),)), "MiB"),
]


@pytest.mark.parametrize(("case", "reason"), INVALID)
def test_what_pytorch_rejects_is_invalid_and_leaves_nothing(case, reason, tmp_path):
    with pytest.raises(Exception, match=reason) as caught:
        library.wrap(case, "t", tmp_path / "out")
    assert type(caught.value).__name__ in ("InvalidTest", "CorpusError")
    assert not (tmp_path / "out").exists()


NASTY = ["x); import os; (", "class", "1", "", "é", "torch", "self", "a.b", "a_b", "\n", '"', "result"]


def test_a_tensor_of_negative_size_is_pytorchs_own_fault(tmp_path):
    with pytest.raises(InvalidTest, match=r"negative size: \[-2, 0\]"):
        wrap(captured("torch.as_strided", torch.ones(2), (-2, 0), (1, 1)), tmp_path / "test")


def test_no_name_or_value_becomes_code(tmp_path):
    inputs = tuple(Operand(name, Tensor.of(np.ones(2, np.float32))) for name in NASTY)
    params = {"tensors": [Named("torch.input", name) for name in NASTY], "dim": 0}
    case = instance("torch.cat", args=("tensors",), kwargs=("dim",), params=params, inputs=inputs)
    manifest, expected = wrap(case, tmp_path)
    assert expected[0].shape == (2 * len(NASTY),) and len(set(manifest.inputs)) == len(NASTY)
    for nasty in NASTY:
        case = instance("torch.cat", args=("tensors",), kwargs=(nasty,), params=params | {nasty: 0}, inputs=inputs)
        with pytest.raises(InvalidTest, match=r"rejects it: TypeError|no argument|rejects it: Runtime"):
            library.wrap(case, "t", tmp_path / "out")


def test_large_inputs_stay_described(tmp_path):
    large = Operand("input", RandomTensor("float32", (200, 200), 3, -1.0, 1.0))
    manifest, expected = wrap(instance("torch.abs", inputs=(large,)), tmp_path)
    assert migrated.read_values(tmp_path, "inputs") == [large.value] and len(expected[0].data) == 160_000
    assert library.opinions(manifest, tmp_path, [large.value], "tvm")[0].outputs == expected


def test_the_float64_reference_speaks_where_it_means_the_same(tmp_path):
    def ask(case):
        manifest, expected = wrap(case, tmp_path)
        inputs = migrated.read_values(tmp_path, "inputs")
        return expected, {x.name: x for x in library.opinions(manifest, tmp_path, inputs, "tvm")}

    x = torch.tensor([1e8, 1.0, -1e8])
    expected, asked = ask(captured("torch.sum", x))
    assert asked["eager"].outputs == expected and not asked["eager"].independent
    assert asked["float64"].outputs[0].array() == 1.0 != expected[0].array() and asked["float64"].precise
    _, asked = ask(captured_module("torch.nn.LSTM", (3, 4), ramp(2, 1, 3)))
    np.testing.assert_allclose(asked["float64"].outputs[0].array(), asked["eager"].outputs[0].array(), rtol=1e-5)
    _, asked = ask(captured("torch.sum", x, dtype=torch.float32))
    assert asked["float64"].outputs[0].array() == 1.0, "a dtype among the arguments is widened too"
    assert set(ask(captured("torch.bitwise_and", torch.tensor([6, 7]), 3))[1]) == {"eager"}
    for case in (captured("torch.Tensor.view", x, torch.int32), captured("torch.eq", torch.tensor([0.1]), 0.1)):
        assert ask(case)[1]["float64"].outputs is None, "what depends on the dtype has no float64 reference"


def test_the_canaries_are_right_and_wrong(tmp_path):
    right, wrong = library.canaries()
    for case, agrees in ((right, True), (wrong, False)):
        manifest, expected = wrap(case, tmp_path)
        live = library.live(manifest, tmp_path)
        assert manifest.reference == "test" and (run(live.module, live.args) == expected) is agrees


def test_defaults_are_those_of_signatures():
    found = library.equipped_defaults(["torch.nn.functional.conv2d", "torch.nn.Conv2d", "torch.add", "torch.nowhere"])
    assert found["torch.nn.functional.conv2d"]["groups"] == 1 and found["torch.nn.Conv2d"]["padding_mode"] == "zeros"
    assert set(found) == {"torch.nn.functional.conv2d", "torch.nn.Conv2d", "torch.add"}
    assert found["torch.nn.Conv2d"]["in_channels"] == Named("opera", "no default")


def test_onnx_models_are_the_same_again_though_the_exporter_is_made_quicker(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    made = {}
    for number, name in enumerate(("function", "named tuple", "list", "function", "named tuple")):
        folder = tmp_path / str(number)
        manifest, expected = wrap(captured(*CALLS[name][0], **CALLS[name][1]), folder)
        artefact = library.export(manifest, folder, "onnx")
        data = (folder / artefact.file).read_bytes()
        assert made.setdefault(name, data) == data
        session = onnxruntime.InferenceSession(data)
        feeds = {x: y.numpy() for x, y in zip(manifest.inputs, library.live(manifest, folder).args, strict=True)}
        found = [Tensor.of(x) for x in session.run(list(manifest.outputs), feeds)]
        assert found == expected


def test_an_onnx_file_that_computes_something_else_is_the_exporters_failure(tmp_path, monkeypatch):
    from opera.libraries import exported
    from opera.libraries.torch import export as torch_export

    right, _ = library.canaries()
    manifest = library.wrap(right, "test", tmp_path)
    assert library.export(manifest, tmp_path, "onnx").feeds == manifest.inputs

    def other(live, artefact, directory):
        live.module.forward = lambda input, other: input - other
        torch_export.onnx(live, directory / "model.onnx")
        return "model.onnx"

    monkeypatch.setattr(torch_export, "write", other)
    with pytest.raises(exported.WrongExport, match="something else"):
        library.export(manifest, tmp_path, "onnx")


def test_a_file_that_its_runtime_alone_gets_wrong_is_right(tmp_path):
    """NonZero of a scalar is of shape (0, N) by ONNX; ONNX Runtime gives (1, N), and the exporter is not to blame for that."""
    from onnx import helper

    from opera.libraries import exported

    x, y = np.float32(1), np.zeros((0, 1), np.int64)
    told = [helper.make_tensor_value_info("x", 1, []), helper.make_tensor_value_info("y", 7, [0, None])]
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "g", told[:1], told[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    manifest = migrated.Manifest(
        test="test", instance="", library="torch", operator="torch.nonzero", exporter="", inputs=("x",), outputs=("y",),
        artefacts={}, reference="eager",
    )  # fmt: skip
    migrated.write(tmp_path, manifest, [Tensor.of(x)], [Tensor.of(y)], {})
    exported.check_onnx(manifest, tmp_path, tmp_path / "model.onnx")
    with pytest.raises(exported.WrongExport, match="something else"):
        exported.check_onnx(manifest, tmp_path, tmp_path / "model.onnx", [Tensor.of(np.zeros((1, 0), np.int64))])


EXPANDED = [
    ("torch.nn.functional.dropout", (torch.ones(2, 3), 0.5, True), set()),
    ("torch.nn.functional.multilabel_soft_margin_loss", (torch.ones(1, 2),) * 2, {"torch.nn.functional.logsigmoid"}),
    ("torch.nn.functional.interpolate", (torch.ones(1, 1, 4), 2), {"torch.arange"}),
    ("torch.add", (torch.ones(2), 1), set()),
    (
        "torch.tril_indices",
        (2, 2),
        {"torch.cat", "torch.stack"},
    ),  # no default decomposition has it, and exporters ask for it
    (
        "torch.nn.functional.linear_cross_entropy",
        (torch.ones(1, 2), torch.ones(3, 2), torch.zeros(1, dtype=torch.int64)),
        {"torch.nn.functional.cross_entropy"},
    ),
]


@pytest.mark.parametrize(("operator", "args", "wanted"), EXPANDED, ids=[x[0] for x in EXPANDED])
def test_what_the_exporter_makes_of_a_call_are_calls_that_run(tmp_path, operator, args, wanted):
    found = library.expanded(torch_calls.instance(operator, args, {}))
    assert wanted <= {x.operator for x in found} if wanted else found == []
    ran = 0
    for place, program in enumerate(found):
        with suppress(InvalidTest):  # a public form may take its arguments otherwise
            library.wrap(Captured(program, SEEN), f"{place:020}", tmp_path / str(place))
            ran += 1
    assert ran >= len(found) / 2


def test_arguments_of_an_overload_have_its_names():
    found = library.expanded(torch_calls.instance("torch.Tensor.prod", (torch.ones(2, 3), 1, True), {}))
    assert (found[0].operator, found[0].params) == ("torch.prod", {"dim": 1, "keepdim": True})


def test_a_documented_function_is_made_of_no_call_that_nobody_documents():
    weights = torch.ones(1, 2, 2)
    assert (
        library.expanded(torch_calls.instance("torch.nn.functional.conv1d", (torch.ones(1, 2, 5), weights), {})) == []
    )
    layer = captured_module(
        "torch.nn.Conv1d", {"in_channels": 2, "out_channels": 1, "kernel_size": 2}, torch.ones(1, 2, 5)
    )
    assert [x.operator for x in library.expanded(layer.program)][-1] == "torch.convolution"


def test_what_a_loss_is_made_of_computes_what_it_does(tmp_path):
    layer = captured_module(
        "torch.nn.CrossEntropyLoss", {"reduction": "sum", "label_smoothing": 0.5}, torch.eye(2), torch.tensor([0, 1])
    )
    found = next(x for x in library.expanded(layer.program) if x.operator == "torch.nn.functional.cross_entropy")
    expected = wrap(layer, tmp_path / "whole")[1]
    assert wrap(Captured(found, SEEN), tmp_path / "inner")[1] == expected
    assert found.params["reduction"] == "sum" and found.params["label_smoothing"] == 0.5


def test_an_alias_is_quoted_by_what_it_stands_for():
    call = torch_calls.instance("torch.softmax", (torch.ones(2),), {"dim": 0, "dtype": torch.float64})
    [quote] = library.documented(call, ["dtype"], Wrong(symptom="value"))
    assert "casted to dtype before the operation" in quote.text
    assert quote.address.endswith("torch.nn.functional.softmax.html")
