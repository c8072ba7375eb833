"""What it converts is told by its registry, as in Torch-TensorRT; what it does not is refused in the same ways."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from torch_tensorrt.dynamo.conversion import DYNAMO_CONVERTERS

RELEASE = os.environ.get("STAND_IN_TORCH_TENSORRT", "2.13.0")
NAMES = json.loads((Path(__file__).parents[3] / "tensorrt_names.json").read_text())[f"torch_tensorrt {RELEASE}"]
GIVEN: list[dict[str, Any]] = []
"""What compile was asked: for tests to look at."""


class TorchTensorRTModule(torch.nn.Module):
    """An engine: here what it was made of."""

    def __init__(self, program: Any) -> None:
        super().__init__()
        self.held = [program]

    def forward(self, *args: Any) -> Any:
        return self.held[0](*args)


class Compiled(torch.nn.Module):
    def __init__(self, program: Any) -> None:
        super().__init__()
        self._run_on_acc_0 = TorchTensorRTModule(program)

    def forward(self, *args: Any) -> Any:
        return self._run_on_acc_0(*args)


def compile(exported_program: Any, inputs: Any = None, **options: Any) -> Any:
    unknown = options.keys() - set(NAMES["compile"])
    if unknown and not NAMES["takes more"]:
        raise TypeError(f"compile() got unexpected keyword arguments {unknown}")
    GIVEN.append(options)
    program = exported_program.module()
    nodes = [node for node in exported_program.graph.nodes if node.op == "call_function"]
    known = [DYNAMO_CONVERTERS.get_unvalidated(node.target) for node in nodes]
    if not any(known):
        return program
    if not all(known) and options["require_full_compilation"]:
        raise AssertionError("require_full_compilation=True was specified, but model is not fully supported")
    for node, entry in zip(nodes, known, strict=True):
        entry[0](None, node.target, node.args, node.kwargs, node.name)
    return Compiled(program)
