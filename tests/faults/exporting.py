"""A library whose tests offer artefacts, with exporters that refuse, hang or die, and compilers that consume them.

The operators of the library are what its exporter does: `Good`, `Refused`, `Leaving`, `Deadly`, `Hanging`, `Unbuildable`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from faults.engine import fail

from opera.compilers import Case, Variant
from opera.compilers.shared.packing import of_numpy
from opera.oracle.opinions import Opinion
from opera.programs import migrated
from opera.programs.migrated import LIVE, Artefact, Manifest
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor, Value

NAME = "faults.exporting"
PACKAGE = "faults"
PRELOAD = ()


def instance(operator: str, number: float = 1.0) -> Captured:
    x = Operand("x", Tensor("float32", (1,), bytes(4)))
    return Captured(Instance(NAME, operator, {"number": number}, (x,), (), {}), Provenance("suite", "file", operator))


def version() -> str:
    return "1"


def exporter() -> dict[str, str]:
    return {"faults": "1"}


def wrap(captured: Captured, test: str, directory: Path) -> Manifest:
    x = captured.program.inputs[0].value
    manifest = Manifest(
        test, captured.program.id, NAME, captured.program.operator, exporter(), ("x",), ("y",),
        {LIVE: Artefact("instance.json", ("x",))}, ("file",), "eager",
    )  # fmt: skip
    migrated.write(directory, manifest, [x], [x], {"instance.json": captured.program.canonical()})
    return manifest


def export(manifest: Manifest, directory: Path, artefact: str) -> Artefact:
    with (directory.parents[2] / "exports.log").open("a") as log:
        log.write(f"{manifest.operator} {artefact}\n")
    match manifest.operator:
        case "Refused":
            raise NotImplementedError("the exporter has no rule for it")
        case "Deadly":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "Leaving":
            sys.exit(0)
        case "Hanging":
            time.sleep(600)
    (directory / "model.bin").write_bytes(b"model")
    return Artefact("model.bin", ("x",))


def live(manifest: Manifest, directory: Path) -> Any:
    if manifest.operator == "Unbuildable":
        raise AttributeError("opera cannot rebuild it")
    return lambda x: x


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    return []


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    return None


def equipped_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    return {}


class _Identity:
    """Returns what it is fed."""

    PACKAGE = "faults"
    PRELOAD: tuple[str, ...] = ()

    def __init__(self, name: str, *variants: Variant) -> None:
        self.NAME = name
        self.VARIANTS = variants
        self.FRONTENDS: Mapping[str, _Identity] = {NAME: self}

    def version(self) -> str:
        return "1.0"

    def options(self) -> dict[str, str]:
        return {}

    def prepare(self) -> None:
        return

    def load(self, case: Case) -> Any:
        if case.live is not None:
            return case.live()
        assert case.model.read_bytes() == b"model"
        return lambda x: x

    def compile(self, loaded: Any, case: Case) -> Any:
        return loaded

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        return [of_numpy(compiled(value.array())) for value in case.feeds.values()]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return None

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        return ""


files = _Identity("faults.exporting:files", Variant("file", "file"))
both = _Identity("faults.exporting:both", Variant("file", "file"), Variant("live", LIVE, after="rejected"))
rebuilt = _Identity("faults.exporting:rebuilt", Variant("live", LIVE))


class _Own(_Identity):
    """It loads nothing but what its own exporter makes, of the live model or of the file; that has no rule for `Odd`."""

    PACKAGES = ("faults.engine",)

    def export(self, case: Case, path: Path) -> None:
        if case.operator == "Odd":
            fail(ValueError(f"no rule of its own, {path} is not written"))
        path.write_bytes(b"own " + (b"model" if case.live is not None and case.live() else case.model.read_bytes()))

    def load(self, case: Case) -> Any:
        assert (case.model.name, case.model.read_bytes()) == ("own.bin", b"own model")
        return lambda x: x


own = _Own("faults.exporting:own", Variant("live", LIVE, exports="own.bin"), Variant("file", "file", exports="own.bin"))
