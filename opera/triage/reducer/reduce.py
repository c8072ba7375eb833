"""The smallest program that fails as a member of a finding does, asked of the probe."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from statistics import median
from typing import Any, cast

import msgspec

from opera import compilers, libraries
from opera.errors import CorpusError, NoAnswer
from opera.libraries import Embedding
from opera.oracle import draws, manner
from opera.oracle.comparison import conceals
from opera.oracle.messages import gist, one_line
from opera.oracle.screens import AGREEING
from opera.programs import migrated, values
from opera.programs.program import Instance, Program, parse
from opera.programs.values import Value
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    DEATHS,
    INCONSISTENT,
    INVALID,
    OUT_OF_MEMORY,
    TIMEOUT,
    UNSTABLE,
    UNSUPPORTED,
    Limits,
    Outcome,
    newer,
)
from opera.run import plan
from opera.run.library_side import Known
from opera.run.probe import Probe, Question
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import contrasts
from opera.triage.conditions import circumstances, deciding, ordinary, readable
from opera.triage.conditions.neighbours import Neighbours
from opera.triage.failure import NUMBERS, alike, as_wrong
from opera.triage.reducer import embedded, exact, inner, older, settings, spare, typed, witness
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.changed import alone, comes, outputs, short, unheeded
from opera.triage.reducer.incidental import Incidental, incidental
from opera.triage.reducer.loud import held, holds, louder, with_numbers
from opera.triage.reducer.parts import inside, parts
from opera.triage.reducer.siblings import alias, same_by_others, siblings
from opera.triage.reducer.single import form_alone, fractions
from opera.triage.reduction import Reduction, is_about, of_another_member
from opera.triage.reproducers import choice
from opera.triage.shrink import shapes, smaller
from opera.triage.shrink.minimise import Spent, minimise

SECONDS = 60.0
"""What a finding may take, unless more or less is asked for."""
SEARCH, LEFT = 0.75, 0.5
"""Share of that for the search, the rest is for asking what decides; and the share of what the search left that goes there."""
SIBLINGS, ALONE = 0.2, 0.15
"""Share of that which asking for siblings may take in addition."""
PATIENCE = 10.0
"""Seconds that a candidate may take: one that is much slower than a member is no smaller."""
HANGS, SLOWER = 2.0, 10.0
"""Seconds after which a candidate hangs, and so many times the usual ones, whichever is more: each takes all of them."""
TRIED = 3
"""Members that are looked at, the smallest first, until one fails by the library's own reference."""
BACK = 6
"""Programs of the search that are confirmed, the smallest first, until one fails in a fresh process."""
FITTED = 96
"""Programs of simpler parameters and fewer elements at once that are asked about at a time."""


class NotReduced(Exception):
    """Nothing smaller is known of a finding; the text says why. `gone` is the test that failed no more, or nothing."""

    def __init__(self, why: str, gone: str = "") -> None:
        super().__init__(why)
        self.gone = gone


# ---------------------------------------------------------------------- one finding


def reduce(
    workspace: Workspace,
    probe: Probe,
    verdicts: list[Verdict],
    seconds: float = SECONDS,
    before: Collection[Reduction] = (),
) -> Reduction:
    """Return the smallest program found that fails as one of these verdicts, its test stored. Raises NotReduced.

    What one of those `before` tells of the very program is not asked anew.
    """
    begun = time.monotonic()
    why, gone = "its members fail only after other tests, or were deleted", ""
    for verdict in choice.candidates(workspace, verdicts)[:TRIED]:
        try:
            return _reduced(workspace, probe, verdict, begun, seconds, before)
        except NotReduced as error:
            why, gone = str(error), error.gone
        except Spent:
            raise NotReduced("the time was over before anything was known") from None
    raise NotReduced(why, gone)


