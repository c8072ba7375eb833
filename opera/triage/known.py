"""Known issues: a TOML file that people review and commit (docs/known.md), and which entry of it a finding belongs to.

An entry is one cause. It names findings by their ids, or describes them (signature, operator, message), and says what became
of them. Reading is strict: what is not understood is an error, for an entry that matches nothing would be of no use, and one
that matches too much would hide bugs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from opera.errors import UsageError
from opera.oracle import messages
from opera.oracle.signature import normalise
from opera.programs.program import JOINED
from opera.programs.verdicts import CRASH, REFUSED
from opera.store import tests
from opera.store.workspace import Workspace

if TYPE_CHECKING:
    from packaging.version import Version

    from opera.triage.findings import Finding

FILE = "known.toml"
"""The file that is read where none is named: beside the caller."""
OPEN, CONFIRMED, FIXED, BY_DESIGN, NOT_A_BUG = "open", "confirmed", "fixed", "by-design", "not-a-bug"
STATUSES = (OPEN, CONFIRMED, FIXED, BY_DESIGN, NOT_A_BUG)
"""What can have become of a known issue; what is fixed says in which version, what is no bug says why."""
EXCUSED = (BY_DESIGN, NOT_A_BUG)
"""Statuses that need a reason. Findings of them stay listed."""
KEY = "known"
"""The array of tables that holds the entries."""
SAYS = ": "
"""Between what fails and what it says, in a signature."""
MESSAGE = 160
"""Characters of a message that stand in a signature."""
LINE = re.compile(r":\d+$")
ID = re.compile(r"F[0-9a-f]{8}")
INSTANCE = re.compile(r"[0-9a-f]{20}")


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One known issue: one cause, of one finding or several.

    Attributes:
        findings: Ids; where there are none, `signature`, `operator` and `message` describe the findings.
        signature: `frontend stage symptom place: message`, as `signature` below gives it: what the findings looked like when
            they were added, and the key by which the file is ordered; of an entry without `findings`, a glob.
        frontend: Glob (`tvm-*`); empty for all.
        operator: Glob (`Conv*`) that every operator of a finding matches, by this entry or another one of the same finding.
        message: Regular expression that is searched in what the first member says.
        versions: Versions of the compiler that it is about (`>=0.25,<0.28`); empty for all.
        status: One of STATUSES.
        fixed_in: The first version of the compiler without it, of status `fixed`.
        issue: Address in a tracker.
        note: For people.
        reason: Why it is no bug, of EXCUSED statuses.
        tests: Instances that failed so when it was added: they tell that one is gone, has moved, or shows another symptom.
    """

    findings: tuple[str, ...] = ()
    signature: str = ""
    frontend: str = ""
    operator: str = ""
    message: str = ""
    versions: str = ""
    status: str = OPEN
    fixed_in: str = ""
    issue: str = ""
    note: str = ""
    reason: str = ""
    tests: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[object, ...]:
        """What entries are sorted by: signature first."""
        return (self.signature, self.frontend, self.operator, self.message, self.versions, self.findings)

    def covers(self, frontend: str, version: str) -> bool:
        """Whether it is about a frontend and a version of its compiler."""
        return fnmatchcase(frontend, self.frontend or "*") and within(version, self.versions)


class Mark(msgspec.Struct, frozen=True):
    """What the file says of a finding that it knows: see Entry. `regression` says that it is back, though it was fixed."""

    status: str
    issue: str = ""
    note: str = ""
    reason: str = ""
    fixed_in: str = ""
    regression: bool = False


