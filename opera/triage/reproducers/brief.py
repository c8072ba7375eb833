"""A finding in as few lines as a user of the compiler would write: what issue drafts show, and what exported tests are made of.

templates/brief/LIBRARY.j2 defines the model, templates/brief/FRONTEND.j2 runs it: by its macro `run`, or `run_low` where there
are elements that numpy does not have, `run_lists` where there are sequences, `run_strings` where there are strings. What has no
short form (a frontend without a template or that macro, or with settings that were chosen) is told by the reproducer
(triage.reproducers.reproducer).
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from jinja2 import meta

from opera import libraries, resources
from opera.compilers import Involved
from opera.oracle import draws
from opera.oracle.comparison import COUNT
from opera.oracle.randomness import FORMS, RANDOM
from opera.programs import literals
from opera.programs.migrated import Manifest
from opera.programs.program import Program
from opera.programs.values import CONTAINERS, Tensor
from opera.programs.verdicts import INCONSISTENT, TIMEOUT, UNSTABLE
from opera.triage.failure import CHECKED
from opera.triage.reproducers import reproducer
from opera.triage.reproducers.reproducer import Exhibit, kinds_of, tolerances

UNPACK = """
def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()
"""
WITH_ATTRIBUTES = """
def with_attributes(node, *attributes):
    node.attribute.extend(attributes)
    return node
"""
"""What sources of values and of ONNX's nodes may take for granted."""


PACKED = re.compile(r"unpack\([\s\"A-Za-z0-9+/=]*,\s*(?P<dtype>'<f\d')\s*,\s*(?P<shape>\[[\d, ]*\]),?\s*\)")
"""Floating-point numbers that take too much space to be written out."""
FILLED = 170
"""Whose complement glibc fills fresh memory with (`MALLOC_PERTURB_`), where a script is to show that nobody writes it: of no
dtype is 0x5555… a small number."""
PATIENCE = 15
"""Seconds in which a small model is loaded, compiled and run many times over."""
WRITTEN = 160
"""Characters of what is expected up to which the script of what stops compares outputs, too."""
LAWS = frozenset((draws.CONSTANT, draws.ELEMENT, draws.SEED, draws.RANGE, "share"))
"""What a short script can look at of numbers drawn at random (opera.oracle.draws.Broken)."""


class Brief(msgspec.Struct, frozen=True):
    """The parts of a short script, as source.

    Attributes:
        imports: Lines; `helpers`: functions that `define` calls.
        define: Lines that define `model` and `feeds`; `arguments`: lines that make of these what `run` needs beside them.
        run: Lines that make of these `outputs`, a list of arrays. In a test they take `device` and `folder`.
        reference: Lines that make `expected` of `model` and `feeds`; empty where it has to be written down.
        route: Lines that make it of what `run` made of the model on its way (by TFLite's own interpreter), for a script.
        outputs: Their names, as source; `expected` is a list of arrays, `rtol` and `atol` hold for all of them (None: equal),
            unless `tolerances`, a list of pairs, is not empty.
        wide: Whether there are elements that numpy does not have: they are compared as numbers that it has.
        values: Each output's array as source, with its own rtol and atol.
        forms: Of a random program (dtype, shape) of each output, as source: nothing else of them is expected.
        fills: What memory is filled with where an output is what it happened to hold; 0: with nothing.
        patience: Seconds after which a script that does not end says where it is, and exits with 1; 0: it ends.
        follows: Whether what stops now is to give `expected` once it runs: half of a mend may go no further; but for what may
            hide another failure.
        law: Of one that is drawn wrongly, what is wrong with it, as opera.triage.reproducers.reproducer.law has it.
    """

    imports: str
    helpers: str
    define: str
    arguments: str
    run: str
    reference: str
    outputs: str
    expected: str
    rtol: float | None
    atol: float | None
    tolerances: str = ""
    wide: bool = False
    values: tuple[tuple[str, float | None, float | None], ...] = ()
    forms: str = ""
    route: str = ""
    fills: int = 0
    patience: int = 0
    follows: bool = False
    law: dict[str, Any] = {}

    @property
    def once(self) -> tuple[str, str]:
        """The lines of `run` that load and compile, and those that run the model and may be repeated."""
        lines = self.run.splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith(("returned = ", "outputs = "))), 0)
        return "\n".join(lines[:first]), "\n".join(lines[first:])

    @property
    def check(self) -> str:
        """The call that compares `got` and `want`, named `name`."""
        return self.compare("err_msg=name")

    def compare(self, *more: str) -> str:
        """Return the call that compares `got` and `want`, with more arguments at its end."""
        both = "got.astype(float), want.astype(float)" if self.wide else "got, want"
        if self.tolerances:
            return f"np.testing.assert_allclose({', '.join((both, '*tolerance', *more))})"
        if self.rtol is None:
            return f"np.testing.assert_array_equal({', '.join((both, *more))})"
        tolerated = f"rtol={self.rtol:g}, atol={self.atol:g}"
        return f"np.testing.assert_allclose({', '.join((both, tolerated, *more))})"

    def script(self, exhibit: Exhibit) -> str:
        """Return the script. What is compared first is the output that the exhibit names: the script ends at what is wrong."""
        names = ast.literal_eval(self.outputs)
        place = names.index(exhibit.output) if exhibit.output in names else 0
        compares = exhibit.verdict in (INCONSISTENT, UNSTABLE)
        told = {"compares": compares, "count": exhibit.symptom == COUNT, "place": place, "names": names}
        return tidied(environment().get_template("brief/script.py.j2").render(x=self, **told))


