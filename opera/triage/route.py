"""By which route a model came to a compiler, where it is not the library's own model, or does otherwise by another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opera import compilers
from opera.triage.sentence import listed

FILES = {"tflite": "by TFLite", "onnx": "by its ONNX file"}
"""Artefact that another exporter made of the library's model → the route."""
OWN = {
    "live": ("given as an object", "an object"),
    "saved-model": ("given as a SavedModel", "a SavedModel"),
    "exported-program": ("as an exported program", "an exported program"),
    "decomposed": ("after run_decompositions()", "a program that is decomposed"),
    "torchscript": ("as TorchScript", "TorchScript"),
}
"""Variant that takes the library's own model → the route, and what is given by it."""
RIGHT, OTHERWISE = "right", "otherwise"
"""What a model shows by another route: it does not fail; it fails in another way, or is refused."""


def by(variant: str) -> str:
    """Return by which way a model comes to a compiler that takes it by several: `as TorchScript`."""
    return OWN[variant][0] if variant in OWN else FILES.get(variant, f"by its variant {variant}")


def route(
    frontend: str,
    variant: str,
    shown: Mapping[str, str],
    given: Sequence[tuple[str, str]] = (),
    other: Sequence[tuple[str, str]] = (),
    *,
    crashes: bool = False,
) -> str:
    """Return the route that a failure is of: `by its ONNX file`, `as an exported program; as TorchScript this model is right`.

    Of other routes this one model was asked, and no other: which of those that fail alike do so by another is not known.

    Empty where it says nothing: the model is the library's own, and fails alike in whatever way it is given.

    Args:
        frontend: `tvm-keras`.
        variant: That fails.
        shown: Other variant of the frontend → RIGHT or OTHERWISE; those by which the same model fails alike are left out.
        given: Of ways by which it does not fail, how it is given else, and how so (`told` of opera.compilers.Way).
        other: The same of ways by which it fails in another way.
        crashes: Whether it gives no outputs: then all that is known of other routes is that they give some.
    """
    compiler, _, library = frontend.rpartition("-")
    artefact = compilers.artefact(compiler, library, variant)
    own = FILES.get(artefact, "") if library != artefact else ""
    does = "runs" if crashes else "is right"
    others = [x for x in OWN if x != variant and x in shown]
    right = [*(f"as {OWN[x][1]}" for x in others if shown[x] == RIGHT), *(x for _, x in given)]
    by = own or (OWN.get(variant, ("", ""))[0] if others else "")
    by = ", ".join(filter(None, (by, *(x for x, _ in (*given, *other)))))
    told = [f"{listed(right)} this model {does}" if right else "", *(f"{x} it fails otherwise" for _, x in other)]
    return "; ".join(filter(None, (by, *told)))
