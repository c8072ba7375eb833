"""TorchInductor, the compiler behind torch.compile. On the CPU it writes C++ and needs a compiler for it, on a GPU Triton."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from opera import precision
from opera.compilers import APART, LESS, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.settings import Setting, chosen
from opera.compilers.shared import messages, torch_live, torch_operators
from opera.programs.values import Value

NAME = "inductor"
TITLE = "PyTorch's Inductor"
PACKAGE = "torch, and a C++ compiler such as g++"
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload", "torch._dynamo", "torch._inductor.compile_fx")

UNSUPPORTED = messages.table("torch", "inductor")

SETTINGS = {"device": Setting("cpu", "what it compiles for, and runs on", ("cpu", "cuda"))}


def version() -> str:
    """Return the version of torch. Raises ImportError where there is no C++ compiler, or no GPU that is asked for."""
    import torch

    _compiler()
    if _on_gpu() and not torch.cuda.is_available():
        without = torch.version.cuda is None
        why = (
            "this build of PyTorch has no CUDA"
            if without
            else "PyTorch sees none (nvidia-smi tells whether the driver does)"
        )
        raise ImportError(f"TorchInductor is asked for an NVIDIA GPU, and {why}")
    return str(torch.__version__)


def options() -> dict[str, str]:
    found = {"fullgraph": "True", "dynamic": "False", "cxx": Path(_compiler()).name, **precision.TORCH}
    return {**found, **_gpu()} if _on_gpu() else found


def _on_gpu() -> bool:
    return chosen(SETTINGS)["device"] == "cuda"


def _gpu() -> dict[str, str]:
    """Return the GPU, CUDA and Triton, and what recipes/inductor_cuda.py sets."""
    import torch

    capability = ".".join(map(str, torch.cuda.get_device_capability()))
    return {
        "device": "cuda", "gpu": torch.cuda.get_device_name(), "compute_capability": capability,
        "cuda": str(torch.version.cuda), "triton": metadata.version("triton"), "tf32": "False",
        "reduced_precision_reduction": "False",
    }  # fmt: skip


def prepare() -> None:
    """Compile in this process alone, with nothing kept from one test to the next but the headers."""
    from torch._inductor import config

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = _folder()
    torch_live.prepare()
    config.compile_threads = 1
    config.force_disable_caches = True


FUSION = {"max_fusion_size": 1, "epilogue_fusion": False, "cpp.simdlen": 1}
"""Inductor's settings for a loop an operator, element by element."""


class Torch:
    """Dynamo captures the model as one graph, which Inductor lowers to C++."""

    VARIANTS = (Variant("live", "live"),)
    PACKAGES = ("torch",)
    WAYS = (
        Way("plain", LESS, "fusion and vectorisation off (max_fusion_size=1, cpp.simdlen=1)"),
        Way("aot_eager", APART, "what AOTAutograd decomposes it to, on PyTorch's own kernels (aot_eager)"),
        Way("eager", APART, "the graph that Dynamo captured, on PyTorch's own kernels (eager)"),
    )
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """Its table of decompositions is made, once a process, of what torch.export lists."""

    def load(self, case: Case) -> tuple[Any, Any]:
        """Return what Dynamo captured, and the live model."""
        import torch

        from opera.compilers.recipes import inductor as recipe

        torch._dynamo.reset()
        live = torch_live.rebuilt(case)
        with torch.no_grad():
            if _on_gpu():
                from opera.compilers.recipes import inductor_cuda

                return inductor_cuda.load_there(live.module, live.args), live
            return recipe.load(live.module, live.args), live

    def compile(self, loaded: tuple[Any, Any], case: Case) -> tuple[Any, Any]:
        """Lower the graph to C++ and compile it. A module without a single operation has nothing to be compiled."""
        import torch

        from opera.compilers.recipes import inductor as recipe

        captured, live = loaded
        if case.way:
            return _otherwise(captured, case.way), live
        with torch.no_grad():
            return recipe.compile_graphs(captured), live

    def infer(self, compiled: tuple[Any, Any], case: Case) -> list[Value]:
        model, live = compiled
        if _on_gpu():
            from opera.compilers.recipes import inductor_cuda

            return torch_live.ran(live, model, inductor_cuda.call_there)
        return torch_live.ran(live, model)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return torch_live.unsupported(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator: Inductor lowers what it decomposes to, and fuses that."""
        return case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        gpu = involved.chosen.get("device") == "cuda"
        load = f"{RECIPES}.inductor_cuda:load_there" if gpu else f"{RECIPES}.inductor:load"
        call = f"{RECIPES}.inductor_cuda:call_there" if gpu else f"{RECIPES}.torch:call"
        return Recipe((load,), (f"{RECIPES}.inductor:compile_graphs",), (call,))


def _otherwise(loaded: Any, way: str) -> Any:
    """Have the captured graphs run by one of WAYS."""
    import torch
    from torch._dynamo.backends.debugging import aot_eager
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx

    captured, graphs = loaded
    for entry in graphs:
        if way == "aot_eager":
            entry[0] = aot_eager(*entry)
        elif way == "plain":
            with config.patch(FUSION), torch.no_grad():
                entry[0] = compile_fx(*entry)
    return captured


FRONTENDS: Mapping[str, Frontend] = {"torch": Torch()}


def _folder() -> str:
    """Make a folder for what is compiled: in a worker below its own, which is temporary and goes with it."""
    here, temporary = Path.cwd(), Path(tempfile.gettempdir()).resolve()
    inside = temporary in (here, *here.parents)
    folder = tempfile.mkdtemp(prefix="opera-inductor-", dir=here if inside else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _compiler() -> str:
    found = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++"))), None)
    if found is None:
        raise ImportError("TorchInductor needs a C++ compiler on the CPU, and none was found (install g++, or set CXX)")
    return found
