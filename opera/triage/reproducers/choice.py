"""Which member of a finding its script, its page and its sentence are about: one choice for all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from opera import compilers
from opera.oracle import draws, location, messages, randomness
from opera.oracle.draws import Broken
from opera.oracle.screens import AGREEING
from opera.programs import migrated
from opera.programs.program import JOINED
from opera.programs.values import Message, Tensor
from opera.programs.verdicts import INCONSISTENT, UNSTABLE, Outcome, newer
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import contrasts, reduction
from opera.triage.conditions import dtypes, peculiar, removable
from opera.triage.distinct import kinship
from opera.triage.doubts import contradicted, unexplained
from opera.triage.given import LONG, given
from opera.triage.reduction import Reduction
from opera.triage.sentence import EQUAL, TRAINING, at_limit, brief, drawn, is_relation
from opera.triage.shrink import shapes

SMALL = 16
"""Elements of a program that anybody reads at a glance."""
BORNE_OUT = 3
"""Near programs that pass at least, where it is told that a number is just at a limit: small programs have such by chance."""


BEYOND = re.compile(r"^((?:NaN or )?a number (?:beyond|that)) \w+")
"""How it is told that a number is none of a dtype."""


class Choice(NamedTuple):
    """What shows a finding: the verdict on a member, or on the smallest program that a member was reduced to.

    `reduction` is that of the program, None where the member itself is shown; `member` is the member. `alike` are operators in
    place of one of the program's with which the finding fails as well, the most frequent first; `unlike` those of which
    something that is told is not known to decide. `whole` is what the member was reduced to, where `reduction` is the plain
    form of that (opera.triage.reducer.cut), or the certain one (opera.triage.reducer.certain).
    """

    verdict: Verdict
    member: Verdict
    reduction: Reduction | None = None
    alike: tuple[str, ...] = ()
    whole: Reduction | None = None
    unlike: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether it is the same call at settings that leave nothing to chance."""
        if self.whole is None or self.reduction is None:
            return False
        before, now = self.whole.program().program, self.reduction.program().program
        return (before.library, before.operator) == (now.library, now.operator)

    @property
    def exported(self) -> str:
        """What a plain form was exported from, in words (`from torch.istft`), or of a library's own call, what it stands for
        (`seen in EinsumDense`); empty where it is none, or only opera's way to load that file ties them.
        """
        if self.whole is None or self.reduction is None or self.reduction.fed or self.certain:
            return ""
        before = self.whole.program().program
        return f"{'seen in' if before.library == self.reduction.program().program.library else 'from'} {brief(before.operator)}"

    @property
    def deciding(self) -> tuple[str, ...]:
        """What decides, as far as a reduction told: parameters, what else, and in which circumstances."""
        of = self.reduction
        if of is None:
            return ()
        known = of.explained and of.near[1] >= BORNE_OUT
        return (*of.deciding, *(x for x in of.besides if known or not (at_limit(x) or x == EQUAL)), *of.circumstances)

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings without which it passes: opera's own, and a version that users may choose."""
        return self.reduction.settings if self.reduction is not None else ()

    @property
    def firm(self) -> bool:
        """Whether near programs bear out what seems to decide, or that nothing need.

        Of numbers that are drawn wrongly nothing is asked, for some parameters hide that.
        """
        of = self.reduction
        return of is None or bool(drawn(self.verdict.outcome)) or (self.unexplained is None and not self.contradicted)

    @property
    def unexplained(self) -> tuple[int, int] | None:
        """What speaks for something that decides and is not known; of a plain form, also of what that was made of."""
        of, whole = self.reduction, self.whole
        if of is None:
            return None
        several = len(of.program().program.operators) > 1 and not self.deciding  # who reads the whole sees no nodes
        if whole is not None and not several and unexplained(whole, (*whole.deciding, *whole.circumstances)) is None:
            return None
        return unexplained(of, self.deciding)

    @property
    def alone(self) -> bool:
        """Whether the program passes when one thing alone is another: then it is shown what makes it fail."""
        return self.reduction is not None and any(
            x.passes and x.what != contrasts.OUTPUT for x in self.reduction.contrasts
        )

    @property
    def contradicted(self) -> str:
        """What near programs say against what is told to decide."""
        return "" if self.reduction is None else contradicted(self.reduction, self.deciding)

    @property
    def incidental(self) -> bool:
        """Whether it fails so whatever is computed of what it is given (opera.triage.reducer.incidental)."""
        of = self.reduction
        return of is not None and bool(of.incidental) and of.whatever and self.firm

    def called(self, operator: str, room: int = LONG) -> str:
        """Return the operator, with what it is given: that it fails so was seen, and is so whatever seems to decide. There is
        `room` for so many characters of that: what seems to decide, and what makes it pass when it is another, comes first.
        """
        of = self.reduction
        if of is None or self.incidental:
            return operator
        program, told = of.program().program, (*of.besides, *of.circumstances)
        mentioned = [x.name for x in program.inputs if any(_about(x.name, says) for says in told)]
        first = [*map(removable.named, of.deciding), *mentioned, *(x.name for x in of.contrasts if x.passes)]
        what = given(program, first, room)
        return f"{operator}{' ' if JOINED in operator else ''}({what})" if what else operator

    @property
    def sure(self) -> tuple[str, ...]:
        """What is told of it beside how it is called: settings that it needs, that it trains, since which version of its
        operator it fails; of what fails whatever is computed, what it is given."""
        beside = (x for x in self._named if x == TRAINING or x.startswith(reduction.SINCE))
        return self.told if self.incidental else (*beside, *self.settings)

    @property
    def seems(self) -> tuple[str, ...]:
        """What seems to decide, where near programs bear it out: it may be told too widely, or not widely enough."""
        return self._named if self.firm else ()

    @property
    def _named(self) -> tuple[str, ...]:
        """What decides, of the operand that it is told of."""
        words = dict(() if self.reduction is None else self.reduction.named)
        return tuple(words.get(x, x) for x in self.deciding)

    @property
    def told(self) -> tuple[str, ...]:
        """What decides, and the settings that it needs."""
        return (*self._named, *self.settings)

    @property
    def at(self) -> tuple[str, ...]:
        """Of a certain form, what leaves nothing to chance: `p=1.0`. It is shown so, and does not decide."""
        if self.whole is None or self.reduction is None or not self.certain:
            return ()
        [before], [now] = (x.program().program.instances() for x in (self.whole, self.reduction))
        own = {x.name: x.value for x in before.inputs}
        set_ = [f"{name}={removable.said(x)}" for name, x in now.params.items() if before.params.get(name) != x]
        fed = ((x.name, x.value) for x in now.inputs if x.value != own[x.name] and isinstance(x.value, Tensor))
        return (*set_, *(f"{name}={removable.said(x.numbers().flat[0].item())}" for name, x in fed))


