"""Whether two findings of one frontend are one cause: the compiler is asked, of their reduced programs.

- Is a parameter or input that decides *not read*, or the fraction of a scale? Then the compiler does with it what it does
  without: it computes what the library computes without it, or stops as it stops without it.
- Are they two outputs of *one model* that are wrong at once, and of which the same decides?
- Do two reduced programs fail alike *whatever tells them apart*? Each is asked about with the other's operator, and with the
  other's value of each parameter: what both fail with does not tell them apart.
- Is one of a *dtype that a route into the compiler does not know*, whatever the operator, and does that decide the other? Then
  both must pass by another route.

What was asked is stored, a document a reduction, so that `opera.triage.distinct.uniting` follows from that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from opera.oracle import location, manner
from opera.oracle.draws import CONSTANT
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.programs.verdicts import CRASH, FAILURES, INCONSISTENT, PASS, REFUSED, Outcome
from opera.store import examined
from opera.store.workspace import Workspace
from opera.triage import failure
from opera.triage.conditions import deciding, dtypes, kinds, peculiar, removable
from opera.triage.conditions.deciding import Look, Lowers
from opera.triage.failure import as_wrong
from opera.triage.reduction import Reduction
from opera.triage.sentence import EMPTY, is_relation
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Defaults

ALIKE, APART, UNTOLD = "alike", "apart", "untold"
"""What was seen of two programs: they fail alike with all that tells them apart; one does not; or nothing can be said."""


class Stating(Lowers, Protocol):
    """Tells what programs show, also beside outputs that are stated. Raises Spent."""

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library computes for a program, None where it rejects it."""

    def stated(self, program: Program, expected: Sequence[Value]) -> Outcome:
        """Return what a program shows if its outputs are to be these, whatever its library says of it."""

    def passes_by_another(self, program: Program) -> bool:
        """Whether a program passes by another route into the same frontend."""


class Asked(msgspec.Struct, frozen=True):
    """One question about two reduced programs: `of` is the id of the test that was made of the other."""

    of: str
    says: str


class Kin(msgspec.Struct, frozen=True):
    """What was asked about a reduction beside others of its frontend.

    Attributes:
        finding, environment, frontend, variant, test: As of the reduction.
        of: Id of the test that was made of the reduced program.
        unread: What decides and the compiler does not read.
        parameters: All that the operator has.
        asked: About other reductions.
        names: What was asked whether it is read.
    """

    finding: str
    environment: str
    frontend: str
    variant: str
    test: str
    of: str
    unread: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    asked: tuple[Asked, ...] = ()
    names: tuple[str, ...] = ()


INPUT = "input "
"""Begins what tells that an input decides which may be left out."""
SMALL = 100
"""Elements of all tensors at most of a reduction that is not finished, and is asked about."""


def telling(of: Reduction) -> bool:
    """Whether a reduction is asked about: it is finished, or small, and what decides is known."""
    return of.finished or (of.elements <= SMALL and bool(of.deciding))


# ---------------------------------------------------------------------- what is not read


def readable(of: Reduction) -> tuple[str, ...]:
    """Return what decides and might not be read: parameters, inputs that may be left out, fractions of scales; sorted."""
    also = (x for x in of.besides if x.startswith(INPUT) or x == peculiar.FRACTION)
    return tuple(sorted(set(map(removable.key, (*of.deciding, *also)))))


def unread(ask: Stating, of: Reduction, defaults: Defaults) -> tuple[str, ...]:
    """Return what decides of a reduced program (`readable`) and is not read.

    A wrong answer must be, all of it, the library's answer to the program without it; a crash must be the crash of that
    program, though a library may reject it. Raises Spent.
    """
    program, names = of.program().program, readable(of)
    without = _without(program, names, defaults)
    return tuple(dict.fromkeys(name for name, bare in without if _same_without(ask, program, bare, of.outcome)))


def _without(program: Program, names: Collection[str], defaults: Defaults) -> Iterator[tuple[str, Program]]:
    """Yield what a program is without each of these, computing on the same numbers."""
    for trait in smaller.traits(program, defaults):
        name = {"param": trait.name, "input": f"{INPUT}{trait.name}"}.get(trait.kind, "")
        bare = smaller.applied(trait.without, program) if name in names else None
        if bare is not None:
            yield name, bare
    for bare in whole(program, defaults) if peculiar.FRACTION in names else ():
        yield peculiar.FRACTION, bare


def whole(program: Program, defaults: Defaults) -> Iterator[Instance]:
    """Yield what a program is with scales that give whole sizes, computing on the same numbers."""
    for bare in deciding.lacking(program, [peculiar.FRACTION], defaults):
        if isinstance(program, Instance) and isinstance(bare, Instance):
            first = next(x for x in program.inputs if isinstance(x.value, Tensor))
            yield peculiar.with_input(bare, first.name, first.value)


