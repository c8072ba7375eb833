"""Drafts of issues: a finding as Markdown in the form of the tracker whose part is wrong. Nothing is ever sent.

templates/issues/TRACKER.md.j2 has the headings of a tracker's own form, trackers.toml says whose it is. The script is
run before it is shown: the short one (reproducers.brief) stands in the draft where it fails as found, else the reproducer.
"""

from __future__ import annotations

import itertools
import math
import platform
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import msgspec

from opera import compilers, libraries
from opera.errors import UsageError
from opera.libraries.documented import EMPTY as EMPTY_INPUTS
from opera.libraries.documented import Quote, special
from opera.oracle import declared, draws
from opera.oracle.messages import identifying, says
from opera.programs import migrated
from opera.programs.program import Instance, Program, Provenance, stated_version
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import (
    CRASH,
    DISPUTED,
    INCONSISTENT,
    NEWER,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.report import quoting, running, searching, trackers
from opera.report.issue import Draft
from opera.report.others import GIVEN_AS, others
from opera.report.page import Page, borne_out, page
from opera.sources import makes
from opera.store import families, instances, tests
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import blame, disputed, failure, part, reduction
from opera.triage.conditions import dtypes
from opera.triage.distinct import causes
from opera.triage.doubts import NOT_SHOWN
from opera.triage.failure import quiet
from opera.triage.findings import Finding, alike, findings, programs
from opera.triage.known import Entry, Known
from opera.triage.reproducers import brief, reproducer, scripts
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.reproducers.scripts import Trial
from opera.triage.sentence import brief as named_briefly
from opera.triage.sentence import cut, listed, said, title
from opera.triage.shrink import smaller

COMMON = frozenset(("float32", "int64", "bool"))
"""Dtypes that a title needs not name, but for truth values that come first: these are computed with."""
UNTOLD = frozenset(("constants", "oldest-opset"))
"""Variants that give it the library's own model: of some, tensors that are fed else are constants."""
TOLERANCE = "rtol {rtol:g} and atol {atol:g} are allowed: opera's tolerance for the dtype, or the test's own if larger"
"""What is said of a number that is off by little, for which nobody found others that are off by more."""
WIDE = 160
"""Characters of a line of a model that is told beside the script's, at most."""
TITLE = 160
"""Characters of a title, at most."""
ROOM = 50
"""Characters of what an operator is given that a title has room for."""
FOLD = 60
"""A script of more lines is folded."""
LISTED, NAME = 3, 80
"""Tests that are named, and characters of a name."""
BEHIND = 2
"""Findings that are told as what may be met once another is mended."""
TRAINS = frozenset(("training", "train", "call.training"))
"""Parameters by which a call trains."""


def draft(workspace: Workspace, name: str, tracker: str = "", issues: Known | None = None) -> Draft:
    """Return the draft of a finding, or of a test of the library's own whose expectation is disputed.

    Raises UsageError for what is neither, with what became of it, and for an unknown tracker. `issues` are the known ones.
    """
    members = scripts.members(workspace)
    known = [x for x in causes.resolve(workspace, name) if x in members]
    meant = [test for kind, test in instances.matching(workspace, name, 2) if kind == "test"] if name else []
    if not known and len(meant) == 1:
        return _of_disputed(workspace, meant[0], tracker)
    chosen = causes.named(workspace, name, members)
    finding = findings(workspace, only=chosen)[0]
    return _of_finding(workspace, finding, tracker, issues.within_workspace(workspace) if issues is not None else None)


# ---------------------------------------------------------------------- a finding


def _of_finding(workspace: Workspace, finding: Finding, tracker: str, issues: Known | None) -> Draft:
    told = page(workspace, finding)
    of = list(causes.members(workspace, finding.id, finding.environment))
    held = {x.test for x in of}
    chosen = choose(workspace, of)
    shown = chosen or Choice(of[0], of[0])
    outcome, frontend = shown.verdict.outcome, shown.verdict.frontend
    library, kind = finding.frontend.rpartition("-")[2], frontend.rpartition("-")[2]
    program = workspace.instance(tests.test(workspace, shown.verdict.test).instance)
    runtime = blame.runtime(finding.frontend, told.blame)
    exporter = compilers.exporter(finding.frontend.rpartition("-")[0], library) and not runtime
    body = blame.body(told.blame)
    wanted = tracker or searching.tracker(finding.frontend, frontend, told.blame)
    by = blame.route(shown, told.blame)
    quoted = tuple(quoting.quotes(program, shown, outcome))
    also = alike(shown, of, tests.origins(workspace, held), reduction.by_member(workspace, held))
    line = partial(
        title,
        _what(program, told, shown, quoted, body) + _trains(program, shown),
        outcome,
        shown.told if body else shown.sure,
        exporter=exporter,
        alike=also if shown.incidental else (),
        incidental=shown.incidental,
    )
    begins = (
        trackers.named(wanted).title if runtime or body else trackers.prefix(wanted, frontend, shown.verdict.variant)
    )
    begins += f"{body} {'behind' if runtime else 'of'} " if body else ""
    environment = scripts.environment(workspace, shown)
    script, trial, short = running.script(workspace, finding, chosen, body=bool(body))
    hidden = running.private(workspace, workspace.interpreter(finding.environment))
    apart = causes.apart(workspace, of) - {shown.member.test}
    like = {x.test for x in of if _fails_so(x.outcome, outcome)} - apart
    like = _seeded(workspace, like, outcome) & _of_dtypes(workspace, like, shown.deciding) | {shown.member.test}
    own = [name for test, name in zip(finding.members, finding.origins, strict=True) if test in like]
    names = list(dict.fromkeys(filter(None, own)))
    seen = workspace.provenances(tests.test(workspace, shown.member.test).instance)
    return Draft(
        finding=finding.id,
        tracker=wanted,
        form=trackers.named(wanted).form,
        search=searching.address(
            wanted, "" if shown.incidental else program.operator, searching.decides(shown), outcome
        ),
        title=_titled(begins, line, by, hidden),
        sentence=_in_a_row(told.sentence, hidden),
        library=trackers.TITLES.get(library, library),
        framework=trackers.TITLES.get(kind, kind),
        importer=trackers.importer(frontend, shown.verdict.variant),
        frontend=frontend,
        shows=outcome,
        not_to_file=tuple(_objections(finding, chosen, trial, issues.of(finding) if issues is not None else None)),
        expected=(*(f"{x.name} = {x.expected}" for x in told.outputs), *_varies(outcome)),
        actual=(
            *_route(workspace, shown),
            *_kept(script, short=short),
            *_actual(told, outcome),
            *told.remarks,
            *_held(shown),
            *_all_the_same(trial),
            *_seldom(trial),
        ),
        says=running.hide(_says(outcome, told.sentence), hidden),
        model=told.model,
        contrasts=told.contrasts,
        written=told.written,
        passing=told.passing if all(len(x) <= WIDE for x in told.passing) else (),
        seems=told.seems if not (told.passing or shown.alone) or borne_out(shown.reduction, told.seems) else "",
        script=script,
        folded=len(script.splitlines()) > FOLD,
        exit_codes=not short,
        log=running.hide(running.excerpt(trial.text, _words(outcome)), hidden) if trial else "",
        reduced=told.reduced,
        origin=told.origin,
        whose=_whose(seen),
        file=_file(seen),
        quotes=quoted,
        others=tuple(others(told, outcome)),
        versions=trackers.versions(environment),
        system=_system(environment),
        opset=_opset(program, script),
        exporter=exporter,
        siblings=_siblings(told, program),
        behind=tuple(
            _in_a_row(x.sentence, hidden) for x in itertools.islice(_behind(workspace, finding, issues), BEHIND)
        ),
        blame="" if NEWER in finding.tags else _laid(told.blame, outcome),
        members=len(own),
        named=tuple(_named(names)) if len(names) > 1 else (),
        claimed=str(outcome.details.get("claimed", "")),
        reference=_reference(workspace, shown, program),
        since=getattr(told, "since", ""),
    )


def _in_a_row(sentence: str, hidden: Iterable[str]) -> str:
    """Return a sentence without its full stop, for a template has one."""
    return re.sub(r"(?<!\.)\.$", "", running.hide(sentence, hidden))


def _titled(begins: str, line: Callable[..., str], route: str, hidden: Iterable[str]) -> str:
    """Return a title, of how the model came to the compiler the first part alone where the whole leaves no room."""
    whole = begins + line(route=route)
    return cut(
        running.hide(whole if len(whole) <= TITLE else begins + line(route=route.partition(";")[0]), hidden), TITLE
    )


def _what(program: Program, told: Page, shown: Choice, quoted: Iterable[Quote] = (), body: str = "") -> str:
    """Return the operator as it is called by a reduced program; of what is not reduced, with what is uncommon in what it is
    given: dtypes, an empty input, parameters not the default, and those on which the rule hangs that is quoted.
    """
    if shown.reduction is not None and not body:
        return shown.called(program.operator, ROOM)
    if shown.told:
        return program.operator
    tensors = [x.value for x in program.inputs if isinstance(x.value, Tensor | RandomTensor)]
    calls = program.instances()
    reduced = shown.reduction is not None
    fixed = _fixed(calls[0]) if len(calls) == 1 else frozenset()
    free = [x.value for x in program.inputs if x.name not in fixed]
    dtypes = list(dict.fromkeys(x.dtype for x in free if isinstance(x, Tensor | RandomTensor)))
    given = [] if reduced or (COMMON.issuperset(dtypes) and "bool" not in dtypes[:1]) else dtypes
    given += ["empty input"] if tensors and 0 in tensors[0].shape and not reduced else []
    given += [words for words, pattern in special(calls[0]) if pattern != EMPTY_INPUTS] if len(calls) == 1 else []
    others = [f"{x.name}={x.value}" for x in told.parameters if x.mark.startswith("default")]
    given += others if len(others) <= 2 and reduced and len(calls) == 1 else []
    given += quoting.ruled(calls[0], quoted) if len(calls) == 1 else []
    if body:  # a definition is read with the number at hand that shows it
        given += [f"{x.name}={x.value.numbers().item()}" for x in program.inputs if _single(x.value)]
    return f"{program.operator} ({', '.join(given)})" if given else program.operator


def _single(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype != "string" and math.prod(value.shape) == 1


def _trains(program: Program, shown: Choice) -> str:
    """Say of draws that a call trains, unless that is known to decide: in inference it would draw nothing."""
    calls = program.instances()
    told = "drawn" not in shown.verdict.outcome.details or any("training" in x for x in shown.deciding)
    trains = (x.context.get("training") or any(x.params.get(name) is True for name in TRAINS) for x in calls)
    return " (training=True)" if not told and any(trains) else ""


def _fixed(call: Instance) -> frozenset[str]:
    """Return the names of the inputs that say nothing by their dtype, for the operator takes no other."""
    library: Any = libraries.get(call.library)
    try:
        found: frozenset[str] = library.fixed(call) if hasattr(library, "fixed") else frozenset()
    except ImportError:
        return frozenset()
    return found


def _behind(workspace: Workspace, finding: Finding, issues: Known | None) -> Iterator[Finding]:
    """Yield what else fails that was made of tests of a finding, if nothing but its turn speaks against filing that."""
    names = {name for name, _ in causes.behind(workspace, finding.id, finding.origins)}
    for x in findings(workspace, environment=finding.environment) if names else ():
        if x.id in names and (not x.doubts or x.follows == finding.id) and (issues is None or issues.of(x) is None):
            yield x


def _objections(finding: Finding, chosen: Choice | None, trial: Trial | None, entry: Entry | None) -> Iterator[str]:
    """Yield why a finding should not be filed as it stands."""
    if entry is not None:
        more = ": ".join(filter(None, (entry.status, entry.issue or entry.reason or entry.note)))
        yield f"it is known ({more})"
    if chosen is None:
        yield "there is no script: no test is left that shows it alone"
    elif trial is None or not trial.shown:
        seldom = f", but in {trial.runs[0]} of {trial.runs[1]} runs" if trial and trial.runs[0] else ""
        yield f"its script does not show it here and now{seldom}: {_last(trial.text) if trial else 'it could not be run'}"
    yield from (x for x in finding.doubts if not x.startswith(NOT_SHOWN))  # it was run just now


def _last(text: str) -> str:
    return next((x for x in reversed(text.splitlines()) if x.strip()), "it printed nothing")[:200]


def _seldom(trial: Trial | None) -> Iterator[str]:
    """Say in how many runs it is so, where not in all."""
    if trial is not None and trial.shown and trial.runs[0] < trial.runs[1]:
        yield f"in {trial.runs[0]} of {trial.runs[1]} runs of the script"


def _route(workspace: Workspace, shown: Choice) -> Iterator[str]:
    """Say how the model is given, where it is not by the frontend's first route; of one that holds constants, which."""
    compiler, _, library = shown.verdict.frontend.rpartition("-")
    first, *_ = compilers.frontend(compiler, library).VARIANTS
    variant, folder = shown.verdict.variant, migrated.folder(workspace.tests_folder, shown.verdict.test)
    if variant not in (first.name, *UNTOLD):
        yield f"the model is given as {GIVEN_AS.get(variant, variant)}"
    manifest = (
        migrated.read_manifest(folder) if variant == "constants" and (folder / "manifest.json").is_file() else None
    )
    if held := manifest.constants if manifest else ():
        alone = shown.reduction.constant if shown.reduction is not None and len(held) > 1 else ()
        runs = "it is right" if shown.verdict.outcome.verdict == INCONSISTENT else "it runs"
        says = {"it fails so": [x for x, fails in alone if fails], runs: [x for x, fails in alone if not fails]}
        more = "".join(f"; {does} where {dtypes.either(of)} alone is a constant" for does, of in says.items() if of)
        yield f"in the model below {listed(held)} {'are initializers' if len(held) > 1 else 'is an initializer'}{more}"


def _kept(script: str, *, short: bool) -> Iterator[str]:
    """Say by which option of the importer it fails, where it does not by default."""
    if short and "keep_params_in_input=True" in script:
        yield "it is so with keep_params_in_input=True: as it is imported by default, it does not fail so"


def _varies(outcome: Outcome) -> Iterator[str]:
    """Say whether drawn numbers should be others from run to run, where that is what is wrong."""
    match outcome.details.get("drawn"):
        case draws.SEED:
            yield "two models that are compiled with one seed draw the same numbers"
        case draws.CONSTANT | draws.ELEMENT:
            yield "other numbers from run to run"


def _actual(told: Page, outcome: Outcome) -> Iterator[str]:
    for x in told.outputs:
        if x.actual:
            yield f"{x.name} = {x.actual}"
    if outcome.verdict == UNSTABLE:
        yield "computed in processes whose fresh memory holds other bytes (MALLOC_PERTURB_), the outputs differ"
    if quiet(outcome) and "rtol" in outcome.details:
        yield f"it is off by {outcome.details.get('max_rel', 0.0):.2g} relatively; {TOLERANCE.format(**outcome.details)}"
    if outcome.verdict == INCONSISTENT and not any(x.actual for x in told.outputs) and "drawn" not in outcome.details:
        yield outcome.message


def _held(shown: Choice) -> Iterator[str]:
    """Say what is said in place of the message where an input is a constant of the model: one mend is for both."""
    for name, text in shown.reduction.held if shown.reduction is not None else ():
        yield f"with {name} as a constant it fails, too: {text[:300]}"


def _all_the_same(trial: Trial | None) -> list[str]:
    """Return what the runtime makes of a model that the checker refuses, as the script printed it."""
    return re.findall(
        r"(?m)^(ONNX Runtime (?:loads it all the same|does not take it, either).*)$", trial.text if trial else ""
    )


def _words(outcome: Outcome) -> str:
    """Return the message of what stops, nothing of wrong outputs."""
    return outcome.message if outcome.verdict in (CRASH, REFUSED) else ""


def _fails_so(member: Outcome, shown: Outcome) -> bool:
    """Whether a member fails as is told: others of the same cause may stop in other words, or elsewhere, or be wrong otherwise:
    NaN for a number is no large number for an infinity."""
    same = (member.verdict, member.symptom) == (shown.verdict, shown.symptom)
    same = same and (shown.verdict != INCONSISTENT or failure.returned(member) == failure.returned(shown))
    return same and (not _words(shown) or says(member.message, identifying(shown.message)))


def _of_dtypes(workspace: Workspace, of: Collection[str], deciding: Iterable[str]) -> set[str]:
    """Return those of some tests that have an input of a dtype which is told to decide, or may make one of it: a call that has
    none, and states no dtype, fails of something else in the same way. What is no call of these days is left out, too.
    """
    kinds = [x for x in map(dtypes.members, deciding) if x]
    if not kinds:
        return set(of)
    return {test for test, program in programs(tests.documents(workspace, of)) if _has(program, kinds)}


def _seeded(workspace: Workspace, of: Collection[str], shown: Outcome) -> set[str]:
    """Return those of some tests that are given a seed, where it is one that should make two models draw the same numbers: the
    others draw as they may."""
    if shown.details.get("drawn") != draws.SEED:
        return set(of)
    known = programs(tests.documents(workspace, of))
    return {test for test, program in known if any(map(declared.seeded, program.instances()))}


def _has(program: Program, kinds: Iterable[frozenset[str]]) -> bool:
    stated = isinstance(program, Instance) and any(map(dtypes.name_of, program.params.values()))
    held = {x.dtype for x in smaller.leaves(program)}
    return not isinstance(program, Instance) or stated or all(held & kind for kind in kinds)


BINDINGS = ".pxi"
"""How files of Cython end that packages call native code by."""


def _laid(laid: blame.Blame | None, outcome: Outcome) -> str:
    """Return which part is wrong, where that is known, and by which code: that which converts the operator, unless an import
    stops outside of it, and not in the bindings that all of it comes by (`function.pxi`). What was raised from something else,
    as exporters do, does not tell by its frames."""
    if laid is None or laid.verdict == part.UNKNOWN:
        return ""
    code = blame.converter(laid)
    seen = outcome.seen if laid.verdict == compilers.CONVERSION and outcome.stage == "load" else None
    frames = seen.frames if seen is not None and len(seen.raised) < 2 else ()
    at, _, function = outcome.location.partition(":")
    called = [f".{x.rpartition(':')[0].rpartition(':')[2]}" for x in frames]

    def through(name: str) -> bool:
        return bool(name) and any(x.endswith(f".{name}") for x in called)

    if code and not at.endswith(BINDINGS) and through(function) and not through(code.partition(" (")[0]):
        return f"{laid.verdict}: {laid.because}; it is raised in {function} ({at})"
    return f"{laid.verdict}: {laid.because}{f'; it is converted by {code}' if code else ''}"


def _says(outcome: Outcome, sentence: str) -> str:
    """Return what a crash says, where the sentence on it has not all of that."""
    text = said(outcome, 1500) if outcome.verdict in (CRASH, REFUSED) else ""
    return "" if text in sentence else text


def _reference(workspace: Workspace, shown: Choice, program: Program) -> str:
    """Say whose the expected outputs are, and which operators opera computes itself, for the reference gets them wrong."""
    directory = migrated.folder(workspace.tests_folder, shown.verdict.test)
    if not (directory / "manifest.json").is_file():
        return ""
    by = migrated.read_manifest(directory).reference
    name = trackers.TITLES.get(program.library, program.library)
    whose = {
        "test": "stated by that test",
        "eager": f"those of {name} itself, run eagerly",
        "evaluator": f"those of {name}'s reference evaluator",
    }
    own = [x for x in dict.fromkeys(program.operators) if by == "evaluator" and x in _mended(program.library)]
    but = f", in which opera computes {listed(own)} itself, as documented" if own else ""
    return f"the expected outputs are {whose.get(by, f'by the {by}')}{but}"


def _mended(library: str) -> Collection[str]:
    """Return the operators that opera computes in the place of a library's reference; none where it is not here to ask."""
    made = libraries.get(library)
    with suppress(ImportError):
        return cast(libraries.Mending, made).mended() if hasattr(made, "mended") else ()
    return ()


def _file(seen: Sequence[Provenance]) -> str:
    return seen[0].file if seen else ""


def _whose(seen: Sequence[Provenance]) -> str:
    """Return what made the test that it was found by, in words; nothing where people wrote it."""
    sources = [x.source for x in seen]
    if not sources or families.TESTS in map(families.family, sources):
        return ""
    return makes(sources[0]) or f"inputs that {sources[0]} made"


def _siblings(told: Page, program: Program) -> str:
    """Return the other operators of which findings of the workspace say the same."""
    names = dict.fromkeys(named_briefly(operator) for _, operator in told.twins)
    own = named_briefly(program.operator)
    return listed([x for x in names if x != own])


def _opset(program: Program, script: str) -> str:
    """Return the opset of the model that a script builds, else the one that a call states, of its own domain."""
    if found := re.search(r"make_opsetid\(['\"]{2}, (\d+)\)", script):
        return f"opset {found[1]}"
    for call in program.instances():
        version, domain = stated_version(call), call.operator.rpartition("::")[0]
        if version is not None:
            return f"opset {version}{f' of {domain}' if domain else ''}"
    return ""


def _system(environment: dict[str, Any]) -> str:
    """Return the operating system, machine and Python, and what the CPU's vectors are, for kernels are chosen by these."""
    import numpy as np

    machine, python = environment.get("machine", ""), environment.get("python", "")
    vectors = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    cpu = f" with {vectors[-1]}" if vectors else ""
    return f"{platform.system()} {machine}{cpu}, Python {python}"


# ---------------------------------------------------------------------- a test whose expectation is disputed


def _of_disputed(workspace: Workspace, test: str, tracker: str) -> Draft:
    """Return the draft against a library's own test. Raises UsageError where the test is not disputed: it is told why not."""
    found = next((x for x in disputed.disputed(workspace) if x.test == test), None)
    if found is None:
        raise UsageError(
            f"test {test} makes no issue: {_why(stored.of_test(workspace, test))}",
            fix="`opera findings` lists what does",
        )
    verdict = next(x for x in stored.of_test(workspace, test) if x.outcome.details.get("screen") == DISPUTED)
    wanted = tracker or next((name for name, of in trackers.trackers().items() if found.library in of.libraries), "")
    program = workspace.instance(tests.test(workspace, test).instance)
    choice = Choice(verdict, verdict)
    environment = workspace.environments()[verdict.environment]
    shown = scripts.exhibited(workspace, f"test {test}", choice)
    exhibit = msgspec.structs.replace(shown[0], verdict=INCONSISTENT, sentence=found.message)
    short = brief.brief(exhibit, *shown[1:])
    text = short.script(exhibit) if short else reproducer.render(exhibit, *shown[1:])
    trial = running.run(text, test, workspace.interpreter(verdict.environment))
    hidden = running.private(workspace, workspace.interpreter(verdict.environment))
    library = trackers.TITLES.get(found.library, found.library)
    agreeing = [
        compilers.title(x) if x in compilers.registered() else trackers.TITLES.get(x, x) for x in found.compilers
    ]
    of = trackers.named(wanted)
    return Draft(
        finding=f"test {test}",
        tracker=wanted,
        form=of.form,
        search=searching.address(wanted, program.operator, (), verdict.outcome),
        title=running.hide(f"{of.title}{found.where}: expected output contradicted by {_and(agreeing)}", hidden),
        sentence=f"{found.where} states outputs that {_and(agreeing)} agree to contradict",
        library=library,
        framework=library,
        frontend=verdict.frontend,
        shows=verdict.outcome,
        actual=(found.message,),
        script=text,
        folded=len(text.splitlines()) > FOLD,
        exit_codes=short is None,
        log=running.hide(running.excerpt(trial.text), hidden),
        origin=found.names[0] if found.names else "",
        file=_file(workspace.provenances(tests.test(workspace, test).instance)),
        quotes=tuple(quoting.quotes(program, choice, verdict.outcome)),
        others=tuple(f"{x}: contradicts the test" for x in agreeing),
        versions=trackers.versions(environment),
        system=_system(environment),
        named=tuple(_named(found.names)),
        reference="the expected outputs are stated by that test",
    )  # fmt: skip


def _named(names: Iterable[str]) -> list[str]:
    """Return the shortest names of tests, each cut where it is long."""
    some = sorted(names, key=len)[:LISTED]
    return [x if len(x) <= NAME else f"{x[:NAME]}…" for x in some]


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _why(seen: Iterable[Verdict]) -> str:
    """Say what became of a test that no issue can be made of."""
    told = list(seen)
    verdicts = {x.outcome.verdict for x in told}
    if not told:
        return "no compiler ran it"
    if any(x.finding for x in told):
        return f"it is a member of {', '.join(sorted({x.finding for x in told if x.finding}))}: give that"
    if verdicts <= {PASS}:
        return "it passes"
    parts = []
    for x in told:
        outcome = x.outcome
        detail = (
            outcome.details.get("reason") or outcome.details.get("screen") or said(outcome)
            if outcome.verdict != PASS
            else ""
        )
        meaning = {
            UNSUPPORTED: "says that it is not supported",
            SCREENED: "differs for another reason",
            "error": "opera itself failed",
        }
        parts.append(f"{x.frontend}: {meaning.get(outcome.verdict, outcome.verdict)}{f' ({detail})' if detail else ''}")
    return "; ".join(dict.fromkeys(parts))
