"""Smaller programs: what can be left out of one, and simpler values. Smaller tensors: opera.triage.shrink.shapes.

A `Step` is one change; it returns the changed program, or None where there is nothing for it to change. `measure` says
which of two programs is smaller. Whether a changed program still means anything is asked of its library, by wrapping it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from opera.errors import CorpusError
from opera.programs import values
from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program, with_params, with_values
from opera.programs.values import NO_DEFAULT, Message, Optional, RandomTensor, Tensor, Value
from opera.triage.shrink import bodies, simpler

Step: TypeAlias = Callable[[Program], Program | None]
Defaults: TypeAlias = Mapping[str, Mapping[str, Value]]
"""Operator → parameter → default (`Library.equipped_defaults`)."""
Leaf: TypeAlias = Tensor | RandomTensor
Measure: TypeAlias = tuple[int, ...]
TRAINING = "training"
"""What the context of a call says of the mode it was made in."""
SPELLED = 8
"""A tensor of integers with at most so many elements may state sizes and axes: they change with the shapes."""
AXES = re.compile(r"^(?:ax[ie]s|dims?)(?:\d|_|$)|_ax[ie]s$|^(?:start|end|seq|batch|source|destination)_dim$")
"""Parameters with such names are the numbers of axes."""
SIZED = re.compile(
    r"size|shape|num|heads|channels|features|units|groups?$|(?<!start)(?<!end)(?<!seq)(?<!batch)_dim$|^[kv]dim$"
)
"""Parameters with such names (`embed_dim` among them) say how large a tensor is, and change together with it: not every
library checks that."""


def measure(program: Program, defaults: Defaults) -> Measure:
    """Return what programs are compared by: natural numbers, the first that differs decides, so that no search is endless.

    Calls, bytes of subgraphs and bodies, elements of all tensors, parameters that are not the default's, ranks, sum of all
    dimensions, inputs and outputs that are given, tensors of exotic dtypes, dtypes of data beside float32, how much there is to
    read in the values, and characters of the canonical form.
    """
    calls, found = program.instances(), leaves(program)
    shapes = [x.shape for x in found]
    return (
        len(calls),
        sum(_bulk(x) for call in calls for x in (*call.params.values(), *call.context.values())),
        sum(math.prod(shape) for shape in shapes),
        len(nondefault(program, defaults)),
        sum(map(len, shapes)),
        sum(map(sum, shapes)),
        sum(x.value is not None for call in calls for x in call.inputs) + sum(map(bool, program.outputs)),
        sum(x.dtype not in simpler.ORDINARY for x in found) + len(_stated(program)),
        len(_of_data(program) - {simpler.FLOAT}),
        sum(map(simpler.cost, found)) + sum(simpler.cost(x) for call in calls for x in call.params.values()),
        len(program.canonical()),
    )


def elements(program: Program) -> int:
    """Return the elements of all tensors, of inputs and of parameters."""
    return sum(math.prod(x.shape) for x in leaves(program))


def nondefault(program: Program, defaults: Defaults) -> list[tuple[str, Value]]:
    """Return the parameters that differ from their defaults; what has no default, or none that is known, counts as such."""
    found = []
    for call in program.instances():
        known = defaults.get(call.operator, {})
        for name, value in call.params.items():
            if value is not None and not same(value, default(known, name)) and not _refers(value, call):
                found.append((name, value))
    return found


def default(known: Mapping[str, Value], name: str) -> Value:
    """Return the default of a parameter by the name it has in an instance (`call.axis` of Keras is `axis`)."""
    return known.get(name, known.get(name.rpartition(".")[2], NO_DEFAULT))


def same(one: Value, other: Value) -> bool:
    """Whether two values are one to a library: a list is a tuple, and 1 is 1.0."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(x, y) for x, y in zip(one, other, strict=True))
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    return bool(one == other)


def leaves(program: Program) -> list[Leaf]:
    """Return all tensors, in order: inputs, and those in parameters."""
    return _visited(partial(mapped, program))


def is_empty(program: Program) -> bool:
    """Whether a tensor of a program has no elements."""
    return any(0 in x.shape for x in leaves(program))


