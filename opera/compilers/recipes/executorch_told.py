"""ExecuTorch's runtime raises a number, and prints what it means: what it printed becomes part of the error."""

import ctypes
import os
import re
import sys
import tempfile

CHATTER = re.compile(r"^\[cpuinfo_utils\.cpp:\d+\] ")


def told(function, *args):
    """Call a function of the runtime's. What it raises is raised with what its C++ printed, but for its usual chatter."""
    copy = os.dup(2)
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            return function(*args)
        except RuntimeError as error:
            ctypes.CDLL(None).fflush(None)
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").splitlines()
            raise RuntimeError("\n".join([str(error), *(x for x in lines if not CHATTER.match(x))])) from None
        finally:
            os.dup2(copy, 2)
            os.close(copy)
