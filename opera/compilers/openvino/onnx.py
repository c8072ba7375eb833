"""OpenVINO's reader of ONNX models, and what all its frontends have in common: how models are compiled and run."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opera.compilers import (
    APART,
    CONVERSION,
    COUNTED,
    DECLARED,
    EACH,
    GIVEN,
    KERNEL,
    LAWFUL,
    LESS,
    MADE,
    MISTYPED,
    NODE,
    OPTIMISATION,
    OWN,
    RECIPES,
    SETTING,
    THREADS,
    Case,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.openvino import alone, evaluate, interpreter, lawful
from opera.compilers.shared import messages
from opera.compilers.shared.messages import last_location
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import BITS, CannotCarry, Made, of_numpy, pack, unpack
from opera.oracle.messages import of_operator
from opera.programs.values import Optional, Tensor, Value

UNSUPPORTED = messages.table("openvino", "core")
"""The words of its core, its readers and its CPU plugin, which every route goes through."""

GENERIC = r"core/src/node\.cpp|inference/src/|unconverted_ops_report"
"""Files that stand in every trace and tell nothing about the operator."""

VALIDATED = r"While validating ONNX node '<Node\((\w+)\)"
"""How releases up to 2026.0 name the operator that they fail to translate; later ones list it (`-- Conv-22 with a message`)."""

BEFORE_OPERATORS = r"(?:frontend|translate_session|input_model)\.cpp:"
"""Places that fail for whatever operator the model has."""

INNER = r"prim::|\w+Mark$|torch::None$|<built-in function getitem>"
"""What is reported unconverted besides the operator that is."""

RECIPE = f"{RECIPES}.openvino"

UNFUSED = {"SNIPPETS_MODE": "DISABLE", "LP_TRANSFORMS_MODE": "NO"}
"""What the CPU plugin lets be turned off of its optimisations: internal properties, and no more than a part of them."""
UNHINTED = {"INFERENCE_PRECISION_HINT": "dynamic", "EXECUTION_MODE_HINT": "PERFORMANCE"}
"""How OpenVINO's properties read that are not set, of those that say how precisely it computes."""
BYTES = "bytes"
"""Another reader than that of a file's path: this one has the whole model in memory before it looks at any operator."""
PLACES = {
    r"Failed to set tensor for \w+ with precision: \w+": MISTYPED,
    r"\bfrontends?/|_frontend|Frontend\]|openvino[./]frontend": CONVERSION,
    r"plugins/intel_cpu|\bintel_cpu\b|onednn|jit_|core/reference|evaluate\(\)": KERNEL,
    r"common/(?:transformations|snippets|low_precision)|pass/|graph_optimizer": OPTIMISATION,
}
"""Folders of its sources."""