def within(value: Value) -> list[Leaf]:
    """Return the tensors of a value, in order."""
    return _visited(partial(_within, value))


def _visited(visit: Callable[[Callable[[Leaf], Leaf]], object]) -> list[Leaf]:
    """Return the tensors that a walk changes, in its order."""
    found: list[Leaf] = []

    def seen(leaf: Leaf) -> Leaf:
        found.append(leaf)
        return leaf

    visit(seen)
    return found


def mapped(program: Program, change: Callable[[Leaf], Leaf]) -> Program:
    """Return the program with every tensor changed by a function, which is asked in the order of `leaves`."""
    program = with_values(program, [_within(operand.value, change) for operand in program.inputs])
    return with_params(program, lambda call: {name: _within(x, change) for name, x in call.params.items()})


def _within(value: Value, change: Callable[[Leaf], Leaf]) -> Value:
    match value:
        case Tensor() | RandomTensor():
            return change(value)
        case values.Sequence():
            return msgspec.structs.replace(value, items=tuple(_within(x, change) for x in value.items))
        case Optional():
            return msgspec.structs.replace(value, value=_within(value.value, change))
        case list() | tuple():
            return type(value)(_within(x, change) for x in value)
        case dict():
            return {key: _within(x, change) for key, x in value.items()}
    return value


def at(place: int, change: Callable[[Leaf], Leaf]) -> Callable[[Program], Program]:
    """Return what changes one tensor, by its place in `leaves`, and leaves the others alone."""

    def changed(program: Program) -> Program:
        here = iter(range(1 << 30))
        return mapped(program, lambda leaf: change(leaf) if next(here) == place else leaf)

    return changed


def applied(step: Step, program: Program) -> Program | None:
    """Return what a step makes of a program, None where nothing: a value that cannot be is none, too."""
    try:
        return step(program)
    except CorpusError:
        return None


# ---------------------------------------------------------------------- what a failure may need


class Trait(msgspec.Struct, frozen=True):
    """Something that a program has: a parameter that is not the default's, an input that may be left out, a dtype, a mode.

    Attributes:
        operator: Of the call; empty for a dtype.
        name: Of the parameter, input or dtype; `training`.
        kind: param, input, dtype or mode.
        default: Of the parameter, where it has one.
    """

    operator: str
    name: str
    kind: str
    default: Value = NO_DEFAULT

    def held(self, program: Program, defaults: Defaults) -> bool:
        """Whether a program has it."""
        if self.kind == "dtype":
            return any(x.dtype == self.name for x in leaves(program))
        calls = [call for call in program.instances() if call.operator == self.operator]
        if self.kind == "input":
            return any(x.name == self.name and x.value is not None for call in calls for x in call.inputs)
        if self.kind == "mode":
            return any(call.context.get(self.name) is True for call in calls)
        return any(
            self.name in call.params
            and not same(call.params[self.name], default(defaults.get(call.operator, {}), self.name))
            for call in calls
        )

    def without(self, program: Program) -> Program | None:
        """Return a program that lacks it, None where there is none; a flag that must be given is turned off."""
        if self.kind == "dtype":
            return as_dtype(program, self.name, simpler.ordinary(self.name)[0])
        left_out = {"input": input_left_out, "mode": _mode_left_out}.get(self.kind, self._reset)
        edit = partial(left_out, name=self.name)
        made: Program | None = None
        for place, call in enumerate(program.instances()):
            if call.operator == self.operator:
                made = _edited(made or program, place, edit) or made
        return made

    def _reset(self, instance: Instance, name: str) -> Instance | None:
        found = without(instance, name)
        plain = False if self.default == NO_DEFAULT and instance.params.get(name) is True else self.default
        return found if found is not None or plain == NO_DEFAULT else with_param(instance, name, plain)