def _reduced(
    workspace: Workspace,
    probe: Probe,
    verdict: Verdict,
    begun: float,
    seconds: float,
    before: Collection[Reduction],
) -> Reduction:
    ask, program = asker(workspace, probe, verdict)
    verdict = embedded.of_variant(workspace, ask, program, verdict)
    ask.budget = Budget(SEARCH * seconds)  # a compiler that must be started first takes nobody's time
    kept, first, finished, simple = [program], 0, True, Incidental()
    defaults: dict[str, Mapping[str, Value]] = {}
    known: Known | None = None
    try:
        known = inner.innermost(ask, kept, defaults)
        simple = incidental(ask, kept)
        if simple.others:
            known = inner.known(ask, kept[-1], defaults)
        ask.begin(kept[-1], known, defaults)
        if made := louder(ask, kept[-1]):  # before all else: of what may be rounding little can be asked
            kept += made
            ask.target = ask.outcomes[kept[-1].id]
            known = inner.innermost(ask, kept, defaults)
            if ask.passed([kept[-1]], [True]) != [True]:
                ask.witness = None  # it fails of louder numbers itself; who agrees confirms them
                ask.find_witness(kept[-1])
            ask.begin(kept[-1], known, defaults)
            ask.plain = partial(holds, held(kept[-1]))
        for step in (_with_elements, with_numbers, partial(form_alone, defaults=defaults)):
            if made := step(ask, kept[-1]):
                kept += made
                ask.begin(kept[-1], known, defaults)
        if newer(ask.outcomes[kept[-1].id]) and (made := older.as_of_older(ask, kept[-1])):
            kept += made
            ask.begin(kept[-1], known, defaults)
            ask.find_witness(kept[-1])
        elif not any(x.environment for x in ask.beside):  # nobody else has a verdict on it
            ask.find_witness(kept[-1])
        first = len(kept) - 1
        minimise(kept[-1], defaults, ask, kept.append)
        if _constructed(ask, kept, defaults):
            minimise(kept[-1], defaults, ask, kept.append)
        if _shortened(ask, defaults, kept):
            minimise(kept[-1], defaults, ask, kept.append)
        if made := with_numbers(ask, kept[-1]):  # a large one was not asked about
            kept += made
            first = len(kept) - 1  # what was before fails in another manner
            ask.begin(kept[-1], known, defaults)
            minimise(kept[-1], defaults, ask, kept.append)
        if ask.withdraw(kept, first):
            minimise(kept[-1], defaults, ask, kept.append)
        if _fitted(ask, defaults, kept, first):
            minimise(kept[-1], defaults, ask, kept.append)
        if ask.criticised(kept, first):
            minimise(kept[-1], defaults, ask, kept.append)
        spare.calls(ask, kept)
        spare.outputs(ask, kept)
        for retype in (typed.of_one_dtype, typed.widened, typed.odd_one, typed.swapped):
            kept += retype(ask, kept[-1])
        spare.parameters(ask, kept, defaults)
        kept += _revealing(ask, kept[-1])
        kept += _ordinary(ask, kept[-1], kept[first])
        kept += [x for x in fractions(ask, kept[-1]) if not ask.faulted(x, kept[first])]
        kept += older.as_of_older(ask, kept[-1])
        kept += exact.within(ask, kept[-1])
    except Spent:
        finished = False
        ask.budget = Budget((1.0 - SEARCH) * seconds)
        with suppress(Spent):
            ask.withdraw(kept, first)
    unused = ask.budget.left if finished else 0.0
    found, outcome = _confirmed(workspace, ask, kept)
    if not ask.fails(ask.outcomes[found.id]):  # the target is that of one that was taken back
        ask.target = ask.outcomes[found.id]
    stored = plan.test_id(found.id, plan.exporter_id(found.library))
    for x in before:
        if x.stored == stored and x.finished and is_about(x, verdict) and alike(verdict.frontend, x.outcome, outcome):
            return of_another_member(x, verdict, ask.asked, round(time.monotonic() - begun, 2))
    ask.budget = Budget((1.0 - SEARCH) * seconds + LEFT * unused)
    ask.ordinary, ask.corpus = ordinary.passing(workspace, verdict, found), ordinary.captured(workspace, found)
    needed = settings.needed(ask, found)  # while there is time
    with suppress(Spent):
        ask.look(list(typed.mixed(found)))
    borne = circumstances.of(ask, found, defaults, deciding.decided(ask, found, defaults))
    borne, left = settings.at_newest(ask, found, borne)
    since = older.since(ask, found)
    right = (
        since.passing if since else embedded.passing(ask, found, borne.decided.besides, defaults) or borne.passing_one
    )
    made_of = map(parse, known.pieces if known is not None else ())
    pieces = [(x, ask.outcomes[x.id]) for x in made_of if x.id in ask.outcomes]
    reduction = Reduction(
        verdict.finding, verdict.environment, verdict.frontend, verdict.variant, verdict.test, ask.captured(found).form(),
        outcome,
        stored=stored,
        deciding=borne.decided.parameters,
        besides=tuple(x for x in borne.decided.besides if ask.neighbours is None or not ask.neighbours.chosen(x)),
        circumstances=(*borne.circumstances, *([since.says] if since else [])),
        near=(borne.failing, borne.passing),
        despite=borne.despite,
        beyond=borne.beyond,
        bare=borne.bare,
        tried=borne.tried,
        named=borne.named,
        passing=None if right is None else ask.captured(right).form(),
        explained=borne.exact,
        usual=borne.usual,
        behind=_behind(ask, found, (*borne.decided.parameters, *borne.decided.besides), defaults),
        held=embedded.held(ask, found),
        constant=embedded.alone(ask, found, workspace),
        settings=(*needed, *left),
        silent=tuple(ask.captured(x).form() for x in ask.silent()),
        parts=tuple(dict.fromkeys(inside(found, outcome, pieces))),
        mistaken=any(ask.imported.right(found, beside=x) is False for x in ask.others.values()),
        apart=tuple(ask.captured(x).form() for x in ask.others.values()),
        elements=smaller.elements(found),
        nondefault=len(smaller.nondefault(found, defaults)),
        asked=ask.asked,
        seconds=round(time.monotonic() - begun, 2),
        finished=finished,
        incidental=simple.others if set(simple.others).isdisjoint(found.operators) else (),
        whatever=simple.always,
        void=_returns_nothing(ask, found, outcome),
        operations=_operations(ask, found),
    )  # fmt: skip
    ask.budget = Budget(ALONE * seconds)
    tried = alone(ask, found, outcome, defaults)
    shown = (
        *contrasts.contrasts(found, tried, value=outcome.symptom in NUMBERS),
        *short(ask, found, tried),
        *comes(ask, found, reduction.besides, defaults),
        *outputs(ask, found, (*reduction.besides, *reduction.circumstances)),
    )
    without = unheeded(ask, found, defaults)
    written = ""
    with suppress(Spent):
        written = ask.written(found)
    bounded, cut = exact.beyond(ask, found, outcome), exact.cut(ask, found, outcome)
    ask.budget = Budget(SIBLINGS * seconds)  # at last: what they show is nothing of this program
    told = (*reduction.deciding, *reduction.besides, *reduction.circumstances)
    rounded = ask.rounded() if outcome.symptom in NUMBERS else (0, 0)
    another = alias(found)
    within = parts(ask, found, outcome)  # first: what is wrong by itself is to be filed in its place
    named = same_by_others(ask, workspace, found, another)
    family = siblings(ask, workspace, found, told, defaults)
    if named:
        shown = (contrasts.Contrast("operator", found.operator, passes=named), *shown)
    return msgspec.structs.replace(
        reduction,
        contrasts=shown,
        exact=bounded,
        cut=cut,
        written=written,
        siblings=family,
        parts=tuple(dict.fromkeys((*within, *reduction.parts))),
        rounded=rounded,
        alias=another if another in named else "",
        unheeded=without,
    )


