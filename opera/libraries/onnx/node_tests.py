"""Node tests as files, in the form in which ONNX's own are published: what its loader and runners of backend tests read.

A test is a folder, `test_x/model.onnx` with `test_x/test_data_set_0/input_0.pb` and `output_0.pb`, ..., each a TensorProto,
SequenceProto or OptionalProto by the type that the model declares; `data.json` beside the model says a tolerance of its own.

A model of one node says which instance it is. What a model does not say (the operator of an expanded body, a program of several
calls, how large inputs were described) is stated in its metadata, and counts as long as the model is still the one made of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from opera.capture.recorder import LeftOut, Recorder
from opera.errors import CorpusError, InvalidTest, OperaError
from opera.libraries.onnx import codec
from opera.libraries.onnx import wrap as onnx_model
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Captured, Program, Provenance, parse, with_values
from opera.programs.values import Optional, RandomTensor, Sequence, Tensor, Value

FORM = "onnx-node-tests"
STATED = "opera.program"
"""Key of a model's metadata: the JSON of its program, with `true` for each input that lies beside it in a file."""
KINDS = {"": 0, "tensor": 1, "sequence": 3, "optional": 5}
"""What a SequenceProto or OptionalProto holds → number in their DataType, which are the same."""
NOWHERE = Provenance("", "", "")


def write(manifest: Manifest, directory: Path, program: Program, name: str, folder: Path) -> None:
    """Write a migrated test as `folder`/`name`. Raises InvalidTest where its files would not tell what it is."""
    import onnx

    case = folder / name
    model = onnx.load(directory / manifest.artefacts["onnx"].file)
    model.graph.name = name
    data = case / "test_data_set_0"
    data.mkdir(parents=True)
    given, expected = read_values(directory, "inputs"), read_values(directory, "expected")
    for kind, values, infos in (("input", given, model.graph.input), ("output", expected, model.graph.output)):
        for number, (value, info) in enumerate(zip(values, infos, strict=True)):
            proto = _proto(value)
            proto.name = info.name
            (data / f"{kind}_{number}.pb").write_bytes(proto.SerializeToString(deterministic=True))
    tolerance = {key: x for key, x in (("rtol", manifest.rtol), ("atol", manifest.atol)) if x is not None}
    if tolerance:
        (case / "data.json").write_text(json.dumps(tolerance) + "\n", encoding="utf-8")
    onnx.save(model, case / "model.onnx")
    if program.id not in _found(case):
        model.metadata_props.add(key=STATED, value=_stated(program))
        onnx.save(model, case / "model.onnx")
        if program.id not in _found(case):
            raise InvalidTest("the files of a node test would not tell which instance it is")


def _found(case: Path) -> list[str]:
    """Return the ids of the instances that a node test's files tell of."""
    try:
        return [found.program.id for found in read(case)]
    except LeftOut:
        return []


def read(case: Path) -> Iterator[Captured]:
    """Yield the instance of a node test's folder with what each of its data sets expects.

    Raises LeftOut for a model of several nodes that does not state what it is, for values that opera does not know, and for
    files that are no protobuf messages of their kind.
    """
    import onnx

    try:
        model = onnx.load(case / "model.onnx", load_external_data=False)
        tolerance = json.loads((case / "data.json").read_bytes()) if (case / "data.json").is_file() else {}
        rtol, atol = (_number(tolerance.get(key)) for key in ("rtol", "atol"))
        sets = sorted(case.glob("test_data_set_*"))
        if not sets:
            raise LeftOut("a node test without data")
        for data in sets:
            given = _inputs(data, model)
            expected = [
                _value(data / f"output_{at}.pb", x.type) for at, x in _present(data, "output", model.graph.output)
            ]
            whole = tuple(expected) if len(expected) == len(model.graph.output) else None
            yield Captured(_program(model, given), NOWHERE, whole, rtol, atol)
    except (OSError, DecodeError, InvalidTest, ValueError, AttributeError) as error:
        raise LeftOut(f"files of a node test that cannot be read: {' '.join(str(error).split())[:120]}") from None


def _inputs(data: Path, model: Any) -> list[Value]:
    return [_value(data / f"input_{at}.pb", x.type) for at, x in _present(data, "input", model.graph.input)]


def _number(stated: Any) -> float | None:
    return float(stated) if isinstance(stated, int | float) else None


def _present(data: Path, kind: str, infos: Any) -> list[tuple[int, Any]]:
    """Return the places and declarations of the inputs or outputs that lie in a data set: the first of the model's."""
    count = len(list(data.glob(f"{kind}_*.pb")))
    if count > len(infos):
        raise InvalidTest(f"{count} files of {kind}s for {len(infos)} that the model has")
    return list(enumerate(infos))[:count]


