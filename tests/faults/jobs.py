"""Functions for workers of the pool's own tests: one fault each, without a compiler around it."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from opera.pool.forkserver import mark, note

KEPT: list[Any] = []


def double(number: int) -> int:
    return 2 * number


def trait(_: None) -> str:
    """Return what tells this machine from others; LookupError where it is broken."""
    found = os.environ.get("OPERA_TEST_TRAIT", "")
    if found == "broken":
        raise LookupError(found)
    return found


def reads(job: dict[str, Any]) -> list[str]:
    """Return what stands in the tests that a job reads, and add its text to those that it makes."""
    from opera.store import folders

    def model(test: str) -> Path:
        return folders.here().test(test) / "saved_model" / "model.pb"

    found = [model(test).read_text() for test in job["reads"]]
    for test in job["makes"]:
        model(test).parent.mkdir(parents=True, exist_ok=True)
        before = model(test).read_text() if model(test).exists() else ""
        model(test).write_text(before + job["text"])
        (folders.here().test(test) / "manifest.json").write_text("{}")
    return found


def pid(_: None) -> list[int]:
    """Return the pids of the worker and of its server."""
    return [os.getpid(), os.getppid()]


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def raises(text: str) -> None:
    raise ValueError(text)


def segfault(_: None) -> None:
    note("just before")
    ctypes.string_at(0)


def chatters_at(text: str) -> None:
    """Mark a text, print more than is kept of a log, and die if there is a text."""
    if text:
        mark(text)
        note("in it")
    print("x" * 100_000)
    if text:
        ctypes.string_at(0)


def leave(code: int) -> None:
    os._exit(code)


def keep(size: int) -> int:
    """Grow by `size` bytes and keep them."""
    KEPT.append(np.ones(size, dtype=np.uint8))
    return size


def garbles(_: None) -> None:
    """Write to every file that is open."""
    note("in it")
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(number, b"\xff" * 64)
    time.sleep(60)


def recurse_deeply(_: None) -> None:
    """Leave hardly any depth, and use it up."""
    sys.setrecursionlimit(len(inspect.stack(0)) + 3)
    recurse_deeply(_)


def fill_memory(_: None) -> None:
    """Take memory until there is not even a little left."""
    for bits in range(22, 3, -1):
        with contextlib.suppress(MemoryError):
            while True:
                KEPT.append(bytearray(1 << bits))
    raise MemoryError


def say(text: str) -> int:
    """Print through Python and through C."""
    print(text)
    ctypes.CDLL(None).printf(b"c says %s\n", text.encode())
    return len(text)


def kill_server(_: None) -> None:
    os.kill(os.getppid(), 9)
    time.sleep(60)


def stop_server(seconds: float) -> None:
    """Stop the server after a while, and answer."""
    time.sleep(seconds)
    os.kill(os.getppid(), signal.SIGSTOP)


def signal_siblings(number_and_folder: list[Any]) -> None:
    """Send a signal to every other worker of the server, once, and then let those go on that wait for a file."""
    number, folder = number_and_folder
    server = os.getppid()
    for pid in map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split()):
        if pid != os.getpid():
            os.kill(pid, number)
    for name in range(3):
        Path(folder, str(name)).touch()


def wait_for_file(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)


def note_and_alarm(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("run ")
    os.kill(os.getpid(), signal.SIGALRM)


def signal_itself(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def signalled(path_and_numbers: list[Any]) -> str:
    """End by one signal after the other, each time that it is run; at last tell how often that was."""
    path, *numbers = path_and_numbers
    with Path(path).open("a+", encoding="utf-8") as file:
        file.write(".")
        file.seek(0)
        run = len(file.read())
    if run <= len(numbers):
        os.kill(os.getpid(), numbers[run - 1])
        time.sleep(60)
    return "." * run


def family(seconds: float) -> list[int]:
    """Start a child in the worker's group and one that leaves it, and return at once."""
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    return [subprocess.Popen(command).pid, subprocess.Popen(command, start_new_session=True).pid]


def daemon(_: None) -> list[int]:
    """Leave a process that is no longer this one's; return its pid, this one's and the server's."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    return [int(os.read(read, 20)), os.getpid(), os.getppid()]


def hang_with_family(path: str) -> None:
    """Write the pids of this worker, a child and a daemon to `path`, then hang."""
    pids = [os.getpid(), os.getppid(), *family(600)]
    part = Path(path + ".part")
    part.write_text(" ".join(map(str, pids)))
    part.rename(path)
    time.sleep(600)


def folder(_: None) -> str:
    return str(Path.cwd())


def delete_folder(_: None) -> None:
    shutil.rmtree(Path.cwd())


def large(size: int) -> bytes:
    return b"x" * size


def argument(text: str) -> str:
    return text


def mixed(number: int) -> int:
    """Die, hang, or answer."""
    if number == 5:
        segfault(None)
    if number == 12:
        time.sleep(600)
    return double(number)
