"""Which part of a compiler is wrong: the conversion, an optimisation, a kernel, the exporter, or the library itself."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from opera import compilers
from opera.compilers import APART, CONVERSION, DECLARED, KERNEL, LESS, OPTIMISATION
from opera.programs import migrated
from opera.programs.verdicts import (
    ERROR,
    FAILURES,
    INCONSISTENT,
    PASS,
    REFUSED,
    SCREENED,
    UNSUPPORTED,
    VERDICTS,
    Outcome,
)
from opera.run.probe import Probe, Question
from opera.store import examined
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import causes, scripts
from opera.triage.alike import same_answer
from opera.triage.choice import choose

EXPORTER, LIBRARY, UNKNOWN = "exporter", "library", "unknown"


class Evidence(msgspec.Struct, frozen=True):
    """One thing that was tried: `way` in words (`graph optimisations off`), and what came of it (`passes`)."""

    way: str
    shows: str
    remark: str = ""


class Blame(msgspec.Struct, frozen=True):
    """Which part is wrong, and what says so.

    Attributes:
        verdict: CONVERSION, OPTIMISATION, KERNEL, EXPORTER, LIBRARY or UNKNOWN.
        because: One sentence.
        test: The member, or the stored test of its reduction, that was asked about.
    """

    finding: str
    environment: str
    test: str
    verdict: str
    because: str
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0


def save(workspace: Workspace, found: Blame) -> None:
    """Store a verdict, in place of an earlier one of the same test."""
    examined.forget(workspace, examined.BLAME, found.finding, found.environment)
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.BLAME, examined.Examined(found.finding, found.environment, found.test, document))


def stored(workspace: Workspace, finding: str = "") -> list[Blame]:
    """Return what is stored of a finding, of all findings where none is given."""
    return [msgspec.json.decode(x.document, type=Blame) for x in examined.documents(workspace, examined.BLAME, finding)]


class Tried(msgspec.Struct, frozen=True):
    """One question and what came of it.

    Attributes:
        kind: LESS, APART or DECLARED (opera.compilers.Way); AS_FOUND, ROUTE, CONSTANTS or INPUTS: the same frontend; OTHER:
            another compiler.
        way: In words.
    """

    kind: str
    way: str
    outcome: Outcome

    @property
    def right(self) -> bool:
        return self.outcome.verdict == PASS

    @property
    def wrong(self) -> bool:
        return self.outcome.verdict in (INCONSISTENT, SCREENED)


WORST = (*FAILURES, *(x for x in VERDICTS if x not in FAILURES))
AS_FOUND, ROUTE, OTHER = "as found", "route", "other compiler"
CONSTANTS, INPUTS = "constants", "inputs"
"""Shapes, axes and the like as constants where they were inputs when it failed; and the other way round."""


def decide(
    seen: Outcome, tried: Iterable[Tried], places: Mapping[str, str], *, exporter: bool, native: bool = False
) -> tuple[str, str]:
    """Return which part is wrong, and why: the first of these that holds.

    1. It does not fail any more as it did: UNKNOWN.
    2. Two other compilers give the same other answer, and none the expected one: LIBRARY (or its test).
    3. It passes with optimisations off: OPTIMISATION.
    4. An exporter is under test: EXPORTER; KERNEL where its file is right on another implementation.
    5. It passes with constants for the shapes, axes and the like that the failing model has as inputs: CONVERSION.
       Dtype or shape is what differs, and what the importer made states them for its outputs: wrong already, it is the
       CONVERSION, else the KERNEL. What the importer made is evaluated apart: wrong, it is the CONVERSION, right, what comes
       after it, the KERNEL. So it is where no importer changes the model, and it is wrong with optimisations off too.
    6. It is raised while the model is converted, or names a place in the compiler's sources: that place's part.
    7. Another route into the same compiler passes, which has its kernels but another importer: CONVERSION.
    8. Else UNKNOWN.

    Args:
        places: `PLACES` of the frontend.
        exporter: `EXPORTER` of the frontend.
        native: `NATIVE` of the frontend.
    """
    tried = list(tried)
    by = {
        kind: [x for x in tried if x.kind == kind]
        for kind in (AS_FOUND, LESS, APART, DECLARED, ROUTE, CONSTANTS, OTHER)
    }
    now = next((x.outcome for x in by[AS_FOUND]), seen)
    if not _still(now, seen):
        return UNKNOWN, f"it does not fail as it did: {_shows(now)}"
    same = [x.way for x in by[OTHER] if x.wrong and same_answer(x.outcome, now)]
    if len(same) > 1 and not any(x.right for x in by[OTHER]):
        return LIBRARY, f"{' and '.join(same)} give the same other answer, and none the expected one"
    for found in by[LESS]:
        if found.right:
            return OPTIMISATION, f"it passes with {found.way}"
    apart = [x for x in by[APART] if x.right or x.wrong]
    wrong = [x.way for x in apart if x.wrong]
    if exporter:
        if apart and not wrong and now.stage == "infer":
            return KERNEL, f"what was exported is right: {apart[0].way}"
        return EXPORTER, f"what was exported is wrong: {wrong[0]}" if wrong else f"the exporter's own {now.verdict}"
    for found in by[CONSTANTS]:
        if found.right:
            return CONVERSION, f"it passes by way of {found.way}: what the importer does with the inputs is wrong"
    stated = [x for x in by[DECLARED] if now.symptom in ("count", "shape", "dtype") and (x.right or x.wrong)]
    if stated:
        already = _says(stated[0].outcome, now)
        told = "wrong already" if already else "right still"
        return (CONVERSION if already else KERNEL), f"its {now.symptom} is {told} in {stated[0].way}"
    if now.stage != "load" and wrong:
        return CONVERSION, f"what the importer made is wrong already: {wrong[0]}"
    if now.stage != "load" and apart:
        return KERNEL, f"what the importer made is right: {apart[0].way}"
    if native and now.stage == "infer" and (plain := next((x for x in by[LESS] if not x.right), None)) is not None:
        return KERNEL, f"no importer changes the model, and it fails with {plain.way}, too"
    part = next((part for pattern, part in places.items() if re.search(pattern, _told(now))), "")
    if part:
        return part, f"it names a place of the {part} in the compiler's sources"
    if now.stage == "load":
        return CONVERSION, "it is raised while the model is converted"
    for found in by[ROUTE]:
        if found.right:
            return CONVERSION, f"it passes by way of {found.way}, which another part converts"
    return UNKNOWN, "what was tried does not tell"


def _still(now: Outcome, seen: Outcome) -> bool:
    """Whether it fails as it did; which of several wrong outputs is told may have changed, and a probe says no more of what
    is refused than that it is."""
    kinds = (seen.verdict, UNSUPPORTED) if seen.verdict == REFUSED else (seen.verdict,)
    alike = now.verdict in kinds and now.stage == seen.stage
    return alike and (now.symptom == seen.symptom or now.verdict in (INCONSISTENT, UNSUPPORTED))


def _told(outcome: Outcome) -> str:
    """Return what a failure says of where it was raised: the message, and the compiler's own frames."""
    if outcome.verdict == INCONSISTENT:
        return ""
    frames = outcome.seen.frames if outcome.seen is not None else ()
    own = [frame for frame in frames if not frame.startswith("opera.")]
    return "\n".join([outcome.message, *own])


