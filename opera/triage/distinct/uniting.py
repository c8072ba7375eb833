"""Which findings of one frontend are one cause: what their reductions have in common (distinct.causes divides findings)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from opera.oracle import location, manner
from opera.oracle.comparison import COUNT
from opera.oracle.messages import cause
from opera.oracle.randomness import FORMS
from opera.oracle.signature import normalise
from opera.programs import degenerate, values
from opera.programs.program import Call, Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, NEWER, REFUSED, UNSTABLE, Outcome
from opera.triage.conditions import dtypes, removable
from opera.triage.distinct import kinship, numbers, shared
from opera.triage.distinct.kinship import Kin
from opera.triage.failure import NUMBERS, is_invalid, lacks_axis, unnamed
from opera.triage.reduction import Reduction, is_form_of
from opera.triage.sentence import EMPTY, of_version
from opera.triage.shrink import smaller

NOTHING = "nothing is computed"
SEVERAL = 3
"""Things that decide, at least, so that the same ones are the same cause, whether the shape is wrong or the numbers."""
OF_TYPES = re.compile(r"(?:^|_)d?types?\.\w+:\d+$|(?:^|/)codegen_\w+\.c\w+:\d+$")
"""A place in a compiler's sources that is about dtypes and nothing else: `element_type.hpp:256`; or in a code generator, which
is given expressions of two numbers, whichever converter made them: `codegen_llvm.cc:1614` has no sum of bool."""
EXPRESSION = re.compile(r"(?m)^\s*%\S+ = .*$")
"""A line of LLVM's own language, which a code generator wrote."""

Key = TypeVar("Key", bound=Hashable)


