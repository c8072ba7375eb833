"""ONNX as a library of operators: a program becomes a model, a node a call, with ONNX's evaluator as reference."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera import resources
from opera.capture.recorder import LeftOut
from opera.errors import InvalidTest
from opera.libraries import Case, Cast, Form, Older, Point
from opera.libraries import simplest as simplest_calls
from opera.libraries.documented import Quote, Wrong
from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx import opsets as onnx_opsets
from opera.libraries.onnx import references as onnx_reference
from opera.libraries.onnx import source as onnx_source
from opera.libraries.onnx import stages
from opera.libraries.onnx import undefined as onnx_undefined
from opera.libraries.onnx import wrap as onnx_model
from opera.libraries.onnx.walk import all_nodes
from opera.oracle import comparison
from opera.oracle.opinions import Opinion
from opera.programs import degenerate, migrated, values
from opera.programs.migrated import Artefact, Manifest
from opera.programs.program import Argument, Call, Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import Message, Value

NAME = "onnx"
PACKAGE = "onnx"
NAMED = True
"""A call names what it returns, and inputs that are left out have their place."""
DISPUTING = onnx_reference.DISPUTING
LIGHT = True
"""`equipped_defaults` takes a fraction of a second: it may be asked where somebody waits."""
PRELOAD = ("onnx", "onnx.checker", "onnx.helper", "onnx.reference", "onnx.shape_inference", "ml_dtypes")
FORMS: Mapping[str, str] = {
    "onnx-node-tests": "folders test_x/{model.onnx,test_data_set_0/} of ONNX's backend tests",
    "onnx-node-cases": "Python case files as ONNX's node tests are written in",
}
EXPORTER_VERSION = "2"
"""Changes whenever `wrap` makes another model of the same instance, or tags it otherwise."""


def version() -> str:
    """Return the version of the installed onnx; PackageNotFoundError (an ImportError) where there is none."""
    return importlib.metadata.version("onnx")


def exporter() -> dict[str, str]:
    """Return what decides how models look: onnx, this module, and what instrumentation/onnx.toml makes constant."""
    return dict(_exporter())


@cache
def _exporter() -> dict[str, str]:
    declared = {key: _declared(key) for key in ("accumulating", "constants", "independent", "nondeterministic")}
    return {"onnx": version(), "opera-onnx": EXPORTER_VERSION, "onnx.toml": resources.digest(declared)}


def wrap(captured: Captured, test: str, directory: Path) -> Manifest:
    """Write the artefacts `onnx` (every input fed) and, where converters need constants, `onnx-constants`.

    Where an older opset means the same, `onnx-oldest-opset` is offered beside them.

    Expected outputs are the test's own, else those that came with a generated program, else the reference evaluator's, else
    those of the compiler that `captured` names. Raises InvalidTest where ONNX rejects the case or no reference output can be
    had.
    """
    import onnx

    program = captured.program
    made = onnx_model.parts(program)
    tags = facts(program, made) | set(captured.tags)
    by = captured.reference or "test"
    if captured.expected is None:
        types, expected, random, by = _reference(program, made, captured.reference)
        tags |= {"nondeterministic"} if random else set()
    else:
        expected = _expected(captured, made)
        types = _output_types(program, made) or [onnx_values.type_proto(value) for value in expected]
    model = onnx_model.model(program, made, types)
    if not captured.stated:  # the test's own word outweighs an inference that finds fault with it
        onnx_model.checked(model, inference=True)
    files = {"model.onnx": model}
    artefacts = {"onnx": Artefact("model.onnx", tuple(made.inputs))}
    constants = constant_inputs(made)
    if constants:
        files["model-constants.onnx"] = onnx_model.model(program, made, types, constants, check=False)
        fed = tuple(name for name in made.inputs if name not in constants)
        artefacts["onnx-constants"] = Artefact("model-constants.onnx", fed)
    versions, parsed = onnx_model.opset(program), onnx.load_model_from_string(model)
    nodes, kinds = list(all_nodes(made.nodes)), onnx_opsets.value_types(parsed)
    needs = onnx_opsets.needed(nodes, versions, kinds)
    newer = any(version < versions[domain] for domain, version in needs.items())
    rtol, atol = stages.granted(nodes, versions, captured.rtol, captured.atol)
    manifest = Manifest(
        test=test, instance=program.id, library=NAME, operator=program.operator, exporter=exporter(),
        offers=(onnx_opsets.OLDEST,) if newer else (),
        needs=needs, operators=onnx_opsets.of_operators(nodes, versions, kinds),
        inputs=tuple(made.inputs), outputs=tuple(made.outputs), artefacts=artefacts,
        reference=by, rtol=rtol, atol=atol, tags=tuple(sorted(tags)),
    )  # fmt: skip
    migrated.write(directory, manifest, made.values, expected, files)
    return manifest


def export(manifest: Manifest, directory: Path, artefact: str) -> Artefact:
    """Write the model with the oldest opset that it means the same with."""
    if artefact != onnx_opsets.OLDEST:
        raise LookupError(f"an ONNX test offers no {artefact}")
    first = manifest.artefacts["onnx"]
    file = "model-oldest-opset.onnx"
    (directory / file).write_bytes(onnx_opsets.stamped(directory / first.file, manifest.needs))
    return Artefact(file, first.feeds)


def publish(form: str, operator: str, cases: list[Case], number: int, folder: Path) -> dict[str, str]:
    """Write tests of an operator as node tests, a folder each, or as case files; see `opera.libraries.Publishing`."""
    from opera.libraries.onnx import node_cases, node_tests

    left: dict[str, str] = {}
    methods: list[str] = []
    for x in cases:
        try:
            if form == node_tests.FORM:
                node_tests.write(x.manifest, x.directory, x.program, x.name, folder)
            else:
                methods.append(node_cases.method(x.manifest, x.directory, x.program, x.name))
        except InvalidTest as error:
            shutil.rmtree(folder / x.name, ignore_errors=True)
            left[x.program.id] = error.what
    if methods:
        name = re.sub(r"\W+", "_", operator).lower() + (f"_{number}" if number > 1 else "")
        (folder / f"{name}.py").write_text(node_cases.module(operator, methods), encoding="utf-8")
    return left


def admitted() -> Mapping[str, frozenset[Point]]:
    """Return operator → the points that its newest schema admits (see `onnx_admitted`)."""
    from opera.libraries.onnx import admitted as onnx_admitted

    return onnx_admitted.admitted()


def reached(call: Instance) -> frozenset[Point]:
    """Return the points that a call is at."""
    from opera.libraries.onnx import admitted as onnx_admitted

    return onnx_admitted.reached(call)


def probe(points: list[Point], calls: list[Instance]) -> list[Point]:
    """Return the points at which the evaluator or ONNX Runtime runs a call that is changed so."""
    from opera.libraries.onnx import probing as onnx_probing

    return onnx_probing.probe(points, calls)


def body(message: Message) -> str:
    """Return a subgraph in ONNX's textual syntax; nothing of any other message. InvalidTest where its bytes are none."""
    from onnx import printer

    from opera.libraries.onnx import codec
    from opera.libraries.onnx.subgraphs import BODY

    return str(printer.to_text(codec.parse(message))) if message.type == BODY else ""


