"""What follows from what was seen, told without a pool, a workspace or a compiler."""

from __future__ import annotations

import msgspec
import pytest

from opera.compilers import Variant
from opera.pool.workers import Result
from opera.programs.migrated import Artefact, Export
from opera.programs.verdicts import AGAIN, Limits, Outcome, Seen
from opera.run import prepare, tasks, transitions
from opera.run.confirm import MORE_MEMORY, MORE_TIME, PATCHED, confirmed, question, replayed
from opera.run.ledger import ADAPTER_FAILED, verdict_of
from opera.run.library_side import ScreenReply, WrapReply
from opera.run.plan import InstalledFrontend, Item
from opera.run.tasks import (
    Advance,
    Conclude,
    Confirm,
    Execute,
    Finish,
    Locate,
    Need,
    Origin,
    Replay,
    Screen,
    Store,
    Suspect,
    Suspicion,
)
from opera.store.rows import Verdict

VARIANTS = (Variant("inputs", "onnx"), Variant("constants", "onnx-constants", after="rejected"))
FRONTEND = InstalledFrontend("tvm-onnx", "tvm", "onnx", "1", "e", "x", VARIANTS)
ITEM = Item(FRONTEND, "i", "Conv", "t")
THERE = Artefact("model.onnx", ("X",))
CRASH = Outcome("crash", "load", "KeyError", "no such key", conversion_function="convert_Conv")
WRONG = Outcome("inconsistent", "infer", "value", "Y: 2 of 2", conversion_function="convert_Conv")
VARIES = Outcome("unstable", "infer", "unstable", "repetitions differ", conversion_function="convert_Conv")
DEAD = Outcome("abort", "load", "SIGSEGV")
PASS = Outcome("pass")
BEFORE = Origin(3, ("a/inputs", "b/inputs"))


def verdict(outcome: Outcome, **more: str) -> Verdict:
    return msgspec.structs.replace(verdict_of(FRONTEND, "t", "Conv", "inputs", outcome), **more)


# ---------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        ({}, 0),
        ({("t", "inputs"): ("unsupported", "load")}, 1),
        ({("t", "inputs"): ("crash", "load")}, 1),
        ({("t", "inputs"): ("crash", "compile")}, None),
        ({("t", "inputs"): ("pass", "")}, None),
        ({("t", "inputs"): ("crash", "load"), ("t", "constants"): ("pass", "")}, None),
        ({("other", "inputs"): ("pass", "")}, 0),
    ],
)
def test_the_next_variant_is_one_without_a_verdict_that_is_wanted(stored, place) -> None:
    [step] = transitions.advanced(ITEM, stored, lambda _: THERE)
    if place is None:
        assert step == Finish(ITEM)
    else:
        assert step == Execute(msgspec.structs.replace(ITEM, variant=place))


SAMPLED = (
    Variant("live", "live"),
    Variant("saved", "saved_model", after="sampled"),
    Variant("onnx", "onnx", after="rejected"),
)
TRIED = (Variant("inputs", "onnx", trial="quick"),)
DRAWN = next(name for name in map(str, range(100)) if transitions.drawn(name))


def of(variants: tuple[Variant, ...], test: str = "t") -> Item:
    return Item(msgspec.structs.replace(FRONTEND, variants=variants), "i", "Conv", test)


def test_a_tenth_of_the_tests_is_drawn_always_the_same() -> None:
    assert 900 < sum(transitions.drawn(f"{number:08x}") for number in range(10_000)) < 1_100
    assert not transitions.drawn("t") and transitions.drawn(DRAWN)


@pytest.mark.parametrize(
    ("test", "live", "place"),
    [
        ("t", ("pass", ""), None),
        (DRAWN, ("pass", ""), 1),
        ("t", ("crash", "infer"), 1),
        ("t", ("unsupported", "load"), 1),
        ("t", ("screened", "infer"), 1),
    ],
)
def test_a_sampled_variant_follows_what_did_not_pass_and_what_is_drawn(test, live, place) -> None:
    item = of(SAMPLED, test)
    [step] = transitions.advanced(item, {(test, "live"): live}, lambda _: THERE)
    assert step == (Finish(item) if place is None else Execute(msgspec.structs.replace(item, variant=place)))


def test_a_trial_that_passes_is_a_pass_and_what_else_it_shows_is_asked_as_users_run_it() -> None:
    item = of(TRIED)
    [step] = transitions.advanced(item, {}, lambda _: THERE)
    assert step == Execute(item, way="quick")
    [done] = transitions.executed(step, PASS, BEFORE)
    assert done == Conclude(item, msgspec.structs.replace(PASS, details={"way": "quick"}), BEFORE)
    for outcome in (WRONG, VARIES, DEAD, msgspec.structs.replace(CRASH, stage="compile")):
        [again] = transitions.executed(step, outcome, BEFORE)
        assert again.item == item and not again.way and again.trial.startswith(outcome.verdict)
        [passed] = transitions.executed(again, PASS, BEFORE)
        assert passed.outcome.verdict == "pass" and passed.outcome.details == {"trial": again.trial}