def brief(
    exhibit: Exhibit,
    manifest: Manifest,
    directory: Path,
    program: Program,
    *,
    alone: bool = True,
    kept: bool = False,
    device: str = '"CPU"',
    folder: str = "",
) -> Brief | None:
    """Return a finding's member in a short form, None where there is none.

    Args:
        alone: Whether it stands alone, and is not in a suite that has set the scene.
        kept: Whether the model's constants become inputs where it is imported, for templates that know of that.
        device, folder: Expressions that tests run it with; files go to the current folder where `folder` is empty.
    """
    shown: dict[str, Any] = libraries.get(manifest.library).reproducer(manifest, directory, program, exhibit.artefact)
    expected = reproducer.wanted(directory)
    fed = shown["fed"] if isinstance(shown["fed"], list) else []
    kinds = kinds_of([*expected, *fed])
    known = environment()
    if exhibit.chosen:
        return None
    names = (f"brief/{manifest.library}.j2", f"brief/{exhibit.frontend}.j2")
    compares = exhibit.verdict in (INCONSISTENT, UNSTABLE) or not alone or bool(folder)
    strings = "string" in kinds.dtypes
    if (strings and (kinds.low or kinds.lists)) or any(x not in known.list_templates() for x in names):
        return None
    if (kinds.low or kinds.lists or strings) and (bool(folder) or (kinds.lists and (compares or kinds.low))):
        return None
    given: dict[str, Any] = {"variant": exhibit.variant, "artefact": exhibit.artefact}
    given |= {"inputs": len(manifest.inputs), "outputs": len(manifest.outputs)}
    given |= {"kept": kept, "stage": exhibit.stage, "low": _low(kinds_of(fed))}
    given["checked"] = exhibit.symptom.rpartition(".")[2] in CHECKED
    given["dtypes"] = [x.dtype for x in expected if isinstance(x, Tensor)]
    model, frontend = (known.get_template(name).make_module(given) for name in names)
    random = RANDOM in manifest.tags
    drawn = random and exhibit.verdict == INCONSISTENT and exhibit.symptom not in FORMS
    law = reproducer.law(exhibit, manifest, program, expected) if drawn else {}
    if drawn and (bool(folder) or law["kind"] not in LAWS):
        return None
    low = [
        _low(kinds_of(x)) for x in (fed if compares or exhibit.stage == "infer" else [], expected if compares else [])
    ]
    run = _run(frontend, kinds, (exhibit.artefact, device), low, folder)
    route = "" if random or not hasattr(frontend, "expected") else str(frontend.expected()).strip()
    if not run:
        return None
    feeds = shown["feeds"]
    if not folder and (route or not compares):  # numbers need not be those, and the script is run before it is shown
        feeds = PACKED.sub(lambda x: f"np.random.default_rng(0).random({x['shape']}).astype({x['dtype']})", feeds)
    define = model.define(shown["model"], feeds, shown.get("training", False)).strip()  # type: ignore[attr-defined]
    found = tolerances(manifest, expected, exhibit.computes_in)
    wanted = literals.fold("[", [literals.source(value) for value in expected], "]")
    plain = not (kinds.low or kinds.lists or strings or random or route) and feeds == shown["feeds"]
    short = len(wanted) <= WRITTEN and "unpack(" not in wanted and "\noutputs = " in f"\n{run}"
    forms = [(x.dtype, list(x.shape)) for x in expected if isinstance(x, Tensor)] if random else []
    body = f"{define}\n{wanted}" if compares and not random and not route else define
    helpers = UNPACK if "unpack(" in body else ""
    helpers += WITH_ATTRIBUTES if "with_attributes(" in body else ""
    standard = "import base64\nimport zlib\n" if "unpack(" in body else ""
    standard += "import ctypes\n" if "ctypes." in run else ""
    lines = f"{model.imports(alone)}\n{frontend.imports(exhibit.artefact)}"  # type: ignore[attr-defined]
    fills = FILLED if exhibit.verdict == UNSTABLE else 0
    patience = PATIENCE if exhibit.verdict == TIMEOUT else 0
    standard += "import faulthandler\n" if patience else ""
    standard += "".join(f"import {x}\n" for x in ("os", "sys") if fills and f"import {x}\n" not in lines)
    rtol, atol = found[0] if found else (None, None)
    return Brief(
        imports=(f"{standard}\n" if standard else "") + _used(lines, f"{body}\n{run}\n{route if compares else ''}"),
        helpers=helpers.strip(),
        define=define,
        arguments=model.arguments().strip(),  # type: ignore[attr-defined]
        run=run,
        reference=model.reference().strip(),  # type: ignore[attr-defined]
        outputs=literals.literal(list(manifest.outputs)),
        expected=wanted,
        rtol=rtol,
        atol=atol,
        wide=kinds.low,
        values=tuple((literals.source(value), *pair) for value, pair in zip(expected, found, strict=True)),
        forms=literals.literal(forms) if forms else "",
        route=route,
        fills=fills,
        patience=patience,
        follows=not (compares or exhibit.hides) and plain and short,
        law=law,
        tolerances="" if len(set(found)) < 2 else literals.literal([(r or 0.0, a or 0.0) for r, a in found]),
    )


