"""The certain form of what is drawn wrongly: the same call at parameters that leave nothing to chance, if it is wrong there.

A dropout that hands its input through is wrong in each run where all is to be dropped: nobody need draw many times to see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from opera.oracle import draws, manner
from opera.programs import degenerate
from opera.programs.program import Instance
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.run import plan
from opera.run.probe import Probe, Question
from opera.store import examined
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.shrink import smaller


def renew(workspace: Workspace, probe: Probe, of: Reduction) -> Reduction | None:
    """Store the certain form of a reduction as its plain form, with its test; return it, None where there is none."""
    program = of.program().program
    if "drawn" not in of.outcome.details or not isinstance(program, Instance):
        return None
    for made in forms(program):
        outcome = probe(
            Question(
                frontend=of.frontend, variant=of.variant, environment=of.environment, program=captured(made),
                screened=True, fresh=True, unpatched=True, keep=workspace.tests_folder,
            )
        )  # fmt: skip
        if as_drawn(of.outcome, outcome):
            stored = plan.test_id(made.id, plan.exporter_id(made.library))
            found = msgspec.structs.replace(of, captured=captured(made).form(), outcome=outcome, stored=stored)
            examined.save_test(workspace, examined.Examined(of.finding, of.environment, stored, b""), made)
            reduction.save_plain(workspace, of, found)
            return found
    return None


def forms(call: Instance) -> Iterator[Instance]:
    """Yield a call of a random operator at each setting that leaves nothing to chance; what it does not state is given."""
    names = {x.name for x in call.inputs}
    for setting in degenerate.settings(call.library, call.operator):
        stated: Instance | None = call
        for name, number in setting.items():
            if isinstance(number, str):
                continue
            if stated is not None and name not in names and stated.params.get(name) is None:
                stated = smaller.given(stated, name, number)
        made = degenerate.at(stated, setting) if stated is not None else None
        if made is not None and made != call:
            yield made


def as_drawn(drawn: Outcome, certain: Outcome) -> bool:
    """Whether what is wrong where nothing is left to chance is what is wrong with the numbers that are drawn.

    What hands its input through does so there, too; what is always the same, or odd, may fail of another mistake there.
    """
    if (certain.verdict, certain.symptom) != (INCONSISTENT, "value") or "drawn" in certain.details:
        return False
    actual = certain.details.get("actual")
    words: dict[str, list[str]] = certain.details.get("manner") or {}
    kept = {x.removesuffix(manner.MAYBE) for x in words.get(str(certain.details.get("output", "")), ())}
    match drawn.details["drawn"]:
        case draws.CONSTANT:
            return draws.UNCHANGED in drawn.details.get("why", "") and INPUT in kept
        case "share":
            return isinstance(actual, int | float) and math.isfinite(actual)
    return False


INPUT = manner.SHOWN[2]
"""What is returned is an input as it was."""
