"""Compilers that misbehave on purpose, each in one way, and the tests they are given.

`opera.compilers.get("faults.compilers:segfault")` finds them. Their models are small JSON files, `{"op": ..., "factor": ...}`,
evaluated with numpy; only models marked `"bad"` bring out the fault, so that good jobs can run in the same worker.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from faults.engine import (
    Unspeakable,
    chatter,
    close_files,
    close_files_and_hang,
    explode,
    explode_shared,
    fail,
    fork,
    fork_and_hang,
    hang,
    hang_deaf,
)

from opera.compilers import Case, Variant
from opera.programs import migrated
from opera.programs.migrated import Artefact, Manifest
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import Job
from opera.store.folders import Folders

Array = np.ndarray[Any, Any]
Hook = Callable[["Fault", Any], Any]


class Fault:
    """A correct compiler but for its hooks: called at load, or with the correct outputs after inference."""

    PACKAGE = "nothing"
    PRELOAD = ("faults.compilers",)
    PACKAGES = ("faults.engine",)
    VARIANTS = (Variant("inputs", "json"),)

    def __init__(self, name: str, load: Hook | None = None, infer: Hook | None = None) -> None:
        self.NAME, self.at_load, self.at_infer = name, load, infer
        self.seen = 0
        self.FRONTENDS: Mapping[str, Fault] = {"numbers": self}

    def version(self) -> str:
        return "1.0"

    def options(self) -> dict[str, str]:
        return {"fault": self.NAME}

    def prepare(self) -> None:
        self.seen = 0

    def load(self, case: Case) -> dict[str, Any]:
        model: dict[str, Any] = json.loads(case.model.read_text())
        if model["bad"] and self.at_load:
            return self.at_load(self, model)
        return model

    def compile(self, loaded: dict[str, Any], case: Case) -> dict[str, Any]:
        return loaded

    def infer(self, compiled: dict[str, Any], case: Case) -> Any:
        arrays = [value.array() for value in case.feeds.values()]
        result = [compute(compiled, arrays)]
        if compiled["bad"] and self.at_infer:
            result = self.at_infer(self, result)
        self.seen += 1
        return [Tensor.of(x) for x in result] if isinstance(result, list) else result

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return "the operator" if isinstance(error, NotImplementedError) else None

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        return f"convert_{case.operator}"


def compute(model: dict[str, Any], arrays: list[Array]) -> Array:
    total = np.sum(arrays, axis=0, dtype=np.float32)
    return np.asarray(total * np.float32(model.get("factor", 1.0)), dtype=np.float32)


def remember(fault: Fault, result: list[Array]) -> list[Array]:
    """Wrong only where another test ran in this process before."""
    return [result[0] + 1] if fault.seen else result


correct = Fault("correct")
wrong_value = Fault("wrong_value", infer=lambda _, x: [x[0] + 1])
dropped_attribute = Fault("dropped_attribute", load=lambda _, model: {**model, "factor": 1.0})
wrong_shape = Fault("wrong_shape", infer=lambda _, x: [x[0].reshape(1, -1)])
wrong_dtype = Fault("wrong_dtype", infer=lambda _, x: [x[0].astype(np.float64)])
wrong_count = Fault("wrong_count", infer=lambda _, x: [*x, *x])
not_a_number = Fault("not_a_number", infer=lambda _, x: [x[0] * np.nan])
nothing = Fault("nothing", infer=lambda *_: None)
unsupported = Fault("unsupported", load=lambda *_: fail(NotImplementedError("no")))
raises = Fault("raises", load=lambda *_: fail(ValueError("no converter")))
unspeakable = Fault("unspeakable", load=lambda *_: fail(Unspeakable()))
system_exit = Fault("system_exit", load=lambda *_: fail(SystemExit(3)))
interrupt = Fault("interrupt", load=lambda *_: fail(KeyboardInterrupt()))
nondeterministic = Fault("nondeterministic", infer=lambda *_: [np.random.default_rng().random(3).astype(np.float32)])
segfault = Fault("segfault", load=lambda *_: ctypes.string_at(0))
aborts = Fault("aborts", infer=lambda *_: os.abort())
exit_zero = Fault("exit_zero", infer=lambda *_: os._exit(0))
killed = Fault("killed", load=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
hangs = Fault("hangs", load=hang)
deaf = Fault("deaf", load=hang_deaf)
explodes = Fault("explodes", load=explode)
explodes_shared = Fault("explodes_shared", load=explode_shared)
chatters = Fault("chatters", infer=chatter)
forks = Fault("forks", infer=fork)
forks_and_hangs = Fault("forks_and_hangs", infer=fork_and_hang)
closes = Fault("closes", load=close_files)
closes_and_hangs = Fault("closes_and_hangs", load=close_files_and_hang)
leaks = Fault("leaks", infer=remember)


def job(root: Path, fault: str, number: int = 0, *, bad: bool = True, save: str = "") -> Job:
    """Write a migrated test under a root, `factor` times the sum of two tensors of shape (3,); return the job that runs it."""
    test = f"{fault}-{number}-{bad:d}"
    directory = Folders.of(root).test(test)
    model = {"op": "Scale", "factor": 2.0, "bad": bad}
    arrays = [np.arange(3, dtype=np.float32) + number, np.ones(3, dtype=np.float32)]
    manifest = Manifest(
        test=test, instance=test, library="numbers", operator="Scale", exporter={"numbers": "1"}, inputs=("a", "b"),
        outputs=("c",), artefacts={"json": Artefact("model.json", ("a", "b"))},
    )  # fmt: skip
    inputs: list[Value] = [Tensor.of(x) for x in arrays]
    migrated.write(
        directory, manifest, inputs, [Tensor.of(compute(model, arrays))], {"model.json": json.dumps(model).encode()}
    )
    return Job(test, f"faults.compilers:{fault}", "numbers", "inputs", "json", save)
