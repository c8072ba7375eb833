"""XLA, the compiler behind jit_compile=True, on the CPU, as TensorFlow drives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from opera import precision
from opera.compilers import APART, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way, tflite
from opera.compilers.shared import keras_live, messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.programs.values import Value

NAME = "xla"
TITLE = "XLA"
PACKAGE = "tensorflow"
PRELOAD = (keras_live.BACKEND, "tensorflow")

UNSUPPORTED = messages.table("tensorflow", "xla")

version = tflite.version


def options() -> dict[str, str]:
    return {"jit_compile": "True", "flags": " ".join(_recipe().FLAGS), **precision.TENSORFLOW}


def prepare() -> None:
    """Set XLA's flags, which it reads when it compiles for the first time."""
    _recipe()
    keras_live.prepare()


def _recipe() -> Any:
    from opera.compilers.recipes import xla as recipe
    from opera.libraries.keras import backend  # noqa: F401 - TensorFlow, quietly

    return recipe


class Keras:
    """The model as a function that XLA compiles when it is first called."""

    VARIANTS = (Variant("live", "live"),)
    PACKAGES = ("tensorflow", "keras")
    WAYS = (Way("graph", APART, "the same graph on TensorFlow's own kernels (jit_compile=False)", "load"),)

    def load(self, case: Case) -> Any:
        """Trace the model, and convert the graph to XLA's own operators (HLO)."""
        live = keras_live.rebuilt(case)
        with keras_live.graph_of(live):
            load = _recipe().load if not case.way else _traced
            return load(live.model, dict(zip(case.feeds, live.inputs, strict=True)), live.signature)

    def compile(self, loaded: Any, case: Case) -> Any:
        """Call it once, which compiles it."""
        return _recipe().compile_call(loaded)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        return keras_live.results(_recipe().infer(compiled))

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return keras_live.no_graph(error) or first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator of TensorFlow whose kernel failed, where the message names it, else the operator."""
        message = "" if error is None else str(error)
        found = re.search(r"No registered '(\w+)' OpKernel|\[Op:(\w+)\]", message)
        return next((name for name in found.groups() if name), "") if found else case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{RECIPES}.xla"
        return Recipe((f"{own}:load",), (f"{own}:compile_call",), (f"{own}:infer",))


def _traced(model: Any, feeds: Mapping[str, Any], signature: Any) -> tuple[Any, Any, list[Any]]:
    """Return what the recipe's `load` does, of a graph that TensorFlow itself runs."""
    import tensorflow as tf

    def serve(*inputs: Any) -> Any:
        return model(list(inputs))

    call = tf.function(serve, input_signature=signature, autograph=False, jit_compile=False)
    return model, call, [tf.constant(array, spec.dtype) for array, spec in zip(feeds.values(), signature, strict=True)]


FRONTENDS: Mapping[str, Frontend] = {"keras": Keras()}