def _about(name: str, says: str) -> bool:
    """Whether what decides is told of an input: `a floating-point depth`, `x of rank 3`, `length 1 of x`; `a` begins a sentence
    of another, and `input` too."""
    found = re.escape(name)
    begins = "" if name in ("a", "an", "input") else rf"|^{found}\b"
    return re.search(rf"\b{found}$|\bof {found}\b{begins}", says) is not None


def choose(
    workspace: Workspace,
    verdicts: list[Verdict],
    known: Mapping[str, list[Reduction]] | None = None,
    *,
    plain: bool = True,
) -> Choice | None:
    """Return what shows a finding best: the smallest program that a member was reduced to, of operators that the compiler
    knows if there is one, whose outputs an independent implementation confirms if there is one, of ordinary numbers if
    there is one, one of which is known since which version it fails, one of tensors that have elements and axes, of what is
    drawn wrongly one that becomes few operations, of small ones one of which is known what decides, and of such the one that
    says least; else the first of its `candidates`.

    None where no member fails on its own (a state-dependent finding needs its predecessors, which `opera show` lists), or
    the folders of its tests were deleted. `known` is reduction.by_member, of who asks for many findings. Unless `plain` is
    False, the plain form of a reduction is shown in its place: nodes of the file that its compiler is given.
    """
    names = dict.fromkeys(x.test for x in verdicts)
    found = reduction.by_member(workspace, names) if known is None else known
    members = {(x.test, x.environment, x.variant): x for x in verdicts}
    reduced = [
        x
        for name in names
        for x in found.get(name, ())
        if (member := members.get((x.test, x.environment, x.variant)))
        and (x.incidental or not kinship.elsewhere(member.outcome.conversion_function, x.outcome))
        and migrated.folder(workspace.tests_folder, x.stored).is_dir()
    ]
    if reduced:
        best = min(reduced, key=_worst)
        member = members[best.test, best.environment, best.variant]
        if plain and (cut := _plain(workspace, best)) is not None:
            shown = msgspec.structs.replace(
                member, test=cut.stored, frontend=cut.frontend, variant=cut.variant, outcome=cut.outcome
            )
            return Choice(_of_drawn(workspace, shown), member, cut, cut.incidental, whole=best)
        shown = msgspec.structs.replace(member, test=best.stored, outcome=best.outcome)
        own = best.program().program.operators
        others = [x for x in reduced if x.finished and not _holds_bodies(x)]
        told = _shared(best, reduced)
        alike = [x for x in others if _needs(told) <= _needs(x) and _with_its_values(told, x)]
        called, every = (tuple(y for y in reduction.named([best, *x]) if y not in own) for x in (alike, others))
        unlike = tuple(x for x in every if x not in called)
        family = (x for x in best.siblings if x not in unlike)
        called = tuple(dict.fromkeys((*best.incidental, *family, *called)))
        return Choice(_of_drawn(workspace, shown), member, told, called, unlike=unlike)
    return next((Choice(_of_drawn(workspace, x), x) for x in candidates(workspace, verdicts)), None)