def _says(stated: Outcome, now: Outcome) -> bool:
    """Whether the output that differs is stated to be wrong in the same respect; values of what is stated mean nothing."""
    name = now.message.partition(": ")[0]
    if stated.symptom == now.symptom and stated.message.partition(": ")[0] == name:
        return True
    return any(text.startswith(f"{name}: {now.symptom}:") for text in stated.details.get("others", ()))


def _shows(outcome: Outcome) -> str:
    """Say what an outcome is, in few words."""
    if outcome.verdict == PASS:
        return "passes"
    told = " ".join(f"{outcome.stage} {outcome.symptom}: {outcome.message}".split())
    return f"{outcome.verdict}: {told}"[:160]


def _evidence(tried: Tried) -> str:
    """Say what came of one question; of types that are stated, values mean nothing."""
    stated = tried.outcome
    if tried.kind == DECLARED and stated.verdict == INCONSISTENT and stated.symptom in ("value", "nan-mask"):
        others = [text for text in stated.details.get("others", ()) if not re.search(r": (?:value|nan-mask):", text)]
        return "; ".join(["shapes and dtypes are as expected"] if not others else ["inconsistent", *others])[:160]
    return _shows(stated)


def line(workspace: Workspace, finding: str, environment: str = "") -> str:
    """Return one line that says whose fault a finding is, empty where nobody looked: for show, report and drafts."""
    known = [x for x in stored(workspace, finding) if environment in ("", x.environment)]
    if not known:
        return ""
    return f"{known[-1].verdict}: {known[-1].because}"


