"""Which opset a model needs, and the model stamped with it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from opera.libraries.onnx import library, opsets
from opera.libraries.onnx.walk import all_nodes
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

X = Tensor.of(np.float32([[1, -2], [3, 4]]))
SEEN = Provenance("by-hand", "test_opsets.py", "here")


def wrapped(folder: Path, operator: str, version: int, **params: object) -> migrated.Manifest:
    instance = Instance("onnx", operator, params, (Operand("X", X),), ("Y",), {"opset": {"": version}})
    return library.wrap(Captured(instance, SEEN), "t" * 20, folder)


@pytest.mark.parametrize(
    ("operator", "version", "needs"),
    [
        ("Abs", 20, 13),  # 6 has other words
        ("Abs", 13, 13),
        ("Abs", 12, 6),
        ("Gelu", 20, 20),  # the first
        ("Celu", 28, 12),  # 28 admits further types, and float32 was admitted before
        ("Elu", 22, 7),  # so does 22; 6 is in force there
    ],
)
def test_a_test_says_what_it_needs_and_offers_that_where_it_is_older(tmp_path, operator, version, needs) -> None:
    manifest = wrapped(tmp_path, operator, version)
    assert manifest.needs == {"": needs}
    assert manifest.offers == (() if needs == version else (opsets.OLDEST,))
    assert migrated.read_manifest(tmp_path) == manifest


def test_the_oldest_opset_means_the_same(tmp_path) -> None:
    manifest = wrapped(tmp_path, "Abs", 20)
    made = library.export(manifest, tmp_path, opsets.OLDEST)
    old, new = (onnx.load(tmp_path / file) for file in (made.file, manifest.artefacts["onnx"].file))
    assert [item.version for item in old.opset_import] == [13]
    assert old.graph == new.graph and made.feeds == ("X",)
    assert (old.ir_version, new.ir_version) == (7, 9), "a runtime of opset 13 knows no newer IR"
    with pytest.raises(LookupError):
        library.export(manifest, tmp_path, "onnx-newest")


def test_the_ir_version_stays_that_of_its_dtypes(tmp_path) -> None:
    tensor = helper.make_tensor("c", onnx.TensorProto.INT4, [2], [1, 2])
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT4, [2])
    graph = helper.make_graph([node], "g", [], [output])
    onnx.save(helper.make_model(graph, ir_version=12, opset_imports=[helper.make_opsetid("", 25)]), tmp_path / "m.onnx")
    assert onnx.load_from_string(opsets.stamped(tmp_path / "m.onnx", {"": 13})).ir_version == 10


def test_operators_of_subgraphs_and_other_domains_count() -> None:
    branch = helper.make_graph([helper.make_node("Gelu", ["x"], ["y"])], "branch", [], [])
    conditional = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    nodes = list(all_nodes([conditional]))
    assert opsets.needed(nodes, {"": 24}, {}) == {"": 24}
    assert opsets.needed(nodes, {"": 20}, {}) == {"": 20}
    assert opsets.needed(nodes[1:2], {"": 24}, {}) == {"": 20}
    binarizer = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml")
    assert opsets.needed([binarizer], {"": 24, "ai.onnx.ml": 4}, {}) == {"ai.onnx.ml": 1}


def test_each_operator_is_needed_in_a_version_of_its_own() -> None:
    nodes = [helper.make_node(name, ["x"], ["y"], domain=of) for name, of in (("Cast", ""), ("Abs", ""), ("No", ""))]
    nodes.append(helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml"))
    types = {"x": "tensor(float)", "y": "tensor(float)"}
    found = opsets.of_operators(nodes, {"": 27, "ai.onnx.ml": 4}, types)
    assert found == {"Cast": 24, "Abs": 13, "ai.onnx.ml::Binarizer": 1}


CAST = helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.INT32)


@pytest.mark.parametrize(
    ("types", "needs"),
    [
        ({"x": "tensor(float)", "y": "tensor(int32)"}, 24),  # 23 knows no round_mode
        ({"x": "tensor(float)", "y": "tensor(int2)"}, 25),  # the first that admits it
        ({"x": "tensor(float6e2m3)", "y": "tensor(int32)"}, 28),
        ({"x": "tensor(float)"}, 28),  # what it makes is not known
    ],
)
def test_further_types_are_no_other_meaning(types, needs) -> None:
    assert opsets.needed([CAST], {"": 28}, types) == {"": needs}


def test_other_words_are_another_meaning() -> None:
    shift = helper.make_node("BitShift", ["x", "y"], ["z"], direction="LEFT")
    assert opsets.needed([shift], {"": 28}, dict.fromkeys("xyz", "tensor(uint8)")) == {"": 28}


def test_types_of_what_lies_between_are_inferred() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 28]>
        g (float[2] a, seq(double[2]) b) => (int32[2] d) { c = Abs(a) d = Cast <to: int = 6> (c) }
    """)
    found = opsets.value_types(model)
    assert found == {"a": "tensor(float)", "b": "seq(tensor(double))", "c": "tensor(float)", "d": "tensor(int32)"}
    assert opsets.needed(model.graph.node, {"": 28}, found) == {"": 24}