def traits(program: Program, defaults: Defaults) -> list[Trait]:
    """Return what a failure may need, of which more than the values of tensors depends."""
    found = [Trait("", name, "dtype") for name in sorted({x.dtype for x in leaves(program)} - simpler.ORDINARY)]
    for call in program.instances():
        known = defaults.get(call.operator, {})
        found += [Trait(call.operator, x.name, "input") for x in call.inputs if x.value is not None]
        found += [Trait(call.operator, TRAINING, "mode")] if call.context.get(TRAINING) is True else []
        found += [
            Trait(call.operator, name, "param", default(known, name))
            for name, value in call.params.items()
            if not same(value, default(known, name)) and not _refers(value, call)
        ]
    return list({(x.operator, x.name, x.kind): x for x in found}.values())  # two calls of one operator have it together


# ---------------------------------------------------------------------- what can be left out


def structure(program: Program, defaults: Defaults) -> Iterator[Step]:
    """Yield what leaves out parameters, inputs, outputs and remarks of the source."""
    yield _bare
    calls = range(len(program.instances()))
    for place in calls:
        yield partial(_edited, place=place, edit=partial(_mode_left_out, name=TRAINING))
    for place in calls:
        for required in (False, True):
            yield partial(_edited, place=place, edit=partial(_all_default, defaults=defaults, required=required))
    for place in calls:
        call = program.instances()[place]
        for name in reversed(list(call.params)):
            yield partial(_edited, place=place, edit=partial(without, name=name))
            stated = default(defaults.get(call.operator, {}), name)
            if stated != NO_DEFAULT:
                yield partial(_edited, place=place, edit=partial(with_param, name=name, value=stated))
        for operand in reversed(call.inputs):
            yield partial(_edited, place=place, edit=partial(input_left_out, name=operand.name))
    for place in reversed(range(len(program.outputs))):
        yield partial(_output_left_out, place=place)
    for names in _kin(program) if isinstance(program, Instance) else ():
        for kept in ("", *filter(None, program.outputs)):
            yield partial(_kin_left_out, names=names, kept=kept)
    yield unread_left_out


def without(instance: Instance, name: str) -> Instance | None:
    """Return an instance that does not state a parameter; None where those after it stand by their place."""
    if name not in instance.params:
        return None
    context = _unlisted(instance.context, name)
    if context is None:
        return None
    params = {key: value for key, value in instance.params.items() if key != name}
    return msgspec.structs.replace(instance, params=params, context=context)


def _unlisted(context: dict[str, Value], name: str) -> dict[str, Value] | None:
    """Return a context whose lists of arguments lack a name; None where it is not the last of the positional ones."""
    found = dict(context)
    for key, listed in context.items():
        if not isinstance(listed, dict) or not {"args", "kwargs"} <= listed.keys():
            continue
        args, kwargs = list(listed["args"]), [x for x in listed["kwargs"] if x != name]
        if name in args[:-1]:
            return None
        found[key] = {**listed, "args": args[:-1] if args[-1:] == [name] else args, "kwargs": kwargs}
    return found


def _all_default(instance: Instance, defaults: Defaults, required: bool) -> Instance:
    """Leave out all parameters that can be; `required`: but those without a default, which some libraries need."""
    known = defaults.get(instance.operator, {})
    for name in reversed(list(instance.params)):
        if required and default(known, name) == NO_DEFAULT and name in known:
            continue
        found = without(instance, name)
        if found is None and (stated := default(known, name)) != NO_DEFAULT:
            found = with_param(instance, name, stated)
        instance = found or instance
    return instance


def with_param(instance: Instance, name: str, value: Value) -> Instance | None:
    if name not in instance.params or same(instance.params[name], value):
        return None
    return msgspec.structs.replace(instance, params={**instance.params, name: value})


def given(instance: Instance, name: str, value: Value) -> Instance | None:
    """Return a call with a parameter that it has not, by its name; None where it cannot be given one, or has such an input."""
    if any(x.name == name and x.value is not None for x in instance.inputs):
        return None
    lists = [x for x in instance.context.values() if isinstance(x, dict) and {"args", "kwargs"} <= x.keys()]
    if len(lists) > 1 or instance.params.get(name) is not None:
        return None
    context = {
        key: {**x, "kwargs": [*x["kwargs"], name]} if x in lists and name not in (*x["args"], *x["kwargs"]) else x
        for key, x in instance.context.items()
    }
    return msgspec.structs.replace(instance, params={**instance.params, name: value}, context=context)


