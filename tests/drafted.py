"""A workspace with one finding whose test is really there: an addition that states a sum which is off by one."""

from __future__ import annotations

from typing import Any

import msgspec

from opera.libraries.onnx import library
from opera.programs import migrated
from opera.programs.program import Captured
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.run import plan
from opera.store.rows import Test as MigratedTest
from opera.store.rows import Verdict
from opera.store.workspace import Workspace

FINDING = "F01234567"
ABOUT = {
    "compiler": "onnxruntime", "library": "onnx", "library_version": "1.23", "version": "1.31", "options": {}, "oracle": "1",
    "exporter": {"onnx": "1.23", "opera-onnx": "1"}, "machine": "x86_64", "python": "3.11",
}  # fmt: skip
WRONG = {"output": "C", "index": "[1]", "expected": 23.0, "actual": 22.0, "differing": 1, "elements": 3}


def wrong_sum(name: str = "test_add_planted") -> Captured:
    """Return the addition whose stated sum no compiler computes, as a test of ONNX's own."""
    _, planted = library.canaries()
    seen = msgspec.structs.replace(planted.provenance, source="onnx-node-tests", test=name, file="node/add.py")
    return msgspec.structs.replace(planted, provenance=seen)


def drafted(workspace: Workspace, outcome: Outcome | None = None, finding: str = FINDING, **more: Any) -> str:
    """Fill a workspace with one test and what ONNX Runtime makes of it, and return the test's id; `more` is of the verdict.

    The test is the addition, unless another is given as `captured`.
    """
    captured = more.pop("captured", None) or wrong_sum()
    workspace.add_captured([captured])
    test = plan.test_id(captured.program.id, plan.exporter_id("onnx"))
    library.wrap(captured, test, migrated.folder(workspace.tests_folder, test))
    workspace.save_tests(plan.exporter_id("onnx"), [MigratedTest(test, captured.program.id, "valid")])
    seen = outcome or Outcome(INCONSISTENT, "infer", "value", "output 'C': 1 of 3 elements", details=WRONG)
    name = workspace.save_environment(ABOUT)
    fields: dict[str, Any] = {"finding": finding, "confirmation": "confirmed" if finding else ""}
    verdict = Verdict(test, "onnxruntime-onnx", more.pop("variant", "inputs"), name, seen, **(fields | more))
    workspace.save_verdicts(workspace.start_run({"workers": 1}), [verdict], {finding: b"{}"} if finding else {})
    return test
