"""The findings as SARIF 2.1.0, as code hosts show them at the lines of a compiler: a result a finding, not a test.

Records hold the part of the format that is used, by its names (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from opera import __version__
from opera.programs.verdicts import INCONSISTENT
from opera.report.places import Place, Places
from opera.report.words import (
    LIMITS,
    MEANINGS,
    clean,
    in_words,
    link,
    one_line,
    severity,
    where,
    worst_first,
)
from opera.store.workspace import Workspace
from opera.triage.doubts import UNREDUCED
from opera.triage.findings import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT, LINE_HASH = "operaFinding/v1", "primaryLocationLineHash"
"""Names of fingerprints, both of the finding's id: ours, and the one by which GitHub knows an alert again."""
SOURCES, WORKSPACE = "COMPILER", "WORKSPACE"
"""What relative addresses begin at: a checkout of the compiler (or where its package is installed), and opera's workspace."""
NAMES = {
    "value": "WrongValues", "nan-mask": "WrongNaN", "shape": "WrongShape", "dtype": "WrongDtype", "count": "WrongCount",
    "poisons": "PoisonsOthers", "unstable": "UnstableOutputs", "crash": "Crash", "abort": "Abort", "timeout": "Timeout",
    "out-of-memory": "OutOfMemory", "refused-claimed": "RefusesWhatItClaims",
}  # fmt: skip
MEMBERS = 20
"""Tests of a finding that are named."""


class _Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A record of the format: what is empty is left out."""


class Text(_Record, frozen=True):
    """A message."""

    text: str


class ArtifactLocation(_Record, frozen=True):
    """A file, by its address below a base."""

    uri: str
    uri_base_id: str = ""


class Region(_Record, frozen=True):
    """A line of a file, from 1."""

    start_line: int


class PhysicalLocation(_Record, frozen=True):
    """A place in a file."""

    artifact_location: ArtifactLocation
    region: Region | None = None


class LogicalLocation(_Record, frozen=True):
    """A function."""

    name: str
    fully_qualified_name: str = ""
    kind: str = ""


class Location(_Record, frozen=True):
    """Where a result is."""

    physical_location: PhysicalLocation
    logical_locations: tuple[LogicalLocation, ...] = ()
    message: Text | None = None


class Suppression(_Record, frozen=True):
    """Why a result need not be shown."""

    kind: str
    status: str
    justification: str


class Result(_Record, frozen=True):
    """A finding."""

    rule_id: str
    level: str
    message: Text
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]
    suppressions: tuple[Suppression, ...] | msgspec.UnsetType = msgspec.UNSET
    work_item_uris: tuple[str, ...] = ()
    related_locations: tuple[Location, ...] = ()
    properties: dict[str, str | int | bool | tuple[str, ...]] = {}


class Rule(_Record, frozen=True):
    """A kind of failure."""

    id: str
    name: str
    short_description: Text
    help: Text
    default_configuration: dict[str, str]


def chunks(workspace: Workspace, findings: Sequence[Finding], *, source: Path | None = None) -> Iterator[str]:
    """Yield the text piece by piece: worst first, each finding once, of the newest version of its compiler.

    Args:
        findings: Marked with what is known of them: known ones are suppressed results.
        source: A checkout of the compiler, in which its files are found.
    """
    versions: dict[str, list[str]] = {}
    for x in findings:
        versions.setdefault(x.id, []).append(x.compiler_version)
    chosen = list({x.id: x for x in reversed(worst_first(findings))}.values())[::-1]
    places = Places(findings, source)
    rules = {rule_id(x): _rule(x) for x in chosen}
    driver = {"name": "opera", "semanticVersion": __version__, "rules": [rules[name] for name in sorted(rules)]}
    bases = {
        SOURCES: {"description": Text("the compiler's sources")},
        WORKSPACE: {"description": Text("the folder that holds what opera stored")},
    }
    head = {"tool": {"driver": driver}, "originalUriBaseIds": bases, "columnKind": "unicodeCodePoints"}
    text = _json(head)[:-1]
    yield f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{text},\n"results": ['
    for number, x in enumerate(chosen):
        yield (",\n" if number else "\n") + _json(_result(x, places.of(x), tuple(dict.fromkeys(versions[x.id]))))
    yield "\n]}]}\n"


def rule_id(finding: Finding) -> str:
    """Return the kind of failure: what differs of an output, else the verdict."""
    return finding.symptom if finding.verdict == INCONSISTENT and finding.symptom in NAMES else finding.verdict


def _rule(x: Finding) -> Rule:
    name = rule_id(x)
    told = MEANINGS.get(x.verdict, x.verdict)
    if x.verdict == INCONSISTENT:
        told = f"the compiled model returns other outputs than the library, without a word: {name}"
    return Rule(
        name, NAMES.get(name, "Failure"), Text(f"{told[:1].upper()}{told[1:]}."), Text(told), {"level": _level(x)}
    )


def _level(x: Finding) -> str:
    """Return how bad it is: an error where users get wrong answers or none, a warning where it takes too much or is refused."""
    return "error" if severity(x) < LIMITS else "warning"


def _result(x: Finding, place: Place | None, versions: tuple[str, ...]) -> Result:
    script = x.reproducer or f"reproducers/{x.id}.py"
    shown = Location(
        PhysicalLocation(ArtifactLocation(_uri(script), WORKSPACE)), message=Text("the script that shows it")
    )
    address = x.known.issue if x.known is not None else ""
    back = f" It is back: fixed in {x.known.fixed_in}." if x.known is not None and x.known.regression else ""
    says = one_line(x.message, 500)
    return Result(
        rule_id=rule_id(x),
        level=_level(x) if all(y.startswith(UNREDUCED) for y in x.doubts) else "note",
        message=Text(f"{clean(x.sentence)}.{back} {_failing(x)}" + (f" It says: {says}" if says else "")),
        # A code host wants one place: where the code is not known, that is the script.
        locations=(_location(x, place) if place is not None else shown,),
        partial_fingerprints={FINGERPRINT: x.id, LINE_HASH: f"{x.id}:1"},
        suppressions=_suppressions(x),
        work_item_uris=(address,) if link(address) else (),
        related_locations=() if place is None else (shown,),
        properties={
            "frontend": x.frontend,
            "versions": versions,
            "stage": x.stage,
            "symptom": x.symptom,
            "operators": tuple(clean(name) for name in x.operators),
            "tests": len(x.members),
            "confirmed": x.confirmed,
            "firstTests": tuple(clean(name) or test for test, name in zip(x.members, x.origins, strict=True))[:MEMBERS],
            "tags": ("opera", *x.tags),
        },
    )


def _failing(x: Finding) -> str:
    tests = f"{len(x.members)} test{'' if len(x.members) == 1 else 's'} of {x.frontend} {x.compiler_version}"
    return f"{tests} fail{'s' if len(x.members) == 1 else ''} so ({where(x)}); finding {x.id}."


def _suppressions(x: Finding) -> tuple[Suppression, ...]:
    """Return why it need not be shown; none of what is not known, which says that it must be."""
    if x.known is None or x.known.regression:
        return ()
    return (Suppression("external", "accepted", in_words(x.known)),)


def _location(x: Finding, place: Place) -> Location:
    region = Region(place.line) if place.line else None
    function = clean(place.function)
    return Location(
        PhysicalLocation(ArtifactLocation(_uri(place.file), SOURCES), region),
        (LogicalLocation(function.rpartition(".")[2] or function, clean(where(x)), "function"),) if function else (),
    )


def _uri(path: str) -> str:
    """Return a relative address of a path."""
    return quote(re.sub(r"^\./+", "", path))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
