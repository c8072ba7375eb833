"""What the compilers of faults do wrong: their own code, of which `opera.run.culprit` knows that it is the compiler's."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def fail(error: BaseException) -> Any:
    raise error


def call(function: Any) -> Any:
    return function()


def numpy_mistake() -> Any:
    return np.zeros(3).reshape(2, 2)


def hang(*_: Any) -> Any:
    while True:
        time.sleep(0.01)


def hang_deaf(*_: Any) -> Any:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def explode(*_: Any) -> Any:
    kept = []
    while True:
        kept.append(np.ones(8 << 20, dtype=np.uint8))


def explode_shared(*_: Any) -> Any:
    """Take memory that no limit on private data counts."""
    shared = mmap.mmap(-1, 8 << 30)
    for at in range(0, 8 << 30, 1 << 20):
        shared[at : at + (1 << 20)] = b"x" * (1 << 20)


def chatter(_: Any, result: Any) -> Any:
    for _line in range(1 << 14):
        print("x" * 63)
    print("the last line", file=sys.stderr)
    return fail(ValueError("after a megabyte"))


def fork(_: Any, result: Any) -> Any:
    os.fork()  # both processes go on, and both try to answer
    return result


def fork_and_hang(_: Any, result: Any) -> Any:
    if os.fork() == 0:
        time.sleep(600)
    return result


def close_files(*_: Any) -> Any:
    os.closerange(0, 1024)
    return {"op": "add", "bad": True}


def close_files_and_hang(*_: Any) -> Any:
    os.closerange(0, 1024)
    return hang()


Array = np.ndarray[Any, Any]
Misdeed = Callable[[Any], Any]
MISDEEDS: dict[str, tuple[str, Misdeed]] = {}
"""Name of a fault → the stage in which it shows, and what it does there with the right result of that stage."""
RAN: list[str] = []
"""Operators that this process has inferred."""
KEPT: list[Any] = []


def at(stage: str) -> Callable[[Misdeed], Misdeed]:
    """Register a misdeed under its function's name."""

    def register(function: Misdeed) -> Misdeed:
        MISDEEDS[function.__name__] = (stage, function)
        return function

    return register


def step(stage: str, operator: str, result: Any) -> Any:
    """Do to the right result of a stage what the operator is named for."""
    where, misdeed = MISDEEDS.get(operator, ("", None))
    return misdeed(result) if misdeed is not None and where == stage else result


def evaluate(model: dict[str, Any], arrays: list[Array]) -> list[Array]:
    """Return the sum of the inputs, scaled, and what softly saturates of it (of which some underflows)."""
    total = np.sum(arrays, axis=0, dtype=np.float32)
    scaled = total * np.float32(model.get("factor", 1.0))
    return [scaled, np.exp(-np.square(scaled))]


def infer(model: dict[str, Any], arrays: list[Array]) -> list[Array]:
    """Evaluate, with a word on standard output, a file in the current folder and some recursion, as compilers do."""
    _visit(100)
    print(f"inferring {model.get('op')}")
    cache = Path("kernels")
    cache.write_bytes(arrays[0].tobytes())
    arrays = [np.frombuffer(cache.read_bytes(), dtype=arrays[0].dtype), *arrays[1:]]
    cache.unlink()
    return evaluate(model, arrays)


def _visit(depth: int) -> None:
    if depth:
        _visit(depth - 1)
