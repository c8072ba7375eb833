"""How a script hands arrays of ml_dtypes to OpenVINO."""

import ml_dtypes
import numpy as np
import openvino

from opera.compilers.recipes.bits import BITS, packed, unpacked
from opera.compilers.recipes.openvino import NAMES, low_tensor


def feed(array):
    if array.dtype.name not in NAMES:
        return openvino.Tensor(array)
    return low_tensor(array.dtype.name, array.shape, array.tobytes())


def read(tensor):
    kind = tensor.element_type.get_type_name()
    name = next((name for name, known in NAMES.items() if known == kind), None)
    if name is None:
        return tensor.data.copy()
    data = np.frombuffer(tensor.data.tobytes(), np.uint8)
    return data.view(getattr(ml_dtypes, name)).reshape(tuple(tensor.shape))


def feed_packed(array):
    if array.dtype.name not in BITS:
        return feed(array)
    return low_tensor(array.dtype.name, array.shape, packed(array.tobytes(), array.dtype.name))


def read_packed(tensor):
    kind, shape = tensor.element_type.get_type_name(), tuple(tensor.shape)
    name = next((name for name in BITS if NAMES.get(name) == kind), None)
    if name is None:
        return read(tensor)
    data = np.frombuffer(unpacked(tensor.data.tobytes(), name, int(np.prod(shape))), np.uint8)
    return data.view(getattr(ml_dtypes, name)).reshape(shape)