class Known(msgspec.Struct, frozen=True):
    """The entries of a file.

    Attributes:
        entries: In the order of the file.
        path: The file, None where there is none.
        instances: Test → instance, of the workspace whose findings are looked up (`within_workspace`); without it, a finding
            that has another id now is not known by its tests.
    """

    entries: tuple[Entry, ...] = ()
    path: Path | None = None
    instances: Mapping[str, str] = {}

    @classmethod
    def load(cls, path: Path) -> Known:
        """Read a file. Raises UsageError for one that is not there, and for anything in it that is not understood."""
        return cls(parse(read(path), str(path)), path)

    @classmethod
    def beside(cls, path: Path | None) -> Known:
        """Read the file that is named; where none is, `known.toml` in the working directory if it is there."""
        if path is not None:
            return cls.load(path)
        return cls.load(Path(FILE)) if Path(FILE).exists() else cls()

    def within_workspace(self, workspace: Workspace) -> Known:
        """Return the same entries, able to know findings of this workspace by their tests."""
        wanted = any(x.tests for x in self.entries)
        return msgspec.structs.replace(self, instances=tests.instances(workspace) if wanted else {})

    def of(self, finding: Finding) -> Entry | None:
        """Return the entry that a finding belongs to, None for a new one.

        One that names the finding comes first, then one that some of its tests belong to, then one that describes it; one that
        allows for it before one by which it should be gone. Where operators are given, entries together must match all.
        """
        matching = self.all_of(finding)
        whole = all(any(_calls(x, finding, name) for x in matching) for name in finding.operators)
        return matching[0] if matching and whole else None

    def all_of(self, finding: Finding) -> list[Entry]:
        """Return the entries that match a finding or some of its operators, the one that it belongs to first."""
        if not self.entries:
            return []
        held = {self.instances[test] for test in finding.members if test in self.instances}
        looks = cache(lambda: signature(finding))  # it takes a millisecond, and few need it
        found = sorted(
            (rank, regressed(x, finding.compiler_version), place)
            for place, x in enumerate(self.entries)
            if (rank := _rank(x, finding, looks, held)) is not None
        )
        return [self.entries[place] for _, _, place in found]

    def mark(self, finding: Finding) -> Mark | None:
        """Return what the file says of a finding, None for a new one."""
        entry = self.of(finding)
        if entry is None:
            return None
        return mark(entry, regression=regressed(entry, finding.compiler_version))

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings with what the file says of each, new ones (and regressions) before known ones.

        What is to be filed after one that is no bug waits for nothing.
        """
        found = [msgspec.structs.replace(x, known=self.mark(x)) for x in findings]
        excused = {(x.id, x.environment) for x in found if x.known is not None and x.known.status in EXCUSED}
        found = [
            msgspec.structs.replace(x, follows="", doubts=()) if (x.follows, x.environment) in excused else x
            for x in found
        ]
        return sorted(found, key=lambda x: not x.new)


def mark(entry: Entry, *, regression: bool = False) -> Mark:
    """Return what an entry says."""
    return Mark(entry.status, entry.issue, entry.note, entry.reason, entry.fixed_in, regression)


NONE = Known()
"""No file: every finding is new."""


def signature(finding: Finding) -> str:
    """Return what a finding is ordered and described by: `frontend stage symptom place`, of what was raised `: message`, too.

    The message is normalised (opera.oracle.signature), its compiler's boilerplate cut (opera.oracle.messages), and shortened.
    """
    place = finding.conversion_function or finding.operator
    words = ("-".join(text.split()) or "-" for text in (finding.frontend, finding.stage, finding.symptom))
    said = messages.cause(finding.message) or finding.message if finding.verdict in (CRASH, REFUSED) else ""
    message = normalise(said)[:MESSAGE]
    return " ".join((*words, *place.split())) + (f"{SAYS}{' '.join(message.split())}" if message else "")


def alike(one: str, other: str) -> bool:
    """Whether two signatures look alike enough for the same test to fail by the same cause.

    The same symptom; of an exception also the same code, whatever line of it, or the same message: compilers raise one type for
    everything. So what only moved, or is worded anew, is alike.
    """
    (what, _, says), (what_other, _, says_other) = one.partition(SAYS), other.partition(SAYS)
    if what.split(" ")[:3] != what_other.split(" ")[:3] or bool(says) != bool(says_other):
        return False
    return not says or says == says_other or LINE.sub("", what) == LINE.sub("", what_other)


def _rank(entry: Entry, finding: Finding, looks: Callable[[], str], held: set[str]) -> int | None:
    """Return how an entry matches: 0 by id, 1 by tests, 2 by description; None where it does not.

    Args:
        looks: Returns the finding's signature.
        held: The instances that its members were made of.
    """
    rank = _name(entry, finding, looks, held)  # first, for it leaves few entries of many
    if rank is None or not entry.covers(finding.frontend, finding.compiler_version):
        return None
    if not any(_calls(entry, finding, name) for name in finding.operators):
        return None
    return None if entry.message and not re.search(entry.message, finding.message) else rank


def _name(entry: Entry, finding: Finding, looks: Callable[[], str], held: set[str]) -> int | None:
    """As `_rank`, before what narrows an entry is looked at."""
    if not entry.findings:
        return 2 if not entry.signature or _described(entry.signature, looks()) else None
    if finding.id in entry.findings or any(name in entry.findings for name in finding.aliases):
        return 0
    return 1 if not held.isdisjoint(entry.tests) and alike(entry.signature, looks()) else None


def _described(pattern: str, looks: str) -> bool:
    """Whether a glob matches a signature, with what was raised or without."""
    return fnmatchcase(looks, pattern) or fnmatchcase(looks.partition(SAYS)[0], pattern)


def _calls(entry: Entry, finding: Finding, operator: str) -> bool:
    """Whether an entry is about an operator of a finding; programs of several calls go by one of them."""
    if not entry.operator or fnmatchcase(operator, entry.operator):
        return True
    together = finding.operator.split(JOINED)
    return len(together) > 1 and operator in together and any(fnmatchcase(x, entry.operator) for x in together)


# ---------------------------------------------------------------------- versions


@cache
def version(text: str) -> Version | None:
    """Return a version of a compiler; of one that PEP 440 does not know, the numbers that it begins with; None without any."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        numbers = re.match(r"v?(\d+(?:\.\d+)*)", text)
        return Version(numbers[1]) if numbers else None


