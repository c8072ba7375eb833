"""What a compiler is given. Needs numpy and msgspec only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from opera.programs.values import Value


class Case(msgspec.Struct, frozen=True):
    """What a compiler is given: the model file, what to feed, and the names of the outputs in order.

    Attributes:
        model: The artefact's file, or that which the frontend's own exporter made of it (opera.compilers.Variant.exports).
        feeds: Input name → value (Tensor, Sequence or Optional of opera.programs.values), in the model's input order.
        outputs: Names of the outputs.
        variant, artefact: Names of the route that is tried, and of what it consumes.
        way: Name of the frontend's way (opera.compilers.Way) to run it otherwise than users do, empty for theirs.
        live: Rebuilds the library's own model (opera.libraries.Exporting.live), where the artefact is `live`.
        dtypes: dtype that the model declares for each output, empty for what is no tensor: a compiler whose own types are fewer
            hands out another one by design. None at all where a case is judged from its names.
        constants: Names of the inputs of the test that the artefact holds itself, in its initializers.
    """

    library: str
    operator: str
    model: Path
    feeds: dict[str, Value]
    outputs: tuple[str, ...]
    variant: str = ""
    artefact: str = ""
    live: Callable[[], Any] | None = None
    way: str = ""
    dtypes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()


def remembered(library: str, operator: str, variant: str, artefact: str, constants: tuple[str, ...] = ()) -> Case:
    """Return the case of a verdict that is judged anew from what is stored: its names alone, no model and no feeds."""
    return Case(library, operator, Path(), {}, (), variant, artefact, constants=constants)
