"""Which members of one finding are several causes: what their reductions differ in, and what was seen of members themselves."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from opera.oracle import location, manner
from opera.oracle.signature import Signature
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, NEWER, REFUSED, Outcome
from opera.store import tests
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.conditions import peculiar, removable
from opera.triage.distinct import belonging, numbers, uniting
from opera.triage.distinct.belonging import Answers
from opera.triage.failure import lacks_axis
from opera.triage.reduction import Reduction
from opera.triage.sentence import of_version
from opera.triage.shrink import simpler

MOST = 5
"""Members of a finding that are worth reducing, for it to be split."""
EXPANDED = "body"
"""What a call is made of, where it is not converted as one (`Instance.context`): another program than the call itself."""
AXIS = "an axis is lacking"
MISTAKEN = "imported wrongly"
"""What tells apart of which dtypes it is the importer that is wrong, where that depends on them; of others nothing is told."""
INPUT, FIRST = "input ", "input 0"
"""Options that tell dtypes of inputs."""

Wrong: TypeAlias = frozenset[str]
NOTHING: Answers = MappingProxyType({})
Item = TypeVar("Item")


class Called(NamedTuple):
    """What a program calls: operators by the name that their forms share; dtypes of inputs, and parameters of one word."""

    operators: tuple[str, ...]
    options: frozenset[tuple[str, str]]

    @property
    def form(self) -> tuple[str, ...]:
        """What is converted: the operators, and whether as what they are made of."""
        return (*self.operators, *(name for name, _ in self.options if name == EXPANDED))

    @property
    def dtypes(self) -> tuple[tuple[str, ...], frozenset[tuple[str, str]]]:
        """What is called, and of which dtypes: those of inputs, and what names one (`to`)."""
        named = {x for x in self.options if x[0].startswith(INPUT) or simpler.is_type(x[0].rpartition(" ")[2])}
        return self.operators, frozenset(named)

    @property
    def kind(self) -> str:
        """The kind of dtype that the first tensor has."""
        return _kind(dict(self.options).get(FIRST, ""))


class Reduced(NamedTuple):
    """A reduction, and the finding of its member's signature."""

    finding: str
    reduction: Reduction


def kinds_of(
    found: Iterable[Reduced], seen: Answers = NOTHING, of_numbers: numbers.Found = MappingProxyType({})
) -> dict[str, dict[str, bytes]]:
    """Return finding → reduced member → what decides, of reductions that left nothing smaller to try.

    One that needs parameters, of which none was found to decide, counts by its operators alone: where no other ends in these,
    or where the members themselves tell that they have two causes. Where it is known which numbers go wrong (`of_numbers`,
    distinct.numbers.telling) that tells causes apart in place of dtypes and numbers that the reductions came to.
    """
    kinds: dict[str, dict[str, bytes]] = defaultdict(dict)
    told = [x for x in found if (x.finding, x.reduction.test) in of_numbers]
    found = [x for x in found if (x.finding, x.reduction.test) not in of_numbers]
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
        operators, _, _, _, *newer = decisive(x)
        if (operators and operators not in known.get(finding, ())) or (finding, x.test) in apart:
            kinds[finding].setdefault(x.test, msgspec.json.encode([operators, [], "", "", *newer]))
    alike = {one for pair in pairs if len({kinds[finding].get(test) for finding, test in pair}) == 1 for one in pair}
    for finding, x in found:
        unknown = not x.deciding and (finding, x.test) in apart
        if (unknown or (finding, x.test) in alike) and x.test in kinds.get(finding, ()):
            operators, names, *rest = msgspec.json.decode(kinds[finding][x.test])
            kinds[finding][x.test] = msgspec.json.encode([operators, names + _conditions(x), *rest])
    needs = {(finding, x.test): {*map(removable.key, x.deciding), *_conditions(x)} for finding, x in found}
    ones = {finding: _as_one(finding, of, seen, needs) for finding, of in kinds.items() if of}
    for finding, x in told:
        operators, names, *_ = decisive(x)
        own = [operators, names, "", "", of_numbers[finding, x.test]]
        ones.setdefault(finding, {}).setdefault(x.test, msgspec.json.encode(own))
    return ones


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
    vague = (removable.is_dtype, peculiar.is_rank)
    return sorted(removable.key(says) for says in belonging.wanted(x) if not any(of_kind(says) for of_kind in vague))


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