def united(
    found: Iterable[tuple[str, Reduction]],
    parts: Mapping[str, Mapping[str, str]],
    created: Mapping[str, float],
    kin: Iterable[Kin] = (),
    empty: Iterable[tuple[str, str, str]] = (),
    of_numbers: numbers.Found = MappingProxyType({}),
    made_of: Mapping[str, str] = MappingProxyType({}),
    plain: Mapping[str, Reduction] = MappingProxyType({}),
) -> dict[str, str]:
    """Return finding or part → the one that was found first, of those that are one cause.

    Args:
        found: Finding of the signature, and a reduction of one of its members.
        parts: Finding → test → the part that this member belongs to, where it is not the finding itself.
        created: Finding → when it was found.
        kin: What was asked about reductions of several findings.
        empty: (finding, frontend, environment) of those without a reduction that compute nothing.
        of_numbers: (finding, member) → which numbers go wrong in it. If that is all, what is made of it with ordinary ones
            has its cause.
        made_of: Test that was made of a member → the finding of that.
        plain: Test that was made of a reduction → the plain form of that. Those with one exported node are one.
    """
    age: dict[str, tuple[float, bool, str]] = {}
    alike: dict[Hashable, list[_Sight]] = defaultdict(list)
    common: dict[Hashable, set[str]] = defaultdict(set)
    named: list[tuple[str, Reduction]] = []
    written: dict[Hashable, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    drawn: dict[Hashable, list[tuple[str, bool]]] = defaultdict(list)
    for finding, x in found:
        name = parts.get(finding, {}).get(x.test, finding)
        age[name] = (created.get(finding, 0.0), name != finding, name)
        named.append((name, x))
        shown = x.outcome
        program, varies = x.program().program, shown.verdict == UNSTABLE
        kind = _unwritten(program) if varies else outline(program)
        translator = location.canonical(shown.conversion_function).partition("@")[0]
        says = "" if varies else normalise(shown.message)
        at = (x.frontend, x.environment, shown.verdict, shown.stage, _respect(shown), kind)
        needs = frozenset(map(removable.key, (*x.deciding, *x.besides)))
        alike[at].append(_Sight(name, x.variant, says, translator, needs))
        if shown.symptom in NUMBERS and "drawn" not in shown.details:
            written[x.frontend, x.variant, x.environment, outline(program)][shown.verdict].add(name)
        all_numbers = of_numbers.get((finding, x.test)) == numbers.ORDINARY
        for what in _common(x, program):
            common[x.frontend, x.environment, what, all_numbers].add(name)
        form = plain.get(x.stored)
        form = form if form is not None and is_form_of(form, x) else None
        own = _certain(x)
        if certain := own or (form and _certain(form)):
            drawn[x.frontend, x.environment, *certain].append((name, own is None))
        if form is not None:
            for node in (*((shown.symptom, of) for of in _exported(form, program)), *_of_types(form)):
                common[x.frontend, x.environment, (shown.verdict, *node), False].add(name)
        if all_numbers and not x.deciding:
            common[x.frontend, x.environment, numbers.ORDINARY, made_of.get(x.test, finding)].add(name)
    for name, *where in empty:
        age[name] = (created.get(name, 0.0), False, name)
        common[*where, NOTHING, False].add(name)
    groups = [*common.values(), *_kin(named, kin), *(group for sights in alike.values() for group in _same(sights))]
    groups += [set[str]().union(*x.values()) for x in written.values() if UNSTABLE in x]
    groups += [{name for name, _ in x} for x in drawn.values() if any(draws for _, draws in x)]
    return {
        name: min(group, key=age.__getitem__)
        for group in joined([*({name} for name in age), *groups])
        for name in group
        if name != min(group, key=age.__getitem__)
    }


def _raised(x: Reduction, program: Instance) -> Iterator[tuple[str, str, str]]:
    """Yield by which words of its converter a crash is one with others, whatever parameters decide: such as name the operator,
    and not what decides (`no value in Constant`, of `value_int` and of `value_ints`). A first word may be no name (`Shape`).
    """
    converter, words = x.outcome.conversion_function, normalise(unnamed(x.outcome).message)
    named = re.search(rf"(?<=\W){re.escape(program.operator)}\b", words)
    told = any(re.search(rf"\b{re.escape(removable.named(says))}\b", x.outcome.message) for says in x.deciding)
    if location.names_converter(converter) and named and not told:
        yield "raised", location.canonical(converter), words


def _certain(x: Reduction) -> tuple[str, str] | None:
    """Return what a call of a random operator that leaves nothing to chance is one by with what another draws wrongly, which is
    shown by such a call (reducer.certain), where its numbers are wrong: the operator, and what converts it."""
    program, shown = x.program().program, x.outcome
    numbers_ = shown.verdict == INCONSISTENT and shown.symptom in NUMBERS and "drawn" not in shown.details
    if not numbers_ or not isinstance(program, Instance) or not degenerate.holds(program):
        return None
    return program.operator, location.canonical(shown.conversion_function)


def _respect(shown: Outcome) -> str:
    """Return in which respect an outcome is wrong: its symptom, and whether an axis is lacking."""
    return f"{shown.symptom}, an axis" if lacks_axis(shown) else shown.symptom


def _exported(x: Reduction, of: Program) -> Iterator[Hashable]:
    """Yield what two plain forms are alike in that are one: the node of the exported file, or the call that becomes it, and
    how that fails; or of nodes the operator, and what is told to decide, whatever dtype they were made in. Of what is drawn
    neither numbers nor shapes tell, but the law that is broken; nothing where that form is one of the library's own calls,
    which leaves less to chance and is of the same operator.
    """
    program, shown = x.program().program, x.outcome
    at = (x.frontend, shown.verdict, shown.stage, _respect(shown))
    law, node = shown.details.get("drawn"), program.library != of.library
    if not law:
        said = normalise(shown.message)
        yield *at, outline(program) + said.encode()
        if node and (told := kinship.decides(x)):
            yield *at, tuple(sorted(program.operators)), told, said
    elif node:
        calls = [program] if isinstance(program, Instance) else program.calls
        yield *at, msgspec.json.encode([program.library, law, *map(_told, calls)], order="sorted")


def _common(x: Reduction, program: Program) -> Iterator[Hashable]:
    """Yield what reductions of one frontend that are one cause have in common, beside a program that is the same.

    - Nothing is computed, and what is returned nobody wrote.
    - A crash is at one place of the compiler, that one parameter leads to; or one that is about dtypes alone, and a dtype does.
    - A converter says of its operator in the same words that it stops, whatever parameter decides.
    - What decides is nothing of the operator's, and stops code that operators share (`distinct.shared`).
    - The operator that its own is another name of, as documentation says, passes: what sets the two apart is the cause, however
      that shows (`torch.subtract` is not promoted where `torch.sub` is: a wrong dtype of a number, an invalid file of two).
    - The version of the operator is one that the compiler does not declare to know.
    - A wrong dtype, shape or count comes from one converter, and the same decides it, whatever calls lead there; or nothing
      does, and it is one output's dtype: the mask of TVM's Dropout is never bool, of whatever it is; or one shape in place of
      another: `grid_sampler_2d` is what `grid_sample` becomes.
    - An operator returns so many outputs in place of so many.
    - One number is returned for another, of which one is special, whatever made that: the maximum of nothing is minus infinity,
      as that of minus infinity is.
    - ONNX's checker refuses what is written of the same dtypes below the same version, whatever operator has them from then on.
    - ONNX's checker refuses what is written of one operator, and the same decides, dtypes and ranks apart: at which node it
      stops, and in which dimension, hangs on the shapes.
    - The same decides, and that is narrow: how an input comes to the model, that an output is asked for; or these are several,
      whether an output's shape is wrong then or its numbers, which may hang on a length.
    """
    shown, operators = x.outcome, tuple(sorted({location.canonical(name) for name in program.operators}))
    whole = shown.verdict == UNSTABLE or isinstance(program, Instance)
    if whole and shown.symptom in NUMBERS and of_nothing(program):
        yield NOTHING
    yield from shared.shared(x)
    for where in (*_of_types(x), *_places(x)):
        yield shown.verdict, *where
    if not isinstance(program, Instance):
        return
    if x.alias:
        yield "alias", operators, x.alias
    if shown.verdict in (CRASH, REFUSED):
        yield from ((shown.verdict, shown.stage, shown.symptom, *where) for where in _raised(x, program))
    if NEWER in shown.details.get("tags", ()):
        version = msgspec.json.encode(values.encode(program.context.get("opset")), order="sorted")
        yield NEWER, operators, shown.details.get("newer") or version
    told, converter = kinship.decides(x), shown.conversion_function
    if shown.verdict == INCONSISTENT and shown.symptom in FORMS and told and location.names_converter(converter):
        yield "converter", _respect(shown), location.canonical(converter), told
    always = shown.verdict == INCONSISTENT and shown.symptom in ("dtype", "shape") and not told
    if always and location.names_converter(converter):
        output, *forms = (str(shown.details.get(x, "")) for x in ("output", "expected", "actual"))
        yield "always", location.canonical(converter), output, *(forms if shown.symptom == "shape" else forms[:1])
    if shown.verdict == INCONSISTENT and shown.symptom == COUNT:
        yield COUNT, operators, shown.message
    names, also = frozenset(map(removable.key, x.deciding)), kinship.conditions(x)
    usual = frozenset(says for says in also if not kinship.special(says))
    pairs = manner.special(shown.details.get("manner") or {})
    if pairs and shown.verdict == INCONSISTENT:
        first = next((y.value.dtype for y in program.inputs if isinstance(y.value, Tensor | RandomTensor)), "")
        yield "special", operators, pairs, first, names, usual
    if also == usual and any(not says.startswith("input ") and not says.endswith(" left out") for says in also):
        yield "decides", shown.verdict, operators, names, also
    several = names | also | frozenset(map(removable.key, x.circumstances))
    if shown.verdict == INCONSISTENT and len(several) >= SEVERAL:
        yield "several", operators, several
    if is_invalid(shown) and (below := frozenset(says for says in x.settings if of_version(says))):
        yield "version", below, frozenset(y.dtype for y in smaller.leaves(program))
    if is_invalid(shown) and not all(kinship.vague(x) or " rank " in x or x == EMPTY for x in several):
        yield "invalid", operators, several


def _kin(named: Iterable[tuple[str, Reduction]], kin: Iterable[Kin]) -> Iterator[set[str]]:
    """Yield the findings that are one cause by what compilers were asked (opera.triage.distinct.kinship).

    Two programs fail alike with all that tells them apart; one parameter or input is not read in either; or of all that
    an operator has none is read. One of several that is not read is a feature of its own.
    """
    named = list(named)
    of: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    reduced = {(x.frontend, x.environment, x.stored): x for _, x in named}
    operator: dict[tuple[str, str, str], str] = {}
    for name, x in named:
        of[x.frontend, x.environment, x.stored].add(name)
        operator[x.frontend, x.environment, x.stored] = location.canonical(x.program().program.operator)
    ignored: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    parameters: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in kin:
        key = (one.frontend, one.environment, one.of)
        for asked in one.asked:
            other = (*key[:2], asked.of)
            known = asked.says == kinship.ALIKE and key in of and other in of
            if known and kinship.asked_about(reduced[key], reduced[other]):
                yield of[key] | of[other]
        if key in of:
            where = (*key[:2], operator[key])
            given = {operand.name for operand in reduced[key].program().program.inputs}
            parameters[where] |= set(one.parameters) - given  # tensors are read
            for name in one.unread:
                ignored[where][name] |= of[key]
    for where, found in ignored.items():
        yield from found.values()
        if parameters[where] and found.keys() >= parameters[where]:
            yield set[str]().union(*(found[name] for name in parameters[where]))


def _of_types(x: Reduction) -> Iterator[tuple[Hashable, ...]]:
    """Yield the place of a crash that is about dtypes alone (`OF_TYPES`), the dtype that decides, and what is said, but for the
    expression that a code generator was given; whatever operator leads there, and by whatever route."""
    place = x.outcome.line
    frames = x.outcome.seen.frames if x.outcome.seen is not None else ()
    ends = (
        place,
        *(re.sub(r":[^:/]*(?=:\d+$)", "", y) for y in frames[-1:]),
    )  # of native code, too, a frame names a module
    of_types = next(filter(OF_TYPES.search, ends), "")
    if x.outcome.verdict == CRASH and of_types:
        told = [*map(dtypes.unpromoted, (*x.deciding, *x.besides, *x.circumstances))]
        if told and all(map(removable.is_dtype, told)):
            yield (
                x.outcome.stage,
                x.outcome.symptom,
                of_types,
                frozenset(told),
                normalise(EXPRESSION.sub("", cause(x.outcome.message))),
            )


def _places(x: Reduction) -> Iterator[tuple[Hashable, ...]]:
    """Yield where a crash is and what it takes to get there, whatever operator leads there: a `file:line`, shapes of inputs,
    and each of the parameters that decide. Nothing where none does, for a place alone may check much: what each converter
    made, for one.
    """
    place = x.outcome.line
    if x.outcome.verdict == CRASH and place:
        given = (operand.value for operand in x.program().program.inputs)
        shapes = tuple(value.shape if isinstance(value, Tensor | RandomTensor) else None for value in given)
        yield from ((x.outcome.stage, x.outcome.symptom, place, removable.key(says), shapes) for says in x.deciding)


def _unwritten(program: Program) -> Hashable:
    """Return what a program is whose outputs vary: how it was reduced, and what it says, is left to chance.

    Its operators tell.
    """
    return tuple(sorted({location.canonical(name) for name in program.operators}))


def of_nothing(program: Program) -> bool:
    """Whether the first tensor that a program is given has no elements: nothing is computed, and what is wrong of
    its values is what nobody wrote, or began with. That is one cause, whatever operator it is, and whether memory happens to
    vary. Other tensors may only tell a type (`CastLike`).
    """
    given = (operand.value for operand in program.inputs)
    first = next((x for x in given if isinstance(x, Tensor | RandomTensor)), None)
    return first is not None and 0 in first.shape


class _Sight(NamedTuple):
    """How a finding fails with a reduced program, through one variant.

    Attributes:
        message: Normalised; `translator`: the conversion function, without its line; `needs`: what decides.
    """

    name: str
    variant: str
    message: str
    translator: str
    needs: frozenset[str] = frozenset()


def _same(sights: Sequence[_Sight]) -> Iterator[set[str]]:
    """Yield the findings that are one cause by sights of one program: they say the same, or are two routes to one translator.

    Routes give the translator the same program in forms of their own, and so fail at different lines of it; but the same must
    decide: what one route takes as soon as something is left out, and the other never does, are two. A sight whose translator
    is not known goes with all that came by another route.
    """
    saying: dict[str, set[str]] = defaultdict(set)
    routes: dict[Hashable, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    unknown: dict[tuple[str, frozenset[str]], set[str]] = defaultdict(set)
    for x in sights:
        saying[x.message].add(x.name)
        routes[x.translator, x.needs][x.variant].add(x.name)
        if location.is_api(x.translator):
            unknown[x.variant, x.needs].add(x.name)
    yield from saying.values()
    yield from (set[str]().union(*by.values()) for by in routes.values() if len(by) > 1)
    for (variant, needs), names in unknown.items():
        others = {x.name for x in sights if x.variant != variant and x.needs == needs}
        if others:
            yield names | others


def joined(groups: Iterable[Iterable[Key]]) -> list[set[Key]]:
    """Return the sets that remain when those with a common element are one; of disjoint sets, they themselves."""
    above: dict[Key, Key] = {}

    def top(item: Key) -> Key:
        while (upper := above.setdefault(item, item)) != item:
            above[item] = item = above[upper]
        return item

    for group in groups:
        items = [top(item) for item in group]
        for item in items[1:]:
            above[top(item)] = top(items[0])
    found: dict[Key, set[Key]] = defaultdict(set)
    for item in above:
        found[top(item)].add(item)
    return list(found.values())


def outline(program: Program) -> bytes:
    """Return what a program is, whatever its inputs and results are called.

    Operators by the name that their forms share, parameters, contexts; of inputs, dtypes and shapes, the values of integers,
    booleans and strings (they are often parameters), and of floating-point numbers only whether NaN or infinity is among them.
    """
    numbers: dict[str, str] = {operand.name: f"i{n}" for n, operand in enumerate(program.inputs)}
    calls: list[Any] = []
    if isinstance(program, Instance):
        calls.append([*_told(program), list(numbers.values()), [bool(x) for x in program.outputs]])
        returned: list[str] = []
    else:
        for call in program.calls:
            for name in filter(None, call.outputs):
                numbers[name] = f"r{len(numbers)}"
            arguments, results = [numbers.get(x.of, "") for x in call.inputs], [bool(x) for x in call.outputs]
            calls.append([*_told(call), arguments, results])
        returned = [numbers[name] for name in program.outputs]
    given = [_facts(operand.value) for operand in program.inputs]
    return msgspec.json.encode([program.library, given, calls, returned], order="sorted")


def _told(call: Instance | Call) -> list[Any]:
    params = {name: values.encode(value) for name, value in call.params.items()}
    return [
        location.canonical(call.operator),
        params,
        {name: values.encode(value) for name, value in call.context.items()},
    ]


def _facts(value: Value) -> Any:
    match value:
        case RandomTensor():
            return [value.dtype, list(value.shape), "finite"]
        case Tensor() if value.dtype == "string" or re.match(r"u?int|bool", value.dtype):
            return values.encode(value)
        case Tensor():
            numbers = np.asarray(value.numbers())
            nan, infinite = bool(np.isnan(numbers).any()), bool(np.isinf(numbers).any())
            return [value.dtype, list(value.shape), "nan" * nan + "inf" * infinite or "finite"]
    return values.encode(value)