def input_left_out(instance: Instance, name: str) -> Instance | None:
    """Leave out an input: the last ones without a trace, others as None."""
    place = next((place for place, x in enumerate(instance.inputs) if x.name == name), None)
    if place is None or instance.inputs[place].value is None:
        return None
    before, after = instance.inputs[:place], instance.inputs[place + 1 :]
    context = _unlisted(instance.context, name)
    if instance.outputs and context == instance.context:  # what lists no arguments has a place for each input
        left = () if not after else (msgspec.structs.replace(instance.inputs[place], value=None),)
        return msgspec.structs.replace(instance, inputs=(*before, *left, *after))
    if context is not None:
        return msgspec.structs.replace(instance, inputs=(*before, *after), context=context)
    params = {**instance.params, name: None}
    return msgspec.structs.replace(instance, inputs=(*before, *after), params=params)


def _mode_left_out(instance: Instance, name: str) -> Instance | None:
    """Return a call that is not made in a mode (`training`), which is how libraries run what is deployed."""
    if instance.context.get(name) is not True:
        return None
    context = {key: value for key, value in instance.context.items() if key != name}
    return msgspec.structs.replace(instance, context=context)


def _bare(program: Program) -> Program:
    """Leave out what only says how tensors lay in memory, or what types a test stated of its outputs."""
    if isinstance(program, Graph):
        calls = tuple(msgspec.structs.replace(x, context=_bare_context(x.context)) for x in program.calls)
        return msgspec.structs.replace(program, calls=calls)
    return msgspec.structs.replace(program, context=_bare_context(program.context))


def _bare_context(context: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in context.items() if key not in ("layout", "output_types")}


