"""`opera benchmark` as its user sees it: a labelled corpus or a workspace scored, printed, and written to a folder."""

from __future__ import annotations

import datetime
import hashlib
import sys
import time
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from opera import errors, libraries
from opera.benchmark import labels as labelling
from opera.benchmark import publish as publishing
from opera.benchmark import result
from opera.benchmark.labels import Labels
from opera.benchmark.result import Benchmark, Settings
from opera.benchmark.score import Metric
from opera.benchmark.subjects import Subject, live
from opera.errors import NotInstalled, UsageError
from opera.prioritize import get, labelled, registered
from opera.prioritize.labelled import Labelled
from opera.prioritize.subspaces import Defaults
from opera.store.workspace import Workspace
from opera.triage.findings import findings

BUGS = "bugs"
"""Granularity of a labelled corpus: its labels as they are."""
FORMATS = ("terminal", "json", "markdown")


class HeldOut(msgspec.Struct, frozen=True):
    """A file that names, before tuning, what a strategy was tuned on; see results/benchmarks/held-out.toml."""

    named: datetime.date
    baseline: str
    tuning: list[str]
    held_out: list[str]
    metric: str = "apfd"
    granularity: str = "signature"
    tuning_labels: list[str] = []


def check(format: str, strategies: list[str]) -> None:
    """Raise UsageError or NotInstalled for a format, strategy or package that is not there, before anything is read."""
    if format not in FORMATS:
        raise UsageError(f"there is no format called {format!r}", fix=f"choose from {', '.join(FORMATS)}")
    for name in strategies:
        get(name)
    for package in ("scipy", "matplotlib"):
        if find_spec(package) is None:
            raise NotInstalled(
                f"{package} is not installed",
                cause="statistics and figures need it",
                fix='pip install "opera[benchmark]"',
            )


def corpus(
    corpus: Labelled, name: str, defaults: Defaults, strategies: list[str], *, seeds: int, workers: int = 1
) -> Benchmark:
    """Score strategies on a labelled corpus; those asked for by name must have what they need."""
    subject = Subject(name, name, corpus.rows, corpus.equipped, defaults, {BUGS: corpus.bugs}, corpus.costs)
    settings = Settings(strategies or list(registered()), bool(strategies), seeds, workers)
    return result.run([subject], settings, labels="", environments={})


def table(benchmark: Benchmark, granularity: str = BUGS) -> dict[str, dict[str, Metric]]:
    """Return strategy → metric → figures of the only subject of a benchmark."""
    return {x.strategy: x.metrics for x in benchmark.scores if x.granularity == granularity}


def evaluate(
    corpus_: Labelled, strategies: list[str], defaults: Defaults, seeds: int = 30
) -> dict[str, dict[str, Metric]]:
    """Return strategy → metric (`apfd`, `rauc25`, ...) → figures over seeds 0 to `seeds` − 1. Raises UsageError."""
    return table(corpus(corpus_, "corpus", defaults, strategies, seeds=seeds))


def show_corpus(
    instances: Path,
    equipped: Path | None,
    labels: Path,
    costs: Path | None,
    settings: Settings,
    format: str,
    output: Path | None,
) -> None:
    """Score a labelled corpus, and print strategy → metric → figures, or a table."""
    loaded = labelled.load(instances, equipped, labels, costs)
    operators = {row.operator for row in (*loaded.rows, *loaded.equipped)}
    defaults = libraries.get(loaded.library).equipped_defaults(operators)
    asked = settings.strategies if settings.strict else []
    name = labels.name.removesuffix(".gz").removesuffix(".json")
    found = corpus(loaded, name, defaults, asked, seeds=settings.seeds, workers=settings.workers)
    _print(found, format, json_of=table(found))
    if output is not None:
        _write(found, output)


def show_live(
    workspaces: Sequence[Workspace],
    labels: Path | None,
    held_out: Path | None,
    settings: Settings,
    format: str,
    output: Path | None,
) -> None:
    """Freeze labels where none are given, score every frontend of the workspaces, print a table, and write all reports."""
    output = output or workspaces[0].root / "benchmarks" / time.strftime("%Y-%m-%d")
    file = labels or output / "labels.json"
    if labels is None and not file.exists():
        freeze(workspaces, file)
        frozen = labelling.read(file)
    else:
        frozen = labelling.read(file)
        print(f"labels of {file}, frozen {frozen.frozen}", file=sys.stderr)
        _tell_unlabelled(workspaces, frozen, file, must=labels is None)
    scopes = _scopes(held_out, list(frozen.frontends), settings) if held_out else {}
    settings = msgspec.structs.replace(settings, scopes=scopes)
    result.check_baseline(settings)
    environments = {
        name: f"{x.compiler} {x.compiler_version}, {x.library} {x.library_version}"
        for name, x in frozen.frontends.items()
    }
    found = result.run(live(workspaces, frozen), settings, labels=_sha256(file), environments=environments)
    _print(found, format, json_of=found)
    _write(found, output)


