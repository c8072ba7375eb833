"""TensorFlow Lite on the CPU: the TFLiteConverter with its default options, and LiteRT's interpreter of what it writes.

TensorFlow's own `tf.lite.Interpreter` is deprecated, and LiteRT (the package ai-edge-litert) is what it became.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from opera import precision
from opera.compilers import INTERFACE, LESS, OWN, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.shared import keras_live, messages, tflite_models
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, Made, of_numpy
from opera.programs.values import Tensor, Value

NAME = "tflite"
TITLE = "TensorFlow Lite"
PACKAGE = "tensorflow ai-edge-litert"
PRELOAD = (keras_live.BACKEND, "tensorflow", "ai_edge_litert.interpreter")

UNSUPPORTED = messages.table("tensorflow", "tflite")
WAYS = (
    Way("undelegated", LESS, "without XNNPACK (BUILTIN_WITHOUT_DEFAULT_DELEGATES)"),
    Way("reference", OWN, "the converted file on TFLite's reference kernels (BUILTIN_REF)"),
)
"""How LiteRT's interpreter can run a file otherwise."""
PLACES = {r"\AInvalid tensor (?:size|index)|\ATensor (?:data )?is null": INTERFACE}
"""What its Python wrapper says of a tensor that it does not hand out, once the model has run."""


def version() -> str:
    """Return the version of the converter, which is TensorFlow's, and that of the interpreter."""
    litert = metadata.version("ai-edge-litert")
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return f"{metadata.version(name)}, ai-edge-litert {litert}"
        except metadata.PackageNotFoundError:
            continue
    raise ImportError("No module named 'tensorflow'")


def options() -> dict[str, str]:
    return {"supported_ops": "TFLITE_BUILTINS", "threads": "1", **precision.TENSORFLOW}


def prepare() -> None:
    keras_live.prepare()


class Keras:
    """The converter's own file is what the interpreter loads: an export that belongs to the compiler."""

    VARIANTS = (Variant("live", "live", exports="model.tflite"),)
    PACKAGES = ("tensorflow", "keras", "ai_edge_litert")
    MAKES = "tflite"
    WAYS = (*WAYS, tflite_models.OPERATORS)
    PLACES: Mapping[str, str] = PLACES

    def export(self, case: Case, path: Path) -> None:
        from opera.compilers.recipes import tflite as recipe

        live = keras_live.rebuilt(case)
        with keras_live.graph_of(live):
            recipe.export(live.model, str(path), live.signature)

    def load(self, case: Case) -> str:
        """Conversion was all of it: nothing is left but to name the file."""
        if case.way == tflite_models.OPERATORS.name:
            raise Made(" ".join(tflite_models.operators(case.model)))
        return str(case.model)

    def compile(self, loaded: str, case: Case) -> Any:
        """Have the interpreter read the model, choose kernels and allocate tensors."""
        from opera.libraries.keras import backend  # noqa: F401 - TensorFlow, quietly

        return interpreter(loaded, case.way)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        """Run it: inputs and outputs have their names in the model's signature only, and lie in another order than there.

        What Keras exports for other compilers has no signature: inputs have their own names there, outputs their order.
        """
        from opera.compilers.recipes import interpreter as recipe

        feeds = {name: feed(value) for name, value in case.feeds.items()}
        run = recipe.infer if compiled.get_signature_list() else _by_place
        outputs = run(compiled, feeds, case.outputs)
        return [of_numpy(array) for array in outputs]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return keras_live.no_graph(error) or first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator of TensorFlow or TFLite that a message names, else the operator: converters are compiled."""
        message = "" if error is None else str(error)
        found = re.search(r"'(tfl?\.\w+)' op|Node number \d+ \((\w+)\)|builtin opcode '(\w+)'", message)
        return next((name for name in found.groups() if name), "") if found else case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        run = f"{RECIPES}.interpreter"
        return Recipe((f"{RECIPES}.tflite:export",), (f"{run}:allocate",), (f"{run}:infer",))


def _by_place(interpreter: Any, feeds: Mapping[str, Any], outputs: tuple[str, ...]) -> list[Any]:
    for item in interpreter.get_input_details():
        interpreter.set_tensor(item["index"], feeds[item["name"]])
    interpreter.invoke()
    return [interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()][: len(outputs)]


def interpreter(path: str, way: str) -> Any:
    """Return LiteRT's interpreter of a file, of other kernels where it is to go one of WAYS."""
    if not way:
        from opera.compilers.recipes import interpreter as recipe

        return recipe.allocate(path)
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kind = OpResolverType.BUILTIN_REF if way == "reference" else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = Interpreter(model_content=Path(path).read_bytes(), num_threads=1, experimental_op_resolver_type=kind)
    made.allocate_tensors()
    return made


FRONTENDS: Mapping[str, Frontend] = {"keras": Keras()}


def feed(value: Value) -> Any:
    """Return the array of an input, of ml_dtypes' types where numpy has none."""
    import ml_dtypes

    if not isinstance(value, Tensor):
        raise CannotCarry(f"opera cannot feed {type(value).__name__.lower()}s to TFLite")
    low = getattr(ml_dtypes, value.dtype, None)
    array: np.ndarray[Any, Any] = value.array()
    return array if low is None else array.astype(low) if "int" in value.dtype else array.view(low)