def asker(workspace: Workspace, probe: Probe, verdict: Verdict) -> tuple[Asker, Program]:
    """Return who asks about a member, what it shows now as the target, and its program.

    Wrong outputs that vary now, and did not, are the same failure, of memory that nobody writes; and the other way round.

    Raises NotReduced where it fails no more by the library's own reference.
    """
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, verdict.test))
    program = workspace.instance(manifest.instance)
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment,
        limits=_patient(probe.limits, verdict.outcome), screened=verdict.outcome.verdict == INCONSISTENT,
        fresh=verdict.outcome.verdict == ABORT,  # what overwrites memory may end the next program instead
    )  # fmt: skip
    if verdict.outcome.verdict == TIMEOUT:
        usual = stored_verdicts.seconds(workspace, verdict.frontend, verdict.environment)
        question = msgspec.structs.replace(question, limits=hanging(question.limits or probe.limits, usual.values()))
    quick, slow = witness.passing(workspace, verdict)
    ask = Asker(probe, question, quick, witness.beside(workspace, verdict))
    ask.slow, ask.routes = slow, witness.routes(workspace, verdict)
    ask.second = manifest.reference if manifest.reference in compilers.registered() else ""
    [first] = ask.look([program])
    if first.verdict in DEATHS and verdict.outcome.verdict not in DEATHS:  # another program may have spoilt the worker
        first = ask.outcomes[program.id] = ask.afresh(program)
    odd = {
        name: x for name, x in first.details.items() if name in manner.ODD
    }  # of its outputs, which older verdicts do not tell
    seen = msgspec.structs.replace(verdict.outcome, details=odd | verdict.outcome.details)
    varied = {seen.verdict, first.verdict} == {INCONSISTENT, UNSTABLE}
    renamed = not first.conversion_function or (bool(first.location) and first.location == seen.location)
    if not varied and not alike(verdict.frontend, seen, first, elsewhere=renamed):
        raise NotReduced(f"by the library's own reference it is now {_brief(first)}", verdict.test)
    ask.target = first
    return ask, program


