"""The worked third-party compiler installs, is found by its entry point, and runs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera.libraries.onnx import library
from opera.oracle.comparison import compare
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Optional, Sequence, Tensor
from opera.programs.verdicts import INCONSISTENT
from opera.triage.reproducers import reproducer

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "opera-onnx-reference"
FLOATS = Tensor.of(np.float32([1, -2]))


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PLUGIN)
    return importlib.import_module("opera_onnx_reference")


def test_it_installs_and_opera_finds_it(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(tmp_path), str(PLUGIN)], check=True)
    code = "from opera.compilers import get; c = get('onnx-reference'); print(c.NAME, c.version())"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("onnx-reference ")


def test_a_wrong_expectation_is_caught(plugin: Any, make: Any, run: Any) -> None:
    right = Tensor.of(np.float32([1, 0]))
    stage, outputs = run(plugin, make("Relu", [FLOATS], [right]))
    assert stage == "done" and compare([right], outputs, ("y0",), None, None).symptom == ""
    assert compare([FLOATS], outputs, ("y0",), None, None).symptom == "value"


def test_every_kind_of_value_travels(plugin: Any, make: Any, run: Any) -> None:
    low = Tensor.of(np.uint16([0x3F80, 0xC000]), "bfloat16")
    sequence = Sequence("float32", (FLOATS, FLOATS))
    for value in (low, sequence, Tensor.of(np.array(["a", "b"]))):
        assert run(plugin, make("Identity", [value], [value])) == ("done", [value])
    assert run(plugin, make("OptionalGetElement", [Optional("float32", FLOATS)], [FLOATS])) == ("done", [FLOATS])


def test_what_it_lacks_is_unsupported(plugin: Any, make: Any, run: Any) -> None:
    case = make("Relu", [FLOATS], [FLOATS])
    case.model.write_bytes(case.model.read_bytes().replace(b"Relu", b"Rela"))
    stage, error = run(plugin, case)
    assert plugin.FRONTENDS["onnx"].unsupported(case, stage, error) == "no implementation of Rela"


def test_a_script_prints_its_recipe_and_needs_neither_it_nor_opera(plugin: Any, tmp_path: Path) -> None:
    x = Operand("x", FLOATS)
    instance = Instance("onnx", "Relu", {}, (x,), ("y",), {"opset": {"": 21}})
    wrong = Captured(instance, Provenance("by-hand", "test.py", "here"), (FLOATS,))
    manifest = library.wrap(wrong, "t" * 20, tmp_path)
    shown = reproducer.Exhibit(
        "F1", "onnx-reference-onnx", f"{plugin.__name__}:", {}, "onnx", INCONSISTENT, "infer", "value", "differs"
    )
    text = reproducer.render(shown, manifest, tmp_path, instance)
    assert "ReferenceEvaluator(path)" in text and "import opera" not in text and "from opera" not in text
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the failure is there" in done.stdout, done.stderr
