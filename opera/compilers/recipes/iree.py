"""IREE: its importer of ONNX models, its compiler for the CPU, and the runtime that runs what it makes."""

import ctypes
from pathlib import Path

import iree.compiler.api
import iree.compiler.tools.import_onnx.__main__ as importer
import iree.runtime

from opera.compilers.recipes.iree_told import diagnosed, fail

BACKEND = "--iree-hal-target-backends=llvm-cpu"
FLAGS = [
    BACKEND,
    "--iree-llvmcpu-target-cpu=generic",  # else the machine decides how precisely it computes
]
DOUBLE = "--iree-input-demote-f64-to-f32=false"
"""Without it, a model with values of float64 fails when it is called; others are left to the default."""


def phases():
    """Return the function of the library's C interface that sets a phase to begin with, or to end with."""
    library = iree.compiler.api.ctypes_dl._dylib
    known = library.ireeCompilerInvocationSetCompileFromPhase, library.ireeCompilerInvocationSetCompileToPhase
    for function in known:
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return known


iree.compiler.api._initializeGlobalCL("iree", "--mlir-disable-threading")
begin, end = phases()


def convert(model, path):
    """Write the model in MLIR, as the command iree-import-onnx does."""
    importer.main(importer.parse_arguments([model, "-o", path]))
    return path


def load(path, flags=FLAGS):
    """Convert what was imported to the operators that the compiler begins with."""
    session = iree.compiler.api.Session()
    session.set_flags(*flags, *([DOUBLE] if "f64>" in Path(path).read_text(encoding="utf-8") else []))
    said = diagnosed(session.context, path)
    work = session.invocation()
    end(work._inv_p, b"input")
    if not work.parse_source(iree.compiler.api.Source.open_file(session, path)) or not work.execute():
        fail(said)
    return work, said


def compile(loaded):
    work, said = loaded
    begin(work._inv_p, b"input")
    end(work._inv_p, b"end")
    if not work.execute():
        fail(said)
    made = iree.compiler.api.Output.open_membuffer()
    work.output_vm_bytecode(made)
    config = iree.runtime.Config("local-sync")
    module = iree.runtime.VmModule.copy_buffer(config.vm_instance, bytes(made.map_memory()))
    names = module.function_names
    main = next(name for name in names if f"{name}$async" in names)
    # Loaded once: what draws numbers goes on from one call to the next, and begins anew with each loading.
    return iree.runtime.load_vm_module(module, config)[main]


def run(compiled, feeds, dtypes):
    found = compiled(*feeds.values())
    found = found if isinstance(found, (list, tuple)) else [found]
    # Copied, for a view of what to_host returns does not keep its memory from being freed.
    return [read(value.to_host().copy(), dtype) for value, dtype in zip(found, dtypes, strict=True)]


def read(array, dtype):
    """Its integers have no sign, by design: what the model declares as unsigned comes with the same bits."""
    return array.view(dtype) if f"u{array.dtype}" == dtype else array
