"""Python source of a functional model of layers and functions, as a developer would write it.

The same source is run by `keras_model` and shown by reproducers, so that a script shows what was tested, weights and all.
Nothing in an instance can become code: operators and classes are looked up in Keras's public API, names are identifiers, and
every other value is a literal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

from opera.errors import CorpusError
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras.codec import NotRepresentable
from opera.programs import literals
from opera.programs.literals import fold, literal
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Graph, Instance, Program, given_names, names_of
from opera.programs.values import Named, RandomTensor, Tensor, Value

INPUT = "keras.input"
"""Kind of the Named that stands in an argument for the input of that name."""
CALL = "call."
"""Prefix of the parameters of a layer that are arguments of its call, not of its constructor."""
CONSTRUCTOR = "constructor"
"""Context `config` where the parameters are what the layer was constructed with."""
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
RESERVED = {"keras", "np", "layer", "outputs", "unpack", "ml_dtypes", "build"}
"""Names that the source itself uses."""


def reproducer(manifest: Manifest, directory: Path, program: Program, artefact: str) -> dict[str, object]:
    """See `opera.libraries.keras.library.reproducer`.

    Returns `model` (source that defines `build()`) and `feeds` (name → expression, as source), `fed` (the values), `artefact`
    (what is made of the model), `opset` (nothing) and `spec` (a link).
    """
    fed = read_values(directory, "inputs")
    items = [f"{literal(name)}: {literals.source(value)}" for name, value in zip(manifest.inputs, fed, strict=True)]
    return {
        "model": model(program),
        "feeds": fold("{", items, "}"),
        "fed": fed,
        "artefact": artefact,
        "opset": "",
        "spec": ", ".join(dict.fromkeys(map(link, program.operators))),
    }


def link(operator: str) -> str:
    """Return the address of an operator's documentation."""
    place = {"keras.layers": "layers", "keras.activations": "layers/activations"}
    return f"https://keras.io/api/{place.get(operator.rpartition('.')[0], 'ops')}/"


def identifiers(program: Program) -> tuple[str, ...]:
    """Return the names of the inputs, then of the results, as identifiers, in order."""
    found: list[str] = []
    for given in given_names(program):
        name = re.sub(r"\W", "_", given[:60], flags=re.ASCII)
        name = name if name[:1].isalpha() else f"x{name}"
        while name in found or name in RESERVED or iskeyword(name):
            name += "_"
        found.append(name)
    return tuple(found)


def model(program: Program) -> str:
    """Return the source of `build`, which returns a keras.Model. Raises CorpusError where the program describes no call."""
    names = identifiers(program)
    lines = ["keras.utils.set_random_seed(0)"]
    for operand, name in zip(program.inputs, names, strict=False):
        if not isinstance(operand.value, Tensor | RandomTensor):
            raise CorpusError(f"input {operand.name[:60]!r} is no tensor")
        shape, dtype = literal(tuple(operand.value.shape)), literal(operand.value.dtype)
        lines.append(f"{name} = keras.Input(batch_shape={shape}, dtype={dtype}, name={literal(name)})")
    inputs = fold("[", list(names[: len(program.inputs)]), "]")
    known = dict(zip(given_names(program), names, strict=True))
    if isinstance(program, Graph):
        lines += _body(program, known)
        returned = ", ".join(known[name] for name in program.outputs)
        lines.append(f"return keras.Model({inputs}, {returned if len(program.outputs) == 1 else f'[{returned}]'})")
    else:
        made, called = _called(program, known)
        lines += [*([f"layer = {made}"] if made else []), *_outputs(program.outputs, called)]
        lines.append(fold("return keras.Model(", [inputs, "outputs if len(outputs) > 1 else outputs[0]"], ")"))
    return "\n".join(["def build():", *(_indent(line) for line in lines)])