def _worst(x: Reduction) -> tuple[Any, ...]:
    """Return what reductions are compared by, that first which shows a finding best: see `choose`."""
    program = x.program().program
    return (
        x.outcome.verdict != UNSTABLE,
        newer(x.outcome),
        _by_chance(x.outcome),
        messages.several(x.outcome.message),
        x.outcome.verdict == INCONSISTENT and not x.outcome.details.get(AGREEING),
        peculiar.is_special(program),
        x.elements > SMALL and x.elements,
        not x.incidental,
        not x.explained,
        not any(says.startswith(reduction.SINCE) for says in x.circumstances),
        x.outcome.conversion_function.startswith(location.EXPANDED),
        any(shapes.corners(program).values()),
        x.operations if "drawn" in x.outcome.details else 0,
        x.elements,
        not (x.deciding or x.besides or x.circumstances),
        len(program.canonical()),
        x.stored,
    )


def _plain(workspace: Workspace, of: Reduction) -> Reduction | None:
    """Return the plain form of a reduction, where its test is there."""
    compiler, _, library = of.frontend.rpartition("-")
    if compilers.artefact(compiler, library, of.variant) in ("", library) and not _by_chance(of.outcome):
        return None
    found = reduction.plain(workspace, of)
    there = found is not None and migrated.folder(workspace.tests_folder, found.stored).is_dir()
    return found if there else None


def _holds_bodies(found: Reduction) -> bool:
    """Whether a reduced program holds others, any of which may be what fails: the branches of `If`."""
    return any(isinstance(x, Message) for call in found.program().program.instances() for x in call.params.values())


def _shared(best: Reduction, found: Iterable[Reduction]) -> Reduction:
    """Return a reduction without special numbers, ranks and circumstances that decide of it and not of another of the finding
    (circumstances: of the same operators): they are but one way to it. Dtypes are told of all that tell any, for a search may
    end in one that needs none to be told. Reductions to one and the same program tell circumstances in words of their own; so
    do those that tell the same but for one thing (`steps=0`, and an output without elements).
    """
    told = [x.besides for x in found if x.finished]

    def stands(says: str) -> str:
        if removable.is_dtype(says):
            return _together(says, [of_dtypes for x in told if (of_dtypes := set(filter(removable.is_dtype, x)))])
        of_kind = next((x for x in (kinship.special, peculiar.is_rank) if x(says)), None)
        return says if of_kind is None or all(says in x for x in told) else ""

    called = best.program().program.operators
    others = (x for x in found if x.finished and any(x.near) and (x is best or x.stored != best.stored))
    own = (x for x in others if x.program().program.operators == called)
    near = [x.circumstances for x in own if not _in_other_words(best, x)]
    shared = tuple(
        _most_widely(says, near)
        for says in best.circumstances  # since which version its own program fails another need not say
        if says.startswith(reduction.SINCE) or all(_of_any(says) in map(_of_any, x) for x in near)
    )
    alike = [x for x in found if x.finished and len(called) == 1 and x.program().program.operators == called]
    parameters = tuple(filter(None, (_with_values(says, alike) for says in best.deciding)))
    return msgspec.structs.replace(
        best, deciding=parameters, besides=tuple(filter(None, map(stands, best.besides))), circumstances=shared
    )


def _in_other_words(one: Reduction, other: Reduction) -> bool:
    """Whether two reductions tell the same circumstances, and each one thing for itself."""
    told, also = ({*x.deciding, *x.besides, *x.circumstances} for x in (one, other))
    shared = not set(one.circumstances).isdisjoint(other.circumstances)
    return shared and len(told - also) == 1 == len(also - told)


def _together(says: str, others: Sequence[Collection[str]]) -> str:
    """Return what reductions of one finding tell of dtypes as one: all floats, or all integers; nothing where it is both."""
    if all(says in x for x in others):
        return says
    told = {says}.union(*others)
    names = frozenset[str]().union(*map(dtypes.members, told))
    kinds = (x for x in dtypes.KINDS if x in told and dtypes.members(x) == names)
    one = len({"float32" in dtypes.members(x) for x in told}) == 1  # else it passes of one and fails of another
    alike = one and all(map(dtypes.members, told)) and (names <= dtypes.INTEGERS or names <= dtypes.FLOATS)
    return next(kinds, f"{dtypes.either(names)} inputs") if alike else ""


