"""Which findings are one suspected bug, and which hold several, as the reductions of their members tell.

A verdict keeps the finding of its signature for good. What is shown as a finding follows from that, from the reductions
that are stored, and from nothing else: so it does not matter in which order members were reduced, and asking twice changes
nothing.

- Members of one finding whose reductions differ in what decides (`decisive`) are several. The part of the reduced member
  that was found first keeps the finding's id; each other part has one made of it and of what decides. A member that was asked
  itself (distinct.belonging) goes with the reduction whose cause it has; where it has not, inputs, special numbers and the
  like that decide tell causes apart as parameters do.
- Of findings, or parts, of one frontend that are one cause (triage.distinct.uniting) the one that was found first keeps its id;
  the others are aliases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from opera.errors import UsageError
from opera.programs.program import parse
from opera.programs.verdicts import UNSTABLE
from opera.store import examined, tests, verdicts
from opera.store.once import once
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.distinct import belonging, kinship, numbers, uniting
from opera.triage.distinct.belonging import Answers
from opera.triage.distinct.dividing import NOTHING, Called, Reduced, Wrong, divide, features, kinds_of, special, unlike
from opera.triage.distinct.kinship import Kin
from opera.triage.reduction import Reduction


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

    def signatures(self, findings: Collection[str]) -> set[str]:
        """Return the findings of whose signatures are members of these, as they are called now."""
        found = {*findings, *(x for x in self.names if self.kept(x) in findings)}
        return found | {x for x, of in self.parts.items() if any(self.kept(part) in findings for part in of.values())}

    def aliases(self) -> dict[str, list[str]]:
        """Return finding → what else it is, or was, called."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.names):
            if self.kept(name) != name:
                found[self.kept(name)].append(name)
        return dict(found)


@once
def causes(workspace: Workspace) -> Causes:
    """Return what the findings of a workspace are called."""
    renamed, found = examined.aliases(workspace), reduced(workspace)
    if not found:
        return Causes(renamed)
    seen = belonging.answers(belonging.stored(workspace), found)
    of_numbers = numbers.stored(workspace)
    dividing = numbers.telling(of_numbers)
    kinds = kinds_of(found, seen, dividing)
    signatures = verdicts.signatures(workspace)
    several = [x for x, own in kinds.items() if len(set(own.values())) > 1 or _within(own, signatures.get(x, b"{}"))]
    several += [x for x in {name for name, _ in dividing} & kinds.keys() if x not in several]
    of, wrong = _members(workspace, several)
    told = features(workspace, {test for tests_of in of.values() for test in tests_of})
    empty = _of_nothing(workspace, {x.finding for x in found})
    kin, created = kinship.stored(workspace), verdicts.created(workspace)
    made_of = {x.test: x.finding for x in examined.documents(workspace, examined.MADE)}
    plain = reduction.plains(workspace)
    return conclude(found, of, told, created, renamed, seen, kin, empty, wrong, of_numbers, made_of, plain)


def apart(workspace: Workspace, of: Iterable[Verdict]) -> set[str]:
    """Return the tests of members that fail in another way without what decides: of another cause, it seems."""
    both = causes(workspace).both
    return {x.test for x in of if (x.finding, x.test) in both}


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
    wrong: Mapping[str, Mapping[str, Wrong]] = MappingProxyType({}),
    of_numbers: numbers.Found = MappingProxyType({}),
    made_of: Mapping[str, str] = MappingProxyType({}),
    plain: Mapping[str, Reduction] = MappingProxyType({}),
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
        wrong: Finding → test → which special number stands for which, of the members.
        of_numbers: (finding, test) → which numbers go wrong in it.
        made_of: Test that was made of a member → the finding of that.
        plain: Test that was made of a reduction → the plain form of that.
    """
    dividing = numbers.telling(of_numbers)
    kinds, made = kinds_of(found, seen, dividing), defaultdict[str, dict[str, Wrong]](dict)
    for finding, x in found:
        made[finding][x.test] = special(x.outcome)
    parts: dict[str, dict[str, str]] = {}
    for finding, of in members.items():
        barred = unlike(kinds.get(finding, {}), made[finding], wrong.get(finding, {}))
        if own := divide(finding, of, kinds, told, seen, barred, dividing):
            parts[finding] = own
    alive = {name for of in parts.values() for name in of.values()}
    once = {name: kept for name, kept in renamed.items() if name not in alive}
    both = (
        key for key, of in seen.items() if belonging.OTHERWISE in of.values() and belonging.BELONGS not in of.values()
    )
    return Causes(
        {**once, **uniting.united(found, parts, created, kin, empty, of_numbers, made_of, plain)},
        parts,
        frozenset(both),
    )


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


@once
def reduced(workspace: Workspace) -> Sequence[Reduced]:
    """Return the reductions whose members still fail, in the order of their findings, environments and members.

    One that fails to load in another converter than its member is none: it tells of another piece of code, unless the operator
    is incidental.
    """
    found = reduction.stored(workspace)
    failing = verdicts.failing(workspace, [x.test for x in found]) if found else {}
    keys = ((x.test, x.frontend, x.variant, x.environment) for x in found)
    own = {
        x: msgspec.json.decode(told).get("conversion_function", "")
        for x, told in verdicts.signatures(workspace).items()
    }
    told = [Reduced(failing[key], x) for key, x in zip(keys, found, strict=True) if key in failing]
    elsewhere = (kinship.elsewhere(own.get(x.finding, ""), x.reduction.outcome) for x in told)
    return [x for x, other in zip(told, elsewhere, strict=True) if x.reduction.incidental or not other]


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
    for verdict in verdicts.counted_as(workspace, told.signatures({finding}), environment):
        if told.of(verdict.finding, verdict.test) == finding:
            yield verdict


def reductions(workspace: Workspace, finding: str) -> list[Reduction]:
    """Return the reductions of a finding's members, whichever of its ids they were stored under."""
    told = causes(workspace)
    return [x for name, x in reduced(workspace) if told.of(name, x.test) == finding]


def behind(workspace: Workspace, finding: str, origins: Iterable[str]) -> list[tuple[str, str]]:
    """Return the other findings that members of one fail of besides, each with how that was found: `test_x without axes`.

    Args:
        origins: The tests that the members were made of.
    """
    told, names, found = causes(workspace), set(origins), dict[str, str]()
    for x in examined.documents(workspace, examined.MADE):
        how, parts = x.document.decode(), {x.finding, *told.parts.get(x.finding, {}).values()}
        if how.partition(" ")[0] not in names or finding not in map(told.kept, parts):
            continue
        for verdict in verdicts.of_test(workspace, x.test):
            if verdict.finding and verdict.environment == x.environment:
                found.setdefault(told.of(verdict.finding, x.test), how)
    return sorted((name, how) for name, how in found.items() if name != finding)


def _members(
    workspace: Workspace, findings: Iterable[str]
) -> tuple[dict[str, dict[str, None]], dict[str, dict[str, Wrong]]]:
    """Return finding of the signature → its tests, in the order in which they were found, and which special number stands for
    which in each.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    wrong: dict[str, dict[str, Wrong]] = defaultdict(dict)
    for verdict in verdicts.of_findings(workspace, findings):
        found[verdict.finding].setdefault(verdict.test)
        wrong[verdict.finding][verdict.test] = special(verdict.outcome)
    return found, wrong
