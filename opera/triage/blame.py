"""Which part of a compiler is wrong: the conversion, an optimisation, a kernel, the exporter, or the library itself."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from opera import compilers
from opera.compilers import (
    APART,
    BODY,
    CONVERSION,
    COUNTED,
    EACH,
    GIVEN,
    KERNEL,
    LAWFUL,
    LESS,
    LOWERED,
    MADE,
    NEWEST,
    OPSET,
    OPTIMISATION,
    OWN,
    SOURCE,
    TEXT,
    UNSET,
    Variant,
    Way,
)
from opera.errors import NoAnswer
from opera.libraries import simplest
from opera.oracle.comparison import COUNT
from opera.oracle.randomness import FORMS, RANDOM
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Program, Provenance
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    FAILURES,
    INCONSISTENT,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    VERDICTS,
    Outcome,
)
from opera.run import exporters
from opera.run.probe import Probe, Question
from opera.store import examined
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import route as routes
from opera.triage.conditions import peculiar, removable, telling
from opera.triage.contrasts import RESULT, UNREAD
from opera.triage.distinct import causes, kinship
from opera.triage.doubts import inadmissible, spoken_of, stated
from opera.triage.evidence import ALIKE, Evidence, evidence
from opera.triage.others import here as others_here
from opera.triage.part import (
    AS_FOUND,
    CONSTANTS,
    EXPORTER,
    GONE,
    INPUTS,
    KERNELS,
    LIBRARY,
    OTHER,
    ROUTE,
    SEVERAL,
    WITHOUT,
    Tried,
    decide,
)
from opera.triage.reproducers import scripts
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.sentence import CONSTANT_RESULT, NO_CONSTANT, UNUSED
from opera.triage.shrink import simpler, smaller

NOWHERE = Provenance("blame", "", "")
ALONE = re.compile(r"(?:^|; )(\S+)(?: \([^;]*\))? fails so by itself")
"""How it is told in a reason that one of the operators of what was imported fails by itself."""
RULES = 22
"""Version of the rules that lay it: what older ones laid is told nobody, and is asked anew."""


class Blame(msgspec.Struct, frozen=True):
    """Which part is wrong, and what says so.

    Attributes:
        verdict: CONVERSION, OPTIMISATION, KERNEL, EXPORTER, LIBRARY or UNKNOWN.
        because: One sentence.
        test: The member, or the stored test of its reduction, that was asked about: it tells of no other.
        rules: RULES when it was laid.
        settled: Whether a sentence of the documentation says what is expected.
        spoken_of: Whether one is on the very value of a parameter that decides. Reading them takes the library itself.
        beyond: Which inputs have a dtype that is not documented of them: `index is uint8, where int64 is documented`.
    """

    finding: str
    environment: str
    test: str
    verdict: str
    because: str
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0
    rules: int = 0
    settled: bool = False
    spoken_of: bool = False
    beyond: str = ""

    @property
    def gone(self) -> str:
        """What was seen instead, where its program did not fail any more when it was asked; else nothing."""
        return self.because if self.because.startswith(GONE) else ""


def of(known: Iterable[Blame], shown: Verdict) -> Blame | None:
    """Return what was laid of the very program that a finding shows, which may have been reduced since; else None."""
    return next((x for x in known if (x.test, x.environment) == (shown.test, shown.environment)), None)


OWN_WAYS = (EACH, OWN)
"""Ways of a compiler's own, none of which is the library's code: what it gives by one of these it cannot call unexpected. With
optimisations off the library's own kernels may be called still."""


def others(found: Blame) -> list[Evidence]:
    """Return what other compilers made of the model that was asked about: by these it is told who confirms what is expected."""
    return [row for row in found.evidence if row.kind == OTHER]


def witnesses(found: Blame) -> list[Evidence]:
    """Return what other compilers made of the model, and which other routes into this one give what is expected: other
    importers, of another form of the model; or where no one else does, the first of its own ways (`OWN_WAYS`) that does.
    """
    right = [x for x in found.evidence if x.right and not x.lucky]
    told = [*others(found), *(x for x in right if x.kind == ROUTE)]
    itself = [] if any(x.right for x in told) else [x for x in right if x.kind in OWN_WAYS and not x.remark]
    return told + itself[:1]


