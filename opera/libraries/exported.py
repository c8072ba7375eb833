"""Checks of exported files in their own runtime, so that no compiler is blamed for what an exporter wrote wrongly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from opera import plugins
from opera.errors import InvalidTest
from opera.oracle import comparison as oracle
from opera.programs import migrated
from opera.programs.case import Case
from opera.programs.migrated import Manifest
from opera.programs.values import RandomTensor, Value


class WrongExport(Exception):
    """The exported file does not compute what the library computes, or no runtime was there that could tell."""


def check_onnx(manifest: Manifest, directory: Path, model: Path, expected: list[Value] | None = None) -> None:
    """Check an exported ONNX file in ONNX Runtime, see `check`. Outputs have their order in the file, and maybe other names.

    What ONNX Runtime computes otherwise is right nevertheless where ONNX's reference evaluator gives what is expected.
    """

    def run(case: Case) -> list[Value]:
        import onnx

        graph = onnx.load(case.model, load_external_data=False).graph
        named = msgspec.structs.replace(case, outputs=tuple(output.name for output in graph.output))
        return _run("onnxruntime", "onnx", named)

    def meant(case: Case) -> list[Value]:
        found: list[Value] = plugins.load("opera.libraries", "library", "onnx").evaluated(case.model, case.feeds)
        return found

    check(manifest, directory, model, "ONNX Runtime", run, expected, meant)


def check_tflite(manifest: Manifest, directory: Path, model: Path, expected: list[Value] | None = None) -> None:
    """Check an exported TFLite file in TensorFlow Lite's interpreter, see `check`."""

    def run(case: Case) -> list[Value]:
        return _run("tflite", "keras", case)

    check(manifest, directory, model, "the TFLite interpreter", run, expected)


def _run(runtime: str, library: str, case: Case) -> list[Value]:
    """Run a file by the frontend of a registered compiler."""
    compiler = plugins.load("opera.compilers", "compiler", runtime)
    compiler.prepare()
    frontend = compiler.FRONTENDS[library]
    outputs: list[Value] = frontend.infer(frontend.compile(frontend.load(case), case), case)
    return outputs


def check(
    manifest: Manifest,
    directory: Path,
    model: Path,
    runtime: str,
    run: Callable[[Case], list[Value]],
    expected: list[Value] | None,
    meant: Callable[[Case], list[Value]] | None = None,
) -> None:
    """Run an exported file. Raises WrongExport where its outputs are not the `expected` ones (None: those of the test).

    A file that its own runtime does not run proves nothing either way, and is refused too: a failure of a compiler on it must
    be the compiler's own.

    Args:
        meant: Computes what its operators mean, whatever the runtime makes of them.
    """
    inputs = [x.tensor() if isinstance(x, RandomTensor) else x for x in migrated.read_values(directory, "inputs")]
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    case = Case(manifest.library, manifest.operator, model, feeds, manifest.outputs)
    try:
        outputs = run(case)
    except Exception as error:
        raise WrongExport(f"{runtime} does not run the exported file: {error}") from error
    wanted = migrated.read_values(directory, "expected") if expected is None else expected
    found = oracle.compare(wanted, outputs, manifest.outputs, manifest.rtol, manifest.atol)
    lawful = "nondeterministic" in manifest.tags and found.symptom == "value"
    if found.symptom and not lawful and meant is not None:
        with suppress(InvalidTest):
            outputs = meant(case)
            lawful = not oracle.compare(wanted, outputs, manifest.outputs, manifest.rtol, manifest.atol).symptom
    if found.symptom and not lawful:
        raise WrongExport(f"{runtime} computes something else from the exported file: {found.message}")
