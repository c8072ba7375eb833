"""ExecuTorch: both variants, how values travel, what it refuses, where it failed, one thread, and its scripts.

They skip where ExecuTorch is not installed, as in `make test`: `opera[executorch]` installs it.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.runtime", reason="ExecuTorch is not installed: pip install 'opera[executorch]'")

from opera.compilers import executorch  # noqa: E402
from opera.compilers.recipes.executorch_told import told  # noqa: E402
from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.oracle.comparison import compare  # noqa: E402
from opera.programs.case import Case  # noqa: E402
from opera.programs.migrated import read_values  # noqa: E402
from opera.programs.program import Captured, Provenance  # noqa: E402
from opera.programs.values import Tensor  # noqa: E402
from opera.programs.verdicts import INCONSISTENT  # noqa: E402
from opera.triage.reproducers import brief, reproducer  # noqa: E402

FRONTEND = executorch.FRONTENDS["torch"]
VARIANTS = [x.name for x in FRONTEND.VARIANTS]
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
each = pytest.mark.parametrize("variant", VARIANTS)


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """Wrap a call and export it; return the case and the expected outputs."""

    def once(variant: str, operator: str, *args: Any) -> tuple[Case, list[Any]]:
        instance = torch_calls.instance(operator, args, {})
        manifest = library.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
        made = manifest.artefacts.get("pt2") or library.export(manifest, tmp_path, "pt2")
        feeds = dict(zip(manifest.inputs, read_values(tmp_path, "inputs"), strict=True))
        case = Case("torch", operator, tmp_path / made.file, feeds, manifest.outputs, variant, "pt2")
        return case, read_values(tmp_path, "expected")

    return once


@each
def test_a_right_answer_passes_and_a_wrong_expectation_is_caught(variant: str, make: Any, run: Any) -> None:
    case, expected = make(variant, "torch.sub", X, X.flip(1))
    stage, outputs = run(executorch, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""
    assert compare([case.feeds["input"]], outputs, case.outputs, None, None).symptom == "value"
    assert FRONTEND.conversion_function(case, None) == "torch.sub"


def test_the_variants_are_two_ways_to_run_it(make: Any, run: Any, tmp_path: Path) -> None:
    """XNNPACK is given what it takes; with it left out, its name is not in the file."""
    for variant in VARIANTS:
        case, _ = make(variant, "torch.sub", X, X.flip(1))
        FRONTEND.export(case, tmp_path / variant)  # type: ignore[attr-defined]
        assert (b"XnnpackBackend" in (tmp_path / variant).read_bytes()) == (variant == "xnnpack")


@pytest.mark.parametrize("kind", [torch.bool, torch.int8, torch.int64, torch.float64, torch.float16, torch.bfloat16])
def test_tensors_of_every_kind_travel_unchanged(kind: Any, make: Any, run: Any) -> None:
    case, expected = make("portable", "torch.unsqueeze", X.to(kind), 0)
    assert run(executorch, case) == ("done", expected)


def test_scalars_and_several_outputs_come_as_they_are(make: Any, run: Any) -> None:
    case, expected = make("xnnpack", "torch.unsqueeze", torch.tensor(2.5), 0)
    assert run(executorch, case) == ("done", expected)
    case, expected = make("xnnpack", "torch.max", X.flip(1), 1)
    assert run(executorch, case) == ("done", expected)


def test_inputs_lie_in_memory_as_they_did_when_the_program_was_exported(make: Any, run: Any) -> None:
    """The file states the order of dimensions, and no gaps: the runtime computes something else of other ones."""
    image = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    for inputs in ((image,), (torch.arange(12.0)[::2],), (torch.arange(24.0).reshape(4, 6)[::2, ::3],)):
        case, expected = make("portable", "torch.neg", *inputs)
        assert run(executorch, case) == ("done", expected)


def test_an_order_that_it_does_not_take_is_refused_in_its_words(make: Any, run: Any) -> None:
    """Of contiguous data it would compute something, which is not what its file states."""
    case, _ = make("portable", "torch.matmul", X, X.T)
    failed, error = run(executorch, case)
    reason = "inputs that are neither contiguous nor channels last"
    assert (failed, FRONTEND.unsupported(case, failed, error)) == ("infer", reason)


@each
def test_what_the_exporter_made_can_be_run_apart(variant: str, make: Any, run: Any) -> None:
    """The way runs no file: it is right where the runtime has no kernel, and of several outputs it returns all."""
    for operator in ("torch.sub", "torch.sort"):
        inputs = (X, X.flip(1)) if operator == "torch.sub" else (X.flip(1),)
        case, expected = make(variant, operator, *inputs)
        assert run(executorch, msgspec.structs.replace(case, way="edge")) == ("done", expected)


def test_patterns_are_made_before_workers_are_forked() -> None:
    """What forks has no threads beside PyTorch's own, and its random numbers are as if nothing had been made."""
    program = """
import os, sys, torch
torch.manual_seed(3)
state, threads = torch.random.get_rng_state(), len(os.listdir("/proc/self/task"))
import opera.compilers.shared.xnnpack_patterns
from executorch.backends.xnnpack.partition.graphs import bilinear_2d, sdpa
made = [f.cache_info().currsize for f in (bilinear_2d._get_bilinear_2d_graphs, sdpa.get_graphs)]
print(made, len(os.listdir("/proc/self/task")) - threads, torch.equal(state, torch.random.get_rng_state()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[1, 1] 0 True"), done.stdout + done.stderr


REFUSED = [
    ("torch.linalg.inv", torch.eye(3), "load", "aten.linalg_inv_ex.default is not in the Core ATen opset"),
    ("torch.sort", X, "compile", "no kernel for aten::sort.values"),
    ("torch.geqrf", X, "load", "aten.geqrf.default has no implementation that computes only shapes"),
    ("torch.exp", X.to(torch.complex64), "load", "aten.exp.default of complex64 is not in the Edge dialect"),
]


@pytest.mark.parametrize(("operator", "value", "stage", "reason"), REFUSED, ids=[x[0] for x in REFUSED])
def test_its_own_words_make_it_unsupported(
    operator: str, value: Any, stage: str, reason: str, make: Any, run: Any
) -> None:
    case, _ = make("xnnpack", operator, value)
    failed, error = run(executorch, case)
    assert (failed, FRONTEND.unsupported(case, failed, error)) == (stage, reason), repr(error)[:500]


def test_types_that_differ_are_no_refusal() -> None:
    """Where an operator's types differ the exporter made it so: its table lacks nothing."""
    text = (
        "These operators are taking Tensor inputs with mismatched dtypes:\n\nOperator: <EdgeOpOverload: aten.add.Tensor>: "
        "schema = … with args: {'self': torch.float32, 'other': torch.int64, '__ret_0': torch.float32}\n"
    )
    error = type("SpecViolationError", (Exception,), {})(text)
    assert FRONTEND.unsupported(Case("torch", "torch.add", Path("x"), {}, ()), "load", error) is None


