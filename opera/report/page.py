"""All that a maintainer wants to know of a finding, in the order of asking: what `opera show` prints and the report holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opera import libraries
from opera.compilers import INFERENCE, KERNEL, OPTIMISATION
from opera.oracle import comparison, draws, randomness
from opera.oracle.screens import AGREEING, SINGLE_REFERENCE
from opera.programs import migrated
from opera.programs.migrated import Manifest
from opera.programs.program import JOINED, Program, parse_captured
from opera.programs.values import NO_DEFAULT, RandomTensor, Tensor
from opera.programs.verdicts import CRASH, DEATHS, INCONSISTENT, PASS, REFUSED, SCREENED, UNSTABLE, Outcome
from opera.report import searching
from opera.report.programs import drawn, given, lines, short
from opera.store import tests, verdicts
from opera.store.folders import kept_outputs
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import blame
from opera.triage.blame import Blame
from opera.triage.conditions.removable import key as deciding_key
from opera.triage.contrasts import LEFT_OUT, OUTPUT, RESULT, RETURNED_SHAPE, UNREAD, Contrast, rows
from opera.triage.distinct import causes, twins
from opera.triage.evidence import Evidence
from opera.triage.failure import quiet
from opera.triage.findings import Finding
from opera.triage.reduction import SINCE, Reduction
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.sentence import drawn as drawn_wrongly
from opera.triage.sentence import listed, said, together
from opera.triage.versions import since

FURTHER = 4
"""Programs of which several things differ, from which on it is said what they show."""
BORNE, PASSING = 10, 3
"""Further ones from which on what seems to decide is borne out, and those of them that have it, those that do not, and passing
ones near it."""
ABOUT = {
    "dtype": re.compile(r"\b(?:inputs|dtypes?|bool|numeric|integers?|floats?|promoted|\w*(?:int|float)\d\w*)\b"),
    "shape": re.compile(r"\b(?:rank|ax[ie]s|lengths?|long\w*|elements?|empty|shapes?|sizes?|0-d)\b"),
}
"""What is said of forms of tensors."""
NUMBER = re.compile(r"\b(?:numbers?|NaN|infinit\w+|zeros?|equal|values?)\b|[<>]")
"""What is said of their numbers."""
NONE = re.compile(r"(?<![\d.])0(?![\d-])")
"""A length of 0 in shapes, which is no rank of 0: `2x0`, `(0, 3)`."""
OPERATOR = "operator"
"""What is told of a program with another operator in its place."""
SAYS = 1500
"""Characters of a compiler's message that are shown."""
OUTPUTS = 4
"""Outputs that are shown."""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a call: `mark` says why it matters (`decides`, `default 0`), empty where it does not."""

    operator: str
    name: str
    value: str
    mark: str = ""


class Output(msgspec.Struct, frozen=True):
    """An output in a few words: what is expected, and what was returned, where that was kept."""

    name: str
    expected: str
    actual: str = ""


class Page(msgspec.Struct, frozen=True):
    """What is told of a finding.

    Attributes:
        sentence: What is wrong.
        test, origin: The test that is shown, the one of its script, and the library's test that it was made of.
        reduced: Whether it is the reduction of that.
        caller: The operator that calls the one of a reduction, where that is another.
        finished: Whether nothing smaller was left to try.
        near: What programs near a reduced one showed.
        seems: What seems to decide, as far as they bear it out; `contradicted`: what speaks against it.
        contrasts: What becomes of it when one thing alone is changed, a line for each.
        remarks: What else was seen of it, a line each.
        model: The program call by call, a line each; `passing`: the one most like it that passes.
        written: The file that an exporter makes of it, a line each.
        parameters: Those that decide or are not the default.
        outputs: Those that differ, or the first where nothing was returned.
        says: What the compiler says of a crash, its boilerplate cut.
        agreement: Who agrees with whom, a line each.
        variants: Variant of the frontend → what the test showed.
        elsewhere: Frontend and version → what the test showed there, where it is shown itself, and nobody was asked since.
        asked: What other compilers make of the very model that is shown, as blame asked them.
        blame: Which part is wrong, where it was asked.
        since: Since which release it fails, and until which, where `opera bisect` asked.
        converter: The code that converts the operator, with file and line where they are known; nothing where what comes after
            the conversion is wrong.
        specification: Addresses.
        search: Where its tracker is searched for it, before it is filed.
        twins: Other findings that say the same, each with the operator of which they do.
    """

    sentence: str
    test: str
    origin: str = ""
    reduced: bool = False
    caller: str = ""
    finished: bool = True
    near: str = ""
    seems: str = ""
    contradicted: str = ""
    contrasts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    outputs: tuple[Output, ...] = ()
    says: str = ""
    agreement: tuple[str, ...] = ()
    variants: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    asked: tuple[Evidence, ...] = ()
    blame: Blame | None = None
    since: str = ""
    converter: str = ""
    specification: tuple[str, ...] = ()
    search: str = ""
    twins: tuple[tuple[str, str], ...] = ()

    @property
    def around(self) -> tuple[str, ...]:
        """What programs near it say, and what seems to decide by them, which nobody need take for all."""
        seems = f"what seems to decide: {self.seems}; {self.near}" if self.seems and self.near else self.near
        return tuple(x for x in (seems, self.contradicted, *self.remarks) if x)


def page(workspace: Workspace, finding: Finding) -> Page:
    """Return what is told of a finding; what its tests' folders would tell is left out where they were deleted."""
    members = list(causes.members(workspace, finding.id, finding.environment))
    chosen = choose(workspace, members) or Choice(members[0], members[0])
    shown, reduced, test = chosen.verdict, chosen.reduction, chosen.member.test
    program = reduced.program().program if reduced else workspace.instance(tests.test(workspace, shown.test).instance)
    directory = migrated.folder(workspace.tests_folder, shown.test)
    manifest = migrated.read_manifest(directory) if (directory / "manifest.json").is_file() else None
    origin = tests.origin(workspace, test)
    names = (finding.id, *finding.aliases)
    laid = blame.of((x for name in names for x in blame.stored(workspace, name)), shown)
    others = (*blame.witnesses(laid), *blame.kernels(laid)) if laid is not None else ()
    outcome, model = shown.outcome, tuple(lines(program))
    return Page(
        sentence=finding.sentence,
        test=shown.test,
        origin=origin.test if origin else "",
        reduced=reduced is not None,
        caller=_caller(program, origin.operator) if reduced and origin and not reduced.incidental else "",
        finished=reduced is None or reduced.finished,
        near=_near(reduced, unknown=not chosen.firm) if reduced else "",
        seems=listed(together(chosen.seems)) if chosen.seems else "",
        contradicted=chosen.contradicted if reduced and not chosen.firm else "",
        contrasts=_contrasts(reduced, outcome, chosen.at) if reduced else (),
        remarks=tuple(_remarks(chosen)),
        model=model,
        passing=_passing(reduced, model) if reduced else (),
        written=tuple(reduced.written.splitlines()) if reduced else (),
        parameters=tuple(_parameters(program, reduced if chosen.firm else None)),
        outputs=tuple(_outputs(workspace, shown, manifest)) if manifest else (),
        says=said(outcome, SAYS) if outcome.verdict not in (INCONSISTENT, UNSTABLE) else "",
        agreement=tuple(_agreement(outcome, manifest, others)),
        variants={x.variant: told(x.outcome) for x in _of_test(workspace, test) if _here(x, finding)},
        elsewhere={} if others or reduced is not None else _elsewhere(workspace, test, finding),
        asked=(*others, *(blame.held(laid) if laid is not None else ())),
        blame=laid,
        since=next((x.sentence for x in reversed(since.stored(workspace, names))), ""),
        converter="" if laid is not None and laid.verdict in (KERNEL, OPTIMISATION, INFERENCE) else _converter(outcome),
        specification=tuple(_specification(program)),
        search=searching.of(finding.frontend, chosen, program.operator, laid),
        twins=tuple(twins.twins(workspace, finding.id, finding.environment)),
    )


