"""Write a stand-alone script that shows one finding: library, compiler and numpy are all it needs.

The script builds the model itself. No value of the finding can become code: values go through `opera.programs.literals`, header
lines through its `comment`; templates/reproducer.py.j2 holds what all scripts have, templates/LIBRARY/script.py.j2 how the
models of a library are made, and the frontend's recipe, printed as it stands, what is done with them (reproducers.recipes).
A frontend without one is run through its opera plugin.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import numpy as np

from opera import compilers, libraries, resources
from opera.compilers import Involved
from opera.oracle import comparison as oracle
from opera.oracle import draws, messages, quantities, randomness
from opera.programs import literals
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Program
from opera.programs.values import Optional, RandomTensor, Sequence, Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, OUT_OF_MEMORY, REFUSED, TIMEOUT, UNSTABLE, Limits, deaths
from opera.store import tests
from opera.store.workspace import Workspace
from opera.triage.reproducers import recipes
from opera.triage.reproducers.recipes import Printed
from opera.triage.reproducers.replay import Sequel

BY_PLUGIN = Printed(
    ("from opera.triage.reproducers import by_plugin",),
    (),
    "",
    '(("load", PLUGIN.load), ("compile", PLUGIN.compile), ("infer", PLUGIN.infer))',
)
"""What a script does with a compiler that has no recipe."""
KINDS = {CRASH: "crash", REFUSED: "crash", INCONSISTENT: "inconsistent", UNSTABLE: "unstable"}
"""Verdict → how a script tells it; what is not here is the death of a process."""
ENOUGH = 40
"""Letters of a message that can only be one failure's own; with fewer the place counts as well."""
RUNS, MOST = 64, 4096
"""How often a script draws, at least and at most."""
INTERNAL = re.compile(r"^opera|\.toml$")
"""Names among the versions of an exporter that say nothing to a maintainer."""
PATIENCE = 10.0
"""A death is waited for so many times as long as in a run: a script's process imports the compiler first, and may wait."""


class Exhibit(msgspec.Struct, frozen=True):
    """What a reproducer shows: one member of a finding.

    Attributes:
        id: Id of the finding.
        frontend, compiler, versions: `tvm-onnx`, `tvm`, and name → version of compiler, library and exporter.
        artefact: Name of the artefact that the failing variant consumes.
        variant: Its name; where it is left out, that of the frontend's first variant of this artefact.
        verdict, stage, symptom, message, location: As in the outcome.
        output: Name of the output that is wrong, where it is known.
        sentence: What is wrong, for the first line.
        drawn: What is wrong with numbers drawn at random (opera.oracle.draws.Broken): details of the outcome.
        chosen: What was chosen of the compiler's settings (opera.compilers.settings), without defaults.
        came_from: The test that the instance was captured from.
        limits: Under which a time-out or out-of-memory was seen.
        computes_in: The compiler's COMPUTES_IN, where it has one.
        hides: Whether it stops, and what is like it, and does not, gives wrong outputs: another failure may lie behind it.
    """

    id: str
    frontend: str
    compiler: str
    versions: dict[str, str]
    artefact: str
    verdict: str
    stage: str
    symptom: str
    message: str
    came_from: str = ""
    limits: Limits = Limits()
    computes_in: dict[str, str] = {}
    variant: str = ""
    location: str = ""
    output: str = ""
    sentence: str = ""
    drawn: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    hides: bool = False


def write(exhibit: Exhibit, manifest: Manifest, directory: Path, program: Program, out_path: Path) -> None:
    """Write the script of a finding to `out_path`."""
    out_path.parent.mkdir(parents=True, exist_ok=True)
    out_path.write_text(render(exhibit, manifest, directory, program), encoding="utf-8")


def wanted(directory: Path) -> list[Value]:
    """Return what is expected of a test, each NaN in the bits that `np.nan` has: whoever compares takes any for any."""
    return [_one_nan(x) for x in read_values(directory, "expected")]


def _one_nan(value: Value) -> Value:
    if not isinstance(value, Tensor) or value.dtype not in ("float16", "float32", "float64"):
        return value
    array = value.array().copy()
    array[np.isnan(array)] = np.nan
    return Tensor.of(array, value.dtype)