def _operations(ask: Asker, program: Program) -> int:
    """Return how many operations a program of one call becomes, 0 where its library does not tell."""
    if isinstance(program, Instance) and hasattr(libraries.get(program.library), "operations"):
        with suppress(NoAnswer):  # tracing it ended the worker
            return ask.probe.known(program.library, program, counted=True).operations
    return 0


def about(probe: Probe, found: Reduction, budget: Budget) -> Asker:
    """Return who asks about programs that are like a reduced one; what that showed is the target."""
    question = Question(
        frontend=found.frontend, variant=found.variant, environment=found.environment,
        limits=_patient(probe.limits, found.outcome), screened=found.outcome.verdict == INCONSISTENT,
    )  # fmt: skip
    ask = Asker(probe, question)
    ask.target, ask.budget, ask.second = found.outcome, budget, found.program().reference
    return ask


def _constructed(ask: Asker, kept: list[Program], defaults: dict[str, Mapping[str, Value]]) -> bool:
    """Append the program with a sequence that the model makes in place of one that it is given, if it fails so; return whether
    it does. Few users feed sequences, and compilers that take none would refuse the program once its bug is mended.
    """
    program, library = kept[-1], libraries.get(kept[-1].library)
    if not isinstance(program, Instance) or not hasattr(library, "embedded"):
        return False
    fed = [x.name for x in program.inputs if isinstance(x.value, values.Sequence)]
    made = [x for name in fed for x in cast(Embedding, library).embedded(program, name)]
    failed = [ask.fails(x, elsewhere=True) for x in ask.look(made)]
    found = [x for x, fails in zip(made, ask.passed(made, failed), strict=True) if fails][:1]
    if found:
        kept += found
        ask.begin(found[0], inner.known(ask, found[0], defaults), defaults)
    return bool(found)


def _patient(limits: Limits, outcome: Outcome) -> Limits:
    """Return the limits of a candidate; what takes long, or much, is asked for with those of the run."""
    if outcome.verdict == OUT_OF_MEMORY:
        return limits
    return msgspec.structs.replace(limits, seconds=min(limits.seconds, PATIENCE))


def hanging(limits: Limits, usual: Iterable[float]) -> Limits:
    """Return the limits of what may hang: ten times what a test usually takes, and two seconds at least. What is left is
    confirmed by the limits of a run.
    """
    seconds = max(HANGS, SLOWER * median(list(usual) or [0.0]))
    return msgspec.structs.replace(limits, seconds=min(limits.seconds, seconds))


