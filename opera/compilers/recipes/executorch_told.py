"""ExecuTorch's runtime raises a number, and prints what it means: what it printed becomes part of the error."""

import ctypes
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr

CHATTER = re.compile(r"^\[cpuinfo_utils\.cpp:\d+\] ")


def told(function, *args):
    """Call a function of the runtime's. What it raises is raised with what its C++ printed, but for its usual chatter.

    It prints to standard error, and by way of Python's `sys.stderr`.
    """
    copy = os.dup(2)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", buffering=1) as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            with redirect_stderr(file):
                return function(*args)
        except RuntimeError as error:
            ctypes.CDLL(None).fflush(None)
            file.seek(0)
            lines = file.read().splitlines()
            raise RuntimeError("\n".join([str(error), *(x for x in lines if not CHATTER.match(x))])) from None
        finally:
            os.dup2(copy, 2)
            os.close(copy)
