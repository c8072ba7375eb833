"""The program that runs the text of an .algorithm file: `python -I algorithm_child.py`, with limits, in a folder of its own.

The text is untrusted. It can open no file and no connection, no file can grow, and it cannot take much memory or time; where
the kernel has Landlock, it can change nothing of the file system either. A first line of JSON has the text and the name of its
function; then each request is a line of JSON with the raw bytes of its arrays behind, and so is each answer. Nothing is
pickled; numpy alone is needed.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import resource
import struct
import sys
from typing import Any, BinaryIO

import numpy as np

SECONDS = 120
MEMORY = 4 << 30


CREATE_RULESET, RESTRICT_SELF, NO_NEW_PRIVILEGES = 444, 446, 38
"""Linux, on every architecture: system calls of Landlock, and the option of prctl that it needs."""
RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Version of Landlock → how many rights on files it knows."""


def forbid_files() -> bool:
    """Forbid all of the file system, and connections, by Landlock; say whether the kernel has it."""
    libc = ctypes.CDLL(None)
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1 or libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    rights = (1 << max(count for since, count in RIGHTS.items() if since <= version)) - 1
    rules = struct.pack("QQ", rights, 3)[: 16 if version >= 4 else 8]
    ruleset = libc.syscall(CREATE_RULESET, rules, len(rules), 0)
    done: bool = ruleset >= 0 and libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    if ruleset >= 0:
        os.close(ruleset)
    return done


def limit() -> None:
    """Set the limits; the three standard streams stay, and no other can be opened."""
    forbid_files()
    for what, most in (
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def read(stream: BinaryIO, form: Any) -> Any:
    """Return the value of a form, whose bytes follow."""
    if form is None or not isinstance(form, dict):
        return form
    if "strings" in form:
        return np.array(form["strings"], dtype=object).reshape(form["shape"])
    count = int(np.prod(form["shape"], dtype=np.int64)) * np.dtype(form["dtype"]).itemsize
    return np.frombuffer(stream.read(count), form["dtype"]).reshape(form["shape"]).copy()


def write(array: Any) -> tuple[dict[str, Any], bytes]:
    """Return the form of an array, and its bytes."""
    array = np.asarray(array)
    if array.dtype.kind in "SU" or (array.dtype.kind == "O" and all(isinstance(x, str) for x in array.ravel())):
        return {"strings": [str(x) for x in array.ravel()], "shape": array.shape}, b""
    if array.dtype.kind == "O":
        raise TypeError("it returns what is no array of numbers or strings")
    return {"dtype": array.dtype.str, "shape": array.shape}, array.tobytes()


def main() -> None:
    receive, send = sys.stdin.buffer, sys.stdout.buffer
    first = json.loads(receive.readline())
    np.linspace(0, 1, 2), np.einsum("i,i", np.ones(2), np.ones(2))  # what numpy imports late
    sys.stdout = sys.stderr = io.StringIO()
    limit()
    namespace: dict[str, Any] = {"np": np, "numpy": np}
    try:
        exec(compile(first["text"], "algorithm", "exec"), namespace)
        function = namespace[first["function"]]
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount])
        told: dict[str, Any] = {"names": names}
    except BaseException as error:
        told = {"error": f"{type(error).__name__}: {error}"[:300]}
    send.write(json.dumps(told).encode() + b"\n")
    send.flush()
    while line := receive.readline():
        arguments = {name: read_any(receive, form) for name, form in json.loads(line).items()}
        try:
            result = function(**arguments)
            outputs = list(result) if isinstance(result, tuple) else [result]
            parts = [write(x) for x in outputs]
            answer: dict[str, Any]
            answer, data = {"outputs": [form for form, _ in parts]}, b"".join(x for _, x in parts)
        except BaseException as error:
            answer, data = {"error": f"{type(error).__name__}: {error}"[:300]}, b""
        send.write(json.dumps(answer).encode() + b"\n" + data)
        send.flush()


def read_any(stream: BinaryIO, form: Any) -> Any:
    """Return an array, a list of arrays, or a plain value."""
    if isinstance(form, dict) and "list" in form:
        return [read(stream, item) for item in form["list"]]
    if isinstance(form, dict) and "plain" in form:
        return form["plain"]
    return read(stream, form)


if __name__ == "__main__":
    main()
