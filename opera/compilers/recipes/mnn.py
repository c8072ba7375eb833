"""MNN: its converter, and the module that runs what it writes."""

import os
import subprocess
import sys
import types
from pathlib import Path

import MNN.expr as F
import MNN.nn
import numpy as np

from opera.compilers.recipes.mnn_told import fail, told

# MNN's files state no other dtypes than float32, int32, int8 and uint8: it holds these in another one.
HELD = dict.fromkeys(["float16", "bfloat16", "float64"], "float32")
HELD |= dict.fromkeys(["bool", "int16", "uint16", "uint32", "int64", "uint64"], "int32")
DTYPES_OF = {F.float: "float32", F.int: "int32", F.uint8: "uint8", F.int8: "int8"}


def report_nothing():
    """MNN's command mnnconvert imports a module that installs a package by pip and reports each conversion: not so here."""
    os.environ["PIP_NO_INDEX"] = "1"
    sys.modules["MNN.tools.utils.log"] = types.ModuleType("no reports")


report_nothing()


def convert(model, path, level="1"):
    return converted("ONNX", model, path, level)


def converted(kind, model, path, level):
    """The converter returns True whatever comes of it: there is a file, or else it printed why there is none."""
    options = ["-f", kind, "--modelFile", model, "--MNNModel", path, "--bizCode", "MNN", "--optimizeLevel", level]
    _, said = told(in_a_child if "tensorflow" in sys.modules else in_this_process, ["mnnconvert", *options])
    if not Path(path).is_file():
        fail(said)
    return path


def in_this_process(command):
    import _tools

    _tools.mnnconvert(command)


def in_a_child(command):
    """The converter's protobuf and TensorFlow's do not go into one process. If the child dies, so does this process."""
    code = subprocess.run([sys.executable, "-c", f"import _tools; _tools.mnnconvert({command})"]).returncode
    if code < 0:
        os.kill(os.getpid(), -code)


def load(path, feeds, outputs):
    module, said = told(MNN.nn.load_module_from_file, path, list(feeds), outputs, **precise())
    return module if module is not None else fail(said)


def precise():
    return {"precision_mode": F.PrecisionMode.High, "thread_num": 1}  # else the CPU decides how precisely it computes


def infer(module, feeds, outputs, dtypes):
    info = module.get_info()
    given = [placed(feeds[name], stated.dtype) for name, stated in zip(info["inputNames"], info["inputs"], strict=True)]
    found, said = told(module.forward, given)
    if not found or len(found) != len(outputs):
        fail(said)
    return [read(variable, dtype) for variable, dtype in zip(found, dtypes, strict=True)]


def placed(array, dtype, form=F.NCHW):
    """Return an input, in the dtype that the converted model states for it."""
    if dtype == F.int8:  # there is no way to write these
        return F.cast(placed(array, F.int, form), dtype)
    variable = F.placeholder(list(array.shape), form, dtype)
    if array.size:
        variable.write(np.asarray(array, DTYPES_OF[dtype], order="C"))
    return variable


def read(variable, dtype, form=F.NCHW, held=HELD):
    """Return an output, in the dtype that the model declares where MNN has none such: fractions for whole numbers stay."""
    if variable.data_format == F.NC4HW4:
        variable = F.convert(variable, form)
    if 0 in variable.shape:  # there is nothing that it could hand out
        array = np.empty(variable.shape, DTYPES_OF[variable.dtype])
    else:
        array, said = told(variable.read)
        array = np.array(fail(said) if array is None else array)
    if array.dtype.name not in held.get(dtype, "").split():
        return array
    made = array.astype(dtype)
    fractions = array.dtype.kind == "f" and made.dtype.kind in "biu" and not np.array_equal(made, array)
    return array if fractions else made