def run(recorder: Recorder, path: str) -> tuple[int, int]:
    """Record the instance of the node test whose model is `path`, as a driver of a suite (opera.capture.child).

    A model of several nodes that does not say what it is is run once with what its data set feeds, and hooks see its nodes.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    from opera.libraries.onnx import hooks

    case = Path(path).parent
    found: list[Captured] = []
    recorder.observe(lambda: found.extend(read(case)))
    for x in found:
        recorder.record(x.program, test=case.name, expected=x.expected, rtol=x.rtol, atol=x.atol)
    try:
        model = onnx.load(path)
        given = [] if found else _inputs(case / "test_data_set_0", model)
    except (OSError, DecodeError, LeftOut, OperaError, ValueError):
        return 1, 1  # what `read` has told already
    if len(model.graph.node) > 1 and not found:
        recorder.test = case.name
        feeds = {x.name: codec.to_evaluator(value) for x, value in zip(model.graph.input, given, strict=False)}
        try:
            ReferenceEvaluator(model).run(None, feeds)
        except Exception:  # whatever numpy or the evaluator raises: nodes are taken with inputs that are made up
            hooks.take_apart(model)
    return 1, 0


# ---------------------------------------------------------------------- the program


def _program(model: Any, given: list[Value]) -> Program:
    """Return the program of a model with these values of its inputs. Raises LeftOut, InvalidTest."""
    from opera.libraries.onnx import nodes

    for item in model.metadata_props:
        if item.key == STATED and (found := _as_stated(model, item.value, given)) is not None:
            return found
    graph = model.graph
    if len(graph.node) != 1:
        raise LeftOut("a model of several nodes that does not say which operator it is")
    edges: dict[str, Value] = {x.name: codec.from_tensor_proto(x) for x in graph.initializer}
    edges |= {x.name: value for x, value in zip(graph.input, given, strict=False)}
    return nodes.instance(graph.node[0], edges, nodes.opset_of(model))


def _stated(program: Program) -> str:
    """Return what a model's metadata say of its program: all but the inputs that lie in files as they are."""
    values: list[Value] = [x.value if isinstance(x.value, RandomTensor | None) else True for x in program.inputs]
    return with_values(program, values).canonical().decode()


def _as_stated(model: Any, text: str, given: list[Value]) -> Program | None:
    """Return the program that metadata state, with values from files; None where the model is not made of it."""
    try:
        program = parse(text.encode())
        present = [x for x in program.inputs if x.value is not None]
        files = dict(zip((x.name for x in present), given, strict=True))
        described = {x.name: x.value for x in present if isinstance(x.value, RandomTensor)}
        if any(codec.materialise(value) != files[name] for name, value in described.items()):
            return None
        program = with_values(program, [(files | described).get(x.name) for x in program.inputs])
        made = onnx_model.parts(program)
    except (CorpusError, InvalidTest, ValueError):
        return None
    same = [_bytes(x) for x in made.nodes] == [_bytes(x) for x in model.graph.node]
    same = same and [_bytes(x) for x in made.initializers] == [_bytes(x) for x in model.graph.initializer]
    return program if same and onnx_model.opset(program) == _opset(model) else None


def _opset(model: Any) -> dict[str, int]:
    return {item.domain: item.version for item in model.opset_import}


def _bytes(message: Any) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data


# ---------------------------------------------------------------------- values in files


def _proto(value: Value) -> Any:
    """Return the TensorProto, SequenceProto or OptionalProto of a value."""
    from onnx import OptionalProto, SequenceProto

    match codec.materialise(value):
        case Tensor() as tensor:
            return codec.tensor_proto(tensor)
        case Sequence(type=kind, items=items):
            sequence = SequenceProto(elem_type=KINDS[_kind(kind)])
            getattr(sequence, f"{_kind(kind)}_values").extend(_proto(item) for item in items)
            return sequence
        case Optional(value=None):
            return OptionalProto(elem_type=KINDS[""])
        case Optional(type=kind, value=inner):
            optional = OptionalProto(elem_type=KINDS[_kind(kind)])
            getattr(optional, f"{_kind(kind)}_value").CopyFrom(_proto(inner))
            return optional
    raise InvalidTest(f"a node test's files have no form for a {type(value).__name__}")


def _kind(name: str) -> str:
    """Return what a type is: the part before the parenthesis, `tensor` for an element's type."""
    kind, found, _ = name.partition("(")
    return kind if found else "tensor"


def _value(path: Path, kind: Any) -> Value:
    """Return the value in a file whose declared type is the TypeProto `kind`."""
    import onnx

    forms = {"tensor_type": onnx.TensorProto, "sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    form = forms.get(kind.WhichOneof("value") or "")
    if form is None:
        raise LeftOut(f"value of a {kind.WhichOneof('value')}")
    proto = form()
    proto.ParseFromString(path.read_bytes())
    return _of_proto(proto, kind)


def _of_proto(proto: Any, kind: Any) -> Value:
    match kind.WhichOneof("value"):
        case "tensor_type":
            return codec.from_tensor_proto(proto)
        case "sequence_type":
            held = kind.sequence_type.elem_type
            name = codec.type_name(held)
            return Sequence(name, tuple(_of_proto(x, held) for x in getattr(proto, f"{_kind(name)}_values")))
        case "optional_type":
            held = kind.optional_type.elem_type
            name = codec.type_name(held)
            inner = proto.elem_type != KINDS[""] and proto.HasField(f"{_kind(name)}_value")
            return Optional(name, _of_proto(getattr(proto, f"{_kind(name)}_value"), held) if inner else None)
    raise LeftOut(f"value of a {kind.WhichOneof('value')}")
