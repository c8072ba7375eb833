"""Programs: operator calls over inputs, in single-assignment form. A program of one call is an operator instance.

An `Instance` holds the values of its arguments itself; a `Graph` of several calls names them, for an argument may be what an
earlier call returned, and two calls may share an input. Whoever looks at a program call by call asks for its `instances`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import msgspec

from opera.errors import CorpusError
from opera.programs import values
from opera.programs.values import Value

JOINED = " + "
"""Between the operators of a program of several calls, where a program is named by them (`MatMul + Relu`)."""
MAX_CALLS = 1000
"""A graph of more calls is refused."""


class Result(msgspec.Struct, frozen=True):
    """Stands for the value of an argument that an earlier call returns under this name, where it is not known."""

    name: str


class Operand(msgspec.Struct, frozen=True):
    """A tensor input under its formal name; `value` is None where an optional input is left out."""

    name: str
    value: Value


class Instance(msgspec.Struct, frozen=True):
    """One operator with every parameter's value and every tensor input.

    Attributes:
        library: The library the operator belongs to (`onnx`, `torch`, `keras`).
        operator: The operator signature, the library's public name of it (`Conv`, `ai.onnx.ml::Scaler`).
        params: Parameter name → value, tensors excepted.
        inputs: Tensor inputs in the operator's order.
        outputs: Names of the outputs asked for, empty strings where one is left out.
        context: What else decides the meaning (`opset`, `domain`, `mode`, an expanded `body`), by the library's module.
    """

    library: str
    operator: str
    params: dict[str, Value]
    inputs: tuple[Operand, ...]
    outputs: tuple[str, ...]
    context: dict[str, Value]

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator of each call: of the only one."""
        return (self.operator,)

    def instances(self, known: Mapping[str, Value] | None = None) -> tuple[Instance, ...]:
        """Return each call with the values of its arguments: itself."""
        return (self,)

    def form(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/corpus.md)."""
        return {
            "library": self.library,
            "operator": self.operator,
            "params": {name: values.encode(value) for name, value in self.params.items()},
            "inputs": [{"name": x.name, "value": values.encode(x.value)} for x in self.inputs],
            "outputs": list(self.outputs),
            "context": {name: values.encode(value) for name, value in self.context.items()},
        }

    def canonical(self) -> bytes:
        """Return the canonical bytes that the identity is taken from."""
        return msgspec.json.encode(self.form(), order="sorted")

    @property
    def id(self) -> str:
        """Content address: 20 hexadecimal digits of the SHA-256 of the canonical form."""
        return identity(self.canonical())


class Argument(msgspec.Struct, frozen=True):
    """A tensor argument under its formal name: which input or earlier result it is, empty where an optional one is left out."""

    name: str
    of: str


class Call(msgspec.Struct, frozen=True):
    """One call of a graph.

    Attributes:
        operator, params, context: As of an instance.
        inputs: Tensor arguments in the operator's order.
        outputs: Names of its results, for later calls to refer to; an empty string where one is not used. A library that does
            not name outputs (PyTorch, Keras) counts the tensors in what is returned, in the order of its own flattening.
    """

    operator: str
    params: dict[str, Value]
    inputs: tuple[Argument, ...]
    outputs: tuple[str, ...]
    context: dict[str, Value]


class Graph(msgspec.Struct, frozen=True):
    """A program of several calls.

    Attributes:
        library: The library that all operators belong to.
        inputs: Inputs under names of their own; every one is used.
        calls: In order: an argument is an input, or what an earlier call returns.
        outputs: Names of the results that the program returns.
    """

    library: str
    inputs: tuple[Operand, ...]
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator of each call."""
        return tuple(call.operator for call in self.calls)

    @property
    def operator(self) -> str:
        """All operators, JOINED: what the program is called by."""
        return JOINED.join(self.operators)

    def instances(self, known: Mapping[str, Value] | None = None) -> tuple[Instance, ...]:
        """Return each call with the values of its arguments; what is neither an input nor in `known` is a Result."""
        held = {operand.name: operand.value for operand in self.inputs} | dict(known or {})
        return tuple(self.instance(call, held) for call in self.calls)

    def instance(self, call: Call, held: Mapping[str, Value]) -> Instance:
        """Return one call with the values of its arguments, of those that are `held`, inputs and all."""
        operands = tuple(Operand(x.name, held.get(x.of, Result(x.of)) if x.of else None) for x in call.inputs)
        return Instance(self.library, call.operator, call.params, operands, call.outputs, call.context)

    def form(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/corpus.md)."""
        return {
            "library": self.library,
            "inputs": [{"name": x.name, "value": values.encode(x.value)} for x in self.inputs],
            "calls": [
                {
                    "operator": call.operator,
                    "params": {name: values.encode(value) for name, value in call.params.items()},
                    "inputs": [{"name": x.name, "of": x.of or None} for x in call.inputs],
                    "outputs": list(call.outputs),
                    "context": {name: values.encode(value) for name, value in call.context.items()},
                }
                for call in self.calls
            ],
            "outputs": list(self.outputs),
        }

    def canonical(self) -> bytes:
        """Return the canonical bytes that the identity is taken from."""
        return msgspec.json.encode(self.form(), order="sorted")

    @property
    def id(self) -> str:
        """Content address, as of an instance."""
        return identity(self.canonical())


Program: TypeAlias = Instance | Graph


def with_values(program: Program, given: Sequence[Value]) -> Program:
    """Return the program with other values of its inputs, in the order of `inputs`."""
    pairs = zip(program.inputs, given, strict=True)
    return msgspec.structs.replace(program, inputs=tuple(Operand(x.name, value) for x, value in pairs))


def with_params(program: Program, params: Callable[[Instance], dict[str, Value]]) -> Program:
    """Return the program with other parameters, as a function says of each of its calls."""
    if isinstance(program, Instance):
        return msgspec.structs.replace(program, params=params(program))
    pairs = zip(program.calls, program.instances(), strict=True)
    return msgspec.structs.replace(
        program, calls=tuple(msgspec.structs.replace(call, params=params(instance)) for call, instance in pairs)
    )


def given_names(program: Program) -> list[str]:
    """Return the names of the inputs, then those of the results of a graph, in order."""
    results = [name for call in program.calls for name in call.outputs if name] if isinstance(program, Graph) else []
    return [*(operand.name for operand in program.inputs), *results]


def names_of(program: Program) -> tuple[dict[str, str], ...]:
    """Return for each call: formal name of a tensor argument → the name of the input or result that it is."""
    if isinstance(program, Instance):
        return ({operand.name: operand.name for operand in program.inputs},)
    return tuple({x.name: x.of for x in call.inputs if x.of} for call in program.calls)


def stated_version(call: Instance | Call) -> int | None:
    """Return the version of its operator's domain that a call states (`opset`), None where it states none."""
    opset = call.context.get("opset")
    version = opset.get(call.operator.rpartition("::")[0]) if isinstance(opset, dict) else None
    return version if isinstance(version, int) else None


