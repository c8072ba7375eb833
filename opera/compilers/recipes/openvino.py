"""OpenVINO on the CPU."""

import os

import numpy as np
import openvino

os.environ["ONEDNN_DEFAULT_FPMATH_MODE"] = "STRICT"
# On some CPUs it would else compute in bfloat16, and quantise activations beside compressed weights.
PRECISE = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY", "CPU_DENORMALS_OPTIMIZATION": "NO"}
SETTINGS = {**PRECISE, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
CORE = openvino.Core()
CORE.set_property("CPU", SETTINGS)

NAMES = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
    "float4_e2m1fn": "f4e2m1",
    "int4": "i4",
    "uint4": "u4",
    "uint2": "u2",
}


def load(path):
    return CORE.read_model(path)


def compile_model(model):
    names = input_names(model)
    return CORE.compile_model(model, "CPU"), names


def input_names(model):
    """An input that is passed through loses its own names to the output's, so they are taken before it is compiled."""
    return [port.get_names() | {port.get_node().get_friendly_name()} for port in model.inputs]


def infer(compiled, feeds, outputs, feed=openvino.Tensor, read=lambda tensor: tensor.data.copy()):
    """Run it. OpenVINO drops inputs that it does not use; what lost its name is found by its type, or by its place."""
    compiled, names = compiled
    request, left, fed = compiled.create_infer_request(), dict(feeds), []
    for port, known in zip(compiled.inputs, names, strict=True):
        likely = sorted(left, key=lambda name: name not in known)
        fed.append(feed(left.pop(next(name for name in likely if name in known or fits(port, feed(left[name]))))))
        request.set_tensor(port, fed[-1])
    request.infer()
    named = {name: port for port in compiled.outputs for name in port.get_names()}
    ports = [named.get(name) for name in outputs]
    return [read(request.get_tensor(port)) for port in (compiled.outputs if None in ports else ports)]


def fits(port, tensor):
    shape = openvino.PartialShape(list(tensor.shape))
    return tensor.element_type == port.element_type and port.partial_shape.compatible(shape)


def low_tensor(dtype, shape, data):
    """OpenVINO takes no arrays of such dtypes: their bytes are copied."""
    tensor = openvino.Tensor(getattr(openvino.Type, NAMES[dtype]), openvino.Shape(shape))
    if data:
        tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    return tensor


def string_tensor(texts, shape):
    return openvino.Tensor(np.array(texts, np.str_).reshape(shape))
