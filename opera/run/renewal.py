"""Findings whose signatures another version of the rules made: their failing verdicts are sorted anew, and nothing is run."""

from __future__ import annotations

import msgspec

from opera.oracle.signature import Signature
from opera.store import tests, verdicts
from opera.store.workspace import REPRODUCERS, Workspace


def renew(workspace: Workspace) -> int:
    """Sort the failing verdicts whose findings another SIGNATURE_VERSION made anew; return how many findings that were."""
    stored = verdicts.signatures(workspace)
    stale = [name for name, signature in stored.items() if not _current(name, signature)]
    if not stale:
        return 0
    operators = tests.operators(workspace)
    moved, signatures = [], {}
    for verdict in verdicts.of_findings(workspace, stale):
        found = Signature.of(verdict.frontend, operators[verdict.test], verdict.outcome)
        signatures[found.id] = msgspec.json.encode(found)
        moved.append(msgspec.structs.replace(verdict, finding=found.id))
    workspace.move_verdicts(moved, signatures, stale)
    for name in stale:
        (workspace.root / REPRODUCERS / f"{name}.py").unlink(missing_ok=True)
    return len(stale)


def _current(name: str, signature: bytes) -> bool:
    try:
        return msgspec.json.decode(signature, type=Signature).id == name
    except msgspec.DecodeError:  # it has other fields now
        return False
