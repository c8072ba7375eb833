"""Instances as node tests in files: written, read by ONNX's loader, run by its runner, and extracted again."""

import shutil
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.runner as runner
import onnxruntime.backend
import pytest
from commands import opera
from onnx import helper
from onnx.backend.base import Backend
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator
from several_calls import ONNX

from opera.capture.recorder import Recorder
from opera.errors import UsageError
from opera.libraries.onnx import node_tests
from opera.programs.program import Captured, Graph, Instance, Operand, Provenance
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor
from opera.run import publish
from opera.store import instances
from opera.store.instances import Seen
from opera.store.workspace import Workspace

F32 = Tensor.of(np.float32([[1, -2], [3, 4]]))
NAN = Tensor.of(np.float32([np.nan, -0.0]))
BF16 = Tensor("bfloat16", (2,), np.uint16([0x3F80, 0x7FC0]).tobytes())
FP8 = Tensor("float8_e4m3fn", (3,), bytes([0x38, 0x00, 0xFF]))
INT4 = Tensor("int4", (3,), bytes([7, 0xFF, 3]))
TEXT = Tensor.of(np.array(["a", "é"], dtype=object))
NOTHING = Tensor.of(np.zeros((0, 2), np.float32))


def call(
    operator: str, values: dict, params: dict | None = None, opset: int = 21, outputs=("y",), **context
) -> Instance:
    inputs = tuple(Operand(name, value) for name, value in values.items())
    domain = operator.rpartition("::")[0]
    versions = {domain: 3} if domain else {"": opset}
    return Instance("onnx", operator, params or {}, inputs, tuple(outputs), {"opset": versions, **context})


def body() -> Message:
    types = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in ("input", "output")]
    nodes = [helper.make_node("Exp", ["input"], ["inner"]), helper.make_node("Log", ["inner"], ["output"])]
    graph = helper.make_graph(nodes, "Softsign", types[:1], types[1:])
    return Message("onnx.GraphProto", graph.SerializeToString(deterministic=True))


PLAIN = {
    "test_relu": call("Relu", {"X": F32}, outputs=["Y"]),
    "nan": call("Identity", {"input": NAN}, outputs=["output"]),
    "bf16": call("Identity", {"input": BF16}, outputs=["output"]),
    "to fp8": call("Cast", {"input": F32}, {"to": 17}, outputs=["output"]),
    "fp8": call("Identity", {"input": FP8}, outputs=["output"]),
    "int4": call("Identity", {"input": INT4}, outputs=["output"]),
    "strings": call("Identity", {"input": TEXT}, outputs=["output"]),
    "nothing": call("Relu", {"X": NOTHING}, outputs=["Y"]),
    "left out": call("Clip", {"input": F32, "min": None, "max": Tensor.of(np.float32(2))}, outputs=["output"]),
    "ai.onnx.ml": call("ai.onnx.ml::Binarizer", {"X": F32}, {"threshold": 0.5}, outputs=["Y"]),
    "sequence": call(
        "SequenceAt",
        {"input_sequence": Sequence("float32", (F32, NOTHING)), "position": Tensor.of(np.int64(1))},
        outputs=["tensor"],
    ),
    "no sequence": call("SequenceLength", {"input_sequence": Sequence("string", ())}, outputs=["length"]),
    "optional": call("OptionalGetElement", {"input": Optional("float32", F32)}, outputs=["output"]),
    "optional of sequence": call(
        "OptionalGetElement",
        {"input": Optional("sequence(float32)", Sequence("float32", (F32,)))},
        outputs=["output"],
    ),
    "nothing optional": call("OptionalHasElement", {"input": Optional("float32", None)}, outputs=["output"]),
}
OTHERS = {
    "described": call("Relu", {"X": RandomTensor("float32", (3, 5), 7, -1.0, 1.0)}, outputs=["Y"]),
    "expanded": call("Softsign", {"input": F32}, outputs=["output"], body=body()),
    **ONNX,
}
STATED = {"test_relu": (Tensor.of(np.float32([[1, 0], [3, 4]])),)}
INVALID = call("Reshape", {"data": F32, "shape": Tensor.of(np.int64([3, -1]))}, outputs=["reshaped"])


