"""What the compilers of faults do wrong: their own code, of which `opera.execute.blame` knows that it is the compiler's."""

from __future__ import annotations

import os
import signal
import sys
import time
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
    import mmap

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
