"""Findings of a workspace: failing verdicts of one cause in one environment, as reports show them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec

from opera import compilers, libraries
from opera.compilers import GIVEN
from opera.errors import CorpusError
from opera.oracle import location
from opera.oracle.randomness import FORMS
from opera.oracle.screens import AGREEING, SINGLE_REFERENCE, UNMENDED, UNSCREENED
from opera.programs import migrated
from opera.programs.program import JOINED, Program, operators_of, parse
from opera.programs.values import Message, RandomTensor, Tensor, Value
from opera.programs.verdicts import INCONSISTENT, NEWER, PASS, UNSTABLE, Outcome
from opera.run.aftermath import POISONS
from opera.store import examined, tests, verdicts
from opera.store.rows import Verdict
from opera.store.tests import Origin
from opera.store.verdicts import First
from opera.store.workspace import REPRODUCERS, Workspace
from opera.triage import blame, lawful, partners, reduction
from opera.triage.blame import Blame
from opera.triage.distinct import causes, following
from opera.triage.doubts import (
    DOCUMENTED,
    Standing,
    after,
    documented,
    doubts,
    right_as_float32,
    unreduced,
)
from opera.triage.evidence import ALIKE
from opera.triage.failure import cancelled, is_invalid, slight
from opera.triage.known import Mark
from opera.triage.part import EXPORTER, LIBRARY
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice, alone, choose
from opera.triage.sentence import READS_AS_REFUSAL, UNNAMED, bare, drawn, listed, of_version, reads_as_refusal, sentence
from opera.triage.shrink import simpler, smaller

TWO_CAUSES = "two-causes"
"""Tag of a finding that has a member which fails in another way without what decides of the finding."""


class Finding(msgspec.Struct, frozen=True):
    """One suspected bug of one frontend in one environment.

    Attributes:
        id: Content address of the signature, or what triage.distinct.causes makes of it; equal across versions of a compiler.
        operator: What most members call: an operator, or several (programs.program.JOINED); `operators` are all of them.
        message: Of the first member.
        members: Test ids in the order they were found.
        origins: For each member, the library's test that it was made of.
        confirmed: How many members failed again in a fresh process; 1 where none did, but what one was reduced to.
        tags: `single-reference`, `three-answers`, `state-dependent`, `passes-as-constants`, `newer-opset`, ...
        first_found: Tests that had been run on this frontend when it was found, itself included.
        reproducer: Path of the script in the workspace.
        numbers: What the oracle and the screens measured of the first member.
        sentence: What is wrong, of the member that its script shows.
        aliases: Other ids that it has, or had.
        location: Last line of the compiler's own code in the traceback of the first member, if any.
        known: What the file of known issues says of it (opera.triage.known), None where it is not in it or none was read.
        doubts: What speaks against filing it as it stands (opera.triage.doubts); empty where nothing is known that does.
        blame: Which part is wrong (opera.triage.blame) of the program that its script shows, and `because` what says so; empty
            where that was not asked.
        route: By which the model came to the compiler, where that matters (opera.triage.route).
        follows: The finding that is to be filed first, where nothing else speaks against filing it (distinct.following).
    """

    id: str
    frontend: str
    compiler_version: str
    environment: str
    verdict: str
    stage: str
    symptom: str
    operator: str
    operators: tuple[str, ...]
    conversion_function: str
    message: str
    members: tuple[str, ...]
    origins: tuple[str, ...]
    variants: tuple[str, ...]
    confirmed: int
    tags: tuple[str, ...]
    first_found: int
    reproducer: str | None
    numbers: dict[str, str | int | float | bool]
    aliases: tuple[str, ...] = ()
    sentence: str = ""
    location: str = ""
    known: Mark | None = None
    doubts: tuple[str, ...] = ()
    blame: str = ""
    because: str = ""
    route: str = ""
    follows: str = ""

    @property
    def new(self) -> bool:
        """Whether no known issue accounts for it: none was written down, or it was fixed and is back."""
        return self.known is None or self.known.regression


class _Known(msgspec.Struct):
    """What is looked up for every finding, each read in one query."""

    environments: dict[str, dict[str, Any]]
    tests: dict[str, Origin]
    passed: set[First]
    partners: partners.Told
    order: dict[tuple[str, str], dict[str, int]]
    aliases: dict[str, list[str]]
    laid: dict[str, list[Blame]]
    both: frozenset[tuple[str, str]]
    chosen: dict[tuple[str, str], Choice]
    unreduced: dict[str, Program]
    shown: dict[tuple[str, str], tuple[int, int]]
    gone: dict[tuple[str, str], str]
    reductions: Mapping[str, list[Reduction]]

    def blame(self, finding: str, shown: Verdict) -> Blame | None:
        """Return what was found out of a finding as it is shown, under this or another name of it."""
        names = (finding, *self.aliases.get(finding, ()))
        return blame.of((x for name in names for x in self.laid.get(name, ())), shown)


def findings(workspace: Workspace, frontend: str = "", environment: str = "", only: str = "") -> list[Finding]:
    """Return the findings: of a frontend's newest version first, then confirmed ones, then those with most members.

    What there are doubts about comes last.

    Without `environment`, all environments but superseded ones. `only` is the id of one.
    """
    called, known_blame, turn = causes.causes(workspace), blame.stored(workspace), following.following(workspace)
    wanted = following.closure(only, _perhaps(called, known_blame, turn)) if only else None
    superseded = set() if environment else workspace.superseded()
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts.counted(workspace, frontend, environment):
        name = called.of(verdict.finding, verdict.test)
        if verdict.environment not in superseded and (wanted is None or name in wanted):
            groups[name, verdict.environment].append(verdict)
    for group in groups.values():
        group.sort(key=lambda x: x.outcome.verdict != UNSTABLE)  # what varies is seen as wrong, too, and leads
    reductions = reduction.by_member(workspace)
    laid: dict[str, list[Blame]] = defaultdict(list)
    for x in known_blame:
        laid[x.finding].append(x)
    chosen = {key: choose(workspace, group, reductions) or Choice(group[0], group[0]) for key, group in groups.items()}
    unreduced = tests.documents(workspace, {x.member.test for x in chosen.values() if x.reduction is None})
    known = _Known(
        workspace.environments(),
        tests.origins(workspace, {x.test for group in groups.values() for x in group}),
        verdicts.passed_as_constants(workspace),
        partners.tags(workspace),
        first_tests(workspace),
        called.aliases(),
        laid,
        called.both,
        chosen,
        dict(programs(unreduced)),
        {
            (x.test, x.environment): msgspec.json.decode(x.document, type=tuple[int, int])
            for x in examined.documents(workspace, examined.SHOWN)
        },
        {(x.test, x.environment): x.document.decode() for x in examined.documents(workspace, examined.GONE)},
        reductions,
    )
    found = [_finding(workspace, name, group, known) for (name, _), group in groups.items()]
    given = (x for key in groups for x in _given_otherwise(key, known.chosen[key], known))
    firsts = following.by_one_way(turn, given)
    ready = {(x.id, x.environment) for x in found if not x.doubts}
    found = [_in_turn(x, following.standing((x.id, x.environment), firsts, ready)) for x in found]
    found = [x for x in found if not only or x.id == only]
    found.sort(key=lambda x: (len(x.doubts), -min(x.confirmed, 1), -len(x.members), x.frontend, x.id))
    age = ages(found)
    return sorted(found, key=lambda x: age[x.frontend, x.compiler_version])


def _perhaps(called: causes.Causes, blames: Iterable[Blame], turn: following.Turn) -> following.Firsts:
    """Return what may have to be filed before each finding: by more of what blame saw than counts in the end."""
    rows = ((x, row) for x in blames for row in x.evidence if row.kind == GIVEN and row.right)
    return following.by_one_way(
        turn, (following.GivenOtherwise(called.kept(x.finding), x.environment, "", row.way) for x, row in rows)
    )


def _given_otherwise(key: tuple[str, str], chosen: Choice, known: _Known) -> Iterator[following.GivenOtherwise]:
    """Yield in which other ways of giving its model a finding runs, as it is shown; of what is drawn, or varies, by luck."""
    laid, shown = known.blame(key[0], chosen.verdict), chosen.verdict.outcome
    if laid is not None and shown.verdict != UNSTABLE and "drawn" not in shown.details:
        for row in laid.evidence:
            if row.kind == GIVEN and row.right and not row.lucky:
                yield following.GivenOtherwise(*key, f"{chosen.verdict.frontend} {chosen.verdict.variant}", row.way)


def _in_turn(finding: Finding, firsts: Sequence[following.First]) -> Finding:
    """Return a finding with the doubt that another is to be filed first, if nothing else speaks against filing it."""
    if finding.doubts or not firsts:
        return finding
    first, why = firsts[0]
    return msgspec.structs.replace(finding, follows=first, doubts=(after(first, why),))


def programs(documents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Program]]:
    """Yield the programs of tests; one that an earlier opera stored in a form of its own tells nothing of its size."""
    for test, document in documents:
        with suppress(CorpusError):
            yield test, parse(document)


def version_key(version: str) -> tuple[tuple[int, ...], str]:
    """Return what versions are sorted by: 0.9 comes before 0.27."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version)), version


