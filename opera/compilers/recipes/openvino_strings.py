"""How a script hands strings to OpenVINO."""

import numpy as np
import openvino

from opera.compilers.recipes.openvino import string_tensor


def feed(array):
    if array.dtype != object:
        return openvino.Tensor(array)
    return string_tensor([x.decode() if isinstance(x, bytes) else x for x in array.ravel()], array.shape)


def read(tensor):
    strings = tensor.element_type.get_type_name() == "string"
    return np.array(tensor.str_data, dtype=object).reshape(tuple(tensor.shape)) if strings else tensor.data.copy()
