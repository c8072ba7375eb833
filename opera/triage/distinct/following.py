"""Which findings are filed after another: a mend of that one may be one of this, so that who files both may file one bug twice.

Not that they are one cause is told, only in which order they are to be filed: what is left once the first is mended is
another. A finding follows one of its frontend and environment

- beside which it was found: all its tests were made of that one's, they have an operator, or a dtype that decides, in common,
  and it does not end the process, which is worse than what most others do;
- by which a route does not know a dtype, whatever the operator, and that dtype decides here, too;
- that returns a wrong dtype of the same operator where the same dtypes decide: what stops there may stop at that;
- that stops at the same place of the compiler's sources, or at a node of the same operator, in the same words, and they have
  an operator in common;
- that passes as soon as the model is given in the same other way, as blame saw (`by_one_way`).

The one that was found first is first, but what is of whatever operator goes before what is of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from opera.oracle import location
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED
from opera.store import examined, verdicts
from opera.store.once import once
from opera.store.workspace import Workspace
from opera.triage import failure
from opera.triage.conditions import removable
from opera.triage.distinct import causes, kinship
from opera.triage.reduction import Reduction


class First(NamedTuple):
    """A finding that is to be filed before another, and `why` in words that follow its id."""

    finding: str
    why: str


class Sight(NamedTuple):
    """A reduction of a finding, by the name that this has now; `age` sorts them, the one that goes first first."""

    name: str
    age: tuple[bool, float, str]
    of: Reduction

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(map(location.canonical, self.of.program().program.operators))


@once
def following(workspace: Workspace) -> Mapping[tuple[str, str], tuple[First, ...]]:
    """Return (finding, environment) → what is to be filed before it, of the findings of a workspace that are reduced."""
    called, created = causes.causes(workspace), verdicts.created(workspace)
    reduced = [(called.of(finding, x.test), finding, x) for finding, x in causes.reduced(workspace)]
    began: dict[str, float] = {}
    for name, finding, _ in reduced:
        began[name] = min(began.get(name, float("inf")), created.get(finding, 0.0))
    whatever = {name for name, _, x in reduced if x.whatever}
    sights = [Sight(name, (name not in whatever, began[name], name), x) for name, _, x in reduced]
    made = {(x.test, x.environment): called.kept(x.finding) for x in examined.documents(workspace, examined.MADE)}
    beside = {x.name for x in sights if (x.of.test, x.of.environment) in made}
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    for verdict in verdicts.counted_as(workspace, called.signatures(beside)) if beside else ():
        if (name := called.of(verdict.finding, verdict.test)) in beside:
            members[name, verdict.environment].add(verdict.test)
    origins = {
        (name, environment): {made[test, environment] for test in tests}
        for (name, environment), tests in members.items()
        if all((test, environment) in made for test in tests)
    }
    return conclude(sights, origins)


def conclude(
    sights: Iterable[Sight], origins: Mapping[tuple[str, str], Collection[str]]
) -> dict[tuple[str, str], tuple[First, ...]]:
    """Return (finding, environment) → what is to be filed before it.

    Args:
        origins: (finding, environment) → those of whose tests all tests of it were made; of the others nothing.
    """
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    at: dict[tuple[str, str], list[Sight]] = defaultdict(list)
    for x in sights:
        at[x.of.frontend, x.of.environment].append(x)
    for (_, environment), own in at.items():
        for one, other, why in (*_beside(own, origins), *_untyped(own), *_mistyped(own), *_stopping(own)):
            if one.age[2] != other.age[2]:
                first, then = sorted((one, other), key=lambda x: x.age)
                found[then.name, environment].setdefault(first.name, why)
    return {key: tuple(First(name, why) for name, why in sorted(of.items())) for key, of in found.items()}


def by_one_way(
    firsts: Mapping[tuple[str, str], tuple[First, ...]],
    given: Iterable[tuple[str, str, str]],
    created: Mapping[str, float],
) -> dict[tuple[str, str], tuple[First, ...]]:
    """Return what is to be filed before each finding, with what passes as soon as the model is given in one other way as well:
    whoever mends how it is given mends that of all.

    Args:
        given: Finding, environment, and the way in which its model passes.
        created: Finding → when it was found.
    """
    found = dict(firsts)
    first: dict[tuple[str, str], str] = {}
    for name, environment, way in sorted(given, key=lambda x: (created.get(x[0], 0.0), *x)):
        one = first.setdefault((environment, way), name)
        known = {x.finding for x in found.get((name, environment), ())}
        if one not in {name, *known} and name not in closure(one, found):
            found[name, environment] = (*found.get((name, environment), ()), First(one, f"both run by {way}"))
    return found


def closure(finding: str, firsts: Mapping[tuple[str, str], tuple[First, ...]]) -> set[str]:
    """Return a finding, what is to be filed before it, before that, and so on, in whatever environment."""
    before: dict[str, set[str]] = defaultdict(set)
    for (name, _), of in firsts.items():
        before[name] |= {x.finding for x in of}
    found, todo = set[str](), {finding}
    while todo:
        found |= todo
        todo = {y for x in todo for y in before[x]} - found
    return found


def standing(
    key: tuple[str, str], firsts: Mapping[tuple[str, str], tuple[First, ...]], ready: Collection[tuple[str, str]]
) -> list[First]:
    """Return those before a finding, and before these, that nothing speaks against filing: `ready`, the nearest first."""
    found: dict[str, str] = {}
    todo, passed = list(firsts.get(key, ())), {key[0]}
    while todo:
        first = todo.pop(0)
        if first.finding not in passed:
            passed.add(first.finding)
            todo += firsts.get((first.finding, key[1]), ())
            if (first.finding, key[1]) in ready:
                found[first.finding] = first.why
    return [First(*x) for x in found.items()]


def _beside(
    own: Iterable[Sight], origins: Mapping[tuple[str, str], Collection[str]]
) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings that were found beside others, with these."""
    named: dict[str, list[Sight]] = defaultdict(list)
    own = list(own)
    for x in own:
        named[x.name].append(x)
    for x in own:
        beside = origins.get((x.name, x.of.environment), ()) if x.of.outcome.verdict != ABORT else ()
        for origin in sorted(beside):
            for y in named.get(origin, ()):
                if shared := x.operators & y.operators:
                    yield x, y, f"they were found side by side, both of {_called(x, shared)}"
                elif both := _decisive(x.of) & _decisive(y.of):
                    yield x, y, f"they were found side by side, both of {', '.join(sorted(both))}"


