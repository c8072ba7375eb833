"""tract on the CPU. It needs no onnx package: the model file is its only input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from opera.compilers import (
    CONVERSION,
    DECLARED,
    KERNEL,
    OPTIMISATION,
    RECIPES,
    Case,
    Frontend,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.shared import messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy
from opera.programs.values import CONTAINERS, Tensor, Value

NAME = "tract"
PACKAGE = "tract"
PRELOAD = ("tract",)

UNSUPPORTED = messages.table("tract", "onnx")

NODE = r'(?:node|codegen|Evaluating|Eager eval) (?:node )?#\d+ "[^"]*" ([\w<>.]+)|Building node [^\n]*\((\w+)\)'
"""How tract names the operator that it is at, by its own name of it; the last is the innermost."""
PLACES = {
    r"running pass|codegen|during optimisation": OPTIMISATION,
    r"Translating|analyse|Building|translating to fact|Infering": CONVERSION,
    r"Evaluating": KERNEL,
}
"""Words of its stages."""

RECIPE = f"{RECIPES}.tract"

DTYPES = {"BOOL": "bool", "F16": "float16", "F32": "float32", "F64": "float64"} | {
    f"{letter}{bits}": f"{name}{bits}" for letter, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)
}
"""Names of its DatumType → numpy's, of those that it can hand out."""


def version() -> str:
    import tract

    return str(tract.version())


def options() -> dict[str, str]:
    return {"runtime": "default", "threads": "1"}


def prepare() -> None:
    from opera.compilers.recipes import tract as recipe  # noqa: F401 - its import keeps messages short


class Onnx:
    """tract's reader of ONNX models."""

    VARIANTS = (
        Variant("inputs", "onnx"),
        Variant("constants", "onnx-constants", after="rejected"),
    )
    WAYS = (Way("declared", DECLARED, "what tract's typed model states of its outputs"),)
    PLACES: Mapping[str, str] = PLACES

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import tract as recipe

        return recipe.load(str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        from opera.compilers.recipes import tract as recipe

        return loaded if case.way == "declared" else recipe.compile(loaded)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import tract as recipe

        if case.way == "declared":
            return [_stated(compiled, place) for place in range(compiled.output_count())]
        fed = {name: _array(value) for name, value in case.feeds.items()}
        return [of_numpy(array) for array in recipe.run(compiled, fed)]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator that failed, by tract's own name: an ONNX operator's, or what it was made into."""
        named = re.findall(NODE, "" if error is None else str(error))
        return "".join(named[-1]) if named else case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe(load=(f"{RECIPE}:load",), compile=(f"{RECIPE}:compile",), infer=(f"{RECIPE}:run",))


FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx()}


def _array(value: Value) -> np.ndarray[Any, Any]:
    dtype = value.dtype if isinstance(value, Tensor) else f"{type(value).__name__.lower()}s"
    if not isinstance(value, Tensor) or CONTAINERS[dtype] != dtype or dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {dtype} to tract, whose Python interface takes none")
    return value.array()


def _stated(model: Any, place: int) -> Tensor:
    """Return a tensor, of whatever values, in the dtype and shape that a typed model states of an output."""
    from tract import DatumType, TractError

    try:
        fact = model.output_fact(place)
        kind, sizes = DatumType(fact.datum_type()), [str(size) for size in fact.dims()]
    except TractError as error:
        raise CannotCarry(f"opera cannot read what tract states: {error}") from None
    if not all(size.isdecimal() for size in sizes):
        raise CannotCarry(f"opera cannot read a shape that tract leaves open: {', '.join(sizes)}")
    return Tensor.of(np.zeros([int(size) for size in sizes], DTYPES[kind.name]))
