"""A library of numbers: each test adds two tensors and scales the sum.

Its operators are what a faulty compiler does with them (`faults.kinds`): to the library they are all the same, but for those
whose tests it makes wrongly (`BROKEN`), and `unbuildable`, whose live model cannot be rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from faults.engine import evaluate

from opera.oracle.opinions import Opinion
from opera.programs import migrated
from opera.programs.migrated import LIVE, Artefact, Manifest
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor, Value

NAME = "faults.numbers"
PACKAGE = "faults"
PRELOAD = ("faults.engine",)
FACTOR = 2.0
BROKEN = ("fewer_inputs", "unknown_feed")


def instance(operator: str, number: int) -> Captured:
    arrays = [np.arange(1, 4, dtype=np.float32) + number, np.full(3, 20, dtype=np.float32)]
    inputs = tuple(Operand(name, Tensor.of(x)) for name, x in zip("ab", arrays, strict=True))
    made = Instance(NAME, operator, {"factor": FACTOR}, inputs, ("scaled", "soft"), {})
    return Captured(made, Provenance("suite", "file", f"{operator}-{number}"))


def version() -> str:
    return "1"


def exporter() -> dict[str, str]:
    return {"faults": "1"}


def wrap(captured: Captured, test: str, directory: Path) -> Manifest:
    made = captured.program
    inputs = [operand.value for operand in made.inputs]
    feeds = ("a", "c") if made.operator == "unknown_feed" else ("a", "b")
    name = LIVE if made.operator == "unbuildable" else "json"
    manifest = Manifest(
        test, made.id, NAME, made.operator, exporter(), ("a", "b"), made.outputs,
        {name: Artefact("model.json", feeds)},
    )  # fmt: skip
    kept = inputs[:1] if made.operator == "fewer_inputs" else inputs
    model = msgspec.json.encode({"op": made.operator, "factor": FACTOR})
    migrated.write(directory, manifest, kept, _right(inputs), {"model.json": model})
    return manifest


def live(manifest: Manifest, directory: Path) -> Any:
    return {}[manifest.operator]


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    return [Opinion("numpy", True, _right(inputs))]


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    return None


def equipped_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    return {}


def _right(inputs: list[Value]) -> list[Value]:
    arrays = [value.array() for value in inputs if isinstance(value, Tensor)]
    return [Tensor.of(x) for x in evaluate({"factor": FACTOR}, arrays)]