def test_a_trial_that_fails_while_loading_is_no_other_than_what_users_do() -> None:
    item = of(TRIED)
    assert transitions.executed(Execute(item, way="quick"), CRASH, BEFORE) == [Conclude(item, CRASH, BEFORE)]
    [again] = transitions.executed(Execute(item, way="quick"), DEAD, BEFORE)  # the process died: who knows of what
    assert again.item == item and not again.way


def test_what_is_drawn_is_run_as_users_run_it_at_once() -> None:
    item = of(TRIED, DRAWN)
    assert transitions.advanced(item, {}, lambda _: THERE) == [Execute(item)]


def test_what_is_run_again_is_run_though_it_has_its_verdict() -> None:
    stored = {("t", "inputs"): ("pass", "")}
    assert transitions.advanced(ITEM, stored, lambda _: THERE, rerun=True) == [Execute(ITEM)]


def test_an_artefact_that_is_offered_is_made_first() -> None:
    assert transitions.advanced(ITEM, {}, lambda _: Export(None)) == [Need(ITEM, "onnx")]


def test_a_closed_route_is_unexported_and_opens_what_follows_on_rejection() -> None:
    closed = Export(None, "ValueError", "cannot be exported")
    found = {"onnx": closed, "onnx-constants": THERE}
    store, step = transitions.advanced(ITEM, {}, found.__getitem__)
    assert (store.verdict.outcome.verdict, store.verdict.outcome.message) == ("unexported", "onnx: cannot be exported")
    assert store.verdict.finding == ""
    assert step == Execute(msgspec.structs.replace(ITEM, variant=1))


def test_a_variant_whose_artefact_a_test_has_not_closes_no_route() -> None:
    frontend = msgspec.structs.replace(
        FRONTEND, variants=(*VARIANTS, Variant("oldest-opset", "onnx-oldest-opset", after="rejected"))
    )
    item = msgspec.structs.replace(ITEM, frontend=frontend)
    found = {"onnx": THERE, "onnx-constants": None, "onnx-oldest-opset": Export(None)}
    refused = {("t", "inputs"): ("unsupported", "load")}
    last = msgspec.structs.replace(item, variant=2)
    assert transitions.advanced(item, refused, found.__getitem__) == [Need(last, "onnx-oldest-opset")]
    passed = {("t", "inputs"): ("pass", "")}
    assert transitions.advanced(item, passed, found.__getitem__) == [Finish(item)]


def test_a_test_without_any_artefact_is_done_with() -> None:
    assert transitions.advanced(ITEM, {}, lambda _: None) == [Finish(ITEM)]


# ---------------------------------------------------------------------- executions


@pytest.mark.parametrize(
    ("outcome", "steps"),
    [
        (PASS, [Conclude(ITEM, PASS, BEFORE)]),
        (CRASH, [Conclude(ITEM, CRASH, BEFORE)]),
        (WRONG, [Screen(ITEM, WRONG, BEFORE)]),
        (VARIES, [Screen(ITEM, VARIES, BEFORE)]),
        (DEAD, [Locate(ITEM, DEAD, BEFORE)]),
    ],
)
def test_an_execution_is_screened_located_or_concluded(outcome, steps) -> None:
    assert transitions.executed(Execute(ITEM), outcome, BEFORE) == steps


def test_an_error_of_opera_is_tried_alone_where_others_ran_before() -> None:
    error = Outcome("error", "load", "opera")
    again = Execute(ITEM, msgspec.structs.replace(BEFORE, error=error))
    assert transitions.executed(Execute(ITEM), error, BEFORE) == [again]
    assert transitions.executed(Execute(ITEM), error, Origin(3)) == [Conclude(ITEM, error, Origin(3))]
    starved = msgspec.structs.replace(error, details={AGAIN: True})
    assert transitions.executed(Execute(ITEM), starved, BEFORE) == [Conclude(ITEM, starved, BEFORE)]
    suspect, step = transitions.executed(again, PASS, Origin(4))
    assert suspect == Suspect(Suspicion(FRONTEND, verdict(error), again.origin)), "its predecessors made opera fail"
    assert step == Conclude(ITEM, PASS, Origin(4))


