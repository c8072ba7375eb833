"""What follows from what was seen: pure functions from an item and a result to the next steps of a run.

Nothing here submits, reads or stores; `driver.py` does what the steps say. Those of confirmations are in `confirm.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping

import msgspec

from opera.compilers import Variant
from opera.oracle.screens import UNSCREENED
from opera.programs.migrated import Artefact, Export
from opera.programs.verdicts import (
    AGAIN,
    AGREES,
    DEATHS,
    ERROR,
    FAILURES,
    INCONSISTENT,
    NEWER,
    PASS,
    SCREENED,
    UNEXPORTED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.run.ledger import detailed, verdict_of
from opera.run.library_side import ScreenReply
from opera.run.plan import Item
from opera.run.tasks import (
    Advance,
    Conclude,
    Confirm,
    Execute,
    Finish,
    Locate,
    Need,
    Origin,
    Screen,
    Step,
    Store,
    Suspect,
    Suspicion,
    route,
)
from opera.store.rows import Verdict

DRAWN = 10
"""One test of this many is run by every route, and as users run it, though a cheaper one has passed."""

Stored = Mapping[tuple[str, str], tuple[str, str]]
"""(test, variant) → (verdict, stage) of one frontend."""


def advanced(
    item: Item, stored: Stored, artefact: Callable[[str], Artefact | Export | None], *, rerun: bool = False
) -> list[Step]:
    """Go to the next variant of an item that has no verdict yet, or be done with it.

    Args:
        artefact: Artefact name → as `Preparation.artefact`, of the item's test.
    """
    steps: list[Step] = []
    variants = item.frontend.variants
    known = {x.name: stored.get((item.test, x.name)) for x in variants}
    for place in range(item.variant, len(variants)):
        variant, here = variants[place], msgspec.structs.replace(item, variant=place)
        before = (x for x in variants[:place] if known[x.name] is not None or artefact(x.artefact) is not None)
        wanted = _wanted(variant, item.test, [known[x.name] for x in before])
        if not wanted or (known[variant.name] is not None and not rerun):
            continue
        found = artefact(variant.artefact)
        if isinstance(found, Artefact):
            return [*steps, Execute(here, way="" if drawn(item.test) else variant.trial)]
        if found is not None and not found.symptom:
            return [*steps, Need(here, variant.artefact)]
        if found is not None:
            steps.append(
                Store(verdict_of(item.frontend, item.test, item.operator, variant.name, unexported(variant, found)))
            )
            known[variant.name] = (UNEXPORTED, "export")
    return [*steps, Finish(item)]


def _wanted(variant: Variant, test: str, before: list[tuple[str, str] | None]) -> bool:
    """Whether a variant is tried, from the verdicts and stages of those before it."""
    match variant.after:
        case "rejected":
            return _rejected(before)
        case "sampled":
            return drawn(test) or any(found is None or found[0] != PASS for found in before[-1:])
    return True


def drawn(test: str) -> bool:
    """Whether a test is among the tenth that is drawn; by its id, so that every run draws the same."""
    return zlib.crc32(test.encode()) % DRAWN == 0


def _rejected(before: Iterable[tuple[str, str] | None]) -> bool:
    """Whether all variants so far, of which the test has the artefact, were unsupported or failed while it was loaded."""
    return all(
        found is not None and (found[0] in (UNSUPPORTED, UNEXPORTED) or (found[0] in FAILURES and found[1] == "load"))
        for found in before
    )


def unexported(variant: Variant, export: Export) -> Outcome:
    """Return that a route was closed by the exporter: no fault of the compiler's."""
    return Outcome(UNEXPORTED, "export", export.symptom, f"{variant.artefact}: {export.message}")


def executed(task: Execute, outcome: Outcome, here: Origin) -> list[Step]:
    """Go on with what an execution showed in a worker, `here`."""
    item, origin = task.item, task.origin
    if outcome.verdict == ERROR and here.predecessors and AGAIN not in outcome.details:
        return [Execute(item, msgspec.structs.replace(here, error=outcome))]  # the process may have been spoilt before
    if task.way and outcome.verdict != PASS and not _loading(outcome):
        return [Execute(item, trial=f"{outcome.verdict} in {outcome.stage}: {outcome.message[:300]}")]
    if outcome.verdict == PASS and (task.way or task.trial):
        told = {"way": task.way} if task.way else {"trial": task.trial}
        outcome = detailed(outcome, **told)
    steps: list[Step] = []
    if origin is not None and origin.error is not None and outcome.verdict != ERROR:
        blamed = verdict_of(item.frontend, item.test, item.operator, route(item).name, origin.error)
        steps.append(Suspect(Suspicion(item.frontend, blamed, origin)))
    if outcome.verdict in (INCONSISTENT, UNSTABLE):
        return [*steps, Screen(item, outcome, here)]
    if outcome.verdict in DEATHS and not outcome.conversion_function:
        return [*steps, Locate(item, outcome, here)]
    return [*steps, Conclude(item, outcome, here)]


def _loading(outcome: Outcome) -> bool:
    """Whether it was told by an exception while the model was loaded, which every way to run it does alike."""
    return outcome.stage == "load" and outcome.verdict not in DEATHS and outcome.verdict != ERROR


def located(task: Locate, converter: str) -> list[Step]:
    """Go on with what converts the operator, empty where that could not be told."""
    return [Conclude(task.item, msgspec.structs.replace(task.outcome, conversion_function=converter), task.origin)]


def screened(task: Screen, reply: ScreenReply) -> list[Step]:
    """Go on with what the screens say."""
    return [Conclude(task.item, with_screens(task.outcome, reply), task.origin)]


def with_screens(outcome: Outcome, reply: ScreenReply) -> Outcome:
    """Add what the screens said to an inconsistency, or to outputs that vary; what the worker told of the test stays."""
    own = [tag for tag in outcome.details.get("tags", ()) if tag == NEWER]
    tags = [*own, *(reply.tags if reply.status != ERROR else [UNSCREENED])]
    told = detailed(outcome, **{"screen": reply.reason, "tags": tags, **reply.numbers})
    if outcome.details.get(AGREES) and reply.status in (SCREENED, ERROR):
        legal = {AGREES: True} if reply.status == SCREENED else {}  # else nothing is known of what it draws besides
        return Outcome(PASS, seconds=outcome.seconds, details=legal)
    return msgspec.structs.replace(told, verdict=SCREENED) if reply.status == SCREENED else told


def concluded(step: Conclude, verdict: Verdict, wanted: str) -> list[Step]:
    """Store a verdict, go on with its item, and confirm it where it is a failure.

    Args:
        wanted: What `Members.wanted` says of a failing verdict; of others nothing is asked.
    """
    item = step.item
    steps: list[Step] = []
    if verdict.outcome.verdict in FAILURES:
        verdict = msgspec.structs.replace(verdict, confirmation="confirmed" if item.alone else wanted)
        if verdict.confirmation == "pending":
            steps.append(Confirm(item, verdict, step.origin))
    steps.append(Store(verdict))
    if item.alone:
        return [*steps, Finish(item)]
    return [*steps, Advance(msgspec.structs.replace(item, variant=item.variant + 1))]
