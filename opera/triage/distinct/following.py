"""Which findings are filed after another: a mend of that one may be one of this, so that who files both may file one bug twice.

Not that they are one cause is told, only in which order they are to be filed: what is left once the first is mended is
another. A finding follows one of its frontend and environment

- beside which it was found: all its tests were made of that one's, they have an operator, or a dtype that decides, in common,
  and it does not end the process, which is worse than what most others do;
- by which a route does not know a dtype, whatever the operator, and that dtype decides here, too;
- of whose operator it is, where the one stops, the other returns a wrong dtype, and the same dtypes decide both;
- that stops at the same place of the compiler's sources, or at a node of the same operator, in the same words, and they have
  an operator in common, their own or the one that their calls become in a file;
- that stops, converted, at the same line of native code, by the same lines of Python, in the same words: what a compiler makes
  of both is the same (a norm of bfloat16 is a power of it), whatever decides;
- that stops at the same line of native code, and both were reduced from one test: one route says more of it than another (a
  logsumexp of a scalar, and the maximum that it is made of);
- whose message tells of the same lines of native code, three or more in the same order, and how an input comes to the model, or
  that it is given, decides both (what falls back on a reference that knows constants alone, of whatever reduction);
- that stops in the same words, and the same decides of both beside parameters, dtypes and ranks, whatever their operators are
  (`twins.py`);
- that is wrong in the same respect of what the model returns alone, and right once another call takes it;
- that runs as soon as the model is given in the same other way, as blame saw (`by_one_way`).

The one that was found first is first, but what is of whatever operator goes before what is of one.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from opera.oracle import location
from opera.oracle.messages import cause
from opera.oracle.randomness import FORMS
from opera.oracle.signature import normalise
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED
from opera.store import examined, verdicts
from opera.store.once import once
from opera.store.workspace import Workspace
from opera.triage import failure
from opera.triage.conditions import removable
from opera.triage.distinct import causes, kinship, twins
from opera.triage.reduction import Reduction
from opera.triage.sentence import RETURNED, lowered

NO_OPERATOR = frozenset(("Constant",))
"""What ONNX calls an operator and computes nothing: that two programs have it tells nothing."""

NATIVE = re.compile(r"\.(?:cpp|cc|cxx|h|hpp):\d+$")
"""A line of native code: one of Python is often that of a table that all is looked up in."""

LINE = re.compile(r"[\w/]+\.(?:cpp|cc|cxx|h|hpp):\d+")
DEEP = 3
"""Lines of native code, and how many of them tell the way that a message came; the first ones are that of any."""

Likeness: TypeAlias = tuple[tuple[object, ...], str]
"""In what two findings may be alike, and what that means in words."""
Key: TypeAlias = tuple[str, str]
"""A finding, and the environment that it is of."""
Age: TypeAlias = tuple[bool, float, str]
"""What findings are sorted by, the one that goes first first."""


class First(NamedTuple):
    """A finding that is to be filed before another, and `why` in words that follow its id."""

    finding: str
    why: str


Firsts: TypeAlias = Mapping[Key, tuple[First, ...]]


class Turn(NamedTuple):
    """What is to be filed before which finding, and the age of each that is reduced."""

    firsts: Firsts
    ages: Mapping[str, Age]


class Sight(NamedTuple):
    """A reduction of a finding, by the name that this has now."""

    name: str
    age: Age
    of: Reduction

    @property
    def operators(self) -> list[str]:
        """By the name that their forms share, sorted."""
        called = set(map(location.canonical, self.of.program().program.operators))
        return sorted(called - NO_OPERATOR or called)


class GivenOtherwise(NamedTuple):
    """A finding that runs as soon as its model is given in another `way`; `frontend` is that with its variant."""

    finding: str
    environment: str
    frontend: str
    way: str


@once
def following(workspace: Workspace) -> Turn:
    """Return what is to be filed before which finding of a workspace, of those that are reduced."""
    called, created = causes.causes(workspace), verdicts.created(workspace)
    reduced = [(called.of(finding, x.test), finding, x) for finding, x in causes.reduced(workspace)]
    began: dict[str, float] = {}
    for name, finding, _ in reduced:
        began[name] = min(began.get(name, math.inf), created.get(finding, 0.0))
    whatever = {name for name, _, x in reduced if x.whatever}
    ages = {name: (name not in whatever, began[name], name) for name in began}
    sights = [Sight(name, ages[name], x) for name, _, x in reduced]
    made: dict[Key, set[str]] = defaultdict(set)  # test and environment → findings, and the parts of each
    for document in examined.documents(workspace, examined.MADE):
        names = {document.finding, *called.parts.get(document.finding, {}).values()}
        made[document.test, document.environment] |= set(map(called.kept, names))
    beside = {x.name for x in sights if (x.of.test, x.of.environment) in made}
    members: dict[Key, set[str]] = defaultdict(set)
    for verdict in verdicts.counted_as(workspace, called.signatures(beside)) if beside else ():
        if (name := called.of(verdict.finding, verdict.test)) in beside:
            members[name, verdict.environment].add(verdict.test)
    origins = {
        (name, environment): set[str]().union(*(made[test, environment] for test in tests))
        for (name, environment), tests in members.items()
        if all((test, environment) in made for test in tests)
    }
    return Turn(conclude(sights, origins), ages)


def conclude(sights: Iterable[Sight], origins: Mapping[Key, Collection[str]]) -> dict[Key, tuple[First, ...]]:
    """Return what is to be filed before each finding.

    Args:
        origins: Finding and environment → those of whose tests all tests of it were made; of the others nothing.
    """
    found: dict[Key, dict[str, str]] = defaultdict(dict)
    at: dict[tuple[str, str], list[Sight]] = defaultdict(list)
    for x in sights:
        at[x.of.frontend, x.of.environment].append(x)
    for (_, environment), own in at.items():
        for one, other, why in (
            *_beside(own, origins),
            *_untyped(own),
            *_mistyped(own),
            *(y for x in ALIKE for y in _after(own, x)),
            *_twins(own),
        ):
            if one.name != other.name:
                first, then = sorted((one, other), key=lambda x: x.age)
                found[then.name, environment].setdefault(first.name, why)
    return {key: tuple(First(name, why) for name, why in sorted(of.items())) for key, of in found.items()}


def by_one_way(turn: Turn, given: Iterable[GivenOtherwise]) -> Firsts:
    """Return what is to be filed before each finding, with what runs as soon as the model is given in the same other way.

    Whoever mends how it is given mends that of all. Each follows the one before it, by the ages that all follow by: so there is
    no circle.
    """
    found = dict(turn.firsts)
    last: dict[tuple[str, str, str], str] = {}
    for x in sorted(given, key=lambda x: (turn.ages.get(x.finding, (True, math.inf, x.finding)), x)):
        one = last.get((x.environment, x.frontend, x.way), x.finding)
        last[x.environment, x.frontend, x.way] = x.finding
        before = found.get((x.finding, x.environment), ())
        if one not in {x.finding, *(y.finding for y in before)}:
            found[x.finding, x.environment] = (*before, First(one, f"both run by {x.way}"))
    return found


def closure(finding: str, firsts: Firsts) -> set[str]:
    """Return a finding, what is to be filed before it, before that, and so on, in whatever environment."""
    before: dict[str, set[str]] = defaultdict(set)
    for (name, _), of in firsts.items():
        before[name] |= {x.finding for x in of}
    found, todo = set[str](), {finding}
    while todo:
        found |= todo
        todo = {y for x in todo for y in before[x]} - found
    return found


def standing(key: Key, firsts: Firsts, ready: Collection[Key]) -> list[First]:
    """Return those before a finding, and before these, that nothing speaks against filing: `ready`, the nearest first.

    Of one that others stand between it is told which, unless the same is why all the way.
    """
    found: dict[str, str] = {}
    todo, passed = list(firsts.get(key, ())), {key[0]}
    while todo:
        first = todo.pop(0)
        if first.finding not in passed:
            passed.add(first.finding)
            between = f"{first.finding} may be of one cause with both"
            further = firsts.get((first.finding, key[1]), ())
            todo += [x if x.why == first.why else First(x.finding, between) for x in further]
            if (first.finding, key[1]) in ready:
                found[first.finding] = first.why
    return [First(*x) for x in found.items()]


def _beside(own: Iterable[Sight], origins: Mapping[Key, Collection[str]]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings that were found beside others, with these."""
    named: dict[str, list[Sight]] = defaultdict(list)
    own = list(own)
    for x in own:
        named[x.name].append(x)
    for x in own:
        beside = origins.get((x.name, x.of.environment), ()) if x.of.outcome.verdict != ABORT else ()
        for origin in sorted(beside):
            for y in named.get(origin, ()):
                if shared := set(x.operators) & set(y.operators):
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
        for dtype in sorted(_decisive(y.of)):
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


