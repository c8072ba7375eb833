"""What the compiler of the campaign does to the test that it is given: answers, exceptions, deaths, hangs, memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np
from faults.engine import KEPT, RAN, Array, Unspeakable, at, explode, explode_shared, fail, hang, hang_deaf

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
