"""What spoils the process for others is told by its own failure, where it has one; else by what it does to them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, PASS, SCREENED, Outcome
from opera.run.aftermath import FRESH, POISONS, Aftermath, Culprit
from opera.run.probe import Question

WRONG = Outcome(INCONSISTENT, "infer", "value", "3 of 3 elements")
DIED = Outcome(ABORT, "infer", "SIGSEGV")
RIGHT = Outcome(PASS)
THREADED = Outcome(CRASH, "compile", "RuntimeError", "strided_slice does not have a compiled executor")


class Probe:
    """Answers in turn, with what it is told to; with the compiler's own threads as `threads` says."""

    def __init__(self, *told: Outcome, threads: Outcome = RIGHT) -> None:
        self.told, self.threads, self.asked = list(told), threads, list[Question]()

    def ask(self, questions: list[Question]) -> Any:
        for x in questions:
            self.asked.append(x)
            yield SimpleNamespace(outcome=self.threads if x.way else self.told.pop(0), reached=True)


def culprit(frontend: str = "openvino-keras") -> Culprit:
    victim = SimpleNamespace(
        frontend=SimpleNamespace(name=frontend, environment="e"),
        verdict=SimpleNamespace(outcome=DIED, test="t2"),
        name="t2/live",
    )
    return Culprit("t1/live", victim, (("t2", "live"),))  # type: ignore[arg-type]


def told(probe: Probe, known: str = PASS, of: Culprit | None = None) -> Outcome | None:
    return Aftermath(None, probe).outcome(of or culprit(), known, "GRUCell", ["t2/live"], "")  # type: ignore[arg-type]


@pytest.mark.parametrize("answers", [(WRONG,), (RIGHT, DIED), (RIGHT, RIGHT, WRONG)])
def test_what_is_wrong_by_itself_in_one_of_several_processes_is_the_finding(answers: tuple[Outcome, ...]) -> None:
    probe = Probe(*answers)
    found = told(probe)
    assert found is not None and found.symptom == answers[-1].symptom and found.details["victims"] == ["t2/live"]
    assert all(x.fresh and not x.insist and x.test == "t1" for x in probe.asked)


def test_what_is_told_already_stays_and_what_was_screened_is_no_failure_of_its_own() -> None:
    assert told(Probe(WRONG), INCONSISTENT) is None
    found = told(Probe(WRONG), SCREENED)
    assert found is not None and found.symptom == POISONS


def test_what_is_right_by_itself_spoils_others_and_its_own_number_of_threads_is_tried() -> None:
    probe = Probe(*[RIGHT] * FRESH, threads=THREADED)
    found = told(probe)
    assert found is not None and found.symptom == POISONS and "compiled executor" in found.message
    assert [x.way for x in probe.asked] == [""] * FRESH + ["threads"]
    plain = Probe(*[RIGHT] * FRESH)
    found = told(plain, of=culprit("tvm-onnx"))
    assert found is not None and "number of threads" not in found.message and len(plain.asked) == FRESH