def _shortened(ask: Asker, defaults: smaller.Defaults, kept: list[Program]) -> bool:
    """Append programs with less in what their calls hold that fail so, too, the smallest first; return whether one does."""
    begun = len(kept)
    while smaller.holds(kept[-1]):
        size = smaller.measure(kept[-1], defaults)
        made = _programs(ask.probe.known(kept[-1].library, kept[-1]).shortened)
        left = sorted((pair for x in made if (pair := (smaller.measure(x, defaults), x))[0] < size), key=lambda x: x[0])
        count = len(kept)
        while left and len(kept) == count:
            batch, left = [x for _, x in left[: ask.batch]], left[ask.batch :]
            kept += [x for x, fails in zip(batch, ask(batch), strict=True) if fails and ask.stands(x)][:1]
        if len(kept) == count:
            break
    return len(kept) > begun


def _programs(forms: Iterable[dict[str, Any]]) -> Iterator[Program]:
    """Yield programs of their forms; one that takes a value which it has not is none."""
    for form in forms:
        with suppress(CorpusError):
            yield parse(form)


def _fitted(ask: Asker, defaults: smaller.Defaults, kept: list[Program], first: int) -> bool:
    """Append programs with simpler parameters that need fewer elements along an axis and fail so, too; return whether one does.

    A dilation that is left out makes another number of windows: alone neither change is a program to the library. What the
    first one passes without stays.
    """
    begun, traits = len(kept), smaller.traits(kept[first], defaults)
    without = [(x, made) for x in traits if (made := smaller.applied(x.without, kept[first])) is not None]
    needed = [x for x, made in without if ask.vanished(made)]
    while len(smaller.nondefault(kept[-1], defaults)) > 1:
        program, count = kept[-1], len(kept)
        size = smaller.measure(program, defaults)
        plainer = (smaller.applied(step, program) for step in smaller.plainer_params(program, defaults))
        alone = list(
            {x.id: x for x in (*plainer, *shapes.restated(program)) if x is not None and x != program}.values()
        )
        coupled = [x for x, shown in zip(alone, ask.look(alone), strict=True) if shown.verdict == INVALID]
        fitted = (y for x in coupled for y in shapes.fitted(x) if smaller.measure(y, defaults) < size)
        fair = (x for x in fitted if all(trait.held(x, defaults) for trait in needed))
        left = list(itertools.islice(fair, FITTED))
        while left and len(kept) == count:
            batch, left = left[: ask.batch], left[ask.batch :]
            kept += [x for x, fails in zip(batch, ask(batch), strict=True) if fails and ask.stands(x)][:1]
        if len(kept) == count:
            break
    return len(kept) > begun


def _revealing(ask: Asker, program: Program) -> list[Program]:
    """Return the program with other values, with which more is wrong, or what is wrong tells more; else nothing.

    Equal values hide what is mixed up, and zeros what is never computed.
    """
    made = [x for step in smaller.unlike(program) if (x := smaller.applied(step, program)) is not None and x != program]
    before = ask.outcomes.get(program.id)
    if before is None or before.verdict != INCONSISTENT or not made:
        return []
    found = [x for x, fails in zip(made, ask(made), strict=True) if fails]
    return next(([x] for x in found if _tells_more(before, ask.outcomes[x.id])), [])


def _tells_more(before: Outcome, now: Outcome) -> bool:
    said = [manner.tells(x.details.get("manner") or {}) for x in (before, now)]
    return conceals(now.details, before.details) or said[1] > said[0]


def _with_elements(ask: Asker, program: Program) -> list[Program]:
    """Return the program with elements in its empty tensors, if it fails so, too: a library may take of nothing what it takes
    of nothing else, and no smaller program gets elements again.

    Where numbers are wrong they may be so in another manner then (the largest row of nothing is the lowest float, that of a
    matrix its largest element): what is wrong of elements is what is to be filed, and becomes the target.
    """
    tried = list(readable.filled(program)) if smaller.is_empty(program) else []
    failing = [x for x, fails in zip(tried, ask(tried), strict=True) if fails]
    if found := list(itertools.islice(filter(ask.fair, failing), 1)):
        return found
    target = ask.target
    if target is None or target.verdict != INCONSISTENT:
        return []
    for x in (x for x in tried if x not in failing and x.id in ask.outcomes and ask.admits(x)):
        shown = ask.outcomes[x.id]
        confirmed = shown.details.get(AGREEING) or not target.details.get(AGREEING)
        if as_wrong(target, shown) and confirmed and ask.turned(x):
            return [x]
    return []


