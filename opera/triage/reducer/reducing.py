"""`opera reduce`: findings one after the other, and their further members, which tell whether a finding is several."""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from opera.errors import OperaError
from opera.programs import migrated
from opera.programs.program import Program
from opera.programs.values import Value
from opera.run.probe import Probe
from opera.store import examined
from opera.store import verdicts as stored_verdicts
from opera.store.examined import Examined
from opera.store.rows import Verdict
from opera.store.workspace import REPRODUCERS, Workspace
from opera.triage import reduction
from opera.triage.distinct import belonging, causes, dividing, numbers
from opera.triage.reducer import certain, closing, cut, excused, hidden
from opera.triage.reducer.asking import Budget
from opera.triage.reducer.inner import innermost
from opera.triage.reducer.reduce import SEARCH, SECONDS, NotReduced, asker, reduce
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts
from opera.triage.sentence import brief
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

KIN, BLAME = 0.1, 0.15
"""Shares of the time of many reductions that are kept for asking which findings are one cause, and whose fault each is."""
SHARE, LEAST = 0.5, 30.0
"""What the findings of a run may take, unless the user says so: a share of the run's seconds, and seconds at least."""
ASKING = 120.0
"""Seconds that asking about what screens excuse may take after a run."""
ALL = "all"
"""In place of ids: every finding."""
EARLIER = "; an earlier one, which was finished, stands"
"""What is told besides of a reduction that had too little time."""
ASKED = 16
"""Members of a finding that are asked whether they have its cause: first one of those that call the same with equal options."""


def store(workspace: Workspace, found: Reduction) -> Reduction:
    """Store a reduction, and the test that was made of it, which is no part of the corpus; return the one that stands.

    One that had too little time takes no other's place that had enough.
    """
    known = reduction.by_member(workspace, [found.test]).get(found.test, ())
    own = (x for x in known if (x.frontend, x.environment) == (found.frontend, found.environment))
    whole = next((x for x in own if x.finished), None)
    if not found.finished and whole is not None:
        return whole
    program = found.program().program
    examined.save_test(workspace, examined.Examined(found.finding, found.environment, found.stored, b""), program)
    reduction.save(workspace, found)
    return found


