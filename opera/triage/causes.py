"""Which findings are one suspected bug, and which hold several, as the reductions of their members tell.

A verdict keeps the finding of its signature for good. What is shown as a finding follows from that, from the reductions
that are stored, and from nothing else: so it does not matter in which order members were reduced, and asking twice changes
nothing.

- Members of one finding whose reductions differ in what decides (`decisive`) are several. The part of the reduced member
  that was found first keeps the finding's id; each other part has one made of it and of what decides. A member that was asked
  itself (opera.triage.belonging) goes with the reduction whose cause it has; where it has not, inputs, special numbers and the
  like that decide tell causes apart as parameters do.
- Of findings, or parts, of one frontend that are one cause (opera.triage.uniting) the one that was found first keeps its id;
  the others are aliases.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from opera.errors import UsageError
from opera.oracle import location
from opera.oracle.signature import Signature
from opera.programs.program import parse
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import CRASH, REFUSED, UNSTABLE, Outcome
from opera.store import examined, tests, verdicts
from opera.store.once import once
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import belonging, deciding, kinship, peculiar, reduction, uniting
from opera.triage.belonging import Answers
from opera.triage.kinship import Kin
from opera.triage.reduction import Reduction

MOST = 5
"""Members of a finding that are worth reducing, for it to be split."""
EXPANDED = "body"
"""What a call is made of, where it is not converted as one (`Instance.context`): another program than the call itself."""

NOTHING: Answers = MappingProxyType({})
Item = TypeVar("Item")


class Causes(msgspec.Struct, frozen=True):
    """What findings are called, as far as it is not what their signatures say.

    Attributes:
        names: Finding or part → the one that it turned out to be.
        parts: Finding → test → the part that this member belongs to, where it is not the finding itself.
        both: (finding, test) of members that fail in another way without what decides: they have two causes.
    """

    names: Mapping[str, str] = {}
    parts: Mapping[str, Mapping[str, str]] = {}
    both: frozenset[tuple[str, str]] = frozenset()

    def of(self, finding: str, test: str) -> str:
        """Return the finding that a member belongs to, by that of its signature."""
        return self.kept(self.parts.get(finding, {}).get(test, finding))

    def kept(self, finding: str) -> str:
        """Return the finding that one is called now: the end of its chain of aliases."""
        passed = {finding}
        while (named := self.names.get(finding, finding)) not in passed:
            passed.add(named)
            finding = named
        return finding

    def aliases(self) -> dict[str, list[str]]:
        """Return finding → what else it is, or was, called."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.names):
            if self.kept(name) != name:
                found[self.kept(name)].append(name)
        return dict(found)


class Called(NamedTuple):
    """What a program calls: operators by the name that their forms share; dtypes of inputs, and parameters of one word."""

    operators: tuple[str, ...]
    options: frozenset[tuple[str, str]]

    @property
    def form(self) -> tuple[str, ...]:
        """What is converted: the operators, and whether as what they are made of."""
        return (*self.operators, *(name for name, _ in self.options if name == EXPANDED))


class Reduced(NamedTuple):
    """A reduction, and the finding of its member's signature."""

    finding: str
    reduction: Reduction


@once
def causes(workspace: Workspace) -> Causes:
    """Return what the findings of a workspace are called."""
    renamed, found = examined.aliases(workspace), reduced(workspace)
    if not found:
        return Causes(renamed)
    seen = belonging.answers(belonging.stored(workspace), found)
    kinds = kinds_of(found, seen)
    signatures = verdicts.signatures(workspace)
    several = [x for x, own in kinds.items() if len(set(own.values())) > 1 or _within(own, signatures.get(x, b"{}"))]
    of = _members(workspace, several)
    told = features(workspace, {test for tests_of in of.values() for test in tests_of})
    empty = _of_nothing(workspace, {x.finding for x in found})
    places = {x: str(msgspec.json.decode(told).get("conversion_function", "")) for x, told in signatures.items()}
    kin, created = kinship.stored(workspace), verdicts.created(workspace)
    return conclude(found, of, told, created, renamed, seen, kin, empty, places)


