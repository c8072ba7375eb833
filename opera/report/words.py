"""Small texts that several formats share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from opera.oracle.messages import cause
from opera.report.sources import Comparison
from opera.report.summary import FrontendSummary, Report
from opera.triage.findings import Finding, ages
from opera.triage.known import Mark

ORDER = (
    "pass", "unsupported", "unexported", "screened", "refused-claimed", "inconsistent", "unstable", "crash", "abort", "timeout",
    "out-of-memory", "flaky", "error",
)  # fmt: skip
"""Verdicts in the order in which tables show them."""
LETTERS = {
    "pass": "P", "unsupported": "u", "unexported": "x", "screened": "s", "inconsistent": "I", "crash": "C",
    "refused-claimed": "R", "unstable": "U", "abort": "A", "timeout": "T", "out-of-memory": "M", "flaky": "f", "error": "E",
}  # fmt: skip
MEANINGS = {
    "pass": "all outputs agree with the expected ones",
    "unsupported": "the compiler says, in its own words, that it does not support the operator, dtype or attribute value",
    "unexported": "the library's own exporter made no model of it: a failure of the exporter, which is a frontend of its own",
    "screened": "outputs differ, but something other than a fault of the compiler explains it (docs/oracle.md)",
    "inconsistent": "number, shape, dtype, NaN mask or values of the outputs differ",
    "refused-claimed": "the compiler says that it does not support what it declares to support elsewhere",
    "unstable": "two runs of one compiled model, or two compilations, give other outputs, though nothing random was asked for",
    "crash": "an exception at load, compile or infer, other than unsupported",
    "abort": "the process died: a signal or an exit code",
    "timeout": "over the time limit, again when run alone with a larger one",
    "out-of-memory": "over the memory limit, again when run alone with a larger one",
    "flaky": "failed once and could not be made to fail again: no finding",
    "error": "opera itself failed: neither a pass nor a finding",
}
"""Verdict → what it means."""
SILENT, LOUD, LIMITS, REFUSALS = range(4)
SEVERITY = {
    "inconsistent": SILENT, "unstable": SILENT, "abort": SILENT, "crash": LOUD, "timeout": LIMITS, "out-of-memory": LIMITS,
    "refused-claimed": REFUSALS,
}  # fmt: skip
"""Failing verdict → how bad, least is worst: what users do not notice or cannot catch, what raises, what takes too much."""
SOURCE_COLUMNS = ("instances", "operators", "only it", "tests", "failing", "findings", "only it")
"""What tables say of a migration source."""
CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Escape sequences of terminals: colours, titles, links."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that act instead of being shown, among them those that turn the direction of text."""


def nothing_yet(report: Report) -> str:
    """Say what comes next where nothing was run: nothing need be extracted again that is there."""
    steps = (
        ["opera prioritize", "opera run"]
        if report.instances
        else ["opera extract onnx", "opera prioritize", "opera run"]
    )
    return f"Nothing was run yet. Next: {' && '.join(steps)}"


def share(count: int, total: int) -> str:
    """Return `47 (12.5 %)`."""
    return f"{count} ({100 * count / total:.1f} %)" if total else str(count)


def source_rows(report: Report, compared: Comparison) -> list[tuple[str, ...]]:
    """Return a line of a table for each source: its name, and a cell for each of SOURCE_COLUMNS."""
    brought = {x.name: x for x in report.sources[compared.library]}
    rows = []
    for x in compared.yields:
        source = brought[x.source]
        counts = (source.instances, source.operators, source.operators_alone, x.tests, x.failing, x.findings)
        rows.append((clean(x.source), *map(str, counts), str(x.findings_alone)))
    return rows


def shown_verdicts(frontends: list[FrontendSummary]) -> list[str]:
    """Return the verdicts that some frontend has, in ORDER."""
    return [name for name in ORDER if any(name in x.verdicts for x in frontends)]


def where(finding: Finding) -> str:
    """Return the conversion function, or the operator where it is not known."""
    return finding.conversion_function or finding.operator


def clean(text: str) -> str:
    """Return a text without terminal codes and other control characters, which a compiler's message may hold."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", CODES.sub("", text)).strip("\r\n")


def near_path(path: str) -> str:
    """Return a path as seen from the working directory where it is below that."""
    near = os.path.relpath(path)
    return path if near.startswith("..") else near


def number(value: str | int | float | bool) -> str:
    """Return a number as short as six digits allow, and anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else clean(str(value))


