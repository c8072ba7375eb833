"""Drafts of issues: a finding as Markdown in the form of the tracker whose part is wrong. Nothing is ever sent.

templates/issues/TRACKER.md.j2 has the headings of a tracker's own form, trackers.toml says whose it is. The script is
run before it is shown: the short one (opera.triage.brief) stands in the draft where it fails as found, else the reproducer.
"""

from __future__ import annotations

import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera import compilers, libraries, resources
from opera.errors import UsageError
from opera.libraries.documented import Quote
from opera.oracle import messages
from opera.programs import migrated
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    DISPUTED,
    INCONSISTENT,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.report.page import Page, page
from opera.report.words import clean
from opera.store import instances, tests
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import brief, causes, disputed, part, reproducer, scripts
from opera.triage.choice import Choice, choose
from opera.triage.findings import Finding, findings
from opera.triage.known import Entry, Known
from opera.triage.reproducer import Exhibit
from opera.triage.scripts import Trial
from opera.triage.sentence import said, title

COMMON = ("float32", "int64", "bool")
"""Dtypes that a title needs not name."""
TITLES = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}
"""Library → what it is called in prose."""
ROUTES = {
    "inputs": "a model whose tensors are all graph inputs",
    "constants": "a model that holds shapes, axes and the like as constants",
    "oldest-opset": "a model of the oldest opset that means the same",
    "exported-program": "an exported program (torch.export)",
    "torchscript": "traced TorchScript",
    "onnx": "an exported ONNX model",
    "tflite": "an exported TFLite model",
    "saved-model": "a SavedModel",
    "live": "the live model",
    "openvino": "the library's own OpenVINO export",
    "xnnpack": "an exported program, what can be of it for XNNPACK",
    "portable": "an exported program, by its portable kernels alone",
}
"""Variant of a frontend → what the compiler is given, in words."""
CONFIRMS = "gives the expected outputs"
"""What is said of another compiler that passes."""
FOLD = 60
"""A script of more lines is folded."""
WIDEST = 1000
"""Characters of a line of that."""
PRINTED = 20_000
"""Characters of what a script printed that are looked at; a draft shows HEAD and TAIL lines of the part that matters."""
HEAD, TAIL = 8, 22
LISTED = 5
"""Tests that are named."""


class Tracker(msgspec.Struct, frozen=True):
    """Where issues go: see templates/issues/trackers.toml. `template` is the tracker's name where none is given."""

    form: str
    template: str = ""
    title: str = ""
    compilers: tuple[str, ...] = ()
    frontends: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """What a template is filled with; texts may hold a compiler's words, and are escaped there.

    Attributes:
        title, sentence: One line each.
        not_to_file: Why it should not be filed as it stands; empty where nothing speaks against it.
        shows: What the member shows.
        expected, actual: Lines; `says`: what the compiler says of a crash.
        script: The script; `folded` where it is long, `exit_codes` where it is the reproducer.
        log: What it printed of the failure.
        reduced: Whether it is of a reduction; `origin` the test that it was made of.
        quotes: Of the documentation.
        others: What other compilers do with the same model.
        versions: Name → version, the compiler's first; `system`: operating system and Python; `opset`: of the model.
        exporter: Whether it is an exporter that is under test.
        blame: Which part is wrong, with what says so.
        members: How many tests fail alike, and names of some.
        claimed: What the compiler declares to support against its own refusal.
        reference: Whose the expected outputs are; `since`: since which release it fails, where that was asked.
    """

    finding: str
    tracker: str
    form: str
    title: str
    sentence: str
    library: str
    frontend: str
    shows: Outcome
    not_to_file: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    actual: tuple[str, ...] = ()
    says: str = ""
    model: tuple[str, ...] = ()
    script: str = ""
    folded: bool = False
    exit_codes: bool = False
    log: str = ""
    reduced: bool = False
    origin: str = ""
    file: str = ""
    quotes: tuple[Quote, ...] = ()
    others: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    system: str = ""
    opset: str = ""
    exporter: bool = False
    blame: str = ""
    members: int = 1
    named: tuple[str, ...] = ()
    claimed: str = ""
    reference: str = ""
    since: str = ""


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
    entry = issues.within_workspace(workspace).of(finding) if issues is not None else None
    return _of_finding(workspace, finding, tracker, entry)


