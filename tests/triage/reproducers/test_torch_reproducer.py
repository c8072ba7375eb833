"""Reproducers of PyTorch tests: the module that was tested, its inputs as literals, and artefacts as opera makes them."""

import ast
import runpy
import subprocess
import sys

import numpy as np
import pytest
from faults import itself

torch = pytest.importorskip("torch")

from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.libraries.torch import modules as torch_modules  # noqa: E402
from opera.programs.program import Captured, Instance, Operand, Provenance  # noqa: E402
from opera.programs.values import Named, Tensor  # noqa: E402
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT  # noqa: E402
from opera.triage.reproducers import reproducer  # noqa: E402


def exhibit(artefact="live", verdict=INCONSISTENT, **fields):
    base = {"stage": "infer", "symptom": "value", "message": "output differs", "came_from": "test.py::here"}
    return reproducer.Exhibit(
        "F01234567", "itself-torch", itself.NAME, {"itself": "1"}, artefact, verdict, **base | fields
    )


def made(folder, instance, expected=None):
    captured = Captured(instance, Provenance("by-hand", "test.py", "here"), expected)
    return library.wrap(captured, "t" * 20, folder), instance


def call(operator, *args, **kwargs):
    return torch_calls.instance(operator, args, kwargs)


def layer(operator, given, *args):
    made = torch_modules.constructed(operator, given, {})
    module = getattr(torch.nn, operator.rpartition(".")[2])(*given).eval()
    return torch_modules.module_instance(operator, module, made, args, {})


def written(tmp_path, shown, manifest, instance):
    path = tmp_path / "out" / "F01234567.py"
    reproducer.write(shown, manifest, tmp_path, instance, path)
    return path


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs scripts in this process, for torch takes seconds to import."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def once(shown, manifest, instance):
        path = written(tmp_path, shown, manifest, instance)
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(path), run_name="__main__")
        return end.value.code, capsys.readouterr().out, path.read_text()

    yield once
    torch.set_grad_enabled(True)


X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize("artefact", ["live", "pt2", "torchscript", "onnx"])
def test_a_planted_wrong_expectation_is_shown_and_a_right_one_is_gone(tmp_path, run, artefact):
    instance = call("torch.add", X, X, alpha=2)
    code, output, script = run(exhibit(artefact), *made(tmp_path, instance))
    assert code == 0 and "gone: the outputs are as expected" in output, output
    assert "return torch.add(input, other, alpha=2)" in script and "expected outputs by eager torch" in script
    assert (
        "opera" not in script.replace("found by opera", "") and script.partition("# ---- the rest")[0].count("\n") < 40
    )
    wrong = (Tensor.of(3 * X.numpy() + 1),)
    code, output, _ = run(exhibit(artefact), *made(tmp_path, instance, wrong))
    assert code == 1 and "the failure is there" in output, output


LARGE = torch.linspace(0, 1, 3000).reshape(1, 3, 10, 100).to(memory_format=torch.channels_last)
CASES = {
    "large and channels last": lambda: call("torch.nn.functional.avg_pool2d", LARGE, 2),
    "bfloat16": lambda: call("torch.exp", X.bfloat16()),
    "float8": lambda: call("torch.Tensor.to", X, torch.float8_e4m3fn),
    "complex": lambda: call("torch.fft.fft", X),
    "bool": lambda: call("torch.gt", X, 2),
    "scalar": lambda: call("torch.sum", X),
    "empty": lambda: call("torch.cat", [X[:0], X[:0]]),
    "several": lambda: call("torch.sort", X.flip(1)),
    "weights": lambda: layer("torch.nn.LSTM", (3, 4), X),
    "constant": lambda: layer("torch.nn.CrossEntropyLoss", (torch.tensor([1.0, 2.0, 3.0]),), X, torch.tensor([1, 2])),
    "nothing": lambda: call("torch.arange", 5),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_tensor_gets_through(tmp_path, run, name):
    code, output, _ = run(exhibit(), *made(tmp_path, CASES[name]()))
    assert code == 0 and "gone: the outputs are as expected" in output, output


def test_a_crash_and_a_death_are_told_from_others(tmp_path, run):
    manifest, instance = made(tmp_path, call("torch.exp", X))
    shown = exhibit(verdict=CRASH, symptom="RuntimeError", message="something that is not there")
    code, output, _ = run(shown, manifest, instance)
    assert code == 0 and "gone: it runs to the end" in output, output
    path = written(tmp_path, exhibit(verdict=ABORT, symptom="SIGSEGV"), manifest, instance)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "gone" in done.stdout, done.stderr


NASTY = ['"""; import os', "a\nimport os\n#", "{{ 7 * 7 }}", "__import__('os')", "class", "\x00", "torch"]


def test_no_name_or_value_becomes_code(tmp_path, run):
    inputs = tuple(Operand(name, Tensor.of(np.ones(2, np.float32))) for name in NASTY)
    tensors = [Named("torch.input", name) for name in NASTY]
    context = {"kind": "function", "call": {"args": ["tensors"], "kwargs": []}}
    manifest, instance = made(tmp_path, Instance("torch", "torch.cat", {"tensors": tensors}, inputs, (), context))
    for nasty in NASTY:
        text = reproducer.render(exhibit(message=nasty, symptom=nasty, came_from=nasty), manifest, tmp_path, instance)
        tree = ast.parse(text)
        imported = {x.name for node in ast.walk(tree) if isinstance(node, ast.Import) for x in node.names}
        assert imported == {"os", "sys", "tempfile", "numpy", "torch"}
    code, output, _ = run(exhibit(), manifest, instance)
    assert code == 0, output
