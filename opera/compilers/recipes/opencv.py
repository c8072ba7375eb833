"""OpenCV's DNN module on the CPU."""

import cv2
import numpy as np
import onnx

cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(False)  # runs must not depend on whether the machine has a GPU


def load(path):
    """Read the file by the new engine, or by the classic one where that does not take it: the default."""
    net = cv2.dnn.readNetFromONNX(path)
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.setPreferableTarget(cv2.dnn.DNN_TARGET_CPU)
    return net, {x.name: x.type.tensor_type for x in onnx.load(path).graph.output}


def run(loaded, feeds, outputs):
    net, declared = loaded
    for name, value in feeds.items():
        net.setInput(value if value.ndim else cv2.UMat(value), name)  # of arrays without dimensions it takes no others
    return [read(value, declared[name]) for name, value in zip(outputs, net.forward(list(outputs)), strict=True)]


def read(value, declared):
    """The CPU computes float16 as float32, by design; bfloat16 comes as its bits, and what is empty as None."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
    shape = [x.dim_value for x in declared.shape.dim]
    if value is None and 0 in shape:
        return np.zeros(shape, dtype)
    if value is None or (value.dtype, dtype) not in ((np.float32, np.float16), (np.uint16, "bfloat16")):
        return value
    return value.astype(dtype) if dtype == np.float16 else value.view(dtype)
