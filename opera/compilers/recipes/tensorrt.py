"""TensorRT: its ONNX parser, its builder, and an execution context on memory that cuda-python allocates."""

import os
import sys

import numpy as np
import onnx
import tensorrt as trt
from cuda.bindings import runtime as cuda

NUMPY = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
    "UINT8": np.uint8,
}


class ParserError(RuntimeError):
    """The parser returned False."""


class BuildError(RuntimeError):
    """The builder, or the runtime, returned None."""


class ExecutionError(RuntimeError):
    """The execution context, or CUDA, said that something failed."""


class Log(trt.ILogger):
    """What TensorRT logs as an error: its only word where a call returns None or False."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, msg):
        if severity in (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR):
            self.errors.append(msg)

    def told(self, what):
        return "\n".join(self.errors) or what


LOG = Log()  # TensorRT keeps the first logger of a process for all that comes later


def load(path):
    """Have the parser make a network. It is strongly typed, as every network is from TensorRT 11 on."""
    LOG.errors.clear()
    builder = trt.Builder(LOG)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, LOG)
    if not parser.parse_from_file(path):
        errors = [described(parser.get_error(place)) for place in range(parser.num_errors)]
        raise ParserError("\n".join(errors) or LOG.told("parse_from_file returned False"))
    return builder, network, parser, doubles(path)  # the parser holds the weights


def described(error):
    """Return a parser's error, with the name of its code: the numbers are other ones from release to release."""
    where = f"in {error.func()} at {error.file()}:{error.line()}"
    code = str(error.code()).rpartition(".")[2]  # ErrorCode.name is broken in TensorRT 10.0
    return f"{code}: {error.desc()} ({where}, node {error.node()} of {error.node_operator()})"


def doubles(path):
    """Return the outputs that the model declares as float64: TensorRT casts them down to float32, as it documents."""
    outputs = onnx.load(path, load_external_data=False).graph.output
    return [x.name for x in outputs if x.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE]


def build(loaded, feeds, level=None):
    """Build the engine, and have the runtime load it."""
    builder, network, _, casts = loaded
    LOG.errors.clear()
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)  # by default float32 may be computed with the 10 bits of TF32
    if hasattr(trt.BuilderFlag, "STRICT_NANS"):  # by default x - x may become 0, and x / x 1, whatever x is
        config.set_flag(trt.BuilderFlag.STRICT_NANS)
    if level is not None:
        config.builder_optimization_level = level
    add_profile(builder, network, config, feeds)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise BuildError(LOG.told("build_serialized_network returned None"))
    runtime = trt.Runtime(LOG)
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise BuildError(LOG.told("deserialize_cuda_engine returned None"))
    return runtime, engine, casts


def add_profile(builder, network, config, feeds):
    """State the shapes of inputs that the model leaves open, and the values of those that TensorRT computes shapes from."""
    profile, used = builder.create_optimization_profile(), False
    for place in range(network.num_inputs):
        tensor = network.get_input(place)
        fed = feeds.get(tensor.name)
        if fed is None:
            continue
        if tensor.is_shape_tensor:
            profile.set_shape_input(tensor.name, *[fed.ravel().tolist()] * 3)
            used = True
        elif -1 in tuple(tensor.shape):
            profile.set_shape(tensor.name, *[tuple(fed.shape)] * 3)
            used = True
    if used:
        config.add_optimization_profile(profile)


def to_bytes(array, kind):
    """Return the bytes of an array as the engine takes them."""
    narrow = array.dtype == np.float64 and kind == "FLOAT"
    return np.ascontiguousarray(array, np.float32 if narrow else array.dtype).tobytes()


def from_bytes(data, kind, shape, double):
    """Return an output as an array; double tells that the model declares it as float64."""
    array = np.frombuffer(data, NUMPY[kind]).reshape(shape)
    return array.astype(np.float64 if double else array.dtype)