def _same_without(ask: Stating, program: Program, bare: Program, shown: Outcome) -> bool:
    if shown.verdict == INCONSISTENT:
        expected = ask.reference(bare)
        return expected is not None and ask.stated(program, expected).verdict == PASS
    expected = ask.reference(program) if shown.verdict in (CRASH, REFUSED) else None
    return expected is not None and ask.fails(ask.stated(bare, expected))


# ---------------------------------------------------------------------- what does not tell two apart


class _One(NamedTuple):
    """A reduction of one call, and the name of its finding."""

    name: str
    of: Reduction
    program: Instance
    operator: str


def candidates(found: Iterable[tuple[str, Reduction]]) -> Iterator[tuple[Reduction, list[Reduction], bool]]:
    """Yield the reductions that may have a cause in common with those of other findings. With each, the others that it is to be
    asked about beside, of each two once, and whether it is to be asked if parameters are not read.

    Args:
        found: Each with the name of its finding.
    """
    programs = ((name, x, x.program().program) for name, x in found)
    told = [_One(name, x, y, location.canonical(y.operator)) for name, x, y in programs if isinstance(y, Instance)]
    decided: dict[Hashable, set[str]] = defaultdict(set)
    like: dict[Hashable, list[_One]] = defaultdict(list)
    for one in told:
        if readable(one.of):
            decided[one.of.frontend, one.of.environment, one.operator].add(one.name)
    for one in told:
        group = like[_kind(one)]
        others = {x.of.stored: x.of for x in group if x.name != one.name and _comparable(one, x)}
        more = (x for x in told if x.name != one.name and any(of(one.of, x.of) for of in KINDS))
        others |= {x.of.stored: x.of for x in more}
        group.append(one)
        several = len(decided[one.of.frontend, one.of.environment, one.operator]) > 1 and bool(readable(one.of))
        if others or several:
            yield one.of, list(others.values()), several


def asked_about(one: Reduction, other: Reduction) -> bool:
    """Whether two reductions are such that it is asked whether they are one cause; what was asked of others tells nothing."""
    return _of_kind(one, other) or any(of(x, y) for x, y in ((one, other), (other, one)) for of in KINDS)


def _of_kind(one: Reduction, other: Reduction) -> bool:
    """Whether two reductions are of a kind, and it is worth asking about them."""
    told = [
        _One("", x, y, location.canonical(y.operator))
        for x in (one, other)
        if isinstance(y := x.program().program, Instance)
    ]
    return len(told) == 2 and _kind(told[0]) == _kind(told[1]) and _comparable(*told)


def _kind(one: _One) -> Hashable:
    """Return what two programs have in common of which no more than parameters, and operators of crashes, is asked about: where
    and how they fail, which special number stands for which, the dtypes of inputs, and what decides beside parameters.
    """
    x, shown = one.of, one.of.outcome
    dtypes = tuple(operand.value is not None and _dtype(operand.value) for operand in one.program.inputs)
    pairs = manner.special(shown.details.get("manner") or {})
    operator = "" if shown.verdict in (CRASH, REFUSED) else one.operator
    return x.frontend, x.environment, shown.verdict, shown.stage, shown.symptom, operator, pairs, dtypes, conditions(x)


def _dtype(value: Value) -> str:
    return value.dtype if isinstance(value, Tensor | RandomTensor) else type(value).__name__


def _comparable(one: _One, other: _One) -> bool:
    """Whether it is worth asking about two of a kind: they differ in what is asked about, and none is known to pass without
    what the other has not, a parameter that decides.
    """
    pair = ((one, other), (other, one))
    if any(removable.key(says) not in y.program.params for x, y in pair for says in x.of.deciding):
        return False
    crashed, differ = one.of.outcome.verdict in (CRASH, REFUSED), bool(differing(one.program, other.program))
    if crashed:
        both = [(x.of.outcome, x.operator) for x in (one, other)]
        return (differ or one.program.operator != other.program.operator) and say_the_same(*both)
    return differ and one.of.outcome.verdict == INCONSISTENT


def decides(of: Reduction) -> frozenset[str]:
    """Return all that is told to decide, whatever values it has."""
    return frozenset(map(removable.key, (*of.deciding, *of.besides, *of.circumstances)))


def conditions(of: Reduction) -> frozenset[str]:
    """Return what decides beside parameters, but for dtypes and ranks, which are the reduction's choice, and relations."""
    return frozenset(removable.key(x) for x in of.besides if not vague(x))


def vague(says: str) -> bool:
    """Whether what is told is a dtype, a rank or a relation: that alone may have many causes."""
    return any(of_kind(says) for of_kind in (removable.is_dtype, peculiar.is_rank, is_relation))


