"""What the compilers of faults do wrong: their own code, of which `opera.execute.blame` knows that it is the compiler's."""

from __future__ import annotations

import contextlib
import ctypes
import locale
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
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


# ---------------------------------------------------------------------- the engine of the campaign

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


# wrong answers


@at("infer")
def wrong_value(outputs: list[Array]) -> list[Array]:
    """One is added"""
    return [outputs[0] + 1, outputs[1]]


@at("infer")
def just_off(outputs: list[Array]) -> list[Array]:
    """Off by 1.2 tolerances of float32"""
    return [outputs[0] + np.float32(1.2) * (np.float32(1e-5) + np.float32(1e-4) * outputs[0]), outputs[1]]


@at("load")
def dropped_attribute(model: dict[str, Any]) -> dict[str, Any]:
    """The factor is forgotten"""
    return {key: value for key, value in model.items() if key != "factor"}


@at("infer")
def wrong_shape(outputs: list[Array]) -> list[Array]:
    """(1, 3) instead of (3,)"""
    return [x.reshape(1, -1) for x in outputs]


@at("infer")
def wrong_dtype(outputs: list[Array]) -> list[Array]:
    """float64 instead of float32"""
    return [x.astype(np.float64) for x in outputs]


@at("infer")
def extra_output(outputs: list[Array]) -> list[Array]:
    """Three outputs instead of two"""
    return [*outputs, outputs[0]]


@at("infer")
def missing_output(outputs: list[Array]) -> list[Array]:
    """One output instead of two"""
    return outputs[:1]


@at("infer")
def empty_list(outputs: list[Array]) -> list[Array]:
    """No output at all"""
    return []


@at("infer")
def not_a_number(outputs: list[Array]) -> list[Array]:
    """NaN"""
    return [x * np.float32(np.nan) for x in outputs]


@at("infer")
def infinity(outputs: list[Array]) -> list[Array]:
    """Infinity"""
    return [np.full_like(x, np.inf) for x in outputs]


@at("infer")
def zeros(outputs: list[Array]) -> list[Array]:
    """All zeros"""
    return [np.zeros_like(x) for x in outputs]


@at("infer")
def random_value(outputs: list[Array]) -> list[Array]:
    """Another answer each time"""
    return [x + np.float32(1 + np.random.default_rng().random()) for x in outputs]


@at("infer")
def state_leak(outputs: list[Array]) -> list[Array]:
    """Wrong wherever another test ran before in the process"""
    return [x + 1 for x in outputs] if set(RAN) - {"state_leak"} else outputs


# exceptions


class _Own(BaseException):
    """As pyo3's PanicException: no Exception."""


@at("load")
def raises(_: Any) -> Any:
    """ValueError"""
    return fail(ValueError("no converter"))


@at("compile")
def raises_chained(_: Any) -> Any:
    """One exception because of another"""
    try:
        return fail(KeyError("axis"))
    except KeyError as error:
        raise RuntimeError("pass 3 failed") from error


@at("load")
def raises_unspeakable(_: Any) -> Any:
    """An exception that cannot say its text"""
    return fail(Unspeakable())


@at("load")
def raises_system_exit(_: Any) -> Any:
    """SystemExit"""
    return fail(SystemExit(0))


@at("infer")
def raises_interrupt(_: Any) -> Any:
    """KeyboardInterrupt"""
    return fail(KeyboardInterrupt())


@at("infer")
def raises_generator_exit(_: Any) -> Any:
    """GeneratorExit"""
    return fail(GeneratorExit())


@at("compile")
def raises_own_base(_: Any) -> Any:
    """A BaseException of its own"""
    return fail(_Own("panicked"))


@at("load")
def raises_group(_: Any) -> Any:
    """An ExceptionGroup"""
    return fail(ExceptionGroup("two passes failed", [ValueError("one"), TypeError("two")]))


@at("compile")
def raises_recursion(_: Any) -> Any:
    """Recursion without end"""
    return raises_recursion(_)