# ---------------------------------------------------------------------- asking


class Subject(msgspec.Struct, frozen=True):
    """What is asked about: a finding's reduction where there is one, else the member that shows it best."""

    finding: str
    environment: str
    frontend: str
    variant: str
    test: str
    seen: Outcome
    deciding: tuple[str, ...] = ()

    def question(self, **more: Any) -> Question:
        """Return the question of what it does, as it was found but for `more`."""
        fields: dict[str, Any] = {"frontend": self.frontend, "variant": self.variant, "environment": self.environment}
        return Question(**(fields | {"test": self.test} | more))


def subject(workspace: Workspace, finding: str, verdicts: list[Verdict]) -> Subject | None:
    """Return what to ask about a finding; None where no member fails on its own."""
    chosen = choose(workspace, verdicts)
    if chosen is None:
        return None
    x = chosen.verdict
    return Subject(finding, x.environment, x.frontend, x.variant, x.test, x.outcome, deciding=chosen.deciding)


def questions(workspace: Workspace, about: Subject) -> list[tuple[str, str, Question | Outcome]]:
    """Return (kind, way in words, question) of all that is tried; where the answer is stored, that."""
    compiler, _, library = about.frontend.rpartition("-")
    frontend = compilers.frontend(compiler, library)
    route = next((x for x in frontend.VARIANTS if x.name == about.variant), frontend.VARIANTS[0])
    found: list[tuple[str, str, Question | Outcome]] = [(AS_FOUND, "as it was found", about.question())]
    early = about.seen.stage == "load"
    ways = [x for x in compilers.ways(frontend) if not early or x.stage == "load"]
    found += [(x.kind, x.about, about.question(way=x.name)) for x in ways]
    for other in frontend.VARIANTS:
        if other.name != route.name and _offered(workspace, about, other.artefact):
            kind = {("inputs", "constants"): CONSTANTS, ("constants", "inputs"): INPUTS}.get(
                (route.name, other.name), ROUTE
            )
            found.append((kind, f"{about.frontend} by its variant {other.name}", about.question(variant=other.name)))
    superseded = workspace.superseded()
    of_test: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in stored_verdicts.of_test(workspace, about.test):
        of_test[verdict.frontend, verdict.environment].append(verdict)
    for name, document in workspace.environments().items():
        if document["library"] != library or document["compiler"] == compiler or name in superseded:
            continue
        other_frontend = compilers.frontend_name(document["compiler"], library)
        told = f"{document['compiler']} {document['version']}"
        known = [x.outcome for x in of_test.get((other_frontend, name), ())]
        if known:
            found.append((OTHER, told, min(known, key=lambda x: WORST.index(x.verdict))))
        elif about.seen.verdict == INCONSISTENT:  # nobody else crashes as this one does
            found.append((OTHER, told, about.question(frontend=other_frontend, variant="", environment=name)))
    return found


def _offered(workspace: Workspace, about: Subject, artefact: str) -> bool:
    """Whether a test has an artefact, or offers it."""
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, about.test))
    return artefact in manifest.artefacts or artefact in manifest.offers


def laid(about: Subject, tried: list[Tried], seconds: float) -> Blame:
    """Return the verdict on what was tried."""
    compiler, _, library = about.frontend.rpartition("-")
    frontend = compilers.frontend(compiler, library)
    places: Mapping[str, str] = getattr(frontend, "PLACES", {})
    exporter, native = (bool(getattr(frontend, name, False)) for name in ("EXPORTER", "NATIVE"))
    verdict, because = decide(about.seen, tried, places, exporter=exporter, native=native)
    if about.deciding:
        because += f"; fails only with {', '.join(about.deciding)}"
    now = next((x.outcome for x in tried if x.kind == AS_FOUND), about.seen)
    rows = [Evidence(x.way, _evidence(x), _remark(x, now)) for x in tried if not _missing(x.outcome)]
    rows += _opinions(about.seen)
    return Blame(about.finding, about.environment, about.test, verdict, because, tuple(rows), round(seconds, 3))


def _missing(outcome: Outcome) -> bool:
    """Whether a program has no such artefact, which is known of stored tests only."""
    return outcome.verdict == ERROR and outcome.symptom == LookupError.__name__