def held(found: Blame) -> list[Evidence]:
    """Return that it is right by the same importer where the model holds some inputs as constants: that confirms nothing."""
    return [x for x in found.evidence if x.kind == CONSTANTS and x.right and not x.lucky]


def kernels(found: Blame | None) -> list[Evidence]:
    """Return what others give by other kernels of their own that is the same wrong answer."""
    return [x for x in found.evidence if x.kind == KERNELS and x.remark == ALIKE[0]] if found is not None else []


def route(chosen: Choice, laid: Blame | None) -> str:
    """Return the route that what is shown fails by (opera.triage.route): others are known to be right where blame asked.

    Of a plain form it is told what was exported.
    """
    if chosen.whole is not None:
        return "; ".join(filter(None, (chosen.exported, _broken(laid))))
    failed = chosen.verdict
    if runtime(failed.frontend, laid):
        return routes.FILES["onnx"]
    asked = laid.evidence if laid is not None else ()
    shown = {x.way.rpartition(" ")[2]: _by_route(x) for x in asked if x.kind == ROUTE and x.remark not in ALIKE}
    told = compilers.given(*failed.frontend.rpartition("-")[::2])
    ways = [x for x in asked if x.kind == GIVEN and x.way in told]
    given = [told[x.way] for x in ways if x.right]
    other = [told[x.way] for x in ways if x.shows.partition(":")[0] in FAILURES and x.remark not in ALIKE]
    crashes = failed.outcome.verdict not in (INCONSISTENT, UNSTABLE)
    if failed.outcome.verdict == UNSTABLE or "drawn" in failed.outcome.details:  # such a number may be right by luck
        given = []
    by = routes.route(failed.frontend, failed.variant, shown, given, other if crashes else (), crashes=crashes)
    of = chosen.reduction.contrasts if chosen.reduction is not None else ()
    whose = UNUSED if any(x.what == UNREAD for x in of) else CONSTANT_RESULT
    first = whose if _hangs_on_nothing(chosen) else ""  # a title may have room for the first part alone
    within = inside(laid, _operator(chosen)) if laid is not None and laid.verdict == KERNEL else ""
    return "; ".join(filter(None, (first, within, by, _broken(laid))))


def inside(laid: Blame | None, operator: str) -> str:
    """Return which operator of what was imported is to be looked at, if its kernel fails so by itself: `at its Gather`; nothing
    where the operator that is called has that name."""
    found = ALONE.search(laid.because) if laid is not None and laid.verdict == KERNEL else None
    bare = [re.sub(r"[\W_]", "", x).lower() for x in (found[1], operator)] if found else []
    return f"at its {found[1]}" if found and bare[0] not in bare[1] else ""


def _operator(chosen: Choice) -> str:
    shown = chosen.verdict.outcome.conversion_function
    return shown if chosen.reduction is None else chosen.reduction.program().program.operator


def _hangs_on_nothing(chosen: Choice) -> bool:
    """Whether what a simple call that stops, or loses outputs, returns is known to hang on no input, and what it is given is
    ordinary: that decides, then. It does not where another call may take the result, which hangs on none either: what is lost
    is a constant that is returned."""
    of, shown = chosen.reduction, chosen.verdict.outcome
    stops = shown.verdict in (CRASH, REFUSED) or (shown.verdict, shown.symptom) == (INCONSISTENT, COUNT)
    program = of.program().program if of is not None else None
    given = smaller.leaves(program) if program is not None else []
    typed = program is not None and any("dtype" in x.params for x in program.instances())
    odd = typed or any(x.dtype not in simpler.ORDINARY or 0 in x.shape or not x.shape for x in given)
    taken = of is not None and any(x.what == RESULT and x.passes for x in of.contrasts)
    return program is not None and stops and not odd and not taken and simplest.is_constant(program)


def _broken(laid: Blame | None) -> str:
    """Return the rule of the compiler's own that what its importer made breaks, if it is to blame for that; without names."""
    broken = (x.remark for x in laid.evidence if x.kind == LAWFUL) if laid is not None else ()
    rule = next((x for x in broken if laid is not None and laid.because.endswith(x)), "")
    return re.sub(r" \([^()=]*\)", "", rule)


