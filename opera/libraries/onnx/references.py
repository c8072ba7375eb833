"""What ONNX's own reference evaluator, and the compilers that are asked for a second opinion, compute for a model."""

from __future__ import annotations

import inspect
import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opera import plugins, resources
from opera.errors import InvalidTest
from opera.libraries.onnx import bodies, codec, equivalents, mended, opsets, retyping, schemas
from opera.libraries.onnx.walk import all_nodes
from opera.oracle import comparison
from opera.oracle.opinions import Opinion
from opera.programs.case import Case
from opera.programs.migrated import Artefact, Manifest
from opera.programs.values import Tensor, Value

EVALUATOR = "reference-evaluator"
DISPUTING = "onnxruntime"
"""The compiler that is asked beside the evaluator when a test is generated, and disputes what that computes."""
NARROW, WIDE = ("bfloat16", "float16"), "float32"
NEAR = 1e-2
"""How far from each other, relatively and absolutely, numbers are that may be rounded by one and not by the other."""


def evaluate(model: Any, feeds: dict[str, Value], *, lawful: bool = False) -> list[Value]:
    """Run a ModelProto in the reference evaluator.

    Args:
        lawful: Whether a value is refused that is not of the element type and shape that the model declares of it, in bodies,
            too: the evaluator itself takes it (onnx from 1.23 on; older ones cannot tell).

    Where ONNX defines an operator by a function, and that gives something else than the evaluator's own code, it is what the
    specification says.

    Raises InvalidTest whose reason starts with `no reference` where the evaluator has no implementation, or gives other
    numbers than the function within rounding, and with `the ONNX reference evaluator rejects` where it refuses the inputs.
    """
    found = _evaluated(model, feeds, lawful=lawful)
    defined = bodies.inlined(model)
    if defined is None:
        return found
    try:
        other = _evaluated(defined, feeds, lawful=False)
    except InvalidTest:
        return found
    return _settled(found, other)


def _settled(found: list[Value], defined: list[Value]) -> list[Value]:
    """Return what a function gives, where that is of another form than what the evaluator's own code does, or far from it.

    Raises InvalidTest where it is near: the one rounds where the other does not, as of float64 where `stash_type` is float32.
    """
    names = tuple(map(str, range(len(found))))
    against = comparison.compare(found, defined, names, 0.0, 0.0)
    if not against.symptom:
        return found
    whole = any(isinstance(x, Tensor) and "int" in x.dtype for x in found)
    if against.symptom == "value" and (whole or not comparison.compare(found, defined, names, NEAR, NEAR).symptom):
        raise InvalidTest(f"no reference: ONNX's function body of it gives other numbers: {against.message[:200]}")
    return defined


def unmended(path: Path, feeds: dict[str, Value]) -> list[Value] | None:
    """Return what the evaluator computes as it is, without what opera computes in its place; None where that is nothing of this
    model's, or it stops."""
    import onnx

    model = onnx.load(path)
    every = all_nodes([*model.graph.node, *(x for function in model.functions for x in function.node)])
    if {x.op_type for x in every}.isdisjoint(x.__name__ for x in mended.operators()):
        return None
    try:
        return _evaluated(model, feeds, lawful=False, new_ops=None)
    except InvalidTest:
        return None


def _evaluated(model: Any, feeds: dict[str, Value], *, lawful: bool, **given: Any) -> list[Value]:
    """Run the evaluator's own code, see `evaluate`; `given` are options of the evaluator."""
    from onnx.reference.op_run import RuntimeContextError, RuntimeImplementationError

    missing = (NotImplementedError, RuntimeContextError, RuntimeImplementationError)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fed = {name: codec.to_evaluator(value) for name, value in feeds.items()}
            strict = {"check_shape_annotations": True} if lawful and _tells_declared() else {}
            ran = _unnamed(model) if strict else model
            results = _evaluator()(ran, **strict, **given).run(None, fed)
    except missing as error:
        raise InvalidTest(f"no reference: the ONNX reference evaluator cannot run it: {_brief(error)}") from None
    except Exception as error:  # what operators raise for bad inputs is as various as numpy
        raise InvalidTest(f"the ONNX reference evaluator rejects the inputs: {_brief(error)}") from None
    kinds = [output.type for output in model.graph.output]
    names = [codec.type_name(kind) if kind.WhichOneof("value") else "" for kind in kinds]
    return [codec.from_evaluator(result, name) for result, name in zip(results, names, strict=True)]


