"""The benchmark as figures: PNG and PDF for papers, SVG for the HTML report."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib
import msgspec
import numpy as np

from opera.benchmark import tables
from opera.benchmark.result import Benchmark

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "opera"  # ids in the SVG are the same each time
from matplotlib import pyplot  # noqa: E402 - the backend is chosen first

Curve: TypeAlias = list[tuple[float, float]]

KINDS = ("png", "pdf")
DASHES = ("-", "--", ":", "-.")


class Figure(msgspec.Struct, frozen=True):
    """A figure: file name without ending, caption, and its SVG."""

    name: str
    caption: str
    svg: str


def write(benchmark: Benchmark, output: Path) -> list[Figure]:
    """Write every figure to `output`/figures as PNG and PDF, and return them."""
    folder = output / "figures"
    folder.mkdir(exist_ok=True)
    drawn = []
    for name, caption, draw in _figures(benchmark):
        figure = draw()
        for kind in KINDS:
            figure.savefig(folder / f"{name}.{kind}", dpi=120, bbox_inches="tight", metadata=_undated(kind))
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
        svg = text.getvalue()
        drawn.append(Figure(name, caption, svg[svg.index("<svg") :]))
    return drawn


def _undated(kind: str) -> dict[str, Any]:
    """Return metadata that make the same figure the same file."""
    return {"CreationDate": None} if kind == "pdf" else {}


def _figures(benchmark: Benchmark) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    for granularity in benchmark.granularities:
        caption = f"APFD by strategy, faults by {granularity}: mean over ties and bootstrap 95 % interval over faults"
        yield f"apfd-{granularity}", caption, partial(_intervals, benchmark, granularity)
    granularity = benchmark.granularities[0]
    if len(benchmark.subjects) > 1:
        caption = "Mean over the frontends: share of the faults found over share of the tests, and of the seconds"
        yield "faults-mean", caption, partial(_mean_curves, benchmark, granularity)
    for subject in benchmark.subjects:
        caption = f"{subject.name}: faults found over tests run, and over seconds (ranking and collection counted)"
        yield (
            "faults-" + "".join(x if x.isalnum() or x in ".-" else "-" for x in subject.name),
            caption,
            partial(_curves, benchmark, subject.name, granularity),
        )


def _intervals(benchmark: Benchmark, granularity: str) -> Any:
    names = tables.columns(benchmark)
    rows = tables.rows(benchmark, granularity, "apfd")[::-1]
    figure, axes = pyplot.subplots(
        1, len(names), sharex=True, sharey=True, squeeze=False, figsize=(1 + 2.6 * len(names), 1 + 0.3 * len(rows))
    )
    for number, (name, axis) in enumerate(zip(names, axes[0], strict=True)):
        for place, (strategy, cells) in enumerate(rows):
            cell = cells[number]
            if cell is not None:
                low, high = cell.interval
                colour = "C3" if strategy == benchmark.baseline else "C0"
                axis.plot([low, high], [place, place], color=colour, linewidth=1.5)
                axis.plot([cell.mean], [place], marker="o", color=colour, markersize=4)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("APFD", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(rows)), [name for name, _ in rows])
    return figure


def _curves(benchmark: Benchmark, subject: str, granularity: str) -> Any:
    scores = [x for x in benchmark.scores if (x.subject, x.granularity) == (subject, granularity)]
    lines = {x.strategy: (x.tests_curve, x.seconds_curve) for x in scores}
    return _lines(lines, ("tests run", "seconds", "faults found"), benchmark.strategies)


def _mean_curves(benchmark: Benchmark, granularity: str) -> Any:
    """Draw strategies that every frontend has; the curves' places are at equal steps, so they are averaged one by one.

    Seconds are shares of those that the tests of a frontend take, so ranking that takes long ends beyond 1.
    """
    facts = {x.name: x for x in benchmark.subjects}
    lines = {}
    for strategy in benchmark.strategies:
        scores = [x for x in benchmark.scores if (x.strategy, x.granularity) == (strategy, granularity)]
        if len(scores) < len(facts):
            continue
        faults = [facts[x.subject].faults[granularity] for x in scores]
        tests = [np.array(x.tests_curve) / (facts[x.subject].tests, m) for x, m in zip(scores, faults, strict=True)]
        seconds = [
            np.array(x.seconds_curve) / (facts[x.subject].seconds, m)
            for x, m in zip(scores, faults, strict=True)
            if x.seconds_curve
        ]
        lines[strategy] = _averaged(tests), _averaged(seconds)
    names = "share of the tests run", "share of the seconds of all tests", "share of the faults found"
    return _lines(lines, names, benchmark.strategies)


def _averaged(curves: list[Any]) -> Curve:
    return [(float(x), float(y)) for x, y in np.mean(curves, axis=0)] if curves else []


def _lines(lines: dict[str, tuple[Curve, Curve]], names: tuple[str, str, str], strategies: list[str]) -> Any:
    """Draw strategy → curves over tests and over seconds (empty where seconds are not known); styles go by strategy."""
    timed = all(seconds for _, seconds in lines.values())
    figure, axes = pyplot.subplots(1, 2 if timed else 1, squeeze=False, figsize=(11 if timed else 6, 3.8))
    for strategy, curves in lines.items():
        number = strategies.index(strategy)
        style = {"color": f"C{number % 10}", "linestyle": DASHES[number // 10 % len(DASHES)], "linewidth": 1.2}
        for axis, curve in zip(axes[0], curves, strict=False):
            axis.plot(*zip(*curve, strict=True), label=strategy, **style)
    axes[0][0].set_ylabel(names[2], fontsize=8)
    for axis, name in zip(axes[0], names[:2], strict=False):
        axis.set_xlabel(name, fontsize=8)
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
    axes[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