def render(exhibit: Exhibit, manifest: Manifest, directory: Path, program: Program) -> str:
    """Return the script of a finding."""
    shown = libraries.get(manifest.library).reproducer(manifest, directory, program, exhibit.artefact)
    expected = wanted(directory)
    kind = KINDS.get(exhibit.verdict, "death")
    if kind == "inconsistent" and randomness.RANDOM in manifest.tags and all(isinstance(x, Tensor) for x in expected):
        kind = "drawn"
    involved = [*expected, *(shown["fed"] if isinstance(shown["fed"], list) else [])]
    environment = _environment(manifest.library)
    frontend: Any = compilers.frontend(exhibit.compiler, manifest.library)
    variant = exhibit.variant or next((x.name for x in frontend.VARIANTS if x.artefact == exhibit.artefact), "")
    kinds = msgspec.structs.replace(kinds_of(involved, variant), chosen=exhibit.chosen)
    recipe = BY_PLUGIN
    if hasattr(frontend, "recipe"):
        recipe = _without_known(recipes.printed(frontend.recipe(exhibit.artefact, kinds)), environment)
    called = [exhibit.compiler, manifest.library, manifest.operator, variant, exhibit.artefact]
    words = messages.identifying(exhibit.message)
    values: dict[str, Any] = shown | {
        "kind": kind,
        "header": _header(exhibit, manifest, shown),
        "outputs": literals.literal(list(manifest.outputs)),
        "dtypes": literals.literal([value.dtype if isinstance(value, Tensor) else "" for value in expected]),
        "output": literals.literal(exhibit.output),
        "known_output": exhibit.symptom == "count" or exhibit.output in manifest.outputs,
        "expected": _expected(manifest, expected, exhibit.computes_in) if kind == "inconsistent" else "",
        "forms": literals.literal([(x.dtype, list(x.shape)) for x in expected if isinstance(x, Tensor)]),
        "drawn": law(exhibit, manifest, program, expected),
        "tolerances": literals.literal(tolerances(manifest, expected, exhibit.computes_in)),
        "low_precision": kinds.low,
        "has_lists": any(isinstance(value, Sequence | Optional) for value in expected),
        "has_strings": "string" in _dtypes(expected),
        "has_complex": any(dtype.startswith("complex") for dtype in _dtypes(expected)),
        "recipe": recipe,
        "plugin": ", ".join(map(literals.literal, called)) if recipe is BY_PLUGIN else "",
        "exports": literals.literal(compilers.exports(frontend, variant)) if "path" in recipe.steps else "",
        "symptom": literals.literal(exhibit.symptom),
        "stage": literals.literal(exhibit.stage),
        "identifying": literals.literal(words),
        "has_words": bool(words),
        "packages": literals.literal(tuple(sorted(named(exhibit.versions)))),
        "place": _place(exhibit.location, words),
        "patience": exhibit.limits.seconds * (1.0 if exhibit.verdict == TIMEOUT else PATIENCE),
        "memory": int(exhibit.limits.memory) if exhibit.verdict == OUT_OF_MEMORY else 0,
        "timeout": exhibit.verdict == TIMEOUT,
        "same": _same_death(exhibit),
    }
    body = "\n".join((str(values["model"]), str(values["feeds"]), values["expected"], values["drawn"]["kept"]))
    values |= {
        "needs_ml_dtypes": kinds.low or "ml_dtypes" in literals.needs(body),
        "needs_unpack": "unpack" in literals.needs(body),
        "needs_attributes": "with_attributes(" in body,
        "imports": _imports(kind, body, recipe, placed=bool(values["place"])),
    }
    text = environment.get_template("script.py.j2").render(values)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip() + "\n"


