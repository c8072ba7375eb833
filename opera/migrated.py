"""The migrated test on disk, where the library side and the compiler side meet.

A test is one folder of the workspace, `tests/<first two digits>/<id>/`, holding `manifest.json`, `inputs.msgpack`,
`expected.msgpack` and one file for each artefact that the manifest names. It carries everything that is needed to see a
finding again. This module needs numpy and msgspec only.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from opera import values
from opera.errors import WorkspaceError
from opera.values import Value


class Artefact(msgspec.Struct, frozen=True):
    """One form of the model.

    Attributes:
        file: File name in the test's folder.
        feeds: Names of the model's inputs, a subset of the manifest's `inputs` (the others are constants in the model).
    """

    file: str
    feeds: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True):
    """What a migrated test is.

    Attributes:
        test: Content address: instance + exporter version.
        instance: Id of the instance.
        library, operator: As in the instance.
        exporter: What made the artefacts, name → version.
        inputs, outputs: Names, in the order of `inputs.msgpack` and `expected.msgpack`.
        artefacts: Artefact name (`onnx`, `onnx-constants`) → file and feeds.
        reference: Where the expected outputs are from: `test`, or `evaluator` where the test states none.
        rtol, atol: The test's own tolerance, or None for the dtype's.
        tags: Facts that oracles and screens use, such as `nondeterministic`.
    """

    test: str
    instance: str
    library: str
    operator: str
    exporter: dict[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    artefacts: dict[str, Artefact]
    reference: str = "test"
    rtol: float | None = None
    atol: float | None = None
    tags: tuple[str, ...] = ()


def folder(root: Path, test: str) -> Path:
    """Return the folder of a test under `root`, a workspace's `tests` folder."""
    return root / test[:2] / test


def write(
    directory: Path, manifest: Manifest, inputs: list[Value], expected: list[Value], files: dict[str, bytes]
) -> None:
    """Write a test; its manifest comes last, so that a folder without one is an unfinished test."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    (directory / "inputs.msgpack").write_bytes(pack(inputs))
    (directory / "expected.msgpack").write_bytes(pack(expected))
    temporary = directory / f"manifest.{os.getpid()}"
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    temporary.replace(directory / "manifest.json")


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of the test in `directory`."""
    try:
        return msgspec.json.decode((directory / "manifest.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise WorkspaceError(
            f"the migrated test in {directory} cannot be read: {error}",
            fix="delete that folder; the next `opera run` makes the test again",
        ) from None


def read_values(directory: Path, which: str) -> list[Value]:
    """Return the values of `inputs` or `expected`, in the manifest's order."""
    return [_unplain(form) for form in msgspec.msgpack.decode((directory / f"{which}.msgpack").read_bytes())]


def pack(items: list[Value]) -> bytes:
    """Return the bytes of a values file; `read_values` is its inverse."""
    return msgspec.msgpack.encode([_plain(item) for item in items])


def _plain(value: Value) -> object:
    """Tensors keep raw bytes in msgpack; every other value keeps its JSON form."""
    match value:
        case values.Tensor():
            return ["t", value.dtype, list(value.shape), value.data]
        case values.Sequence():
            return ["s", value.type, [_plain(item) for item in value.items]]
        case values.Optional():
            return ["o", value.type, _plain(value.value)]
    return ["v", values.encode(value)]


def _unplain(form: list[object]) -> Value:
    match form:
        case ["t", str(dtype), list(shape), bytes(data)]:
            return values.Tensor(dtype, tuple(shape), data)
        case ["s", str(kind), list(items)]:
            return values.Sequence(kind, tuple(_unplain(item) for item in items))
        case ["o", str(kind), list(inner)]:
            return values.Optional(kind, _unplain(inner))
        case ["v", inner]:
            return values.decode(inner)
    raise WorkspaceError("a stored value is malformed", fix="delete the test's folder; `opera run` makes it again")
