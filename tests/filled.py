"""A workspace filled by hand with every kind of verdict, and with strings made by an enemy."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import Outcome
from opera.store.rows import Test as MigratedTest
from opera.store.rows import Verdict
from opera.store.workspace import Workspace

HOSTILE = "</script><img src=x onerror=alert(1)>[bold]{{ 7*7 }}\x1b]0;owned\x07\x1b[31m | `x`"
OPERATORS = ("Conv", "Cast", HOSTILE, "Relu", "Pad", "Loop", "If", "Scan", "TopK", "Gemm", "Bad", "Odd")
TVM, OLD_TVM, OPENVINO = "tvm-onnx", "tvm-onnx", "openvino-onnx"


def captured(number: int, operator: str) -> Captured:
    tensor = Tensor.of([float(number), 1.5])
    instance = Instance("onnx", operator, {"axis": number}, (Operand("X", tensor),), ("Y",), {"opset": {"": 14}})
    return Captured(instance, Provenance("node-tests", "cases.py", f"test_{operator[:12]}_{number}"), None)


def instance_of(number: int) -> str:
    return captured(number, OPERATORS[number]).program.id


def document(compiler: str, version: str, **more: str) -> dict[str, object]:
    return {
        "compiler": compiler, "library": "onnx", "library_version": "1.2", "version": version,
        "options": {"threads": "1"}, "exporter": {"onnx": "1.2"}, "oracle": "1", **more,
    }  # fmt: skip


def judged(
    test: str, frontend: str, variant: str, environment: str, verdict: str, *place: str, finding: str = "",
    confirmation: str = "", rules: str = "", **outcome: Any,
) -> Verdict:  # fmt: skip
    """Return a verdict of an outcome; `place` are its stage and symptom."""
    return Verdict(
        test, frontend, variant, environment, Outcome(verdict, *place, **outcome), finding, confirmation, rules
    )


def fill(workspace: Workspace) -> dict[str, str]:
    """Fill a workspace; return the names of its three environments (tvm, old-tvm, openvino) and ids."""
    workspace.add_captured([captured(n, operator) for n, operator in enumerate(OPERATORS)])
    workspace.add_captured([captured(0, "Conv")], equipped="tvm")
    workspace.save_ranking("onnx", "tvm", "opera", {}, [3, 1])
    tests = [MigratedTest(f"t{n}", instance_of(n), "valid") for n in range(10)]
    tests += [MigratedTest("t10", instance_of(10), "invalid", f"rejected {HOSTILE}")]
    tests += [MigratedTest("t11", instance_of(11), "error", f"wrapping failed {HOSTILE}")]
    workspace.save_tests("exporter", tests)
    tvm = workspace.save_environment(document("tvm", "0.27.0"))
    old = workspace.save_environment(document("tvm", "0.9.0"))
    openvino = workspace.save_environment(document("openvino", "2026.4"))
    run = workspace.start_run({"workers": 2})

    def verdict(test: str, name: str, frontend: str = TVM, environment: str = tvm, **more: Any) -> Verdict:
        return judged(test, frontend, str(more.pop("variant", "inputs")), environment, name, **more)

    inconsistent = {
        "stage": "infer", "symptom": "value", "message": "Y: 2 of 2", "finding": "Fbbbbbbbb", "confirmation": "confirmed",
        "details": {"max_abs": 0.5, "index": "[0]", "tags": ["single-reference"], "paper_rule": None},
    }  # fmt: skip
    crash = {
        "stage": "load", "symptom": "KeyError", "message": HOSTILE, "finding": "Faaaaaaaa",
        "conversion_function": "onnx_frontend:Conv._impl_v1",
    }  # fmt: skip
    screened = {"stage": "infer", "symptom": "value", "details": {"screen": "nondeterministic"}}
    verdicts = [
        verdict("t3", "pass", seconds={"load": 0.5}),
        verdict("t0", "crash", confirmation="confirmed", **crash),
        verdict("t0", "pass", variant="constants"),
        verdict("t1", "inconsistent", **inconsistent),
        verdict("t2", "crash", confirmation="unconfirmed", **crash),
        verdict("t2", "pass", variant="constants"),
        verdict("t4", "unsupported", stage="load", symptom="OpNotImplemented", message="no converter for Pad"),
        verdict("t5", "screened", **screened),
        verdict("t6", "flaky", stage="load", symptom="KeyError", details={"finding": "Fcccccccc"}),
        verdict("t7", "error", stage="load", symptom="opera", message=f"opera broke {HOSTILE}"),
        verdict("t8", "abort", stage="load", symptom="SIGSEGV", finding="Fdddddddd", confirmation="pending",
                details={"tags": ["state-dependent"], "predecessors": ["t3", "t0"]}),
        verdict("t9", "timeout", stage="compile", symptom="timeout", finding="Feeeeeeee", confirmation="confirmed"),
        verdict("t0", "crash", environment=old, confirmation="confirmed", **crash),
        verdict("t3", "pass", environment=old),
        verdict("t0", "pass", OPENVINO, openvino),
        verdict("t9", "out-of-memory", OPENVINO, openvino, stage="infer", symptom="out-of-memory", finding="Fffffffff"),
    ]  # fmt: skip
    workspace.save_verdicts(run, verdicts, {x.finding: b"{}" for x in verdicts if x.finding})
    account = {
        "seconds": 3.0,
        "slot_seconds": 3.5,
        "wall_seconds": 2.0,
        "workers": 2.0,
        "confirmation_seconds": 1.0,
        "tests": 10.0,
    }
    workspace.save_run(run, {(TVM, tvm): account, (OPENVINO, openvino): account | {"tests": 2.0}}, finished=False)
    second = workspace.start_run({"workers": 2})
    workspace.save_run(second, {(TVM, tvm): account | {"wall_seconds": 1.0, "tests": 0.0}}, finished=False)
    workspace.extraction("onnx", {})
    workspace.save_extraction_file("onnx", "good.py", "done", {})
    workspace.save_extraction_file("onnx", "broken.py", "failed-import", {"reason": f"ImportError {HOSTILE}"})
    (workspace.root / "reproducers").mkdir()
    script = f"# {HOSTILE}\nprint('reproduced here')\n"
    (workspace.root / "reproducers" / "Faaaaaaaa.py").write_text(script, encoding="utf-8")
    return {"tvm": tvm, "old": old, "openvino": openvino}


def floats(*numbers: float) -> Tensor:
    return Tensor.of(np.float32(numbers))
