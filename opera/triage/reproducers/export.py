"""Findings as test files in the style of a compiler's own suite: they fail today, pass once it is fixed, and need no opera.

templates/tests/STYLE.py.j2 has the style, reproducers.brief what each case is made of: the members of a finding, each in its
reduced form where it has one. Where the library itself can be asked in the test (PyTorch, Keras), it says what is expected.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from pathlib import Path

import msgspec

from opera.errors import UsageError
from opera.programs import literals
from opera.programs.verdicts import TIMEOUT, UNSTABLE
from opera.store import tests
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.distinct import causes
from opera.triage.reproducers import brief, reproducer, scripts
from opera.triage.reproducers.brief import Brief
from opera.triage.reproducers.choice import choose
from opera.triage.reproducers.reproducer import Exhibit

MOST = 20
"""Cases of one file."""
LONG = 4000
"""Characters of a case that is left out where others are shorter."""


class Style(msgspec.Struct, frozen=True):
    """A suite's style: how it calls its files, and whose it is: a compiler's, a library's, or everybody's."""

    file: str
    compiler: str = ""
    library: str = ""
    device: str = '"CPU"'


STYLES = {
    "pytest": Style("test_{}.py"),
    "tvm": Style("test_{}.py", compiler="tvm"),
    "openvino": Style("test_{}.py", compiler="openvino", device="device"),
    "onnxruntime": Style("onnxruntime_test_python_{}.py", compiler="onnxruntime"),
    "keras": Style("{}_test.py", library="keras"),
}


class Case(msgspec.Struct, frozen=True):
    """One case, as source: `define` defines `model` and `feeds`, `expected` a list of (array, rtol, atol), None: equal."""

    name: str
    about: str
    define: str
    expected: str


class Suite(msgspec.Struct, frozen=True):
    """What a template is filled with.

    Attributes:
        name, camel: What tests and classes are called.
        title, provenance: Safe in a docstring.
        lines, helpers: Imports and functions of the cases.
        given: Parameters of `run`; `files`: whether it writes files.
    """

    name: str
    camel: str
    title: str
    provenance: str
    lines: str
    helpers: str
    run: str
    given: str
    files: bool
    cases: tuple[Case, ...]

    @property
    def names(self) -> str:
        """The list of the cases, as source."""
        return literals.fold("[", [x.name for x in self.cases], "]")

    def imports(self, more: list[str]) -> str:
        """Return all lines that import, as isort orders them, and after the standard library what must be set first."""
        lines = [*self.lines.splitlines(), *more, *(["import os"] if self.files else [])]
        scene = [x for x in lines if x.startswith("os.environ")]
        wanted = dict.fromkeys(x for x in lines if x.startswith(("import ", "from ")))
        standard = [x for x in wanted if x.split()[1] in ("base64", "os", "unittest", "zlib")]
        others = sorted(
            (x for x in wanted if x not in standard), key=lambda x: (x.startswith("from"), x.split()[1].lower())
        )
        blocks = ["\n".join(sorted(standard)), "\n".join(scene), "\n".join(others)]
        return "\n\n".join(filter(None, blocks))


class Exported(msgspec.Struct, frozen=True):
    """What became of a finding: the files that were written, and why members are in none, with how many they are."""

    finding: str
    files: tuple[Path, ...]
    cases: int
    left_out: dict[str, int]


def export(workspace: Workspace, names: list[str], style: str, folder: Path) -> list[Exported]:
    """Write the test files of findings. Raises UsageError for an unknown style, or a finding that is not of its compiler."""
    if style not in STYLES:
        raise UsageError(f"there is no style called {style!r}", fix=f"one of {', '.join(STYLES)}")
    members = scripts.members(workspace)
    wanted = list(dict.fromkeys(causes.named(workspace, name, members) for name in names))
    for name in wanted:
        _check(members[name][0].frontend, name, style)
    return [_export(workspace, name, members[name], style, folder) for name in wanted]


def _check(frontend: str, name: str, style: str) -> None:
    compiler, _, library = frontend.rpartition("-")
    of = STYLES[style]
    if of.compiler not in ("", compiler) or of.library not in ("", library):
        raise UsageError(
            f"{name} is of {frontend}, and {style} has no tests of that", fix="--as pytest fits every finding"
        )


def _export(workspace: Workspace, finding: str, verdicts: list[Verdict], style: str, folder: Path) -> Exported:
    """Write a file for each artefact that the finding's members begin with: nearly always one."""
    parts: dict[str, list[_Part]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    of_test: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        of_test[verdict.test].append(verdict)
    best = choose(workspace, verdicts, plain=not STYLES[style].library)
    title = scripts.exhibited(workspace, finding, best)[0].sentence if best else ""
    shown: set[str] = set()
    for of in of_test.values():
        part = _part(workspace, finding, of, style, shown)
        if isinstance(part, str):
            left_out[part] += 1
        elif len(parts[part.exhibit.artefact]) == MOST:
            left_out[f"a file holds {MOST} cases"] += 1
        else:
            parts[part.exhibit.artefact].append(part)
    files, kept = [], 0
    for artefact, found in parts.items():
        cases = [x for x in found if len(x.brief.define) <= LONG] or found
        kept += len(cases)
        left_out["its tensors are long, and others fail with shorter ones"] += len(found) - len(cases)
        more = f"_{artefact}" if len(parts) > 1 else ""
        name = _identifier(f"{cases[0].operator.rpartition('.')[2]}_{finding}{more}")
        text = brief.environment().get_template(f"tests/{style}.py.j2").render(x=_suite(name, title, cases))
        path = folder / STYLES[style].file.format(name)
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(brief.tidied(text), encoding="utf-8")
        files.append(path)
    return Exported(finding, tuple(files), kept, dict(+left_out))


class _Part(msgspec.Struct, frozen=True):
    """One case, and what it was made of."""

    exhibit: Exhibit
    operator: str
    origin: str
    brief: Brief


def _part(workspace: Workspace, finding: str, of: list[Verdict], style: str, shown: set[str]) -> _Part | str:
    """Return the case of one member, or why it has none; a reduction that several members share is one case."""
    chosen = choose(workspace, of, plain=not STYLES[style].library)
    if chosen is None:
        return "it fails only after other tests, or its test was deleted"
    outcome = chosen.verdict.outcome
    if outcome.verdict in (UNSTABLE, TIMEOUT):
        return f"no test fails for certain where the outcome is {outcome.verdict}"
    if chosen.verdict.test in shown:
        return "another member was reduced to the same"
    exhibit, manifest, directory, program = scripts.exhibited(workspace, finding, chosen)
    device = STYLES[style].device
    made = brief.brief(exhibit, manifest, directory, program, alone=style != "keras", device=device, folder="folder")
    if made is None:
        return "it has no short form: low precision, strings, lists, or a frontend without a template"
    if made.forms:
        return "numbers that are drawn at random are expected of no run"
    shown.add(chosen.verdict.test)
    origin = tests.origin(workspace, chosen.member.test)
    return _Part(exhibit, manifest.operator, origin.test if origin else chosen.member.test, made)


def _suite(name: str, title: str, parts: list[_Part]) -> Suite:
    """Return what a template is filled with."""
    exhibit, first = parts[0].exhibit, parts[0].brief
    taken: set[str] = set()
    cases = []
    for part in parts:
        own = base = _identifier(part.origin).removeprefix("test_") or "case"
        number = 2
        while own in taken:
            own, number = f"{base}_{number}", number + 1
        taken.add(own)
        define = re.sub(r"\n{3,}", "\n\n", part.brief.define)
        cases.append(Case(own, _safe(f"{part.operator}, from {part.origin}"), define, _expected(part.brief)))
    versions = ", ".join(f"{key} {value}" for key, value in sorted(reproducer.named(exhibit.versions).items()))
    extra = [word for word in ("device", "folder") if re.search(rf"\b{word}\b", first.run)]
    return Suite(
        name=name,
        camel="".join(x.capitalize() for x in name.split("_")),
        title=_wrapped(title if title.endswith(".") else f"{title}."),
        provenance=_wrapped(f"Found by opera with {versions}, from the library's own tests."),
        lines="\n".join(dict.fromkeys(line for x in parts for line in x.brief.imports.splitlines())),
        helpers="\n\n\n".join(dict.fromkeys(x.brief.helpers for x in parts if x.brief.helpers)),
        run="\n".join(filter(None, (first.arguments, first.run))),
        given=", ".join(["model", "feeds", *extra]),
        files="folder" in extra,
        cases=tuple(cases),
    )


def _expected(made: Brief) -> str:
    """Return the lines that make a list of (array, rtol, atol), of what is stated, or what the library returns in the test."""
    pairs = [(literals.literal(rtol), literals.literal(atol)) for _, rtol, atol in made.values]
    if not made.reference:
        items = [literals.fold("(", [text, *pair], ")") for (text, _, _), pair in zip(made.values, pairs, strict=True)]
        return f"expected = {literals.fold('[', items, ']')}"
    tolerances = literals.fold("[", [f"({rtol}, {atol})" for rtol, atol in pairs], "]")
    return f"{made.reference}\nexpected = [(x, *tolerance) for x, tolerance in zip(expected, {tolerances})]"


def _identifier(text: str) -> str:
    """Return a text as a name in Python, in small letters."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    return name if not name or name[0].isalpha() else f"x{name}"


def _safe(text: str) -> str:
    """Return a text on one line that can stand in a docstring."""
    return literals.comment(text, 400).replace("\\", "/").replace('"', "'")


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(_safe(text), 78))


def show(workspace: Workspace, names: list[str], style: str, folder: Path) -> None:
    """Write the test files of findings, and say where they are and what is in none."""
    for found in export(workspace, names, style, folder):
        for path in found.files:
            print(path)
        for why, count in found.left_out.items():
            print(f"{found.finding}: {count} member{'' if count == 1 else 's'} left out: {why}")
        if not found.files:
            print(f"{found.finding}: no test can be made of it")