def reduce_all(
    workspace: Workspace,
    names: Iterable[str],
    seconds: float,
    total: float,
    tell: Callable[[str], None],
    workers: int = 2,
    *,
    again: bool = False,
    unasked: Iterable[str] = (),
) -> list[str]:
    """Reduce findings one after the other, write their scripts, and tell of each; return those that were left for want of time.

    Args:
        seconds: What one may take; less for the last that `total` leaves time for.
        total: What all may take together.
        again: Whether further members that have a reduction are reduced once more, too.
        unasked: Findings that are reduced, and whose members are to be asked as those of the others are.
    """
    names = list(names)
    found = scripts.members(workspace, names) if names else {}
    last, fresh, before = time.monotonic() + total, set[str](), causes.causes(workspace)
    left = [x for x in names if x in found]  # in the user's order: time may end
    more = [x for x in unasked if x not in found]
    found |= scripts.members(workspace, more) if more else {}
    if not found:
        return []
    end = last - (KIN + BLAME) * total
    mistakes: list[Exception] = []
    finished: dict[tuple[str, str, str, str], Reduction] = {}  # of this call: an older one may be of other rules
    with Probe.of(workspace, workers=workers) as probe:
        while left and time.monotonic() < end:
            finding = left.pop(0)
            try:
                given = min(seconds, end - time.monotonic())
                made = reduce(workspace, probe, found[finding], given, finished.values())
            except OperaError as error:
                tell(f"{finding} is not reduced: {error.what}")
                continue
            except NotReduced as error:
                tell(f"{finding} is not reduced: {error}")
                if error.gone:
                    seen = Examined(finding, found[finding][0].environment, error.gone, str(error).encode())
                    examined.save(workspace, examined.GONE, seen)
                continue
            except Exception as error:  # a mistake of ours, raised once the others are reduced
                tell(f"{finding} is not reduced: opera itself failed with {type(error).__name__}")
                mistakes.append(error)
                continue
            stands = store(workspace, made)
            fresh.add(made.test)
            tell(told(workspace, finding, made) + (EARLIER if stands is not made else ""))
            if _is_new(finished, stands):
                _cut(workspace, probe, finding, stands, min(seconds, end - time.monotonic()), tell, mistakes)
            besides = (hidden.by_other_routes, hidden.by_its_answer, hidden.beside_it, hidden.of_other_dtypes)
            for other in (x for of in besides for x in of(workspace, probe, stands, seconds)):
                if other.finding not in found:
                    found[other.finding] = [other]
                    left.append(other.finding)
                elif other.test not in {x.test for x in found[other.finding]}:
                    found[other.finding].append(other)
            script = workspace.root / REPRODUCERS / f"{finding}.py"
            try:
                scripts.write(workspace, finding, found[finding], script)
            except OperaError as error:
                tell(f"no script for {finding}: {error.what}")
        done, met = closing.done(workspace), {(x.finding, x.test) for of in found.values() for x in of}
        for finding in [x for x in found if x in done]:
            given = min(seconds, end - time.monotonic())
            for verdict in _others(workspace, probe, found[finding], given, fresh if again else None):
                if time.monotonic() > end:
                    break
                try:
                    left_to_it = min(seconds, end - time.monotonic())
                    made = reduce(workspace, probe, [verdict], left_to_it, finished.values())
                except (NotReduced, OperaError):  # the finding has a reduction; this one only tells whether it is two
                    continue
                stands = store(workspace, made)
                name = finding if verdict in found[finding] else verdict.finding
                met.add((name, verdict.test))
                tell(told(workspace, name, made) + (EARLIER if stands is not made else ""))
                if _is_new(finished, stands):
                    _cut(workspace, probe, name, stands, min(seconds, end - time.monotonic()), tell, mistakes)
        at = {(x.frontend, x.environment) for of in found.values() for x in of}
        closing.ask_kin(workspace, probe, min(max(seconds, KIN * total), last - BLAME * total - time.monotonic()), at)
        causes.remember(workspace, before)
        now = causes.causes(workspace)
        names = {now.of(*x) for x in met}
        closing.ask_blame(workspace, probe, names, last - time.monotonic(), tell)
        if shown := names & closing.done(workspace):  # of several that turned out to be one, one program is shown
            scripts.write_all(workspace, shown, anew=shown)
        closing.show(workspace, probe, names, last - time.monotonic())
    if mistakes:
        raise mistakes[0]
    return left


def _is_new(finished: dict[tuple[str, str, str, str], Reduction], made: Reduction) -> bool:
    """Whether nothing that is finished tells of the very program yet; if this is finished, it does so from now on."""
    key = made.frontend, made.variant, made.environment, made.stored
    new = key not in finished
    if new and made.finished:
        finished[key] = made
    return new


def unasked_members(workspace: Workspace) -> list[str]:
    """Return the findings of several tests that are reduced, and none of whose members was asked: the time was over."""
    asked, done = {(x.finding, x.test) for x in belonging.stored(workspace)}, closing.done(workspace)
    return [
        name
        for name, of in scripts.members(workspace).items()
        if name in done and len({x.test for x in of}) > 1 and not any((x.finding, x.test) in asked for x in of)
    ]


def _cut(
    workspace: Workspace,
    probe: Probe,
    finding: str,
    of: Reduction,
    seconds: float,
    tell: Callable[[str], None],
    mistakes: list[Exception],
) -> None:
    """Look for the plain form of a reduction, or for one that leaves nothing to chance, and tell of it. The reduction stands
    without it, if opera itself makes a mistake, which is kept."""
    try:
        plain = cut.renew(workspace, probe, of, seconds) if seconds > 0 else None
        if plain is None and seconds > 0:
            plain = certain.renew(workspace, probe, of)
    except (NotReduced, OperaError):
        raise
    except Exception as error:
        tell(f"{finding} has no plain form: opera itself failed with {type(error).__name__}")
        mistakes.append(error)
        return
    if plain is not None:
        tell(told(workspace, finding, plain))


