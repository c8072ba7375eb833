"""TorchInductor, the compiler behind torch.compile, on the CPU: it writes C++ and needs a compiler for it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opera import precision
from opera.compilers import APART, LESS, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.shared import messages, torch_live, torch_operators
from opera.programs.values import Value

NAME = "inductor"
TITLE = "PyTorch's Inductor"
PACKAGE = "torch, and a C++ compiler such as g++"
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload", "torch._dynamo", "torch._inductor.compile_fx")

UNSUPPORTED = messages.table("torch", "inductor")


def version() -> str:
    """Return the version of torch. Raises ImportError where there is no C++ compiler."""
    import torch

    _compiler()
    return str(torch.__version__)


def options() -> dict[str, str]:
    return {"fullgraph": "True", "dynamic": "False", "cxx": Path(_compiler()).name, **precision.TORCH}


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
        return torch_live.ran(live, model)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return torch_live.unsupported(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator: Inductor lowers what it decomposes to, and fuses that."""
        return case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe(
            (f"{RECIPES}.inductor:load",), (f"{RECIPES}.inductor:compile_graphs",), (f"{RECIPES}.torch:call",)
        )


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
