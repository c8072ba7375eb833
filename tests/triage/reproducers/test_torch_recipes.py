"""Each compiler's recipe in a PyTorch reproducer does what the compiler's module does, for every artefact it consumes."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys

import pytest

torch = pytest.importorskip("torch")

from opera import compilers  # noqa: E402
from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.programs.program import Captured, Provenance  # noqa: E402
from opera.programs.values import Tensor  # noqa: E402
from opera.programs.verdicts import CRASH, INCONSISTENT  # noqa: E402
from opera.triage.reproducers import reproducer  # noqa: E402
from opera.triage.reproducers.brief import brief  # noqa: E402

NAMES = ["tvm", "openvino", "inductor", "torchexport", "onnxexport"]
ROUTES = [(name, variant.artefact) for name in NAMES for variant in compilers.frontend(name, "torch").VARIANTS]
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def exhibit(compiler, artefact, verdict=INCONSISTENT, **fields):
    base = {"stage": "infer", "symptom": "value", "message": "output differs", "came_from": "test.py::here"}
    return reproducer.Exhibit("F1", f"{compiler}-torch", compiler, {}, artefact, verdict, **base | fields)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write a script and run it in this process, for torch and the compilers take seconds to import."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def once(shown, operator, *args, expected=None, **kwargs):
        instance = torch_calls.instance(operator, args, kwargs)
        manifest = library.wrap(
            Captured(instance, Provenance("by-hand", "test.py", "here"), expected), "t" * 20, tmp_path
        )
        path = tmp_path / "F1.py"
        reproducer.write(shown, manifest, tmp_path, instance, path)
        said = io.StringIO()
        with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
        return end.value.code, said.getvalue(), path.read_text()

    yield once
    torch.set_grad_enabled(True)


@pytest.mark.parametrize(("compiler", "artefact"), ROUTES)
def test_a_planted_wrong_expectation_is_shown_and_a_right_one_is_gone(script, compiler, artefact):
    code, output, text = script(exhibit(compiler, artefact), "torch.sub", X, X.flip(1))
    assert code == 0 and "gone: the outputs are as expected" in output, output
    assert "opera" not in text.replace("found by opera", "")
    wrong = (Tensor.of(3 * X.numpy() + 1),)
    code, output, _ = script(exhibit(compiler, artefact), "torch.sub", X, X.flip(1), expected=wrong)
    assert code == 1 and "the failure is there" in output, output


@pytest.mark.parametrize(("compiler", "artefact"), [route for route in ROUTES if route != ("tvm", "onnx")])
def test_low_precision_and_scalars_get_through(script, compiler, artefact):
    """ONNX Runtime has no kernel that adds bfloat16, but casts it; TVM cannot read the type from ONNX."""
    code, output, _ = script(exhibit(compiler, artefact), "torch.Tensor.to", X[0, 0].bfloat16(), torch.float32)
    assert code == 0 and "gone: the outputs are as expected" in output, output


@pytest.mark.parametrize("compiler", ["inductor", "torchexport", "onnxexport"])
def test_complex_numbers_get_through_pytorchs_own(script, compiler):
    code, output, _ = script(exhibit(compiler, "live"), "torch.fft.fft", X)
    assert code == 0 and "gone: the outputs are as expected" in output, output


CRASHES = {
    "tvm": ("ValueError", "the input axis 0 is out of range", "torch.sum", torch.tensor(3.0), 0),
    "openvino": ("RuntimeError", "are not consistent, `data` and `indices`", "torch.gather", X, 1, torch.tensor([[0]])),
}


@pytest.mark.parametrize("compiler", CRASHES)
def test_a_crash_happens_in_the_same_stage_with_the_same_words(script, compiler):
    symptom, words, operator, *args = CRASHES[compiler]
    shown = exhibit(compiler, "pt2", CRASH, stage="load", symptom=symptom, message=words)
    code, output, _ = script(shown, operator, *args)
    assert code == 1 and "the failure is there" in output, output


def test_an_invalid_file_of_bfloat16_is_shown_in_few_lines(tmp_path, monkeypatch):
    """The checker ends before anything is fed: `einsum`, which the exporter writes as ONNX's Einsum of any dtype."""
    instance = torch_calls.instance("torch.einsum", ("ii->i", [torch.ones(2, 2, dtype=torch.bfloat16)]), {})
    manifest = library.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
    shown = exhibit("onnxexport", "live", CRASH, stage="compile", symptom="InferenceError", message="unsupported type")
    found = brief(shown, manifest, tmp_path, instance)
    assert found is not None
    text = found.script(shown)
    assert len(text.splitlines()) < 30 and "session.run" not in text
    (tmp_path / "script.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="unsupported type: tensor\\(bfloat16\\)"):
        runpy.run_path("script.py")
    assert brief(exhibit("onnxexport", "live"), manifest, tmp_path, instance) is None, "what is fed needs the long one"