def _others(
    workspace: Workspace, probe: Probe, verdicts: Sequence[Verdict], seconds: float, fresh: Collection[str] | None
) -> Iterator[Verdict]:
    """Yield further members of a finding to be reduced, which tell whether it is several; each is yielded once.

    First those that have an old reduction, if they are to be reduced anew. Then members are asked whether they have the cause
    of a reduction; those that have not come next, then those of which it cannot be told and that call something else, and one
    of each form of which nobody knows. What a member fails of besides (opera.triage.reducer.hidden) is such a member, too.

    Args:
        seconds: What asking may take in all.
        fresh: Members that need no other reduction; None: those that have one.
    """
    budget, tried = Budget(seconds), set(fresh or ())
    for environment in sorted({x.environment for x in verdicts}) if seconds > 0 else ():
        of = [x for x in verdicts if x.environment == environment and _held(workspace, x)]
        known = reduction.by_member(workspace, {x.test for x in of}) if fresh is not None else {}
        old = {x.test: x for x in of if x.test not in tried and any(_about(y, x) for y in known.get(x.test, ()))}
        besides = _numbers(workspace, probe, of, Budget(seconds))
        for verdict in list(old.values())[: dividing.MOST]:
            tried.add(verdict.test)
            yield verdict
        group = dividing.diverse(workspace, of, ASKED)
        group += [x for x in of if x not in group][: ASKED - len(group)] + besides
        for number in range(dividing.MOST):
            seen = _asked(workspace, probe, group, budget, anew=fresh is not None and number == 0)
            if more := [x for x in seen.hidden if x.test not in {y.test for y in group}]:
                _numbers(workspace, probe, [*of, *more], Budget(seconds))
                besides += dividing.diverse(workspace, more)
                group += [x for x in besides if x not in group]
                seen = _asked(workspace, probe, group, budget, anew=False)
            left = [x for x in group if x.test not in tried and (x.finding, x.test) not in seen.reduced]
            apart = [x for x in left if seen.apart(x)]
            untold = [
                x for x in left if x in (*group[: dividing.MOST], *besides) and seen.says(x) <= {belonging.UNTOLD}
            ]
            wanted = apart or untold or [x for x in dividing.unseen(workspace, of, seen.settled) if x.test not in tried]
            if not wanted:
                break
            tried.add(wanted[0].test)
            yield wanted[0]


def _numbers(workspace: Workspace, probe: Probe, of: Sequence[Verdict], budget: Budget) -> list[Verdict]:
    """Ask members that convert numbers which of these go wrong, one of those that have the same dtypes; store it, of all.

    One that gets ordinary numbers wrong, where what is seen is a NaN or an infinity, is a test of its own with ordinary ones;
    such are returned.
    """
    known, told = numbers.stored(workspace), dividing.features(workspace, {x.test for x in of})
    alike: dict[Hashable, list[Verdict]] = defaultdict(list)
    for x in of:
        if x.test in told and numbers.converts(told[x.test].operators, x.outcome):
            alike[x.environment, told[x.test].dtypes].append(x)
    plain: dict[str, Verdict] = {}
    for group in alike.values():
        new = [x for x in group if (x.finding, x.test) not in known]
        seen = next((known[x.finding, x.test] for x in group if x not in new), None)
        if seen is not None or not new:
            numbers.save(workspace, new, seen or "")
            continue
        try:
            ask, program = asker(workspace, probe, new[0])
            ask.budget = budget
            numbers.save(workspace, new, found := numbers.wrong(ask, program))
            usual = numbers.ordinary(program)
            hides = found == numbers.ORDINARY and new[0].outcome.symptom == "nan-mask" and new[0].finding not in plain
            if not hides or usual is None or not ask.agreed(usual):
                continue
            if (made := hidden.store(workspace, ask, new[0], usual, "with ordinary numbers")) is not None:
                plain[new[0].finding] = made
        except (NotReduced, OperaError):
            continue
        except Spent:
            break
    if plain:  # they are of findings whose other members may think of no special number alone
        others = stored_verdicts.of_findings(workspace, {x.finding for x in plain.values()})
        _numbers(workspace, probe, [*of, *others], budget)
    return list(plain.values())


def _held(workspace: Workspace, verdict: Verdict) -> bool:
    return migrated.folder(workspace.tests_folder, verdict.test).is_dir()


def _about(found: Reduction, verdict: Verdict) -> bool:
    return (found.frontend, found.environment) == (verdict.frontend, verdict.environment)


