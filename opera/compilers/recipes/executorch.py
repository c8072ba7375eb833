"""ExecuTorch: an exported program is lowered and written as a .pte file, which its runtime loads and runs."""

from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Runtime

from opera.compilers.recipes.executorch_told import told


def lower_xnnpack(model, path):
    """Lower it as ExecuTorch's documentation does for CPUs: XNNPACK is given what it takes, the kernels have the rest."""
    return lower(model, path, [XnnpackPartitioner()])


def lower_portable(model, path):
    """Lower it for ExecuTorch's own kernels."""
    return lower(model, path, [])


def lower(model, path, partitioners):
    edge = to_edge_transform_and_lower(torch.export.load(model), partitioner=partitioners)
    Path(path).write_bytes(edge.to_executorch().buffer)
    return path


def load(path):
    """Load the file, by one thread: kernels are looked up, and XNNPACK makes its own of its parts."""
    told(portable_lib._unsafe_reset_threadpool, 1)
    program = told(Runtime.get().load_program, path)
    return program, told(program.load_method, "forward")


def infer(loaded, args, to_numpy):
    """Run it. The program is kept as long as its method, which needs it."""
    _, method = loaded
    return [to_numpy(x) for x in told(method.execute, [dense(x, x.stride()) for x in args])]


def dense(tensor, strides):
    """Lay a tensor out in the order of dimensions that the program was exported with: the file states that, and no gaps."""
    order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
    return tensor.permute(order).contiguous().permute([order.index(dim) for dim in range(tensor.dim())])