def _by_route(row: Evidence) -> str:
    return routes.RIGHT if row.right and not row.lucky else routes.OTHERWISE


def body(laid: Blame | None) -> str:
    """Return what of the library is wrong where it is an operator's definition: `ONNX's own function body`; else nothing."""
    asked = laid.evidence if laid is not None and laid.verdict == LIBRARY else ()
    return next((x.way.partition(" of it")[0] for x in asked if x.kind == BODY), "")


def converter(laid: Blame) -> str:
    """Return the code that is to blame for a conversion or an export, with file and line; nothing where the reason has it."""
    known = next((x for x in laid.evidence if x.kind == SOURCE), None)
    known = known if laid.verdict in (CONVERSION, EXPORTER) else None
    if known is None or known.shows in laid.because:
        return ""
    return ": ".join(filter(None, (known.shows, known.remark)))


def file(laid: Blame | None) -> str:
    """Return the file of the one function by which an exporter translates wrongly, from its package on; else nothing."""
    exports = laid is not None and laid.verdict == EXPORTER
    found = re.search(r"\((\S+\.py):\d+\)", converter(laid)) if exports and laid is not None else None
    return found[1] if found else ""


def runtime(frontend: str, laid: Blame | None) -> str:
    """Return the compiler that does not run rightly what an exporter under test wrote rightly, by itself or by a definition of
    the library's that is wrong; empty where that is not so.
    """
    compiler, _, library = frontend.rpartition("-")
    right = laid is not None and (laid.verdict in (KERNEL, OPTIMISATION) or bool(body(laid)))
    return compilers.runtime(compiler, library) if right else ""


def save(workspace: Workspace, found: Blame) -> None:
    """Store a verdict by today's rules, in place of an earlier one of the finding."""
    examined.forget(workspace, examined.BLAME, found.finding, found.environment)
    document = msgspec.json.encode(msgspec.structs.replace(found, rules=RULES))
    examined.save(workspace, examined.BLAME, examined.Examined(found.finding, found.environment, found.test, document))


def stored(workspace: Workspace, finding: str = "") -> list[Blame]:
    """Return what today's rules laid of a finding, of all findings where none is given."""
    found = (
        msgspec.json.decode(x.document, type=Blame) for x in examined.documents(workspace, examined.BLAME, finding)
    )
    return [x for x in found if x.rules == RULES]


WORST = (*FAILURES, *(x for x in VERDICTS if x not in FAILURES))


# ---------------------------------------------------------------------- asking


class Subject(msgspec.Struct, frozen=True):
    """What is asked about: a finding's reduction where there is one, else the member that shows it best.

    Attributes:
        program: What the test computes.
        random: Whether its program draws numbers at random; `drawn`: whether the finding is about these.
        constants: What is fed to the variant that failed, and is a constant where such a variant is there.
        unconfirmed: Variants by which the member that it was reduced from is not right.
    """

    finding: str
    environment: str
    frontend: str
    variant: str
    test: str
    seen: Outcome
    deciding: tuple[str, ...] = ()
    program: Program | None = None
    constants: tuple[str, ...] = ()
    random: bool = False
    drawn: bool = False
    unconfirmed: frozenset[str] = frozenset()

    def question(self, **more: Any) -> Question:
        """Return the question of what it does, as it was found but for `more`."""
        fields: dict[str, Any] = {"frontend": self.frontend, "variant": self.variant, "environment": self.environment}
        return Question(**(fields | {"test": self.test} | more))

    def judged(self, **more: Any) -> Question:
        """Return the same question; numbers that are drawn are judged as a run does it, for no other number is expected."""
        if not self.random or self.program is None:
            return self.question(**more)
        return self.question(**more, test="", program=Captured(self.program, NOWHERE), screened=True)


