"""What ONNX's own reference evaluator, and the compilers that are asked for a second opinion, compute for a model."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opera import plugins, resources
from opera.errors import InvalidTest
from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx import equivalents, schemas
from opera.oracle.opinions import Opinion
from opera.programs.case import Case
from opera.programs.migrated import Manifest
from opera.programs.values import Value

EVALUATOR = "reference-evaluator"
ROUNDS = 2000
"""Rounds that a loop may run: a program made of another may have one without an end."""


def evaluate(model: Any, feeds: dict[str, Value], *, lawful: bool = False) -> list[Value]:
    """Run a ModelProto in the reference evaluator.

    Args:
        lawful: Whether a value is refused that is not of the element type and shape that the model declares of it, in bodies,
            too: the evaluator itself takes it (onnx from 1.23 on; older ones cannot tell).

    Raises InvalidTest whose reason starts with `no reference` where the evaluator has no implementation, and with
    `the ONNX reference evaluator rejects` where it refuses the inputs.
    """
    from onnx.reference.op_run import RuntimeContextError, RuntimeImplementationError

    missing = (NotImplementedError, RuntimeContextError, RuntimeImplementationError)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fed = {name: onnx_values.to_evaluator(value) for name, value in feeds.items()}
            strict = {"check_shape_annotations": True} if lawful and _tells_declared() else {}
            ran = _unnamed(model) if strict else model
            results = _evaluator()(ran, new_ops=_mended(), **strict).run(None, fed)
    except missing as error:
        raise InvalidTest(f"no reference: the ONNX reference evaluator cannot run it: {_brief(error)}") from None
    except Exception as error:  # what operators raise for bad inputs is as various as numpy
        raise InvalidTest(f"the ONNX reference evaluator rejects the inputs: {_brief(error)}") from None
    kinds = [output.type for output in model.graph.output]
    names = [onnx_values.type_name(kind) if kind.WhichOneof("value") else "" for kind in kinds]
    return [onnx_values.from_evaluator(result, name) for result, name in zip(results, names, strict=True)]


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


@cache
def _mended() -> list[type]:
    """Return operators in place of the evaluator's.

    What is drawn in the likeness of a scalar is an array, too. Indices of MaxUnpool are places in `output_shape`. A loop
    without a condition runs, one without an end is refused or stopped, and what each round returns is stacked along an axis
    of its own. RoiAlign's maximum is that of the samples, not of the four terms that each is the sum of. LRN sums over all
    channels, not as many as there are pictures; LpPool sums what a window holds, and does not scale up one that hangs over.
    """
    from onnx.reference.ops.op_loop import Loop
    from onnx.reference.ops.op_lp_pool import LpPool
    from onnx.reference.ops.op_lrn import LRN
    from onnx.reference.ops.op_max_unpool import MaxUnpool
    from onnx.reference.ops.op_random_normal_like import RandomNormalLike
    from onnx.reference.ops.op_random_uniform_like import RandomUniformLike
    from onnx.reference.ops.op_roi_align import RoiAlign

    def like(of: Any) -> type:
        def run(self: Any, x: Any, **given: Any) -> Any:
            (drawn,) = of._run(self, x if x.ndim else x.reshape(1), **given)
            return (drawn.reshape(x.shape),)

        return type(of.__name__, (of,), {"_run": run})

    def unpool(self: Any, x: Any, indices: Any, output_shape: Any = None, **given: Any) -> Any:
        if output_shape is None:
            return MaxUnpool._run(self, x, indices, **given)
        if x.shape != indices.shape or x.shape[:2] != tuple(output_shape[:2]):
            raise ValueError(f"indices {indices.shape} and outputs {tuple(output_shape)} do not go with {x.shape}")
        found = np.zeros(tuple(output_shape), x.dtype)
        found.flat[indices.ravel()] = x.ravel()
        return (found,)

    def one(of: Any) -> None:  # some write a scalar as one element
        if np.shape(of) != ():
            raise ValueError(f"a loop's condition or trip count of shape {np.shape(of)} is no scalar")

    def loop(self: Any, most: Any, cond: Any, *args: Any, **given: Any) -> Any:
        if most is None and cond is None:  # what the body says of going on is not read then
            raise RuntimeError("a loop with neither a trip count nor a condition has no end")
        one(most)
        one(cond)
        body, rounds = self._run_body, list[Any]()  # set on each instance

        def kept(*of: Any, **more: Any) -> Any:
            if len(rounds) == ROUNDS:
                raise RuntimeError(f"a loop of more than {ROUNDS} rounds")
            rounds.append(body(*of, **more))
            one(rounds[-1][0])
            return rounds[-1]

        self._run_body = kept
        try:
            found = list(Loop._run(self, most, np.array(True) if cond is None else cond, *args, **given))
        finally:
            self._run_body = body
        for place in range(self.N, self.N + self.K):
            found[place] = np.stack([x[place + 1] for x in rounds])
        return tuple(found)

    def align(self: Any, x: Any, rois: Any, batch: Any, **given: Any) -> Any:
        if given["mode"].lower() != "max":
            return RoiAlign._run(self, x, rois, batch, **given)
        high, wide, ratio, found = given["output_height"], given["output_width"], given["sampling_ratio"], list[Any]()
        half = given["coordinate_transformation_mode"].lower() == "half_pixel"
        for of, (left, top, right, bottom) in enumerate(np.asarray(rois, dtype=np.float64) * given["spatial_scale"]):
            sizes = (bottom - top, right - left) if half else (max(bottom - top, 1.0), max(right - left, 1.0))
            tall, broad = (ratio or max(math.ceil(size / by), 1) for size, by in zip(sizes, (high, wide), strict=True))
            one = given | {
                "mode": "avg",
                "sampling_ratio": 1,
                "output_height": high * tall,
                "output_width": wide * broad,
            }
            (samples,) = RoiAlign._run(self, x, rois[of : of + 1], batch[of : of + 1], **one)
            found.append(samples.reshape(1, -1, high, tall, wide, broad).max(axis=(3, 5)))
        return (np.concatenate([np.empty((0, x.shape[1], high, wide), x.dtype), *found]),)

    def normalized(self: Any, x: Any, alpha: float, beta: float, bias: float, size: int) -> Any:
        before = (size - 1) // 2
        squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2))
        sums = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(axis=-1)
        return ((x / (bias + alpha / size * sums) ** beta).astype(x.dtype),)

    def pooled(self: Any, x: Any, *, kernel_shape: Any, p: int = 2, **given: Any) -> Any:
        (scaled,) = LpPool._run(self, x, kernel_shape=kernel_shape, p=p, **given)  # its shape is right
        if not scaled.size:
            return (scaled,)
        sizes = scaled.shape[2:]
        rank = len(kernel_shape)
        strides, dilations = (list(given.get(key) or [1] * rank) for key in ("strides", "dilations"))
        spans = [(size - 1) * by + 1 for size, by in zip(kernel_shape, dilations, strict=True)]
        auto = str(given.get("auto_pad") or "NOTSET")
        begins = list((given.get("pads") or [0] * 2 * rank)[:rank])
        needed = [(out - 1) * by + span for out, by, span in zip(sizes, strides, spans, strict=True)]
        if auto.startswith("SAME"):
            begins = [
                (max(of - held, 0) + (auto == "SAME_LOWER")) // 2 for of, held in zip(needed, x.shape[2:], strict=True)
            ]
        ends = [max(of - begin - held, 0) for of, begin, held in zip(needed, begins, x.shape[2:], strict=True)]
        powers = np.pad(np.abs(x.astype(np.float64)) ** p, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
        axes = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(powers, spans, axis=axes)
        at = tuple(slice(0, out * by, by) for out, by in zip(sizes, strides, strict=True))
        windows = windows[(slice(None), slice(None), *at, *(slice(None, None, by) for by in dilations))]
        return ((windows.sum(axis=tuple(range(-rank, 0))) ** (1 / p)).astype(x.dtype),)

    bounded = type("Loop", (Loop,), {"_run": loop})
    aligned = type("RoiAlign", (RoiAlign,), {"_run": align})
    unpooled = type("MaxUnpool", (MaxUnpool,), {"_run": unpool})
    summed = [type(x.__name__, (x,), {"_run": run}) for x, run in ((LRN, normalized), (LpPool, pooled))]
    return [like(RandomNormalLike), like(RandomUniformLike), unpooled, bounded, aligned, *summed]


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
    """Ask the compilers that were not asked yet, one after the other, and PyTorch last: see `opera.libraries.Weighing`."""
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


def lacking(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
    """Evaluate the model with another value of one of its attributes, and with older operators.

    What the compilers that agree against an expectation all leave out, or take for something else, is seen by this: their
    answer is that of another model. Values are the default, for flags the other one, for fractions the whole number that is
    left of them where a converter takes them for integers, and for strings those that the documentation quotes.
    """
    import onnx

    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    whole = onnx.load(directory / manifest.artefacts["onnx"].file)
    versions = {item.domain: item.version for item in whole.opset_import}
    for place, node in enumerate(whole.graph.node):
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
    """Ask a compiler, with the first of these artefacts that it takes."""
    refused = ""
    try:
        compiler = plugins.load("opera.compilers", "compiler", name)
        compiler.prepare()
        frontend = compiler.FRONTENDS[manifest.library]
    except Exception as error:  # not installed: it has no opinion
        return Opinion(name, True, None, _brief(error))
    for artefact in (x for x in artefacts if x in manifest.artefacts):
        made = manifest.artefacts[artefact]
        fed = {formal: feeds[formal] for formal in made.feeds}
        model = path.parent / made.file
        case = Case(manifest.library, manifest.operator, model, fed, manifest.outputs, artefact=artefact)
        try:
            return Opinion(name, True, frontend.infer(frontend.compile(frontend.load(case), case), case))
        except Exception as error:  # not supported, or its own bug: it has no opinion
            refused = refused or _brief(error)
    return Opinion(name, True, None, refused)