class _Seen(NamedTuple):
    """What is known of members: which were reduced, as (finding, test), what was seen of those that were asked, and what these
    fail of besides.
    """

    reduced: set[tuple[str, str]]
    answers: belonging.Answers
    hidden: list[Verdict]

    def says(self, verdict: Verdict) -> set[str]:
        """Return what was seen of a member, whatever reduction it was asked about."""
        return set(self.answers.get((verdict.finding, verdict.test), {}).values())

    def settled(self, verdict: Verdict) -> bool:
        """Whether a member was reduced, or has the cause of a reduction."""
        return (verdict.finding, verdict.test) in self.reduced or belonging.BELONGS in self.says(verdict)

    def apart(self, verdict: Verdict) -> bool:
        """Whether a member may have another cause than all that were reduced: none calls the same, or it fails without what
        decides of one that does.
        """
        says = self.says(verdict)
        other = belonging.SAME in says or (belonging.LACKS in says and belonging.UNTOLD not in says)
        return other and belonging.BELONGS not in says


def _asked(workspace: Workspace, probe: Probe, group: Sequence[Verdict], budget: Budget, *, anew: bool) -> _Seen:
    """Ask members whether they have the cause of a reduction of their finding, while there is time. Store it.

    Each is asked once about each reduction, or `anew`; about its own, too, for what it fails of besides.
    """
    besides: list[Verdict] = []
    failing = list(stored_verdicts.of_findings(workspace, {x.finding for x in group}))
    finding = {(x.test, x.frontend, x.variant, x.environment): x.finding for x in failing}
    found = reduction.by_member(workspace, {x.test for x in failing})
    reductions = [
        (finding[key], x)
        for of in found.values()
        for x in of
        if (key := (x.test, x.frontend, x.variant, x.environment)) in finding
    ]
    known = {(x.finding, x.environment, x.test): x for x in belonging.stored(workspace, {x.test for x in group})}
    done = {(name, x.test) for name, x in reductions}
    for verdict in sorted(group, key=lambda x: (x.finding, x.test) not in done):  # these tell kinds of causes apart
        before = known.get((verdict.finding, verdict.environment, verdict.test))
        new = {
            (x.stored, belonging.wanted(x)): x
            for name, x in reductions
            if name == verdict.finding and x.finished and _about(x, verdict)
        }
        asked = [x for x in (before.asked if before and not anew else ()) if new.pop((x.of, x.what), None)]
        try:
            if not new:
                continue
            more, other = _answers(workspace, probe, verdict, list(new.values())[: dividing.MOST], budget)
        except Spent:
            break
        besides += other
        if more:
            made = belonging.Membership(
                verdict.finding, verdict.environment, verdict.frontend, verdict.variant, verdict.test, (*asked, *more)
            )
            belonging.save(workspace, made)
            known[made.finding, made.environment, made.test] = made
    return _Seen(done, belonging.answers(known.values(), reductions), besides)


def _answers(
    workspace: Workspace, probe: Probe, verdict: Verdict, of: Sequence[Reduction], budget: Budget
) -> tuple[list[belonging.Asked], list[Verdict]]:
    """Ask a member, or what it is made of that fails so, about reductions; return what it fails of besides. Raises Spent.

    A layer is asked about the reduction of a layer, and the call inside it about that of such a call.
    """
    defaults: dict[str, Mapping[str, Value]] = {}
    try:
        ask, program = asker(workspace, probe, verdict)
        ask.budget, kept = budget, [program]
        innermost(ask, kept, defaults)
    except (NotReduced, OperaError):  # it fails no more, or only after others
        return [belonging.asked(x, belonging.UNTOLD) for x in of], []
    asked, besides = list[belonging.Asked](), list[Verdict]()
    for x in of:
        program = next((y for y in reversed(kept) if belonging.calls(y, x)), kept[-1])
        ask.target = ask.outcomes[program.id]
        asked.append(belonging.asked(x, belonging.answer(ask, program, defaults, x, ask.target)))
        other = hidden.left(ask, program, defaults, x) if asked[-1].says == belonging.OTHERWISE else None
        stored = hidden.store(workspace, ask, verdict, other, hidden.lacking(x)) if other is not None else None
        besides += [stored] if stored is not None else []
    return asked, besides