def _within(own: Mapping[str, bytes], signature: bytes) -> bool:
    """Whether members of a finding were reduced to another operator than it is called for, which its members may not call."""
    operator = msgspec.json.decode(signature).get("operator", "")
    return any(operators and operators != [operator] for operators, *_ in map(msgspec.json.decode, own.values()))


def _of_nothing(workspace: Workspace, known: Collection[str]) -> set[tuple[str, str, str]]:
    """Return (finding, frontend, environment) of those whose outputs vary and all of whose members compute nothing.

    Args:
        known: Findings that have a reduction: it tells that of them. What varies may pass when it is to be reduced.
    """
    signatures = {finding: msgspec.json.decode(x) for finding, x in verdicts.signatures(workspace).items()}
    varying = [x for x, told in signatures.items() if told.get("symptom") == UNSTABLE and x not in known]
    of = list(verdicts.of_findings(workspace, varying)) if varying else []
    documents = tests.documents(workspace, {x.test for x in of})
    empty = {test for test, form in documents if uniting.of_nothing(parse(form))}
    some = {x.finding for x in of if x.test not in empty}
    return {(x.finding, x.frontend, x.environment) for x in of if x.finding not in some}


def conclude(
    found: Sequence[Reduced],
    members: Mapping[str, Iterable[str]],
    told: Mapping[str, Called],
    created: Mapping[str, float],
    renamed: Mapping[str, str],
    seen: Answers = NOTHING,
    kin: Iterable[Kin] = (),
    empty: Iterable[tuple[str, str, str]] = (),
    places: Mapping[str, str] = MappingProxyType({}),
) -> Causes:
    """Return what findings are called.

    Args:
        found: All reductions.
        members: Finding → its tests in the order in which they were found, of those that reductions divide.
        told: Test → what it calls, and with which options.
        created: Finding → when it was found.
        renamed: What is called otherwise for good.
        seen: What was seen of members that were asked themselves.
        kin: What was asked about reductions of several findings.
        empty: (finding, frontend, environment) of those without a reduction that compute nothing.
        places: Finding → the conversion function of its signature. A reduction that failed in another one tells of no other.
    """
    kinds = kinds_of(found, seen)
    parts = {finding: own for finding, of in members.items() if (own := divide(finding, of, kinds, told, seen))}
    alive = {name for of in parts.values() for name in of.values()}
    once = {name: kept for name, kept in renamed.items() if name not in alive}
    both = (
        key for key, of in seen.items() if belonging.OTHERWISE in of.values() and belonging.BELONGS not in of.values()
    )
    staying = [x for x in found if not kinship.elsewhere(places.get(x.finding, ""), x.reduction.outcome)]
    return Causes({**once, **uniting.united(staying, parts, created, kin, empty)}, parts, frozenset(both))


def remember(workspace: Workspace, before: Causes) -> None:
    """Let the parts that findings no longer have be names of what most of their members belong to now."""
    now = causes(workspace)
    gone: dict[str, str] = {}
    for finding, of in before.parts.items():
        alive = set(now.parts.get(finding, {}).values())
        for name in set(of.values()) - alive:
            where = Counter(now.of(finding, test) for test, own in of.items() if own == name)
            gone[name] = max(sorted(where), key=where.__getitem__)
    examined.rename(workspace, gone)


def kinds_of(found: Iterable[Reduced], seen: Answers = NOTHING) -> dict[str, dict[str, bytes]]:
    """Return finding → reduced member → what decides, of reductions that left nothing smaller to try.

    One that needs parameters, of which none was found to decide, counts by its operators alone: where no other ends in these,
    or where the members themselves tell that they have two causes.
    """
    kinds: dict[str, dict[str, bytes]] = defaultdict(dict)
    left: list[Reduced] = []
    for finding, x in sorted(found, key=lambda x: (x.reduction.environment, x.reduction.variant)):
        if x.finished and (x.deciding or not x.nondefault):
            kinds[finding].setdefault(x.test, msgspec.json.encode(decisive(x)))
        elif x.finished:
            left.append(Reduced(finding, x))
    known = {finding: [msgspec.json.decode(x)[0] for x in of.values()] for finding, of in kinds.items()}
    pairs = _apart(found, seen)
    apart = {one for pair in pairs for one in pair}
    for finding, x in left:
        operators = decisive(x)[0]
        if (operators and operators not in known.get(finding, ())) or (finding, x.test) in apart:
            kinds[finding].setdefault(x.test, msgspec.json.encode([operators, [], "", ""]))
    alike = {one for pair in pairs if len({kinds[finding].get(test) for finding, test in pair}) == 1 for one in pair}
    for finding, x in found:
        unknown = not x.deciding and (finding, x.test) in apart
        if (unknown or (finding, x.test) in alike) and x.test in kinds.get(finding, ()):
            operators, names, *rest = msgspec.json.decode(kinds[finding][x.test])
            kinds[finding][x.test] = msgspec.json.encode([operators, names + _conditions(x), *rest])
    needs = {(finding, x.test): {*map(deciding.key, x.deciding), *_conditions(x)} for finding, x in found}
    return {finding: _as_one(finding, of, seen, needs) for finding, of in kinds.items() if of}