def ages(found: Iterable[Finding]) -> dict[tuple[str, str], int]:
    """Return (frontend, compiler version) → 0 for the frontend's newest version, 1 for the one before, ..."""
    versions: dict[str, set[str]] = defaultdict(set)
    for finding in found:
        versions[finding.frontend].add(finding.compiler_version)
    return {
        (frontend, version): age
        for frontend, names in versions.items()
        for age, version in enumerate(sorted(names, key=version_key, reverse=True))
    }


def first_tests(workspace: Workspace) -> dict[tuple[str, str], dict[str, int]]:
    """Return (frontend, environment) → test → how many tests had their first verdict when it had its own."""
    order: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for frontend, environment, test in verdicts.first(workspace):
        place = order[frontend, environment]
        place[test] = len(place) + 1
    return order


def _finding(workspace: Workspace, name: str, group: list[Verdict], known: _Known) -> Finding:
    first, shown = group[0], group[0].outcome
    members = tuple(dict.fromkeys(x.test for x in group))
    told = [known.tests.get(test, Origin("?", "")) for test in members]
    named = Counter(x.operator for x in told)
    tags = {tag for x in group for tag in x.outcome.details.get("tags", ())}
    key = (first.frontend, first.environment)
    chosen = known.chosen[name, first.environment]
    shows = [chosen.verdict, *group] if chosen.reduction else group
    # one member that is not so is enough: they are of one cause
    for tag in (NEWER, SINGLE_REFERENCE, UNSCREENED, UNMENDED):
        if not all(tag in x.outcome.details.get("tags", ()) for x in shows):
            tags.discard(tag)
    if _unwitnessed(chosen):
        tags.add(SINGLE_REFERENCE)
    if all(First(*key, test) in known.passed for test in members):
        tags.add("passes-as-constants")
    if not known.both.isdisjoint((x.finding, x.test) for x in group):
        tags.add(TWO_CAUSES)
    script, laid = f"{REPRODUCERS}/{name}.py", known.blame(name, chosen.verdict)
    otherwise = lawful.by_route(chosen, laid) or any(says.startswith(UNNAMED) for says in chosen.deciding)
    if reads_as_refusal(chosen.verdict.outcome, _dtypes(chosen)) and not otherwise:
        tags.add(READS_AS_REFUSAL)
    tags.update(*(known.partners.get((*key, test), ()) for test in members))
    settled = SINGLE_REFERENCE in tags and (_agreed(workspace, chosen, laid) or _settled(chosen, laid))
    again = len({x.test for x in group if x.confirmation == "confirmed"})
    confirmed = max(again, chosen.reduction is not None)  # a reduction is stored once it failed in a fresh process
    needs = str(chosen.verdict.outcome.details.get("newer", ""))
    of = chosen.reduction
    program = known.unreduced.get(chosen.member.test) if of is None else of.program().program
    limit = (
        ""
        if program is None
        else documented(program, chosen.verdict, lambda: _expected(workspace, chosen.verdict.test), chosen.deciding)
    )
    if limit:
        tags.add(DOCUMENTED)
    exports = compilers.exporter(*first.frontend.rpartition("-")[::2])
    large = unreduced(name, None if of is None else of.finished)
    return Finding(
        id=name,
        frontend=first.frontend,
        compiler_version=str(known.environments.get(first.environment, {}).get("version", "?")),
        environment=first.environment,
        verdict=shown.verdict,
        stage=shown.stage,
        symptom=shown.symptom,
        operator=named.most_common(1)[0][0],
        operators=tuple(dict.fromkeys(part for name, _ in named.most_common() for part in operators_of(name))),
        conversion_function=shown.conversion_function,
        message=shown.message,
        members=members,
        origins=tuple(x.test for x in told),
        variants=tuple(dict.fromkeys(x.variant for x in group)),
        confirmed=confirmed,
        tags=tuple(sorted(tags)),
        first_found=min(known.order[key].get(test, 0) for test in members),
        reproducer=script if (workspace.root / script).is_file() else None,
        numbers=_numbers(shown.details),
        aliases=tuple(known.aliases.get(name, ())),
        sentence=_sentence(chosen, group, dict(zip(members, told, strict=True)), known, laid),
        location=shown.location,
        doubts=tuple(
            doubts(
                Standing(
                    tags=tags,
                    confirmed=confirmed,
                    needs=needs,
                    alone=any(map(alone, group)),
                    spoils=shown.symptom == POISONS,
                    settled=settled,
                    large=large,
                    gone=laid.gone if laid else _gone(chosen, known),
                    unexplained=None if chosen.firm or chosen.alone or blame.body(laid) else chosen.unexplained,
                    behind="" if of is None else of.behind,
                    foreign=_complex(program) if exports and is_invalid(shown) else "",
                    older="" if of is None or not is_invalid(shown) else next(filter(of_version, of.settings), ""),
                    divided=TWO_CAUSES in tags and not chosen.deciding,
                    parts=() if of is None else of.parts,
                    operations=0 if of is None or "drawn" in shown.details else of.operations,
                    dying=lawful.dying(chosen, laid),
                    alike=_alike(chosen, laid),
                    off=_off(chosen.verdict.outcome, () if program is None else smaller.leaves(program)),
                    rounded=(0, 0) if of is None or (laid is not None and laid.settled) else of.rounded,
                    cut="" if of is None else of.cut,
                    written=laid is not None and laid.verdict == EXPORTER and not exports,
                    unexported=lawful.unexported(
                        chosen.member, lambda: verdicts.of_test(workspace, chosen.member.test)
                    ),
                    odd=_odd(chosen),
                    exact="" if of is None or (laid is not None and laid.settled) else of.exact,
                    beyond="" if laid is None else laid.beyond,
                    arising=lawful.arising(chosen, laid),
                    limit=limit,
                    shown=known.shown.get((chosen.verdict.test, chosen.verdict.environment), (0, 0)),
                    invalid=lawful.invalid(chosen, laid),
                    refused=lawful.refused(chosen, laid),
                )
            )
        ),
        blame=laid.verdict if laid else "",
        because=laid.because if laid else "",
        route=blame.route(chosen, laid),
    )


