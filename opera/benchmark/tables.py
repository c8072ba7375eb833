"""The benchmark as a table for the terminal and as Markdown."""

from __future__ import annotations

import io
import sys

from rich.console import Console
from rich.table import Column, Table

from opera.benchmark.result import Benchmark, Difference, Facts
from opera.benchmark.score import Metric

NAMES = {
    "apfd": "APFD", "apfdc": "APFDc", "rauc25": "RAUC-25", "rauc50": "RAUC-50", "rauc75": "RAUC-75", "rauc100": "RAUC-100",
}  # fmt: skip
MEAN = "mean"
WIDTH = 10_000
"""Lines are as long as there are frontends: what folds a row of figures makes it unreadable."""
PART = (
    "Where a small part of a corpus was run, strategies are compared within what the order of that run put first; what it put"
    " later is nobody's loss or gain. That narrows the differences to the strategy that chose, and can turn them around."
)


def rows(benchmark: Benchmark, granularity: str, metric: str) -> list[tuple[str, list[Metric | None]]]:
    """Return strategy → figures by subject, and of the mean where there are several; best first."""
    found = []
    for strategy in benchmark.strategies:
        cells = []
        for subject in benchmark.subjects:
            score = benchmark.find(subject.name, strategy, granularity)
            cells.append(score.metrics.get(metric) if score else None)
        mean = benchmark.mean(strategy, granularity)
        if len(benchmark.subjects) > 1:
            cells.append(mean.metrics.get(metric) if mean else None)
        if any(cells):
            found.append((strategy, cells))
    return sorted(found, key=lambda row: -_order(row[1]))


def _order(cells: list[Metric | None]) -> float:
    """Return what a row is sorted by: the mean, else what there is of it, after all that have one."""
    known = [cell.mean for cell in cells if cell is not None]
    return known[-1] if cells[-1] is not None else sum(known) / len(known) - 2


def columns(benchmark: Benchmark) -> list[str]:
    """Return the subjects' names, and `mean` where there are several."""
    names = [subject.name for subject in benchmark.subjects]
    return [*names, MEAN] if len(names) > 1 else names


def metrics(benchmark: Benchmark) -> list[str]:
    """Return the metrics that were measured, in the order in which they are shown."""
    return [name for name in NAMES if any(name in score.metrics for score in benchmark.scores)]


def part(facts: Facts) -> bool:
    """Return whether less than half of the corpus was run: what ran was chosen, and by what matters."""
    return 2 * facts.tests < facts.corpus


def drawn(facts: Facts) -> str:
    """Return what the tests were taken from."""
    if not facts.corpus:
        return ""
    return f"{facts.corpus}, the first by `{facts.chosen_by}`" if part(facts) else str(facts.corpus)