def told(workspace: Workspace, finding: str, found: Reduction) -> str:
    """Return one line about a finding: what it was, what is left, what decides, and how long it took."""
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, found.test))
    before, after = workspace.instance(manifest.instance), found.program().program
    called = brief(before.operator) + ("" if before.operator == after.operator else f" → {brief(after.operator)}")
    only = (*found.deciding, *found.besides, *found.circumstances)
    decided = f", only with {', '.join(only)}" if only else ""
    return (
        f"{finding} {found.frontend} {called}: {smaller.elements(before)} → {found.elements} elements,"
        f" {_count(before)} → {found.nondefault} parameters{decided}; {found.asked} programs in {found.seconds:.1f} s"
        f"{'' if found.finished else ', not finished'}"
    )


def _count(program: Program) -> int:
    return sum(len(call.params) for call in program.instances())


def show(
    workspace: Workspace, names: Sequence[str], seconds: float, total: float, workers: int, *, again: bool = False
) -> None:
    """Reduce these findings, or `all` that have no reduction yet, or one that had less time; with `again`, those too that have.

    Raises UsageError for a name that no finding, or many, have.
    """
    found, every = list(scripts.members(workspace)), ALL in names
    if every:
        done = set() if again else closing.done(workspace, SEARCH * seconds)
        wanted = [x for x in found if x not in done]
    else:
        wanted = list(dict.fromkeys(causes.named(workspace, x, found) for x in names))
    begun = time.monotonic()
    unasked = unasked_members(workspace) if every else ()
    tell = partial(print, flush=True)
    left = reduce_all(workspace, wanted, seconds, total, tell, workers, again=again, unasked=unasked)
    if every:  # of frontends of which nothing is left, too; the last time may have been over before it was asked
        closing.ask_rest(workspace, total - (time.monotonic() - begun), tell, workers)
    scripts.write_all(workspace)  # of what reductions made findings of their own
    if left:
        print(f"{len(left)} findings are left: the time is over; the same command goes on")
    elif not wanted:
        print("every finding is reduced")


class Given(msgspec.Struct, frozen=True):
    """What the user of `opera run` says of reductions.

    Attributes:
        wanted: Whether there are to be any.
        seconds: What they may take; None: SHARE of what the run took, LEAST at least.
        budget: Seconds of the run and them together, None for as many as they need.
    """

    wanted: bool = True
    seconds: float | None = None
    budget: float | None = None
    workers: int = 2


class Afterwards:
    """What follows a run: what screens excuse is asked about once more, new findings are reduced, and scripts are written.

    Attributes:
        found: New findings of what screens excuse, once it was called.
    """

    def __init__(self, given: Given) -> None:
        self.given, self.begun, self.found = given, time.monotonic(), list[str]()

    def __call__(self, workspace: Workspace) -> tuple[int, dict[str, str]]:
        """Reduce new findings for as long as that may take, write what scripts are missing; return as write_all does."""
        given, took = self.given, time.monotonic() - self.begun
        seconds = min(ASKING, math.inf if given.budget is None else given.budget - took)
        self.found = excused.show(workspace, seconds, given.workers)
        took = time.monotonic() - self.begun
        seconds = max(LEAST, SHARE * took) if given.seconds is None else given.seconds
        if given.budget is not None:
            seconds = min(seconds, given.budget - took)
        written = new(workspace, seconds, given.workers) if given.wanted and seconds > 0 else 0
        more, missing = scripts.write_all(workspace)
        return written + more, missing


def new(workspace: Workspace, seconds: float, workers: int) -> int:
    """Reduce the findings that are new, that have neither a script nor a reduction; return how many scripts were written."""
    done = closing.done(workspace)
    folder = workspace.root / REPRODUCERS
    wanted = [x for x in scripts.members(workspace) if x not in done and not (folder / f"{x}.py").is_file()]
    if not wanted:
        return 0
    print(f"reducing {len(wanted)} new findings, for {seconds:.0f} s at most", file=sys.stderr, flush=True)
    left = reduce_all(workspace, wanted, SECONDS, seconds, lambda _: None, workers)
    reduced = closing.done(workspace) & set(wanted)
    print(f"{len(reduced)} of {len(wanted)} new findings reduced" + ("; opera reduce all goes on" if left else ""))
    return sum((folder / f"{x}.py").is_file() for x in wanted)
