"""Keras as a library of operators: a program becomes a functional model, run on TensorFlow."""

from __future__ import annotations

import importlib.metadata
import inspect
import math
import re
import struct
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import resources
from opera.errors import CorpusError, InvalidTest
from opera.libraries import Cast, embedding, rulings
from opera.libraries import simplest as simplest_calls
from opera.libraries.documented import Quote, Wrong, of_docstring
from opera.libraries.documented import described as inputs_described
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras import export as keras_export
from opera.libraries.keras import source as keras_source
from opera.libraries.keras import undefined as keras_undefined
from opera.libraries.keras import wrap as keras_model
from opera.libraries.keras.wrap import Live
from opera.oracle import comparison as oracle
from opera.oracle.opinions import Opinion
from opera.programs import degenerate, migrated, values
from opera.programs.migrated import LIVE, Artefact, Manifest
from opera.programs.program import (
    Argument,
    Call,
    Captured,
    Graph,
    Instance,
    Operand,
    Program,
    Provenance,
    parse,
    with_values,
)
from opera.programs.values import NO_DEFAULT, Value

NAME = "keras"
PACKAGE = '"opera[keras]"'
PRELOAD = ("opera.libraries.keras.backend", "ml_dtypes")
EXPORTER_VERSION = "2"
"""Changes whenever `wrap` or `export` makes another model of the same instance."""
FILE = "instance.json"
KEPT = 128
"""Models that are kept to be exported: somewhat more than a run wraps ahead (opera.run.driver.LOOKAHEAD)."""
LARGE = 1 << 20
"""Models with more bytes of weights and inputs are not kept."""


def version() -> str:
    """Return the version of the installed keras; ImportError where it, or TensorFlow, is missing."""
    _tensorflow()
    return importlib.metadata.version("keras")


def _tensorflow() -> str:
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise ImportError("Keras has no backend: TensorFlow is not installed")


def exporter() -> dict[str, str]:
    """Return what decides how models look: Keras, its backend, tf2onnx where it is there, this module, and the declarations."""
    return dict(_exporter())


@cache
def _exporter() -> dict[str, str]:
    declared = resources.digest(keras_api.deciding())
    found = {"keras": version(), "tensorflow": _tensorflow(), "opera-keras": EXPORTER_VERSION, "keras.toml": declared}
    try:
        return {**found, "tf2onnx": importlib.metadata.version("tf2onnx")}
    except importlib.metadata.PackageNotFoundError:
        return found


def wrap(captured: Captured, test: str, directory: Path) -> Manifest:
    """Write the program itself, from which the model is rebuilt; expected outputs are what Keras computes, eagerly.

    Artefacts are only offered: see `export`. Raises InvalidTest where Keras rejects the case.
    """
    program = captured.program
    live = keras_model.build(program)
    before, first = live.state(), _run(live)
    settled = live.state() == before
    again = first if settled else _run(live)  # from the state that it began in, a model computes the same
    expected = list(captured.expected) if captured.expected is not None else first
    if len(expected) != len(first):
        raise InvalidTest(f"the test states {len(expected)} outputs, the model has {len(first)}")
    names = keras_source.identifiers(program)[: len(program.inputs)]
    manifest = Manifest(
        test=test, instance=program.id, library=NAME, operator=program.operator, exporter=exporter(),
        inputs=names, outputs=tuple(f"output_{place}" for place in range(len(expected))),
        artefacts={LIVE: Artefact(FILE, names)}, offers=tuple(keras_export.FILES),
        reference="eager" if captured.expected is None else captured.reference or "test",
        rtol=captured.rtol, atol=captured.atol, tags=tuple(sorted({*_tags(program, first != again), *captured.tags})),
    )  # fmt: skip
    fed = [operand.value for operand in program.inputs]
    bare = with_values(program, [None] * len(fed))
    file = msgspec.json.encode({"program": bare.form()}, order="sorted")
    migrated.write(directory, manifest, fed, expected, {FILE: file})
    if settled:
        _keep(directory, test, live)
    return manifest


def _run(live: Live) -> list[Value]:
    try:
        return [keras_values.from_array(item) for item in live.run()]
    except MemoryError:
        raise
    except Exception as error:  # as various as TensorFlow's kernels
        text = " ".join(str(error).split())[:600]
        raise InvalidTest(f"Keras cannot run it: {type(error).__name__}: {text}") from None


def _tags(program: Program, differ: bool) -> tuple[str, ...]:
    """Return facts for the screens, as instrumentation/keras.toml declares them; see opera.libraries.onnx.library."""
    declared, operators = keras_api.instrumentation(), set(program.operators)
    tags = {"nondeterministic"} if differ or any(map(_is_random, program.instances())) else set()
    if operators <= set(declared.exact["operators"]):
        tags.add(oracle.EXACT)
    if operators & set(declared.accumulating["operators"]):
        tags.add("accumulating")
    return tuple(sorted(tags))


