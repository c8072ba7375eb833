"""TorchInductor, the compiler behind torch.compile, on the CPU: it writes C++ and needs a compiler for it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera import precision
from opera.compilers import Case, Variant
from opera.compilers.shared import torch_live, torch_operators
from opera.compilers.shared.messages import Rule
from opera.programs.values import Value

NAME = "inductor"
PACKAGE = "torch, and a C++ compiler such as g++"
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload", "torch._dynamo", "torch._inductor.compile_fx")
PACKAGES = ("torch",)
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {"torch": (Variant("live", "live"),)}

UNPATCHED: Mapping[str, Mapping[str, str]] = {"torch": torch_operators.UNPATCHED}
"""Its table of decompositions is made, once a process, of what torch.export lists."""

UNSUPPORTED = (
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1"),
    Rule(r"([^\n:]{1,80} not implemented for [^\n]{1,40})", r"\1"),
)


class Graph(msgspec.Struct):
    """What Dynamo captured, and the function that takes the module's inputs.

    Attributes:
        live: The live model.
        call: The module under torch.compile: it runs `kernel` once there is one, before that the graph itself.
        graphs: The captured (GraphModule, example inputs).
        kernel: What Inductor made of it.
    """

    live: Any
    call: Callable[..., Any] | None = None
    graphs: list[tuple[Any, list[Any]]] = []
    kernel: Callable[..., Any] | None = None


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


def load(case: Case) -> Graph:
    """Let Dynamo capture the module as one graph of static shapes."""
    import torch

    torch._dynamo.reset()
    graph = Graph(torch_live.rebuilt(case))

    def backend(module: Any, inputs: list[Any]) -> Callable[..., Any]:
        graph.graphs.append((module, inputs))
        return lambda *args: (graph.kernel or module)(*args)

    graph.call = torch.compile(graph.live.module, backend=backend, fullgraph=True, dynamic=False)
    with torch.no_grad():
        graph.call(*graph.live.args)
    return graph


def compile(loaded: Graph, case: Case) -> Graph:
    """Lower the graph to C++ and compile it. A module without a single operation has nothing to be compiled."""
    import torch
    from torch._inductor.compile_fx import compile_fx

    for module, inputs in loaded.graphs:
        with torch.no_grad():
            loaded.kernel = compile_fx(module, inputs)
    return loaded


def infer(compiled: Graph, case: Case) -> list[Value]:
    assert compiled.call is not None
    return torch_live.ran(compiled.live, compiled.call)


def unsupported(stage: str, error: BaseException) -> str | None:
    return torch_live.unsupported(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator: Inductor lowers what it decomposes to, and fuses that."""
    return case.operator


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