def _apart(found: Iterable[Reduced], seen: Answers) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """Return pairs of (finding, member), both reduced, of which the one was seen not to have the cause of the other."""
    known = {(finding, x.test) for finding, x in found}
    return {
        ((finding, test), (finding, other))
        for finding, test in known
        for other, says in seen.get((finding, test), {}).items()
        if says in belonging.APART
    }


def _conditions(x: Reduction) -> list[str]:
    """Return what decides beside parameters, as far as it tells causes apart: dtypes and ranks are the reduction's choice."""
    vague = (deciding.is_dtype, peculiar.is_rank)
    return sorted(deciding.key(says) for says in belonging.wanted(x) if not any(of_kind(says) for of_kind in vague))


def _as_one(
    finding: str, kinds: Mapping[str, bytes], seen: Answers, needs: Mapping[tuple[str, str], Collection[str]]
) -> dict[str, bytes]:
    """Return reduced member → what decides, where those of which one has the cause of the other are of one kind.

    Not, where the one needs something (`needs`) that the other does without: that would fail without it, too, if it had its
    cause. Of several kinds it is the least, so that the order does not matter.
    """

    def more(test: str, other: str) -> bool:
        apart = seen.get((finding, other), {}).get(test) in belonging.APART
        return apart and not set(needs[finding, test]) <= set(needs[finding, other])

    pairs = (
        (test, other)
        for test in kinds
        for other, says in seen.get((finding, test), {}).items()
        if says == belonging.BELONGS and other in kinds and not more(test, other)
    )
    groups = uniting.joined([*((test,) for test in kinds), *pairs])
    return {test: min(kinds[x] for x in group) for group in groups for test in group}


@once
def reduced(workspace: Workspace) -> Sequence[Reduced]:
    """Return the reductions whose members still fail, in the order of their findings, environments and members."""
    found = reduction.stored(workspace)
    failing = verdicts.failing(workspace, [x.test for x in found]) if found else {}
    keys = ((x.test, x.frontend, x.variant, x.environment) for x in found)
    return [Reduced(failing[key], x) for key, x in zip(keys, found, strict=True) if key in failing]


# ---------------------------------------------------------------------- one finding, several causes


def divide(
    finding: str,
    tests: Iterable[str],
    kinds: Mapping[str, Mapping[str, bytes]],
    told: Mapping[str, Called],
    seen: Answers = NOTHING,
) -> dict[str, str]:
    """Return test → part, of the members that do not belong to the finding itself.

    A member that was not reduced goes with the reduced one whose cause it was seen to have; else with the one, reduced or seen,
    that calls the same with the fewest options that differ, the first of those. It stays where none calls the same. Where they
    call it in another form alone, and what they were reduced to is in that form, it is a part of its own, until it is asked.

    Args:
        tests: In the order in which they were found.
        kinds: Finding → reduced test → what decides.
        told: Test → what it calls, and with which options.
        seen: What was seen of members that were asked themselves.
    """
    tests, own = list(tests), kinds.get(finding, {})
    first = next((own[test] for test in tests if test in own), b"")
    like = {test: _kind_seen(seen.get((finding, test), {}), own) for test in tests}
    sure = {test: kind for test in tests if (kind := own.get(test) or like[test])}
    known = [(told[test], kind) for test, kind in sure.items() if test in told]
    found = {test: sure.get(test) or _nearest(told.get(test), known, first) for test in tests}
    return {test: part(finding, kind) for test, kind in found.items() if kind != first}


