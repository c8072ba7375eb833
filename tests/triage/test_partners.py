"""A verified relation as an oracle: what became of the operator that agrees in the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from filled import judged

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import FAILURES
from opera.store import relations
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace
from opera.triage import partners
from opera.triage.findings import findings


def instance(operator: str) -> Instance:
    return Instance("torch", operator, {}, (Operand("input", Tensor.of([1.0, -2.0])),), (), {"kind": "function"})


SOURCE, PARTNER = instance("torch.abs"), instance("torch.absolute")


def fill(workspace: Workspace, relation: str, source: str, partner: str) -> str:
    """Store one invocation, what a relation made of it, and a verdict of each; return the environment."""
    workspace.add_captured([Captured(SOURCE, Provenance("pytorch-samples", "opinfo", "abs"))])
    told = Provenance("deeprel", "torch.abs -> torch.absolute", f"{relation}: {SOURCE.id}")
    with workspace.transaction():
        relations.insert(workspace, [Captured(PARTNER, told)])
    workspace.save_tests("e", [MigratedTest("t0", SOURCE.id, "valid"), MigratedTest("t1", PARTNER.id, "valid")])
    environment = workspace.save_environment({"compiler": "tvm", "version": "1", "library": "torch"})
    run = workspace.start_run({})
    verdicts = [
        judged(test, "tvm-torch", "exported-program", environment, name, finding=f"F{test}" if name in FAILURES else "")
        for test, name in (("t0", source), ("t1", partner))
    ]
    workspace.save_verdicts(run, verdicts, {x.finding: b"{}" for x in verdicts if x.finding})
    return environment


@pytest.mark.parametrize(
    ("source", "partner", "expected"),
    [
        ("pass", "inconsistent", {"t1": {partners.PASSES}}),
        ("crash", "pass", {"t0": {partners.PASSES}}),
        ("inconsistent", "crash", {"t0": {partners.FAILS}, "t1": {partners.FAILS}}),
        ("unsupported", "crash", {"t1": set()}),
        ("pass", "pass", {}),
    ],
)
def test_findings_say_what_became_of_the_partner(
    tmp_path: Path, source: str, partner: str, expected: dict[str, set[str]]
) -> None:
    with Workspace.open(tmp_path, write=True) as workspace:
        environment = fill(workspace, "value", source, partner)
        told = partners.tags(workspace)
        assert told == {("tvm-torch", environment, test): tags for test, tags in expected.items()}
        assert {x.members[0]: set(x.tags) for x in findings(workspace)} == expected


def test_operators_that_only_accept_the_same_say_nothing(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, write=True) as workspace:
        fill(workspace, "status", "pass", "inconsistent")
        assert partners.tags(workspace) == {}
