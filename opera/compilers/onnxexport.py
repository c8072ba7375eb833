"""Exporters to ONNX as compilers under test: what they write is checked by onnx, and run by ONNX Runtime."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import msgspec

from opera import compilers, precision
from opera.compilers import (
    APART,
    FILE,
    GIVEN,
    LAWFUL,
    NEWEST,
    OPSET,
    RECIPES,
    SOURCE,
    TEXT,
    Case,
    Frontend,
    Involved,
    Recipe,
    Variant,
    Way,
    onnxruntime,
)
from opera.compilers.shared import keras_live, messages, onnx_bodies, torch_live, torch_operators
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import DeclaredOtherwise, Read, Refusal, Unlawful
from opera.programs.values import Tensor, Value

NAME = "onnxexport"
TITLE = "The ONNX exporter"
PACKAGE = "onnx onnxscript onnxruntime"
PRELOAD = ("onnx", "onnxruntime")
PACKAGES = ("torch", "keras", "tensorflow", "tf2onnx", "onnxscript", "onnx_ir", "onnx", "onnxruntime")
"""Whose failures are an exporter's, or of the runtime that judges what it wrote."""

REFERENCE = Way("reference", APART, "the exported file on ONNX's reference evaluator")
ON = {
    name: Way(name, FILE, f"the exported file on {title}") for name, title in (("openvino", "OpenVINO"), ("tvm", "TVM"))
}
"""Others that read ONNX, where they are installed beside the runtime: what they make of the very file."""
BODIES = tuple(msgspec.structs.replace(x, stage="compile") for x in onnxruntime.BODIES)
WRITTEN = Way("written", TEXT, "the exported file, in ONNX's textual syntax")
WAYS = (onnxruntime.UNOPTIMISED, REFERENCE, *ON.values(), *BODIES, WRITTEN)
NODES, TOLD = 12, 1500
"""Nodes of an exported file that is told as text, and characters of the text."""
LATEST = Way(
    "newest",
    NEWEST,
    "at its newest opset (opset_version)",
    "load",
    told=("opset_version is left at its default", "the newest"),
)
OPSETS = {f"opset-{x}": x for x in (18, 21, 22, 23)}
"""Older and newer than what PyTorch takes by default, 20 in its version 2.13: the code of its translation is written for 18."""
OTHERS = tuple(
    Way(name, OPSET, f"at opset {x}", "load", told=(f"opset_version is below {x}", str(x)))
    for name, x in OPSETS.items()
)
UNREWRITTEN = Way(
    "unrewritten", GIVEN, "torch.onnx.export(optimize=False)", "load", ("live",),
    ("exported with optimize=True, the default", "with optimize=False"),
)  # fmt: skip
"""Without onnxscript's rewriting of what was translated."""
TRACED = Way("traced", LAWFUL, "TensorFlow's trace of the model, before anything is exported", "load")
DECOMPOSED = Way("source", SOURCE, "the code that translates it", "load")

UNSUPPORTED = messages.table("onnxexport", "exporter")
"""The words of the exporters; those of ONNX Runtime about what they wrote are its own module's."""


def version() -> str:
    """Return the version of the ONNX Runtime that judges; the exporter's is the library's own."""
    import onnx

    return f"{onnx.__version__}, onnxruntime {onnxruntime.version()}"


def options() -> dict[str, str]:
    return {"dynamo": "True", **onnxruntime.options(), **precision.TORCH, **precision.TENSORFLOW}


def prepare() -> None:
    warnings.simplefilter("ignore")
    onnxruntime.prepare()