def special(says: str) -> bool:
    """Whether what decides is a special number, or that there is none: `NaN in an input`, `an empty input`."""
    return says.endswith(" in an input") or says == EMPTY


def say_the_same(one: tuple[Outcome, str], other: tuple[Outcome, str]) -> bool:
    """Whether two crashes or refusals, each of an operator, are at one place, as far as it is known, and say the same but for
    words of the operators' names.

    What each converter says by itself, though in the same words, is a line in each; so is what a checker says of nodes that
    each made, of operators of other names (`ReduceMax` for `any`, `ReduceProd` for `prod`).
    """
    both = (one[0], other[0])
    if elsewhere(both[0].conversion_function, both[1]):
        return False
    places = {x.line for x in both} - {""}
    parts = {part.lower() for _, called in (one, other) for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", called)}
    name = re.compile("|".join(sorted(map(re.escape, parts), key=len, reverse=True)))
    texts = (name.sub("", normalise(cause(x.message)).lower()) for x in both)
    said = {
        " ".join(sorted(re.findall(r"[\w#@]+", text))) for text in texts
    }  # a set of types is printed in another order each time
    at = {frozenset(name.sub("", node.lower()) for node in failure.nodes(x)) for x in both}
    return len(places) < 2 and len(said) == len(at) == 1 and location.telling(said.pop())


def elsewhere(place: str, shown: Outcome) -> bool:
    """Whether a model failed to load in another piece of the compiler's code than this conversion function."""
    return shown.stage == "load" and location.elsewhere(place, shown.conversion_function)


def differing(one: Instance, other: Instance) -> list[str]:
    """Return the parameters that two calls have other values of."""
    names = sorted({*one.params, *other.params})
    return [x for x in names if x not in one.params or x not in other.params or one.params[x] != other.params[x]]


def exchanged(one: Instance, other: Instance) -> list[Instance] | None:
    """Return a call with what it has otherwise than another, one thing at a time: its operator, or a parameter.

    With the other's operator it is of the newer of both versions, for one of them may have come with that. None
    where a parameter is no plain value: that of a subgraph means nothing elsewhere.
    """
    made = []
    if one.operator != other.operator:
        made.append(msgspec.structs.replace(one, operator=other.operator, context=_newest(one, other)))
    for name in differing(one, other):
        if any(isinstance(x.params.get(name), msgspec.Struct) for x in (one, other)):
            return None
        params = {key: value for key, value in one.params.items() if key != name}
        params |= {name: other.params[name]} if name in other.params else {}
        made.append(msgspec.structs.replace(one, params=params))
    return made


def _newest(one: Instance, other: Instance) -> dict[str, Value]:
    """Return the context of a call, of the newer version of each domain of its own and another's."""
    own, others = (x.context.get("opset") for x in (one, other))
    if not isinstance(own, dict) or not isinstance(others, dict):
        return one.context
    return {**one.context, "opset": {x: max(y.get(x, 0) for y in (own, others)) for x in {**others, **own}}}


def _composed(one: Reduction, other: Reduction) -> bool:
    """Whether a call that is made of several operators may hold what is wrong with one that is an operator itself: with wrong
    answers that parameters of the same names decide, or that operator gives whatever it is given (`_always`).
    """
    both = (one, other)
    at = {(x.frontend, x.environment, x.outcome.verdict, x.outcome.stage, x.outcome.symptom) for x in both}
    names = {frozenset(map(removable.key, x.deciding)) for x in both}
    places = [x.outcome.conversion_function for x in both]
    decided = (len(names) == 1 and frozenset() not in names) or _always(other)
    alike = len(at) == 1 and decided and one.outcome.verdict == INCONSISTENT
    return alike and places[0].startswith(location.EXPANDED) and location.names_converter(places[1])


def _always(of: Reduction) -> bool:
    """Whether nothing decides: all programs near a reduced one fail, or what it should draw at random never varies."""
    constant = of.outcome.details.get("drawn") == CONSTANT
    return not of.deciding and not of.besides and of.near[1] == 0 and (of.near[0] > 0 or constant)


def _holds(ask: Stating, program: Instance, other: tuple[Look, Reduction], another: Instance) -> str:
    """Return whether a program is made of the other's operator, and that fails as it did with the program's values of what
    decides.
    """
    (ask_other, theirs), names = other, ask.lowered(program)
    if (place := theirs.outcome.converter) not in names:
        return APART if names else UNTOLD
    if _always(theirs):
        return ALIKE if names == [place] else UNTOLD
    values = {key: program.params[key] for says in theirs.deciding if (key := removable.key(says)) in program.params}
    changed = msgspec.structs.replace(another, params={**another.params, **values})
    return ALIKE if changed == another or ask_other.fails(ask_other.look([changed])[0]) else APART


def _too(one: Reduction, other: Reduction) -> bool:
    """Whether of a model, beside its output that is wrong, that is wrong too which is so in the other, of the same operator,
    and it has all parameters that decide of that.
    """
    both, names, program = (one, other), set(map(removable.key, other.deciding)), one.program().program
    if not names or not isinstance(program, Instance) or not names <= program.params.keys():
        return False
    operators = {location.canonical(x.program().program.operator) for x in both}
    at = {(x.frontend, x.environment, x.outcome.verdict) for x in both}
    outputs = [str(x.outcome.details.get("output", "")) for x in both]
    shown = (one.outcome.details.get("manner") or {}).get(outputs[1], [""])
    alike = len(at) == len(operators) == 1 and one.outcome.verdict == INCONSISTENT
    return alike and outputs[0] != outputs[1] and shown[0] == "wrong"


def _untyped(one: Reduction, other: Reduction) -> bool:
    """Whether of two crashes or refusals by one route nothing decides but one dtype, that is of the input of one of them, and
    there the operator does not matter.
    """
    at = {(x.frontend, x.environment, x.variant) for x in (one, other)}
    stops = all(x.outcome.verdict in (CRASH, REFUSED) for x in (one, other))
    named = [only_dtype(x) for x in (one, other)]
    return len(at) == 1 and stops and one.whatever != other.whatever and named[0] == named[1] != ""


def only_dtype(of: Reduction) -> str:
    """Return the dtype that alone decides, whether an input is of it or a parameter names it; empty where more does."""
    told = decides(of)
    [named] = map(dtypes_of, told) if len(told) == 1 else [frozenset[str]()]
    return next(iter(named)) if len(named) == 1 else ""


def dtypes_of(says: str) -> frozenset[str]:
    """Return the dtypes that decide where that is told, of an input or of a parameter that names one; else none."""
    if says.endswith(kinds.RESULT):  # "bfloat16 dtype (stated, ...)": the parameter's name stands last
        says = f"{says.removesuffix(kinds.RESULT).rpartition(' ')[0]} inputs"
    return dtypes.members(says)


KINDS = (_composed, _too, _untyped)
"""What two of a kind need not be of to be asked about."""


def _at_once(ask: Look, program: Instance, other: tuple[Look, Reduction], another: Instance) -> str:
    """Return whether both outputs of a model are right without what decides of the other program, and the other's alone is
    wrong in it as there, with all that tells them apart.
    """
    (ask_other, theirs) = other
    needed = set(map(removable.key, theirs.deciding))
    own = msgspec.structs.replace(program, outputs=another.outputs)
    made = exchanged(own, another)
    if made is None:
        return UNTOLD
    bare = msgspec.structs.replace(program, params={x: y for x, y in program.params.items() if x not in needed})
    seen = ask_other.look([own, *made])
    if ask.look([bare])[0].verdict == PASS and all(as_wrong(theirs.outcome, x) for x in seen):
        return ALIKE
    return APART if all(x.verdict == PASS or x.verdict in FAILURES for x in seen) else UNTOLD


def answer(one: tuple[Stating, Reduction], other: tuple[Stating, Reduction]) -> str:
    """Return whether two reduced programs fail alike with all that tells them apart.

    Each is what its own `Look` looks for. With the other's operator a program has to fail as the other does. One that is made
    of several operators fails alike if it holds the other's (`_holds`), one that has the other's output wrong, too, if that is
    one failure (`_at_once`), one of a dtype that the other's input is of if both pass by another route. Raises Spent.
    """
    says = ALIKE
    for (ask, of), (ask_other, theirs) in ((one, other), (other, one)):
        program, another = of.program().program, theirs.program().program
        if not isinstance(program, Instance) or not isinstance(another, Instance):
            return UNTOLD
        if _composed(of, theirs):
            return _holds(ask, program, (ask_other, theirs), another)
        if _untyped(of, theirs):
            if ask.passes_by_another(program) and ask_other.passes_by_another(another):
                return ALIKE
            if not _of_kind(of, theirs):
                return APART
        if _too(of, theirs):
            return _at_once(ask, program, (ask_other, theirs), another)
        if (made := exchanged(program, another)) is None:
            return UNTOLD
        for x, shown in zip(made, ask.look(made), strict=True):
            if (ask if x.operator == program.operator else ask_other).fails(shown):
                continue
            if shown.verdict == PASS or shown.verdict in FAILURES:
                return APART
            says = UNTOLD
    return says


# ---------------------------------------------------------------------- what is stored


def save(workspace: Workspace, found: Kin) -> None:
    """Store what was asked about a reduction, in place of what was before."""
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.KIN, examined.Examined(found.finding, found.environment, found.test, document))


def stored(workspace: Workspace) -> list[Kin]:
    """Return all that was asked about reductions."""
    return [msgspec.json.decode(x.document, type=Kin) for x in examined.documents(workspace, examined.KIN)]