def test_screens_and_converters_come_with_the_conclusion() -> None:
    [step] = transitions.located(Locate(ITEM, DEAD, BEFORE), "convert_Conv")
    assert step.outcome.conversion_function == "convert_Conv"
    [step] = transitions.screened(Screen(ITEM, WRONG, BEFORE), ScreenReply("screened", "ill-conditioned", {"x": 2.0}))
    assert (step.outcome.verdict, step.outcome.details) == (
        "screened",
        {"screen": "ill-conditioned", "tags": [], "x": 2.0},
    )
    [step] = transitions.screened(Screen(ITEM, WRONG, BEFORE), ScreenReply("error", "it died"))
    assert (step.outcome.verdict, step.outcome.details["tags"]) == ("inconsistent", ["unscreened"])
    [step] = transitions.screened(Screen(ITEM, VARIES, BEFORE), ScreenReply("kept"))
    assert step.outcome.verdict == "unstable"
    [step] = transitions.screened(Screen(ITEM, VARIES, BEFORE), ScreenReply("screened", "undefined-behaviour"))
    assert step.outcome.verdict == "screened"


def test_what_the_worker_told_of_a_test_stays_where_screens_tell_more() -> None:
    outcome = msgspec.structs.replace(WRONG, details={"tags": ["newer-opset", "three-answers"]})
    found = transitions.with_screens(outcome, ScreenReply("kept", tags=("single-reference",)))
    assert found.details["tags"] == ["newer-opset", "single-reference"]


def test_a_conclusion_is_stored_confirmed_where_wanted_and_its_item_goes_on() -> None:
    following = Advance(msgspec.structs.replace(ITEM, variant=1))
    assert transitions.concluded(Conclude(ITEM, PASS, BEFORE), verdict(PASS), "") == [Store(verdict(PASS)), following]
    failing = verdict(CRASH, confirmation="pending")
    assert transitions.concluded(Conclude(ITEM, CRASH, BEFORE), verdict(CRASH), "pending") == [
        Confirm(ITEM, failing, BEFORE), Store(failing), following,
    ]  # fmt: skip
    late = verdict(CRASH, confirmation="unconfirmed")
    assert transitions.concluded(Conclude(ITEM, CRASH, BEFORE), verdict(CRASH), "unconfirmed") == [
        Store(late),
        following,
    ]
    alone = msgspec.structs.replace(ITEM, alone=True)
    assert transitions.concluded(Conclude(alone, CRASH, BEFORE), verdict(CRASH), "") == [
        Store(verdict(CRASH, confirmation="confirmed")), Finish(alone),
    ]  # fmt: skip


def test_a_failing_hook_tags_failures_alone_and_once() -> None:
    seen = Seen(hooks={"conversion_function": "it failed"})
    told = verdict(msgspec.structs.replace(CRASH, seen=seen))
    assert told.outcome.details == {"tags": [ADAPTER_FAILED]} and told.finding
    assert verdict(told.outcome).outcome.details == {"tags": [ADAPTER_FAILED]}
    assert verdict(msgspec.structs.replace(PASS, seen=seen)).outcome.details == {}


# ---------------------------------------------------------------------- confirmations

FAILED = verdict(CRASH, confirmation="pending")
ASKED = Confirm(ITEM, FAILED, BEFORE)


def test_a_fresh_fork_confirms() -> None:
    assert confirmed(ASKED, CRASH, has_patches=True) == [Store(verdict(CRASH, confirmation="confirmed"))]


def test_what_a_fresh_fork_shows_otherwise_counts() -> None:
    held = msgspec.structs.replace(ASKED, verdict=verdict(WRONG, confirmation="pending"))
    [step] = confirmed(held, CRASH, has_patches=False)
    assert (step.verdict.finding, step.verdict.confirmation) == (FAILED.finding, "confirmed")


def test_a_confirmation_without_time_stays_pending() -> None:
    assert confirmed(ASKED, Outcome("error", details={AGAIN: True}), has_patches=True) == []
    assert replayed(Replay(ITEM, FAILED, BEFORE, PASS), Outcome("error", details={AGAIN: True}), reached=True) == []


def test_a_death_keeps_what_was_located() -> None:
    found = msgspec.structs.replace(DEAD, conversion_function="convert_Conv")
    held = verdict(found, confirmation="pending")
    [step] = confirmed(Confirm(ITEM, held, BEFORE), DEAD, has_patches=False)
    assert step == Store(msgspec.structs.replace(held, confirmation="confirmed"))


def test_what_only_patches_break_is_operas_error() -> None:
    [again] = confirmed(ASKED, PASS, has_patches=True)
    assert again == msgspec.structs.replace(ASKED, patched=True)
    [step] = confirmed(again, CRASH, has_patches=True)
    assert (step.verdict.outcome.verdict, step.verdict.finding) == ("error", "")
    assert step.verdict.outcome.message.startswith(PATCHED)
    assert confirmed(again, PASS, has_patches=True) == [Replay(ITEM, FAILED, BEFORE, PASS)]


