"""What the compiler of the campaign does to those around it: files, processes, descriptors, the process that others use."""

from __future__ import annotations

import contextlib
import locale
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from faults.engine import at, close_files, close_files_and_hang, fail, fork_and_hang, hang

# output and files


@at("infer")
def prints_1_mb(outputs: Any) -> Any:
    """Prints 1 MB, and answers"""
    for _line in range(1 << 14):
        print("x" * 63)
    return outputs


@at("infer")
def prints_400_mb(outputs: Any) -> Any:
    """Prints 400 MB, and answers"""
    for _block in range(400):
        os.write(1, b"x" * 1_000_000)
    return outputs


@at("compile")
def prints_and_raises(_: Any) -> Any:
    """Prints 100 MB, and raises"""
    for _block in range(100):
        os.write(1, b"x" * 1_000_000)
    return fail(ValueError("after 100 MB"))


@at("infer")
def writes_8_gb(outputs: Any) -> Any:
    """A file of 8 GiB, with holes"""
    with tempfile.TemporaryFile() as file:
        os.pwrite(file.fileno(), b"x", 8 << 30)
    return outputs


# processes


@at("infer")
def forks(outputs: Any) -> Any:
    """fork(), and both processes answer"""
    os.fork()
    return outputs


@at("infer")
def forks_and_hangs(outputs: Any) -> Any:
    """fork(), and the child sleeps"""
    return fork_and_hang(None, outputs)


@at("infer")
def daemon(outputs: Any) -> Any:
    """Leaves a daemon"""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    return outputs


@at("compile")
def fifty_children(model: Any) -> Any:
    """Leaves 50 children"""
    for _child in range(50):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    return model


@at("load")
def endless_thread(model: Any) -> Any:
    """Leaves a thread that computes"""
    threading.Thread(target=hang_deaf_thread, daemon=True).start()
    return model


def hang_deaf_thread() -> None:
    while True:
        pass


@at("infer")
def alarm(outputs: Any) -> Any:
    """SIGALRM a third of a second later"""
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    return outputs


@at("infer")
def kills_siblings(outputs: Any) -> Any:
    """SIGKILL to all other workers of its server"""
    _signal_siblings(signal.SIGKILL)
    return outputs


@at("infer")
def stops_siblings(outputs: Any) -> Any:
    """SIGSTOP to all other workers of its server"""
    _signal_siblings(signal.SIGSTOP)
    return outputs


def _signal_siblings(number: int) -> None:
    server = os.getppid()
    for pid in map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split()):
        if pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@at("infer")
def kills_parent(_: Any) -> Any:
    """SIGKILL to the fork server"""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


@at("infer")
def daemon_kills_parent(outputs: Any) -> Any:
    """Leaves a daemon, and SIGKILL to the fork server"""
    return kills_parent(daemon(outputs))


@at("load")
def stops_parent(model: Any) -> Any:
    """SIGSTOP to the fork server, and answers"""
    os.kill(os.getppid(), signal.SIGSTOP)
    return model


@at("compile")
def stops_parent_and_hangs(_: Any) -> Any:
    """SIGSTOP to the fork server, and sleeps"""
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(60)


# descriptors and the like


@at("load")
def closes_all(_: Any) -> Any:
    """Closes all files, and goes on until it prints"""
    return close_files()


@at("infer")
def garbles(outputs: Any) -> Any:
    """Writes to every file that is open, and sleeps"""
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(number, b"\xff" * 64)
    return hang()


@at("load")
def closes_all_and_hangs(_: Any) -> Any:
    """Closes all files, and sleeps"""
    return close_files_and_hang()


@at("infer")
def changes_folder(outputs: Any) -> Any:
    """Goes to another folder"""
    os.chdir("..")
    return outputs


@at("infer")
def deletes_folder(outputs: Any) -> Any:
    """Deletes the folder it stands in"""
    shutil.rmtree(Path.cwd())
    return outputs


@at("infer")
def changes_umask(outputs: Any) -> Any:
    """umask(0077)"""
    os.umask(0o077)
    return outputs


@at("infer")
def changes_environment(outputs: Any) -> Any:
    """Empties os.environ"""
    os.environ.clear()
    return outputs


@at("infer")
def changes_locale(outputs: Any) -> Any:
    """Another locale"""
    locale.setlocale(locale.LC_ALL, "C")
    return outputs


@at("infer")
def changes_limits(outputs: Any) -> Any:
    """No more than 256 open files"""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    return outputs


@at("infer")
def installs_hook(outputs: Any) -> Any:
    """sys.excepthook that ends the process"""
    sys.excepthook = lambda *_: os._exit(5)
    return outputs


# poison: what runs after it in the process fails


@at("infer")
def patches_sum(outputs: Any) -> Any:
    """np.sum raises"""
    np.sum = lambda *_, **__: fail(RuntimeError("np.sum was patched"))  # type: ignore[assignment]
    return outputs


@at("infer")
def patches_abs(outputs: Any) -> Any:
    """np.abs, which the oracle needs, raises"""
    np.abs = lambda *_, **__: fail(RuntimeError("np.abs was patched"))  # type: ignore[assignment]
    return outputs


@at("infer")
def patches_time(outputs: Any) -> Any:
    """time.monotonic and time.perf_counter raise"""
    time.monotonic = time.perf_counter = lambda: fail(RuntimeError("time was patched"))
    return outputs


@at("infer")
def raises_on_underflow(outputs: Any) -> Any:
    """np.seterr(all="raise")"""
    np.seterr(all="raise")
    return outputs


@at("infer")
def closes_stdout(outputs: Any) -> Any:
    """Closes standard output"""
    os.close(1)
    return outputs


@at("infer")
def replaces_stdout(outputs: Any) -> Any:
    """Closes sys.stdout"""
    sys.stdout.close()
    return outputs


@at("infer")
def limits_recursion(outputs: Any) -> Any:
    """sys.setrecursionlimit(50)"""
    sys.setrecursionlimit(50)
    return outputs


@at("infer")
def limits_files(outputs: Any) -> Any:
    """No more open files"""
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return outputs