def keeps(frontend: str) -> bool:
    """Whether the template of a frontend has a way to import a model with its constants as inputs."""
    known, name = environment(), f"brief/{frontend}.j2"
    if known.loader is None or name not in known.list_templates():
        return False
    return "kept" in meta.find_undeclared_variables(known.parse(known.loader.get_source(known, name)[0]))


def _low(kinds: Involved) -> list[str]:
    """Return the dtypes that numpy does not have."""
    return sorted(name for name in kinds.dtypes if CONTAINERS.get(name, name) != name)


def _run(frontend: Any, kinds: Involved, how: tuple[str, str], low: list[list[str]], folder: str) -> str:
    """Return the lines that run the model, by the macro for such values; empty where the template has none.

    `how` are artefact and device; `low` are the dtypes that numpy does not have, of what is fed and of what is looked at.
    """
    strings = "string" in kinds.dtypes
    if not (kinds.low or kinds.lists or strings):
        return str(frontend.run(*how, folder)).strip()
    macro = getattr(frontend, "run_low" if kinds.low else "run_lists" if kinds.lists else "run_strings", None)
    return str(macro(*how, *(low if kinds.low else ()))).strip() if macro else ""


def tidied(text: str) -> str:
    """Return Python source with two empty lines in a row at most, none at its ends, and none that holds spaces."""
    return re.sub(r"\n{4,}", "\n\n\n", re.sub(r"(?m)^[ ]+$", "", text)).strip() + "\n"


def _used(lines: str, body: str) -> str:
    """Return import lines without the names that nothing in the body uses."""
    kept: list[str] = []
    for line in lines.splitlines():
        if found := re.fullmatch(r"from (\S+) import (.*)", line):
            names = [name for name in found[2].split(", ") if re.search(rf"\b{name}\b", body)]
            line = f"from {found[1]} import {', '.join(names)}" if names else ""
        elif found := re.fullmatch(r"import \S+ as (\w+)", line):
            line = line if re.search(rf"\b{found[1]}\b", f"{body} np.") else ""
        elif (found := re.fullmatch(r"import (\w+)", line)) and found[1] != "os":
            line = line if re.search(rf"\b{found[1]}\.", body) else ""
        if line or (kept and kept[-1].startswith("os.")):
            kept.append(line)
    return "\n".join(kept).strip()


@cache
def environment() -> jinja2.Environment:
    """Return the environment of templates of Python and Markdown: what is inserted is literals, or is escaped there."""
    loader = jinja2.FileSystemLoader(resources.content("templates"))
    return jinja2.Environment(
        loader=loader, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False
    )
