"""`opera check`, with the real libraries and compilers; ONNX's are quick."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import opera

from opera.check import command
from opera.check.command import Wanted
from opera.errors import OperaError, UsageError
from opera.store.workspace import Workspace

pytest.importorskip("onnx")

SCRIPT = """
import sys
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

def model(operator):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    return helper.make_model(helper.make_graph([helper.make_node(operator, ["x"], ["y"], name="only")], "g", [x], [y]))

def run(operator, at):
    return ReferenceEvaluator(model(operator)).run(None, {"x": np.array([at, 2], np.float32)})

run("Relu", 1.0)
if "--both" in sys.argv:
    run("LeakyRelu", -1.0)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPERA_TEST_MARKS", str(tmp_path))
    (tmp_path / "s.py").write_text(SCRIPT)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *words: str, **more: object) -> tuple[bool, str]:
    wanted = Wanted(words=("s.py", *words), workers=1, **{"library": "onnx", **more})  # type: ignore[arg-type]
    fails = command.check(wanted)
    return fails, capsys.readouterr().out


def test_what_fails_is_told_by_the_line_that_calls_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compilers = ("faults.onnx_faults:wrong_value", "onnxruntime")
    fails, text = checked(capsys, "--both", compilers=compilers)
    line = next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if "return ReferenceEvaluator" in line)
    assert fails
    shown = text.splitlines()
    assert shown[1].startswith(f"s.py:{line}  return ReferenceEvaluator(model(operator)).run(None")
    assert "inconsistent  LeakyRelu on faults.onnx_faults:wrong_value-onnx  F" in shown[2]
    assert "in only" in shown[4] and "Relu" in shown[3]
    assert not any("  Relu on" in line for line in shown), "what passes is counted alone"
    assert "1 of 1 line fails (2 different calls: 1 inconsistent, 1 pass)" in text
    assert "onnxruntime-onnx" in text and "its line passes (2 different calls: 2 pass)" in text
    assert "kept in results/check/s" in text
    finding = next(word for word in shown[2].split() if word.startswith("F") and len(word) == 9)
    assert f"next: opera show {finding} --workspace results/check/s" in text
    assert (place / "results/check/s/reproducers" / f"{finding}.py").is_file()

    # The script no longer calls it: it is not told of, though the workspace holds it, and nothing is run again.
    with Workspace.open(place / "results/check/s", write=False) as workspace:
        before = workspace.query("SELECT COUNT(*) FROM verdicts")
    fails, text = checked(capsys, compilers=compilers)
    assert not fails and "LeakyRelu" not in text and "(1 different call: 1 pass)" in text
    with Workspace.open(place / "results/check/s", write=False) as workspace:
        assert workspace.query("SELECT COUNT(*) FROM verdicts") == before


def test_a_program_that_fails_is_no_check_that_passes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "s.py").write_text(SCRIPT + "\nsys.exit(3)")
    fails, text = checked(capsys, compilers=("onnxruntime",))
    assert fails and "its line passes, of those that the program came to" in text
    assert "the program itself failed (exit code 3)" in text


def test_what_cannot_be_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "s.py").write_text("import onnx\nraise SystemExit(3)")
    with pytest.raises(UsageError, match=r"the program \(exit code 3\) called no operator of onnx"):
        checked(capsys)
    (place / "net.onnx").write_bytes(b"no model")
    with pytest.raises(UsageError, match=r"\(exit code 1\) called no operator"):
        command.check(Wanted("", ("net.onnx",)))
    with pytest.raises(UsageError, match="no format 'pdf'"):
        checked(capsys, format="pdf")


def test_a_model_file_is_checked_node_by_node(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Relu", ["x"], ["y"], name="first"), helper.make_node("Exp", ["y"], ["z"], name="second")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xz"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])), place / "net.onnx")
    done = opera("check", "net.onnx", "--compiler", "onnxruntime", "--temporary", "--format", "json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    told = [(x["line"], x["text"], x["calls"][0]["modules"]) for x in found["lines"]]
    assert told == [(1, "y = Relu(x)", ["first"]), (2, "z = Exp(y)", ["second"])]
    [call] = found["lines"][1]["calls"]
    assert (call["operator"], call["verdict"], call["call"][-1].partition("#")[0].strip()) == (
        "Exp",
        "pass",
        "output = Exp(input)",
    )
    assert found["workspace"] == "" and not (place / "results").exists()


TORCH = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return torch.sinh(self.fc(x))

net = nn.Sequential(Block(), Block(), nn.ReLU()).eval()
with torch.no_grad():
    print(torch.median(net(torch.randn(2, 4))))
"""
KERAS = """
import keras, numpy
from keras import layers
inputs = keras.Input((4,))
x = layers.Dense(3, activation="gelu")(inputs)
x = layers.LayerNormalization()(x)
model = keras.Model(inputs, x)
print(model(numpy.ones((2, 4), "float32")).shape)
"""


@pytest.mark.full
@pytest.mark.parametrize(("text", "library"), [(TORCH, "torch"), (KERAS, "keras")], ids=["torch", "keras"])
def test_models_of_modules_and_layers(place: Path, text: str, library: str) -> None:
    pytest.importorskip(library)
    pytest.importorskip("openvino")
    (place / "s.py").write_text(text)
    done = opera("check", "s.py", "--compiler", "openvino", "--format", "json", cwd=place)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout[done.stdout.index("{") :])
    assert found["library"] == library
    told = {(x["text"], call["operator"]): call for x in found["lines"] for call in x["calls"]}
    if library == "torch":
        assert told["return torch.sinh(self.fc(x))", "torch.nn.Linear"]["modules"] == [
            "Sequential.0.fc",
            "Sequential.1.fc",
        ]
        assert told["return torch.sinh(self.fc(x))", "torch.sinh"]["modules"] == ["Sequential.0", "Sequential.1"]
    else:
        assert told['x = layers.Dense(3, activation="gelu")(inputs)', "keras.layers.Dense"]["modules"] == ["dense"]
    prioritized = opera("prioritize", "--workspace", "results/check/s", cwd=place)
    assert prioritized.returncode == 0


def test_settings_of_a_compiler_are_checked_and_reach_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="did you mean provider"):
        checked(capsys, compilers=("onnxruntime",), settings=("providr=x",))
    with pytest.raises(OperaError, match="this onnxruntime has no CUDAExecutionProvider"):
        checked(capsys, compilers=("onnxruntime",), settings=("provider=CUDAExecutionProvider",))