def operators_of(name: str) -> tuple[str, ...]:
    """Return the operators of the program that is called so."""
    return tuple(name.split(JOINED))


def matches(name: str, pattern: str) -> bool:
    """Whether an operator of the program that is called so matches a glob."""
    return any(fnmatchcase(operator, pattern) for operator in operators_of(name))


class Provenance(msgspec.Struct, frozen=True):
    """Where an instance was seen: migration source (`onnx-node-tests`), file and test within it."""

    source: str
    file: str
    test: str


class Captured(msgspec.Struct, frozen=True):
    """What a source yields: a program, where it came from, and what its test expects of it, if it says so.

    Attributes:
        program, provenance: What, and where it was seen.
        expected: Outputs as its test states them; as somebody computed them where a `reference` is named; None where neither is
            known, and the library's own reference is asked.
        rtol, atol: The test's own tolerance.
        reference: What computed `expected`, of a generated program; empty for a test's own word. Where nothing is expected, who
            is asked if the library's own reference has no answer.
        tags: Facts for the screens that the source knows of the program (see opera.programs.migrated.Manifest).
    """

    program: Program
    provenance: Provenance
    expected: tuple[Value, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    reference: str = ""
    tags: tuple[str, ...] = ()

    def form(self) -> dict[str, Any]:
        """Return the JSON form of one line of a corpus file or capture spool."""
        form = {
            "instance": self.program.form(),
            "provenance": msgspec.to_builtins(self.provenance),
            "expected": None if self.expected is None else [values.encode(x) for x in self.expected],
            "rtol": self.rtol,
            "atol": self.atol,
        }
        return form | {name: found for name in ("reference", "tags") if (found := getattr(self, name))}

    @property
    def stated(self) -> bool:
        """Whether its own test says what it expects."""
        return self.expected is not None and not self.reference


def identity(canonical: bytes) -> str:
    """Return the content address of canonical bytes."""
    return hashlib.sha256(canonical).hexdigest()[:20]


def parse(data: bytes | dict[str, Any]) -> Program:
    """Inverse of `form`, of an instance or a graph; raises CorpusError for anything else."""
    form = _json(data) if isinstance(data, bytes) else data
    try:
        return _graph(form) if "calls" in form else _instance(form)
    except (KeyError, TypeError, AttributeError) as error:
        raise CorpusError(f"an instance is malformed: {type(error).__name__}: {error}") from None


def parse_instance(data: bytes | dict[str, Any]) -> Instance:
    """As `parse`, where one call is wanted: raises CorpusError for a graph too."""
    found = parse(data)
    if isinstance(found, Graph):
        raise CorpusError("one operator instance is wanted, not a program of several calls")
    return found


def _instance(form: dict[str, Any]) -> Instance:
    _check_names(form["library"], form["operator"], *form["outputs"], *(x["name"] for x in form["inputs"]))
    return Instance(
        form["library"],
        form["operator"],
        _decoded(form["params"]),
        tuple(Operand(x["name"], values.decode(x["value"])) for x in form["inputs"]),
        tuple(form["outputs"]),
        _decoded(form["context"]),
    )


def _graph(form: dict[str, Any]) -> Graph:
    inputs = tuple(Operand(x["name"], values.decode(x["value"])) for x in form["inputs"])
    calls = tuple(
        Call(
            call["operator"],
            _decoded(call["params"]),
            tuple(Argument(x["name"], x["of"] or "") for x in call["inputs"]),
            tuple(call["outputs"]),
            _decoded(call["context"]),
        )
        for call in form["calls"]
    )
    graph = Graph(form["library"], inputs, calls, tuple(form["outputs"]))
    _check_graph(graph)
    return graph


def _decoded(form: dict[str, Any]) -> dict[str, Value]:
    return {str(name): values.decode(value) for name, value in form.items()}


def _check_names(*names: object) -> None:
    if not all(isinstance(name, str) and len(name) <= 500 for name in names):
        raise CorpusError("a name of an instance is no string of at most 500 characters")


def _check_graph(graph: Graph) -> None:
    """Refuse what is not in single-assignment form, and inputs that nothing uses."""
    if not 2 <= len(graph.calls) <= MAX_CALLS:
        raise CorpusError(
            f"a program of {len(graph.calls)} calls; one call is written as an instance, more than {MAX_CALLS} are refused"
        )
    known: set[str] = set()
    used: set[str] = set()
    _check_names(graph.library, *graph.outputs)
    for name in (operand.name for operand in graph.inputs):
        _define(name, known)
    for place, call in enumerate(graph.calls):
        _check_names(call.operator, *call.outputs, *(text for x in call.inputs for text in (x.name, x.of)))
        if JOINED in call.operator:
            raise CorpusError(f"there is no operator called {call.operator[:100]!r}")
        arguments = {x.of for x in call.inputs} - {""}
        if missing := arguments - known:
            raise CorpusError(
                f"call {place} takes {min(missing)[:100]!r}, which no input is and no earlier call returns"
            )
        used |= arguments
        for name in call.outputs:
            if name:
                _define(name, known)
    inputs = {operand.name for operand in graph.inputs}
    if unused := inputs - used:
        raise CorpusError(f"no call takes the input {min(unused)[:100]!r}")
    if not graph.outputs or len(set(graph.outputs)) != len(graph.outputs) or not set(graph.outputs) <= known - inputs:
        raise CorpusError("the outputs of a program are results of its calls, each once, and one at least")


def _define(name: object, known: set[str]) -> None:
    _check_names(name)
    if not name or name in known:
        raise CorpusError(
            f"the name {str(name)[:100]!r} is given twice" if name else "an input of a program has no name"
        )
    known.add(str(name))


def parse_captured(data: bytes | dict[str, Any]) -> Captured:
    """Inverse of `Captured.form`; raises CorpusError for anything else."""
    form = _json(data) if isinstance(data, bytes) else data
    try:
        expected = form.get("expected")
        return Captured(
            parse(form["instance"]),
            msgspec.convert(form["provenance"], Provenance),
            None if expected is None else tuple(values.decode(x) for x in expected),
            msgspec.convert(form.get("rtol"), float | None),
            msgspec.convert(form.get("atol"), float | None),
            msgspec.convert(form.get("reference", ""), str),
            msgspec.convert(form.get("tags", ()), tuple[str, ...]),
        )
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise CorpusError(f"a corpus line is malformed: {type(error).__name__}: {error}") from None


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorpusError(f"no JSON: {error}") from None
