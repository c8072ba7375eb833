"""Small texts that several formats share."""

from __future__ import annotations

from opera.report.summary import Frontend
from opera.triage.findings import Finding

ORDER = (
    "pass", "unsupported", "screened", "inconsistent", "crash", "abort", "timeout", "out-of-memory", "flaky", "error",
)  # fmt: skip
"""Verdicts in the order in which tables show them."""
LETTERS = {
    "pass": "P", "unsupported": "u", "screened": "s", "inconsistent": "I", "crash": "C", "abort": "A", "timeout": "T",
    "out-of-memory": "M", "flaky": "f", "error": "E",
}  # fmt: skip
NOTHING_YET = "Nothing was run yet. Next: opera extract onnx && opera prioritize && opera run"


def share(count: int, total: int) -> str:
    """Return `47 (12.5 %)`."""
    return f"{count} ({100 * count / total:.1f} %)" if total else str(count)


def shown_verdicts(frontends: list[Frontend]) -> list[str]:
    """Return the verdicts that some frontend has, in ORDER."""
    return [name for name in ORDER if any(name in x.verdicts for x in frontends)]


def where(finding: Finding) -> str:
    """Return the conversion function, or the operator where it is not known."""
    return finding.conversion_function or finding.operator


def one_line(text: str, length: int) -> str:
    """Return the first characters of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def gist(text: str, length: int) -> str:
    """Return the line of a message that says most, shortened: the first that does not only lead to the next (`...:`)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return one_line(next((line for line in lines if not line.endswith(":")), " ".join(lines)), length)


def status(finding: Finding) -> str:
    """Return how far a finding is confirmed, and its tags."""
    state = f"{finding.confirmed} confirmed" if finding.confirmed else "not yet confirmed"
    return ", ".join([state, *finding.tags])
