"""ONNX Runtime, on the CPU unless another execution provider is chosen. The model file is its only input: it needs no onnx,
but for the ways that write out bodies of functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from opera import temporary
from opera.compilers import (
    BODY,
    CONVERSION,
    KERNEL,
    LAWFUL,
    LESS,
    OPTIMISATION,
    RECIPES,
    THREADS,
    Case,
    Frontend,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.settings import Setting, chosen
from opera.compilers.shared import gpu, messages, onnx_bodies
from opera.compilers.shared.messages import last_location
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import BITS, OF_BODY, CannotCarry, Refusal, Unlawful, of_numpy, pack, unpack
from opera.programs import values
from opera.programs.values import Optional, Tensor, Value

NAME = "onnxruntime"
TITLE = "ONNX Runtime"
PACKAGE = "onnxruntime"
PRELOAD = ("onnxruntime",)

UNSUPPORTED = messages.table("onnxruntime", "reader")

ELEMENT_TYPES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "uint4": "uint4",
    "int4": "int4",
    "float4e2m1": "float4_e2m1fn",
    "float8e8m0": "float8_e8m0fnu",
    "uint2": "uint2",
    "int2": "int2",
}
"""Element types that numpy does not carry: ONNX Runtime's name → opera's."""
LOW = frozenset(ELEMENT_TYPES.values())

RECIPE = f"{RECIPES}.onnxruntime"

CPU = "CPUExecutionProvider"
OF_GPU = {"CUDAExecutionProvider": "load_cuda", "TensorrtExecutionProvider": "load_tensorrt"}
"""Provider → the function of recipes/onnxruntime_gpu.py that makes its session."""
SETTINGS = {"provider": Setting(CPU, "the execution provider that runs all of a model, or nothing", (CPU, *OF_GPU))}

UNOPTIMISED = Way("unoptimised", LESS, "graph optimisations off (ORT_DISABLE_ALL)", "load")
THREADED = Way(
    "threads",
    THREADS,
    "with its own number of threads (intra_op_num_threads=0)",
    "load",
    told=("intra_op_num_threads=1", "=0"),
)
BODIES = (
    Way("body", BODY, "ONNX's own function body of it, on ONNX's reference evaluator", "load"),
    Way("written-out", BODY, "ONNX's own function body of it, written out as a model", "load"),
)
INFERRED = Way("inferred", LAWFUL, "ONNX's own shape inference (onnx.shape_inference, strict mode)", "load")
PLACES = {
    r"core/(?:providers|mlas)/|\bwhile running \w+ node|Could not find an implementation": KERNEL,
    r"core/optimizer/": OPTIMISATION,
    r"core/graph/|ShapeInferenceError|TypeInferenceError": CONVERSION,
}
"""Folders of its sources, and words of its stages."""


def version() -> str:
    """Return its version. Raises ImportError where the chosen provider cannot be used."""
    import onnxruntime

    provider = chosen(SETTINGS)["provider"]
    if provider not in (held := onnxruntime.get_available_providers()):
        raise ImportError(
            f"this onnxruntime has no {provider}, only {', '.join(held)}: pip install onnxruntime-gpu in its place"
        )
    if provider != CPU:
        _tried(provider)
    return str(onnxruntime.__version__)


def options() -> dict[str, str]:
    from opera.compilers.recipes import onnxruntime as recipe

    provider = chosen(SETTINGS)["provider"]
    found = {"provider": provider, "threads": "1", "optimization": "all", **recipe.PRECISE}
    return found if provider == CPU else {**found, **_device(), "tf32": "False", "cpu_fallback": "False"}


@cache
def _device() -> dict[str, str]:
    return {"device": "cuda", **gpu.described()}


def prepare() -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)


class Onnx:
    """ONNX Runtime's reader of ONNX models."""

    VARIANTS = (
        Variant("inputs", "onnx"),
        Variant("constants", "onnx-constants", after="rejected"),
        Variant("oldest-opset", "onnx-oldest-opset", after="rejected"),
    )
    WAYS = (UNOPTIMISED, THREADED, *BODIES, INFERRED)
    NATIVE = True
    PLACES: Mapping[str, str] = PLACES

    def load(self, case: Case) -> Any:
        """Create the session, which converts, optimises and assigns kernels: all that is done before inference."""
        from opera.compilers.recipes import onnxruntime as recipe

        if case.way == UNOPTIMISED.name:
            return unoptimised(case.model)
        if case.way == THREADED.name:
            return recipe.load(str(case.model), threads=0)
        if case.way == INFERRED.name:
            infer_strictly(case.model)
        if case.way:
            return by_bodies(case.model, case.way)
        load = OF_GPU.get(chosen(SETTINGS)["provider"])
        if load is None:
            return recipe.load(str(case.model))
        from opera.compilers.recipes import onnxruntime_gpu

        return getattr(onnxruntime_gpu, load)(str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        """Nothing is left to compile once a session is there."""
        return loaded

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        if case.way == BODIES[0].name:
            return onnx_bodies.evaluated(compiled, case.feeds, case.outputs)
        return ran(compiled, case.feeds, case.outputs)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def opsets(self) -> dict[str, int]:
        """Return the newest opset that it declares to read, in its own words about a model that states a newer one."""
        return _opsets()

    def newest(self, operator: str) -> int | None:
        """Return the newest of the schemas of an operator that it ships, where its build tells them."""
        return _schemas().get(operator)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator that failed, and the place in ONNX Runtime's sources where its message names one.

        In the expanded body of a function that is one of the body's operators.
        """
        message = "" if error is None else str(error)
        named = re.search(r"while running (\w+) node", message)
        operator = named[1] if named else case.operator
        place = last_location(message, "$^")
        return f"{operator}@{place}" if place else operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        form = "run_low" if involved.low else "run"
        provider = involved.chosen.get("provider", CPU)
        load = f"{RECIPE}:load" if provider == CPU else f"{RECIPE}_gpu:{OF_GPU[provider]}"
        return Recipe(load=(load,), infer=(f"{RECIPE}:{form}",), more=low_precision(involved))


NEWER = b"\x08\x08\x3a\x03\x12\x01g\x42\x03\x10\xff\x7f"
"""A ModelProto of IR version 8, with an empty graph called g, that states opset 16383."""


TINY = (
    b"\x08\x08\x3a\x32\x0a\x0b\x0a\x01\x78\x12\x01\x79\x22\x03\x41\x62\x73\x12\x01\x67\x5a"
    b"\x0f\x0a\x01\x78\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01\x62\x0f\x0a\x01\x79"
    b"\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01\x42\x04\x0a\x00\x10\x11"
)
"""A ModelProto of opset 17: y = Abs(x), of one float."""


def _tried(provider: str) -> None:
    """Raise ImportError where a provider that this build has cannot run anything here."""
    from opera.compilers.recipes import onnxruntime_gpu

    try:
        getattr(onnxruntime_gpu, OF_GPU[provider])(TINY)
    except Exception as error:
        raise ImportError(f"{provider} cannot be used: {' '.join(str(error).split())[:300]}") from None


@cache
def _opsets() -> dict[str, int]:
    import onnxruntime

    try:
        onnxruntime.InferenceSession(NEWER, providers=["CPUExecutionProvider"])
    except Exception as error:
        found = re.search(r"support for domain ai\.onnx is till opset (\d+)", str(error))
        return {"": int(found[1])} if found else {}
    return {}


@cache
def _schemas() -> dict[str, int]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found: dict[str, int] = {}
    for x in getattr(state, "get_all_operator_schema", list)():
        operator = f"{x.domain}::{x.name}" if x.domain else x.name
        found[operator] = max(found.get(operator, 0), x.since_version)
    return found


FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx()}


def by_bodies(model: Path, way: str) -> Any:
    """Return what runs a file, with operators that have no kernel written out by ONNX's definitions, in a way of BODIES.

    Raises Refusal where there is none such.
    """
    written = onnx_bodies.written_out(model, _resolved)
    return onnx_bodies.evaluator(written) if way == BODIES[0].name else unoptimised(written.SerializeToString())


AT = re.compile(r"^\(op_type:(\w+)[^)]*\): ")
"""How ONNX's shape inference says at which operator a rule is broken."""


def infer_strictly(model: Path) -> None:
    """Raise Unlawful with what ONNX's shape inference, which ONNX Runtime is built with, says of a file, or of what ONNX's
    function bodies make of it (OF_BODY); Refusal if nothing.
    """
    import onnx

    whole = onnx.load(model)
    _infer_strictly(whole)
    try:
        _infer_strictly(onnx_bodies.defined(whole))
    except Unlawful as error:
        raise Unlawful(OF_BODY + AT.sub(r"\1: ", str(error))) from None
    raise Refusal("ONNX infers it")


def _infer_strictly(model: Any) -> None:
    import onnx

    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        raise Unlawful(re.split(r"\[(?:Shape|Type)InferenceError\]", str(error))[-1].strip()) from None


def _resolved(model: Path) -> Any:
    """Return the model that is run of a file with optimisations off: of kernels, for what has none is its function's body."""
    import onnx

    with temporary.folder("resolved") as folder:
        unoptimised(model, folder / "model.onnx")
        return onnx.load(folder / "model.onnx")


def unoptimised(model: Path | bytes, written: Path | None = None) -> Any:
    """Return a session that runs the graph of a file, or of what one would hold, as it is written.

    `written` is where that graph is left.
    """
    import onnxruntime

    from opera.compilers.recipes import onnxruntime as recipe

    options = recipe.session_options()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if written is not None:
        options.optimized_model_filepath = str(written)
    given = model if isinstance(model, bytes) else str(model)
    load = OF_GPU.get(chosen(SETTINGS)["provider"])
    if load is not None:
        from opera.compilers.recipes import onnxruntime_gpu

        return getattr(onnxruntime_gpu, load)(given, options)
    return onnxruntime.InferenceSession(given, options, providers=[CPU])


def low_precision(involved: Involved) -> dict[str, str]:
    """Return how a script feeds and reads what numpy does not carry: nothing where there is none."""
    if not involved.low:
        return {}
    form = "_packed" if involved.dtypes & BITS.keys() else ""
    return {"feed": f"{RECIPE}_low:feed{form}", "read": f"{RECIPE}_low:read{form}"}


def ran(
    session: Any, feeds: Mapping[str, Value], outputs: Sequence[str], run: Any = None, run_low: Any = None
) -> list[Value]:
    """Run a session, and return its outputs of these names.

    `run` and `run_low` are functions of another recipe, of session and feeds, that return all outputs in the model's order.
    """
    from opera.compilers.recipes import onnxruntime as recipe

    run = run or partial(recipe.run, outputs=list(outputs))
    run_low = run_low or partial(recipe.run_low, outputs=list(outputs))
    types = {output.name: output.type for output in session.get_outputs()}
    known = {item.name for item in session.get_inputs()}
    if any(_raw(feeds[name]) for name in known & set(feeds)) or any(_raw_element(kind) for kind in types.values()):
        raw = run_low(session, feeds, feed=_ort_value, read=lambda item: item)
        return [_of_ort_value(item, types[name]) for name, item in zip(outputs, raw, strict=True)]
    fed = {name: _plain(feeds[name]) for name in feeds if name in known}
    plain = run(session, fed)
    return [_typed(item, types[name]) for name, item in zip(outputs, plain, strict=True)]


def _raw(value: Value) -> bool:
    match value:
        case Tensor(dtype=dtype):
            return dtype in LOW
        case values.Sequence(items=items):
            return any(_raw(item) for item in items)
        case Optional(value=inner):
            return _raw(inner)
    return False


def _raw_element(kind: str) -> str | None:
    """Return the innermost element of a type such as `seq(tensor(bfloat16))` if numpy lacks it."""
    found = re.search(r"tensor\((\w+)\)", kind)
    return ELEMENT_TYPES.get(found[1]) if found else None


def _plain(value: Value) -> Any:
    match value:
        case Tensor(dtype="string"):
            texts = np.empty(value.shape, dtype=object)
            texts.ravel()[:] = [item.decode("utf-8", "surrogateescape") for item in value.array().ravel()]
            return texts
        case Tensor():
            return value.array()
        case values.Sequence(items=items):
            return [_plain(item) for item in items]
        case Optional(value=inner):
            return None if inner is None else _plain(inner)
    raise CannotCarry(f"opera cannot feed a {type(value).__name__} to ONNX Runtime")


def _ort_value(value: Value) -> Any:
    import onnxruntime

    from opera.compilers.recipes import onnxruntime as recipe

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if not isinstance(value, Tensor) or value.dtype == "string":
        raise CannotCarry("opera cannot feed sequences, empty optionals or strings beside low-precision tensors")
    if value.dtype not in LOW:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value.array())
    try:
        return recipe.low_value(value.dtype, value.shape, pack(value))
    except BufferError as error:
        raise CannotCarry(f"opera cannot feed {value.dtype}: {error}") from None


def _of_ort_value(item: Any, kind: str) -> Value:
    from opera.compilers.recipes import onnxruntime as recipe

    if not item.is_tensor():
        raise CannotCarry(f"opera cannot read an output of type {item.data_type()}")
    element = _raw_element(item.data_type())
    if element is None:
        return _typed(item.numpy(), kind)
    return _wrap(unpack(element, tuple(item.shape()), recipe.low_data(item)), kind)


def _typed(item: Any, kind: str) -> Value:
    if item is None:
        return Optional(_inner(kind), None)
    if isinstance(item, list):
        inner = _inner(_inner(kind) if kind.startswith("optional(") else kind)
        return _wrap(values.Sequence(inner, tuple(_typed(part, inner) for part in item)), kind)
    return _wrap(of_numpy(np.asarray(item)), kind)


def _wrap(value: Value, kind: str) -> Value:
    return Optional(_inner(kind), value) if kind.startswith("optional(") else value


def _inner(kind: str) -> str:
    return kind.partition("(")[2].removesuffix(")")