def _is_random(instance: Instance) -> bool:
    declared, operator = keras_api.instrumentation().nondeterministic, instance.operator
    random = operator in declared["training"] or operator.startswith(tuple(declared["training_prefixes"]))
    return random and bool(instance.context.get("training")) and not degenerate.holds(instance)


def export(manifest: Manifest, directory: Path, artefact: str) -> Artefact:
    """Write `saved_model` (a folder), `tflite` or `onnx`; raises whatever the exporter raises."""
    return keras_export.export(live(manifest, directory), manifest, directory, artefact)


def live(manifest: Manifest, directory: Path) -> Live:
    """Rebuild the model. Raises InvalidTest or CorpusError where the test's folder was tampered with.

    What this process wrapped it need not build again, if running it has left it as it was.
    """
    return _kept.get((str(directory), manifest.test)) or _live(str(directory), manifest.test)


@lru_cache(maxsize=1)  # a worker is often asked for several artefacts of a test in a row
def _live(directory: str, test: str) -> Live:
    return keras_model.build(_stored(Path(directory)))


_kept: dict[tuple[str, str], Live] = {}
"""(folder, test) → model, of the tests that this process wrapped last."""


def _keep(directory: Path, test: str, live: Live) -> None:
    """Keep a small model in place of the oldest."""
    if live.size <= LARGE:
        if len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[str(directory), test] = live


def _stored(directory: Path) -> Program:
    """Return what `wrap` stored; folders of opera 0.1 hold an instance, values and all."""
    try:
        form = msgspec.json.decode((directory / FILE).read_bytes())
        if "program" not in form:
            return parse(form)
        return with_values(parse(form["program"]), migrated.read_values(directory, "inputs"))
    except (OSError, msgspec.DecodeError, ValueError, TypeError) as error:
        raise CorpusError(f"{directory / FILE} cannot be read: {error}", fix="delete the test's folder") from None


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    """Ask Keras itself (without a vote), the graph that TensorFlow traces of it, and Keras with everything in double precision.

    The graph has a vote where it contradicts Keras run eagerly: then no compiler, which gets the graph, can be right.
    """
    made = live(manifest, directory)
    fed = [keras_values.to_array(value) for value in inputs]
    eager = _opinion("eager", False, lambda: made.run(fed))
    graph = _opinion("graph", False, lambda: made.run_graph(fed))
    if eager.outputs is not None and graph.outputs is not None:
        differs = oracle.compare(eager.outputs, graph.outputs, manifest.outputs, manifest.rtol, manifest.atol).symptom
        graph = msgspec.structs.replace(graph, independent=bool(differs))
    found = [eager, graph]
    if besides != "float64":
        double = _opinion("float64", True, lambda: keras_model.in_double(made, _stored(directory), fed))
        found.append(msgspec.structs.replace(double, precise=True))
    return found


