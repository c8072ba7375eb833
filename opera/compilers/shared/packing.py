"""Tensors as compilers keep them: 4- and 2-bit elements packed, lowest bits first, as in ONNX. Needs numpy only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opera.programs.values import CONTAINERS, Tensor

BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
"""dtypes of which several elements share a byte → bits of one element."""


class Refusal(Exception):
    """An adapter refuses a test on purpose, and `unsupported` says why: no fault of the compiler, nor a mistake of opera's."""


class CannotCarry(Refusal):
    """opera itself has no way to feed a value to a compiler, or to read its output."""


class NoAnswer(Exception):
    """An adapter tells that the compiler returned nothing, or something that is no output at all: a crash."""


def pack(tensor: Tensor) -> bytes:
    """Return the bytes of a tensor (not of strings), little-endian, in C order."""
    if tensor.dtype not in BITS:
        return tensor.data
    bits = BITS[tensor.dtype]
    per_byte = 8 // bits
    items = np.frombuffer(tensor.data, dtype=np.uint8) & ((1 << bits) - 1)
    items = np.pad(items, (0, -len(items) % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return bytes(np.bitwise_or.reduce(items << shifts, axis=1).astype(np.uint8).tobytes())


def unpack(dtype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Inverse of `pack`."""
    if dtype not in BITS:
        return Tensor(dtype, shape, data)
    bits = BITS[dtype]
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    items = (np.frombuffer(data, dtype=np.uint8)[:, None] >> shifts) & ((1 << bits) - 1)
    items = items.ravel()[: math.prod(shape)].astype(np.int16)
    if dtype.startswith("int"):
        items = np.where(items >= 1 << (bits - 1), items - (1 << bits), items)
    return Tensor(dtype, shape, items.astype(CONTAINERS[dtype]).tobytes())


def of_numpy(array: Any) -> Tensor:
    """Return the tensor of an array that a compiler handed out. Raises CannotCarry for a dtype without encoding."""
    array = np.asarray(array)
    if array.dtype.kind not in "OSU" and array.dtype.name not in CONTAINERS:
        raise CannotCarry(f"opera cannot read an output of dtype {array.dtype}")
    return Tensor.of(array)
