"""Which members of a finding have the cause that the reduction of one of them shows: asked of each member itself.

What decides of the reduced program is taken away from the member. Where that passes, it fails for the same reason. A member
that has no such thing, or fails without it as before, is another matter, which its own reduction tells; one that then fails in
another way has two causes. What was asked is stored, a document a member, so that `triage.distinct.causes` follows from that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from opera.oracle import location
from opera.programs.program import Operand, Program
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import CRASH, FAILURES, PASS, REFUSED, Outcome
from opera.store import examined
from opera.store.workspace import Workspace
from opera.triage.conditions import deciding
from opera.triage.conditions.deciding import Look
from opera.triage.failure import lacks_axis
from opera.triage.reduction import Reduction
from opera.triage.sentence import is_relation
from opera.triage.shrink.smaller import Defaults

BELONGS, LACKS, SAME, OTHERWISE, UNTOLD = "belongs", "lacks", "same", "otherwise", "untold"
"""What was seen of a member: it passes without what decides; it has no such thing; without it, it fails as before; it fails in
another way; or nothing can be said."""
APART = (LACKS, SAME)
"""What tells that a member has another cause, if its own reduction does so, too."""
Answers: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
"""(finding, member) → member that was reduced → what was seen."""


class Asked(msgspec.Struct, frozen=True):
    """One question about a member.

    Attributes:
        of: Id of the test that was made of the reduced program.
        what: What decides of that, as far as it was asked for.
        says: What was seen.
    """

    of: str
    what: tuple[str, ...]
    says: str


class Membership(msgspec.Struct, frozen=True):
    """What was asked about a member (`test`) of a finding, through one variant of its frontend."""

    finding: str
    environment: str
    frontend: str
    variant: str
    test: str
    asked: tuple[Asked, ...]


def wanted(of: Reduction) -> tuple[str, ...]:
    """Return what decides of a reduced program and can be asked of others: relations tell of the small program alone."""
    return tuple(x for x in (*of.deciding, *of.besides) if not is_relation(x))


def asked(of: Reduction, says: str) -> Asked:
    """Return what was asked about a member, with its answer."""
    return Asked(of.stored, wanted(of), says)


def answer(ask: Look, program: Program, defaults: Defaults, of: Reduction, own: Outcome | None = None) -> str:
    """Return whether a member fails for the reason that a reduction shows; its own failure is what `ask` looks for.

    Of wrong outputs the member must have all that decides; of a crash, whose words and place are the same, some of it will do.
    A dtype must be that of the same input. Where nothing is known to decide, the operator does, with the inputs that the
    reduced program could not do without. One that lacks an axis (`own` is what it shows) has not the cause of one that does
    not. Raises Spent.
    """
    reduced, told = of.program().program, wanted(of)
    if not calls(program, of) or (own is not None and lacks_axis(own) != lacks_axis(of.outcome)):
        return LACKS
    if any(not _holds(program, reduced, says) for says in told):
        return LACKS
    if not told:
        return UNTOLD if _given(reduced) <= _given(program) else LACKS
    shown = {says: deciding.without(ask, program, says, defaults) for says in told}
    having = [says for says, found in shown.items() if found is not None]
    if not having or (len(having) < len(told) and of.outcome.verdict not in (CRASH, REFUSED)):
        return LACKS
    seen = [outcome for found in shown.values() for _, outcome in found or ()]
    if len(having) > 1 and all(x.verdict != PASS for x in seen):
        seen += [outcome for _, outcome in deciding.without_all(ask, program, having, defaults)]
    if any(x.verdict == PASS for x in seen):
        return BELONGS
    if any(ask.fails(x) for x in seen):
        return SAME
    return OTHERWISE if any(x.verdict in FAILURES for x in seen) else UNTOLD


def calls(program: Program, of: Reduction) -> bool:
    """Whether a program calls all that a reduced one does."""
    return _called(of.program().program) <= _called(program)


def _called(program: Program) -> set[str]:
    return {location.canonical(name) for name in program.operators}


def _holds(program: Program, reduced: Program, says: str) -> bool:
    """Whether a dtype that decides of a reduced program is one of the same input in a program: `float8_e5m2 inputs`, of which a
    value is made in the one and may be given to the other. Whatever else decides holds here.
    """
    dtype, space, rest = says.partition(" ")
    theirs, own = (
        {x.name for call in y.instances() for x in call.inputs if _dtype(x) == dtype} for y in (reduced, program)
    )
    return (space, rest) != (" ", "inputs") or not theirs or bool(theirs & own)


def _dtype(operand: Operand) -> str:
    return operand.value.dtype if isinstance(operand.value, Tensor | RandomTensor) else ""


def _given(program: Program) -> set[str]:
    """Return the formal names of the inputs that calls are given."""
    return {x.name for call in program.instances() for x in call.inputs if x.value is not None}


# ---------------------------------------------------------------------- what is stored


def save(workspace: Workspace, found: Membership) -> None:
    """Store what was asked about a member, in place of what was before."""
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.MEMBER, examined.Examined(found.finding, found.environment, found.test, document))


def stored(workspace: Workspace, tests: Iterable[str] | None = None) -> list[Membership]:
    """Return what was asked about members; about all where none are given."""
    kind = examined.MEMBER
    found = examined.documents(workspace, kind) if tests is None else examined.of_tests(workspace, kind, tests)
    return [msgspec.json.decode(x.document, type=Membership) for x in found]


def answers(known: Iterable[Membership], reductions: Iterable[tuple[str, Reduction]]) -> Answers:
    """Return what was seen of members, of the reductions as they are now; what was asked of an earlier one counts no more.

    Args:
        reductions: Each with the finding of its member's signature.
    """
    of: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[str, Reduction]]] = defaultdict(list)
    for finding, x in reductions:
        of[x.frontend, x.environment, x.stored, wanted(x)].append((finding, x))
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for member in known:
        for asked in member.asked:
            for finding, x in of.get((member.frontend, member.environment, asked.of, asked.what), ()):
                if x.test != member.test:
                    found[finding, member.test].setdefault(x.test, asked.says)
    return dict(found)