def _opinion(name: str, independent: bool, run: Any) -> Opinion:
    try:
        return Opinion(name, independent, [keras_values.from_array(item) for item in run()])
    except Exception as error:  # it has no opinion
        return Opinion(name, independent, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why Keras leaves the result undefined, with the numbers that show it, else None."""
    return keras_undefined.undefined(instance, expected)


def steps(program: Graph) -> list[tuple[Instance, list[Value]]]:
    """Return each call with the values of its arguments, and what Keras returns for them, run eagerly."""
    return keras_model.steps(program)


def expanded(instance: Instance) -> list[Program]:
    """Return the layers and functions that Keras calls for one call; empty where it calls none."""
    from opera.libraries.keras import inner as keras_inner  # reduction alone needs it

    return list(keras_inner.expanded(instance))


def negations(call: Instance, of: str, made: str) -> list[Call]:
    """Return what negates a result of a call, see `opera.libraries.Negating`."""
    context: dict[str, Value] = {"kind": "function", "call": {"args": ["x"], "kwargs": []}}
    names = ("keras.ops.negative", "keras.ops.logical_not", "keras.ops.ravel")
    return [Call(x, {}, (Argument("x", of),), (made,), context) for x in names]


def embedded(call: Instance, name: str) -> list[Program]:
    """Return the call that is given an input as a constant, see `opera.libraries.Embedding`."""
    return [*embedding.embedded(call, name, keras_source.INPUT)]


def attributed(call: Instance, name: str) -> list[Instance]:
    """Return nothing: Keras's operators have no versions that state an input otherwise."""
    return []


def reproducer(manifest: Manifest, directory: Path, program: Program, variant: str) -> dict[str, object]:
    """Return the code that builds the model, and its inputs; `variant` is the artefact that is made of it."""
    from opera.libraries.keras import backend as keras_backend  # noqa: F401 - layers are made to see how they are spelled: quietly

    return keras_source.reproducer(manifest, directory, program, variant)


def specification(operator: str) -> str:
    """Return the address of an operator's documentation."""
    return keras_source.link(operator)


def documented(call: Instance, parameters: list[str], wrong: Wrong) -> list[Quote]:
    """Return what the documentation says of parameters, and of what is special about the inputs."""
    from opera.libraries.keras import backend as keras_backend  # noqa: F401 - never by the user's keras.json

    docstring, address = keras_api.objects().get(call.operator).__doc__ or "", specification(call.operator)
    settling = rulings.of_docstring(call, docstring, address, wrong)
    return [*settling, *of_docstring(call, docstring, parameters, address, wrong)]


def described(call: Instance) -> dict[str, str]:
    """Return the name of an input → what the documentation says of it."""
    from opera.libraries.keras import backend as keras_backend  # noqa: F401 - never by the user's keras.json

    return inputs_described(call, keras_api.objects().get(call.operator).__doc__ or "")


def equipped_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Return operator → parameter → default, by the signatures of constructors and functions.

    A configuration holds serialised objects where a signature names them ("glorot_uniform"): those defaults are given in the
    form of the configuration.
    """
    from opera.libraries.keras import backend as keras_backend  # noqa: F401 - never by the user's keras.json

    found = {}
    for operator in operators:
        if operator in keras_api.objects():
            found[operator] = {name: _default(name, item) for name, item in keras_api.defaults(operator).items()}
    return found


def _default(name: str, item: Any) -> Value:
    if item is inspect.Parameter.empty:
        return NO_DEFAULT
    try:
        return keras_source.default(name, item)
    except keras_values.NotRepresentable:
        return NO_DEFAULT


def operations(program: Program) -> int:
    """Return how many operations its graph has, see `opera.libraries.Graphed`."""
    return keras_model.operations(program)


def plainest(lowered: str) -> list[Instance]:
    """Return the plainest calls that become this operator of TensorFlow Lite, see `opera.libraries.Lowering`."""

    def spelled(name: str) -> str:
        return re.sub(r"[\W_]", "", name).lower()

    return [_plainest(x) for x in keras_api.instrumentation().plainest if spelled(x.lowered) == spelled(lowered)]


def _plainest(of: keras_api.Plainest) -> Instance:
    layer = keras_api.kind(of.operator) == "layer"
    operands = []
    for name, held in of.inputs.items():
        if isinstance(held, dict):
            [(dtype, numbers)] = held.items()
            array = np.array(numbers, dtype)
        else:
            array = np.arange(1.0, 1.0 + math.prod(held), dtype="float32").reshape(held)
        operands.append(Operand(name, values.Tensor.of(array)))
    params: dict[str, Value] = {name: tuple(x) if isinstance(x, list) else x for name, x in of.params.items()}
    given = {"args": [x.name for x in operands], "kwargs": [] if layer else list(params)}
    context: dict[str, Value] = {"kind": "layer" if layer else "function", "call": given}
    return Instance(NAME, of.operator, params, tuple(operands), (), context | ({"training": False} if layer else {}))


def typed(dtype: str) -> Value:
    """Return what a parameter holds that names a dtype."""
    return dtype


def simplest(
    program: Program, *, panel: bool = False, cast: Cast | None = None, nodes: Collection[str] = ()
) -> list[Instance]:
    """Return the simplest calls of what a program is given, see `opera.libraries.Plain`."""

    def context(of: simplest_calls.Declared) -> dict[str, Value]:
        return {"kind": "function", "call": {"args": list(of.args), "kwargs": []}}

    return simplest_calls.calls(NAME, program, context, typed, cast, panel=panel, nodes=nodes)


def canaries() -> tuple[Captured, Captured]:
    """Return an addition by a layer with its sum, and one with a sum that is off by one in one place."""
    return tuple(_addition(offset, error) for offset, error in ((0.0, 0.0), (4.0, 1.0)))  # type: ignore[return-value]


def _addition(offset: float, error: float) -> Captured:
    left, right = [1.0 + offset, 2.0, 3.0], [10.0, 20.0, 30.0]
    total = [a + b for a, b in zip(left, right, strict=True)]
    total[1] += error
    tensors = [values.Tensor("float32", (1, 3), struct.pack("<3f", *numbers)) for numbers in (left, right, total)]
    operands = tuple(Operand(f"inputs.{place}", tensor) for place, tensor in enumerate(tensors[:2]))
    params = {"call.inputs": [values.Named(keras_source.INPUT, operand.name) for operand in operands]}
    context = {"kind": "layer", "training": False, "call": {"args": ["call.inputs"], "kwargs": []}}
    instance = Instance(NAME, "keras.layers.Add", params, operands, (), context)
    return Captured(instance, Provenance("doctor", "canary", "planted" if error else "right"), (tensors[2],))