def _expected(workspace: Workspace, test: str) -> list[Value]:
    """Return what is expected of a migrated test, nothing where its folder is gone."""
    try:
        return migrated.read_values(migrated.folder(workspace.tests_folder, test), "expected")
    except FileNotFoundError:
        return []


def _gone(chosen: Choice, known: _Known) -> str:
    """Return what a member that has no reduction showed when it was to be reduced, where it failed no more as it did."""
    shown = (chosen.member.test, chosen.member.environment)
    return "" if chosen.reduction else known.gone.get(shown, "")


def _agreed(workspace: Workspace, chosen: Choice, laid: Blame | None) -> bool:
    """Whether another compiler, or this one by another route, gives the expected outputs: of the model that is shown, if asked,
    else of the member's.
    """
    if laid is not None:
        return any(x.right for x in blame.witnesses(laid))
    own = chosen.member.frontend
    return any(x.frontend != own and x.outcome.verdict == PASS for x in verdicts.of_test(workspace, chosen.member.test))


def _unwitnessed(chosen: Choice) -> bool:
    """Whether nobody confirms what is expected of the program that is shown, whoever does of what it was made of; but for what
    a law says of what that draws.
    """
    of, whole = chosen.reduction, chosen.whole
    lawful = whole is not None and drawn(whole.outcome)
    return of is not None and not lawful and SINGLE_REFERENCE in of.outcome.details.get("tags", ())