@cache
def _evaluator() -> Any:
    """Return the evaluator, which refuses zero points that it leaves out: of small floats it subtracts none, and lets those
    below 1 pass all the same, for it looks at whole numbers.
    """
    from onnx.reference import ReferenceEvaluator

    @cache
    def exact(of: Any) -> type:
        def run(self: Any, x: Any, x_scale: Any, x_zero_point: Any = None, **given: Any) -> Any:
            small = x_zero_point is not None and "float" in x_zero_point.dtype.name
            if small and x_zero_point.astype(np.float32).any():
                raise ValueError(f"x_zero_point of {x_zero_point.dtype} is not zero")
            return of._run(self, x, x_scale, x_zero_point, **given)

        return type(of.__name__, (of,), {"_run": run})

    class Exact(ReferenceEvaluator):  # type: ignore[misc]  # onnx is not typed here
        def __init__(
            self, *args: Any, **given: Any
        ) -> None:  # also of a function's body, which the evaluator makes itself
            super().__init__(*args, **{"new_ops": mended.operators()} | given)

        def _load_impl(self, node: Any, *args: Any, **given: Any) -> Any:
            found = super()._load_impl(node, *args, **given)
            return exact(found) if node.op_type == "DequantizeLinear" else found

    return Exact


@cache
def _tells_declared() -> bool:
    """Whether the evaluator can compare values with what is declared of them."""
    from onnx.reference import ReferenceEvaluator

    return "check_shape_annotations" in inspect.signature(ReferenceEvaluator).parameters


def _unnamed(model: Any) -> Any:
    """Return a copy of a model without names of dimensions: inference makes some up, which may differ from round to round."""
    made = type(model).FromString(model.SerializeToString())
    graphs = [made.graph]
    for graph in graphs:
        for item in (*graph.input, *graph.output, *graph.value_info):
            for dim in item.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
        graphs += (x for node in graph.node for attr in node.attribute for x in (*attr.graphs, attr.g))
    return made


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    """See `opera.libraries.Library.opinions`.

    The evaluator has no vote: the node tests' expected outputs and it are by the same authors, often the same code. Which
    others are asked is declared in instrumentation/onnx.toml: fewer where the test itself says what it expects, for compilers
    agree in what they all leave out.
    """
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    path = directory / manifest.artefacts["onnx"].file
    declared = resources.declaration("instrumentation", "onnx").get("independent", {})
    asked = [_ask_evaluator(path, feeds)]
    for name in declared.get(manifest.reference, declared.get("evaluator", ())):
        if name not in (besides, manifest.reference):
            asked.append(ask_compiler(name, manifest, path, feeds))
    return asked


def further(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
    """Ask the compilers that were not asked yet, one after the other, then PyTorch, and at last who was asked before, with
    float32 for narrow floats: see `opera.libraries.Weighing`."""
    import onnx

    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    declared = resources.declaration("instrumentation", "onnx")
    independent = declared.get("independent", {})
    asked = {besides, manifest.reference, *independent.get(manifest.reference, independent.get("evaluator", ()))}
    path = directory / manifest.artefacts["onnx"].file
    for name in declared.get("further", {}).get("compilers", ()):
        if name not in asked:
            yield ask_compiler(name, manifest, path, feeds, ("onnx", "onnx-constants"))
    if (equivalent := equivalents.ask(onnx.load(path), feeds)).outputs is not None:
        yield equivalent
    for name in independent.get("evaluator", ()) if any(_is_narrow(x) for x in feeds.values()) else ():
        if (
            name not in (besides, manifest.reference)
            and (found := _in_float32(name, onnx.load(path), manifest.operator, feeds)) is not None
        ):
            yield found


def _is_narrow(value: Value) -> bool:
    return isinstance(value, Tensor) and value.dtype in NARROW


def _in_float32(name: str, model: Any, operator: str, feeds: dict[str, Value]) -> Opinion | None:
    """Return what a compiler computes for a ModelProto, which is changed: in float32 for narrow floats, then rounded to these;
    None where it does not. A runtime may have no kernel of a narrow dtype, or of the opset that admits it."""
    declared = [codec.schema_type(x.type) for x in model.graph.output]
    try:
        for dtype in NARROW:
            retyping.retype(model.graph, dtype, WIDE, _wide)
    except InvalidTest:  # a tensor that lies elsewhere
        return None
    outputs = computed_by(name, model, operator, {k: _wide(x) if _is_narrow(x) else x for k, x in feeds.items()})
    if outputs is None or len(outputs) != len(declared):
        return None
    narrow = {codec.element_type(codec.ELEMENT_TYPES[x]): x for x in NARROW}
    rounded = [
        _rounded(x, narrow[kind]) if kind in narrow and isinstance(x, Tensor) else x
        for x, kind in zip(outputs, declared, strict=True)
    ]
    return Opinion(f"{name}-{WIDE}", True, rounded, confirming=True)


def _wide(value: Value) -> Value:
    return Tensor.of(value.numbers().astype(WIDE)) if isinstance(value, Tensor) else value


def _rounded(value: Tensor, dtype: str) -> Tensor:
    import ml_dtypes

    with np.errstate(over="ignore"):
        return Tensor.of(value.numbers().astype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype))


