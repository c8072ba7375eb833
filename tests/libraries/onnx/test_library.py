"""Every kind of instance becomes a model that ONNX accepts, and that computes what is expected."""

import time

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opera.errors import InvalidTest
from opera.libraries import pieces
from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx import library
from opera.libraries.onnx import references as onnx_reference
from opera.libraries.onnx import source as onnx_source
from opera.libraries.onnx import wrap as onnx_model
from opera.oracle import comparison as oracle
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance, parse_captured
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor, decode, encode
from opera.store.workspace import Workspace

SEEN = Provenance("by-hand", "test_onnx.py", "here")
LOW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
SMALL = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


def captured(operator, inputs, params=None, outputs=("y",), expected=None, opset=21, **context):
    operands = tuple(Operand(name, Tensor.of(x) if isinstance(x, np.ndarray) else x) for name, x in inputs)
    versions = opset if isinstance(opset, dict) else {"": opset}
    instance = Instance("onnx", operator, params or {}, operands, tuple(outputs), {"opset": versions, **context})
    return Captured(instance, SEEN, expected)


def wrap(case, folder):
    manifest = library.wrap(case, "t" * 20, folder)
    return manifest, onnx.load(folder / manifest.artefacts["onnx"].file), migrated.read_values(folder, "expected")


def message(proto):
    return Message(f"onnx.{proto.DESCRIPTOR.name}", proto.SerializeToString(deterministic=True))


def f32(*items):
    return np.array(items, dtype=np.float32)


def test_a_node_is_wrapped_as_it_is_and_bytes_are_deterministic(tmp_path):
    case = captured("Softmax", [("input", f32(1, 2, 3))], {"axis": 0}, outputs=("output",))
    manifest, model, expected = wrap(case, tmp_path / "a")
    assert [node.op_type for node in model.graph.node] == ["Softmax"]
    assert helper.get_attribute_value(model.graph.node[0].attribute[0]) == 0
    assert model.opset_import[0].version == 21 and model.ir_version == 10
    np.testing.assert_allclose(expected[0].array(), np.exp(f32(1, 2, 3)) / np.exp(f32(1, 2, 3)).sum(), rtol=1e-6)
    assert manifest.reference == "evaluator" and manifest.inputs == ("input",) and manifest.outputs == ("output",)
    assert migrated.read_manifest(tmp_path / "a") == manifest
    wrap(parse_captured(case.form()), tmp_path / "b")
    assert (tmp_path / "a/model.onnx").read_bytes() == (tmp_path / "b/model.onnx").read_bytes()


def test_a_stated_expectation_is_taken_even_where_the_evaluator_would_differ(tmp_path):
    manifest, _, expected = wrap(captured("Abs", [("X", f32(-1))], expected=(Tensor.of(f32(5)),)), tmp_path)
    assert manifest.reference == "test" and expected == [Tensor.of(f32(5))]


@pytest.mark.parametrize("opset", [2, 22])
def test_a_compiler_is_asked_for_what_the_evaluator_cannot_compute(tmp_path, opset):
    """ONNX Runtime has no kernel for version 22, and computes the same as of version 2."""
    asked = captured("GlobalLpPool", [("X", f32(3, 4).reshape(1, 1, 2))], {"p": 2}, opset=opset)
    with pytest.raises(InvalidTest, match="no reference"):
        wrap(asked, tmp_path / "alone")
    for name in ("evaluator", "no_such_compiler"):
        with pytest.raises(InvalidTest, match="no reference"):
            wrap(msgspec.structs.replace(asked, reference=name), tmp_path / name)
    manifest, model, expected = wrap(msgspec.structs.replace(asked, reference="onnxruntime"), tmp_path / "asked")
    assert manifest.reference == "onnxruntime" and model.opset_import[0].version == opset
    np.testing.assert_allclose(expected[0].array(), [[[5.0]]], rtol=1e-6)
    known = captured("Abs", [("X", f32(-1))])
    assert wrap(msgspec.structs.replace(known, reference="onnxruntime"), tmp_path / "abs")[0].reference == "evaluator"
    broken = captured("MatMul", [("A", f32(1, 2)), ("B", f32(1, 2, 3))])
    with pytest.raises(InvalidTest):
        wrap(msgspec.structs.replace(broken, reference="onnxruntime"), tmp_path / "broken")


