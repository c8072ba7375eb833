"""LiteRT Torch: how values travel, what it refuses, where it failed, its ways, and its scripts.

Most skip where litert-torch is not installed, as in `make test`: `opera env create litert` makes an environment with it.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from opera.compilers import litert, tflite  # noqa: E402
from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.oracle.comparison import compare  # noqa: E402
from opera.programs.case import Case, remembered  # noqa: E402
from opera.programs.migrated import read_values  # noqa: E402
from opera.programs.program import Captured, Provenance  # noqa: E402
from opera.programs.values import Tensor  # noqa: E402
from opera.programs.verdicts import CRASH, INCONSISTENT, UNSUPPORTED, Raised, Seen  # noqa: E402
from opera.run import culprit, judge, releases  # noqa: E402
from opera.triage.reproducers import reproducer  # noqa: E402

FRONTEND = litert.FRONTENDS["torch"]
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
installed = pytest.mark.skipif(find_spec("litert_torch") is None, reason="not installed: `opera env create litert`")


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """Wrap a call; return the case and the expected outputs."""

    def once(operator: str, *args: Any) -> tuple[Case, list[Any]]:
        instance = torch_calls.instance(operator, args, {})
        manifest = library.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
        expected = read_values(tmp_path, "expected")
        feeds = dict(zip(manifest.inputs, read_values(tmp_path, "inputs"), strict=True))
        dtypes = tuple(x.dtype if isinstance(x, Tensor) else "" for x in expected)
        live = lambda: library.live(manifest, tmp_path)  # noqa: E731
        return Case(
            "torch", operator, tmp_path / "x", feeds, manifest.outputs, "live", "live", live, "", dtypes
        ), expected

    return once


@installed
def test_a_right_answer_passes_and_a_wrong_expectation_is_caught(make: Any, run: Any) -> None:
    case, expected = make("torch.sub", X, X.flip(1))
    stage, outputs = run(litert, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""
    assert compare([case.feeds["input"]], outputs, case.outputs, None, None).symptom == "value"
    assert FRONTEND.conversion_function(case, None) == "lowerings:_aten_sub_tensor"


@installed
@pytest.mark.parametrize(
    "kind",
    [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64, torch.float64, torch.float16, torch.bfloat16],
)
def test_tensors_of_every_kind_travel_unchanged(kind: Any, make: Any, run: Any) -> None:
    case, expected = make("torch.unsqueeze", X.to(kind), 0)
    assert run(litert, case) == ("done", expected)


@installed
def test_several_outputs_scalars_and_numbers_of_64_bits_come_as_they_are(make: Any, run: Any) -> None:
    for operator, *args in (
        ("torch.max", X.flip(1), 1),
        ("torch.unsqueeze", torch.tensor(2.5), 0),
        ("torch.add", torch.tensor([2**40 + 5]), torch.tensor([1])),
    ):
        case, expected = make(operator, *args)
        assert run(litert, case) == ("done", expected), operator


@installed
@pytest.mark.parametrize("way", [x.name for x in tflite.WAYS])
def test_a_file_can_be_run_by_other_kernels(way: str, make: Any, run: Any) -> None:
    case, expected = make("torch.sub", X, X.flip(1))
    assert run(litert, msgspec.structs.replace(case, way=way)) == ("done", expected)


REFUSED = [
    ("torch.i0", X, "load", "no lowering for aten.i0.default", "aten.i0.default"),
    ("torch.sort", X, "compile", "no kernel for STABLEHLO_SORT", "sort.default"),
    ("torch.exp", X.to(torch.complex64), "load", "it has no type for complex64", "exp.default"),
    ("torch.nonzero", X, "load", "a shape that depends on data", "torchax_ops:_aten_nonzero"),
    ("torch.exp", X.double(), "load", "TensorFlow Lite has no exp of f64", "exp.default"),
]


@installed
@pytest.mark.parametrize(
    ("operator", "value", "stage", "reason", "place"), REFUSED, ids=[f"{x[0]}-{x[1].dtype}" for x in REFUSED]
)
def test_its_own_words_make_it_unsupported(
    operator: str, value: Any, stage: str, reason: str, place: str, make: Any, run: Any
) -> None:
    case, _ = make(operator, value)
    failed, error = run(litert, case)
    assert (failed, FRONTEND.unsupported(case, failed, error)) == (stage, reason), repr(error)[:500]
    assert FRONTEND.conversion_function(case, error) == place


@installed
def test_its_canary_is_refused(make: Any, run: Any) -> None:
    [canary] = FRONTEND.canaries()  # type: ignore[attr-defined]
    case, _ = make(canary.program.program.operator, X)
    failed, error = run(litert, case)
    assert FRONTEND.unsupported(case, failed, error) and canary.verdict == UNSUPPORTED


@installed
def test_what_pytorch_cannot_export_is_no_fault_of_its(make: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case, _ = make("torch.sub", X, X)

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(torch.export._trace, "_export", fails)
    failed, error = run(litert, case)
    assert (failed, FRONTEND.unsupported(case, failed, error)) == ("load", "PyTorch cannot export it: no")


@installed
def test_scripts_stand_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    wrong = (Tensor.of(3 * X.numpy() + 1),)
    for expected, code, words in ((None, 0, "gone: the outputs are as expected"), (wrong, 1, "the failure is there")):
        folder = tmp_path / str(code)
        folder.mkdir()
        instance = torch_calls.instance("torch.sub", (X, X.flip(1)), {})
        seen = Captured(instance, Provenance("by-hand", "test.py", "here"), expected)
        manifest = library.wrap(seen, "t" * 20, folder)
        shown = reproducer.Exhibit(
            "F1", "litert-torch", "litert", {}, "live", INCONSISTENT, "infer", "value", "differs", variant="live"
        )
        reproducer.write(shown, manifest, folder, instance, folder / "F1.py")
        said = io.StringIO()
        with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(said):
            runpy.run_path(str(folder / "F1.py"), run_name="__main__")
        torch.set_grad_enabled(True)
        text = (folder / "F1.py").read_text()
        assert (end.value.code, words in said.getvalue()) == (code, True), said.getvalue()
        assert "opera" not in text.replace("found by opera", "") and "litert_torch.convert" in text


def concluded(kind: str, text: str) -> Any:
    """Return what a message of a load means, where nothing is installed."""
    kinds = (kind, "builtins:Exception", "builtins:BaseException")
    case = remembered("torch", "torch.add", "live", "live")
    return judge.conclude(FRONTEND, case, "load", Seen((Raised(kinds, text),), culprit.COMPILER))


ILLEGAL = "failed to legalize operation '{}' that was explicitly marked illegal: %1 = \"{}\"({}) : (tensor<2x3x{}>)"


@pytest.mark.parametrize(
    ("kind", "text", "verdict"),
    [
        ("builtins:RuntimeError", "Lowering not found: aten.i0.default", UNSUPPORTED),
        ("builtins:KeyError", "torch.complex64", UNSUPPORTED),
        ("builtins:KeyError", "input_1", CRASH),
        ("builtins:ValueError", ILLEGAL.format("tfl.pow", "tfl.pow", "%arg0", "f64"), UNSUPPORTED),
        ("builtins:ValueError", ILLEGAL.format("tfl.pow", "tfl.pow", "%arg0", "f32"), CRASH),
        ("builtins:ValueError", ILLEGAL.format("tfl.pow", "tfl.pow", "%arg0", "i64"), UNSUPPORTED),
        ("builtins:ValueError", ILLEGAL.format("tfl.pow", "tfl.pow", "%arg0", "i64>, tensor<3xf32"), CRASH),
        ("builtins:ValueError", ILLEGAL.format("tfl.log", "tfl.log", "%18", "f16"), UNSUPPORTED),
        ("builtins:ValueError", ILLEGAL.format("tfl.sign", "tfl.sign", "%18", "i64"), CRASH),
        ("builtins:ValueError", ILLEGAL.format("mhlo.convolution", "mhlo.convolution", "%arg0", "f32"), UNSUPPORTED),
        ("builtins:ValueError", "expects operand and result to have compatible element type", CRASH),
    ],
)
def test_a_refusal_names_what_there_is_not_and_a_failed_check_is_a_crash(kind: str, text: str, verdict: str) -> None:
    assert concluded(kind, text).verdict == verdict


def test_the_operator_that_has_no_lowering_is_what_failed() -> None:
    error = RuntimeError("Lowering not found: aten.i0.default\n\nWhile executing %i0")
    assert FRONTEND.conversion_function(remembered("torch", "torch.i0", "live", "live"), error) == "aten.i0.default"


@pytest.mark.parametrize(("compiler", "library", "bare"), [("litert", "torch", True), ("tract", "onnx", False)])
def test_its_environment_is_made_of_what_it_loads_alone(
    compiler: str, library: str, bare: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What litert-torch asks for beside that is a PyTorch of gigabytes; the library is the one that runs opera."""
    asked: list[list[str]] = []

    def tells(where: Path, wanted: list[str], *_: Any, **__: Any) -> bool:
        asked.append(wanted)
        raise releases.Unavailable("enough")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(releases, "_installed", tells)
    with pytest.raises(releases.Unavailable):
        releases.create(compiler)
    assert ("--no-deps" in asked[0], releases.borrows(compiler, library)) == (bare, bare)
    assert not [x for x in asked[0] if x.partition("=")[0] == "torch"]