def _alike(chosen: Choice, laid: Blame | None) -> str:
    """Return who gives the same wrong answer, where no more give the expected one: who gives both, by kernels of one or the
    other kind, does not count for it.

    Nothing where the library is wrong, nor where one does give it and a sentence speaks of the very value that decides.
    """
    if laid is None or laid.verdict == LIBRARY or chosen.verdict.outcome.verdict != INCONSISTENT or laid.settled:
        return ""
    rows = blame.others(laid)
    both = {x.way.split(" ")[0]: x.way for x in blame.kernels(laid)}
    same = dict.fromkeys([*(x.way.split(" ")[0] for x in rows if x.remark == ALIKE[0]), *both.values()])
    agreeing = re.findall(r"[\w-]+", str(chosen.verdict.outcome.details.get(AGREEING) or ""))
    right = {x.way.split(" ")[0] for x in rows if x.right}.union(agreeing) - both.keys()
    read = right and chosen.firm and laid.spoken_of
    return listed(list(same)) if same and len(right) <= len(same) and not read else ""


def _off(outcome: Outcome, given: Iterable[Tensor | RandomTensor]) -> str:
    """Return by how much it is off, where that is little more than is tolerated, or what the largest number rounds."""
    told = "{max_rel:.2g} relatively, where {rtol:g} is tolerated"
    return told.format(**outcome.details) if slight(outcome) else cancelled(outcome, given)


