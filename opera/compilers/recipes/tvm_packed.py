"""How elements of less than a byte go into TVM's runtime and come out of it: several to a byte, the lowest bits first (DLPack,
dlpack.h). `tvm.runtime.tensor` takes no such integers, and puts the first of two floats into the highest bits."""

import ctypes

import ml_dtypes
import numpy as np
import tvm

from opera.compilers.recipes.bits import BITS, packed, unpacked
from opera.compilers.recipes.tvm import read


def feed_packed(array):
    name = array.dtype.name
    if name not in BITS:
        return tvm.runtime.tensor(array)
    data, tensor = packed(array.tobytes(), name), tvm.runtime.empty(array.shape, name)
    ctypes.memmove(tensor.data_ptr(), data, len(data))
    return tensor


def read_packed(value):
    name = str(getattr(value, "dtype", ""))
    if name not in BITS:
        return read(value)
    size = int(np.prod(value.shape))
    data = unpacked(ctypes.string_at(value.data_ptr(), (size * BITS[name] + 7) // 8), name, size)
    return np.frombuffer(data, np.uint8).view(getattr(ml_dtypes, name)).reshape(tuple(value.shape))
