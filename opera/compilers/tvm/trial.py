"""TVM's trial: all of its own passes, and LLVM at its lowest level, in which nothing of TVM's is tested.

The virtual machine has LLVM compile kernels when it starts, at the highest level whatever the target asks for. A library
that the linker makes of them beforehand is compiled at the level asked for, in a third of the time.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any


def machine(module: Any) -> Any:
    """Return the virtual machine of a module that TVM optimised by all its passes, and LLVM did not."""
    import tvm
    from tvm import relax

    executable = compiled(module, 3)
    linked(executable)
    return relax.VirtualMachine(executable, tvm.cpu())


def compiled(module: Any, passes: int) -> Any:
    """Return the executable of a module at this level of TVM's passes, and LLVM's lowest."""
    import tvm

    with tvm.transform.PassContext(opt_level=passes):
        return tvm.compile(module, target=tvm.target.Target({"kind": "llvm", "opt-level": 0}))


def linked(executable: Any) -> bool:
    """Put a library in the place of an executable's kernels; False where it has none, or there is no linker to make one."""
    import tvm

    module = executable.mod
    if not _linker() or [kernels.kind for kernels in module.imports] != ["llvm"]:
        return False
    with tempfile.TemporaryDirectory() as folder:
        objects, library = Path(folder, "kernels.o"), Path(folder, "kernels.so")
        module.imports[0].write_to_file(str(objects), "o")
        # What is not found fails now, not when it is called, which would end the process.
        subprocess.run([_linker(), "-shared", "-z", "now", "-o", library, objects], check=True, capture_output=True)
        loaded = tvm.runtime.load_module(str(library))
    module.clear_imports()
    module.import_module(loaded)
    return True


@cache
def _linker() -> str:
    return shutil.which("ld") or ""