def _outputs(names: tuple[str, ...], called: str) -> list[str]:
    """Return the lines that call, and take the outputs that are named, others being there; all where none is."""
    if not any(names):
        return [f"outputs = keras.tree.flatten({called})"]
    taken = [f"output_{place}" if name else "_" for place, name in enumerate(names)]
    others = "*_" if "_" in taken else "_, *_"
    return [
        f"{', '.join(taken)}, {others} = keras.tree.flatten({called})",
        f"outputs = [{', '.join(x for x in taken if x != '_')}]",
    ]


def _body(graph: Graph, known: Mapping[str, str]) -> list[str]:
    """Return the lines that make the calls of a graph."""
    lines = []
    for written, instance, names in zip(graph.calls, graph.instances(), names_of(graph), strict=True):
        made, called = _called(instance, {formal: known[name] for formal, name in names.items()})
        lines += [f"layer = {made}"] if made else []
        results = [known.get(name, "_") for name in written.outputs]
        if any(written.outputs):  # of several tensors, or a structure of them, those that are named
            lines.append(f"{', '.join(results)}, *_ = keras.tree.flatten({called})")
        else:
            lines.append(called)
    return lines


def _called(instance: Instance, names: Mapping[str, str]) -> tuple[str, str]:
    """Return the expressions that make the layer, empty for a function, and the call."""
    operator = keras_api.resolve(instance.operator)
    if isinstance(operator, type):
        return layer(instance, operator), f"layer{call(instance, names, operator)}"
    return "", f"{instance.operator}{call(instance, names, operator)}"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def call(instance: Instance, names: Mapping[str, str], operator: Any) -> str:
    """Return the arguments of a call in brackets, inputs by the `names` of their variables."""
    how = instance.context.get("call")
    if not isinstance(how, dict) or not all(isinstance(how.get(x), list | tuple) for x in ("args", "kwargs")):
        raise CorpusError("an instance of Keras does not say how it was called")
    is_layer = isinstance(operator, type)
    held: dict[str, Value] = {**instance.params, **{name: Named(INPUT, name) for name in names}}
    try:
        args = [expression(held[name], names) for name in how["args"]]
        kwargs = {str(name).removeprefix(CALL if is_layer else ""): held[name] for name in how["kwargs"]}
    except (KeyError, TypeError) as error:
        raise CorpusError(f"the instance has no argument {str(error)[:60]}") from None
    if is_layer and "training" in keras_api.formals(operator.call):  # some train unless they are told not to
        kwargs["training"] = bool(instance.context.get("training"))
    return fold("(", [*args, *_keywords(kwargs, names)], ")")


def layer(instance: Instance, operator: Any) -> str:
    """Return the expression that makes the layer: its constructor where that does the same as its configuration."""
    params = {name: value for name, value in instance.params.items() if not name.startswith(CALL)}
    keras_values.decode(params)  # refuses what no instance may name
    if instance.context.get("config") == CONSTRUCTOR:
        return fold(f"{instance.operator}(", _keywords(params, {}), ")")
    shown = {name: value for name, value in params.items() if value != _default(operator, name)}
    if _same(operator, params, shown):
        return fold(f"{instance.operator}(", _keywords(shown, {}), ")")
    return f"{instance.operator}.from_config({_plain(params)})"


def _same(operator: Any, params: dict[str, Value], shown: dict[str, Value]) -> bool:
    """Tell whether the constructor, given what is `shown`, makes the layer that the configuration says."""
    import keras

    try:
        given = {name: _restored(value) for name, value in shown.items()}
        one, other = operator(**given), operator.from_config(keras_values.decode(params))
        forms = [keras_values.encode({k: v for k, v in x.get_config().items() if k != "name"}) for x in (one, other)]
    except (NotRepresentable, CorpusError):
        return False
    except Exception:  # what a constructor raises for other arguments than its own
        return False
    finally:
        keras.backend.clear_session(free_memory=False)
    return bool(forms[0] == forms[1])