def _kind_seen(seen: Mapping[str, str], own: Mapping[str, bytes]) -> bytes:
    """Return what decides the reductions whose cause a member was seen to have, the least of several; or of the only kind that
    is left where it was seen not to have that of another; else nothing.
    """
    kinds = {
        wanted: {own[x] for x, says in seen.items() if says == wanted and x in own} for wanted in set(seen.values())
    }
    if belongs := kinds.get(belonging.BELONGS):
        return min(belongs)
    left = kinds.get(belonging.UNTOLD, set())
    return min(left) if len(left) == 1 and any(kinds.get(x) for x in belonging.APART) else b""


def _nearest(called: Called | None, seen: Sequence[tuple[Called, bytes]], first: bytes) -> bytes:
    """Return what decides the one among `seen` that calls the same with the fewest options that differ, else `first`.

    One that calls the same in another form alone (as one, or as what it is made of), and not what `first` was reduced to, has
    what it calls instead.
    """
    if called is None or not first:
        return first
    known = [(len(called.options ^ x.options), kind) for x, kind in seen if called.operators == x.operators]
    inner = set(msgspec.json.decode(first)[0])
    if not known or inner <= set(called.operators) or any(called.form == x.form for x, _ in seen):
        return min(known, key=lambda x: x[0], default=(0, first))[1]
    return msgspec.json.encode([called.form, [], "", ""])


def part(finding: str, kind: bytes) -> str:
    """Return the id of the part of a finding that this decides."""
    return "F" + hashlib.sha256(finding.encode() + b"\0" + kind).hexdigest()[:8]


def decisive(reduction: Reduction) -> list[Any]:
    """Return what tells the causes of one signature apart: operators, deciding parameters, kind of dtype, kind of wrong answer.

    Operator and dtype do not count where the signature knows the place without: a crash whose message or converter is one, or
    that a named converter raised (`Constant`'s, whether the node stands alone or in a branch of `If`). Of a parameter
    the name counts, for one that is ignored is ignored whatever its value.
    The dtype is that of the first tensor: others may only tell a type (`CastLike`), which other forms have as a parameter.
    """
    program, shown = reduction.program(), reduction.outcome
    signature = Signature.of(reduction.frontend, program.program.operator, shown)
    placed = location.telling(signature.message) or "@" in signature.conversion_function
    placed |= shown.verdict in (CRASH, REFUSED) and location.names_converter(shown.conversion_function)
    known = placed or signature.operator == location.IN_PLACE
    operators = [] if known else sorted({location.family(name) for name in program.program.operators})
    given = (operand.value for operand in program.program.inputs)
    dtype = next((_kind(x.dtype) for x in given if isinstance(x, Tensor | RandomTensor)), "")
    needed = sorted({deciding.key(text) for text in reduction.deciding})
    return [operators, needed, "" if known else dtype, _lost(shown)]


def _lost(shown: Outcome) -> str:
    """Return whether NaN or infinity was lost or made, where that is the symptom."""
    if shown.symptom != "nan-mask":
        return ""
    return "lost" if re.search(r"expected -?(?:nan|inf)", shown.message) else "made"


def _kind(dtype: str) -> str:
    """Return the kind of a dtype: what is reduced to float32 where it still fails needs no other float."""
    if re.search(r"float[48]|u?int[24]$", dtype):
        return "low"
    return "double" if dtype == "float64" else re.sub(r"\d+$|^b(?=float)|(?<=int)\d+", "", dtype).removeprefix("u")


def features(workspace: Workspace, names: Iterable[str]) -> dict[str, Called]:
    """Return test → what it calls: two tests that call the same with equal options need not both be reduced."""
    return {test: _called(document) for test, document in tests.documents(workspace, names)}


