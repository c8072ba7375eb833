"""Asks the text of an .algorithm file of a checkout, which is untrusted: it runs in a process of its own, with limits."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from opera.errors import InvalidTest
from opera.libraries.onnx import codec, wrap
from opera.libraries.onnx.wrap import Parts
from opera.programs.program import Instance
from opera.programs.values import CONTAINERS, Tensor, Value

CHILD = Path(__file__).with_name("algorithm_child.py")
SECONDS = 10.0
"""Wall seconds that one call may take."""
LIVES = 3
"""How often the process is started: a text that ends it more often is left alone."""
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": os.defpath}
MOST = 1 << 28
"""Bytes of an answer that are read."""


class Algorithms:
    """One file's function, asked again and again. Use it in a `with` statement: at its end the process is gone."""

    def __init__(self, text: str, operator: str) -> None:
        self._first = json.dumps({"text": text, "function": f"{operator}_compute"}).encode() + b"\n"
        self._process: subprocess.Popen[bytes] | None = None
        self._names: list[str] = []
        self._lives, self._dead = LIVES, ""

    def __enter__(self) -> Algorithms:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, instance: Instance, made: Parts) -> list[Value]:
        """Compute the outputs of a call. Raises InvalidTest where the text cannot."""
        self._start()
        arguments, data = self._arguments(instance, made)
        try:
            answer, stream = self._exchange(json.dumps(arguments).encode() + b"\n" + data)
            if "error" in answer:
                raise InvalidTest(f"the algorithm raises {answer['error']}")
            outputs = [_read(stream, form) for form in answer["outputs"]]
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            self._end()
            raise InvalidTest(f"the algorithm ends its process: {type(error).__name__}: {error}") from None
        return _as_declared(instance, made, outputs)

    def _start(self) -> None:
        if self._process is not None:
            return
        if self._dead or not self._lives:
            raise InvalidTest(self._dead or "the algorithm ended its process too often")
        self._lives -= 1
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=ENVIRONMENT, bufsize=0,
        )  # fmt: skip
        try:
            told, _ = self._exchange(self._first)
        except (OSError, ValueError, EOFError) as error:
            self._end()
            raise InvalidTest(f"the algorithm cannot be read: {error}") from None
        if "error" in told:
            self._dead = f"the algorithm cannot be read: {told['error']}"
            self._end()
            raise InvalidTest(self._dead)
        self._names = [str(x) for x in told["names"]]

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _exchange(self, data: bytes) -> tuple[dict[str, Any], _Stream]:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        stream = _Stream(self._process.stdin, self._process.stdout, time.monotonic() + SECONDS)
        stream.write(data)
        answer = json.loads(stream.line())
        if not isinstance(answer, dict):
            raise ValueError("no answer")
        return answer, stream

    def _arguments(self, instance: Instance, made: Parts) -> tuple[dict[str, Any], bytes]:
        """Return what its parameters are given: `x_0` is the first input, `x` all of them, an attribute has its own name."""
        kinds = wrap.attribute_kinds(*_version(instance))
        held = iter([x.value for x in instance.inputs])
        arguments: dict[str, Any] = {}
        parts: list[bytes] = []
        for name in self._names:
            place = name.removeprefix("x_")
            if name == "x":
                forms = [_form(x.value) for x in instance.inputs]
                arguments[name] = {"list": [form for form, _ in forms]}
                parts += [data for _, data in forms]
            elif name in kinds or name in instance.params:
                if name in instance.params:
                    arguments[name] = {"plain": _plain(instance.params[name])}
                elif (default := _default(instance, name)) is not None:
                    arguments[name] = {"plain": default}
            else:
                given = [x.value for x in instance.inputs]
                form, data = _form(
                    given[int(place)] if place.isdigit() and int(place) < len(given) else next(held, None)
                )
                arguments[name] = form
                parts.append(data)
        return arguments, b"".join(parts)


class _Stream:
    """Writes to and reads from a process until a time."""

    def __init__(self, send: IO[bytes], receive: IO[bytes], until: float) -> None:
        self._send, self._receive, self._until = send, receive, until
        self._held = b""

    def write(self, data: bytes) -> None:
        """Write all. Raises OSError where the process is gone, or does not read in time."""
        os.set_blocking(self._send.fileno(), False)
        left = memoryview(data)
        while left:
            self._wait(self._send, selectors.EVENT_WRITE)
            left = left[os.write(self._send.fileno(), left) :]

    def line(self) -> bytes:
        while b"\n" not in self._held:
            self._more()
        line, _, self._held = self._held.partition(b"\n")
        return line

    def read(self, count: int) -> bytes:
        """Return so many bytes."""
        if not 0 <= count <= MOST:
            raise ValueError("an answer too large")
        while len(self._held) < count:
            self._more()
        data, self._held = self._held[:count], self._held[count:]
        return data

    def _more(self) -> None:
        self._wait(self._receive, selectors.EVENT_READ)
        data = os.read(self._receive.fileno(), 1 << 20)
        if not data:
            raise EOFError("it ended")
        self._held += data
        if len(self._held) > MOST:
            raise ValueError("an answer too large")

    def _wait(self, stream: IO[bytes], event: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            if not selector.select(max(0.0, self._until - time.monotonic())):
                raise TimeoutError("it takes too long")


def _version(instance: Instance) -> tuple[str, int, str]:
    domain, name = wrap.split(instance.operator)
    return name, wrap.opset(instance).get(domain, 1), domain


def _default(instance: Instance, name: str) -> Any:
    """Return an attribute's default by the schema, None where it has none: then the function's own default holds."""
    import onnx

    operator, version, domain = _version(instance)
    attribute = onnx.defs.get_schema(operator, version, domain).attributes[name]
    if not attribute.default_value.type:
        return None
    return _plain(onnx.helper.get_attribute_value(attribute.default_value))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    raise InvalidTest(f"the algorithm cannot be given a {type(value).__name__}")


def _form(value: Value) -> tuple[Any, bytes]:
    value = codec.materialise(value)
    if value is None:
        return {"plain": None}, b""
    if not isinstance(value, Tensor) or CONTAINERS[value.dtype] not in (value.dtype, "object"):
        raise InvalidTest("the algorithm cannot be given what numpy has no type for")
    if value.dtype == "string":
        return {"strings": [x.decode("utf-8", "replace") for x in value.array().ravel()], "shape": value.shape}, b""
    return {"dtype": np.dtype(value.dtype).newbyteorder("<").str, "shape": value.shape}, value.data


def _read(stream: _Stream, form: dict[str, Any]) -> Tensor:
    shape = tuple(int(x) for x in form["shape"])
    if "strings" in form:
        return Tensor.of(np.array([str(x) for x in form["strings"]], dtype=object).reshape(shape))
    dtype = np.dtype(str(form["dtype"]))
    if dtype.kind not in "biufc" or any(x < 0 for x in shape):
        raise ValueError("an answer of another type")
    count = int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
    return Tensor.of(np.frombuffer(stream.read(count), dtype).reshape(shape))


def _as_declared(instance: Instance, made: Parts, outputs: list[Tensor]) -> list[Value]:
    """Return outputs of the types that ONNX infers: numpy computes in types of its own."""
    inferred = wrap.inferred(instance, made).graph.output
    if len(inferred) != len(outputs):
        raise InvalidTest(f"the algorithm returns {len(outputs)} outputs, not {len(inferred)}")
    names = [codec.DTYPES.get(x.type.tensor_type.elem_type, "") for x in inferred]
    found = zip(outputs, names, strict=True)
    return [
        output if "string" in (output.dtype, name) or not name else codec.cast(output, name) for output, name in found
    ]