# ---------------------------------------------------------------------- a finding


def _of_finding(workspace: Workspace, finding: Finding, tracker: str, entry: Entry | None) -> Draft:
    told = page(workspace, finding)
    of = list(causes.members(workspace, finding.id, finding.environment))
    chosen = choose(workspace, of)
    shown = chosen or Choice(of[0], of[0])
    outcome, library = shown.verdict.outcome, finding.frontend.rpartition("-")[2]
    program = workspace.instance(tests.test(workspace, shown.verdict.test).instance)
    exporter = compilers.exporter(finding.frontend.rpartition("-")[0], library)
    wanted = tracker or default(finding.frontend, told.blame.verdict if told.blame else "")
    line = title(_what(program, told, shown), outcome, shown.deciding, exporter=exporter)
    environment = workspace.environments()[finding.environment]
    script, trial, short = _script(workspace, finding, chosen)
    hidden = _private(workspace, workspace.interpreter(finding.environment))
    names = list(dict.fromkeys(filter(None, finding.origins)))
    return Draft(
        finding=finding.id,
        tracker=wanted,
        form=_tracker(wanted).form,
        title=hide(_prefix(wanted, finding.frontend) + line, hidden),
        sentence=re.sub(r"(?<!\.)\.$", "", hide(told.sentence, hidden)),
        library=TITLES.get(library, library),
        frontend=finding.frontend,
        shows=outcome,
        not_to_file=tuple(_objections(finding, chosen, trial, entry)),
        expected=tuple(f"{x.name} = {x.expected}" for x in told.outputs),
        actual=(*_route(finding, shown), *_actual(told, outcome)),
        says=hide(said(outcome, 1500), hidden) if outcome.verdict in (CRASH, REFUSED) else "",
        model=told.model,
        script=script,
        folded=len(script.splitlines()) > FOLD,
        exit_codes=not short,
        log=hide(excerpt(trial.text), hidden) if trial else "",
        reduced=told.reduced,
        origin=told.origin,
        file=_file(workspace, shown),
        quotes=tuple(_quotes(program, shown, outcome)),
        others=tuple(_others(told)),
        versions=_versions(environment),
        system=_system(environment),
        opset=_opset(program),
        exporter=exporter,
        blame=_laid(told),
        members=len(finding.members),
        named=tuple(names[:LISTED]) if len(names) > 1 else (),
        claimed=str(outcome.details.get("claimed", "")),
        reference=_reference(workspace, shown, library),
        since=getattr(told, "since", ""),
    )


def default(frontend: str, laid: str) -> str:
    """Return the tracker of the part that is wrong: the library's where it is to blame, else the compiler's or exporter's."""
    compiler, _, library = frontend.rpartition("-")
    for name, of in trackers().items():
        if library in of.libraries if laid == part.LIBRARY else frontend in of.frontends or compiler in of.compilers:
            return name
    raise UsageError(
        f"no form of a tracker is known for {frontend}", fix=f"choose one: --tracker {', '.join(trackers())}"
    )


@cache
def _declared() -> dict[str, Any]:
    return resources.declaration("templates/issues", "trackers")


@cache
def trackers() -> dict[str, Tracker]:
    """Return the trackers whose forms are known."""
    return msgspec.convert(_declared()["tracker"], dict[str, Tracker])


