"""TVM (Relax) on the CPU, as its tutorials have it: compile by the default pipeline, run in the virtual machine."""

import numpy as np
import tvm
import tvm_ffi
from tvm import relax


def compile_module(loaded):
    """Compile; the default pipeline legalises each call in the mode that the model states, training or inference."""
    module, *rest = loaded
    with tvm.transform.PassContext(opt_level=3):
        return relax.VirtualMachine(tvm.compile(module, target=tvm.target.Target("llvm")), tvm.cpu()), *rest


def run(machine, values):
    machine.set_input("main", *values)
    machine.invoke_stateful("main")
    return machine.get_outputs("main")


def read(value):
    if isinstance(value, tvm_ffi.Shape):
        return np.array([int(x) for x in value], dtype=np.int64)
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)


def read_lists(value):
    if isinstance(value, tvm.runtime.Tensor | tvm_ffi.Shape | bool | int | float):
        return read(value)
    return value if value is None else [read_lists(item) for item in value]


def feed_lists(value):
    return [feed_lists(item) for item in value] if isinstance(value, list) else tvm.runtime.tensor(value)