def _kin(call: Instance) -> list[tuple[str, ...]]:
    """Return inputs whose names begin alike, `past_key` and `past_value`: one alone is often no program."""
    found: dict[str, list[str]] = {}
    for x in call.inputs:
        begins, separator, _ = x.name.partition("_")
        if separator and x.value is not None:
            found.setdefault(begins, []).append(x.name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def _kin_left_out(program: Program, names: Sequence[str], kept: str) -> Program | None:
    """Leave out several inputs, and all outputs but one that is `kept`, if one is: others may hang on these. None where the
    program has that output no more."""
    made: Program | None = program if not kept or kept in program.outputs else None
    for name in names:
        made = input_left_out(made, name) if isinstance(made, Instance) else None
    if made is None or not kept:
        return made
    outputs = tuple(x if x == kept else "" for x in made.outputs)
    return msgspec.structs.replace(made, outputs=outputs[: outputs.index(kept) + 1])


def _output_left_out(program: Program, place: int) -> Program | None:
    outputs = program.outputs
    if place >= len(outputs) or not outputs[place] or sum(map(bool, outputs)) < 2:
        return None
    if isinstance(program, Graph) or place == len(outputs) - 1:
        return msgspec.structs.replace(program, outputs=outputs[:place] + outputs[place + 1 :])
    return msgspec.structs.replace(program, outputs=(*outputs[:place], "", *outputs[place + 1 :]))


def _edited(program: Program, place: int, edit: Callable[[Instance], Instance | None]) -> Program | None:
    """Return a program one of whose calls is changed; inputs that no call takes any more go."""
    calls = program.instances()
    changed = edit(calls[place]) if place < len(calls) else None
    if changed is None or isinstance(program, Instance):
        return changed
    call = program.calls[place]
    of = {x.name: x.of for x in call.inputs}
    kept = tuple(Argument(x.name, "" if x.value is None else of[x.name]) for x in changed.inputs)
    call = msgspec.structs.replace(call, params=changed.params, context=changed.context, inputs=kept)
    graph = msgspec.structs.replace(program, calls=(*program.calls[:place], call, *program.calls[place + 1 :]))
    used = {x.of for call in graph.calls for x in call.inputs}
    return msgspec.structs.replace(graph, inputs=tuple(x for x in graph.inputs if x.name in used))


def unread_left_out(program: Program) -> Program | None:
    """Leave out the calls whose results nothing takes, as once an input is left out."""
    if isinstance(program, Instance):
        return None
    kept, used = list[Call](), set(program.outputs)
    for call in reversed(program.calls):
        if used & set(call.outputs):
            kept.insert(0, call)
            used |= {x.of for x in call.inputs}
    inputs = tuple(x for x in program.inputs if x.name in used)
    graph = msgspec.structs.replace(program, calls=tuple(kept), inputs=inputs)
    return graph if len(kept) > 1 else graph.instances()[0] if kept else None


def is_axes(name: str) -> bool:
    """Whether a parameter or input of this name holds the numbers of axes."""
    return AXES.search(name.rpartition(".")[2]) is not None


def states(leaf: Leaf) -> bool:
    """Whether a tensor may state sizes or axes."""
    return leaf.dtype in ("int32", "int64") and math.prod(leaf.shape) <= SPELLED and len(leaf.shape) < 2


def axes_input(operand: Operand) -> Tensor | None:
    """Return the numbers of axes that are an input of that name, None of any other."""
    held = operand.value
    listed = isinstance(held, Tensor) and states(held) and len(held.shape) == 1 and 0 not in held.shape
    return held if listed and is_axes(operand.name) else None


def axes_kept(program: Program, made: Program) -> Program:
    """Return what was made of a program, with the axes that it was given as inputs: values of others are simpler alone."""
    pairs = zip(program.inputs, made.inputs, strict=True)
    return with_values(made, [now.value if axes_input(before) is None else before.value for before, now in pairs])


def holds(program: Program) -> bool:
    """Whether a call of a program holds another one: a branch, the body of a loop."""
    return any(_bulk(x) for call in program.instances() for x in call.params.values())


def _bulk(value: Value) -> int:
    """Return the bytes of messages: subgraphs, expanded bodies."""
    match value:
        case Message():
            return len(value.data)
        case list() | tuple():
            return sum(map(_bulk, value))
    return 0


def integers(value: Value) -> list[int]:
    """Return the integers of a parameter, those of lists, too."""
    if isinstance(value, list | tuple):
        return [x for item in value for x in integers(item)]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def _refers(value: Value, call: Instance) -> bool:
    """Whether a parameter only names inputs, as those of Keras do."""
    if isinstance(value, list | tuple):
        return bool(value) and all(_refers(x, call) for x in value)
    return isinstance(value, values.Named) and value.name in {x.name for x in call.inputs}


# ---------------------------------------------------------------------- simpler values


def values_of_tensors(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield what makes the elements of tensors simpler: of all alike, of one tensor, then element by element."""
    found = leaves(program)
    for change in simpler.WHOLE:
        yield _lawful(partial(mapped, change=change))
    for place, leaf in enumerate(found):
        for change in simpler.of_leaf(leaf):
            yield _lawful(at(place, change))


def _lawful(change: Callable[[Program], Program]) -> Step:
    """Return a change of numbers that leaves axes as they are, and what may divide positive."""
    return lambda program: axes_kept(program, _divisors_kept(program, change(program)) if leaves(program) else program)


def _divisors_kept(program: Program, made: Program) -> Program:
    """Return what was made of a program, with the tensors beside the first whose numbers are all positive as they were, if they
    were not now: of a scale, a variance or a divisor 0 is another case, and nobody says what comes of it.
    """
    first, *pairs = zip(leaves(program), leaves(made), strict=True)
    kept = iter([first[1], *(x if simpler.positive(x) and not simpler.positive(y) else y for x, y in pairs)])
    return mapped(made, lambda _: next(kept))


def unlike(program: Program) -> Iterator[Step]:
    """Yield what makes the elements of tensors differ, also from those of other tensors: of all, then of each."""
    found = [at(place, partial(simpler.counted, first=place + 1)) for place in range(len(leaves(program)))]

    def all_of_them(changed: Program) -> Program:
        for step in found:
            changed = step(changed)
        return changed

    yield from (all_of_them, *found)


def differing(program: Program) -> Program:
    """Return the program with 1, 2, 3, ... in each tensor of floats whose elements are all the same."""

    def change(leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Tensor) or "float" not in leaf.dtype or math.prod(leaf.shape) < 2:
            return leaf
        return simpler.counted(leaf) if len(set(simpler.numbers(leaf).ravel().tolist())) == 1 else leaf

    return mapped(program, change)


def dtypes(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield what makes exotic dtypes ordinary, of all tensors of one, and of what names it; and all data float32."""
    for dtype in sorted({x.dtype for x in leaves(program)} - simpler.ORDINARY | _stated(program)):
        for other in simpler.ordinary(dtype):
            yield partial(as_dtype, dtype=dtype, other=other)
    if _of_data(program) - {simpler.FLOAT}:
        yield _plain


def _stated(program: Program) -> set[str]:
    """Return the exotic dtypes that types of sequences and optional values name: these may be empty."""
    types = (x.value.type for x in program.inputs if isinstance(x.value, values.Sequence | Optional))
    return (set(re.findall(r"\w+", " ".join(types))) & set(values.CONTAINERS)) - simpler.ORDINARY


def _of_data(program: Program) -> set[str]:
    """Return the ordinary dtypes of tensors that state no sizes or axes."""
    return {x.dtype for x in leaves(program) if x.dtype in simpler.ORDINARY and not states(x)}


def _plain(program: Program) -> Program:
    """Return a program with float32 in place of all other ordinary dtypes of data."""

    def plain(leaf: Leaf) -> Leaf:
        kept = leaf.dtype not in simpler.ORDINARY or states(leaf)
        return leaf if kept else simpler.as_dtype(leaf, leaf.dtype, simpler.FLOAT)

    return mapped(program, plain)


def as_dtype(program: Program, dtype: str, other: str) -> Program:
    """Return a program whose tensors of one dtype are of another, and parameters and types of sequences that name it, too."""
    program = mapped(program, partial(simpler.as_dtype, dtype=dtype, other=other))
    program = with_values(program, [_as_type(x.value, dtype, other) for x in program.inputs])

    def named(value: Value) -> Value:
        if isinstance(value, values.Named) and value.kind.endswith("dtype") and value.name == dtype:
            return msgspec.structs.replace(value, name=other)
        return other if isinstance(value, str) and value == dtype else value

    program = bodies.retyped(program, dtype, other)
    return with_params(program, lambda call: {name: named(x) for name, x in call.params.items()})


def _as_type(value: Value, dtype: str, other: str) -> Value:
    """Return a sequence or an optional value whose stated type names another dtype."""
    match value:
        case values.Sequence(type=name, items=items):
            held = tuple(_as_type(x, dtype, other) for x in items)
            return values.Sequence(re.sub(rf"\b{dtype}\b", other, name), held)
        case Optional(type=name, value=inner):
            return Optional(re.sub(rf"\b{dtype}\b", other, name), _as_type(inner, dtype, other))
    return value


def plainer_params(program: Program, defaults: Defaults) -> Iterator[Step]:
    """Yield what makes parameters simpler, all and each, also such as say how large something is."""
    for place, call in enumerate(program.instances()):
        yield partial(_edited, place=place, edit=partial(_all_default, defaults=defaults, required=True))
        for name, value in call.params.items():
            yield partial(_edited, place=place, edit=partial(without, name=name))
            for item in () if is_axes(name) else simpler.of_param(name, value):
                yield partial(_edited, place=place, edit=partial(with_param, name=name, value=item))


def values_of_params(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield simpler values of parameters that must be stated. Axes change with tensors alone: others may be refused."""
    found = {size for x in leaves(program) for size in x.shape}
    for place, call in enumerate(program.instances()):
        for name, value in call.params.items():
            held = SIZED.search(name.rpartition(".")[2]) and found & set(integers(value))
            for item in () if held else simpler.of_param(name, value):
                if is_axes(name) and not (isinstance(value, list | tuple) and len(item) < len(value)):
                    continue
                yield partial(_edited, place=place, edit=partial(with_param, name=name, value=item))