class Torch:
    """torch.onnx.export, by way of torch.export."""

    VARIANTS = (
        Variant(
            "live",
            "live",
            preload=(precision.PRELOAD, "torch", "opera.libraries.torch.preload"),
            exports="model.onnx",
        ),
    )
    PACKAGES = ("torch.onnx", *PACKAGES)
    BEFORE = torch_operators.BEFORE
    EXPORTER, MAKES, RUNTIME = True, "onnx", onnxruntime.NAME
    WAYS = (*WAYS, DECOMPOSED, LATEST, UNREWRITTEN, *OTHERS)
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """torch.onnx.export decomposes, and builds its registry."""

    def export(self, case: Case, path: Path) -> None:
        """Export: the library's own code, which is under test here."""
        import torch

        from opera.compilers.recipes import onnxexport_torch as recipe

        torch_live.prepare()
        live = torch_live.rebuilt(case)
        live.quicken()
        with torch.no_grad():
            opset = _opset(case.way)
            options: dict[str, Any] = {"opset_version": opset} if opset else {}
            options |= {"optimize": False} if case.way == UNREWRITTEN.name else {}
            export = partial(recipe.export, live.module, str(path), live.args, live.inputs, live.outputs, **options)
            if case.way == DECOMPOSED.name:
                raise Read(_translating(export))
            export()

    def load(self, case: Case) -> Path:
        """The export was all of it."""
        return case.model

    def compile(self, loaded: Path, case: Case) -> Any:
        of_export = _opset(case.way) or case.way == UNREWRITTEN.name
        return _checked(loaded, "" if of_export else case.way)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        """Run it. ONNX has hardly an operator for complex numbers: PyTorch's exporter makes pairs of them, as its docs say."""
        from opera.compilers.recipes import onnxexport_torch as recipe

        def paired(value: Value) -> Value:
            pairs = isinstance(value, Tensor) and value.dtype.startswith("complex")
            return Tensor.of(recipe.paired(value.array())) if pairs and isinstance(value, Tensor) else value

        outputs = _ran(compiled, {name: paired(value) for name, value in case.feeds.items()})
        if not any(isinstance(x, Tensor) and x.shape[-1:] == (2,) for x in outputs):
            return outputs
        live = torch_live.rebuilt(case)
        eager = torch_live.ran(live, live.module)
        return [_unpaired(got, want) for got, want in zip(outputs, eager, strict=True)]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return _unsupported(torch_live.unsupported(UNSUPPORTED, stage, error), stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the exporter's function that raised (`torch_lib:aten_conv2d`), else the operator."""
        for frame in _frames(error):
            if re.search(r"torch_?lib", frame.f_code.co_filename) and frame.f_code.co_name.startswith("aten_"):
                return f"torch_lib:{frame.f_code.co_name}"
        return case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{RECIPES}.onnxexport_torch"
        if any(name.startswith("complex") for name in involved.dtypes):
            return Recipe((f"{own}:export",), (CHECK,), (f"{own}:infer_complex",))
        return Recipe((f"{own}:export",), (CHECK,), (_infer(involved),), onnxruntime.low_precision(involved))


def _opset(way: str) -> int:
    """Return the opset that PyTorch's exporter is asked for by a way, no newer one than it writes; 0 for its default."""
    if way != LATEST.name and way not in OPSETS:
        return 0
    from torch.onnx import _constants

    newest = int(_constants.ONNX_MAX_OPSET)
    return min(newest, OPSETS.get(way, newest))


class Keras:
    """Keras's exporter to ONNX, by way of tf2onnx."""

    VARIANTS = (Variant("live", "live", preload=(keras_live.BACKEND,), exports="model.onnx"),)
    PACKAGES = PACKAGES
    EXPORTER, MAKES, RUNTIME = True, "onnx", onnxruntime.NAME
    WAYS = (*WAYS, TRACED)

    def export(self, case: Case, path: Path) -> None:
        """Export: the library's own code, which is under test here."""
        from opera.compilers.recipes import onnxexport_keras as recipe

        keras_live.prepare()
        live = keras_live.rebuilt(case)
        if case.way == TRACED.name:
            said = keras_live.untraced(live)
            raise Unlawful(said) if said else Refusal("it is traced")
        try:
            with _logged("tf2onnx.tfonnx") as errors:
                recipe.export(live.model, str(path), live.signature)
        except recipe.DeclaredOtherwise as error:
            raise DeclaredOtherwise(str(error)) from None
        refusal = next((x for x in errors if first_rule(UNSUPPORTED, "load", x)), None)
        if refusal is not None and not _valid(path):
            raise refusal

    def load(self, case: Case) -> Path:
        """The export was all of it."""
        return case.model

    def compile(self, loaded: Path, case: Case) -> Any:
        return _checked(loaded, case.way)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        return _ran(compiled, case.feeds)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return _unsupported(first_rule(UNSUPPORTED, stage, error), stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the exporter's function that raised (`tf2onnx:ConvOp.version_11`), else the operator."""
        for frame in _frames(error):
            if frame.f_globals.get("__name__", "").startswith("tf2onnx.onnx_opset."):
                return f"tf2onnx:{frame.f_code.co_qualname}"
        return case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{RECIPES}.onnxexport_keras"
        return Recipe((f"{own}:export",), (CHECK,), (_infer(involved),), onnxruntime.low_precision(involved))


FRONTENDS: Mapping[str, Frontend] = {"torch": Torch(), "keras": Keras()}


@contextmanager
def _logged(name: str) -> Iterator[list[BaseException]]:
    """Collect the exceptions that a logger tells as errors: tf2onnx, as Keras calls it, logs what it cannot convert, and goes
    on."""
    found: list[BaseException] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.extend([record.exc_info[1]] if record.exc_info and record.exc_info[1] else [])

    handler, logger = Collecting(logging.ERROR), logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def _valid(path: Path) -> bool:
    import onnx

    try:
        onnx.checker.check_model(path.read_bytes(), full_check=True)
    except Exception:  # whatever it says, it is no file that anybody can run
        return False
    return True


CHECK = f"{RECIPES}.onnxexport:check_and_load"


def _infer(involved: Involved) -> str:
    return f"{RECIPES}.onnxexport:{'infer_low' if involved.low else 'infer'}"


def _checked(model: Path, way: str) -> Any:
    """Check the model as onnx does, and have ONNX Runtime load it, or who is asked about it by a way."""
    from opera.compilers.recipes import onnxexport as recipe

    if way == WRITTEN.name:
        raise _as_text(model)
    if way == REFERENCE.name:
        return onnx_bodies.evaluator(model)
    if any(way == x.name for x in onnxruntime.BODIES):
        return onnxruntime.by_bodies(model, way)
    if way in ON:
        return _On(way, model)
    if way:
        return onnxruntime.unoptimised(model)
    return recipe.check_and_load(str(model))


def _as_text(model: Path) -> Refusal:
    """Return a Read of an exported file in ONNX's textual syntax, without what no operator reads; a Refusal of a long one."""
    import onnx

    proto = onnx.load(model)
    graph = proto.graph
    for name in ("producer_name", "producer_version", "metadata_props"):
        proto.ClearField(name)
    graph.ClearField("value_info")
    for node in graph.node:
        node.ClearField("name")
    text = "\n".join(re.sub(r"(?<=\S)  +", " ", x).rstrip() for x in onnx.printer.to_text(proto).strip().splitlines())
    return Read(text) if len(graph.node) <= NODES and len(text) <= TOLD else Refusal("it is long")


class _On:
    """An exported file that the checker takes, as another compiler's reader of ONNX compiles and runs it."""

    def __init__(self, name: str, model: Path) -> None:
        import onnx

        compiler = compilers.get(name)
        try:
            for module in compiler.PRELOAD:
                importlib.import_module(module)
        except ImportError:
            raise Refusal(f"{name} is not installed beside the exporter") from None
        onnx.checker.check_model(model.read_bytes(), full_check=True)
        outputs = tuple(x.name for x in onnx.load(model).graph.output)
        compiler.prepare()
        self.frontend = compilers.frontend(name, "onnx")
        self.case = Case("onnx", "", model, {}, outputs, self.frontend.VARIANTS[0].name, "onnx")
        self.compiled = self.frontend.compile(self.frontend.load(self.case), self.case)

    def run(self, feeds: Mapping[str, Value]) -> list[Value]:
        return self.frontend.infer(self.compiled, msgspec.structs.replace(self.case, feeds=dict(feeds)))


def _ran(session: Any, feeds: Mapping[str, Value]) -> list[Value]:
    """Return the outputs in the file's order: Keras's exporter does not let them be named."""
    from opera.compilers.recipes import onnxexport as recipe

    if isinstance(session, _On):
        return session.run(feeds)
    if not hasattr(session, "get_outputs"):  # ONNX's reference evaluator
        return onnx_bodies.evaluated(session, feeds)
    outputs = [item.name for item in session.get_outputs()]
    return onnxruntime.ran(session, feeds, outputs, recipe.infer, recipe.infer_low)


def _unpaired(got: Value, want: Value) -> Value:
    from opera.compilers.recipes import onnxexport_torch as recipe

    if not isinstance(got, Tensor) or not isinstance(want, Tensor) or not want.dtype.startswith("complex"):
        return got
    return Tensor.of(recipe.unpaired(got.array(), want.array()), None if got.dtype.startswith("float") else got.dtype)


def _unsupported(told: str | None, stage: str, error: BaseException) -> str | None:
    """Return what an exporter refuses, or ONNX Runtime of what it wrote."""
    return told or (first_rule(onnxruntime.UNSUPPORTED, stage, error) if stage != "load" else None)


def _translating(export: Callable[[], Any]) -> str:
    """Return a line for each function that translates an operator of what is exported, of an export that raises the last
    alone: `onnxscript/function_libs/torch_lib/ops/special.py:167 aten_special_erfcx`.
    """
    from torch.onnx._internal.exporter import _dispatching

    found: list[Any] = []
    choose = _dispatching.dispatch

    def dispatch(node: Any, registry: Any) -> Any:
        function, message = choose(node, registry)
        found.extend([function] if function is not None else [])
        return function, message

    with mock.patch.object(_dispatching, "dispatch", dispatch):
        try:
            export()
        except Exception:  # it is why it is asked: whose function it was is told by the call
            found = found[-1:]
    return "\n".join(dict.fromkeys(map(_place, found)))


def _place(function: Any) -> str:
    """Return where a function of the exporter's library stands, by its package, and its name."""
    own = getattr(function, "func", getattr(function, "function", function))  # onnxscript's wrappers
    own = inspect.unwrap(own)
    return f"{own.__module__.replace('.', '/')}.py:{own.__code__.co_firstlineno} {own.__qualname__}"


def _frames(error: BaseException | None) -> Iterator[FrameType]:
    """Yield the frames of an error and of its causes, outermost first."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            yield frame
        error = error.__cause__
