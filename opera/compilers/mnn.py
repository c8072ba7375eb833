"""MNN on the CPU: its converter, and the module that runs what it writes.

MNN's own command `mnnconvert` imports `MNN.tools.utils.log`, which installs a package by pip and reports every conversion to
its makers. The converter itself is the extension module `_tools`, which does neither; in place of that other module is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from opera.compilers import LESS, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.shared import messages, tflite_models
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, Made, of_numpy
from opera.programs.values import Tensor, Value

NAME = "mnn"
TITLE = "MNN"
PACKAGE = "MNN tflite"
PRELOAD = ("_tools", "MNN")

RECIPE = f"{RECIPES}.mnn"
UNSUPPORTED = messages.table("mnn", "converter", "module")
UNOPTIMISED = Way("unoptimised", LESS, "converted without graph optimisations (--optimizeLevel 0)", "load")


def version() -> str:
    return metadata.version("MNN")


def options() -> dict[str, str]:
    return {"precision": "high", "threads": "1", "optimizeLevel": "1"}


def prepare() -> None:
    """Nothing is set for a whole process: threads and precision are the module's."""


class Onnx:
    """MNN's importer of ONNX models."""

    VARIANTS: tuple[Variant, ...] = (
        Variant("inputs", "onnx", exports="model.mnn"),
        Variant("constants", "onnx-constants", after="rejected", exports="model.mnn"),
    )
    PACKAGES = ("_tools", "MNN", "_mnncengine", f"{RECIPES}.mnn_told")
    """The last raises what MNN prints."""
    COMPUTES_IN: Mapping[str, str] = {"float64": "float32"}
    WAYS: tuple[Way, ...] = (UNOPTIMISED,)

    def export(self, case: Case, path: Path) -> None:
        from opera.compilers.recipes import mnn as recipe

        recipe.convert(str(case.model), str(path), _level(case))

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import mnn as recipe

        return recipe.load(str(case.model), case.feeds, list(case.outputs))

    def compile(self, loaded: Any, case: Case) -> Any:
        """Nothing is left to compile: kernels are chosen when shapes are known."""
        return loaded

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import mnn as recipe

        return [
            of_numpy(array) for array in recipe.infer(compiled, _feeds(case, recipe.HELD), case.outputs, case.dtypes)
        ]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator, ONNX's or MNN's own, that a message names, else the case's: it tells no place in its sources."""
        return _named(error) or case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe((f"{RECIPE}:convert", f"{RECIPE}:load"), (), (f"{RECIPE}:infer",))


class Keras(Onnx):
    """MNN's importer of TensorFlow Lite models, by which Keras models get to it."""

    VARIANTS = (Variant("tflite", "tflite", preload=("tflite",), exports="model.mnn"),)
    WAYS = (UNOPTIMISED, tflite_models.OPERATORS)

    def export(self, case: Case, path: Path) -> None:
        from opera.compilers.recipes import mnn_tflite as recipe

        _beside(path).write_text(json.dumps(tflite_models.nodes(case.model)), encoding="utf-8")
        recipe.convert_tflite(str(case.model), str(path), _level(case))

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import mnn_tflite as recipe

        if case.way == tflite_models.OPERATORS.name:
            raise Made(" ".join(name for name, _ in _nodes(case.model)) or tflite_models.NONE)
        return recipe.load_tflite(str(case.model))

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import mnn_tflite as recipe

        feeds = _feeds(case, recipe.HELD_OF_TFLITE)
        return [of_numpy(array) for array in recipe.infer_tflite(compiled, feeds, case.outputs, case.dtypes)]

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator of TFLite that a message names, by itself or by its result (`functional_1/GatherV2`), or that
        the model is of, else the layer as `expanded LSTM`."""
        if found := _named(error):
            return found
        nodes, said = _nodes(case.model), "" if error is None else str(error)
        results = {x: name for name, made in nodes for x in made}
        if named := [x for x in results if re.search(rf"(?<![\w/]){re.escape(x)}(?![\w/])", said)]:
            return results[max(named, key=len)]
        codes = tflite_models.telling(name for name, _ in nodes)
        return codes[0] if len(codes) == 1 else f"expanded {case.operator.rpartition('.')[2]}"

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{RECIPE}_tflite"
        return Recipe((f"{own}:convert_tflite", f"{own}:load_tflite"), (), (f"{own}:infer_tflite",))


FRONTENDS: Mapping[str, Frontend] = {"keras": Keras(), "onnx": Onnx()}


def _named(error: BaseException | None) -> str:
    found = re.search(r"(?:ONNX::|NOT_SUPPORTED_OP: \[ )(\w+)", "" if error is None else str(error))
    return found[1] if found else ""


def _nodes(model: Path) -> list[tuple[str, list[str]]]:
    """Return the nodes of the TFLite model that a model is, or was converted of: operators, and what each makes."""
    kept = _beside(model)
    if not kept.exists():
        return tflite_models.nodes(model)
    found: list[tuple[str, list[str]]] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def _beside(converted: Path) -> Path:
    """Return where that lies of a converted model."""
    return converted.with_name("nodes.json")


def _level(case: Case) -> str:
    return "0" if case.way == UNOPTIMISED.name else "1"


def _feeds(case: Case, held: Mapping[str, str]) -> dict[str, Any]:
    """Return the arrays of a case; from then on numpy knows bfloat16 by name, where an output is declared so."""
    if "bfloat16" in case.dtypes:
        import ml_dtypes  # noqa: F401
    return {name: fed(value, held) for name, value in case.feeds.items()}


def fed(value: Value, held: Mapping[str, str]) -> Any:
    """Return the array of an input. Raises CannotCarry where MNN has no dtype for it, or none that holds it."""
    if not isinstance(value, Tensor):
        raise CannotCarry(f"opera cannot feed {type(value).__name__.lower()}s to MNN")
    if value.dtype not in {*held, "float32", "int32", "int8", "uint8"}:
        raise CannotCarry(f"opera cannot feed {value.dtype} to MNN")
    array: np.ndarray[Any, Any] = value.array()
    if value.dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    holding = held.get(value.dtype, value.dtype).split()[0]
    if array.dtype.kind in "iu" and not np.array_equal(array.astype(holding), array):
        raise CannotCarry(f"opera cannot feed {value.dtype} to MNN that {holding} does not hold")
    return array
