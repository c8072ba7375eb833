"""The migrated test on disk, where the library side and the compiler side meet.

A test is one folder of the workspace, `tests/<first two digits>/<id>/`, holding `manifest.json`, `inputs.msgpack`,
`expected.msgpack` and one file for each artefact that the manifest names. Artefacts that it only offers are made when a
frontend first asks for them; `export-<artefact>.json` beside the file tells how that went. The folder carries everything
that is needed to see a finding again. This module needs numpy and msgspec only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from opera.errors import WorkspaceError
from opera.programs import values
from opera.programs.values import Value

CONSTANTS = "-constants"
"""How the name of an artefact ends in which the model holds shapes, axes and the like as constants."""
LIVE = "live"
"""The artefact that is the library's own model, rebuilt in the process (opera.libraries.Exporting.live)."""


class Artefact(msgspec.Struct, frozen=True):
    """One form of the model.

    Attributes:
        file: File name in the test's folder.
        feeds: Names of the model's inputs, a subset of the manifest's `inputs` (the others are constants in the model).
    """

    file: str
    feeds: tuple[str, ...]

    def constants(self, inputs: Iterable[str]) -> tuple[str, ...]:
        """Return those of the manifest's inputs that the model holds itself."""
        return tuple(name for name in inputs if name not in self.feeds)


class Manifest(msgspec.Struct, frozen=True):
    """What a migrated test is.

    Attributes:
        test: Content address: instance + exporter version.
        instance: Id of the instance.
        library, operator: As in the instance.
        exporter: What made the artefacts, name → version.
        inputs, outputs: Names, in the order of `inputs.msgpack` and `expected.msgpack`.
        artefacts: Artefact name (`onnx`, `onnx-constants`, `live`) → file and feeds.
        offers: Names of the artefacts that `Library.export` can be asked for.
        reference: Where the expected outputs are from: `test`, or what computed them where the test states none (`evaluator`,
            `eager`, or whom the migration source asked: `onnxruntime`).
        rtol, atol: The test's own tolerance, or None for the dtype's.
        tags: Facts that oracles and screens use, such as `nondeterministic`, or `reference-disputed` where two references
            computed different outputs when the program was generated.
        needs: What a compiler must know to run it: domain of operators → the oldest version that the program means the same
            with. Empty for libraries without versioned operators, and in tests made before opera told it.
        operators: Likewise, operator → the oldest version of it.
    """

    test: str
    instance: str
    library: str
    operator: str
    exporter: dict[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    artefacts: dict[str, Artefact]
    offers: tuple[str, ...] = ()
    reference: str = "test"
    rtol: float | None = None
    atol: float | None = None
    tags: tuple[str, ...] = ()
    needs: dict[str, int] = {}
    operators: dict[str, int] = {}

    @property
    def constants(self) -> tuple[str, ...]:
        """What is fed to one artefact, and is held by another as a constant."""
        fed = [set(x.feeds) for x in self.artefacts.values()]
        return tuple(name for name in sorted(set[str]().union(*fed)) if any(name not in x for x in fed))


class Export(msgspec.Struct, frozen=True):
    """How it went to make an artefact that a test offers: the artefact, or the exporter's error, and seconds inside it.

    `rules` are digests of the comparison by which the exported file was found right or wrong.
    """

    artefact: Artefact | None
    symptom: str = ""
    message: str = ""
    seconds: float = 0.0
    rules: str = ""


def folder(root: Path, test: str) -> Path:
    """Return the folder of a test under `root`, a workspace's `tests` folder."""
    return root / f"{test[:2]}/{test}"


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


def save_export(directory: Path, name: str, export: Export) -> None:
    """Store how the export of an artefact went, after its file is written."""
    temporary = directory / f"export-{name}.{os.getpid()}"
    temporary.write_bytes(msgspec.json.encode(export))
    temporary.replace(directory / f"export-{name}.json")


def read_export(directory: Path, name: str) -> Export | None:
    """Return how the export of an artefact went, None where it was not tried (or its record is damaged: try again)."""
    try:
        return msgspec.json.decode((directory / f"export-{name}.json").read_bytes(), type=Export)
    except (OSError, msgspec.DecodeError):
        return None


def artefact(manifest: Manifest, directory: Path, name: str) -> Artefact | None:
    """Return an artefact that is there: one that was made with the test, or exported since."""
    export = None if name in manifest.artefacts else read_export(directory, name)
    return manifest.artefacts.get(name) if export is None else export.artefact


def asked_for(manifest: Manifest, directory: Path, name: str) -> Artefact | None:
    """Return an artefact as `artefact` does; of a test that holds nothing as a constant the one in which all is fed, where that
    of constants is asked for."""
    found = artefact(manifest, directory, name)
    if found is None and name.endswith(CONSTANTS) and not manifest.constants:
        return artefact(manifest, directory, name.removesuffix(CONSTANTS))
    return found


def read_values(directory: Path, which: str) -> list[Value]:
    """Return the values of `inputs` or `expected`, in the manifest's order."""
    return unpack((directory / f"{which}.msgpack").read_bytes())


def unpack(data: bytes) -> list[Value]:
    """Return the values of a values file; inverse of `pack`."""
    return [_unplain(form) for form in msgspec.msgpack.decode(data)]


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
