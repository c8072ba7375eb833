"""What a user may choose of a compiler: declared, checked, told to its workers, and part of every verdict's environment."""

from __future__ import annotations

import ctypes
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import opera

from opera import compilers
from opera.compilers import Involved, inductor, onnxruntime, settings
from opera.compilers.settings import Setting
from opera.compilers.shared import gpu
from opera.errors import UsageError
from opera.oracle import comparison
from opera.programs.migrated import Manifest
from opera.programs.values import Tensor
from opera.run import groups, rules
from opera.store.folders import Folders

CUDA = "CUDAExecutionProvider"


def test_options_are_parsed_and_what_nobody_declares_is_told() -> None:
    assert settings.parsed([f"provider={CUDA}"], ["onnxruntime", "tvm"]) == {"provider": CUDA}
    assert settings.parsed(["device=cuda"], ["inductor"]) == {"device": "cuda"}
    for texts, names, told in [
        (["provider"], ["onnxruntime"], "write --option NAME=VALUE"),
        (["providr=x"], ["onnxruntime"], "did you mean provider"),
        (["provider=CUDA"], ["onnxruntime"], "'CUDA' is no provider"),
        ([f"provider={CUDA}"], ["tvm"], "none of the compilers has an option 'provider'"),
        (["device=cpu", "device=cuda"], ["inductor"], "given twice"),
    ]:
        with pytest.raises(UsageError) as raised:
            settings.parsed(texts, names)
        assert told in str(raised.value)


def test_workers_are_told_what_their_compiler_declares_and_nothing_for_defaults(tmp_path: Path) -> None:
    files = Folders.of(tmp_path)
    plain = groups.compiler_group("onnxruntime", "onnx", files)
    chosen = groups.compiler_group("onnxruntime", "onnx", files, chosen={"provider": CUDA, "device": "cuda"})
    assert chosen.env == plain.env | {"OPERA_OPTIONS": f'{{"provider":"{CUDA}"}}'}
    assert groups.compiler_group("onnxruntime", "onnx", files, chosen={"provider": onnxruntime.CPU}) == plain
    assert groups.compiler_group("tvm", "onnx", files, chosen={"provider": CUDA}).env == plain.env


def test_a_choice_stands_in_the_options_and_defaults_leave_them_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    assert onnxruntime.options()["provider"] == onnxruntime.CPU and "device" not in onnxruntime.options()
    assert "device" not in inductor.options()
    monkeypatch.setenv(settings.VARIABLE, f'{{"provider":"{CUDA}"}}')
    monkeypatch.setattr(onnxruntime, "_device", lambda: {"device": "cuda", "gpu": "G"})
    options = onnxruntime.options()
    assert (options["provider"], options["device"], options["tf32"]) == (CUDA, "cuda", "False")
    assert settings.of("onnxruntime", options) == {"provider": CUDA}
    assert settings.chosen({"other": Setting("a", "", ("a",))}) == {"other": "a"}


def test_a_provider_that_the_build_has_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.VARIABLE, f'{{"provider":"{CUDA}"}}')
    with pytest.raises(ImportError, match=f"this onnxruntime has no {CUDA}, only .*CPUExecutionProvider"):
        onnxruntime.version()
    with pytest.raises(ImportError, match=f"{CUDA} cannot be used: "):
        onnxruntime._tried(CUDA)


def test_a_provider_runs_all_or_nothing() -> None:
    """Azure's is in the build for the CPU, and has no kernel of its own."""
    from opera.compilers.recipes import onnxruntime_gpu

    with pytest.raises(Exception, match="fallback to CPU EP has been explicitly disabled") as raised:
        onnxruntime_gpu.session_by("AzureExecutionProvider", onnxruntime.TINY, None)
    case: Any = None
    assert onnxruntime.Onnx().unsupported(case, "load", raised.value) == "the provider does not run all of it"


def test_scripts_do_as_the_adapter_does() -> None:
    frontend = onnxruntime.FRONTENDS["onnx"]
    assert frontend.recipe("onnx", Involved(chosen={"provider": CUDA})).load == (  # type: ignore[attr-defined]
        "opera.compilers.recipes.onnxruntime_gpu:load_cuda",
    )
    torch = inductor.FRONTENDS["torch"]
    steps = torch.recipe("live", Involved(chosen={"device": "cuda"}))  # type: ignore[attr-defined]
    assert steps.load[0].endswith("inductor_cuda:load_there") and steps.infer[0].endswith("inductor_cuda:call_there")