def test_an_operator_that_onnx_does_not_know_has_no_version() -> None:
    nodes = [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Nonsense", ["y"], ["z"])]
    assert opsets.needed(nodes, {"": 20}, {}) == {}
    assert opsets.needed(nodes[:1], {"": 20, "my.domain": 1}, {}) == {"": 13}
    assert opsets.needed([helper.make_node("Abs", ["x"], ["y"], domain="my.domain")], {"": 20}, {}) == {}


def test_a_runtime_that_refuses_the_opset_runs_the_older_stamp(tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    manifest = wrapped(tmp_path, "Celu", 28, alpha=2.0)
    newest, oldest = (
        tmp_path / manifest.artefacts["onnx"].file,
        library.export(manifest, tmp_path, opsets.OLDEST).file,
    )
    session = onnxruntime.InferenceSession(str(tmp_path / oldest), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": X.array()})
    (expected,) = migrated.read_values(tmp_path, "expected")
    np.testing.assert_allclose(found, expected.array(), rtol=1e-6)
    assert opsets.needed(onnx.load(newest).graph.node, {"": 28}, opsets.value_types(onnx.load(newest))) == {"": 12}


@pytest.mark.parametrize(
    ("operator", "inputs", "params", "older"),
    [
        ("QuantizeLinear", {"x": "f4", "y_scale": "f4", "y_zero_point": "u2"}, {}, [25, 24, 23, 21]),
        ("SpaceToDepth", {"input": "f4"}, {"blocksize": 1}, [13, 7]),
        ("SpaceToDepth", {"input": "f4"}, {"blocksize": 1, "mode": "CRD"}, []),
        ("BitShift", {"X": "i4", "Y": "i4"}, {"direction": "LEFT"}, []),
        ("Mod", {"A": "f4", "B": "f4"}, {}, []),  # "If the input type is floating point, then `fmod` must be set to 1"
        ("Mod", {"A": "f4", "B": "f4"}, {"fmod": 1}, [13, 10]),
        ("Mod", {"A": "i4", "B": "i4"}, {}, [13, 10]),
    ],
)
def test_older_versions_are_those_that_admit_what_a_program_states(operator, inputs, params, older) -> None:
    shape = (1, 1, 1, 1) if operator == "SpaceToDepth" else (1,)
    operands = tuple(Operand(name, Tensor.of(np.ones(shape, kind))) for name, kind in inputs.items())
    found = library.older(Instance("onnx", operator, params, operands, ("y",), {"opset": {"": 28}}))
    assert [x.program.context["opset"][""] for x in found] == older


def test_an_older_version_may_say_the_same() -> None:
    one = Instance(
        "onnx", "Cast", {"to": 6}, (Operand("input", Tensor.of(np.float32([1.5]))),), ("y",), {"opset": {"": 22}}
    )
    found = {x.program.context["opset"][""]: x.same for x in library.older(one)}
    assert found[19] and not found[13], "opset 19 has the attribute saturate"