def _versions(environment: dict[str, Any]) -> dict[str, str]:
    """Return name → version of the compiler, and of what made the model, the compiler's first."""
    compiler, exporter = environment["compiler"], reproducer.named(environment["exporter"])
    of = _declared()["version_of"].get(compiler, compilers.title(compiler))
    return exporter if of in exporter else {of: environment["version"], **exporter}


def _tracker(name: str) -> Tracker:
    if name not in trackers():
        raise UsageError(f"there is no form for a tracker called {name!r}", fix=f"one of {', '.join(trackers())}")
    return trackers()[name]


def _prefix(name: str, frontend: str) -> str:
    """Return what titles begin with: the tracker's own word, and which frontend of several, or which exporter."""
    tracker, (compiler, _, library) = _tracker(name), frontend.rpartition("-")
    if library in tracker.libraries:
        return f"{tracker.title}[{compilers.title(compiler).removeprefix('The ')}] "
    several = len(compilers.get(compiler).FRONTENDS) > 1
    return tracker.title + (f"[{TITLES.get(library, library)}] " if several else "")


def _what(program: Program, told: Page, shown: Choice) -> str:
    """Return the operator, with what is uncommon in what it is given: dtypes, an empty input, parameters not the default.

    These stand in brackets: nothing says that they decide.
    """
    tensors = [x.value for x in program.inputs if isinstance(x.value, Tensor | RandomTensor)]
    dtypes = list(dict.fromkeys(x.dtype for x in tensors))
    common = not dtypes or (dtypes[0] == COMMON[0] and set(dtypes) <= set(COMMON))
    rare = [] if common or any(x in text for x in dtypes for text in shown.deciding) else dtypes
    given = [
        *rare,
        *(["empty input"] if tensors and 0 in tensors[0].shape and "an empty input" not in shown.deciding else []),
    ]
    decided = {x.partition("=")[0].rpartition(".")[2].strip() for x in shown.deciding}
    others = [f"{x.name}={x.value}" for x in told.parameters if x.mark.startswith("default") and x.name not in decided]
    given += others if len(others) <= 2 and told.reduced else []
    return f"{program.operator} ({', '.join(given)})" if given else program.operator


def _objections(finding: Finding, chosen: Choice | None, trial: Trial | None, entry: Entry | None) -> Iterator[str]:
    """Yield why a finding should not be filed as it stands."""
    if entry is not None:
        more = ": ".join(filter(None, (entry.status, entry.issue or entry.reason or entry.note)))
        yield f"it is known ({more})"
    if chosen is None:
        yield "nothing is left that shows it: its tests were deleted, or fail only after others in the same process"
    elif trial is None or not trial.shown:
        yield f"its script does not show it here and now: {_last(trial.text) if trial else 'it could not be run'}"
    yield from finding.doubts


def _last(text: str) -> str:
    return next((x for x in reversed(text.splitlines()) if x.strip()), "it printed nothing")[:200]


def _route(finding: Finding, shown: Choice) -> Iterator[str]:
    """Say by which route the model was loaded, where it is not the frontend's first."""
    compiler, _, library = finding.frontend.rpartition("-")
    first, *others = compilers.frontend(compiler, library).VARIANTS
    for x in others:
        if x.name == shown.verdict.variant:
            yield f"the model is loaded as {ROUTES.get(x.name, x.name)}, not as {ROUTES.get(first.name, first.name)}"


def _actual(told: Page, outcome: Outcome) -> Iterator[str]:
    for x in told.outputs:
        if x.actual:
            yield f"{x.name} = {x.actual}"
    if outcome.verdict == UNSTABLE:
        yield "computed in processes whose fresh memory holds other bytes (MALLOC_PERTURB_), the outputs differ"
    if outcome.verdict == INCONSISTENT and not any(x.actual for x in told.outputs) and "drawn" not in outcome.details:
        yield outcome.message