def freeze(workspaces: Sequence[Workspace], file: Path) -> None:
    """Write the labels of workspaces to a new file, and say what they are."""
    frozen = labelling.freeze(workspaces)
    labelling.write(frozen, file)
    print(f"labels frozen in {file} (SHA-256 {_sha256(file)}):", file=sys.stderr)
    for name, frontend in frozen.frontends.items():
        counts = ", ".join(f"{len(faults)} by {granularity}" for granularity, faults in frontend.faults.items())
        print(f"  {name}: {frontend.tests} tests, faults: {counts}", file=sys.stderr)
    older = [name for workspace in workspaces for name in labelling.left_out(workspace)]
    if older:
        print(f"  not labelled, for a newer version of the frontend is: {', '.join(older)}", file=sys.stderr)


def publish(workspaces: Sequence[Workspace], labels: Path | None, folder: Path) -> None:
    """Write the rows, labels and costs of workspaces to a new folder, and how they are scored without them."""
    frozen = labelling.freeze(workspaces) if labels is None else labelling.read(labels)
    labelling.write(frozen, folder / "labels.json")
    for subject in live(workspaces, frozen):
        for command in publishing.publish(subject, folder):
            print(command)


def _tell_unlabelled(workspaces: Sequence[Workspace], frozen: Labels, file: Path, *, must: bool) -> None:
    """Say which frontends with findings the labels leave out. Raises UsageError where they `must` hold all."""
    held = {(x.frontend, x.environment) for x in frozen.frontends.values()}
    found = {
        (x.frontend, x.environment, x.compiler_version)
        for workspace in workspaces
        for newest in [labelling.scored(workspace)]
        for x in findings(workspace)
        if (x.frontend, x.environment) in newest
    }
    missing = [f"{name} {version}" for name, environment, version in sorted(found) if (name, environment) not in held]
    if not missing:
        return
    if must:
        raise UsageError(
            f"the labels in {file} know nothing of {', '.join(missing)}",
            cause="they were frozen before these were run, or of other workspaces; frozen labels do not change",
            fix=f"name another --output, or --labels {file} to leave these out",
        )
    print(f"not scored, for the labels do not have them: {', '.join(missing)}", file=sys.stderr)


def _scopes(file: Path, frontends: list[str], settings: Settings) -> dict[str, list[str]]:
    """Return which frontends were tuned on and which were not; all that the file does not name for tuning is held out."""
    try:
        told = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), HeldOut)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", fix="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{file}: {error}", fix="see results/benchmarks/held-out.toml") from None
    tuning = [name for name in frontends if name.partition(" ")[0] in told.tuning]
    rest = [name for name in frontends if name not in tuning]
    return {"held out": rest, "tuning": tuning, "all": frontends}


def _print(benchmark: Benchmark, format: str, json_of: object) -> None:
    from opera.benchmark import tables

    if format == "json":
        print(msgspec.json.format(msgspec.json.encode(json_of), indent=1).decode())
    elif format == "markdown":
        print(tables.markdown(benchmark))
    else:
        print(tables.terminal(benchmark))


def _write(benchmark: Benchmark, output: Path) -> None:
    """Write JSON, Markdown, HTML and figures. Raises UsageError."""
    from opera.benchmark import figures, html, tables

    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / "benchmark.json").write_bytes(msgspec.json.encode(benchmark) + b"\n")
        (output / "table.md").write_text(tables.markdown(benchmark) + "\n", encoding="utf-8")
        drawn = figures.write(benchmark, output)
        (output / "report.html").write_text(html.render(benchmark, drawn), encoding="utf-8")
    except OSError as error:
        raise errors.unwritable(output, error) from None
    print(f"reports in {output}: report.html, table.md, benchmark.json, figures/", file=sys.stderr)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
