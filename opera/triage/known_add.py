"""What goes into the file of known issues: entries of findings, and those of other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from opera.errors import UsageError
from opera.store import tests, verdicts
from opera.store.workspace import Workspace
from opera.triage.distinct import dividing
from opera.triage.findings import Finding
from opera.triage.known import FILE, FIXED, LISTS, Entry, checked, signature
from opera.triage.known_edit import Document

TESTS = 8
"""Tests that an entry names: of each operator and set of options one, as far as that goes."""

TEXTS = tuple(name for name in Entry.__struct_fields__ if name not in LISTS)


class Added(NamedTuple):
    """An entry that was written, and whether it changed one that was there."""

    entry: Entry
    changed: bool


class Recorder:
    """Makes entries of the findings of a workspace, which is read once for all of them."""

    def __init__(self, workspace: Workspace, found: Sequence[Finding]) -> None:
        self._told = dividing.features(workspace, {test for x in found for test in x.members})
        self._instances = tests.instances(workspace)
        self._confirmed = {
            (x.test, x.frontend, x.environment) for x in verdicts.counted(workspace) if x.confirmation == "confirmed"
        }

    def entry(self, found: Sequence[Finding], said: Mapping[str, str]) -> tuple[Entry, dict[str, str]]:
        """Return the entry of findings that are one cause, and what is said of its tests (instance → the library's test).

        Its tests are those that `opera run` reduces: a finding that reductions divide otherwise next time is known by them.

        Args:
            found: One finding in several environments, or several findings.
            said: Field → what the user says.
        """
        ids = tuple(dict.fromkeys(name for x in found for name in (x.id, *x.aliases)))
        names: dict[str, str] = {}
        for x in found:
            of = dict(zip(x.members, x.origins, strict=True))
            told = [(test, self._told[test]) for test in x.members if test in self._told]
            confirmed = [y for y in told if (y[0], x.frontend, x.environment) in self._confirmed]
            members = confirmed + [y for y in told if y not in confirmed]
            for test in dividing.spread(members, TESTS):
                if test in self._instances:
                    names.setdefault(self._instances[test], of[test])
        written = min(map(signature, found))
        entry = msgspec.convert(said, Entry)
        return msgspec.structs.replace(entry, findings=ids, signature=written, tests=tuple(names)), names


def add(document: Document, found: Sequence[Finding], said: Mapping[str, str], recorder: Recorder) -> Added:
    """Write what is known of findings that are one cause: a new entry, or into the one that names some of them.

    Fields that are not `said` stay as they are in an entry that is there. One that names the same findings with another
    operator or message is another part of them. Raises UsageError where several entries would fit, or what is said is no entry.
    """
    made, names = recorder.entry(found, said)
    at = _place(document, made)
    if at is None:
        entry = checked(made, "opera known add")
        document.add(entry, found[0].sentence, names)
        return Added(entry, False)
    given = {**said, "signature": made.signature}
    entry = checked(_merged(document.entries[at], made, given), "opera known add")
    document.replace(at, entry, names)
    return Added(entry, True)


def naming(document: Document, name: str) -> list[int]:
    """Return the entries that name a finding whose id begins so."""
    return [place for place, x in enumerate(document.entries) if any(y.startswith(name) for y in x.findings)]


def edit(document: Document, names: Sequence[str], said: Mapping[str, str]) -> Added:
    """Change what is said of findings that the file knows, whatever the workspace holds. Raises UsageError as `add` does."""
    ids = [x for entry in document.entries for x in entry.findings if x.startswith(tuple(names))]
    given = msgspec.convert(said, Entry)
    at = _place(document, msgspec.structs.replace(given, findings=tuple(dict.fromkeys(ids))))
    if at is None:
        raise UsageError(
            f"no entry is about {', '.join(names)} with that operator and message",
            cause="the finding is in the file with others, and not in the workspace",
            fix="leave out --operator and --message",
        )
    entry = checked(_merged(document.entries[at], given, said), "opera known add")
    document.replace(at, entry)
    return Added(entry, True)


def put(document: Document, entry: Entry) -> str:
    """Write an entry of another file; return what was done: `added`, `changed`, or `there` where it says nothing new."""
    if not entry.findings:
        if entry in document.entries:
            return "there"
        document.add(entry)
        return "added"
    at = _place(document, entry)
    if at is None:
        document.add(entry)
        return "added"
    given = {name: value for name in TEXTS if (value := getattr(entry, name))}
    merged = checked(_merged(document.entries[at], entry, given), f"the entry of {', '.join(entry.findings)}")
    if merged == document.entries[at]:
        return "there"
    document.replace(at, merged)
    return "changed"


def take_out(document: Document, names: Iterable[str]) -> list[Entry]:
    """Remove findings from the entries that name them, and entries that name no other; return those that were changed.

    Raises UsageError for a finding that none names.
    """
    wanted = tuple(dict.fromkeys(names))
    changed = []
    for name in wanted:
        if not any(name in x.findings for x in document.entries):
            raise UsageError(
                f"no entry names {name}",
                cause="it is known by a description (signature, operator, message), under another id, or not at all",
                fix="`opera known list` shows the entries; one without ids is removed by hand",
            )
    for place in reversed(range(len(document.blocks))):
        entry = document.entries[place]
        left = tuple(x for x in entry.findings if x not in wanted)
        if left == entry.findings:
            continue
        changed.append(entry)
        if left:
            document.replace(place, msgspec.structs.replace(entry, findings=left))
        else:
            document.remove(place)
    return changed[::-1]


def _place(document: Document, made: Entry) -> int | None:
    """Return the entry that is about the same, None where there is none yet. Raises UsageError where there are several."""
    naming = [place for place, x in enumerate(document.entries) if not set(made.findings).isdisjoint(x.findings)]
    if made.operator or made.message:
        narrowed = (made.operator, made.message)
        naming = [at for at in naming if (document.entries[at].operator, document.entries[at].message) == narrowed]
    if len(naming) > 1:
        listed = "; ".join(", ".join(document.entries[at].findings) for at in naming[:4])
        raise UsageError(
            f"{', '.join(made.findings)}: {len(naming)} entries are about that: {listed}",
            cause="the findings are parts of several issues, or are one cause by now",
            fix=f"say which by --operator or --message, or edit {FILE} by hand",
        )
    return naming[0] if naming else None


def _merged(old: Entry, new: Entry, given: Mapping[str, str]) -> Entry:
    """Return an entry with what is given, and the findings and tests of both."""
    merged = msgspec.structs.replace(
        old,
        findings=tuple(dict.fromkeys((*old.findings, *new.findings))),
        tests=tuple(dict.fromkeys((*old.tests, *new.tests))),
        **given,
    )
    return merged if merged.status == FIXED else msgspec.structs.replace(merged, fixed_in="")
