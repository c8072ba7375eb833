"""The report as JUnit XML, as CI systems read it: a suite a frontend, a case a test. Written as it is read, case by case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from opera.report.cases import BROKEN, FAILED, SKIPPED, Case, Cases, Count
from opera.report.labels import Labelled, labelled
from opera.report.words import clean, in_words, one_line
from opera.store.workspace import Workspace
from opera.triage.findings import Finding

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""
MESSAGE = 300
"""Characters of an attribute `message`; the body has the rest."""


def chunks(workspace: Workspace, findings: Sequence[Finding], *, source: Path | None = None) -> Iterator[str]:
    """Yield the text piece by piece.

    A test that fails by a known issue is skipped, with its address; what says nothing against the compiler is skipped, with the
    reason; what failed in opera itself is an error. `findings` are marked with what is known of them; `source` is not used.
    """
    cases = Cases(workspace, findings)
    frontends = labelled(workspace)
    counts = [cases.count(x.frontend, x.environment) for x in frontends]
    failures, errors = (sum(x.kinds[kind] for x in counts) for kind in (FAILED, BROKEN))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="opera" tests="{sum(x.total for x in counts)}" failures="{failures}" errors="{errors}">\n'
    for frontend, count in zip(frontends, counts, strict=True):
        yield from _suite(cases, frontend, count)
    yield "</testsuites>\n"


def _suite(cases: Cases, x: Labelled, count: Count) -> Iterator[str]:
    kinds = count.kinds
    yield (
        f'<testsuite name={_attribute(x.label)} tests="{count.total}" failures="{kinds[FAILED]}"'
        f' errors="{kinds[BROKEN]}" skipped="{kinds[SKIPPED]}" time="{count.seconds:.3f}">\n<properties>\n'
    )
    for name, value in x.facts.items():
        yield f"<property name={_attribute(name)} value={_attribute(value)}/>\n"
    yield "</properties>\n"
    for case in cases.of(x.frontend, x.environment):
        yield _case(x.frontend, case)
    yield "</testsuite>\n"


def _case(frontend: str, x: Case) -> str:
    name = f"{x.name or x.operator} [{x.test}]"
    # Dots make a tree of packages where CI systems show them: the frontend, then the operator as its library names it.
    head = (
        f'<testcase classname={_attribute(f"{frontend}.{x.operator}")} name={_attribute(name)} time="{x.seconds:.3f}"'
    )
    if x.kind == SKIPPED and x.finding is not None:
        told = in_words(x.finding.known) if x.finding.known else ""
        message = f"known issue {x.finding.id}: {told}"
        return f"{head}>\n<skipped message={_attribute(message)}/>\n</testcase>\n"
    if x.kind == SKIPPED:
        return f"{head}>\n<skipped message={_attribute(one_line(x.reason, MESSAGE))}/>\n</testcase>\n"
    if x.kind == BROKEN:
        message = one_line(f"opera itself failed: {x.reason}", MESSAGE)
        return f'{head}>\n<error type="opera" message={_attribute(message)}>{_text(x.reason)}</error>\n</testcase>\n'
    if x.kind == FAILED and x.finding is not None:
        return f"{head}>\n{_failure(x, x.finding)}\n</testcase>\n"
    return f"{head}/>\n"


def _failure(x: Case, finding: Finding) -> str:
    back = f", back though it was fixed in {finding.known.fixed_in}" if finding.known else ""
    message = one_line(f"{finding.id}{back}: {finding.sentence}", MESSAGE)
    body = f"{x.reason}\n\n{x.verdict} in {finding.stage}; opera show {finding.id}; opera repro {finding.id} --verify"
    return f"<failure type={_attribute(finding.symptom)} message={_attribute(message)}>{_text(body)}</failure>"


def _text(text: str) -> str:
    return escape(NO_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text)))


def _attribute(text: str) -> str:
    return quoteattr(NO_XML.sub("\N{REPLACEMENT CHARACTER}", " ".join(clean(text).split())))
