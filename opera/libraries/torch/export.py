"""PyTorch's own exporters: torch.export, torch.jit.trace and torch.onnx.export, asked for one model at a time.

torch.onnx.export builds a registry of all ONNX functions and a table of all decompositions anew on every call, about 0.8
seconds; they are the same each time, and are kept here for the life of a worker, unless that is to leave PyTorch as it is.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opera.libraries.torch.eager import quiet

if TYPE_CHECKING:
    from opera.libraries.torch.wrap import Live

FILES = {"pt2": "model.pt2", "torchscript": "model.pt", "onnx": "model.onnx"}
"""Artefact → its file."""


def program(live: Live) -> Any:
    """Return the ExportedProgram of a model."""
    import torch

    from opera.libraries.torch import preload as torch_preload  # noqa: F401 - makes it quick, where no worker has it already

    logging.getLogger("torch.fx.experimental.symbolic_shapes").setLevel(logging.ERROR)
    with quiet():
        return torch.export.export(live.module, live.args, strict=False)


def torchscript(live: Live) -> Any:
    """Return the ScriptModule that tracing a model gives."""
    import torch

    with quiet():
        return torch.jit.trace(live.module, live.args, check_trace=False)


def onnx(live: Live, path: Path) -> None:
    """Write the ONNX model of a model, by way of torch.export."""
    import torch

    made = program(live)
    quicken_onnx()
    with quiet():
        torch.onnx.export(
            made, (), str(path), dynamo=True, verbose=False, external_data=False,
            input_names=list(live.inputs), output_names=list(live.outputs),
        )  # fmt: skip


def write(live: Live, artefact: str, directory: Path) -> str:
    """Write the file of an artefact; return its name."""
    import torch

    path = directory / FILES[artefact]
    match artefact:
        case "pt2":
            made = program(live)
            with quiet():
                torch.export.save(made, path)
        case "torchscript":
            torchscript(live).save(str(path))
        case "onnx":
            onnx(live, path)
    return path.name


@cache
def quicken_onnx() -> None:
    """Keep the registry and the decomposition table of torch.onnx.export, and silence what it logs; see torch_preload."""
    from opera.libraries.torch import preload as torch_preload

    if torch_preload.unpatched():
        return
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    registry: Any = getattr(_module("torch.onnx._internal.exporter._registration"), "ONNXRegistry", None)
    if hasattr(registry, "from_torchlib"):
        registry.from_torchlib = staticmethod(cache(registry.from_torchlib))
    table = _module("torch.onnx._internal.exporter._decomp")
    build: Any = getattr(table, "create_onnx_friendly_decomposition_table", None)
    if build is not None:
        kept = cache(lambda operators: build(set(operators)))
        table.create_onnx_friendly_decomposition_table = lambda operators: dict(kept(frozenset(operators)))


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