def _contrasts(reduced: Reduction, outcome: Outcome, at: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each thing that is changed alone; what is shown `at` settings that leave nothing to chance was asked
    about without these."""
    within = outcome.details.get("rtol") if quiet(outcome) else None
    wrong = outcome.verdict == INCONSISTENT
    found = rows(reduced.contrasts, wrong=wrong, value=wrong and outcome.symptom == "value", within=within)
    return tuple(f"drawn at random, {x}" if at else x for x in found)


def told(outcome: Outcome) -> str:
    """Return what a test showed, on a line: verdict, stage, and what is wrong."""
    at = f" in {outcome.stage}" if outcome.stage else ""
    if outcome.verdict == PASS:
        return PASS
    if outcome.verdict == SCREENED and outcome.details.get("screen") == randomness.RANDOM:
        return f"{SCREENED} ({randomness.RANDOM}): it draws numbers as it may"
    if outcome.verdict == INCONSISTENT:
        return f"{outcome.verdict} ({outcome.symptom}): {drawn_wrongly(outcome) or outcome.message[:200]}"
    return f"{outcome.verdict}{at}: {said(outcome)}"


def _caller(program: Program, operator: str) -> str:
    """Return the operator of a member of which a program is one call inside, nothing where it is not."""
    return operator if JOINED not in f"{operator}{program.operator}" and program.operator != operator else ""


# ---------------------------------------------------------------------- what was asked of it


def _near(reduced: Reduction, *, unknown: bool) -> str:
    """Say how programs near the reduced one bear out what decides; nothing where none was asked about.

    `unknown`: whether what decides is not, or not all, known.
    """
    failing, passing = reduced.near
    if not failing and not passing:
        return ""
    return _told(reduced, failing, passing, unknown=unknown) + ("" if unknown else _further(reduced))


def _told(reduced: Reduction, failing: int, passing: int, *, unknown: bool) -> str:
    told = reduced.deciding or reduced.besides or reduced.circumstances
    does = "runs wrongly, or ends later" if reduced.beyond == 1 else "run wrongly, or end later"
    further = f"{reduced.beyond} without it {does}" if reduced.beyond and told and not unknown else ""
    before = any(x.startswith(SINCE) for x in reduced.circumstances)
    if not passing and further and not before:
        return f"{failing} that have what decides fail; {further}"
    if not passing:
        known = "the version before passes" if before else "what passes is not known"
        known = "an ordinary call among them" if reduced.usual and not told else known
        return f"all {failing} fail that say anything: {known}"
    if unknown:
        return f"{failing} fail and {passing} pass; what decides is not, or not all, known"
    odd = reduced.despite or 0
    if not told or passing <= odd:
        return f"{failing} fail, {passing} pass"
    also = f"; {odd} that have it, too, pass" if odd else ""
    others = passing - odd
    passes = f"{others} {'other passes' if others == 1 else 'others pass'}"
    return f"{failing} that have what decides fail, {passes}{also}{f'; {further}' if further else ''}"


def _passing(reduced: Reduction, model: tuple[str, ...]) -> tuple[str, ...]:
    """Return the one most like it that passes; nothing where that reads alike, for what differs is not shown."""
    told = tuple(lines(parse_captured(reduced.passing).program)) if reduced.passing else ()
    return told if told != model else ()


def _further(reduced: Reduction) -> str:
    """Say whether programs of which several things differ bear out what is told; nothing where that is nothing, or few."""
    asked, as_told = sum(reduced.tried), reduced.tried[0] + reduced.tried[3]
    if asked < FURTHER or not (reduced.deciding or reduced.besides or reduced.circumstances):
        return ""
    return f"; of {asked} further ones, in which several things differ, {'all' if as_told == asked else as_told} do as is told"


def borne_out(of: Reduction | None, seems: str) -> bool:
    """Whether what seems to decide is told of all programs near a reduced one and of all further ones that were asked about,
    enough of each, and nothing else of it passes that is told (opera.triage.contrasts).
    """
    if of is None or not seems or not of.explained or of.despite or of.near[1] < PASSING:
        return False
    having, others = of.tried[0], of.tried[3]
    borne = sum(of.tried) == having + others >= BORNE and min(having, others) >= PASSING
    program = of.program().program
    return borne and not any(
        _denies(x, seems) if not (x.tells or x.likewise) else x.passes and not _says(x, seems, program)
        for x in of.contrasts
    )


def _denies(row: Contrast, seems: str) -> bool:
    """Whether what seems to decide names a parameter of which all that was tried fails: `0 for gamma or alpha`."""
    return row.what.partition(" ")[0].removesuffix("s") not in ABOUT and _names(row, seems)


def _names(row: Contrast, seems: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(row.what.partition(' of ')[0])}(?!\w)", seems) is not None


def _says(row: Contrast, seems: str, program: Program) -> bool:
    """Whether what seems to decide is about the thing with another of which a row says that it passes, if that is given."""
    inputs = {x.name for x in program.inputs}
    params = {name for call in program.instances() for name in call.params}
    first, _, rest = row.what.partition(" ")
    if first.removesuffix("s") in ABOUT and (rest or first not in params):
        return ABOUT[first.removesuffix("s")].search(seems) is not None
    if row.what in inputs and {*row.passes} != {LEFT_OUT}:
        return NUMBER.search(seems) is not None
    if row.what in (OPERATOR, RESULT, RETURNED_SHAPE, OUTPUT, UNREAD) or first in ("how", "outputs"):
        return True
    return _names(row, seems)


def _remarks(chosen: Choice) -> Iterator[str]:
    """Yield that a certain form is shown where nothing is left to chance, that a crash needs elements, and of what it is as if
    it were not given."""
    of, outcome = chosen.reduction, chosen.verdict.outcome
    for name in of.unheeded if of is not None else ():
        yield f"it gives what is right without {name}, as if that were not given"
    if chosen.at:
        yield f"shown with {listed(chosen.at)}, which leaves nothing to chance; drawn at random it is wrong, too"
    shapes = [y for x in (of.contrasts if of is not None else ()) if x.what.startswith("shape") for y in x.wrong]
    wrong = any(map(NONE.search, shapes))
    if of is not None and of.bare and not wrong and outcome.verdict in (CRASH, REFUSED, *DEATHS):
        first = next((x.name for x in of.program().program.inputs if isinstance(x.value, Tensor | RandomTensor)), "")
        yield f"programs near it in which {first or 'the first tensor'} has no elements run"


def _parameters(program: Program, reduced: Reduction | None) -> Iterator[Parameter]:
    """Yield the parameters that matter: those that a reduction could not do without, and those that are not the default."""
    deciding = {deciding_key(x).rpartition(".")[2].strip() for x in reduced.deciding} if reduced else set()
    library = libraries.get(program.library) if program.library in libraries.registered() else None
    known = library.equipped_defaults(program.operators) if getattr(library, "LIGHT", False) and library else {}
    for call in program.instances():
        defaults = known.get(call.operator, {})
        for name, value in call.params.items():
            default = defaults.get(name, NO_DEFAULT)
            mark = "it decides" if name in deciding else ""
            if name in defaults and default != value:
                by_default = "no default" if default == NO_DEFAULT else f"default {given(default)}"
                mark = f"{mark}, {by_default}" if mark else by_default
            if mark:
                yield Parameter(call.operator, name, given(value), mark)


def _outputs(workspace: Workspace, shown: Verdict, manifest: Manifest) -> Iterator[Output]:
    """Yield the outputs that differ, where what was returned was kept; of what is random, dtype and shape."""
    random = randomness.RANDOM in manifest.tags
    may = draws.legal(workspace.instance(manifest.instance)) if random else ""

    def words(output: str) -> str:
        return may if output == manifest.outputs[0] else ""

    directory = migrated.folder(workspace.tests_folder, shown.test)
    expected = migrated.read_values(directory, "expected")
    name = kept_outputs(shown.test, shown.frontend, shown.variant, shown.environment)
    kept = workspace.files.file(name)
    wrong = shown.outcome.details.get("output", "")
    if shown.outcome.verdict == INCONSISTENT and kept.is_file():
        actual = migrated.unpack(kept.read_bytes())
        if len(actual) == len(expected):
            for output, want, got in zip(manifest.outputs, expected, actual, strict=True):
                found = comparison.compare([want], [got], (output,), *comparison.granted({}, [want], manifest))
                if found.symptom or output == wrong:
                    told = (drawn(want, words(output)), drawn(got)) if random else (short(want), short(got))
                    if shown.outcome.details.get("drawn") == draws.CONSTANT:  # it is the same in every run
                        told = told[0], short(got)
                    yield Output(output, *told)
            return
    for output, want in list(zip(manifest.outputs, expected, strict=True))[:OUTPUTS]:
        if shown.outcome.verdict != INCONSISTENT or output == wrong or not wrong:
            yield Output(output, drawn(want, words(output)) if random else short(want))


def _agreement(outcome: Outcome, manifest: Manifest | None, others: Sequence[Evidence]) -> Iterator[str]:
    """Say who agrees with the expected outputs, and who does not: those who were asked, else as the screens left it."""
    if manifest is not None:
        by = {"test": "the library's own test", "eager": f"eager {manifest.library}", "evaluator": "the evaluator"}
        yield f"expected outputs are those of {by.get(manifest.reference, manifest.reference)}"
    seen, right = outcome.details, [x for x in others if x.right]
    for x in right:
        how = f": {x.way}" if x.kind in blame.OWN_WAYS else f" ({x.remark})" if x.remark else ""
        who = "what the compiler imported, evaluated otherwise," if x.kind in blame.OWN_WAYS else x.way
        yield f"{who} agrees with them{how}"
    random = manifest is not None and randomness.RANDOM in manifest.tags  # each may draw others
    yield from (f"{x.way} gives {x.remark}" for x in others if x.remark and not x.right and not random)
    if seen.get(AGREEING) and not right:
        yield f"{seen['agreeing']} agrees with them"
    if seen.get("contradicts_both") and not others:
        yield f"{seen['contradicts_both']} gives a third answer"
    nobody = not (right or seen.get(AGREEING)) if others else SINGLE_REFERENCE in seen.get("tags", ())
    if nobody:
        refused = [key.removesuffix("_error") for key in seen if key.endswith("_error")]
        failed = [x.way for x in others if not x.remark] if others else refused
        yield "no other implementation confirms them" + (f": {', '.join(failed)} cannot run it" if failed else "")


def _here(verdict: Verdict, finding: Finding) -> bool:
    return (verdict.frontend, verdict.environment) == (finding.frontend, finding.environment)


def _of_test(workspace: Workspace, test: str) -> Iterator[Verdict]:
    superseded = workspace.superseded()
    return (x for x in verdicts.of_test(workspace, test) if x.environment not in superseded)


def _elsewhere(workspace: Workspace, test: str, finding: Finding) -> dict[str, str]:
    """Return frontend and version → what it showed on the same test; a variant is named where it is not the only one."""
    versions = {name: document["version"] for name, document in workspace.environments().items()}
    found: dict[str, dict[str, str]] = {}
    for x in _of_test(workspace, test):
        if not _here(x, finding):
            found.setdefault(f"{x.frontend} {versions.get(x.environment, '')}", {})[x.variant] = told(x.outcome)
    return {
        f"{where}{f', {variant}' if len(set(shown.values())) > 1 else ''}": text
        for where, shown in found.items()
        for variant, text in shown.items()
    }


def _converter(outcome: Outcome) -> str:
    """Return the code that converts the operator, with file and line or where it raised; nothing where it is not known."""
    known = outcome.conversion_function
    at = outcome.location if outcome.location.partition(":")[0].endswith(".py") else ""
    if "@" in known or not at or at.partition(":")[2] in known:
        return known if re.search(r"[.:@]", known) else ""
    return f"{known} (raised in {at})" if known else at


def _specification(program: Program) -> Iterator[str]:
    library = libraries.get(program.library) if program.library in libraries.registered() else None
    address = getattr(library, "specification", None)
    return (x for x in dict.fromkeys(map(address, program.operators)) if x) if address else iter(())