def _others(told: Page) -> list[str]:
    """Return what others make of the same model, as blame asked of it; else, told so, of the test before it was reduced."""
    found = []
    for row in told.asked:
        if does := _does(row.shows):
            found.append(f"{_called(*row.way.split(' ', 1))} {does}{f' ({row.remark})' if row.remark else ''}")
    for where, shown in told.elsewhere.items() if not told.asked else ():
        frontend, _, rest = where.partition(" ")
        if does := _does(shown):
            whole = " the test before it was reduced" if told.reduced else ""
            found.append(f"{_called(frontend.rpartition('-')[0], rest)} {does}{f', given{whole}' if whole else ''}")
    return found


def _called(name: str, version: str) -> str:
    """Return what a compiler is called, with its version, and with what the version is of where that has another name."""
    of = _declared()["version_of"].get(name, "")
    return f"{compilers.title(name)} ({of} {version})" if of else f"{compilers.title(name)} {version}"


def _does(shown: str) -> str:
    """Return in few words what a verdict says; nothing where it says nothing of the model."""
    verdict, _, rest = shown.partition(":")
    words = {
        PASS: CONFIRMS, "passes": CONFIRMS, INCONSISTENT: "is wrong, too",
        UNSUPPORTED: "does not support it", REFUSED: "refuses it", ABORT: "kills the process",
        UNSTABLE: "gives varying outputs",
    }  # fmt: skip
    kind = verdict.split(" ")[0]
    return f"fails otherwise: {' '.join(rest.split())[:110]}" if kind == CRASH else words.get(kind, "")


def _laid(told: Page) -> str:
    if told.blame is None or told.blame.verdict == part.UNKNOWN:
        return ""
    return f"{told.blame.verdict}: {told.blame.because.partition('; fails only with ')[0]}"


def _quotes(program: Program, shown: Choice, outcome: Outcome) -> list[Quote]:
    """Return what the library's documentation says of a program of one call; nothing where the library is not here to ask."""
    calls = program.instances()
    library: Any = libraries.get(program.library)
    if len(calls) != 1 or not hasattr(library, "documented"):
        return []
    parameters = [x.partition("=")[0].strip() for x in shown.deciding if "=" in x]
    parameters += [x for x in _mentioned(calls[0], outcome) if x not in parameters]
    output = str(outcome.details.get("output", "")) if outcome.symptom in ("shape", "dtype") else ""
    try:
        return list(library.documented(calls[0], parameters, output))
    except ImportError:
        return []


def _mentioned(call: Instance, outcome: Outcome) -> Iterator[str]:
    """Yield what of a call a crash names: words that are no others' stand in quotes, or have an underscore."""
    text = said(outcome, 1500) if outcome.verdict in (CRASH, REFUSED) else ""
    for name in (*call.params, *(x.name for x in call.inputs if x.value is not None)):
        if re.search(rf"['`\"]{re.escape(name)}['`\"]" + (rf"|\b{re.escape(name)}\b" if "_" in name else ""), text):
            yield name


def _reference(workspace: Workspace, shown: Choice, library: str) -> str:
    """Say whose the expected outputs are."""
    directory = migrated.folder(workspace.tests_folder, shown.verdict.test)
    if not (directory / "manifest.json").is_file():
        return ""
    by = migrated.read_manifest(directory).reference
    name = TITLES.get(library, library)
    whose = {
        "test": "stated by that test",
        "eager": f"those of {name} itself, run eagerly",
        "evaluator": f"those of {name}'s reference evaluator",
    }
    return f"the expected outputs are {whose.get(by, f'by the {by}')}"


def _file(workspace: Workspace, shown: Choice) -> str:
    seen = workspace.provenances(tests.test(workspace, shown.member.test).instance)
    return seen[0].file if seen else ""


def _opset(program: Program) -> str:
    """Return the opset that a call states, of its own domain."""
    for call in program.instances():
        stated: Any = call.context.get("opset", {})
        domain = call.operator.rpartition("::")[0]
        if isinstance(stated, dict) and domain in stated:
            return f"opset {stated[domain]}{f' of {domain}' if domain else ''}"
    return ""


