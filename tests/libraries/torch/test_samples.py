from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opera.programs.program import parse_captured

SCRIPT = """
import sys
from pathlib import Path
from opera.libraries.torch import hooks as capture
from opera.libraries.torch import samples
from opera.capture.recorder import Recorder
from opera.errors import SourceError
from torch.testing._internal import common_methods_invocations as invocations

class Broken:
    formatted_name = "broken"
    def supported_dtypes(self, device): return [capture.torch.float32]
    def sample_inputs(self, *args, **kwargs): raise ValueError

class Endless(Broken):
    formatted_name = "endless"
    def sample_inputs(self, *args, **kwargs):
        while True: pass

recorder = Recorder("samples")
capture.install(recorder, {"mode": ["on"], "modules": ["on"]})
recorder.begin("part", Path(sys.argv[1]))
wanted = {"add", "nn.functional.dropout", "cat", "zeros", "masked.sum"}
invocations.op_db[:] = [Broken(), Endless(), *(op for op in invocations.op_db if op.name in wanted)]
samples.SECONDS = 1
tests, failed = samples.run(recorder, "opinfo/float32")
assert tests > 100 and failed < 5, (tests, failed)
assert recorder.left_out["samples cannot be made: ValueError"] == 1
assert recorder.left_out["samples that take more than 1 s of CPU"] == 1
recorder.close()
for part in ("opinfo/load", "other/float32", "opinfo"):
    try:
        samples.run(recorder, part)
    except SourceError:
        continue
    raise AssertionError(part)
"""


def test_the_samples_of_the_wheel_are_driven(tmp_path: Path) -> None:
    script, spool = tmp_path / "script.py", tmp_path / "spool"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script), str(spool)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    captured = [parse_captured(line) for line in spool.read_bytes().splitlines()]
    operators = {found.program.operator for found in captured}
    assert {"torch.add", "torch.Tensor.add_", "torch.nn.functional.dropout", "torch.cat", "torch.zeros"} <= operators
    assert {found.provenance.test for found in captured if found.program.operator == "torch.cat"} >= {"cat"}
    dtypes = {x.value.dtype for found in captured for x in found.program.inputs}
    assert "float32" in dtypes and "float64" not in dtypes
