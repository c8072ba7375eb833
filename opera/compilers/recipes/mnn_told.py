"""MNN prints what goes wrong, and raises nothing: what it printed becomes the error."""

import ctypes
import os
import re
import sys
import tempfile

CHATTER = re.compile(
    r"^(The device supports|Start to |ONNX Model |inputTensors|outputTensors|Converted |Check it out ==> |\s*$)"
)
REMARK = re.compile(r"^Unsupported data type! \d+$")
"""What MNN prints of a constant of truth values, and runs the model all the same: it tells of a failure only alone."""


def told(function, *args, **options):
    """Call a function of MNN's; return what it returned, and what it and its C++ printed but for its usual chatter."""
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            result = function(*args, **options)
        except SystemError:  # a message of MNN's own is printed, and the call has no result
            result = None
        finally:
            ctypes.CDLL(None).fflush(None)
            for number, copy in enumerate(kept, 1):
                os.dup2(copy, number)
                os.close(copy)
        file.seek(0)
        lines = file.read().decode("utf-8", "replace").splitlines()
    lines = [re.sub(r"^\[\d\d:\d\d:\d\d\] (:\d+: )?", "", line).strip() for line in lines]
    lines = [line for line in lines if not CHATTER.match(line)]
    return result, "\n".join([line for line in lines if not REMARK.match(line)] or lines)


def fail(said):
    kind = MemoryError if "code=1 in " in said else RuntimeError  # its error code OUT_OF_MEMORY
    raise kind(said or "MNN failed without a word")
