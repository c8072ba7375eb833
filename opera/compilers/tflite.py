"""TensorFlow Lite on the CPU: the TFLiteConverter with its default options, and the interpreter that runs what it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from opera import precision
from opera.compilers import Case, Variant
from opera.compilers.shared import keras_live
from opera.compilers.shared.messages import Rule
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy
from opera.programs.values import Tensor, Value

NAME = "tflite"
PACKAGE = "tensorflow"
PRELOAD = (keras_live.BACKEND, "tensorflow")
PACKAGES = ("tensorflow", "keras")
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {"keras": (Variant("live", "live"),)}

UNSUPPORTED = (
    Rule(
        r"""(?s)'tf\.(\w+)' op is neither a custom op nor a flex op.{,2000}?"tf\.\1"\([^\n]*? : \(tensor<(?:[\d?x]*x)?(\w+)>""",
        r"no TFLite operator for tf.\1 of \2",
        "load",
    ),
    Rule(r"'tf\.(\w+)' op is neither a custom op nor a flex op", r"no TFLite operator for tf.\1", "load"),
    Rule(r"Op type not registered '?(\w+)", r"no kernel for \1"),
    Rule(r"Didn't find op for builtin opcode '(\w+)'", r"no kernel for \1"),
    Rule(r"Encountered unresolved custom op: (\w+)", r"no kernel for the custom operator \1"),
    Rule(r"([Uu]nsupported (?:data )?type:? \w+)", r"\1"),
    Rule(r"Type '?(\w+)'? is not supported by (\w+)", r"\2 does not take \1"),
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1"),
)

SIGNATURE = "serving_default"


def version() -> str:
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise ImportError("No module named 'tensorflow'")


def options() -> dict[str, str]:
    return {"supported_ops": "TFLITE_BUILTINS", "threads": "1", **precision.TENSORFLOW}


def prepare() -> None:
    keras_live.prepare()


def load(case: Case) -> bytes:
    live = keras_live.rebuilt(case)
    with keras_live.graph_of(live):
        data: bytes = live.tflite()
    return data


def compile(loaded: bytes, case: Case) -> Any:
    """Have the interpreter read the model, choose kernels and allocate tensors."""
    from opera.libraries.keras.backend import tensorflow

    interpreter = tensorflow.lite.Interpreter(model_content=loaded, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def infer(compiled: Any, case: Case) -> list[Value]:
    """Run it: inputs and outputs have their names in the model's signature only, and lie in another order than there."""
    run = compiled.get_signature_runner(SIGNATURE)
    known = run.get_input_details()
    outputs = run(**{name: feed(value) for name, value in case.feeds.items() if name in known})
    return [of_numpy(outputs[name]) for name in case.outputs if name in outputs]


def feed(value: Value) -> Any:
    """Return the array of an input, of ml_dtypes' types where numpy has none."""
    import ml_dtypes

    if not isinstance(value, Tensor):
        raise CannotCarry(f"opera cannot feed {type(value).__name__.lower()}s to TFLite")
    low = getattr(ml_dtypes, value.dtype, None)
    array: np.ndarray[Any, Any] = value.array()
    return array if low is None else array.astype(low) if "int" in value.dtype else array.view(low)


def run_file(case: Case) -> list[Value]:
    """Run a model that was converted before."""
    return infer(compile(case.model.read_bytes(), case), case)


def unsupported(stage: str, error: BaseException) -> str | None:
    return keras_live.no_graph(error) or first_rule(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator of TensorFlow or TFLite that a message names, else the operator: converters are compiled."""
    message = "" if error is None else str(error)
    found = re.search(r"'(tfl?\.\w+)' op|Node number \d+ \((\w+)\)|builtin opcode '(\w+)'", message)
    return next((name for name in found.groups() if name), "") if found else case.operator
