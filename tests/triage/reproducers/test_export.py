"""Exported tests fail today, pass once the compiler is fixed, and need no opera."""

import ast
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from drafted import FINDING, drafted

from opera.errors import UsageError
from opera.programs.verdicts import INCONSISTENT, UNSTABLE, Outcome
from opera.triage.reproducers import export as stage


def test_a_file_fails_today_and_passes_with_a_compiler_that_is_right(workspace, tmp_path):
    drafted(workspace)
    [found] = stage.export(workspace, [FINDING], "pytest", tmp_path)
    [path] = found.files
    assert found.cases == 1 and not found.left_out and path.name == "test_add_f01234567.py"
    text = path.read_text()
    assert "import opera" not in text and "from opera" not in text
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "1 failed" in done.stdout and "[add_planted]" in done.stdout, done.stdout
    fixed = "\n\ndef run(model, feeds):\n    return [np.array([15.0, 23.0, 33.0], np.float32)]\n"
    path.write_text(text + fixed)
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_the_suite_of_onnx_runtime_has_a_method_a_case(workspace, tmp_path):
    drafted(workspace)
    [found] = stage.export(workspace, [FINDING], "onnxruntime", tmp_path)
    spec = importlib.util.spec_from_file_location("exported", found.files[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    test = module.TestAddF01234567("test_add_planted")
    with pytest.raises(AssertionError):
        test.test_add_planted()
    module.run = lambda model, feeds: [np.array([15.0, 23.0, 33.0], np.float32)]
    test.test_add_planted()


@pytest.mark.parametrize("style", ["tvm", "openvino", "keras"])
def test_a_style_is_for_its_own_compiler_or_library(workspace, tmp_path, style):
    drafted(workspace)
    with pytest.raises(UsageError, match=f"{style} has no tests of that"):
        stage.export(workspace, [FINDING], style, tmp_path)
    with pytest.raises(UsageError, match="no style called 'jest'"):
        stage.export(workspace, [FINDING], "jest", tmp_path)


def test_what_no_test_can_show_is_left_out_and_said(workspace, tmp_path, capsys):
    drafted(workspace, Outcome(UNSTABLE, "infer", "unstable"))
    stage.show(workspace, [FINDING], "pytest", tmp_path)
    told = capsys.readouterr().out
    assert (
        "no test fails for certain" in told and "no test can be made of it" in told and not list(tmp_path.glob("*.py"))
    )


@pytest.mark.parametrize("style", stage.STYLES)
def test_every_template_makes_python_that_hostile_names_do_not_break(workspace, tmp_path, style, monkeypatch):
    message = '""" \\ \n import os; {{ 7 }}'
    drafted(
        workspace, Outcome(INCONSISTENT, "infer", "shape", message, details={"expected": message, "actual": message})
    )
    monkeypatch.setattr(stage, "_check", lambda *_: None)
    [found] = stage.export(workspace, [FINDING], style, tmp_path)
    tree = ast.parse(found.files[0].read_text())
    assert "import os" not in ast.unparse(next(x for x in tree.body if not isinstance(x, ast.Expr)))
    assert any(isinstance(x, ast.FunctionDef) and x.name == "run" for x in tree.body)