class _Input(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw(b"")


class _Calls(msgspec.Struct):
    """What is read of a program's document; tensors are not decoded."""

    operator: str = ""
    params: dict[str, Any] = {}
    inputs: list[_Input] = []
    calls: list[_Calls] = []
    context: dict[str, msgspec.Raw] = {}


def _called(document: bytes) -> Called:
    program = msgspec.json.decode(document, type=_Calls)
    options = set()
    for number, x in enumerate(program.inputs):
        if dtype := re.search(rb'"dtype": ?"(\w+)"', bytes(x.value)):
            options.add((f"input {number}", dtype[1].decode()))
    calls = program.calls or [program]
    options |= {(EXPANDED, "") for call in calls if EXPANDED in call.context}
    for number, call in enumerate(calls):
        for name, value in call.params.items():
            options.add((f"{number} {name}", str(value) if isinstance(value, str | bool | int | float) else ""))
    return Called(tuple(location.canonical(call.operator) for call in calls), frozenset(options))


def diverse(workspace: Workspace, verdicts: Iterable[Verdict], most: int = MOST) -> list[Verdict]:
    """Return members of a finding that are worth looking at: one of each operator first, then one of each set of options.

    Those that a fresh process confirmed come first; the first of all is of what most members call.
    """
    found = sorted(verdicts, key=lambda x: x.confirmation != "confirmed")  # stable: in the order they were found
    told = features(workspace, {x.test for x in found})
    return spread([(x, told[x.test]) for x in found if x.test in told], most)


def spread(members: Iterable[tuple[Item, Called]], most: int = MOST) -> list[Item]:
    """Return members that call different things: one of each operator first, then one of each set of options.

    The first of all is of what most members call.
    """
    groups: dict[Called, list[Item]] = defaultdict(list)
    for member, called in members:
        groups[called].append(member)
    operators: set[tuple[str, ...]] = set()
    first, later = list[Item](), list[Item]()
    for called, group in sorted(groups.items(), key=lambda x: -len(x[1])):
        (later if called.operators in operators else first).append(group[0])
        operators.add(called.operators)
    return [*first, *later][:most]


# ---------------------------------------------------------------------- names


def resolve(workspace: Workspace, beginning: str) -> list[str]:
    """Return the findings that are, or were, called so or whose id begins so, as they are called now; sorted."""
    told = causes(workspace)
    known = [
        *verdicts.signatures(workspace),
        *told.names,
        *(name for of in told.parts.values() for name in of.values()),
    ]
    exact = {told.kept(name) for name in known if name == beginning}
    return sorted(exact or {told.kept(name) for name in known if name.startswith(beginning)})


def named(workspace: Workspace, beginning: str, known: Collection[str]) -> str:
    """Return the one of the `known` findings that is, or was, called so or whose id begins so. Raises UsageError."""
    found = [x for x in resolve(workspace, beginning) if x in known]
    if len(found) != 1:
        raise UsageError(
            f"{'no finding has' if not found else f'{len(found)} findings have'} an id that begins with {beginning!r}",
            fix="`opera findings` lists them",
        )
    return found[0]


def distinct(workspace: Workspace, names: Iterable[str]) -> list[str]:
    """Return those of these findings that are none of the others in the workspace, as they are called now."""
    names, told = list(names), causes(workspace)
    return list(dict.fromkeys(told.kept(name) for name in names if told.kept(name) in names))


def members(workspace: Workspace, finding: str, environment: str) -> Iterator[Verdict]:
    """Yield the verdicts that belong to a finding, as `causes` calls it, in the order in which they were found."""
    told = causes(workspace)
    signatures = {finding, *(x for x in told.names if told.kept(x) == finding)}
    signatures |= {x for x, of in told.parts.items() if any(told.kept(part) == finding for part in of.values())}
    for verdict in verdicts.counted_as(workspace, signatures, environment):
        if told.of(verdict.finding, verdict.test) == finding:
            yield verdict


def reductions(workspace: Workspace, finding: str) -> list[Reduction]:
    """Return the reductions of a finding's members, whichever of its ids they were stored under."""
    told = causes(workspace)
    return [x for name, x in reduced(workspace) if told.of(name, x.test) == finding]


def _members(workspace: Workspace, findings: Iterable[str]) -> dict[str, dict[str, None]]:
    """Return finding of the signature → its tests, in the order in which they were found."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for verdict in verdicts.of_findings(workspace, findings):
        found[verdict.finding].setdefault(verdict.test)
    return found