def subject(workspace: Workspace, finding: str, verdicts: list[Verdict]) -> Subject | None:
    """Return what to ask about a finding; None where no member fails on its own."""
    chosen = choose(workspace, verdicts)
    if chosen is None:
        return None
    x = chosen.verdict
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, x.test))
    return Subject(
        finding, x.environment, x.frontend, x.variant, x.test, x.outcome, chosen.deciding,
        program=chosen.reduction.program().program if chosen.reduction else workspace.instance(manifest.instance),
        constants=manifest.constants,
        random=RANDOM in manifest.tags,
        drawn=RANDOM in manifest.tags and x.outcome.verdict == INCONSISTENT and x.outcome.symptom not in FORMS,
        unconfirmed=frozenset(
            y.variant for y in stored_verdicts.of_test(workspace, chosen.member.test)
            if (y.frontend, y.environment) == (x.frontend, x.environment) and y.outcome.verdict not in (PASS, SCREENED)
        ) if x.outcome.verdict in (INCONSISTENT, UNSTABLE) else frozenset(),
    )  # fmt: skip


class Ask(msgspec.Struct, frozen=True):
    """What is tried: as in Tried, and the question, or the answer where it is stored."""

    kind: str
    way: str
    what: Question | Outcome
    names: tuple[str, ...] = ()


def questions(workspace: Workspace, about: Subject, several: Iterable[Program] = ()) -> list[Ask]:
    """Return all that is tried.

    Args:
        several: Programs of several elements, of which other routes and compilers are asked as well.
    """
    compiler, _, library = about.frontend.rpartition("-")
    frontend = compilers.frontend(compiler, library)
    route = next((x for x in frontend.VARIANTS if x.name == about.variant), frontend.VARIANTS[0])
    found = [Ask(AS_FOUND, "as it was found", about.judged(insist=about.seen.verdict == UNSTABLE))]
    early = about.seen.stage == "load"
    ways = [
        x
        for x in compilers.ways(frontend)
        if x.kind not in (*UNSET, NEWEST, OPSET, TEXT) and (not early or x.stage == "load")
    ]
    ways = [x for x in ways if not x.artefacts or route.artefact in x.artefacts]
    decides = tuple(_read_as(removable.key(x)) for x in about.deciding)
    asked_by = (x for x in ways if x.kind not in (MADE, LOWERED))
    found += [Ask(x.kind, x.about, _by(about, x), decides if x.kind == SOURCE else ()) for x in asked_by]
    found += (x for way in ways if way.kind == MADE for x in _converted(about, way))
    for other in frontend.VARIANTS:
        if other.name != route.name and _offered(workspace, about, other.artefact):
            kind = {("inputs", "constants"): CONSTANTS, ("constants", "inputs"): INPUTS}.get(
                (route.name, other.name), ROUTE
            )
            names = about.constants if kind == CONSTANTS else ()
            found.append(Ask(kind, _by_variant(about, other), about.judged(variant=other.name), names))
    held = CONSTANTS if about.variant == CONSTANTS else None  # then some inputs are none in what is shown
    superseded = workspace.superseded()
    of_test: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in stored_verdicts.of_test(workspace, about.test):
        of_test[verdict.frontend, verdict.environment].append(verdict)
    for name, document in workspace.environments().items():
        if document["library"] != library or document["compiler"] == compiler or name in superseded:
            continue
        other_frontend = compilers.frontend_name(document["compiler"], library)
        told = f"{document['compiler']} {document['version']}"
        seen = of_test.get((other_frontend, name), ())
        if seen:
            known = [x for x in seen if x.variant == held] or seen
            worst = min(known, key=lambda x: WORST.index(x.outcome.verdict))
            first, *_ = compilers.frontend(document["compiler"], library).VARIANTS
            usual = worst.variant == first.name or worst.variant not in (*routes.OWN, *routes.FILES)
            way = told if usual else f"{told} {routes.by(worst.variant)}"
            found.append(Ask(OTHER, way, worst.outcome))
        else:
            variants = compilers.frontend(document["compiler"], library).VARIANTS
            always = [x.name for x in variants if x.after == "always"]
            same = [x.name for x in variants if x.name == held]
            for x in same or (always if len(always) > 1 else [""]):
                way = f"{told} {routes.by(x)}" if x and not same else told
                found.append(Ask(OTHER, way, about.judged(frontend=other_frontend, variant=x, environment=name)))
        own = compilers.ways(compilers.frontend(document["compiler"], library)) if _special(about) else ()
        found += (
            Ask(KERNELS, f"{told}, {x.about}", about.judged(frontend=other_frontend, environment=name, way=x.name))
            for x in own
            if x.kind == OWN
        )
    if not any(x.kind == OTHER for x in found):
        here = others_here(about.frontend)
        found += [Ask(OTHER, told, about.judged(frontend=x.frontend, variant="", environment="")) for told, x in here]
    more = [Captured(x, NOWHERE) for x in several][: 1 if about.random else None]  # what is drawn is run many times
    asked = [(x, x.what) for x in found if x.kind in (ROUTE, OTHER) and isinstance(x.what, Question)]
    found += [
        Ask(SEVERAL, x.way, msgspec.structs.replace(of, test="", program=program, screened=True))
        for x, of in asked
        for program in more
    ]
    return found