def lacking(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
    """Evaluate the model without one of its optional inputs, with another value of an attribute, and with older operators.

    What the compilers that agree against an expectation all leave out, or take for something else, is seen by this: their
    answer is that of another model. Values are the default, for flags the other one, for fractions the whole number that is
    left of them where a converter takes them for integers, and for strings those that the documentation quotes.
    """
    import onnx

    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    whole = onnx.load(directory / manifest.artefacts["onnx"].file)
    versions = {item.domain: item.version for item in whole.opset_import}
    for place, node in enumerate(whole.graph.node):
        for at, name in _may_be_left_out(node, versions.get(node.domain, 1)):
            model = onnx.ModelProto.FromString(whole.SerializeToString())
            model.graph.node[place].input[at] = ""
            yield _ask_model(f"without {name}", model, feeds)
        for other in _alternatives(node, versions.get(node.domain, 1)):
            model = onnx.ModelProto.FromString(whole.SerializeToString())
            changed = model.graph.node[place]
            kept = [attr for attr in changed.attribute if attr.name not in other]
            stated = [onnx.helper.make_attribute(name, value) for name, value in other.items() if value is not None]
            del changed.attribute[:]
            changed.attribute.extend([*kept, *stated])
            told = [f"without {name}" if value is None else f"with {name} = {value!r}" for name, value in other.items()]
            yield _ask_model(", ".join(told), model, feeds)
    for version in _older(whole):
        model = onnx.ModelProto.FromString(whole.SerializeToString())
        for item in model.opset_import:
            item.version = version if item.domain in ("", "ai.onnx") else item.version
        yield _ask_model(f"as of opset {version}", model, feeds)


def _may_be_left_out(node: Any, version: int) -> Iterator[tuple[int, str]]:
    """Yield the place and the formal name of each input that a node has and need not have."""
    from onnx import defs

    try:
        declared = defs.get_schema(node.op_type, version, node.domain).inputs
    except defs.SchemaError:
        return
    for at, (given, formal) in enumerate(zip(node.input, declared, strict=False)):
        if given and formal.option == defs.OpSchema.FormalParameterOption.Optional:
            yield at, formal.name


def _alternatives(node: Any, version: int) -> Iterator[dict[str, str | float | None]]:
    """Yield attributes of a node with other values that they may have, None where they are left out: one, or all fractions."""
    from onnx import AttributeProto, defs, helper

    present = {attr.name: helper.get_attribute_value(attr) for attr in node.attribute}
    for name in sorted(present):
        yield {name: None}
    if whole := {name: float(math.trunc(x)) for name, x in present.items() if isinstance(x, float) and x % 1}:
        yield dict(whole)
    try:
        declared = defs.get_schema(node.op_type, version, node.domain).attributes
    except defs.SchemaError:
        return
    for name, attr in sorted(declared.items()):
        has_default = bool(attr.default_value.type)
        value = present.get(name, helper.get_attribute_value(attr.default_value) if has_default else None)
        if attr.type.value == AttributeProto.INT and value in (0, 1):
            yield {name: 1 - int(value)}
        elif attr.type.value == AttributeProto.STRING:
            own = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for word in schemas.words(attr.description, own):
                if word != own:
                    yield {name: word}


def _older(model: Any) -> list[int]:
    """Return the versions of ONNX's own operators that are older than those of a model, newest first."""
    from onnx import defs

    used = {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")}
    imported = max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=0)
    history = [x for x in defs.get_all_schemas_with_history() if x.name in used and x.domain == ""]
    known = {x.since_version for x in history if x.since_version <= imported}
    newest = max(known, default=0)
    return sorted(known - {newest}, reverse=True)


def _ask_model(name: str, model: Any, feeds: dict[str, Value]) -> Opinion:
    try:
        return Opinion(name, False, evaluate(model, feeds))
    except InvalidTest as error:
        return Opinion(name, False, None, str(error))


def _ask_evaluator(path: Path, feeds: dict[str, Value]) -> Opinion:
    import onnx

    try:
        return Opinion(EVALUATOR, False, evaluate(onnx.load(path), feeds))
    except InvalidTest as error:
        return Opinion(EVALUATOR, False, None, str(error))


def ask_compiler(
    name: str, manifest: Manifest, path: Path, feeds: dict[str, Value], artefacts: tuple[str, ...] = ("onnx",)
) -> Opinion:
    """Ask a compiler, with the first of these artefacts that it takes; where it takes none, with the oldest opset in which the
    model means the same, if the test offers that: ONNX Runtime refuses what it does not call released yet."""
    try:
        compiler = plugins.load("opera.compilers", "compiler", name)
        compiler.prepare()
        frontend = compiler.FRONTENDS[manifest.library]
    except Exception as error:  # not installed: it has no opinion
        return Opinion(name, True, None, _brief(error))
    refused = ""
    with tempfile.TemporaryDirectory() as folder:
        for artefact, made in _offered(manifest, path, artefacts, Path(folder)):
            fed = {formal: feeds[formal] for formal in made.feeds}
            model = path.parent / made.file
            case = Case(manifest.library, manifest.operator, model, fed, manifest.outputs, artefact=artefact)
            try:
                outputs = frontend.infer(frontend.compile(frontend.load(case), case), case)
                return Opinion(name, True, outputs, computes_in=dict(getattr(frontend, "COMPUTES_IN", {})))
            except Exception as error:  # not supported, or its own bug: it has no opinion
                refused = refused or _brief(error)
    return Opinion(name, True, None, refused)


def _offered(
    manifest: Manifest, path: Path, artefacts: tuple[str, ...], folder: Path
) -> Iterator[tuple[str, Artefact]]:
    """Yield the artefacts of a test, and at last its model with the oldest opset, written to a folder."""
    yield from ((x, manifest.artefacts[x]) for x in artefacts if x in manifest.artefacts)
    if opsets.OLDEST in manifest.offers:
        with suppress(Exception):  # onnx's checker has errors of its own: there is no such model
            (folder / "model.onnx").write_bytes(opsets.stamped(path, manifest.needs))
            yield opsets.OLDEST, Artefact(str(folder / "model.onnx"), manifest.artefacts["onnx"].feeds)


def computed_by(name: str, model: Any, operator: str, feeds: dict[str, Value]) -> list[Value] | None:
    """Return what a compiler computes for a ModelProto that no test holds, None where it does not; where its opset is newer
    than that compiler knows, with the oldest one in which it means the same.
    """
    from opera.libraries.onnx import nodes  # imports onnx, which `opera doctor --quick` does not wait for

    versions = nodes.opset_of(model)
    older = opsets.needed(all_nodes(model.graph.node), versions, opsets.value_types(model))
    newer = any(version < versions[domain] for domain, version in older.items())
    manifest = Manifest(
        test="", instance="", library="onnx", operator=operator, exporter={}, inputs=tuple(feeds),
        outputs=tuple(x.name for x in model.graph.output), artefacts={"onnx": Artefact("model.onnx", tuple(feeds))},
        reference=EVALUATOR, offers=(opsets.OLDEST,) if newer else (), needs=older,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString(deterministic=True))
        return ask_compiler(name, manifest, path, feeds).outputs
