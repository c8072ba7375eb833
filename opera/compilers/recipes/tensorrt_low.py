"""How a script hands arrays of ml_dtypes to TensorRT."""

import ml_dtypes
import numpy as np

from opera.compilers.recipes.bits import packed, unpacked
from opera.compilers.recipes.tensorrt import from_bytes, to_bytes

LOW = {"BF16": "bfloat16", "FP8": "float8_e4m3fn", "INT4": "int4", "FP4": "float4_e2m1fn", "E8M0": "float8_e8m0fnu"}


def feed(array, kind):
    return packed(array.tobytes(), array.dtype.name) if array.dtype.name in LOW.values() else to_bytes(array, kind)


def read(data, kind, shape, double):
    if kind not in LOW:
        return from_bytes(data, kind, shape, double)
    data = unpacked(data, LOW[kind], int(np.prod(shape)))
    return np.frombuffer(data, np.uint8).view(getattr(ml_dtypes, LOW[kind])).reshape(shape)