def test_what_does_not_fail_again_is_flaky_or_needs_its_predecessors() -> None:
    [step] = confirmed(msgspec.structs.replace(ASKED, origin=Origin(3)), PASS, has_patches=False)
    assert (step.verdict.outcome.verdict, step.verdict.finding) == ("flaky", "")
    assert step.verdict.outcome.details == {"was": "crash", "finding": FAILED.finding}
    [replay] = confirmed(ASKED, PASS, has_patches=False)
    assert replay == Replay(ITEM, FAILED, BEFORE, PASS)
    store, suspect = replayed(replay, CRASH, reached=True)
    assert store.verdict.outcome.details == {"tags": ["state-dependent"], "predecessors": list(BEFORE.predecessors)}
    assert suspect.suspicion == Suspicion(FRONTEND, store.verdict, BEFORE)
    for outcome, reached in ((PASS, True), (CRASH, False)):
        [step] = replayed(replay, outcome, reached=reached)
        assert step.verdict.outcome.verdict == "flaky"


def test_a_death_that_somebody_sent_says_nothing_of_the_test() -> None:
    killed = verdict(Outcome("abort", "infer", "SIGTERM"), confirmation="pending")
    [step] = confirmed(Confirm(ITEM, killed, Origin()), PASS, has_patches=False)
    assert step == Store(verdict(PASS))


def test_questions_of_confirmations() -> None:
    limits = Limits(10.0, 100)
    asked = question(ASKED, limits)
    assert (asked.fresh, asked.unpatched, asked.after, asked.limits, asked.environment) == (True, True, (), limits, "e")
    assert not question(msgspec.structs.replace(ASKED, patched=True), limits).unpatched
    late = Confirm(ITEM, verdict(Outcome("timeout", "load", "timeout")), BEFORE)
    assert question(late, limits).limits == Limits(10.0 * MORE_TIME, 100 * MORE_MEMORY)
    assert question(Replay(ITEM, FAILED, BEFORE, PASS), limits).after == BEFORE.predecessors
    varies = verdict(VARIES)
    assert not asked.insist and question(Confirm(ITEM, varies, BEFORE), limits).insist
    assert question(Replay(ITEM, varies, BEFORE, PASS), limits).insist


# ---------------------------------------------------------------------- batches

BATCH = tasks.Wrap("onnx", "x", ("i1", "i2"))


def done(payload: object, status: str = "done", **more: object) -> Result:
    return Result(tag=None, group="library onnx", status=status, raw=msgspec.msgpack.encode(payload), **more)


def test_a_batch_makes_tests_and_tells_rejections() -> None:
    found = prepare.wrapped(BATCH, done([WrapReply("a", "made"), WrapReply("b", "invalid", "no such operator")]))
    assert [(x.id, x.instance, x.status, x.reason) for x in found.tests] == [
        ("a", "i1", "valid", ""), ("b", "i2", "invalid", "no such operator"),
    ]  # fmt: skip


def test_a_batch_that_dies_is_wrapped_one_by_one_and_what_kills_is_an_error() -> None:
    assert prepare.wrapped(BATCH, done(None, "abort", exit="SIGSEGV")).alone == BATCH.instances
    alone = msgspec.structs.replace(BATCH, instances=("i1",))
    [test] = prepare.wrapped(alone, done(None, "abort", exit="SIGSEGV")).tests
    assert (test.instance, test.status) == ("i1", "error") and "SIGSEGV" in test.reason
    assert prepare.wrapped(alone, done(None, "starved")).left == ("i1",)
    assert prepare.wrapped(BATCH, done(None, "unavailable")).left == BATCH.instances


def test_an_export_that_dies_has_failed_and_one_that_is_not_served_is_left() -> None:
    assert prepare.exported(done(Export(THERE))) == Export(THERE)
    died = prepare.exported(done(None, "abort", exit="SIGSEGV", log="it ends"))
    assert died is not None and (died.artefact, died.symptom) == (None, "SIGSEGV") and "it ends" in died.message
    assert prepare.exported(done(None, "timeout")).symptom == "timeout"
    assert prepare.exported(done(None, "starved")) is None


@pytest.mark.parametrize(("status", "verdict"), [("screened", "pass"), ("error", "pass"), ("kept", "inconsistent")])
def test_random_outputs_that_are_the_expected_ones_by_chance_pass_unless_something_is_wrong_with_them(status, verdict):
    outcome = Outcome("inconsistent", "infer", "value", "the first outputs agree", details={"agrees": True})
    assert transitions.with_screens(outcome, ScreenReply(status, tags=("constant",))).verdict == verdict