@at("infer")
def raises_memory(_: Any) -> Any:
    """MemoryError"""
    return fail(MemoryError())


@at("infer")
def raises_bad_alloc(_: Any) -> Any:
    """The text of C++ for want of memory"""
    return fail(RuntimeError("std::bad_alloc"))


@at("load")
def raises_100_mb(_: Any) -> Any:
    """A text of 100 MB"""
    return fail(ValueError("x" * 100_000_000))


@at("load")
def raises_surrogates(_: Any) -> Any:
    """A text that no encoding takes"""
    return fail(ValueError("\ud800\udfff no \udc80 text"))


@at("load")
def refuses(_: Any) -> Any:
    """The operator is not supported, it says"""
    return fail(NotImplementedError("the operator"))


@at("load")
def refuses_oddly(_: Any) -> Any:
    """An exception over which the adapter's `unsupported` fails"""
    return fail(RuntimeError("odd refusal"))


# deaths


@at("load")
def segfault(_: Any) -> Any:
    """Reads address 0"""
    return ctypes.string_at(0)


@at("infer")
def aborts(_: Any) -> Any:
    """abort()"""
    os.abort()


@at("infer")
def exits_0(_: Any) -> Any:
    """_exit(0)"""
    os._exit(0)


@at("compile")
def exits_3(_: Any) -> Any:
    """_exit(3)"""
    os._exit(3)


@at("load")
def kills_itself(_: Any) -> Any:
    """SIGKILL to itself"""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@at("load")
def terminates_itself(_: Any) -> Any:
    """SIGTERM to itself"""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


@at("infer")
def bus_error(_: Any) -> Any:
    """Reads a mapped file past its end"""
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        mapped = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        return mapped[0]


@at("infer")
def divides_by_zero(_: Any) -> Any:
    """SIGFPE"""
    signal.raise_signal(signal.SIGFPE)


@at("compile")
def illegal_instruction(_: Any) -> Any:
    """SIGILL"""
    signal.raise_signal(signal.SIGILL)


@at("infer")
def double_free(_: Any) -> Any:
    """free() twice"""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    block = libc.malloc(64)
    for _again in range(2):
        libc.free(block)
    os._exit(4)


@at("compile")
def stack_overflow(_: Any) -> Any:
    """Recursion in C without end"""
    sys.setrecursionlimit(1 << 30)
    call = ctypes.CFUNCTYPE(None)
    KEPT.append(call(lambda: KEPT[-1]()))
    KEPT[-1]()


# hangs


@at("compile")
def sleeps(_: Any) -> Any:
    """Sleeps"""
    return hang()


@at("load")
def spins_deaf(_: Any) -> Any:
    """Computes without end, signals ignored"""
    return hang_deaf()


@at("infer")
def holds_gil(_: Any) -> Any:
    """Sleeps in C with Python's lock held"""
    return ctypes.PyDLL(None).usleep(600_000_000)


@at("infer")
def stops_itself(_: Any) -> Any:
    """SIGSTOP to itself"""
    os.kill(os.getpid(), signal.SIGSTOP)
    return hang()


@at("compile")
def deadlocks(_: Any) -> Any:
    """Waits for a lock that it holds"""
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire()


@at("load")
def waits_for_child(_: Any) -> Any:
    """Waits for a child that sleeps"""
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    return os.waitpid(child, 0)


# memory


@at("infer")
def grows_numpy(_: Any) -> Any:
    """Arrays without end"""
    return explode()


@at("load")
def grows_shared(_: Any) -> Any:
    """Shared memory without end"""
    return explode_shared()


@at("compile")
def grows_malloc(_: Any) -> Any:
    """malloc() without end, and C++'s way out"""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    while block := libc.malloc(8 << 20):
        ctypes.memset(block, 1, 8 << 20)
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


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
def deletes_folder(outputs: Any) -> Any:
    """Goes elsewhere, and deletes the folder it stood in"""
    home = Path.cwd()
    os.chdir(tempfile.gettempdir())
    shutil.rmtree(home)
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