def one_line(text: str, length: int) -> str:
    """Return the first characters of a text on one line."""
    line = " ".join(clean(text[: 50 * length]).split())
    return line if len(line) <= length else line[: length - 1] + "…"


CALLED, GIVEN = re.compile(r"\w ?\((?=\w+=)"), 24
"""Where it begins what a call is given, and characters of that which a list has room for, if there are many more."""


def in_list(finding: Finding, width: int) -> str:
    """Return what is wrong with as many characters as a list has: neither the name nor the route by which it fails is cut off.

    The library stands beside it in a list, so the paths of its names may go; what other routes do is told by who shows one
    finding.
    """
    by = clean(finding.route.partition(";")[0])
    text = one_line(finding.sentence.replace(finding.route, by), 10 * width)
    library, dot, _ = finding.operator.partition(".")
    if dot and len(text) > width:
        text = re.sub(rf"\b{re.escape(library)}\.(?:\w+\.)*(?=\w)", "", text)
    text = _with_less(text, width)
    if by and text.find(by) + len(by) >= width:
        text = _with_less(text, width, 0)
    place = text.find(by) if by else -1
    if len(text) <= width or place < 0 or place + len(by) < width - 1:
        return text
    begun = text[: max(width - len(by) - 4, 0)]
    whole, _, last = begun.rpartition(" ")
    begun = begun if len(last) >= GIVEN // 2 else whole  # of a long name there is a part
    begun = begun.rpartition("(")[0] if begun.count("(") > begun.count(")") else begun
    return f"{begun.rstrip(' ,;')}… ({by})"


def _with_less(text: str, width: int, least: int = GIVEN) -> str:
    """Return a sentence with as few of what its call is given as leave room for what is wrong, but for `least` characters."""
    begun = CALLED.search(text)
    if len(text) <= width or begun is None:
        return text
    depth, end = 1, begun.end()
    while end < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    given = text[begun.end() : end - 1]
    room = max(width - len(text) + len(given), least)
    if depth or len(given) <= room:
        return text
    kept = given[: max(room - 2, 0)].rpartition(", ")[0]
    return f"{text[: begun.end()]}{f'{kept}, ' if kept else ''}…{text[end - 1 :]}"


def gist(text: str, length: int) -> str:
    """Return what a message says of its cause, shortened: its compiler's boilerplate cut (opera.oracle.messages)."""
    return one_line(cause(clean(text)) or text, length)


def status(finding: Finding) -> str:
    """Return whether a finding is known, how far it is confirmed, its tags, and whether there are doubts about it."""
    known = [f"known: {in_words(finding.known)}"] if finding.known else []
    state = f"{finding.confirmed} confirmed" if finding.confirmed else "not yet confirmed"
    return ", ".join([*known, state, *finding.tags, *(["doubtful"] if finding.doubts else [])])


def readiness(findings: Iterable[Finding]) -> str:
    """Return how many findings are ready to be filed, and about how many there are doubts; nothing where there are none."""
    found = list(findings)
    doubtful = sum(bool(x.doubts) for x in found)
    return f"{len(found) - doubtful} ready to file, {doubtful} with doubts (marked ?)" if doubtful else ""


def severity(finding: Finding) -> int:
    """Return how bad a finding is, 0 for the worst."""
    return SEVERITY.get(finding.verdict, REFUSALS)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, new ones before known ones, of a frontend's newest version first, of those the worst first.

    What there are doubts about comes last.
    """
    found = list(findings)
    age = ages(found)
    return sorted(found, key=lambda x: (not x.new, age[x.frontend, x.compiler_version], len(x.doubts), severity(x)))


def standing(mark: Mark) -> str:
    """Return what has become of a known issue, in a few words."""
    if mark.regression:
        return f"back, fixed in {mark.fixed_in}"
    return f"fixed in {mark.fixed_in}" if mark.fixed_in else mark.status.replace("-", " ")


def link(address: str) -> bool:
    """Whether an address may be followed: others might run something, or are none."""
    return re.fullmatch(r"https?://[^\s\"<>\\^`{|}]+", address) is not None


def in_words(mark: Mark) -> str:
    """Return all that the file of known issues says of a finding, on a line."""
    return one_line(", ".join(filter(None, (standing(mark), mark.issue, mark.reason, mark.note))), 300)