def test_a_file_that_is_none_is_a_crash(tmp_path: Path) -> None:
    from opera.compilers.recipes import executorch as recipe

    path = tmp_path / "model.pte"
    path.write_bytes(b"\0" * 200)
    with pytest.raises(RuntimeError, match=r"0x:?23") as caught:
        recipe.load(str(path))
    assert FRONTEND.unsupported(Case("torch", "x", path, {}, ()), "compile", caught.value) is None


def test_an_operator_without_kernel_is_what_failed(tmp_path: Path) -> None:
    case = Case("torch", "torch.i0", tmp_path / "x", {}, ())
    error = RuntimeError(
        "Failed to load method forward, error: 0x14\n[method.cpp:7] Missing operator: [0] aten::i0.out"
    )
    assert FRONTEND.conversion_function(case, error) == "aten::i0.out"
    assert FRONTEND.unsupported(case, "compile", error) == "no kernel for aten::i0.out"


def test_standard_error_is_given_back(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        os.write(2, b"why\n")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match=r"no\nwhy"):
        told(fails)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_it_runs_on_one_thread(make: Any, run: Any) -> None:
    from executorch.extension.pybindings import portable_lib

    assert run(executorch, make("xnnpack", "torch.matmul", X, X.T.contiguous())[0])[0] == "done"
    assert portable_lib._threadpool_get_thread_count() == 1


@each
def test_scripts_stand_alone_and_show_the_variant(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    wrong = (Tensor.of(3 * X.numpy() + 1),)
    for expected, code, words in ((None, 0, "gone: the outputs are as expected"), (wrong, 1, "the failure is there")):
        folder = tmp_path / str(code)
        folder.mkdir()
        instance = torch_calls.instance("torch.sub", (X, X.flip(1)), {})
        seen = Captured(instance, Provenance("by-hand", "test.py", "here"), expected)
        manifest = library.wrap(seen, "t" * 20, folder)
        shown = reproducer.Exhibit(
            "F1",
            "executorch-torch",
            "executorch",
            {},
            "pt2",
            INCONSISTENT,
            "infer",
            "value",
            "differs",
            variant=variant,
        )
        reproducer.write(shown, manifest, folder, instance, folder / "F1.py")
        said = io.StringIO()
        with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(said):
            runpy.run_path(str(folder / "F1.py"), run_name="__main__")
        torch.set_grad_enabled(True)
        text = (folder / "F1.py").read_text()
        assert (end.value.code, words in said.getvalue()) == (code, True), said.getvalue()
        assert "opera" not in text.replace("found by opera", "") and f"lower_{variant}" in text
        short = brief.brief(msgspec.structs.replace(shown), manifest, folder, instance)
        assert short is not None and ("XnnpackPartitioner()" in short.run) == (variant == "xnnpack")
        scope: dict[str, Any] = {}
        exec(f"{short.imports}\n{short.define}\n{short.arguments}\n{short.run}", scope)
        assert scope["outputs"][0].tolist() == (X - X.flip(1)).tolist()