class Reference(Backend):
    """ONNX's reference evaluator as a backend."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        evaluator = ReferenceEvaluator(model)
        names = [x.name for x in model.graph.input]

        class Prepared:
            def run(self, inputs, **kwargs):
                return evaluator.run(None, dict(zip(names, inputs, strict=True)))

        return Prepared()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a workspace, `w`, and what was written of it."""
    root = tmp_path_factory.mktemp("published")
    with Workspace.open(root / "w", write=True) as workspace:
        workspace.add_captured(
            Captured(
                program, Provenance("mine" if name in PLAIN else "others", "f", name), STATED.get(name), 1e-5, None
            )
            for name, program in (PLAIN | OTHERS | {"wrong": INVALID}).items()
        )
    for form in ("onnx-node-tests", "onnx-node-cases"):
        with Workspace.open(root / "w", write=False) as workspace:
            found = publish.publish(workspace, form, root / form, workers=1)
        assert found.written + len(found.left) == len(PLAIN) + len(OTHERS) + 1
        assert set(found.left) >= {INVALID.id}, "the library rejects it"
    return root


def ids(workspace: Path) -> dict[str, str]:
    with Workspace.open(workspace, write=False) as opened:
        return {x.instance: x.test for x in instances.seen(opened, "onnx")}


def test_what_is_left_out_is_listed_with_its_reason(made) -> None:
    lines = (made / "onnx-node-tests" / publish.LEFT_OUT).read_text().splitlines()
    (row,) = (line.split("\t") for line in lines)
    assert row[:2] == [INVALID.id, "Reshape"] and row[2]
    reasons = [line.split("\t")[2] for line in (made / "onnx-node-cases" / publish.LEFT_OUT).read_text().splitlines()]
    assert sum("expanded function" in x for x in reasons) == 1
    assert sum("tests of one node" in x for x in reasons) == len(ONNX)


def test_what_was_written_is_extracted_as_the_same_instances(made) -> None:
    ended = opera("extract", made / "onnx-node-tests", "--workspace", made / "again", "--workers", 1)
    assert ended.returncode == 0, ended.stderr
    written = {program.id: program for program in (PLAIN | OTHERS).values()}
    found = ids(made / "again")
    assert set(found) == set(written)
    with Workspace.open(made / "again", write=False) as workspace:
        relu = PLAIN["test_relu"].id
        form = workspace.captured_form(relu)
        assert form["provenance"] == {"source": "onnx-folders", "file": "test_relu/model.onnx", "test": "test_relu"}
        assert (form["rtol"], form["atol"]) == (1e-5, None)
        assert (
            form["expected"]
            == Captured(PLAIN["test_relu"], Provenance("", "", ""), STATED["test_relu"]).form()["expected"]
        )
        assert all(workspace.instance(name).form() == program.form() for name, program in written.items())


def run_by(backend: type[Backend], cases: list, monkeypatch) -> dict[str, str]:
    """Return the name of a test → how it ends in ONNX's own runner."""
    monkeypatch.setattr(runner, "load_model_tests", lambda kind: cases if kind == "simple" else [])
    suite = runner.Runner(backend).test_suite
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun == 2 * len(cases), "each on two devices"
    bad = {str(test).split()[0]: said for test, said in (*result.failures, *result.errors)}
    return {x.name: bad.get(f"{x.name}_cpu", "") for x in cases}


def test_they_pass_by_the_loader_and_runner_of_onnx(made, monkeypatch) -> None:
    cases = load_model_tests(str(made), "onnx-node-tests")
    assert len(cases) == len(PLAIN) + len(OTHERS)
    assert {x.name for x in cases if x.rtol == 1e-5} == {"test_relu"}, "it alone states a tolerance"
    told = run_by(Reference, cases, monkeypatch)
    # This runner cannot compare what has no shape: an element of nothing.
    assert not {name for name, said in told.items() if said}, told
    plain = {"test_relu", "test_strings", "test_nothing", "test_left_out", "test_matmul_relu", "test_sequence"}
    told = run_by(onnxruntime.backend, [x for x in cases if x.name in plain], monkeypatch)
    assert len(told) == len(plain) and not any(told.values()), told