def law(exhibit: Exhibit, manifest: Manifest, program: Program, expected: list[Value]) -> dict[str, Any]:
    """Return what a script looks at in numbers drawn at random: `kind` is `form` where these are not what is wrong."""
    details = exhibit.drawn
    found = {
        name: details.get(f"drawn_{name}")
        for name in ("place", "element", "at", "share", "slack", "low", "high", "renewed")
    }
    kind = details.get("drawn", "form")
    found["element"] = tuple(json.loads(found["element"])) if found["element"] else ()
    of = expected[found["place"] or 0] if not found["element"] else None
    size = max(1, math.prod(of.shape)) if isinstance(of, Tensor) else 1
    runs = min(MOST, max(RUNS, math.ceil(details.get("drawn_needs", 0) / size))) if kind == "share" else RUNS
    source = {name: literals.literal(x) for name, x in found.items()}
    if kind == "form":
        one = exhibit.symptom != "count" and exhibit.output in manifest.outputs
        source["place"] = literals.literal(manifest.outputs.index(exhibit.output) if one else None)
    left = draws.kept(program) if kind == "kept" else None
    source["kept"] = literals.source(Tensor.of(np.asarray(left))) if left is not None else ""
    seen = _quantity(details) if kind == "share" else {}
    return {**source, **seen, "kind": kind, "runs": runs, "renewed": bool(found["renewed"])}


def _quantity(drawn: dict[str, Any]) -> dict[str, str]:
    """Return how a script computes what differs of `numbers` (opera.oracle.quantities.Difference), and what it says of it.

    `seen` is computed, `wrong` whether it is the failure; `expects` is what should be, `told` what is, with `seen` in braces.
    """
    how, at, wanted = drawn.get("drawn_how") or "<=", drawn.get("drawn_at") or 0.0, drawn.get("drawn_share") or 0.0
    wrong = f"abs(seen - {literals.literal(wanted)}) > {literals.literal(drawn.get('drawn_slack') or 0.0)}"
    if how in ("mean", "std"):
        name = {"mean": "mean", "std": "standard deviation"}[how]
        expects, told = f"a {name} of {wanted:.4g}", f"a {name} of {{seen:.4g}}"
        return {"seen": f"numbers.{how}()", "wrong": wrong, "expects": expects, "told": told}
    compared = f"{ {'==': '', '<=': 'at most ', '<': 'below ', '>': 'above '}[how] }{at:.6g}"
    expects, told = f"{quantities.percent(wanted)} of the numbers {compared}", f"{{seen:.2%}} of them {compared}"
    seen = f"float((numbers {how} {literals.literal(at)}).mean())"
    return {"seen": seen, "wrong": wrong, "expects": expects, "told": told}


def _place(location: str, words: str) -> str:
    """Return (file, function) that a traceback must have, as source, where the words of a crash are few; else nothing.

    `ValueError` of `index 2 is out of bounds` may come from anywhere; `"index out of bounds" in _impl_v18` may not.
    """
    file, _, function = location.partition(":")
    if not file.endswith(".py") or not function or sum(map(str.isalpha, words)) >= ENOUGH:
        return ""
    return literals.literal((file, function))


def _same_death(exhibit: Exhibit) -> str:
    """Return the expression, as source, that says of `how` a process died whether it is the death that was reported."""
    if exhibit.verdict == OUT_OF_MEMORY:
        return "True"  # what a compiler does where memory is refused differs from run to run
    if exhibit.verdict == TIMEOUT:
        return "False"
    return f"how in {literals.literal(deaths(exhibit.symptom))}"


@cache
def _environment(library: str) -> jinja2.Environment:
    templates = resources.content("templates")
    loader = jinja2.FileSystemLoader([templates / library, templates])
    return jinja2.Environment(
        loader=loader, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False
    )  # the output is Python; what is inserted is source made by opera.programs.literals


def _without_known(recipe: Printed, environment: jinja2.Environment) -> Printed:
    """Return a recipe without the imports that the scripts of a library have anyway."""
    loader = environment.loader
    assert loader is not None
    known = "\n".join(loader.get_source(environment, name)[0] for name in ("script.py.j2", "reproducer.py.j2"))
    lines = {line.strip() for line in known.splitlines()}
    return msgspec.structs.replace(recipe, imports=tuple(x for x in recipe.imports if x not in lines))


def _imports(kind: str, body: str, recipe: Printed, *, placed: bool) -> str:
    names = {"os", "sys", "tempfile"} | {"death": {"signal", "subprocess"}, "unstable": {"subprocess"}}.get(kind, set())
    names |= {"base64", "zlib"} if "unpack(" in body else set()
    names |= ({"re"} if kind == "crash" else set()) | ({"traceback"} if placed else set())
    plain = {line.split()[1] for line in recipe.standard if line.startswith("import ") and "." not in line}
    others = {line for line in recipe.standard if not line.startswith("import ") or "." in line}
    others.add("from pathlib import Path")
    return "\n".join([f"import {', '.join(sorted(names | plain))}", *sorted(others)])


