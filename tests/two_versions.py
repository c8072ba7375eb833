"""A workspace of one frontend in two versions, each test with what it shows in both."""

from __future__ import annotations

import msgspec
from filled import document, judged

from opera.oracle.signature import Signature
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import Outcome
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace

FRONTEND = "openvino-onnx"


def crash(message: str, at: str = "Op") -> Outcome:
    return Outcome("crash", "load", "RuntimeError", message, conversion_function=at)


def wrong(symptom: str = "value") -> Outcome:
    return Outcome("inconsistent", "infer", symptom, "Y: 1 of 2", details={})


def fill(
    workspace: Workspace, shown: dict[str, tuple[Outcome, Outcome]], versions=("2025.0.0", "2026.4.1")
) -> list[str]:
    """Store tests with what they show in two versions, the newer one first; return the ids of the environments."""
    made = {}
    for number, name in enumerate(shown):
        operator = f"Op{number}"
        instance = Instance("onnx", operator, {}, (Operand("X", Tensor.of([1.0])),), ("Y",), {"opset": {"": 14}})
        workspace.add_captured([Captured(instance, Provenance("node-tests", "cases.py", f"test_{name}"), None)])
        made[name] = (operator, MigratedTest(name, instance.id, "valid"))
    workspace.save_tests("exporter", [test for _, test in made.values()])
    environments = [workspace.save_environment(document("openvino", version)) for version in versions]
    run = workspace.start_run({})
    for side in (1, 0):
        verdicts, signatures = [], {}
        for name, both in shown.items():
            found, outcome = "", both[side]
            if outcome.verdict in ("crash", "inconsistent", "unstable"):
                signature = Signature.of(FRONTEND, made[name][0], outcome)
                found, signatures[signature.id] = signature.id, msgspec.json.encode(signature)
            confirmed = "confirmed" if found else ""
            fields = msgspec.structs.asdict(outcome)
            place = (fields.pop("stage"), fields.pop("symptom"))
            del fields["seen"]
            verdicts.append(
                judged(name, FRONTEND, "inputs", environments[side], fields.pop("verdict"), *place, finding=found,
                       confirmation=confirmed, **fields)
            )  # fmt: skip
        workspace.save_verdicts(run, verdicts, signatures)
    return environments