def test_inputs_that_converters_need_become_initializers_of_a_second_artefact(tmp_path):
    inputs = [("data", f32(1, 2, 3, 4)), ("shape", np.array([2, 2]))]
    manifest, _, _ = wrap(captured("Reshape", inputs, outputs=("reshaped",)), tmp_path)
    assert manifest.artefacts["onnx"].feeds == ("data", "shape")
    assert manifest.artefacts["onnx-constants"].feeds == ("data",)
    model = onnx.load(tmp_path / manifest.artefacts["onnx-constants"].file)
    onnx.checker.check_model(model, full_check=True)
    assert [x.name for x in model.graph.initializer] == ["shape"] and [x.name for x in model.graph.input] == ["data"]
    manifest, _, _ = wrap(captured("Abs", [("X", f32(1))]), tmp_path)
    assert set(manifest.artefacts) == {"onnx"}


def test_omitted_inputs_and_outputs_keep_their_places(tmp_path):
    inputs = [("input", f32(-5, 0, 5)), ("min", None), ("max", np.array(1, dtype=np.float32))]
    manifest, model, expected = wrap(captured("Clip", inputs), tmp_path)
    assert list(model.graph.node[0].input) == ["input", "", "max"] and manifest.inputs == ("input", "max")
    np.testing.assert_array_equal(expected[0].array(), f32(-5, 0, 1))
    ones = [(name, np.ones((1, 1, 1), dtype=np.float32)) for name in "XWR"]
    manifest, model, expected = wrap(captured("RNN", ones, {"hidden_size": 1}, outputs=("", "Y_h")), tmp_path)
    assert list(model.graph.node[0].output) == ["", "Y_h"] and manifest.outputs == ("Y_h",)
    np.testing.assert_allclose(expected[0].array(), np.tanh(1.0), rtol=1e-6)
    stated = (None, Tensor.of(np.full((1, 1, 1), 9, dtype=np.float32)))
    case = captured("RNN", ones, {"hidden_size": 1}, outputs=("", "Y_h"), expected=stated)
    assert wrap(case, tmp_path)[2] == [stated[1]]


def test_names_that_meet_are_kept_apart(tmp_path):
    case = captured("Identity", [("x", f32(1))], outputs=("x",))
    manifest, _, _ = wrap(case, tmp_path)
    assert manifest.inputs == ("x",) and manifest.outputs == ("x_",)


@pytest.mark.parametrize("dtype", LOW + SMALL)
def test_low_precision_dtypes_survive_packing(tmp_path, dtype):
    bits = np.arange(5, dtype=np.uint8) % (4 if dtype.endswith("t2") else 8)
    tensor = Tensor.of(bits.astype(np.uint16) << 7 if dtype == "bfloat16" else bits, dtype)
    if dtype in ("int4", "int2"):
        tensor = Tensor.of(np.array([-2, -1, 0, 1, 1], np.int8), dtype)
    proto = onnx_values.tensor_proto(tensor, "x")
    assert onnx_values.from_tensor_proto(proto) == tensor
    assert onnx_values.from_evaluator(onnx_values.to_evaluator(tensor), "") == tensor
    _, model, expected = wrap(captured("Identity", [("x", tensor)], opset=25), tmp_path)
    assert expected == [tensor]
    assert model.ir_version >= onnx_values.ir_version(dtype)