def terminal(benchmark: Benchmark) -> str:
    """Return the tables of APFD, the differences to the baseline, and where the rest is."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, force_terminal=sys.stdout.isatty(), highlight=False, markup=False)
    console.print(_head(benchmark))
    for x in benchmark.subjects:
        if part(x):
            console.print(f"{x.name}: {x.tests} tests of {drawn(x)}".replace("`", ""))
    for granularity in benchmark.granularities:
        shown = metrics(benchmark) if len(benchmark.subjects) == 1 else ["apfd"]
        for metric in shown:
            console.print(f"\n{NAMES[metric]} by {granularity}: mean over seeds [95 % interval] (corpus order)")
            console.print(_table(benchmark, granularity, metric))
    console.print()
    for told in map(difference, _headline(benchmark)):
        console.print(told)
    for name, without in benchmark.left_out.items():
        console.print(f"left out of {name}, for it has not what they need: {', '.join(without)}")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()


def _table(benchmark: Benchmark, granularity: str, metric: str) -> Table:
    heads = (Column(name, no_wrap=True) for name in ("strategy", *columns(benchmark)))
    table = Table(*heads, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.header_style = "bold"
    for name, cells in rows(benchmark, granularity, metric):
        table.add_row(name, *map(_told, cells))
    return table


def markdown(benchmark: Benchmark) -> str:
    """Return all tables."""
    lines = [_head(benchmark), ""]
    lines += [f"- {name}: {told}" for name, told in benchmark.environments.items()]
    lines += [f"- {', '.join(f'{name} {told}' for name, told in benchmark.versions.items())}"]
    if benchmark.labels:
        lines.append(f"- labels frozen before scoring: SHA-256 `{benchmark.labels}`")
    lines += [
        "",
        "| frontend | tests | of | equipped | " + " | ".join(f"faults by {x}" for x in benchmark.granularities) + " |",
    ]
    lines.append("|---|---:|---|" + "---:|" * (1 + len(benchmark.granularities)))
    for x in benchmark.subjects:
        counts = " | ".join(str(x.faults.get(name, "")) for name in benchmark.granularities)
        lines.append(f"| {x.name} | {x.tests} | {drawn(x)} | {x.equipped} | {counts} |")
    if any(part(x) for x in benchmark.subjects):
        lines += ["", PART]
    for granularity in benchmark.granularities:
        for metric in metrics(benchmark):
            lines += ["", f"{NAMES[metric]}, faults by {granularity}", ""]
            lines.append("| strategy | " + " | ".join(columns(benchmark)) + " |")
            lines.append("|---" * (1 + len(columns(benchmark))) + "|")
            for name, cells in rows(benchmark, granularity, metric):
                lines.append(f"| `{name}` | " + " | ".join(map(_told, cells)) + " |")
    if benchmark.differences:
        lines += ["", f"Difference to `{benchmark.baseline}`, paired by fault", ""]
        lines += [
            "| scope | faults by | metric | strategy | mean difference | 95 % interval |",
            "|---|---|---|---|---:|---|",
        ]
        lines += [
            f"| {x.scope} ({len(x.subjects)}) | {x.granularity} | {NAMES[x.metric]} | `{x.strategy}` | {x.mean:+.3f}"
            f" | [{x.interval[0]:+.3f}, {x.interval[1]:+.3f}] |"
            for x in benchmark.differences
        ]
    return "\n".join(lines)


def compared(
    benchmark: Benchmark, granularity: str, metric: str
) -> tuple[list[tuple[str, tuple[str, ...]]], list[tuple[str, list[Difference]]]]:
    """Return scopes with their subjects, and strategy → its difference in each scope; best in the first scope first."""
    found = [x for x in benchmark.differences if (x.granularity, x.metric) == (granularity, metric)]
    scopes = dict.fromkeys((x.scope, x.subjects) for x in found)
    strategies = dict.fromkeys(x.strategy for x in found)
    told = [(name, [x for x in found if x.strategy == name]) for name in strategies]
    return list(scopes), sorted(told, key=lambda row: -row[1][0].mean)


def difference(told: Difference) -> str:
    """Return a difference in a line."""
    low, high = told.interval
    return (
        f"{told.strategy} − {told.baseline}: {told.mean:+.3f} [{low:+.3f}, {high:+.3f}] {NAMES[told.metric]},"
        f" faults by {told.granularity}, {told.scope}: {', '.join(told.subjects)}"
    )


def _headline(benchmark: Benchmark) -> list[Difference]:
    """Return the differences worth a line: in APFD, of strategies that are better than the baseline."""
    return [x for x in benchmark.differences if x.metric == "apfd" and x.mean > 0]


def _head(benchmark: Benchmark) -> str:
    tests = ", ".join(f"{x.name}: {x.tests} tests, {max(x.faults.values())} faults" for x in benchmark.subjects)
    return f"opera {benchmark.opera_version}, {benchmark.generated}; {tests}; {benchmark.seeds} orders of ties"


def _told(cell: Metric | None) -> str:
    if cell is None:
        return "–"
    return f"{cell.mean:.3f} ± {cell.sd:.3f} [{cell.interval[0]:.3f}, {cell.interval[1]:.3f}] ({cell.corpus_order:.3f})"