def _ordinary(ask: Asker, program: Program, first: Program) -> list[Program]:
    """Return the program without empty and 0-d tensors, without a 0 for which it computes nothing, with the scales of the first
    one, numbers that differ, and then axes longer than 1, as far as these fail so, too, and nobody who passes the first says
    that they are none.
    """
    shown = ask.outcomes[program.id]
    if "drawn" in shown.details:  # each is run many times
        longer = readable.sized(program)[:1]
        failing = [x for x, fails in zip(longer, ask(longer), strict=True) if fails]
        return [x for x in failing if ask.stands(x) and not ask.faulted(x, first)]
    if shown.verdict in (UNSTABLE, TIMEOUT, OUT_OF_MEMORY):
        return []
    known = ask.neighbours
    near = cache(lambda: None if known is None else Neighbours(ask, program, known.defaults))
    found: list[Program] = []
    corners = (readable.filled, readable.occupied)
    plain = (partial(readable.scaled, first=first), readable.counted, readable.sized)
    for made in (*corners, *plain, readable.occupied):  # of longer axes more may be taken
        tried = list(made((found or [program])[-1]))
        if made is readable.filled and tried and all(x.verdict == INVALID for x in ask.look(tried)):
            tried = list(readable.filled(program, level=False))  # bounds that are scalars take no axis
        if not tried or (made is readable.occupied and not _is_empty(ask, (found or [program])[-1])):
            continue
        failing = [x for x, fails in zip(tried, ask(tried), strict=True) if fails]
        fair = ask.fair if made in corners else partial(_unspoilt, ask, near)
        found += list(itertools.islice((x for x in failing if fair(x) and not ask.faulted(x, first)), 1))
    return found


def _unspoilt(ask: Asker, near: Callable[[], Neighbours | None], program: Program) -> bool:
    """Whether a program stands, and has no other failure besides that of the smaller one that is `near`."""
    with suppress(Spent):
        return ask.stands(program) and ((known := near()) is None or not known.spoilt(program))
    return False


def _returns_nothing(ask: Asker, program: Program, shown: Outcome) -> bool:
    """Whether what ends while it is run should return nothing that has elements; not, where there is no time left to ask."""
    with suppress(Spent):
        return (shown.verdict, shown.stage) == (CRASH, "infer") and _is_empty(ask, program)
    return False


def _is_empty(ask: Asker, program: Program) -> bool:
    """Whether all that a program computes has no elements."""
    outputs = ask.reference(program) or ()
    return bool(outputs) and not any(math.prod(leaf.shape) for x in outputs for leaf in smaller.within(x))


def _confirmed(workspace: Workspace, ask: Asker, kept: list[Program]) -> tuple[Program, Outcome]:
    """Return the smallest program that fails so in a fresh process, by the limits of a run. Its test is kept.

    Raises NotReduced where none does.
    """
    seen = ""
    for program in list(reversed(kept))[:BACK]:
        wanted = ask.outcomes[program.id]
        question = msgspec.structs.replace(
            ask.question, program=ask.captured(program), fresh=True, unpatched=True, limits=None, keep=workspace.tests_folder,
            insist=wanted.details.get("drawn") == draws.CONSTANT,
        )  # fmt: skip
        outcome = ask.probe(question)
        if alike(ask.question.frontend, wanted, outcome):
            return program, msgspec.structs.replace(outcome, conversion_function=wanted.conversion_function)
        seen = _brief(outcome)
    raise NotReduced(f"in a fresh process it is {seen}")


def _behind(ask: Asker, program: Program, told: Iterable[str], defaults: smaller.Defaults) -> str:
    """Return what decides that a program crashes, and without which the compiler does not support it; nothing if it does."""
    if ask.outcomes[program.id].verdict == CRASH:
        with suppress(Spent):
            for says in told:
                shown = deciding.without(ask, program, says, defaults) or ()
                if {outcome.verdict for _, outcome in shown} - {INVALID} == {UNSUPPORTED}:
                    return says
    return ""


def _brief(outcome: Outcome) -> str:
    return one_line(f"{outcome.verdict} {outcome.stage} {outcome.symptom} {gist(outcome.message)}")[:200]