@cache
def within(text: str, versions: str) -> bool:
    """Whether a version is one of those; a nightly one (`0.28.dev5`) counts like any other."""
    from packaging.specifiers import SpecifierSet

    found = version(text) if versions else None
    return not versions or (found is not None and SpecifierSet(versions).contains(found, prereleases=True))


def regressed(entry: Entry, compiler_version: str) -> bool:
    """Whether an entry says that this version no longer has it."""
    found, fixed = version(compiler_version), version(entry.fixed_in)
    return entry.status == FIXED and found is not None and fixed is not None and found >= fixed


# ---------------------------------------------------------------------- reading


def read(path: Path) -> str:
    """Return the text of a file. Raises UsageError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the file of known issues {path} cannot be read: {error.strerror}",
            cause="a wrong path in --known or OPERA_KNOWN, or missing rights",
            fix="`opera known add FINDING --known FILE` makes a new one",
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the file of known issues {path} is no UTF-8 text: byte {error.start}",
            cause="it was saved in another encoding",
            fix="save it as UTF-8",
        ) from None


def parse(text: str, name: str = FILE) -> tuple[Entry, ...]:
    """Return the entries of a text. Raises UsageError, with the line, for what is not understood."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(
            name, f"it is no TOML: {error}", "a mistake of typing, or a merge of two versions", "mend it"
        ) from None
    for key in document:
        if key != KEY:
            cause = f"only [[{KEY}]] tables belong into the file"
            raise _wrong(name, f"{key!r} means nothing here", cause, f"write every issue as a [[{KEY}]] table")
    tables = document.get(KEY, [])
    if not isinstance(tables, list) or not all(isinstance(x, dict) for x in tables):
        raise _wrong(name, f"{KEY!r} is no array of tables", "single brackets", f"begin every issue with [[{KEY}]]")
    heads = [number for number, line in enumerate(text.split("\n"), 1) if HEAD.match(line)]
    places = [f"{name}:{number}" for number in heads]
    if len(places) != len(tables):  # tables that are written inline, or a head within a string
        places = [f"{name}: entry {number}" for number in range(1, len(tables) + 1)]
    entries = [entry(table, place) for table, place in zip(tables, places, strict=True)]
    _check_twice(entries, places)
    return tuple(entries)


