"""How a script hands arrays of ml_dtypes to ONNX Runtime."""

import ml_dtypes
import numpy as np
import onnxruntime

from opera.compilers.recipes.bits import BITS, packed, unpacked
from opera.compilers.recipes.onnxruntime import DTYPES, low_data, low_value


def feed(array):
    if array.dtype.name not in DTYPES:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    return low_value(array.dtype.name, array.shape, array.tobytes())


def read(value):
    name = next((name for name, number in DTYPES.items() if number == value.element_type()), None)
    if name is None:
        return value.numpy()
    return np.frombuffer(low_data(value), np.uint8).view(getattr(ml_dtypes, name)).reshape(value.shape())


def feed_packed(array):
    if array.dtype.name not in BITS:
        return feed(array)
    return low_value(array.dtype.name, array.shape, packed(array.tobytes(), array.dtype.name))


def read_packed(value):
    name = next((name for name in BITS if DTYPES[name] == value.element_type()), None)
    if name is None:
        return read(value)
    data = np.frombuffer(unpacked(low_data(value), name, int(np.prod(value.shape()))), np.uint8)
    return data.view(getattr(ml_dtypes, name)).reshape(value.shape())
