"""The operator instance: one operator signature with one parameter setting."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from opera.errors import CorpusError
from opera.programs import values
from opera.programs.values import Value


class Operand(msgspec.Struct, frozen=True):
    """A tensor input under its formal name; `value` is None where an optional input is left out."""

    name: str
    value: Value


class Instance(msgspec.Struct, frozen=True):
    """One operator with every parameter's value and every tensor input.

    Attributes:
        library: The library the operator belongs to (`onnx`, `torch`, `keras`).
        operator: The operator signature, the library's public name of it (`Conv`, `ai.onnx.ml::Scaler`).
        params: Parameter name → value, tensors excepted.
        inputs: Tensor inputs in the operator's order.
        outputs: Names of the outputs asked for, empty strings where one is left out.
        context: What else decides the meaning (`opset`, `domain`, `mode`, an expanded `body`), by the library's module.
    """

    library: str
    operator: str
    params: dict[str, Value]
    inputs: tuple[Operand, ...]
    outputs: tuple[str, ...]
    context: dict[str, Value]

    def form(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/corpus.md)."""
        return {
            "library": self.library,
            "operator": self.operator,
            "params": {name: values.encode(value) for name, value in self.params.items()},
            "inputs": [{"name": x.name, "value": values.encode(x.value)} for x in self.inputs],
            "outputs": list(self.outputs),
            "context": {name: values.encode(value) for name, value in self.context.items()},
        }

    def canonical(self) -> bytes:
        """Return the canonical bytes that the identity is taken from."""
        return msgspec.json.encode(self.form(), order="sorted")

    @property
    def id(self) -> str:
        """Content address: 20 hexadecimal digits of the SHA-256 of the canonical form."""
        return identity(self.canonical())


class Provenance(msgspec.Struct, frozen=True):
    """Where an instance was seen: migration source (`onnx-node-tests`), file and test within it."""

    source: str
    file: str
    test: str


class Captured(msgspec.Struct, frozen=True):
    """What capture yields: an instance, where it came from, and what its test expects of it, if it says so."""

    instance: Instance
    provenance: Provenance
    expected: tuple[Value, ...] | None = None
    rtol: float | None = None
    atol: float | None = None

    def form(self) -> dict[str, Any]:
        """Return the JSON form of one line of a corpus file or capture spool."""
        return {
            "instance": self.instance.form(),
            "provenance": msgspec.to_builtins(self.provenance),
            "expected": None if self.expected is None else [values.encode(x) for x in self.expected],
            "rtol": self.rtol,
            "atol": self.atol,
        }


def identity(canonical: bytes) -> str:
    """Return the content address of canonical bytes."""
    return hashlib.sha256(canonical).hexdigest()[:20]


def parse_instance(data: bytes | dict[str, Any]) -> Instance:
    """Inverse of `Instance.form`; raises CorpusError for anything else."""
    form = _json(data) if isinstance(data, bytes) else data
    try:
        names = (form["library"], form["operator"], *form["outputs"], *(x["name"] for x in form["inputs"]))
        if not all(isinstance(name, str) and len(name) <= 500 for name in names):
            raise CorpusError("a name of an instance is no string of at most 500 characters")
        return Instance(
            form["library"],
            form["operator"],
            {str(name): values.decode(value) for name, value in form["params"].items()},
            tuple(Operand(x["name"], values.decode(x["value"])) for x in form["inputs"]),
            tuple(form["outputs"]),
            {str(name): values.decode(value) for name, value in form["context"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorpusError(f"an instance is malformed: {type(error).__name__}: {error}") from None


def parse_captured(data: bytes | dict[str, Any]) -> Captured:
    """Inverse of `Captured.form`; raises CorpusError for anything else."""
    form = _json(data) if isinstance(data, bytes) else data
    try:
        expected = form.get("expected")
        return Captured(
            parse_instance(form["instance"]),
            msgspec.convert(form["provenance"], Provenance),
            None if expected is None else tuple(values.decode(x) for x in expected),
            msgspec.convert(form.get("rtol"), float | None),
            msgspec.convert(form.get("atol"), float | None),
        )
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise CorpusError(f"a corpus line is malformed: {type(error).__name__}: {error}") from None


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorpusError(f"no JSON: {error}") from None