def _system(environment: dict[str, Any]) -> str:
    machine, python = environment.get("machine", ""), environment.get("python", "")
    return f"{platform.system()} {machine}, Python {python}"


# ---------------------------------------------------------------------- the script


def _script(workspace: Workspace, finding: Finding, chosen: Choice | None) -> tuple[str, Trial | None, bool]:
    """Return the script of a finding, what it did just now, and whether it is the short one."""
    if chosen is None:
        return "", None, False
    python = workspace.interpreter(finding.environment)
    shown = scripts.exhibited(workspace, finding.id, chosen)
    exhibit = shown[0]
    if exhibit.verdict in (CRASH, REFUSED, ABORT, INCONSISTENT) and (short := brief.brief(*shown)) is not None:
        text = short.script(exhibit)
        trial = _run(text, finding.id, python)
        trial = msgspec.structs.replace(trial, shown=_fails_so(exhibit, trial))
        if trial.shown:
            return text, trial, True
    text = reproducer.render(*shown)
    return text, _run(text, finding.id, python), False


def _run(text: str, name: str, python: str) -> Trial:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reproduce.py"
        path.write_text(text, encoding="utf-8")
        return scripts.verify(path, name, python=python, keep=PRINTED)


def excerpt(text: str) -> str:
    """Return what a script printed of its failure: comparisons, and the last traceback, its middle left out."""
    lines = messages.COLOURS.sub("", text).strip().splitlines()
    begin = max((place for place, line in enumerate(lines) if line.startswith("Traceback (most recent")), default=0)
    told = [line for line in lines[:begin] if re.match(r"\S+: (?:expected|got) ", line)]
    rest = [line for line in lines[begin:] if line.strip(" ^~") or not line]
    failed = next((place for place, line in enumerate(rest) if line.startswith("AssertionError")), 0)
    if told and failed:  # where a comparison was made says nothing
        rest = rest[failed:]
    if not begin and not told:
        return "\n".join(line[:WIDEST] for line in rest[-HEAD:])
    if len(rest) > HEAD + TAIL:
        rest = [*rest[:HEAD], f"[{len(rest) - HEAD - TAIL} lines left out]", *rest[-TAIL:]]
    return "\n".join([*told, *(line[:WIDEST] for line in rest)])


def _fails_so(exhibit: Exhibit, trial: Trial) -> bool:
    """Whether a short script, which has no exit codes of its own, failed as was found."""
    if exhibit.verdict == ABORT:
        return trial.code < 0 and exhibit.symptom == _signal(-trial.code)
    if trial.code != 1:
        return False
    if exhibit.verdict == INCONSISTENT:
        form = exhibit.symptom in ("shape", "dtype")
        about = (
            rf"^AssertionError: {re.escape(exhibit.output)}: wrong {exhibit.symptom}"
            if form  # values are compared by numpy, which says so on lines of their own
            else rf"^AssertionError: *\n[^\0]*\b{re.escape(exhibit.output)}\b"
        )
        return exhibit.symptom != "count" and re.search(about, trial.text, re.MULTILINE) is not None
    flat = " ".join(messages.COLOURS.sub("", trial.text).split())
    words = ".*?".join(map(re.escape, messages.identifying(exhibit.message).split(" ... ")))
    return bool(words) and f"{exhibit.symptom.rpartition('.')[2]}:" in flat and re.search(words, flat) is not None


def _signal(number: int) -> str:
    import signal

    return signal.Signals(number).name if number in signal.Signals.__members__.values() else ""


