"""By which route a model came to a compiler: where it is not the library's own model, or another way to give it is right."""

from __future__ import annotations

from collections.abc import Mapping

from opera import compilers

FILES = {"tflite": "by TFLite", "onnx": "by its ONNX file"}
"""Artefact that another exporter made of the library's model → the route."""
OWN = {
    "live": ("given as an object", "an object"),
    "saved-model": ("given as a SavedModel", "a SavedModel"),
    "exported-program": ("as an exported program", "an exported program"),
    "torchscript": ("as TorchScript", "TorchScript"),
}
"""Variant that takes the library's own model → the route, and what is given by it."""


def route(frontend: str, variant: str, shown: Mapping[str, str]) -> str:
    """Return the route that a failure is of: `by its ONNX file`, `as an exported program; as TorchScript it is right`.

    Empty where it says nothing: the model is the library's own, and no other way of giving it is known to be right.

    Args:
        frontend: `tvm-keras`.
        variant: That fails.
        shown: Other variant of the frontend → what the same model showed by it (`passes`, `pass`, ...).
    """
    compiler, _, library = frontend.rpartition("-")
    artefact = compilers.artefact(compiler, library, variant)
    own = FILES.get(artefact, "") if library != artefact else ""
    right = [OWN[x][1] for x in OWN if x != variant and shown.get(x, "").startswith("pass")]
    by = own or (OWN.get(variant, ("", ""))[0] if right else "")
    return f"{by}; {' and '.join(f'as {x}' for x in right)} it is right" if right else by