def infer(compiled, feeds, outputs, feed=to_bytes, read=from_bytes):
    """Run the engine once, on a stream of its own."""
    _, engine, casts = compiled
    LOG.errors.clear()
    context = engine.create_execution_context()
    accepted(context is not None, "create_execution_context", "")
    names = [engine.get_tensor_name(place) for place in range(engine.num_io_tensors)]
    kinds = {name: engine.get_tensor_dtype(name).name for name in names}
    stream, memory = done(cuda.cudaStreamCreate()), Memory()
    try:
        for name in names:
            if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                data = np.frombuffer(feed(feeds[name], kinds[name]), np.uint8)
                address = memory.get(data.size, on_host(engine, name))
                memory.copy(address, data.ctypes.data, data.size)
                accepted(context.set_input_shape(name, tuple(feeds[name].shape)), "set_input_shape", name)
                accepted(context.set_tensor_address(name, address), "set_tensor_address", name)
        results = [Output(engine, context, name, memory) for name in outputs]
        accepted(context.execute_async_v3(stream), "execute_async_v3", "")
        done(cuda.cudaStreamSynchronize(stream))
        found = [(x.data(), kinds[x.name], x.shape, x.name in casts) for x in results]
    finally:
        memory.free()
        cuda.cudaStreamDestroy(stream)
    return [read(*one) for one in found]


def on_host(engine, name):
    """Whether TensorRT wants a tensor in the memory of the host, as it does where it computes a shape."""
    return engine.get_tensor_location(name) == trt.TensorLocation.HOST


class Memory:
    """Memory of the GPU, or of the host, until it is freed."""

    def __init__(self):
        self.addresses, self.arrays = [], []

    def get(self, size, host):
        """Return an address of so many bytes, one at least: it must not be null, even of nothing."""
        if host:
            self.arrays.append(np.zeros(max(size, 1), np.uint8))
            return self.arrays[-1].ctypes.data
        self.addresses.append(int(done(cuda.cudaMalloc(max(size, 1)))))
        return self.addresses[-1]

    def copy(self, to, address, size):
        if size:
            done(cuda.cudaMemcpy(to, address, size, cuda.cudaMemcpyKind.cudaMemcpyDefault))

    def free(self):
        for address in self.addresses:
            cuda.cudaFree(address)


class Output(trt.IOutputAllocator):
    """Where an output goes. TensorRT asks for memory where the shape is known only once it is computed."""

    def __init__(self, engine, context, name, memory):
        trt.IOutputAllocator.__init__(self)
        self.name, self.memory, self.host = name, memory, on_host(engine, name)
        self.size_of, self.shape = engine.get_tensor_dtype(name).itemsize, tuple(context.get_tensor_shape(name))
        if -1 in self.shape:
            accepted(context.set_output_allocator(name, self), "set_output_allocator", name)
        else:
            self.address = memory.get(self.size(), self.host)
            accepted(context.set_tensor_address(name, self.address), "set_tensor_address", name)

    def reallocate_output(self, tensor_name, memory, size, alignment):
        self.address = self.memory.get(size, self.host)
        return self.address

    def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)

    def size(self):
        """Return how many bytes the elements have: those of 4 bits lie two to a byte."""
        return int(np.ceil(np.prod(self.shape, dtype=np.int64) * self.size_of))

    def data(self):
        found = np.zeros(self.size(), np.uint8)
        self.memory.copy(found.ctypes.data, self.address, found.size)
        return found.tobytes()


def accepted(answer, call, name):
    if not answer:
        raise ExecutionError(LOG.told(f"{call} returned False{f' for {name}' if name else ''}"))


def done(answer):
    """Return what a function of CUDA returned beside success."""
    error, *found = answer
    if error == cuda.cudaError_t.cudaSuccess:
        return found[0] if found else None
    text = f"{error.name}: {cuda.cudaGetErrorString(error)[1].decode()}"
    if cuda.cudaDeviceSynchronize()[0] != cuda.cudaError_t.cudaSuccess:
        print(f"the process has lost the GPU: {text}", file=sys.stderr, flush=True)
        os.abort()  # whatever it ran later would fail, too
    raise ExecutionError(LOG.told(text))
