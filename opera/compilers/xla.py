"""XLA, the compiler behind jit_compile=True, on the CPU, as TensorFlow drives it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from opera import precision
from opera.compilers import Case, Variant, tflite
from opera.compilers.shared import keras_live
from opera.compilers.shared.messages import Rule
from opera.compilers.shared.messages import unsupported as first_rule
from opera.programs.values import Value

NAME = "xla"
PACKAGE = "tensorflow"
PRELOAD = (keras_live.BACKEND, "tensorflow")
PACKAGES = ("tensorflow", "keras")
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {"keras": (Variant("live", "live"),)}

FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_cpu_enable_fast_math=false",
    "--xla_allow_excess_precision=false",  # else what the CPU has no bfloat16 for stays float32 in between
)
CONSISTENT = "--xla_cpu_enable_platform_dependent_math=false"
"""A flag since TensorFlow 2.21; an XLA that does not know a flag ends the process."""

UNSUPPORTED = (
    Rule(r"No registered '(\w+)' OpKernel for XLA", r"no XLA kernel for \1"),
    Rule(r"([^\n:]{1,80} must be a compile-time constant)", r"\1"),
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?(?:supported|implemented))\b", r"\1"),
)


class Jitted(msgspec.Struct):
    """The model as a function that XLA compiles when it is first called, and what it is called with."""

    live: Any
    call: Any
    inputs: list[Any]


version = tflite.version


def options() -> dict[str, str]:
    return {"jit_compile": "True", "flags": " ".join(flags()), **precision.TENSORFLOW}


def flags() -> tuple[str, ...]:
    """Return XLA's flags, as far as this version has them; it reads them when it compiles for the first time."""
    major, minor = map(int, version().split(".")[:2])
    return (*FLAGS, CONSISTENT) if (major, minor) >= (2, 21) else FLAGS


def prepare() -> None:
    os.environ["XLA_FLAGS"] = " ".join(flags())
    keras_live.prepare()


def load(case: Case) -> Jitted:
    """Trace the model, and convert the graph to XLA's own operators (HLO)."""
    from opera.libraries.keras.backend import tensorflow as tf

    live = keras_live.rebuilt(case)

    def serve(*inputs: Any) -> Any:
        return live.model(list(inputs))

    call = tf.function(serve, input_signature=live.signature, autograph=False, jit_compile=True)
    fed = [tf.constant(item, spec.dtype) for item, spec in zip(live.inputs, live.signature, strict=True)]
    with keras_live.graph_of(live):
        call.experimental_get_compiler_ir(*fed)(stage="hlo")
    return Jitted(live, call, fed)


def compile(loaded: Jitted, case: Case) -> Jitted:
    """Call it once, which compiles it."""
    loaded.call(*loaded.inputs)
    return loaded


def infer(compiled: Jitted, case: Case) -> list[Value]:
    from opera.libraries.keras.backend import tensorflow as tf

    keras_live.reset(compiled.live.model)
    return keras_live.results(tf.nest.flatten(compiled.call(*compiled.inputs)))


def unsupported(stage: str, error: BaseException) -> str | None:
    return keras_live.no_graph(error) or first_rule(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator of TensorFlow whose kernel failed, where the message names it, else the operator."""
    message = "" if error is None else str(error)
    found = re.search(r"No registered '(\w+)' OpKernel|\[Op:(\w+)\]", message)
    return next((name for name in found.groups() if name), "") if found else case.operator
