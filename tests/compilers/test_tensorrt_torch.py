"""Torch-TensorRT's frontend against a stand-in that takes what the releases' sources take, for there is no GPU here."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from opera.compilers import Case, recipes  # noqa: E402
from opera.compilers.shared import torch_values  # noqa: E402
from opera.compilers.shared.packing import CannotCarry  # noqa: E402
from opera.compilers.tensorrt import compiler as tensorrt  # noqa: E402
from opera.compilers.tensorrt.torch import PRELOAD  # noqa: E402
from opera.programs.values import Tensor  # noqa: E402
from opera.run import worker  # noqa: E402

HERE = Path(__file__).parent
NAMES = json.loads((HERE / "tensorrt_names.json").read_text())
RELEASES = [name.removeprefix("torch_tensorrt ") for name in NAMES if name.startswith("torch_tensorrt")]
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture(params=RELEASES)
def recipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Have the stand-in of a release, and the recipe on the CPU."""
    monkeypatch.setenv("STAND_IN_TORCH_TENSORRT", request.param)
    monkeypatch.syspath_prepend(str(HERE / "stand_in"))
    made = importlib.import_module("opera.compilers.recipes.tensorrt_torch")
    monkeypatch.setattr(made, "DEVICE", "cpu")
    yield made
    for name in [x for x in sys.modules if x.startswith(("torch_tensorrt", "opera.compilers.recipes.tensorrt_torch"))]:
        del sys.modules[name]
    vars(recipes).pop("tensorrt_torch", None)


class Calls(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class MANIFEST:
    library, offers, needs, operators = "torch", (), {}, {}


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Export a function of tensors; return its case."""

    def export(operator: str, function: Any, *args: Any) -> Case:
        path = tmp_path / "model.pt2"
        torch.export.save(torch.export.export(Calls(function), args, strict=False), path)
        feeds = {f"x{place}": torch_values.value(x) for place, x in enumerate(args)}
        return Case("torch", operator, path, feeds, ("y",), "exported-program", "pt2")

    return export


def seen(case: Case) -> tuple[Any, ...]:
    frontend, state, stage = tensorrt.FRONTENDS["torch"], None, "load"
    try:
        for stage in ("load", "compile", "infer"):
            state = frontend.load(case) if stage == "load" else getattr(frontend, stage)(state, case)
    except Exception as error:
        found = worker._failure(tensorrt, frontend, case, worker._Stopped(stage, error), MANIFEST, {})
        return stage, found.verdict, found.symptom, found.message, found.conversion_function
    return ("done", [x.array().tolist() for x in state])


def test_a_program_becomes_one_engine(recipe: Any, program: Any) -> None:
    assert seen(program("torch.sub", torch.sub, X, X.flip(1))) == ("done", [[[-2, 0, 2], [-2, 0, 2]]])
    values, indices = seen(program("torch.sort", lambda x: tuple(torch.sort(x)), X.flip(1)))[1]
    assert values == X.tolist() and indices == [[2, 1, 0], [2, 1, 0]]


def test_what_is_asked_for_is_known_to_every_release(recipe: Any, program: Any) -> None:
    from torch_tensorrt import dynamo

    seen(program("torch.sub", torch.sub, X, X))
    held = NAMES[f"torch_tensorrt {dynamo.RELEASE}"]
    given = dynamo.GIVEN[-1]
    assert given["min_block_size"] == 1 and given["require_full_compilation"] and given["disable_tf32"]
    assert Path(given["timing_cache_path"]).name == "timing_cache.bin" and not Path(given["timing_cache_path"]).exists()
    without = {"use_explicit_typing"} if dynamo.RELEASE == "2.13.0" else set()
    assert given.keys() - set(held["compile"]) == without and held["takes more"]
    assert "get_unvalidated" in held["registry"] and "TorchTensorRTModule" in held["modules"]


def test_what_is_left_to_pytorch_is_no_pass(recipe: Any, program: Any) -> None:
    nothing = seen(program("torch.i0", torch.special.i0, X))
    assert nothing[:4] == ("compile", "unsupported", "NothingConverted", "no operator has a converter")
    half = seen(program("torch.i0", lambda x: torch.special.i0(x) - x, X))
    assert half[:4] == ("compile", "unsupported", "AssertionError", "the model is not fully supported")


def test_the_converter_is_the_one_that_raised_or_the_registrys(recipe: Any, program: Any) -> None:
    raised = seen(program("torch.cumsum", lambda x: torch.cumsum(x, 0) - x, X))
    assert raised[:3] == ("compile", "crash", "IndexError") and raised[4] == "aten_ops_converters:aten_ops_cumsum"
    refused = seen(program("torch.abs", torch.abs, X))
    assert refused[1:4] == ("unsupported", "RuntimeError", "UnaryOperation.ABS is not supported")
    frontend = tensorrt.FRONTENDS["torch"]
    assert (
        frontend.conversion_function(program("torch.sub", torch.sub, X, X), None) == "aten_ops_converters:aten_ops_sub"
    )
    several = program("torch.foo", lambda x: torch.sort(x - x)[0], X)
    assert frontend.conversion_function(several, None) == "torch.foo"


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64", "complex64", "float8_e4m3fn"]
)
def test_tensors_of_every_dtype_travel(dtype: str) -> None:
    made = X.to(getattr(torch, dtype))
    for x in (made, made[:0], made[0, 0]):
        held = torch_values.value(x)
        fed = torch_values.tensor(held)
        assert fed.tolist() == x.tolist() and torch_values.value(fed) == held


def test_what_pytorch_has_no_dtype_of_is_operas_limit() -> None:
    with pytest.raises(CannotCarry, match="cannot feed int2"):
        torch_values.tensor(Tensor("int2", (1,), b"\1"))
    assert torch_values.value(torch.tensor([1 + 2j]).conj()) == Tensor.of(np.complex64([1 - 2j]))


def test_torch_tensorrt_is_not_imported_before_workers_are_forked() -> None:
    """Its import asks CUDA for the GPU, which a process that is forked afterwards cannot use."""
    assert not {"torch_tensorrt"} & {x.partition(".")[0] for x in (*PRELOAD, *tensorrt.PRELOAD)}
    code = "import opera.compilers.tensorrt.installed, sys; print('torch_tensorrt' in sys.modules)"
    for path, told in ((HERE / "stand_in", "False"), (Path("none"), "No module named 'torch_tensorrt'")):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *sys.path])}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert told in done.stdout + done.stderr