def test_strings_sequences_and_optionals(tmp_path):
    text = Tensor.of(np.array([["a", "ü"], ["", "'\"\n"]], dtype=object))
    assert wrap(captured("Identity", [("x", text)]), tmp_path)[2] == [text]
    items = Sequence("float32", (Tensor.of(f32(1)), Tensor.of(f32(2, 3))))
    case = captured("SequenceAt", [("input_sequence", items), ("position", np.array(1))], outputs=("tensor",))
    assert wrap(case, tmp_path)[2] == [items.items[1]]
    case = captured("SequenceInsert", [("input_sequence", items), ("tensor", f32(9))], outputs=("output_sequence",))
    assert wrap(case, tmp_path)[2] == [Sequence("float32", (*items.items, Tensor.of(f32(9))))]
    for held, there in ((Optional("float32", None), False), (Optional("sequence(float32)", items), True)):
        _, model, expected = wrap(captured("OptionalHasElement", [("input", held)], outputs=("output",)), tmp_path)
        assert model.graph.input[0].type.WhichOneof("value") == "optional_type"
        assert expected == [Tensor.of(np.array(there))]


def test_random_tensors_get_their_elements(tmp_path):
    wrap(captured("Abs", [("X", RandomTensor("float32", (4, 5), 7, -1.0, 1.0))]), tmp_path)
    (fed,) = migrated.read_values(tmp_path, "inputs")
    assert isinstance(fed, Tensor) and fed == RandomTensor("float32", (4, 5), 7, -1.0, 1.0).tensor()


def branch(value, name):
    node = helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))
    info = helper.make_tensor_value_info(name, TensorProto.FLOAT, list(value.shape))
    return message(helper.make_graph([node], "branch", [], [info]))


def test_if_loop_and_scan_bodies(tmp_path):
    params = {"then_branch": branch(f32(1, 2), "output"), "else_branch": branch(f32(3, 4), "other")}
    case = captured("If", [("cond", np.array(True))], params, outputs=("output",))
    manifest, _, expected = wrap(case, tmp_path)
    assert expected == [Tensor.of(f32(1, 2))]
    assert manifest.outputs == ("output_",), "the name of the output is also defined in a branch"

    infos = [helper.make_tensor_value_info(n, TensorProto.INT64, []) for n in ("i",)]
    flag = [helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("cond", "cond_out")]
    state = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("v", "v_out")]
    nodes = [helper.make_node("Identity", ["cond"], ["cond_out"]), helper.make_node("Add", ["v", "step"], ["v_out"])]
    body = helper.make_graph(nodes, "body", [*infos, flag[0], state[0]], [flag[1], state[1]])
    inputs = [("M", np.array(3)), ("cond", np.array(True)), ("v_initial", f32(0, 1)), ("step", f32(1, 2))]
    case = captured("Loop", inputs, {"body": message(body)}, outputs=("v_final",), captured=["step"])
    manifest, model, expected = wrap(case, tmp_path)
    assert expected == [Tensor.of(f32(3, 7))]
    assert "step" in manifest.inputs and "step" not in model.graph.node[0].input

    nodes = [helper.make_node("Add", ["s", "x"], ["s_out"]), helper.make_node("Identity", ["s_out"], ["seen"])]
    info = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("s", "x", "s_out", "seen")}
    body = helper.make_graph(nodes, "body", [info["s"], info["x"]], [info["s_out"], info["seen"]])
    inputs = [("initial", f32(0, 0)), ("scanned", np.ones((3, 2), dtype=np.float32))]
    params = {"body": message(body), "num_scan_inputs": 1}
    _, _, expected = wrap(captured("Scan", inputs, params, outputs=("final", "all")), tmp_path)
    assert expected[0] == Tensor.of(f32(3, 3)) and expected[1].shape == (3, 2)


def test_an_expanded_body_is_the_model(tmp_path):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("in", "out")]
    nodes = [helper.make_node("Neg", ["in"], ["t"]), helper.make_node("Exp", ["t"], ["out"])]
    body = message(helper.make_graph(nodes, "body", info[:1], info[1:]))
    manifest, model, expected = wrap(captured("Softsign", [("X", f32(0, 1))], body=body), tmp_path)
    assert [node.op_type for node in model.graph.node] == ["Neg", "Exp"]
    assert manifest.inputs == ("in",) and manifest.outputs == ("out",) and manifest.operator == "Softsign"
    np.testing.assert_allclose(expected[0].array(), np.exp(-f32(0, 1)), rtol=1e-6)