def _special(about: Subject) -> bool:
    """Whether NaN or an infinity is given, and values are wrong: kernels of one compiler may take it in several ways."""
    given = about.program
    return about.seen.verdict == INCONSISTENT and given is not None and not simpler.finite(smaller.leaves(given))


def _read_as(says: str) -> str:
    """Return what decides as those name it who tell what is not read: `X is no constant` is of an input."""
    name = says.removesuffix(f" {NO_CONSTANT}")
    return says if name == says else f"{kinship.INPUT}{name}"


def _by(about: Subject, way: Way) -> Question:
    """Return the question of a way. Where a model is run, one run tells nothing of numbers that are drawn, or vary.

    Another compiler is asked once: that it draws nothing either says nothing of the file that it was given.
    """
    if way.kind not in (LESS, BODY, APART, GIVEN, EACH, COUNTED):
        return about.question(way=way.name)
    return about.judged(way=way.name, insist=about.seen.verdict in (INCONSISTENT, UNSTABLE))


def _converted(about: Subject, way: Way) -> Iterator[Ask]:
    """Yield what tells whether the importer makes the same of the program without something that decides."""
    lacking = list(_lacking(about))
    if lacking:
        yield Ask(MADE, way.about, about.question(way=way.name))
    for told, program in lacking:
        captured = Captured(program, NOWHERE)
        yield Ask(WITHOUT, way.about, about.question(way=way.name, test="", program=captured), (told,))


def _lacking(about: Subject) -> Iterator[tuple[str, Program]]:
    """Yield what decides of parameters and inputs, as the reduction told, with the program that lacks it, and passes."""
    if not isinstance(about.program, Instance) or about.seen.verdict != INCONSISTENT:
        return
    for told in about.deciding:
        name = removable.named(told) or removable.key(told).removeprefix(removable.GIVEN)
        lacks = smaller.without if removable.named(told) else smaller.input_left_out
        if (program := lacks(about.program, name)) is not None:
            yield told, program
        elif told == peculiar.FRACTION:
            yield from ((told, x) for x in kinship.whole(about.program, {}))


def _by_variant(about: Subject, other: Variant) -> str:
    return f"{about.frontend} by its variant {other.name}"


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
    calls = about.program.instances() if about.program is not None else []
    settled, spoken = (len(calls) == 1 and says(calls[0], about.deciding, about.seen) for says in (stated, spoken_of))
    beyond = inadmissible(about.program) if about.program is not None else ""
    artefact = compilers.artefact(compiler, library, about.variant)
    verdict, because = decide(
        about.seen, tried, places, exporter=exporter, native=native, drawn=about.drawn, settled=settled,
        writers=() if exporter else exporters.makers(library, artefact),
        files={
            _by_variant(about, x): exporters.makers(library, x.artefact) for x in frontend.VARIANTS if x.artefact != artefact
        },
        typed=getattr(compilers.frontend(compiler, library), "MAKES", "") == "onnx",
    )  # fmt: skip
    rows = tuple(evidence(about, tried))
    return Blame(
        about.finding, about.environment, about.test, verdict, because, rows, round(seconds, 3),
        settled=settled, spoken_of=spoken, beyond=beyond,
    )  # fmt: skip