HEAD = re.compile(rf"\s*\[\[\s*{KEY}\s*\]\]\s*(?:#.*)?$")
"""The line that begins an entry."""
LISTS = ("findings", "tests")


def entry(table: Mapping[str, Any], place: str) -> Entry:
    """Return the entry of a table (of TOML, or JSON). Raises UsageError, which begins with `place`."""
    fields = Entry.__struct_fields__
    for key, value in table.items():
        if key not in fields:
            raise _wrong(place, f"there is no field {key!r}", "a spelling mistake", f"choose from {', '.join(fields)}")
        if key in LISTS and not (isinstance(value, list) and all(isinstance(x, str) for x in value)):
            raise _wrong(place, f"{key} is no list of texts", "missing brackets or quotes", f'write {key} = ["…"]')
        if key not in LISTS and not isinstance(value, str):
            raise _wrong(place, f"{key} is no text: {value!r}", "missing quotes", f'write {key} = "{value}"')
    return checked(msgspec.convert(dict(table), Entry), place)


def checked(x: Entry, place: str) -> Entry:
    """Return an entry that can be meant. Raises UsageError, which begins with `place`."""
    for name in x.findings:
        if not ID.fullmatch(name):
            cause = "a spelling mistake: an id is F and 8 of the digits 0-9a-f"
            raise _wrong(place, f"{name!r} is no id of a finding", cause, "`opera findings` lists them")
    for name in x.tests:
        if not INSTANCE.fullmatch(name):
            cause = "`opera known add` writes them; they are ids of instances"
            raise _wrong(place, f"{name!r} is no id of an instance", cause, "leave it out")
    if not (x.findings or x.signature or x.operator or x.message):
        cause = "it would take every finding there is"
        raise _wrong(
            place, "it names no finding", cause, "give findings, or at least one of signature, operator, message"
        )
    if x.status not in STATUSES:
        raise _wrong(
            place, f"there is no status {x.status!r}", "a spelling mistake", f"choose from {', '.join(STATUSES)}"
        )
    if (x.status == FIXED) != bool(x.fixed_in):
        what = "no fixed_in says since when" if x.status == FIXED else f"fixed_in, but the status is {x.status!r}"
        raise _wrong(
            place, what, "fixed_in and the status `fixed` go together", 'write status = "fixed", fixed_in = "0.28"'
        )
    if x.fixed_in and version(x.fixed_in) is None:
        cause = "a spelling mistake"
        raise _wrong(
            place, f"fixed_in = {x.fixed_in!r} is no version", cause, "write a version of the compiler, as 0.28"
        )
    if x.status in EXCUSED and not x.reason.strip():
        cause = "who reads the file next year must know why it is no bug"
        raise _wrong(place, f"status {x.status!r} without a reason", cause, 'write reason = "…"')
    _check_versions(x, place)
    try:
        re.compile(x.message)
    except re.error as error:
        cause = "message is a regular expression; brackets and the like need a backslash"
        raise _wrong(place, f"message cannot be read: {error}", cause, "write \\( for (, or '…' around it") from None
    return x


def _check_versions(x: Entry, place: str) -> None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(x.versions)
    except InvalidSpecifier:
        cause = "versions are conditions with commas between them"
        raise _wrong(
            place, f"versions = {x.versions!r} cannot be read", cause, "write >=0.25,<0.28 or ==0.27.*"
        ) from None


def _check_twice(entries: Sequence[Entry], places: Sequence[str]) -> None:
    """Refuse two entries that say something of the same finding, with nothing that tells which one counts."""
    seen: dict[tuple[str, ...], str] = {}
    for x, place in zip(entries, places, strict=True):
        for name in x.findings:
            key = (name, x.frontend, x.operator, x.message, x.versions)
            if key in seen:
                cause = f"{seen[key]} names it too"
                fix = "keep one, or tell them apart by operator, message or versions"
                raise _wrong(place, f"{name} is named twice", cause, fix)
            seen[key] = place


def _wrong(place: str, what: str, cause: str, fix: str) -> UsageError:
    return UsageError(f"{place}: {what}", cause=cause, fix=fix)