def test_an_expanded_body_is_made_of_nodes_pairs_and_a_graph(tmp_path):
    """What an earlier node returns is an input of a node alone, and is computed in a pair: some conversions need both."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("in", "out")]
    nodes = [
        helper.make_node("Constant", [], ["c"], value_float=2.0),
        helper.make_node("Neg", ["in"], ["t"]),
        helper.make_node("Add", ["t", "c"], ["s"]),
        helper.make_node("Exp", ["s"], ["out"]),
    ]
    body = message(helper.make_graph(nodes, "body", info[:1], info[1:]))
    whole = captured("Softsign", [("X", f32(0, 1))], body=body).program
    *singles, graph = pieces.pieces(library, whole)
    assert [x.operator for x in singles] == ["Neg", "Add", "Exp", "Constant"]
    assert [x.value.array().tolist() for x in singles[1].inputs] == [[0, -1], 2], "what the nodes before it return"
    assert graph.operators == ("Constant", "Neg", "Add", "Exp") and graph.outputs == ("out",)
    _, model, expected = wrap(Captured(graph, SEEN), tmp_path)
    np.testing.assert_allclose(expected[0].array(), np.exp(2 - f32(0, 1)), rtol=1e-6)
    assert [node.op_type for node in model.graph.node] == ["Constant", "Neg", "Add", "Exp"]
    pairs = [x.operators for x in pieces.pieces(library, graph) if len(x.operators) == 2]
    assert [len(x.operators) for x in pieces.pieces(library, graph)][-4:] == [2, 2, 3, 3]
    assert pairs[:4] == [("Constant", "Add"), ("Constant", "Add"), ("Neg", "Add"), ("Add", "Exp")], "with its constants"


VALUES = [
    3, -1.5, "text", b"\xff\xfe", [1, 2], [1.0, 2.5], ["a", b"\xff"], [], Tensor.of(f32(1, 2)),
    [Tensor.of(f32(1)), Tensor.of(np.array([2]))], branch(f32(1), "z"), [branch(f32(1), "z"), branch(f32(2), "u")],
    message(helper.make_tensor_type_proto(1, [2])), [message(helper.make_tensor_type_proto(7, None))],
    message(helper.make_sparse_tensor(
        onnx.numpy_helper.from_array(f32(1), "v"), onnx.numpy_helper.from_array(np.array([2]), "i"), [5])),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_every_attribute_type_becomes_an_attribute_and_source(value):
    assert decode(encode(value)) == value
    attr = onnx_model.attribute("a", value, 7 if value == [] else None)
    node = onnx.NodeProto(op_type="T", attribute=[attr])
    text = onnx_source.node_source(node)
    rebuilt = eval(text, names_of_scripts())
    assert rebuilt == node


def names_of_scripts():
    import ml_dtypes

    def with_attributes(node, *attributes):
        node.attribute.extend(attributes)
        return node

    return {
        "np": np, "onnx": onnx, "helper": helper, "numpy_helper": onnx.numpy_helper, "TensorProto": TensorProto,
        "ml_dtypes": ml_dtypes, "with_attributes": with_attributes,
    }  # fmt: skip


def test_the_schema_settles_the_type_of_an_attribute(tmp_path):
    case = captured("LeakyRelu", [("X", f32(-1, 1))], {"alpha": 1}, outputs=("Y",))
    assert wrap(case, tmp_path)[1].graph.node[0].attribute[0].type == onnx.AttributeProto.FLOAT


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (captured("Add", [("A", f32(1)), ("B", np.array([1]))]), "rejects"),
        (captured("Nonsense", [("X", f32(1))]), "checker|inference|reference"),
        (captured("Abs", [("X", f32(1))], {"a": {"no": 1}}), "cannot be a dict"),
        (captured("Abs", [("X", f32(1))], {"\ud800": 1}), "no ONNX model"),
        (captured("Abs", [("X", f32(1))], opset="newest"), "which opset"),
        (captured("MatMul", [("A", f32(1, 2)), ("B", f32(1, 2, 3))]), "inference|rejects"),
        (captured("Abs", [("X", f32(1))], body=Message("onnx.GraphProto", b"\xff\xff")), "malformed"),
        (captured("If", [("cond", np.array(True))], {"then_branch": Message("x.Y", b"")}), "cannot|no ONNX"),
        (captured("Abs", [("X", f32(1))], expected=()), "states 0 outputs"),
    ],
)
def test_what_onnx_rejects_is_invalid_and_leaves_nothing(tmp_path, case, reason):
    with pytest.raises(InvalidTest, match=reason):
        library.wrap(case, "t", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_random_operators_are_tagged_by_declaration_and_exact_ones_too(tmp_path):
    case = captured("RandomNormal", [], {"shape": [3], "seed": 1.0}, outputs=("output",))
    assert "nondeterministic" in wrap(case, tmp_path)[0].tags
    for training in (True, False):
        inputs = [("data", f32(1, 2)), ("ratio", np.array(0.5, np.float32)), ("training_mode", np.array(training))]
        tags = wrap(captured("Dropout", inputs, {"seed": 1}, outputs=("output",)), tmp_path)[0].tags
        assert ("nondeterministic" in tags) is training
    assert wrap(captured("Floor", [("X", f32(1.5))]), tmp_path)[0].tags == ("exact",)
    assert wrap(captured("Exp", [("X", f32(1.5))]), tmp_path)[0].tags == ()
    places = [("data", f32(1, 2)), ("indices", np.array([0, 0])), ("updates", f32(3, 4))]
    for reduction, tags in (("add", ()), ("max", ("exact",))):
        scattered = captured("ScatterElements", places, {"reduction": reduction}, outputs=("output",))
        assert wrap(scattered, tmp_path)[0].tags == tags


def test_onnx_runtime_agrees_or_refuses_and_the_evaluator_has_no_vote(tmp_path):
    manifest, _, expected = wrap(captured("Exp", [("input", f32(0, 1))], outputs=("output",)), tmp_path)
    asked = library.opinions(manifest, tmp_path, migrated.read_values(tmp_path, "inputs"), besides="openvino")
    assert [(x.name, x.independent, x.error) for x in asked] == [
        ("reference-evaluator", False, ""), ("onnxruntime", True, ""),
    ]  # fmt: skip
    for opinion in asked:
        assert not oracle.compare(expected, opinion.outputs, manifest.outputs, None, None).symptom
    stated = captured("Exp", [("input", f32(0, 1))], outputs=("output",), expected=(Tensor.of(f32(1, np.e)),))
    manifest, _, _ = wrap(stated, tmp_path / "stated")
    asked = library.opinions(
        manifest, tmp_path / "stated", migrated.read_values(tmp_path, "inputs"), besides="openvino"
    )
    assert [x.name for x in asked] == ["reference-evaluator", "onnxruntime"]
    alone = library.opinions(
        manifest, tmp_path / "stated", migrated.read_values(tmp_path, "inputs"), besides="onnxruntime"
    )
    assert [x.name for x in alone] == ["reference-evaluator"], "the test's own word is doubted by fewer"


@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("mode", ["output_half_pixel", "half_pixel"])
def test_the_greatest_sample_of_a_region_may_be_negative(tmp_path, ratio, mode):
    """In a plane, a sample is the plane's value at its place: the greatest is that at a corner of the grid."""
    high, wide = np.mgrid[:8, :8]
    x, region = (-50 + 3.0 * high + wide).astype("float32")[None, None], f32(1, 1, 5, 6)
    params = {"mode": "max", "coordinate_transformation_mode": mode, "sampling_ratio": ratio, "output_width": 2}
    inputs = [("X", x), ("rois", region[None]), ("batch_indices", np.array([0]))]
    case = captured("RoiAlign", inputs, params | {"output_height": 1}, ("Y",))
    _, _, (found,) = wrap(case, tmp_path)
    shift, tall, broad = 0.5 * (mode == "half_pixel"), ratio or 5, ratio or 2
    last = [1 - shift + 2 * bin + (broad - 0.5) * 2 / broad for bin in range(2)]
    bottom = 1 - shift + (tall - 0.5) * 5 / tall
    assert np.allclose(found.array(), [[[[-50 + 3 * bottom + right for right in last]]]])
    assert (found.array() < 0).all()


