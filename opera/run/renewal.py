"""Findings whose signatures another version of the rules made: their failing verdicts are sorted anew, and nothing is run."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from opera.oracle.signature import SIGNATURE_VERSION, Signature
from opera.store import tests, verdicts
from opera.store.workspace import REPRODUCERS, Workspace


def renew(workspace: Workspace) -> int:
    """Sort the failing verdicts whose findings another SIGNATURE_VERSION made anew; return how many findings that were.

    A finding whose members have another id now becomes an alias of what most of them belong to, so that links to it live on.
    """
    stored = verdicts.signatures(workspace)
    stale = [name for name, signature in stored.items() if not _current(name, signature)]
    if not stale:
        return 0
    operators = tests.operators(workspace)
    moved, signatures = [], {}
    heirs: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts.of_findings(workspace, stale):
        found = Signature.of(verdict.frontend, operators[verdict.test], verdict.outcome)
        signatures[found.id] = msgspec.json.encode(found)
        heirs[verdict.finding][found.id] += 1
        moved.append(msgspec.structs.replace(verdict, finding=found.id))
    became = {old: old if old in new else new.most_common(1)[0][0] for old, new in heirs.items()}
    workspace.move_verdicts(moved, signatures, became, stale)
    for name in stale:
        if name not in signatures:
            (workspace.root / REPRODUCERS / f"{name}.py").unlink(missing_ok=True)
    return len(stale)


def _current(name: str, signature: bytes) -> bool:
    try:
        found = msgspec.json.decode(signature, type=Signature)
    except msgspec.DecodeError:  # it has other fields now
        return False
    return found.id == name and found.version == SIGNATURE_VERSION
