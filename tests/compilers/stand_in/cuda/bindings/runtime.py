"""Stands in for cuda.bindings.runtime, with names and parameters of the wheel: memory of the GPU is memory of this process."""

from __future__ import annotations

import ctypes
import inspect
import json
from enum import IntEnum
from pathlib import Path
from typing import Any

HELD = json.loads((Path(__file__).parents[3] / "tensorrt_names.json").read_text())
NAMES = next(held for name, held in HELD.items() if name.startswith("cuda"))
cudaError_t = IntEnum("cudaError_t", {name: place for place, name in enumerate(NAMES["enums"]["cudaError_t"])})
cudaMemcpyKind = IntEnum("cudaMemcpyKind", {name: place for place, name in enumerate(NAMES["enums"]["cudaMemcpyKind"])})
OF_GPU: dict[int, Any] = {}
"""Address → what lies there: what is not freed shows as a leak."""
STREAMS: set[int] = set()
STICKY: list[Any] = []
FINE = cudaError_t.cudaSuccess


def peek(address: int, size: int, *, host: bool) -> bytes:
    """Read memory as a kernel does; of the host only where that is where it should be."""
    assert host != (address in OF_GPU), "a tensor lies on the wrong side"
    return ctypes.string_at(address, size)


def poke(address: int, data: bytes) -> None:
    assert address in OF_GPU and ctypes.sizeof(OF_GPU[address]) >= len(data), "an output has too little memory"
    ctypes.memmove(address, data, len(data))


def _malloc(size: int) -> tuple[Any, ...]:
    held = ctypes.create_string_buffer(b"\xa5" * size, size)
    OF_GPU[ctypes.addressof(held)] = held
    return FINE, ctypes.addressof(held)


def _free(address: int) -> tuple[Any, ...]:
    del OF_GPU[address]
    return (FINE,)


def _copy(to: int, source: int, size: int, kind: Any) -> tuple[Any, ...]:
    assert kind is cudaMemcpyKind.cudaMemcpyDefault
    ctypes.memmove(to, source, size)
    return (FINE,)


def _stream() -> tuple[Any, ...]:
    STREAMS.add(number := len(STREAMS) + 77)
    return FINE, number


class _Properties:
    name, major, minor = b"Stand-in\0\0", 9, 0


ACTIONS = {
    "cudaMalloc": _malloc,
    "cudaFree": _free,
    "cudaMemcpy": _copy,
    "cudaStreamCreate": _stream,
    "cudaStreamDestroy": lambda stream: (STREAMS.remove(stream), (FINE,))[1],
    "cudaStreamSynchronize": lambda stream: (STICKY[-1],) if STICKY else (FINE,),
    "cudaDeviceSynchronize": lambda: (STICKY[-1],) if STICKY else (FINE,),
    "cudaGetErrorString": lambda error: (FINE, b"an error of the stand-in"),
    "cudaGetDeviceCount": lambda: (FINE, 1),
    "cudaGetDevice": lambda: (FINE, 0),
    "cudaGetDeviceProperties": lambda device: (FINE, _Properties),
    "cudaDriverGetVersion": lambda: (FINE, 13000),
    "cudaRuntimeGetVersion": lambda: (FINE, 13000),
}


def _function(name: str) -> Any:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(x, kind) for x in NAMES["functions"][name][0]])

    def called(*args: Any, **kwargs: Any) -> Any:
        return ACTIONS[name](*signature.bind(*args, **kwargs).args)

    return called


globals().update({name: _function(name) for name in ACTIONS})