def examine(
    workspace: Workspace,
    members: Mapping[str, list[Verdict]],
    probe: Probe,
    *,
    budget: float | None = None,
    again: bool = False,
) -> Iterator[Blame]:
    """Lay the blame of findings, and store each verdict; without `again`, of those alone whose program has none.

    Those that fail only after other tests are passed over.

    Args:
        members: Finding → its failing verdicts (`scripts.members`).
    """

    def known(x: Subject) -> bool:
        return any((y.test, y.environment) == (x.test, x.environment) for y in stored(workspace, x.finding))

    found = (subject(workspace, name, verdicts) for name, verdicts in members.items())
    new = (x for x in found if x is not None and (again or not known(x)))
    for verdict in ask(workspace, new, probe, budget=budget):
        save(workspace, verdict)
        yield verdict


def ask(
    workspace: Workspace, subjects: Iterable[Subject], probe: Probe, *, budget: float | None = None
) -> Iterator[Blame]:
    """Yield verdicts as answers come. Subjects are taken up until the budget (seconds) is used."""
    started = time.monotonic()
    waiting: dict[int, tuple[Subject, list[Tried | None], list[float]]] = {}
    asked: dict[int, tuple[int, int, Ask]] = {}  # id of a question → finding, place

    def upcoming() -> Iterator[Question]:
        for number, about in enumerate(subjects):
            if budget is not None and time.monotonic() - started > budget:
                return
            rows = questions(workspace, about, _several(probe, about))
            known = [Tried(x.kind, x.way, x.what, x.names) if isinstance(x.what, Outcome) else None for x in rows]
            waiting[number] = (about, known, [0.0])
            for place, row in enumerate(rows):
                if isinstance(row.what, Question):
                    asked[id(row.what)] = (number, place, row)
                    yield row.what

    for answer in probe.ask(upcoming()):
        number, place, row = asked.pop(id(answer.question))
        if row.kind in (OTHER, SEVERAL) and answer.outcome.verdict == ABORT and not answer.question.fresh:
            again = msgspec.structs.replace(answer.question, fresh=True)  # what others die of is told to strangers
            asked[id(again)] = (number, place, msgspec.structs.replace(row, what=again))
            probe.submit(again)
            continue
        about, rows, spent = waiting[number]
        rows[place] = Tried(row.kind, row.way, answer.outcome, row.names)
        spent[0] += answer.result.seconds if answer.result is not None else 0.0
        if all(x is not None for x in rows):
            del waiting[number]
            yield laid(about, [x for x in rows if x is not None], spent[0])


def _several(probe: Probe, about: Subject) -> list[Program]:
    """Return programs of several elements beside what is asked about, if that has but one or all alike."""
    try:
        return telling.beside(probe, about.program) if about.program is not None else []
    except NoAnswer:
        return []


def table(found: Blame) -> str:
    """Return a verdict with its evidence, as text."""
    wide = max((len(row.way) for row in found.evidence), default=0)
    lines = [f"{found.finding}: {found.verdict}: {found.because} ({found.seconds:.1f} s)"]
    for row in found.evidence:
        lines.append(f"  {row.way:<{wide}}  {row.shows}{f' ({row.remark})' if row.remark else ''}")
    return "\n".join(lines)


def show(workspace: Workspace, names: Sequence[str], *, budget: float | None, again: bool, workers: int) -> None:
    """Lay the blame of findings (or of `all`), print it, and store it. Raises UsageError for an id that is none."""
    members, every = scripts.members(workspace), "all" in names
    wanted = members if every else {x: members[x] for x in (causes.named(workspace, y, members) for y in names)}
    told: list[Blame] = []
    for name in () if every or again else list(wanted):
        shown = choose(workspace, wanted[name])
        if shown and (known := of(stored(workspace, name), shown.verdict)):
            print(table(known))
            told.append(known)
            del wanted[name]
    if wanted:
        with Probe.of(workspace, workers=workers) as probe:
            for found in examine(workspace, wanted, probe, budget=budget, again=again):
                print(table(found))
                told.append(found)
    if not told:
        print("nothing was asked: all have a verdict (--again asks once more), or none fails on its own")
    elif len(told) > 1 or every:
        counts = Counter(x.verdict for x in told)
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