def _needs(of: Reduction) -> set[str]:
    """Return what is told of a reduction, parameters without their values; of dtypes and ranks, that such are told."""
    told = (*of.deciding, *of.besides, *of.circumstances, *of.settings)
    kinds = {
        x: "dtype" if removable.is_dtype(x) else "rank" if peculiar.is_rank(x) or " rank " in x else "" for x in told
    }
    return {kind or removable.key(x) for x, kind in kinds.items() if not is_relation(x)}


def _with_its_values(told: Reduction, other: Reduction) -> bool:
    """Whether what is told of parameters' values is told of another reduction, too, as far as it is told of these at all."""
    stated = {removable.named(x): x for x in told.deciding if "=" in x}
    return all(stated.get(removable.named(x), x) == x for x in other.deciding)


def _of_any(says: str) -> str:
    """Return what is told of numbers without the dtype that they are compared with: of another they are others; and of what is
    left out, with what counts as much."""
    return removable.plainly(BEYOND.sub(r"\1", says))


def _most_widely(says: str, near: Iterable[Sequence[str]]) -> str:
    """Return how reductions tell what one of them tells, the most widely: with all that counts as left out."""
    return max((says, *(x for of in near for x in of if _of_any(x) == _of_any(says) and x != _of_any(x))), key=len)


def _with_values(says: str, found: Iterable[Reduction]) -> str:
    """Return how it is told that a parameter decides of several reductions of one operator: the most widely; nothing where one
    has another value, which does not decide.
    """
    name, told = removable.named(says), [says]
    for x in found if name else ():
        value = x.program().program.instances()[0].params.get(name)
        own = [y for y in x.deciding if removable.named(y) == name]
        if not own and any(x.near) and value is not None and f"{name}={removable.said(value)}" != says:
            return ""
        told += own
    beyond = [x for x in told if not x.startswith(f"{name}=")]
    wider = sorted(beyond, key=lambda x: (" other than " not in x and not x.endswith(" given"), x))
    return wider[0] if wider else says if len(set(told)) == 1 else f"{name} given"


def _of_drawn(workspace: Workspace, verdict: Verdict) -> Verdict:
    """Return a verdict that says what is wrong with numbers drawn at random, also one that was stored when none said so.

    That one of them is not the one that the reference drew says nothing.
    """
    outcome = verdict.outcome
    details = outcome.details
    if outcome.verdict != INCONSISTENT or outcome.symptom in randomness.FORMS or "drawn" in details:
        return verdict
    path = migrated.folder(workspace.tests_folder, verdict.test)
    manifest = migrated.read_manifest(path) if (path / "manifest.json").is_file() else None
    if manifest is None or randomness.RANDOM not in manifest.tags:
        return verdict
    name = details.get("output")
    place = manifest.outputs.index(name) if name in manifest.outputs else 0
    told: Broken | None = None
    if "why" in details:
        kind = draws.CONSTANT if draws.CONSTANT in details.get("tags", ()) else ""
        told = Broken(details["why"], kind, place)
    elif place == 0 and "index" in details and isinstance(details.get("actual"), int | float):
        index = [int(x) for x in re.findall(r"\d+", details["index"])]
        told = draws.outside(workspace.instance(manifest.instance), index, details["actual"])
    told = told or Broken("numbers that are drawn were compared with others that are: run it again", "", place)
    return msgspec.structs.replace(
        verdict, outcome=msgspec.structs.replace(outcome, details={**details, **told.numbers(manifest.outputs)})
    )


def candidates(workspace: Workspace, verdicts: list[Verdict]) -> list[Verdict]:
    """Return the members that fail alone and whose tests are there, confirmed ones where there are such, the smallest first.

    Those come first that leave nothing to chance, and fail at one operator alone.
    """
    found = [x for x in verdicts if alone(x)]
    made = _made(workspace, (x for x in found if x.confirmation == "confirmed")) or _made(workspace, found)
    return sorted(
        made,
        key=lambda x: (_by_chance(x.outcome), messages.several(x.outcome.message), _size(workspace, x.test), x.test),
    )


def _by_chance(outcome: Outcome) -> bool:
    """Whether what is wrong is how numbers are drawn, which takes many of them to see."""
    return "drawn" in outcome.details


def alone(verdict: Verdict) -> bool:
    """Whether a test fails without others before it in the same process, and by its own fault."""
    details = verdict.outcome.details
    return "state-dependent" not in details.get("tags", ()) and "victim" not in details


def _made(workspace: Workspace, verdicts: Iterable[Verdict]) -> list[Verdict]:
    return [x for x in verdicts if migrated.folder(workspace.tests_folder, x.test).is_dir()]


def _size(workspace: Workspace, test: str) -> int:
    return sum(path.stat().st_size for path in migrated.folder(workspace.tests_folder, test).iterdir())