class Onnx:
    """OpenVINO's reader of ONNX models; the other frontends differ in how a model is loaded, and in what is said of it."""

    VARIANTS: tuple[Variant, ...] = (
        Variant("inputs", "onnx"),
        Variant("constants", "onnx-constants", after="rejected"),
    )
    PACKAGES = ("openvino",)
    WAYS: tuple[Way, ...] = (
        Way("unfused", LESS, "fused kernels and low precision off (SNIPPETS_MODE, LP_TRANSFORMS_MODE)"),
        Way(
            "threads", THREADS, "with its own number of threads (INFERENCE_NUM_THREADS=0)",
            told=("INFERENCE_NUM_THREADS=1", "=0"),
        ),
        Way(
            "precision", SETTING, "with the precision that it takes by itself (no INFERENCE_PRECISION_HINT)",
            told=("INFERENCE_PRECISION_HINT=f32", "=dynamic"),
        ),
        Way("parted", LESS, "a seed of its own in each operator that draws, so that they are not taken for one"),
        Way("stable", COUNTED, "the ov.Model, its TopK told to keep equal numbers in their order (stable)"),
        Way(evaluate.DECLARED, DECLARED, "what the ov.Model states of its outputs"),
        Way(evaluate.NUMPY, APART, "the ov.Model, its operators as numpy has them"),
        Way(evaluate.REFERENCE, OWN, "the ov.Model, evaluated by OpenVINO's reference code of its operators"),
        Way(evaluate.EACH, EACH, "each operator of the ov.Model, compiled by itself"),
        Way(evaluate.MIXED, OWN, "the ov.Model, its operators as numpy has them, and what it has not compiled by itself"),
        Way(evaluate.ALONE, NODE, "an operator of the ov.Model, compiled by itself"),
        Way("made", MADE, "the ov.Model"),
        Way("lawful", LAWFUL, "the ov.Model"),
        Way(
            BYTES, GIVEN, "the file's bytes in place of its path (read_model(bytes))", "load", ("onnx", "onnx-constants"),
            ("read by path", "from the file's bytes"),
        ),
    )  # fmt: skip
    PLACES: Mapping[str, str] = PLACES
    COMPUTES_IN: Mapping[str, str] = {"float64": "float32"}
    """The CPU plugin has no double precision: it converts float64 to float32 (OpenVINO documentation, CPU device)."""

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import openvino as recipe

        return recipe.load(case.model.read_bytes() if case.way == BYTES else str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        from opera.compilers.recipes import openvino as recipe

        if not case.way or any(x.name == case.way and x.kind == GIVEN for x in self.WAYS):
            return recipe.compile_model(loaded)
        names = recipe.input_names(loaded)
        if case.way == "unfused":
            return recipe.CORE.compile_model(loaded, "CPU", UNFUSED), names
        if case.way == "precision":
            return recipe.CORE.compile_model(loaded, "CPU", UNHINTED), names
        if case.way == "threads":
            return recipe.CORE.compile_model(loaded, "CPU", {"INFERENCE_NUM_THREADS": 0}), names
        if case.way == "made":
            raise Made(interpreter.digest(loaded))
        if case.way == "lawful":
            lawful.check(loaded)
        if case.way == "alone":
            alone.check(loaded)
        if case.way == "parted":
            return recipe.CORE.compile_model(alone.parted(loaded), "CPU"), names
        if case.way == "stable":
            return recipe.compile_model(alone.stable(loaded))
        return evaluate.Evaluated(loaded, case.way), names

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import openvino as recipe

        try:
            found: list[Value] = recipe.infer(compiled, case.feeds, case.outputs, _tensor, _value)
        except StopIteration:
            raise CannotCarry("opera cannot tell what to feed to an input of OpenVINO's that lost its name") from None
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def opsets(self) -> dict[str, int]:
        """Return the newest opset whose schemas it ships: its reader reads any, without a word."""
        return _opsets()

    def newest(self, operator: str) -> int | None:
        """Return the newest version of an operator that its library can hold the schema of: it names all its attributes.

        None where onnx is not there to tell them.
        """
        return _newest(operator)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator that failed, and the last specific place in OpenVINO's sources that the message names.

        In the expanded body of a function, and in a decomposed PyTorch program, that is one of its operators. What fails
        before any operator is looked at is told by its place alone.
        """
        message = "" if error is None else str(error)
        named = re.findall(r"^-- (\S[^\n]*?)(?:-\d+)? with a message", message, re.MULTILINE)
        named = named or re.findall(r"with friendly_name '(aten::\w+)/", message) or re.findall(VALIDATED, message)
        own = [name for name in named if not re.match(INNER, name)]
        earliest = self._earliest(own, case)
        operator = (earliest or own or named or [""])[-1]
        message = of_operator(message, operator) if earliest else message
        operator, place = self.translator(operator), last_location(message, GENERIC)
        if place and re.match(BEFORE_OPERATORS, place):
            # Where an operator is named, the place is that of the loop over all of them: it tells nothing.
            return operator or place
        if error is not None and not place and not operator:
            return self.raised(error) or case.operator
        return f"{operator or case.operator}@{place}" if place else operator or case.operator

    def _earliest(self, names: list[str], case: Case) -> list[str]:
        """Return the first operator of a model among several that are told to fail: what takes its results fails for that."""
        order = list(self.operators(case)) if len(set(names)) > 1 else []
        known = [name for name in names if name in order]
        return [min(known, key=order.index)] if known else []

    def operators(self, case: Case) -> Iterable[str]:
        """Return the operators of a model in their order, as messages name them; nothing where that is not known."""
        return ()

    def translator(self, operator: str) -> str:
        """Return the name of what translates an operator: here each has one of its own."""
        return operator

    def raised(self, error: BaseException) -> str:
        """Return `file:function` where OpenVINO's own Python code raised, else an empty string."""
        return raised_in(error, ("openvino.tools.",))

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return steps(involved, f"{RECIPE}:load")


@cache
def _opsets() -> dict[str, int]:
    """Look for the names of onnx's sets of schemas (`OpSet_Onnx_ver27`) in the reader's library."""
    found = {int(name[1]) for name in re.finditer(rb"OpSet_Onnx_ver(\d+)", _reader())}
    return {"": max(found)} if found else {}


@cache
def _newest(operator: str) -> int | None:
    """Look for the names of attributes: a set of schemas grows after it was numbered (Attention-25 came after opset 27)."""
    try:
        from onnx import defs
    except ImportError:
        return None
    version, held = _opsets().get("", 0), _reader()
    while version and defs.has(operator, version):
        schema = defs.get_schema(operator, version)
        if all(name.encode() in held for name in schema.attributes):
            return int(schema.since_version)
        version = schema.since_version - 1
    return None


@cache
def _reader() -> bytes:
    """Return the reader's library, of about 7 MB: it is looked into for each operator."""
    import openvino

    files = Path(openvino.__file__).parent.glob("libs/*openvino_onnx_frontend*")
    return b"".join(file.read_bytes() for file in files)


def raised_in(error: BaseException, modules: tuple[str, ...]) -> str:
    """Return `file:function` where one of these modules raised, else an empty string; what only calls others does not count."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__")) if frames else ""
    if not module.startswith(modules) or module.endswith(".pipeline"):
        return ""
    return f"{module.rsplit('.', 1)[-1]}:{frames[-1].f_code.co_qualname}"


def steps(involved: Involved, load: str) -> Recipe:
    """Return what a script does that loads a model by this function."""
    more = {}
    if involved.low:
        form = "_packed" if involved.dtypes & BITS.keys() else ""
        more = {"feed": f"{RECIPE}_low:feed{form}", "read": f"{RECIPE}_low:read{form}"}
    elif "string" in involved.dtypes:
        more = {"feed": f"{RECIPE}_strings:feed", "read": f"{RECIPE}_strings:read"}
    return Recipe((load,), (f"{RECIPE}:compile_model",), (f"{RECIPE}:infer",), more)


def _tensor(value: Value) -> Any:
    import openvino

    from opera.compilers.recipes import openvino as recipe

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if not isinstance(value, Tensor):
        raise CannotCarry(f"opera cannot feed {type(value).__name__.lower()}s to OpenVINO, which has no such type")
    if value.dtype == "string":
        texts = [item.decode("utf-8", "surrogateescape") for item in value.array().ravel()]
        return recipe.string_tensor(texts, value.shape)
    if value.dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {value.dtype} to OpenVINO, which has no such type")
    if value.dtype not in recipe.NAMES:
        return openvino.Tensor(value.array())
    return recipe.low_tensor(value.dtype, value.shape, pack(value))


def _value(tensor: Any) -> Tensor:
    from opera.compilers.recipes import openvino as recipe

    kind = tensor.element_type.get_type_name()
    shape = tuple(tensor.shape)
    if kind == "string":
        return Tensor.of(np.array(tensor.str_data, dtype=object).reshape(shape))
    dtype = next((dtype for dtype, name in recipe.NAMES.items() if name == kind), None)
    return of_numpy(tensor.data) if dtype is None else unpack(dtype, shape, tensor.data.tobytes())