def _restored(value: Value) -> Any:
    import keras

    match value:
        case dict() if "class_name" in value:
            return keras.saving.deserialize_keras_object(keras_values.decode(value))
        case list():
            return [_restored(item) for item in value]
        case tuple():
            return tuple(_restored(item) for item in value)
    return keras_values.decode(value)


def _default(operator: Any, name: str) -> Value:
    """Return the default of a constructor's parameter in the form of a configuration, `...` where there is none."""
    usual = {"trainable": True, "dtype": "float32"}
    found = keras_api.parameters(operator.__init__).get(name)
    try:
        return usual.get(name, ...) if found is None or found.default is found.empty else default(name, found.default)
    except NotRepresentable:
        return ...


def default(name: str, item: Any) -> Value:
    """Return a default as `get_config()` would say it: names of initializers and the like are serialised."""
    import keras

    if name.endswith("initializer") and isinstance(item, str):
        return keras_values.encode(keras.initializers.serialize(keras.initializers.get(item)))
    if name.endswith("activation") and item is None:
        return "linear"
    return keras_values.encode(item)


def _keywords(values: Mapping[str, Value], names: Mapping[str, str]) -> list[str]:
    """Return keyword arguments; what cannot be one stands in a dictionary."""
    usable = {name: x for name, x in values.items() if PLAIN.fullmatch(str(name)) and not iskeyword(name)}
    rest = {name: x for name, x in values.items() if name not in usable}
    found = [f"{name}={expression(value, names)}" for name, value in usable.items()]
    return [*found, f"**{_dictionary(rest, names)}"] if rest else found


def expression(value: Value, names: Mapping[str, str]) -> str:
    """Return the source of an argument; `names` are the variables that hold inputs."""
    match value:
        case Named(kind=kind, name=name) if kind == INPUT:
            if name not in names:
                raise CorpusError(f"an argument names the input {name[:40]!r}, which the instance lacks")
            return names[name]
        case Named(kind="slice"):
            found = keras_values.decode(value)
            return f"slice({literal(found.start)}, {literal(found.stop)}, {literal(found.step)})"
        case Named(kind="complex"):
            return literal(keras_values.decode(value))
        case Named():
            keras_values.decode(value)
            return "..."
        case dict() if "class_name" in value and "config" in value:
            return _object(value)
        case dict():
            return _dictionary(value, names)
        case list():
            return fold("[", [expression(item, names) for item in value], "]")
        case tuple():
            items = [expression(item, names) for item in value]
            return f"({items[0]},)" if len(items) == 1 else fold("(", items, ")")
    return literals.source(value)


def _object(form: dict[str, Value]) -> str:
    """Return the expression that makes a serialised object: what its class's constructor is given, else its configuration."""
    if not keras_values.builtin(form):
        raise CorpusError(f"a configuration names {str(form['class_name'])[:60]!r}, which is no class of Keras's")
    place, config = f"{form.get('module')}.{form['class_name']}", form["config"]
    if form.get("module") in keras_values.CONSTRUCTED and isinstance(config, dict):
        known = keras_api.parameters(keras_values.class_of(form).__init__)
        if set(config) <= set(known):
            shown = {name: x for name, x in config.items() if x != known[name].default}
            return fold(f"{place}(", _keywords(shown, {}), ")")
    return f"keras.saving.deserialize_keras_object({_plain(form)})"


def _plain(value: Value) -> str:
    """Return a value as a literal, serialised objects too."""
    match value:
        case dict():
            return fold("{", [f"{literal(key)}: {_plain(item)}" for key, item in value.items()], "}")
        case list():
            return fold("[", [_plain(item) for item in value], "]")
        case tuple():
            items = [_plain(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else fold("(", items, ")")
    return expression(value, {})


def _dictionary(value: Mapping[Any, Value], names: Mapping[str, str]) -> str:
    return fold("{", [f"{literal(key)}: {expression(item, names)}" for key, item in value.items()], "}")