def test_a_wrong_expectation_fails_in_the_runner(made, tmp_path, monkeypatch) -> None:
    shutil.copytree(made / "onnx-node-tests" / "test_relu", tmp_path / "suite" / "test_relu")
    output = tmp_path / "suite" / "test_relu" / "test_data_set_0" / "output_0.pb"
    output.write_bytes(onnx.numpy_helper.from_array(np.float32([[1, 0], [3, 5]])).SerializeToString())
    told = run_by(Reference, load_model_tests(str(tmp_path), "suite"), monkeypatch)
    assert "Mismatched elements" in told["test_relu"]


def test_case_files_state_the_same_instances(made) -> None:
    every = made / "every.py"
    every.write_text(
        "import pathlib, runpy\n"
        f"for path in sorted(pathlib.Path({str(made / 'onnx-node-cases')!r}).glob('*.py')):\n    runpy.run_path(str(path))\n"
    )
    ended = opera("record", "--library", "onnx", "--workspace", made / "recorded", "--", "python", every)
    assert ended.returncode == 0, ended.stderr
    materialised = OTHERS["described"]
    plain = {program.id for program in PLAIN.values()}
    found = set(ids(made / "recorded"))
    assert plain <= found
    assert materialised.id not in found, "a case file spells out what was described"


def test_a_folder_that_is_there_is_left_alone(made) -> None:
    with Workspace.open(made / "w", write=False) as workspace:
        with pytest.raises(UsageError, match="is there already"):
            publish.publish(workspace, "onnx-node-tests", made / "onnx-node-tests")
        with pytest.raises(UsageError, match="holds nothing of onnx from 'other'") as raised:
            publish.publish(workspace, "onnx-node-tests", made / "new", source="other")
        assert "others" in str(raised.value.cause)
        with pytest.raises(UsageError, match="no instance of onnx is chosen"):
            publish.publish(workspace, "onnx-node-tests", made / "new", operator="Conv*")
        with pytest.raises(UsageError, match="no form of tests"):
            publish.publish(workspace, "onnx-node-test", made / "new")
        with pytest.raises(UsageError, match="a form of tests of onnx, not of torch"):
            publish.publish(workspace, "onnx-node-tests", made / "new", library="torch")
    assert not (made / "new").exists()


def test_a_model_that_was_changed_is_no_longer_what_its_metadata_say(made, tmp_path) -> None:
    shutil.copytree(made / "onnx-node-tests" / "test_matmul_relu", tmp_path / "test_x")
    (found,) = node_tests.read(tmp_path / "test_x")
    assert isinstance(found.program, Graph)
    model = onnx.load(tmp_path / "test_x" / "model.onnx")
    model.graph.node[1].op_type = "Neg"
    onnx.save(model, tmp_path / "test_x" / "model.onnx")
    recorder, spool = recording(tmp_path)
    assert node_tests.run(recorder, str(tmp_path / "test_x" / "model.onnx")) == (1, 0)
    assert not spool.read_bytes(), "its nodes are seen by hooks, which are not here"
    assert list(recorder.left_out) == ["a model of several nodes that does not say which operator it is"]


def recording(folder: Path) -> tuple[Recorder, Path]:
    recorder = Recorder("onnx-folders")
    recorder.begin("here", folder / "spool")
    return recorder, folder / "spool"


@pytest.mark.parametrize(
    ("data", "told"), [(b"no model", "files of a node test that cannot be read"), (b"", "a node test without data")]
)
def test_what_is_no_node_test_is_told(tmp_path, data, told) -> None:
    (tmp_path / "model.onnx").write_bytes(data)
    recorder, spool = recording(tmp_path)
    node_tests.run(recorder, str(tmp_path / "model.onnx"))
    assert not spool.read_bytes()
    (said,) = recorder.left_out
    assert said.startswith(told)


def test_names_are_valid_and_each_another() -> None:
    chosen = [
        Seen("0" * 20, "Relu", "test_relu"),
        Seen("1" * 20, "Relu", "test_Relu"),
        Seen("2" * 20, "Relu", "test_relu with x = 1"),
        Seen("3" * 20, "ai.onnx.ml::Scaler", "é/!"),
        Seen("4" * 20, "Relu", "x" * 300),
        Seen("5" * 20, "Relu", "a/b.py::test_c[1-2]"),
    ]
    assert list(publish.named(chosen).values()) == [
        "test_relu",
        "test_Relu_11111111",
        "test_relu_with_x_1",
        "test_ai_onnx_ml_Scaler",
        "test_" + "x" * 100,
        "test_a_b_py_test_c_1_2",
    ]