def _complex(program: Program | None) -> str:
    """Return the first complex dtype of what a program is given, or nothing."""
    found = () if program is None else smaller.leaves(program)
    return next((x.dtype for x in found if x.dtype.startswith("complex")), "")


def _odd(chosen: Choice) -> bool:
    """Whether NaN is expected of a reduced program that is given finite numbers alone."""
    of = chosen.reduction
    finite = of is not None and simpler.finite(smaller.leaves(of.program().program))
    return finite and chosen.verdict.outcome.details.get("expected") == "nan"


def _dtypes(chosen: Choice) -> frozenset[str]:
    """Return the dtypes that a reduced program is given; none of another."""
    of = chosen.reduction
    return frozenset(x.dtype for x in smaller.leaves(of.program().program)) if of is not None else frozenset()


def _settled(chosen: Choice, laid: Blame | None) -> bool:
    """Whether float32, or what is documented of what decides, shows that what is expected of a reduction is right; or nothing
    but the library itself defines what is wrong, a dtype, a shape or a count."""
    library = libraries.get(chosen.verdict.frontend.rpartition("-")[2])
    defined = hasattr(library, "DEFINES_FORMS") and chosen.verdict.outcome.symptom in FORMS
    return (laid is not None and laid.settled) or defined or right_as_float32(chosen.deciding)


def alike(
    chosen: Choice,
    group: Iterable[Verdict],
    told: Mapping[str, Origin],
    reductions: Mapping[str, Iterable[Reduction]] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Return the operators with which a finding fails as well: of reductions, then of members that the same code converts.

    What is made of several operators, of which one fails, is not meant, nor what was reduced to another operator inside: of
    other arguments it may be made of others (`matmul` of vectors is no `mm`).
    """
    group = list(group)
    inner = {
        told[x.test].operator
        for x in group
        for of in reductions.get(x.test, ())
        if x.test in told and _is_of(of, x) and not _calls(of, told[x.test].operator)
    }

    def code(outcome: Outcome) -> str:
        return location.canonical(re.sub(r"\[.*\]$", "", outcome.conversion_function))

    def names(operator: str) -> bool:
        return bare(location.canonical(operator)) in where.replace("_", "").lower()

    where, of = code(chosen.verdict.outcome), chosen.reduction.program().program if chosen.reduction else None
    if of is None or JOINED in of.operator or not where or where.startswith(location.EXPANDED):
        return chosen.alike
    if any(
        isinstance(x, Message) for call in of.instances() for x in call.params.values()
    ):  # it has bodies of operators
        return chosen.alike
    members = (told[x.test].operator for x in group if x.test in told and code(x.outcome) == where)
    fit = (x for x in members if JOINED not in x and names(x) == names(of.operator))
    more = (x for x in fit if x not in chosen.unlike and x not in inner)
    return tuple(dict.fromkeys((*chosen.alike, *more)))


def _is_of(of: Reduction, verdict: Verdict) -> bool:
    """Whether a reduction of a verdict's test is of that frontend, in that environment: another may fail of something else."""
    return (of.frontend, of.environment) == (verdict.frontend, verdict.environment)


def _calls(of: Reduction, operator: str) -> bool:
    """Whether a reduced program calls an operator, by whatever of its names."""
    return location.canonical(operator) in map(location.canonical, of.program().program.operators)


def _sentence(
    chosen: Choice, group: Iterable[Verdict], told: dict[str, Origin], known: _Known, laid: Blame | None
) -> str:
    """Say what is wrong, of the program that the script shows."""
    shown, of = chosen.verdict, chosen.reduction
    name, _, library = shown.frontend.rpartition("-")
    runtime = blame.runtime(shown.frontend, laid)
    body = blame.body(laid)
    compiler = compilers.title(runtime or known.environments.get(shown.environment, {}).get("compiler", shown.frontend))
    operator = told[chosen.member.test].operator if of is None else of.program().program.operator
    return sentence(
        f"{body}, as {compiler} runs it," if body else compiler,
        operator if body else chosen.called(operator),
        shown.outcome,
        chosen.told if body else chosen.sure,
        exporter=compilers.exporter(name, library) and not runtime,
        route=blame.route(chosen, laid),
        alike=alike(chosen, group, told, known.reductions),
        incidental=chosen.incidental,
    )


def _numbers(details: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the plain values among the details of a verdict, long texts shortened."""
    plain = {key: value for key, value in details.items() if isinstance(value, str | int | float) and value != ""}
    return {key: value[:500] if isinstance(value, str) else value for key, value in plain.items() if key != "log"}
