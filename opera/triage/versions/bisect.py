"""`opera bisect`: since which release does a finding fail, and until which?

The program that its script shows is asked in environments of other releases (opera.run.releases), by binary search, as `git
bisect` does: a release that cannot be had, or that shows something else, is stepped over. What was learned is stored beside the
finding (opera.triage.versions.since).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from opera import compilers
from opera.errors import UsageError
from opera.oracle.messages import one_line
from opera.programs.verdicts import PASS, SCREENED, UNSUPPORTED, Outcome
from opera.run import releases
from opera.run.probe import Probe, Question, limits_of, options_of
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.alike import alike
from opera.triage.distinct import causes
from opera.triage.findings import Finding, findings
from opera.triage.reproducers import scripts
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.sentence import said
from opera.triage.versions import since
from opera.triage.versions.since import Asked, Since

FAILS, GOOD, UNTOLD = "fails", "good", "cannot tell"
"""What a release shows: the failure; none, be it that it does not support the operator; something else, or nothing."""


class Span(msgspec.Struct, frozen=True):
    """What a search found: `bad` is the first position that fails, `good` the last before it that does not (-1: none did),
    `between` the positions between these that could not tell."""

    bad: int
    good: int
    between: tuple[int, ...] = ()


def search(count: int, ask: Callable[[int], str]) -> Span:
    """Find where failing begins among positions 0, 1, ..., of which the one after the last, `count`, is known to fail.

    `ask` tells FAILS, GOOD or UNTOLD of a position, and is asked once of each at most.
    """
    untold: set[int] = set()
    low, high = -1, count
    for place in range(count):  # the first that can tell: where it fails, there is nothing to search
        told = ask(place)
        if told == FAILS:
            return Span(place, -1)
        if told == GOOD:
            low = place
            break
        untold.add(place)
    if low < 0:
        return Span(count, -1)
    while left := [x for x in range(low + 1, high) if x not in untold]:
        place = min(left, key=lambda x: (abs(2 * x - low - high), x))
        told = ask(place)
        if told == FAILS:
            high = place
        elif told == GOOD:
            low = place
        else:
            untold.add(place)
    return Span(high, low, tuple(x for x in sorted(untold) if low < x < high))


def judged(version: str, shown: Outcome, now: Outcome) -> Asked:
    """Return what a release shows of a failure, whose outcome was `shown` where it was found."""
    if alike(shown, now):
        return Asked(version, FAILS, "fails so")
    match now.verdict:
        case "pass":
            return Asked(version, GOOD, PASS)
        case "screened":
            return Asked(version, GOOD, f"{SCREENED} ({now.details.get('screen', '')})")
        case "unsupported":
            return Asked(version, GOOD, f"{UNSUPPORTED}: {one_line(now.message)[:100]}")
    at = f" in {now.stage}" if now.stage else ""
    return Asked(version, UNTOLD, f"another outcome: {now.verdict}{at}: {one_line(said(now))[:160]}")


class _Releases:
    """Asks releases for one program, each once."""

    def __init__(self, probe: Probe, pythons: dict[str, str], verdict: Verdict, tell: Callable[[str], None]) -> None:
        self.asked: dict[str, Asked] = {}
        self._probe, self._pythons, self._verdict, self._tell = probe, pythons, verdict, tell

    def __call__(self, version: str) -> str:
        """Return what a release tells; one that cannot be had tells nothing."""
        compiler, _, library = self._verdict.frontend.rpartition("-")
        try:
            self._pythons[version] = releases.interpreter(compiler, library, version)
        except releases.Unavailable as error:
            found = Asked(version, UNTOLD, one_line(f"{error.what}: {error.cause or error.fix}"))
        else:
            question = Question(
                frontend=self._verdict.frontend, variant=self._verdict.variant, test=self._verdict.test, environment=version,
                fresh=True,
            )  # fmt: skip
            found = judged(version, self._verdict.outcome, self._probe(question))
        self.asked[version] = found
        self._tell(f"  {version:<10} {found.told if found.told != GOOD else 'good'}: {found.says}")
        return found.told

    def span(self, versions: Sequence[str]) -> Span:
        """Search versions, of which what comes after the last is known to fail."""
        return search(len(versions), lambda place: self(versions[place]))


def bisect(workspace: Workspace, name: str, versions: Iterable[str], tell: Callable[[str], None]) -> Since:
    """Ask releases for the program of a finding, by binary search, and store what was learned.

    Of versions older than the one that it was seen in, the first that fails is looked for; of newer ones the first that does
    not. Raises UsageError for what is no version, and where none is another one.
    """
    finding, chosen = _found(workspace, name)
    compiler = finding.frontend.rpartition("-")[0]
    versions = sorted(dict.fromkeys(versions), key=_key)
    for version in versions:
        releases.check(compiler, version)
    seen = finding.compiler_version
    older, newer = [x for x in versions if _key(x) < _key(seen)], [x for x in versions if _key(x) > _key(seen)]
    if not older and not newer:
        raise UsageError(
            f"{finding.id} was seen in {seen}, and no other version is given",
            fix="give older ones to learn since when, newer ones to learn until when: --versions 2024.0,2025.0",
        )
    tell(f"{finding.id} of {compilers.title(compiler)} {seen}: {one_line(finding.sentence)}")
    pythons: dict[str, str] = {}
    options = options_of(workspace, chosen.verdict.environment)
    with Probe(
        workspace.root,
        interpreter=pythons.__getitem__,
        chosen=lambda _: options,
        limits=limits_of(workspace),
        workers=1,
    ) as probe:
        ask = _Releases(probe, pythons, chosen.verdict, tell)
        before, after = ask.span(older), ask.span(newer[::-1])
    told = before.good >= 0 or before.bad < len(older)
    found = Since(
        finding.id, finding.environment, finding.frontend, seen, chosen.verdict.test,
        first_bad=[*older, seen][before.bad] if told else "",
        last_good=older[before.good] if before.good >= 0 else "",
        good=ask.asked[older[before.good]].says if before.good >= 0 else "",
        between=tuple(older[place] for place in before.between),
        fixed_in=newer[::-1][after.good] if after.good >= 0 else "",
        last_bad=[*newer[::-1], seen][after.bad],
        asked=tuple(sorted(ask.asked.values(), key=lambda x: _key(x.version))),
    )  # fmt: skip
    if found.sentence:
        since.save(workspace, found, chosen.member.test)
    return found


def _found(workspace: Workspace, name: str) -> tuple[Finding, Choice]:
    """Return a finding in the newest version that has it, and what shows it. Raises UsageError where nothing does."""
    known: Collection[str] = scripts.members(workspace)
    finding = findings(workspace, only=causes.named(workspace, name, known))[0]
    of = [x for x in causes.members(workspace, finding.id, finding.environment) if x.frontend == finding.frontend]
    chosen = choose(workspace, of)
    if chosen is None:
        raise UsageError(
            f"{finding.id} has no test that fails on its own",
            cause="it depends on what ran before it, or its tests were deleted",
            fix="compare whole versions: opera run --python ../old/bin/python, then opera diff",
        )
    return finding, chosen


def _key(version: str) -> tuple[int, ...]:
    """Return what versions are sorted by; 2024.0 is 2024.0.0."""
    return tuple(map(int, re.findall(r"\d+", re.sub(r"(?:\.0)+$", "", version))))


def show(workspace: Workspace, name: str, versions: Iterable[str]) -> bool:
    """Bisect, print what each release shows as it comes and what follows; False where nothing could be told."""

    def tell(text: str) -> None:
        print(text, flush=True)

    found = bisect(workspace, name, versions, tell)
    tell(f"{found.finding} {found.frontend}: {found.sentence or 'none of these releases can tell'}")
    return bool(found.sentence)