def _private(workspace: Workspace, python: str) -> tuple[str, ...]:
    """Return the folders of this machine that no draft names, the longest first."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, tempfile.gettempdir(), str(Path.cwd()), str(Path.home())}
    folders |= {str(workspace.root.resolve()), str(resources.content("templates").parent)}
    folders |= {str(Path(python).parent.parent), str(Path(python).resolve().parent.parent)} if python else set()
    return tuple(sorted((x for x in folders if len(x) > 3), key=len, reverse=True))


def hide(text: str, folders: Iterable[str]) -> str:
    """Return a text without control characters, `…` in place of folders of this machine and of what leads to a package."""
    for folder in folders:
        text = re.sub(
            rf"{re.escape(folder)}(?:/[^\s\"':,]*?/(?=site-packages/)|(?=[/\s\"':,)]|$))", "…/", text
        ).replace("…//", "…/")
    return clean(re.sub(r"…/tmp\w+/", "", text))


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
    wanted = tracker or next((name for name, of in trackers().items() if found.library in of.libraries), "")
    program = workspace.instance(tests.test(workspace, test).instance)
    choice = Choice(verdict, verdict)
    environment = workspace.environments()[verdict.environment]
    shown = scripts.exhibited(workspace, f"test {test}", choice)
    exhibit = msgspec.structs.replace(shown[0], verdict=INCONSISTENT, sentence=found.message)
    short = brief.brief(exhibit, *shown[1:])
    text = short.script(exhibit) if short else reproducer.render(exhibit, *shown[1:])
    trial = _run(text, test, workspace.interpreter(verdict.environment))
    hidden = _private(workspace, workspace.interpreter(verdict.environment))
    library = TITLES.get(found.library, found.library)
    agreeing = [compilers.title(x) if x in compilers.registered() else x for x in found.compilers]
    return Draft(
        finding=f"test {test}",
        tracker=wanted,
        form=_tracker(wanted).form,
        title=hide(f"{_tracker(wanted).title}{found.where}: expected output contradicted by {_and(agreeing)}", hidden),
        sentence=f"{found.where} states outputs that {_and(agreeing)} agree to contradict",
        library=library,
        frontend=verdict.frontend,
        shows=verdict.outcome,
        actual=(found.message,),
        script=text,
        folded=len(text.splitlines()) > FOLD,
        exit_codes=short is None,
        log=hide(excerpt(trial.text), hidden),
        origin=found.names[0] if found.names else "",
        file=_file(workspace, choice),
        quotes=tuple(_quotes(program, choice, verdict.outcome)),
        others=tuple(f"{x}: contradicts the test" for x in agreeing),
        versions=_versions(environment),
        system=_system(environment),
        named=found.names[:LISTED],
        reference="the expected outputs are stated by that test",
    )  # fmt: skip


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


# ---------------------------------------------------------------------- Markdown


def render(found: Draft) -> str:
    """Return a draft as Markdown."""
    environment = brief.environment()
    environment.filters |= {"code": code, "block": block, "plain": plain, "prose": prose}
    text = environment.get_template(f"issues/{trackers()[found.tracker].template or found.tracker}.md.j2").render(
        x=found
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def prose(text: str) -> str:
    """Return a text on one line that may hold code between backquotes, and no other Markdown."""
    flat = " ".join(clean(text).split())
    parts = re.split(r"(`[^`]*`)", flat)
    return "".join(part if part[:1] == "`" and len(part) > 1 else _bare(part) for part in parts)


def plain(text: str) -> str:
    """Return a text on one line in which nothing is Markdown, a mention or a reference to an issue."""
    return _bare(" ".join(clean(text).split()))


def _bare(text: str) -> str:
    return re.sub(r"([`*<\\]|(?<!\w)[@#_](?=\w)|(?<=\w)_(?!\w))", r"\\\1", text)


def code(text: str) -> str:
    """Return a text on one line as code, whatever it holds."""
    flat = " ".join(clean(text).split())
    fence = "`" * (max((len(x) for x in re.findall("`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """Return a text as a block of code, whatever it holds."""
    fence = "`" * max(3, max((len(x) for x in re.findall("`+", text)), default=0) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