def _remark(tried: Tried, now: Outcome) -> str:
    if tried.kind in (AS_FOUND, DECLARED) or not tried.wrong:
        return ""
    return "the same answer" if same_answer(tried.outcome, now) else "another answer"


def _opinions(seen: Outcome) -> list[Evidence]:
    """Return what the screens heard of other implementations when the failure was found."""
    told = {key: seen.details[key] for key in ("agreeing", "disputing") if seen.details.get(key)}
    errors = {key: text for key, text in seen.details.items() if key.endswith("_error") and isinstance(text, str)}
    rows = [
        Evidence(f"second opinion: {told[key]}", "agrees with the expected outputs")
        for key in told
        if key == "agreeing"
    ]
    rows += [Evidence(f"second opinion: {told[key]}", "gives another answer") for key in told if key == "disputing"]
    return [*rows, *(Evidence(f"second opinion: {key[:-6]}", f"none: {text[:120]}") for key, text in errors.items())]


def examine(
    workspace: Workspace, names: Iterable[str], probe: Probe, *, budget: float | None = None, again: bool = False
) -> Iterator[Blame]:
    """Lay the blame of findings, and store each verdict; without `again`, of those alone that have none.

    Those that fail only after other tests are passed over.
    """
    known = set() if again else {x.finding for x in stored(workspace)}
    members = scripts.members(workspace, names)
    found = (subject(workspace, name, verdicts) for name, verdicts in members.items() if name not in known)
    for verdict in ask(workspace, (about for about in found if about is not None), probe, budget=budget):
        save(workspace, verdict)
        yield verdict


def ask(
    workspace: Workspace, subjects: Iterable[Subject], probe: Probe, *, budget: float | None = None
) -> Iterator[Blame]:
    """Yield verdicts as answers come. Subjects are taken up until the budget (seconds) is used."""
    started = time.monotonic()
    waiting: dict[int, tuple[Subject, list[Tried | None], list[float]]] = {}
    asked: dict[int, tuple[int, int, str, str, Question]] = {}  # id of a question → finding, place, kind, way

    def upcoming() -> Iterator[Question]:
        for number, about in enumerate(subjects):
            if budget is not None and time.monotonic() - started > budget:
                return
            rows = questions(workspace, about)
            waiting[number] = (about, [None] * len(rows), [0.0])
            for place, (kind, way, question) in enumerate(rows):
                if isinstance(question, Outcome):
                    waiting[number][1][place] = Tried(kind, way, question)
            for place, (kind, way, question) in enumerate(rows):
                if isinstance(question, Question):
                    asked[id(question)] = (number, place, kind, way, question)
                    yield question

    for answer in probe.ask(upcoming()):
        number, place, kind, way, _ = asked.pop(id(answer.question))
        about, rows, spent = waiting[number]
        rows[place] = Tried(kind, way, answer.outcome)
        spent[0] += answer.result.seconds if answer.result is not None else 0.0
        if all(x is not None for x in rows):
            del waiting[number]
            yield laid(about, [x for x in rows if x is not None], spent[0])


def table(found: Blame) -> str:
    """Return a verdict with its evidence, as text."""
    wide = max((len(row.way) for row in found.evidence), default=0)
    lines = [f"{found.finding}: {found.verdict}: {found.because} ({found.seconds:.1f} s)"]
    for row in found.evidence:
        lines.append(f"  {row.way:<{wide}}  {row.shows}{f' ({row.remark})' if row.remark else ''}")
    return "\n".join(lines)


def show(workspace: Workspace, name: str, *, budget: float | None, again: bool, workers: int) -> None:
    """Lay the blame of one finding (or of all), print it, and store it. Raises UsageError for an id that is none."""
    if name == "all":
        names = list(scripts.members(workspace))
    else:
        names = [causes.named(workspace, name, scripts.members(workspace))]
        if not again and (known := stored(workspace, names[0])):
            print(table(known[-1]))
            return
    counts: Counter[str] = Counter()
    with Probe.of(workspace, workers=workers) as probe:
        for found in examine(workspace, names, probe, budget=budget, again=again):
            print(table(found))
            counts[found.verdict] += 1
    if not counts:
        print("nothing was asked: all have a verdict (--again asks once more), or none fails on its own")
    elif name == "all":
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
