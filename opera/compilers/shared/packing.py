"""Tensors as compilers keep them: 4- and 2-bit elements packed, lowest bits first, as in ONNX. Needs numpy only."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from opera.compilers.recipes.bits import BITS, packed, unpacked
from opera.programs.values import CONTAINERS, Tensor

__all__ = [
    "BITS",
    "CannotCarry",
    "Faulty",
    "Made",
    "NoAnswer",
    "Read",
    "Refusal",
    "Told",
    "Unlawful",
    "begins",
    "last",
    "of_numpy",
    "pack",
    "told",
    "unpack",
]


class Refusal(Exception):
    """An adapter refuses a test on purpose, and `unsupported` says why: no fault of the compiler, nor a mistake of opera's."""


class CannotCarry(Refusal):
    """opera itself has no way to feed a value to a compiler, or to read its output."""


class Made(Refusal):
    """What a way of kind MADE raises (opera.compilers.Way): a digest of what the importer made."""


class Unlawful(Refusal):
    """What a way of kind LAWFUL raises (opera.compilers.Way): which rule what the importer made breaks, or, of an exporter, why
    the library itself fails before anything is exported."""


OF_BODY = "ONNX's own function body of it, at its "
"""How a rule is told that ONNX's definition of an operator breaks, and no importer; an operator of that body follows."""


class Faulty(Refusal):
    """What a way of kind NODE raises (opera.compilers.Way): what an operator that a model is made of does wrong by itself."""


BY_ITSELF = " by itself: "
"""After the name of an operator, and before what it raises by itself; the log tells which ended its worker."""
SAME_DRAWS = "draws the same"
"""How a Faulty says that nothing is drawn."""
INFERRED = "is inferred to be of shape"
"""How a Faulty says that a type is what is wrong."""
NEVER, DROPS = " never reads ", " makes nothing of "
ALONE = "of several "
"""Before the converter with the library's answer in place of which a model is right that has several."""


class Read(Refusal):
    """What a way of kind SOURCE raises (opera.compilers.Way): which code converts a model, and after NEVER what it never reads
    of that: `onnx_frontend.py:3825 Resize._impl_v18 never reads antialias, axes`; after DROPS what it may read, and
    nothing of what was imported uses. A line a converter.
    """


class Told(Exception):
    """A compiler told its failure by a return value and a log, not by an exception: an adapter raises it in its own words.

    It is the compiler's failure, and asked about as any other: `unsupported` may say that it is a refusal.
    """


class DeclaredOtherwise(Told):
    """What a compiler makes of a model declares another dtype than that has: of one table of dtypes, whatever the operator."""


class NoAnswer(Exception):
    """An adapter tells that the compiler returned nothing, or something that is no output at all: a crash."""


def begins(name: str) -> None:
    """Say in the log of the worker that an operator is run by itself now: if it ends the process, nobody else can tell."""
    os.write(2, f"{name}{BY_ITSELF}\n".encode())


def last(log: str) -> str:
    """Return the operator that was run by itself when its process ended; nothing where that is not told."""
    return next((x.partition(BY_ITSELF.rstrip())[0] for x in reversed(log.splitlines()) if BY_ITSELF.rstrip() in x), "")


def told(value: Any) -> str:
    """Return a number or a string as it reads in a sentence."""
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value:.6g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def pack(tensor: Tensor) -> bytes:
    """Return the bytes of a tensor (not of strings), little-endian, in C order."""
    found: bytes = packed(tensor.data, tensor.dtype)
    return found


def unpack(dtype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Inverse of `pack`."""
    return Tensor(dtype, shape, unpacked(data, dtype, math.prod(shape)))


def of_numpy(array: Any) -> Tensor:
    """Return the tensor of an array that a compiler handed out. Raises CannotCarry for a dtype without encoding."""
    array = np.asarray(array)
    if array.dtype.kind not in "OSU" and array.dtype.name not in CONTAINERS:
        raise CannotCarry(f"opera cannot read an output of dtype {array.dtype}")
    return Tensor.of(array)