def test_what_the_commands_say_of_options(tmp_path: Path) -> None:
    done = opera("run", "--compiler", "onnxruntime", "--option", "provider=GPU", cwd=tmp_path)
    assert done.returncode == 2 and "'GPU' is no provider" in done.stderr


@pytest.mark.full
def test_what_doctor_says_of_options(tmp_path: Path) -> None:
    done = opera("doctor", "--compiler", "onnxruntime", "--option", f"provider={CUDA}", cwd=tmp_path)
    assert done.returncode == 2 and f"this onnxruntime has no {CUDA}" in done.stdout
    done = opera("doctor", "--compiler", "onnxruntime", "--device", "cuda", cwd=tmp_path)
    assert done.returncode == 2 and "has an option 'device'" in done.stderr


# ---------------------------------------------------------------------- devices


def test_tolerances_know_the_device() -> None:
    frontend = inductor.FRONTENDS["torch"]
    expected: list[Any] = [Tensor.of(np.float32([1]))]
    manifest = Manifest("t", "i", "torch", "torch.exp", {}, (), ("y",), {})
    assert compilers.computes_in(frontend) == compilers.computes_in(frontend, "CPU") == {}
    assert comparison.granted({}, expected, manifest) == (None, None, False)
    there = compilers.computes_in(frontend, "cuda")
    assert comparison.granted(there, expected, manifest)[:2] == comparison.ON_DEVICE["float32 on cuda"]
    for exact in (Tensor.of(np.zeros(1)), Tensor.of(np.int64([1])), Tensor.of(np.zeros(1, "uint8"), "float8_e4m3fn")):
        assert comparison.granted(there, [exact], manifest)[:2] == (None, None)
    for name, (rtol, atol) in comparison.ON_DEVICE.items():
        least = comparison.TOLERANCES[name.partition(" ")[0]]
        assert rtol >= least[0] and atol >= least[1]


def test_rules_know_the_device() -> None:
    assert rules.of("inductor", "torch", "cpu") == rules.of("inductor", "torch")
    assert rules.of("inductor", "torch", "cuda").tolerances != rules.of("inductor", "torch").tolerances


def test_the_gpu_is_told_by_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(to: Any, value: int) -> int:
        to._obj.value = value
        return 0

    def named(buffer: Any, size: int, number: Any) -> int:
        buffer.value = b"A GPU"
        return 0

    driver = types.SimpleNamespace(
        cuInit=lambda flags: 0,
        cuDeviceGet=lambda to, place: write(to, 0),
        cuDeviceGetName=named,
        cuDeviceGetAttribute=lambda to, attribute, number: write(to, {75: 9, 76: 0}[attribute]),
        cuDriverGetVersion=lambda to: write(to, 13000),
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    assert gpu.described() == {"gpu": "A GPU", "compute_capability": "9.0", "cuda_driver": "13000"}
    driver.cuInit = lambda flags: 100
    with pytest.raises(ImportError, match="cuInit fails with 100"):
        gpu.described()


@pytest.mark.full
def test_inductor_moves_model_and_inputs_there_and_outputs_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from functools import partial

    from opera.compilers.recipes import inductor_cuda
    from opera.libraries.torch import calls, library
    from opera.programs.program import Captured, Provenance

    monkeypatch.setattr(inductor_cuda, "DEVICE", "cpu")
    monkeypatch.setenv(settings.VARIABLE, '{"device":"cuda"}')
    with pytest.raises(ImportError, match="asked for an NVIDIA GPU, and"):
        inductor.version()
    x = torch.tensor([1.0, 2.0])
    moved = []
    monkeypatch.setattr(inductor_cuda, "there", lambda args: moved.append(len(args)) or args)
    instance = calls.instance("torch.sub", (x, x.flip(0)), {})
    manifest = library.wrap(Captured(instance, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
    case = compilers.Case(
        "torch", "torch.sub", tmp_path, {}, manifest.outputs, "live", "live", partial(library.live, manifest, tmp_path)
    )
    inductor.prepare()
    frontend = inductor.FRONTENDS["torch"]
    (found,) = frontend.infer(frontend.compile(frontend.load(case), case), case)
    assert isinstance(found, Tensor) and found.array().tolist() == [-1, 1] and moved == [2, 2]
    assert not torch.backends.cudnn.allow_tf32