def _untyped(own: Iterable[Sight]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings of dtypes that a route does not know, whatever the operator, each with one that this dtype decides."""
    own = list(own)
    unknown: dict[tuple[str, str], Sight] = {}
    for x in own:
        if x.of.whatever and x.of.outcome.verdict in (CRASH, REFUSED) and (dtype := kinship.only_dtype(x.of)):
            unknown.setdefault((x.of.variant, dtype), x)
    for y in own:
        for dtype in _decisive(y.of):
            known = unknown.get((y.of.variant, dtype))
            if known is not None and not y.of.whatever:
                yield y, known, f"of {dtype} all operators fail there"


def _mistyped(own: Iterable[Sight]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings that stop where dtypes decide, each with one of the same operator that returns a wrong dtype of these."""
    own, wrong = list(own), dict[tuple[str, str], Sight]()
    for x in own:
        if (x.of.outcome.verdict, x.of.outcome.symptom) == (INCONSISTENT, "dtype"):
            for operator in x.operators:
                for says in _typed(x.of):
                    wrong.setdefault((operator, says), x)
    for y in own:
        for operator in y.operators if y.of.outcome.verdict in (CRASH, REFUSED) else ():
            for says in _typed(y.of):
                if (found := wrong.get((operator, says))) is not None:
                    yield (
                        y,
                        found,
                        f"one returns a wrong dtype of {says}, and the other stops, both of {_called(found, {operator})}",
                    )


def _typed(of: Reduction) -> frozenset[str]:
    """Return what is told of dtypes that decide."""
    told = map(removable.key, (*of.deciding, *of.besides, *of.circumstances))
    return frozenset(filter(removable.is_dtype, told))


def _stopping(own: Iterable[Sight]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings that stop at one place, in the same words, and have an operator in common, with the first of these."""
    first: dict[tuple[str, ...], Sight] = {}
    for x in sorted(own, key=lambda x: x.age):
        shown = x.of.outcome
        converter, _, line = shown.conversion_function.partition("@")
        place = line or (converter if location.names_converter(converter) else ", ".join(sorted(failure.nodes(shown))))
        said = normalise(cause(shown.message))
        for operator in x.operators if shown.verdict in (CRASH, REFUSED) and place and said else ():
            y = first.setdefault((shown.verdict, shown.stage, place, said, operator), x)
            yield x, y, f"both stop at the same place in the same words, of {_called(x, {operator})}"


def _decisive(of: Reduction) -> frozenset[str]:
    """Return the dtypes each of which alone is told to decide."""
    told = map(removable.key, (*of.deciding, *of.besides, *of.circumstances))
    return frozenset(next(iter(x)) for x in map(kinship.dtypes_of, told) if len(x) == 1)


def _called(x: Sight, operators: Collection[str]) -> str:
    """Return how a program calls operators that are told by the name which all their forms share."""
    return ", ".join(name for name in x.of.program().program.operators if location.canonical(name) in operators)