@pytest.fixture(scope="module")
def node_tests(extracted):
    """Every seventh node test of one node, as `opera extract` captured it."""
    with Workspace.open(extracted, write=False) as workspace:
        names = [name for _, name, _, _ in workspace.documents("onnx")][::7]
        found = [parse_captured(workspace.captured_form(name)) for name in names]
    found = [case for case in found if isinstance(case.program, Instance) and "body" not in case.program.context]
    assert len(found) > 150
    return found


def test_node_tests_wrap_quickly_and_their_source_builds_the_same_model(node_tests, tmp_path):
    seconds = []
    for number, case in enumerate(node_tests):
        start = time.process_time()
        manifest = library.wrap(case, f"{number:020}", tmp_path / str(number))
        seconds.append(time.process_time() - start)
        shown = library.reproducer(manifest, tmp_path / str(number), case.program, "onnx")
        built = eval(shown["model"], names_of_scripts() | {"unpack": unpack})
        again = onnx.load(tmp_path / str(number) / "model.onnx")
        assert normal(built) == normal(again), case.provenance.test
    assert np.median(seconds) < 0.012, (
        "it takes .0025 on a quiet machine; another process on the same core doubles that"
    )


def unpack(text, dtype, shape):
    import base64
    import zlib

    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()


def normal(model):
    """Drop what a script leaves out: producer and documentation; tensors are written in one way."""

    def clean(graph):
        graph.ClearField("doc_string")
        for info in (*graph.input, *graph.output):
            info.ClearField("doc_string")
        for tensor in graph.initializer:
            tensor.CopyFrom(onnx_values.tensor_proto(onnx_values.from_tensor_proto(tensor), tensor.name))
        for node in graph.node:
            node.ClearField("doc_string")
            if not node.domain:
                node.ClearField("domain")
            for attr in sorted(node.attribute, key=lambda attr: attr.name):
                attr.ClearField("doc_string")
                if attr.HasField("t"):
                    attr.t.CopyFrom(onnx_values.tensor_proto(onnx_values.from_tensor_proto(attr.t), attr.t.name))
                for inner in (*attr.graphs, *([attr.g] if attr.HasField("g") else [])):
                    clean(inner)
            ordered = sorted((onnx.AttributeProto.FromString(x.SerializeToString()) for x in node.attribute),
                             key=lambda attr: attr.name)  # fmt: skip
            del node.attribute[:]
            node.attribute.extend(ordered)

    model.ClearField("producer_name")
    clean(model.graph)
    return model.SerializeToString(deterministic=True)


def test_the_evaluator_stands_in_where_a_test_states_nothing(node_tests, tmp_path):
    disagree = []
    for case in node_tests[::6]:
        manifest = library.wrap(Captured(case.program, SEEN), "t", tmp_path)
        expected = migrated.read_values(tmp_path, "expected")
        found = oracle.compare(list(case.expected), expected, manifest.outputs, case.rtol, case.atol)
        if found.symptom and "nondeterministic" not in manifest.tags:
            disagree.append((case.provenance.test, found.message))
    assert not disagree


@pytest.mark.parametrize(("given", "defined"), [([[b"a", b"b"], [b"c", b"d"]], False), ([[b"a"]], True)])
def test_the_evaluator_is_no_reference_where_it_puts_numbers_among_strings(given, defined):
    """ONNX has no zero of strings: Trilu of the evaluator's fills them with the integer."""
    value = Tensor.of(np.array(given, dtype=object), "string")
    size = list(value.shape)
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, size) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Trilu", ["x"], ["y"])], "g", text[:1], text[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    if defined:
        assert onnx_reference.evaluate(model, {"x": value}) == [value]
    else:
        with pytest.raises(InvalidTest, match="numbers among strings"):
            onnx_reference.evaluate(model, {"x": value})