def divide(
    finding: str,
    tests: Iterable[str],
    kinds: Mapping[str, Mapping[str, bytes]],
    told: Mapping[str, Called],
    seen: Answers = NOTHING,
    barred: Mapping[str, Collection[bytes]] = MappingProxyType({}),
    of_numbers: numbers.Found = MappingProxyType({}),
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
        barred: Test → what cannot decide it (`unlike`).
        of_numbers: (finding, test) → which numbers go wrong in it; what was reduced to others cannot decide it.
    """
    tests, own = list(tests), kinds.get(finding, {})
    first = next((own[test] for test in tests if test in own), b"")

    def out(test: str) -> set[bytes]:
        here = of_numbers.get((finding, test), "")
        others = {kind for x, kind in own.items() if here and of_numbers.get((finding, x), here) != here}
        return others.union(barred.get(test, ()))

    def free(test: str) -> dict[str, bytes]:
        return {x: kind for x, kind in own.items() if kind not in out(test)}

    def of_its_kind(test: str) -> set[str]:
        return {x for x in own if test not in told or x not in told or told[x].kind == told[test].kind}

    like = {test: _kind_seen(seen.get((finding, test), {}), free(test), of_its_kind(test)) for test in tests}
    sure = {test: kind for test in tests if (kind := own.get(test) or like[test])}
    known = [(told[test], kind) for test, kind in sure.items() if test in told]
    found = dict(sure)
    for test in (x for x in tests if x not in sure):
        alone = msgspec.json.encode(
            [[*told[test].operators] if test in told else [], [], "", "", of_numbers.get((finding, test), "")]
        )
        where = min(free(test).values(), default=alone) if first in out(test) else first
        found[test] = _nearest(told.get(test), [x for x in known if x[1] not in out(test)], where)
    return {test: part(finding, kind) for test, kind in found.items() if kind != first}


def unlike(own: Mapping[str, bytes], made: Mapping[str, Wrong], shown: Mapping[str, Wrong]) -> dict[str, set[bytes]]:
    """Return member → what cannot decide it: other special numbers are wrong in it, and something else makes those.

    Args:
        own: Reduced member → what decides.
        made: Reduced member → which number stands for which in its reduction (opera.oracle.manner.special).
        shown: Member → the same of itself.
    """
    theirs: dict[bytes, set[str]] = defaultdict(set)
    for test, kind in own.items():
        theirs[kind] |= made.get(test, Wrong())
    fits = {test: {kind for kind, pairs in theirs.items() if pairs & wrong} for test, wrong in shown.items()}
    return {
        test: {kind for kind, pairs in theirs.items() if pairs and kind not in fit} for test, fit in fits.items() if fit
    }


def _kind_seen(seen: Mapping[str, str], own: Mapping[str, bytes], of_its_kind: Collection[str]) -> bytes:
    """Return what decides the reductions whose cause a member was seen to have, the least of several; or of the only kind that
    is left where it was seen not to have that of another, and that has a reduction of such a first tensor; else nothing.
    """
    kinds = {
        wanted: {own[x] for x, says in seen.items() if says == wanted and x in own} for wanted in set(seen.values())
    }
    if belongs := kinds.get(belonging.BELONGS):
        return min(belongs)
    left = {own[x] for x, says in seen.items() if says == belonging.UNTOLD and x in own and x in of_its_kind}
    return min(left) if len(left) == 1 and any(kinds.get(x) for x in belonging.APART) else b""


def _nearest(called: Called | None, seen: Sequence[tuple[Called, bytes]], first: bytes) -> bytes:
    """Return what decides the one among `seen` that calls the same with the fewest options that differ, else `first`.

    One whose first tensor is of the same kind of dtype comes before others.
    One that calls the same in another form alone (as one, or as what it is made of), and not what `first` was reduced to, has
    what it calls instead.
    """
    if called is None or not first:
        return first
    like = [(x, kind) for x, kind in seen if called.operators == x.operators]
    known = [((called.kind != x.kind, len(called.options ^ x.options)), kind) for x, kind in like]
    inner = set(msgspec.json.decode(first)[0])
    if not known or inner <= set(called.operators) or any(called.form == x.form for x, _ in seen):
        return min(known, key=lambda x: x[0], default=((False, 0), first))[1]
    return msgspec.json.encode([called.form, [], "", ""])


def part(finding: str, kind: bytes) -> str:
    """Return the id of the part of a finding that this decides."""
    return "F" + hashlib.sha256(finding.encode() + b"\0" + kind).hexdigest()[:8]


def decisive(reduction: Reduction) -> list[Any]:
    """Return what tells the causes of one signature apart: operators, deciding parameters, kind of dtype, kind of wrong answer,
    whether it takes a version of the operator that the compiler does not declare to know, whether an exporter's newest
    version is right, which is so of one mistake and not of another, and so whether what was imported is right.

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
    needed = sorted({removable.key(text) for text in reduction.deciding})
    newer = [NEWER] if not known and NEWER in shown.details.get("tags", ()) else []
    left = [x for x in reduction.settings if of_version(x)]
    left += [MISTAKEN] if reduction.mistaken else []
    return [operators, needed, "" if known else dtype, _manner(shown), *newer, *left]


def special(shown: Outcome) -> Wrong:
    """Return which special number stands for which in what is wrong."""
    return manner.special(shown.details.get("manner") or {})


def _manner(shown: Outcome) -> str:
    """Return whether NaN or infinity was lost or made, where that is the symptom; or that an axis is lacking."""
    if shown.symptom != "nan-mask":
        return AXIS if lacks_axis(shown) else ""
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
            options.add((f"{INPUT}{number}", dtype[1].decode()))
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


def unseen(workspace: Workspace, verdicts: Iterable[Verdict], settled: Callable[[Verdict], bool]) -> list[Verdict]:
    """Return members with wrong outputs, one of each form none of whose members is settled: other operators, another kind
    of dtype of the first tensor, or other numbers that go wrong. Reductions of such are told apart (`decisive`).
    """
    found = [x for x in verdicts if x.outcome.verdict == INCONSISTENT]
    told, wrong = features(workspace, {x.test for x in found}), numbers.stored(workspace)
    forms = [
        ((told[x.test].form, told[x.test].kind, wrong.get((x.finding, x.test), "")), x) for x in found if x.test in told
    ]
    known = {form for form, x in forms if settled(x)}
    return list({form: x for form, x in reversed(forms) if form not in known}.values())[::-1]


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