def named(versions: dict[str, str]) -> dict[str, str]:
    """Return the versions that say something to a maintainer."""
    return {name: version for name, version in versions.items() if INTERNAL.search(name) is None}


def _header(exhibit: Exhibit, manifest: Manifest, shown: dict[str, object]) -> list[str]:
    versions = named(exhibit.versions)
    lines = [
        f"{exhibit.id}: {exhibit.sentence or f'{manifest.operator} on {exhibit.frontend}: {exhibit.symptom}'}",
        "found by opera with " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        "; ".join(
            ([f"opset {shown['opset']}"] if shown["opset"] else [])
            + ([f"from {exhibit.came_from}"] if exhibit.came_from else [])
            + [f"expected outputs by {_by(manifest)}"]
        ),
        f"specification: {shown['spec']}" if shown["spec"] else "",
    ]
    return [literals.comment(line) for line in lines if line]


def _by(manifest: Manifest) -> str:
    by = {"eager": f"eager {manifest.library}", "test": "the test", "evaluator": "the evaluator"}
    return by.get(manifest.reference, manifest.reference)


def _expected(manifest: Manifest, expected: list[Value], computes_in: dict[str, str]) -> str:
    items = []
    for value, tolerance in zip(expected, tolerances(manifest, expected, computes_in), strict=True):
        items.append(literals.fold("(", [literals.source(value), *map(literals.literal, tolerance)], ")"))
    return literals.fold("[", items, "]")


def tolerances(
    manifest: Manifest, expected: list[Value], computes_in: dict[str, str]
) -> list[tuple[float | None, float | None]]:
    """Return rtol and atol of each output, None where values must be equal."""
    granted = oracle.granted(computes_in, expected, manifest)
    return [_tolerance(value, *granted) for value in expected]


def _tolerance(value: Value, *grant: *oracle.Grant) -> tuple[float | None, float | None]:
    """Return the tolerance that the oracle applies to an output; None where values must be equal."""
    while isinstance(value, Optional | Sequence):
        held = [value.value] if isinstance(value, Optional) else list(value.items)
        value = held[0] if held else None
    if not isinstance(value, Tensor) or value.dtype not in oracle.TOLERANCES:
        return None, None
    return oracle.tolerance(value.dtype, *grant)


def kinds_of(values: list[Value], variant: str = "") -> Involved:
    """Return what kinds of values are involved."""
    lists = any(isinstance(value, Sequence | Optional) for value in values)
    return Involved(frozenset(_dtypes(values)), lists, variant=variant)


def _dtypes(values: list[Value]) -> set[str]:
    """Return the dtypes of all tensors in the values."""
    found: set[str] = set()
    for value in values:
        match value:
            case Tensor() | RandomTensor():
                found.add(value.dtype)
            case Sequence(items=items):
                found |= _dtypes(list(items))
            case Optional(value=inner):
                found |= _dtypes([inner])
    return found


def write_sequel(
    finding: str, sequel: Sequel, before: tuple[str, ...], workspace: Workspace, limits: Limits, path: Path
) -> None:
    """Write the script of a state-dependent finding: it replays tests of the workspace, and needs opera."""
    tests = workspace.tests_folder.resolve()
    inside = path.resolve().parent.parent == tests.parent
    frontend = f"{sequel.compiler}-{sequel.library}"
    header = f"{finding}, found by opera: {_operator(workspace, sequel.name)} on {frontend}: {sequel.symptom} in {sequel.stage}"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.content("templates")),
        trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False,
    )  # fmt: skip
    text = environment.get_template("state_dependent.py.j2").render(
        header=[literals.comment(header)],
        tests='Path(__file__).resolve().parents[1] / "tests"' if inside else f"Path({literals.literal(str(tests))})",
        before=[(literals.literal(test), literals.comment(_operator(workspace, test))) for test in before],
        sequel=[(name, literals.literal(value)) for name, value in msgspec.structs.asdict(sequel).items()],
        seconds=float(limits.seconds),
        memory=int(limits.memory),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _operator(workspace: Workspace, name: str) -> str:
    found = tests.origin(workspace, name.partition("/")[0])
    return f"{found.operator} ({found.test})" if found and found.test else "?"
