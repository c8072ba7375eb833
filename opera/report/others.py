"""What other compilers make of the model that a draft shows, a line each."""

from __future__ import annotations

import re

from opera import compilers
from opera.compilers import BODY
from opera.compilers.shared.packing import CannotCarry
from opera.oracle.messages import cause, short
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, PASS, REFUSED, UNSTABLE, UNSUPPORTED, Outcome
from opera.report import trackers
from opera.report.page import Page
from opera.triage import blame, route
from opera.triage.evidence import OTHERWISE
from opera.triage.sentence import drawn, listed

CONFIRMS = "gives the expected outputs"
"""What is said of another compiler that passes."""


AS_FAR = 0.1
"""Part of how far the wrong numbers are off from which on others do not give the expected ones, whatever is tolerated."""
SAID = 110
"""Characters of what another one says."""
OWN = re.compile(rf"\b{CannotCarry.__name__}\b")
"""How a refusal reads that is opera's: it says nothing of a compiler that opera cannot feed."""

GIVEN_AS = {
    "exported-program": "an exported program (torch.export)",
    "decomposed": "an exported program after run_decompositions()",
    "torchscript": "traced TorchScript",
    "onnx": "an exported ONNX model",
    "tflite": "an exported TFLite model",
    "saved-model": "a SavedModel",
    "live": "the live model",
    "openvino": "the library's own OpenVINO export",
    "xnnpack": "an exported program, what can be of it for XNNPACK",
    "portable": "an exported program, by its portable kernels alone",
    "inputs": "its own model, with all tensors as inputs",
    "constants": "its own model, with all of its shapes, axes, bounds and the like as constants",
    "oldest-opset": "a model of the oldest opset that means the same",
}
"""Variant of a frontend → what the compiler is given, in words."""


def others(told: Page, outcome: Outcome) -> list[str]:
    """Return what others make of the same model, as blame asked of it; else what they showed of the test, if it is not reduced.

    That numbers which others draw are not the reference's says nothing, nor that another run of a body gives others.
    """
    found = [
        f"{row.way} {CONFIRMS if row.right else f'gives {row.remark}'}"
        for row in (told.blame.evidence if told.blame is not None and blame.body(told.blame) else ())
        if row.kind == BODY and (row.right or not drawn(outcome))
    ]
    failing: list[str] = []
    for row in told.asked:
        if row.kind in blame.OWN_WAYS:
            found.append(f"what the compiler imported {CONFIRMS}, evaluated otherwise: {row.way}")
            continue
        does = _does(row.shows)
        who = _who(row.way)
        if row.right and row.remark.endswith("is right"):  # other things of it are not
            found.append(f"{who}: {row.remark}")
        elif row.shows.startswith(CRASH) and not row.remark:  # of its own bugs, or its limits
            failing.append(who)
        elif does and not (drawn(outcome) and row.shows.startswith(INCONSISTENT)):
            near = f"off by {row.off:.2g} at most, relatively" if row.off and outcome.symptom == "value" else ""
            note = f" ({row.remark or near})" if row.remark or near else ""
            if row.right and near and row.off >= AS_FAR * float(outcome.details.get("max_rel") or "inf"):
                does, note = f"is {near}", ""
            apart = row.remark == OTHERWISE and row.shows.startswith(INCONSISTENT)  # it is not wrong in the same way
            found.append(f"{who} gives {OTHERWISE}" if apart else f"{who} {does}{note}")
    if failing:
        found.append(f"{listed(list(dict.fromkeys(failing)))} {'fail' if len(set(failing)) > 1 else 'fails'} otherwise")
    by: dict[str, dict[str, str]] = {}
    for where, shown in told.elsewhere.items():
        frontend, _, rest = where.partition(" ")
        version, _, variant = rest.partition(", ")
        if does := _does(shown):
            by.setdefault(trackers.called(frontend.rpartition("-")[0], version), {})[variant] = does
    for who, does_by in by.items():
        alike = set(does_by.values())
        found += (
            [f"{who} {x}" for x in alike]
            if len(alike) == 1
            else [f"{who} {route.by(variant)} {does}" for variant, does in does_by.items()]
        )
    return found


def _who(way: str) -> str:
    """Return who was asked: another compiler with its version, or the same by another way into it, in words."""
    frontend, by, variant = way.partition(" by its variant ")
    if not by:
        return trackers.called(*way.split(" ", 1))
    given = GIVEN_AS.get(variant, f"the model by its variant {variant}")
    return f"{compilers.title(frontend.rpartition('-')[0])} itself, given {given},"


def _does(shown: str) -> str:
    """Return in few words what a verdict says; nothing where it says nothing of the model."""
    verdict, _, rest = shown.partition(":")
    words = {
        PASS: CONFIRMS, "passes": CONFIRMS, INCONSISTENT: "is wrong, too",
        UNSUPPORTED: "does not support it", REFUSED: "refuses it", ABORT: "kills the process",
        UNSTABLE: "gives varying outputs",
    }  # fmt: skip
    kind = verdict.split(" ")[0]
    if kind == UNSUPPORTED and OWN.search(rest) is not None:
        return ""
    if kind != CRASH:
        return words.get(kind, "")
    where, _, message = rest.partition(": ")
    said = short(" ".join((cause(message) or message or where.rpartition(" ")[2]).split()))
    return f"fails otherwise: {said[:SAID].rpartition(' ')[0] + ' …' if len(said) > SAID else said}"
