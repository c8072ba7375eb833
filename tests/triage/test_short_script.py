"""A short script compares first what the finding names, expects no number that is drawn, and holds nothing without use."""

import subprocess
import sys

import numpy as np
import pytest

from opera.libraries.onnx import library
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT
from opera.triage import brief
from opera.triage.reproducer import Exhibit


def made(folder, operator, inputs, outputs, expected=None, params=None):
    operands = tuple(Operand(name, Tensor.of(value)) for name, value in inputs.items())
    instance = Instance("onnx", operator, params or {}, operands, outputs, {"opset": {"": 21}})
    seen = Provenance("by-hand", "test.py", "here")
    return library.wrap(Captured(instance, seen, expected), "t" * 20, folder), folder, instance


def exhibit(verdict=INCONSISTENT, symptom="value", output="a"):
    versions = {"onnxruntime": "1"}
    fields = {"artefact": "onnx", "verdict": verdict, "stage": "infer", "symptom": symptom, "message": "it differs"}
    return Exhibit("F01234567", "onnxruntime-onnx", "onnxruntime", versions, output=output, **fields)


def run(folder, text):
    (folder / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("operator", "more", "params", "dtype"),
    [("Split", {}, {"num_outputs": 2}, np.float32), ("TopK", {"k": np.array([1])}, {}, np.int64)],
)
@pytest.mark.parametrize("output", ["a", "b"])
def test_what_the_finding_names_is_compared_first(tmp_path, operator, more, params, dtype, output):
    """With one tolerance for all outputs, and with one of each."""
    wrong = (Tensor.of(np.array([5], np.float32)), Tensor.of(np.array([6], dtype)))
    told = made(tmp_path, operator, {"x": np.array([1.0, 2.0], np.float32), **more}, ("a", "b"), wrong, params)
    code, said = run(tmp_path, brief.brief(exhibit(output=output), *told).script(exhibit(output=output)))
    first = next(line for line in said.splitlines() if ": got" in line)
    assert code == 1 and first.startswith(f"{output}: got"), said


def test_of_a_random_program_only_the_form_is_expected(tmp_path):
    fed = {"data": np.array([1.37], np.float32), "ratio": np.array(0.5, np.float32), "training_mode": np.array(True)}
    told = made(tmp_path, "Dropout", fed, ("y", "mask"))
    assert brief.brief(exhibit(output="y"), *told) is None  # 0 and 2.74 are right, and so is each of them alone
    shown = exhibit(symptom="dtype", output="mask")
    text = brief.brief(shown, *told).script(shown)
    assert "2.74" not in text and "('bool', [1])" in text and "expected = " not in text
    assert run(tmp_path, text)[0] == 0
    assert run(tmp_path, text.replace("('bool', [1])", "('float32', [1])"))[0] == 1


def test_the_script_of_a_crash_has_no_use_for_what_is_expected(tmp_path):
    numbers = np.random.default_rng(0).random(600).astype(np.float32)
    told = made(tmp_path, "Expand", {"x": numbers[:2], "shape": np.array([2])}, ("y",), (Tensor.of(numbers),))
    shown = exhibit(CRASH, "RuntimeError")
    assert brief.brief(shown, *told, folder="folder").helpers  # an exported test states what is expected
    made_of = brief.brief(shown, *told)
    assert not made_of.helpers and "base64" not in made_of.script(shown)