def mended() -> frozenset[str]:
    """Return the operators that opera computes in the place of the reference evaluator, which gets them wrong."""
    from opera.libraries.onnx import mended as onnx_mended

    return frozenset(x.__name__ for x in onnx_mended.operators()) - onnx_mended.REFUSING


def unmended(manifest: Manifest, directory: Path, inputs: list[Value]) -> list[Value] | None:
    """Return what the reference evaluator computes by itself, see `opera.libraries.Mending`."""
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    return onnx_reference.unmended(directory / manifest.artefacts["onnx"].file, feeds)


def evaluated(model: Path, feeds: dict[str, Value]) -> list[Value]:
    """Return what the nodes of a file mean, by the reference evaluator. Raises InvalidTest."""
    import onnx

    return onnx_reference.evaluate(onnx.load(model), feeds)


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    """Ask the reference evaluator (without a vote) and ONNX Runtime, unless that is the compiler under test."""
    return onnx_reference.opinions(manifest, directory, inputs, besides)


def further(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
    """Ask the other compilers that are there, one after the other, unless that is the compiler under test."""
    return onnx_reference.further(manifest, directory, inputs, besides)


def lacking(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> Iterator[Opinion]:
    """Evaluate the model with other attributes, and with older operators: what compilers may agree in taking it for."""
    return onnx_reference.lacking(manifest, directory, inputs, besides)


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why ONNX leaves the result undefined, with the numbers that show it, else None."""
    return onnx_undefined.undefined(instance, expected)


def steps(program: Graph) -> list[tuple[Instance, list[Value]]]:
    """Return each call with the values of its arguments, and what it returns, by the reference evaluator.

    Raises InvalidTest where the evaluator cannot run it.
    """
    made = onnx_model.parts(program)
    returned = {name: None for call in program.instances() for name in call.outputs if name}
    whole = msgspec.structs.replace(made, outputs=list(returned))
    known = dict(zip(returned, _reference(program, whole)[1], strict=True))
    return [(call, [known[name] for name in call.outputs if name]) for call in program.instances(known)]


def expanded(instance: Instance) -> list[Program]:
    """Return the nodes of an expanded body, each with the values that the reference evaluator gives it, then the whole graph.

    Of constants, one of each attribute that states them: a compiler may not know all of these. Of control flow, what its bodies
    are made of; of any other call the one node by which ONNX defines it, if that reads less.

    Nodes that are no operators of ONNX, or whose inputs are not known, are left out, and then there is no
    graph. Raises InvalidTest where the evaluator cannot run the body.
    """
    if not isinstance(instance.context.get("body"), Message):
        from opera.libraries.onnx import files

        return files.bodies(instance) or files.defined(instance)
    from opera.libraries.onnx import nodes as onnx_nodes

    made = onnx_model.parts(instance)
    names = list(dict.fromkeys(name for node in made.nodes for name in node.output if name))
    computed = _reference(instance, msgspec.structs.replace(made, outputs=names))[1]
    edges: dict[str, Value] = dict(zip(made.inputs, made.values, strict=True)) | dict(zip(names, computed, strict=True))
    edges |= {item.name: onnx_values.from_tensor_proto(item) for item in made.initializers}
    found: list[tuple[Any, Instance]] = []
    for node in made.nodes:
        try:
            found.append((node, onnx_nodes.instance(node, edges, onnx_model.opset(instance))))
        except LeftOut:
            continue
    graph = [_graph(found, edges, made.outputs)] if len(found) == len(made.nodes) > 1 else []
    calls = [call for _, call in found if call.operator != "Constant"]
    constants = {
        tuple(sorted(call.params)): call for _, call in found if call.operator == "Constant"
    }  # one of each form
    return [*calls, *constants.values(), *graph]


def _graph(found: list[tuple[Any, Instance]], edges: Mapping[str, Value], outputs: Iterable[str]) -> Graph:
    """Return the program of these nodes; what subgraphs take from outside stays what it is called, as every name does."""
    calls = tuple(
        Call(
            call.operator,
            call.params,
            tuple(
                Argument(x.name, name)
                for x, name in zip(call.inputs, [*node.input, *call.context.get("captured", ())], strict=True)
            ),
            tuple(node.output),
            call.context,
        )
        for node, call in found
    )
    made = {name for call in calls for name in call.outputs}
    taken = dict.fromkeys(x.of for call in calls for x in call.inputs if x.of and x.of not in made)
    return Graph(NAME, tuple(Operand(name, edges[name]) for name in taken), calls, tuple(outputs))


def reproducer(manifest: Manifest, directory: Path, program: Program, variant: str) -> dict[str, object]:
    """Return the code that builds the model and its inputs; `variant` is the name of the artefact to show."""
    return onnx_source.reproducer(manifest, directory, program, variant)


def specification(operator: str) -> str:
    """Return the address of an operator's documentation, or nothing for one that ONNX does not document."""
    return onnx_source.specification(operator)


def older(program: Program) -> list[Older]:
    """Return a program as of each older opset of ONNX's own operators that admits it, see `opera.libraries.Versioned`."""
    try:
        made, versions = onnx_model.parts(program), onnx_model.opset(program)
        types = onnx_opsets.value_types(onnx_model.inferred(program, made))
    except InvalidTest:  # what ONNX rejects has no other form either
        return []
    nodes = list(all_nodes(made.nodes))
    least = onnx_opsets.needed(nodes, versions, types).get("", versions.get("", 0))
    return [
        Older(onnx_opsets.written_for(program, version), version >= least)
        for version in onnx_opsets.admitting(nodes, versions, types)
    ]


def shortened(program: Program) -> list[Program]:
    """Return programs with less in a subgraph of a call, see `opera.libraries.Nesting`."""
    from opera.libraries.onnx import subgraphs

    return subgraphs.shortened(program)


def bodies(call: Instance, held: Collection[str]) -> list[Program]:
    """Return the nodes of a call's bodies and these as a whole, see `opera.libraries.Nesting`."""
    from opera.libraries.onnx import files

    return files.bodies(call, held)


def retyped(body: Message, dtype: str, other: str, of: Callable[[Any], Any]) -> Message:
    """Return a body in which all that is of one dtype is of another, see `opera.libraries.Nesting`."""
    try:
        from opera.libraries.onnx import retyping

        return retyping.retyped(body, dtype, other, of)
    except (ImportError, InvalidTest):
        return body


def forms(program: Program) -> list[Form]:
    """Return what is peculiar about how bodies of calls and constants are written, see `opera.libraries.Nesting`."""
    calls = program.instances()
    if not any(x.operator == "Constant" or any(isinstance(y, Message) for y in x.params.values()) for x in calls):
        return []
    try:
        from opera.libraries.onnx import forms

        return list(forms.forms(program))
    except (ImportError, InvalidTest):
        return []


def embedded(call: Instance, name: str) -> list[Program]:
    """Return the call after a node that states an input, or makes it: a sequence of what it holds.

    None where a body or a subgraph is bound to the names of inputs, or where there is no such node (the evaluator makes a
    sequence of an optional value).
    """
    value = next((x.value for x in call.inputs if x.name == name), None)
    if call.context.keys() & {"body", "captured"} or len({x.name for x in call.inputs}) < len(call.inputs):
        return []
    params: dict[str, Value] = {}
    parts: tuple[Value, ...] = ()
    match value:
        case values.Tensor() | values.RandomTensor():
            operator, params = "Constant", {"value": value}
        case values.Sequence(items=items) if items:
            operator, parts = "SequenceConstruct", items
        case values.Sequence(type=of) if of in onnx_values.ELEMENT_TYPES:
            operator, params = "SequenceEmpty", {"dtype": onnx_values.ELEMENT_TYPES[of]}
        case _:
            return []
    given = [Operand(f"{name}_{number}", part) for number, part in enumerate(parts)]
    makes = Call(
        operator, params, tuple(Argument(f"input_{n}", x.name) for n, x in enumerate(given)), (name,),
        {"opset": call.context.get("opset")},
    )  # fmt: skip
    known = {x.name for x in (*call.inputs, *given)}
    outputs = tuple(x + "_" * (x in known) for x in call.outputs)
    arguments = tuple(Argument(x.name, "" if x.value is None else x.name) for x in call.inputs)
    last = Call(call.operator, call.params, arguments, outputs, call.context)
    operands = (*given, *(x for x in call.inputs if x.name != name and x.value is not None))
    made = Graph(NAME, operands, (makes, last), tuple(filter(None, outputs)))
    return [onnx_opsets.with_constants(made) if operator == "Constant" else made]


def opened(model: Path, feeds: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
    """Return the program of a model file and the value of each of its results, see `opera.libraries.Reading`."""
    from opera.libraries.onnx import files

    return files.opened(model, feeds)


def attributed(call: Instance, name: str) -> list[Instance]:
    """Return the call as of the newest older opset whose operator states an input as an attribute: Upsample-7's `scales`."""
    held = next((x.value for x in call.inputs if x.name == name), None)
    stated: Any = call.context.get("opset", {})
    version = stated.get("", 0) if "::" not in call.operator and "body" not in call.context else 0
    if not isinstance(held, values.Tensor) or len(held.shape) > 1:
        return []
    try:
        older = onnx_opsets.with_attribute(call.operator, name, version)
    except ImportError:
        return []
    if older is None:
        return []
    made = msgspec.structs.replace(
        call,
        params={**call.params, name: held.array().tolist()},
        inputs=tuple(x for x in call.inputs if x.name != name),
    )
    written = onnx_opsets.written_for(made, older)
    return [written] if isinstance(written, Instance) else []


def negations(call: Instance, of: str, made: str) -> list[Call]:
    """Return what negates a result of a call, see `opera.libraries.Negating`."""
    context = {"opset": call.context.get("opset")}
    given = {"Neg": "X", "Not": "X", "Flatten": "input"}
    return [Call(x, {}, (Argument(name, of),), (made,), context) for x, name in given.items()]


def documented(call: Instance, parameters: list[str], wrong: Wrong) -> list[Quote]:
    """Return what the specification says of attributes, of what is wrong, and of what is special about the inputs."""
    from opera.libraries.onnx import schemas as onnx_schemas

    return onnx_schemas.quotes(call, parameters, wrong)


def fixed(call: Instance) -> frozenset[str]:
    """Return the names of the inputs that can be of one type alone."""
    from opera.libraries.onnx import schemas as onnx_schemas

    return onnx_schemas.fixed(call)


def optional(call: Instance) -> frozenset[str]:
    """Return the names of the attributes and inputs of a call that the specification lets be left out."""
    from opera.libraries.onnx import schemas as onnx_schemas

    return onnx_schemas.optional(call)


def described(call: Instance) -> dict[str, str]:
    """Return the name of an input → what the specification says of it."""
    from opera.libraries.onnx import schemas as onnx_schemas

    return onnx_schemas.described(call)


def equipped_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Return operator → attribute → default, by the newest schema of each operator (see `onnx_schemas`)."""
    from opera.libraries.onnx import schemas as onnx_schemas  # prioritization alone needs it

    return onnx_schemas.attribute_defaults(operators)


def typed(dtype: str) -> Value:
    """Return what a parameter holds that names a dtype."""
    return onnx_values.ELEMENT_TYPES[dtype]


def simplest(
    program: Program, *, panel: bool = False, cast: Cast | None = None, nodes: Collection[str] = ()
) -> list[Instance]:
    """Return the simplest calls of what a program is given, of its own opset, see `opera.libraries.Plain`."""
    opsets: list[Any] = [x.context.get("opset") or {} for x in program.instances()]
    version = max((x[""] for x in opsets if "" in x), default=0)
    context: dict[str, Value] = {"opset": {"": version}}
    return (
        simplest_calls.calls(NAME, program, lambda _: context, typed, cast, panel=panel, nodes=nodes) if version else []
    )


def canaries() -> tuple[Captured, Captured]:
    """Return an addition with its sum, and one with a sum that is off by one in one place."""
    return tuple(_addition(offset, error) for offset, error in ((0.0, 0.0), (4.0, 1.0)))  # type: ignore[return-value]


def _addition(offset: float, error: float) -> Captured:
    left, right = [1.0 + offset, 2.0, 3.0], [10.0, 20.0, 30.0]
    total = [a + b for a, b in zip(left, right, strict=True)]
    total[1] += error
    tensors = [values.Tensor("float32", (3,), struct.pack("<3f", *numbers)) for numbers in (left, right, total)]
    operands = (Operand("A", tensors[0]), Operand("B", tensors[1]))
    instance = Instance(NAME, "Add", {}, operands, ("C",), {"opset": {"": 14}})
    return Captured(instance, Provenance("doctor", "canary", "planted" if error else "right"), (tensors[2],))


def constant_inputs(made: onnx_model.Parts) -> frozenset[str]:
    """Return the graph inputs of which instrumentation/onnx.toml says that converters need them as constants."""
    declared = _declared("constants")
    listed, default = declared.get("operators", {}), declared.get("default", ())
    return frozenset(
        name
        for name, formals, value in zip(made.inputs, made.formals, made.values, strict=True)
        if onnx_model.feedable(value)
        and any({name, formal} & set(listed.get(operator, default)) for operator, formal in formals)
    )


def _declared(key: str) -> dict[str, Any]:
    table: dict[str, Any] = resources.declaration("instrumentation", NAME).get(key, {})
    return table


def _expected(captured: Captured, made: onnx_model.Parts) -> list[Value]:
    stated = [onnx_values.materialise(value) for value in captured.expected or ()]
    if len(stated) == len(captured.program.outputs) != len(made.outputs):
        stated = [value for name, value in zip(captured.program.outputs, stated, strict=True) if name]
    if len(stated) != len(made.outputs):
        raise InvalidTest(f"the test states {len(stated)} outputs, the model has {len(made.outputs)}")
    return stated


def _output_types(program: Program, made: onnx_model.Parts) -> list[Any] | None:
    stated = None if isinstance(program, Graph) else program.context.get("output_types")
    if not isinstance(stated, list | tuple) or len(stated) != len(made.outputs):
        return None
    return [onnx_values.parse(message) for message in stated if isinstance(message, Message)]


def _reference(program: Program, made: onnx_model.Parts, other: str = "") -> tuple[list[Any], list[Value], bool, str]:
    """Return types and values of the outputs by the reference evaluator, whether two runs of it differ, and who computed them:
    `other`, the name of a compiler, where the evaluator has no answer. Raises InvalidTest.
    """
    inferred = onnx_model.inferred(program, made)
    feeds = dict(zip(made.inputs, made.values, strict=True))
    try:
        first, again = (onnx_reference.evaluate(inferred, feeds, lawful=lawful) for lawful in (True, False))
    except InvalidTest:
        found = onnx_reference.computed_by(other, inferred, program.operator, feeds) if other else None
        if found is None:
            raise
        return onnx_model.output_types(inferred, found), found, False, other
    return onnx_model.output_types(inferred, first), first, first != again, "evaluator"


def facts(program: Program, made: onnx_model.Parts) -> set[str]:
    """Return facts for the screens.

    `nondeterministic` where an operator is declared random, `exact` where no result is ever rounded, `accumulating` where
    an operator is declared to sum many terms.
    """
    declared = _declared("nondeterministic")
    operators, conditional = set(declared.get("operators", ())), declared.get("when", {})
    used = {*program.operators, *(_signature(node) for node in all_nodes(made.nodes))}
    settled = {call.operator for call in program.instances() if degenerate.holds(call)}
    settled -= {call.operator for call in program.instances() if not degenerate.holds(call)}
    tags = {"nondeterministic"} if used & operators - settled else set()
    for call in program.instances():
        switch = conditional.get(call.operator)
        if switch and not degenerate.holds(call) and any(_is_true(x.value) for x in call.inputs if x.name == switch):
            tags.add("nondeterministic")
    if used <= onnx_undefined.EXACT and not any(map(_adds, all_nodes(made.nodes))):
        tags.add(comparison.EXACT)
    if set(program.operators) & set(_declared("accumulating").get("operators", ())):
        tags.add("accumulating")
    return tags


def _adds(node: Any) -> bool:
    """Whether a node that scatters adds or multiplies what meets."""
    return any(x.name == "reduction" and x.s in (b"add", b"mul") for x in node.attribute)


def _is_true(value: Value) -> bool:
    return isinstance(value, values.Tensor) and value.dtype == "bool" and any(value.data)


def _signature(node: Any) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else str(node.op_type)
