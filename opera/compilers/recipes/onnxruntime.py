"""ONNX Runtime on the CPU."""

import ctypes

import onnxruntime

PRECISE = {  # what the CPU would decide else: how precisely it computes
    "session.x64quantprecision": "1",  # without VNNI, products of uint8 and constant int8 would saturate at 16 bits
    "session.set_denormal_as_zero": "0",
    "mlas.enable_gemm_fastmath_arm64_bfloat16": "0",
}
LOW = "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz uint4 int4 float4_e2m1fn float8_e8m0fnu uint2 int2"
DTYPES = {name: number for number, name in enumerate(LOW.split(), 16)}  # numbers of onnx.TensorProto.DataType


def load(path, threads=1):
    """Create the session: it converts, optimises and assigns kernels."""
    return onnxruntime.InferenceSession(path, session_options(threads), providers=["CPUExecutionProvider"])


def session_options(threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 4
    for name, value in PRECISE.items():
        options.add_session_config_entry(name, value)
    return options


def run(session, feeds, outputs):
    known = {item.name for item in session.get_inputs()}
    return session.run(outputs, {name: value for name, value in feeds.items() if name in known})


def run_low(session, feeds, outputs, feed, read):
    known = {item.name for item in session.get_inputs()}
    fed = {name: feed(value) for name, value in feeds.items() if name in known}
    return [read(value) for value in session.run_with_ort_values(outputs, fed)]


def low_value(dtype, shape, data):
    """Numpy cannot hand these dtypes over: their bytes are copied."""
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), DTYPES[dtype])
    if value.tensor_size_in_bytes() != len(data):
        raise BufferError(f"{len(data)} bytes for {value.tensor_size_in_bytes()}")
    ctypes.memmove(value.data_ptr(), data, len(data))
    return value


def low_data(value):
    size = value.tensor_size_in_bytes()
    return ctypes.string_at(value.data_ptr(), size) if size else b""
