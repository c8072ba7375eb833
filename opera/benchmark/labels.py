"""Labels of live runs: which tests reveal which fault, frozen to a file before any strategy is scored.

A fault is a finding, so what was screened out, was flaky, or failed through opera itself is none. Findings are told apart at
two granularities: `signature` is the finding's own (stage, symptom, converter, message), `converter` takes all failures of one
conversion function, or of one operator where it is not known, as one fault.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import msgspec

from opera import __version__, errors
from opera.errors import CorpusError, UsageError
from opera.store import examined, verdicts
from opera.store.workspace import Workspace
from opera.triage.findings import Finding, findings
from opera.triage.versions.sides import sides

GRANULARITIES = ("signature", "converter")
VERSION = 1
PLACE = re.compile(r"@[\w./-]+\.\w+:\d+$|:\d+$")
"""Where in a converter it failed."""


class LabelledFrontend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of one frontend.

    Attributes:
        tests: Tests that were run; `tests_digest` is that of their ids.
        faults: Granularity → fault → ids of the tests that reveal it.
    """

    frontend: str
    compiler: str
    compiler_version: str
    library: str
    library_version: str
    environment: str
    tests: int
    tests_digest: str
    faults: dict[str, dict[str, list[str]]]


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    format: str
    version: int
    opera: str
    frozen: str
    frontends: dict[str, LabelledFrontend]


def scored(workspace: Workspace) -> set[tuple[str, str]]:
    """Return the (frontend, environment) of a workspace that are labelled: of several versions of a frontend the newest alone.

    Versions share most of their tests and faults: as subjects of their own, they would have the frontend count twice or more.
    """
    return {(frontend, own[-1].environment) for frontend, own in sides(workspace).items()}


def left_out(workspace: Workspace) -> list[str]:
    """Return the versions that are not labelled, as `openvino-onnx 2025.0.0`."""
    return [f"{frontend} {x.version}" for frontend, own in sides(workspace).items() for x in own[:-1]]


def freeze(workspaces: Sequence[Workspace]) -> Labels:
    """Take the findings of workspaces as labels. Raises UsageError where nothing was run, or nothing found.

    Of a workspace that holds several versions of a frontend, the newest counts.
    """
    found = [frontend for workspace in workspaces for frontend in _frontends(workspace)]
    several, frontends = Counter(x.frontend for x in found), {}
    for x in sorted(found, key=lambda x: (x.frontend, x.environment)):
        name = x.frontend if several[x.frontend] == 1 else f"{x.frontend} {x.compiler_version} {x.environment}"
        if name in frontends:
            raise UsageError(
                f"two workspaces hold runs of {x.frontend} in the same environment",
                cause="their tests would be counted as those of two frontends",
                fix="score them one by one",
            )
        frontends[name] = x
    return Labels("opera-labels", VERSION, __version__, time.strftime("%Y-%m-%d %H:%M:%S %z"), frontends)


def _frontends(workspace: Workspace) -> list[LabelledFrontend]:
    environments, newest, made = workspace.environments(), scored(workspace), examined.made(workspace)
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for x in verdicts.shown(workspace):
        if (x.frontend, x.environment) in newest:
            tests[x.frontend, x.environment].add(x.test)
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings(workspace):
        if (finding.frontend, finding.environment) in newest and set(finding.members) - made:
            found[finding.frontend, finding.environment].append(finding)
    if not tests:
        raise UsageError(
            f"nothing was run in {workspace.root} yet, so there are no faults to score by", fix="run `opera run` first"
        )
    if not found:
        raise UsageError(
            f"no finding in {workspace.root} yet, so there are no faults to score by", fix="run more tests: `opera run`"
        )
    return [
        LabelledFrontend(
            frontend,
            environments[environment]["compiler"],
            environments[environment]["version"],
            environments[environment]["library"],
            environments[environment]["library_version"],
            environment,
            len(tests[frontend, environment]),
            digest(tests[frontend, environment]),
            {"signature": {x.id: sorted(set(x.members) - made) for x in mine}, "converter": _converters(mine, made)},
        )
        for (frontend, environment), mine in found.items()
    ]


def _converters(found: list[Finding], made: Set[str]) -> dict[str, list[str]]:
    members: dict[str, set[str]] = defaultdict(set)
    for finding in found:
        members[PLACE.sub("", finding.conversion_function) or finding.operator].update(set(finding.members) - made)
    return {name: sorted(tests) for name, tests in sorted(members.items())}


def digest(tests: Iterable[str]) -> str:
    """Return 16 hexadecimal digits that tell a set of tests."""
    return hashlib.sha256("\n".join(sorted(tests)).encode()).hexdigest()[:16]


def write(labels: Labels, file: Path) -> None:
    """Write labels to a new file. Raises UsageError where it is there: frozen labels do not change."""
    text = msgspec.json.format(msgspec.json.encode(labels), indent=1)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as stream:
            stream.write(text + b"\n")
    except FileExistsError:
        raise UsageError(
            f"{file} is there already, and frozen labels do not change",
            fix=f"score them with --labels {file}, or name another file",
        ) from None
    except OSError as error:
        raise errors.unwritable(file, error) from None


def read(file: Path) -> Labels:
    """Read labels. Raises CorpusError for what is no such file."""
    try:
        labels = msgspec.json.decode(file.read_bytes(), type=Labels)
    except OSError as error:
        raise CorpusError(f"{file}: {error.strerror or error}", fix="check the path") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorpusError(
            f"{file}: {error}",
            cause="labels of instances in a file go with --instances",
            fix="make labels of a workspace with opera benchmark --freeze FILE",
        ) from None
    if labels.format != "opera-labels" or labels.version != VERSION:
        raise CorpusError(f"{file}: labels of version {labels.version}; this opera knows {VERSION}")
    for name, frontend in labels.frontends.items():
        for granularity, faults in frontend.faults.items():
            for fault, tests in faults.items():
                if not tests:
                    raise CorpusError(f"{file}: fault {fault!r} of {name} ({granularity}) has no tests")
    return labels
