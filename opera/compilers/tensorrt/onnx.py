"""TensorRT's parser of ONNX models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opera.compilers import (
    CONVERSION,
    DECLARED,
    KERNEL,
    LESS,
    OPTIMISATION,
    RECIPES,
    Canary,
    Case,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.shared import messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, Refusal, pack, unpack
from opera.compilers.tensorrt.told import importer, told
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import CONTAINERS, Tensor, Value
from opera.programs.verdicts import CRASH
from opera.programs.verdicts import UNSUPPORTED as UNSUPPORTED_VERDICT

UNSUPPORTED = messages.table("tensorrt", "parser", "builder")

RECIPE = f"{RECIPES}.tensorrt"
PLAIN = {
    "FLOAT": "float32", "HALF": "float16", "INT8": "int8", "INT32": "int32", "INT64": "int64", "BOOL": "bool",
    "UINT8": "uint8", "BF16": "bfloat16", "FP8": "float8_e4m3fn", "INT4": "int4", "FP4": "float4_e2m1fn",
    "E8M0": "float8_e8m0fnu",
}  # fmt: skip
"""tensorrt.DataType by name → opera's."""

UNTUNED = Way("untuned", LESS, "builder_optimization_level=0: the first tactic that works, no kernels generated")
UNPROFILED = "unprofiled"
"""A way for `opera doctor`: an input of open shape without a profile, which no builder takes, as its documentation says."""
STATED = Way("declared", DECLARED, "the outputs that the parser's network states")
PLACES = {
    r"ModelImporter|[oO]nnxOp|importerUtils|NvOnnxParser|\(in (?:import|check|parse)\w+ at|INVALID_NODE": CONVERSION,
    r"[oO]ptimizer|[mM]yelin|autotun|[tT]actic|Could not find any implementation|buildSerializedNetwork": OPTIMISATION,
    r"IExecutionContext|executionContext|cudaError|execute_async_v3|[eE]nqueue": KERNEL,
}
"""Places of its sources, and words of its stages: the first two from its public parser, the others from its log."""
OPSETS = {"10.0": 20, "10.1": 20, "11": 25}
"""Release, or the beginning of one → the newest opset that the documentation of its parser states."""


class NotDeclared(Refusal):
    """The parser's network leaves the shape of an output open."""


class Onnx:
    """A network is made by the parser, an engine by the builder, and run by an execution context."""

    VARIANTS = (
        Variant("inputs", "onnx"),
        Variant("constants", "onnx-constants", after="rejected"),
    )
    PACKAGES = ("tensorrt", "tensorrt_bindings")
    COMPUTES_IN: Mapping[str, str] = {"float64": "float32"}
    """Its parser casts DOUBLE down to FLOAT (onnx-tensorrt, Supported ONNX Operators)."""
    WAYS = (UNTUNED, STATED)
    PLACES: Mapping[str, str] = PLACES

    def load(self, case: Case) -> Any:
        """Parse the model."""
        from opera.compilers.recipes import tensorrt as recipe

        with told():
            return recipe.load(str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        """Build the engine for the shapes that are fed."""
        from opera.compilers.recipes import tensorrt as recipe

        if case.way == STATED.name:
            return _declared(loaded[1], case.outputs)
        if case.way == UNPROFILED:
            for place in range(loaded[1].num_inputs):
                tensor = loaded[1].get_input(place)
                tensor.shape = [-1] * len(tuple(tensor.shape))
        feeds = {name: value.array() for name, value in case.feeds.items() if isinstance(value, Tensor)}
        with told():
            level = 0 if case.way == UNTUNED.name else None
            return recipe.build(loaded, {} if case.way == UNPROFILED else feeds, level)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import tensorrt as recipe

        if case.way == STATED.name:
            return list(compiled)
        with told():
            found: list[Value] = recipe.infer(compiled, case.feeds, case.outputs, _fed, _read)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def opsets(self) -> dict[str, int]:
        """Return the newest opset that the release's documentation states; nothing where it is not known."""
        import tensorrt

        version = tensorrt.__version__
        return next(({"": OPSETS[x]} for x in OPSETS if f"{version}.".startswith(f"{x}.")), {})

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the parser's function that failed, where it says one, else the operator."""
        return (importer(error) if error is not None else "") or case.operator

    def canaries(self) -> tuple[Canary, ...]:
        """Return an operator that its documentation lists as not supported, and a network that no builder takes."""
        matrix = Tensor("float32", (1, 1), b"\0\0\x80\x3f")
        det = Instance("onnx", "Det", {}, (Operand("X", matrix),), ("Y",), {"opset": {"": 11}})
        program = Captured(det, Provenance("doctor", "canary", "unsupported"), (Tensor("float32", (), matrix.data),))
        return (
            Canary("an operator without importer is unsupported", UNSUPPORTED_VERDICT, program),
            Canary("a build that fails is told", CRASH, way=UNPROFILED, symptom="BuildError"),
        )

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        low = {"feed": f"{RECIPE}_low:feed", "read": f"{RECIPE}_low:read"} if involved.low else {}
        return Recipe((f"{RECIPE}:load",), (f"{RECIPE}:build",), (f"{RECIPE}:infer",), low)


def _fed(value: Value, kind: str) -> bytes:
    """Return the bytes of a value as the engine takes them."""
    if not isinstance(value, Tensor) or value.dtype == "string":
        raise CannotCarry(f"opera cannot feed a {type(value).__name__} to TensorRT")
    if value.dtype == "float64" and kind == "FLOAT":
        return value.array().astype(np.float32).tobytes()
    if PLAIN.get(kind) != value.dtype:
        raise CannotCarry(f"opera cannot feed {value.dtype} where TensorRT takes {kind}")
    return pack(value)


def _read(data: bytes, kind: str, shape: tuple[int, ...], double: bool) -> Tensor:
    """Return an output; `double` tells that the model declares it as float64."""
    if kind not in PLAIN:
        raise CannotCarry(f"opera cannot read an output of type {kind}")
    found = unpack(PLAIN[kind], tuple(shape), data)
    return Tensor.of(found.array().astype(np.float64)) if double and found.dtype == "float32" else found


def _declared(network: Any, outputs: tuple[str, ...]) -> list[Value]:
    """Return tensors of the dtypes and shapes that a network states for its outputs."""
    tensors = {x.name: x for x in (network.get_output(place) for place in range(network.num_outputs))}
    found: list[Value] = []
    for name in outputs:
        dtype, shape = PLAIN.get(tensors[name].dtype.name, ""), tuple(tensors[name].shape)
        if not dtype or min(shape, default=0) < 0:
            raise NotDeclared("TensorRT's network states no static shape for an output")
        found.append(Tensor(dtype, shape, bytes(int(np.prod(shape)) * np.dtype(CONTAINERS[dtype]).itemsize)))
    return found