def _typed(of: Reduction) -> list[str]:
    """Return what is told of dtypes that decide, sorted."""
    return sorted(filter(removable.is_dtype, kinship.decides(of)))


def _after(own: Iterable[Sight], alike: Callable[[Sight], Iterable[Likeness]]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings, each with the one before it that is `alike` in something, and why."""
    last: dict[object, Sight] = {}
    for x in sorted(own, key=lambda x: x.age):
        for likeness, why in alike(x):
            y, last[likeness] = last.get(likeness, x), x
            yield x, y, why


def _returned(x: Sight) -> Iterator[Likeness]:
    """Of outputs of a wrong form that are right once another call takes them: what collects the outputs of a model is wrong,
    whatever they are of."""
    shown = x.of.outcome
    if shown.verdict == INCONSISTENT and shown.symptom in FORMS and RETURNED in kinship.decides(x.of):
        why = f"both have a wrong {shown.symptom} where the model returns it, and none where another call takes it"
        yield (x.of.variant, shown.symptom), why


def _stopping(x: Sight) -> Iterator[Likeness]:
    """Of what stops: its place, its words and an operator."""
    shown = x.of.outcome
    converter = shown.converter
    named = location.canonical(converter) if location.names_converter(converter) else ""  # of 2-d and of 3-d, too
    place = shown.line or named or ", ".join(sorted(failure.nodes(shown)))
    said = normalise(cause(shown.message))
    becomes = lowered(shown.conversion_function)  # matmul and Dense are both a FULLY_CONNECTED
    called = {*x.operators, *([becomes] if becomes else [])}
    for operator in sorted(called) if shown.verdict in (CRASH, REFUSED) and place and said else ():
        why = f"both stop at the same place in the same words, of {_called(x, {operator}) or operator}"
        yield (shown.verdict, shown.stage, place, said, operator), why


def _lower(x: Sight) -> Iterator[Likeness]:
    """Of what stops below what converters made of it: its line, the way to it, and its words."""
    shown = x.of.outcome
    by, said = failure.below(shown), normalise(cause(shown.message))
    if by and said and shown.stage == "compile" and shown.verdict in (CRASH, REFUSED):
        why = f"both stop in the same words at {by[-1]}, of {by[-2]}, below what their operators are converted to"
        yield (shown.verdict, by, said), why


def _of_one_test(x: Sight) -> Iterator[Likeness]:
    """Of what stops at a line of native code: that, and the test that it was reduced from."""
    shown = x.of.outcome
    if shown.verdict in (CRASH, REFUSED) and NATIVE.search(shown.line):
        why = f"both stop at {shown.line}, and were reduced from one test"
        yield (x.of.test, shown.verdict, shown.stage, shown.line), why


def _by_one_way_down(x: Sight) -> Iterator[Likeness]:
    """Of what stops: the lines of native code that its message tells of, and what decides beside dtypes and ranks."""
    shown, besides = x.of.outcome, kinship.conditions(x.of)
    lines = tuple(y[0] for y in LINE.finditer(shown.message))
    if shown.verdict in (CRASH, REFUSED) and besides and len(lines) >= DEEP:
        yield (shown.verdict, shown.stage, lines, besides), f"both stop by way of {lines[-2]} and {lines[-1]}"


def _twins(own: Iterable[Sight]) -> Iterator[tuple[Sight, Sight, str]]:
    """Yield findings that stop in the same words, of whatever operators (opera.triage.distinct.twins), with the one before."""
    known: dict[tuple[object, ...], list[tuple[Sight, set[str]]]] = defaultdict(list)
    for x in sorted(own, key=lambda x: x.age):
        shown = x.of.outcome
        if shown.verdict in (CRASH, REFUSED) and twins.says_much(shown):  # short words of shared code are said of much
            before = known[shown.verdict, shown.stage, shown.symptom, kinship.conditions(x.of)]
            words = failure.words(shown.message)
            near = (y for y, said in reversed(before) if 2 * len(words & said) > len(words))
            y = next((y for y in near if twins.alike(x.of, y.of)), None)  # programs are parsed of few
            if y is not None:
                yield x, y, "both stop in the same words"
            before.append((x, words))


def _decisive(of: Reduction) -> frozenset[str]:
    """Return the dtypes each of which alone is told to decide."""
    return frozenset(next(iter(x)) for x in map(kinship.dtypes_of, kinship.decides(of)) if len(x) == 1)


ALIKE = (_returned, _stopping, _lower, _of_one_test, _by_one_way_down)
"""In what a finding may be alike with the one before."""


def _called(x: Sight, operators: Collection[str]) -> str:
    """Return how a program calls operators that are told by the name which all their forms share."""
    return ", ".join(name for name in x.of.program().program.operators if location.canonical(name) in operators)
