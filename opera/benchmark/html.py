"""The benchmark as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opera.benchmark import tables
from opera.benchmark.result import Benchmark
from opera.resources import content

if TYPE_CHECKING:
    from opera.benchmark.figures import Figure


def render(benchmark: Benchmark, figures: Sequence[Figure]) -> str:
    """Return the file."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(content("templates") / "benchmark"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("benchmark.html.j2").render(
        benchmark=benchmark,
        figures=[(figure.caption, Markup(figure.svg)) for figure in figures],
        columns=tables.columns(benchmark),
        metrics=[(name, tables.NAMES[name]) for name in tables.metrics(benchmark)],
        rows=tables.rows,
        compared=tables.compared,
        names=tables.NAMES,
        ranks=_ranks(benchmark),
        facts=[(x, tables.drawn(x).replace("`", "")) for x in benchmark.subjects],
        part=tables.PART if any(map(tables.part, benchmark.subjects)) else "",
    )


def _ranks(benchmark: Benchmark) -> list[tuple[str, str, list[str], list[tuple[str, list[str]]]]]:
    """Return for each subject and granularity: the strategies, and fault → its mean rank by each."""
    out = []
    for subject in benchmark.subjects:
        for granularity in subject.faults:
            scores = [x for x in benchmark.scores if (x.subject, x.granularity) == (subject.name, granularity)]
            if not scores:
                continue
            faults = [(fault, [f"{score.ranks[fault].mean:.0f}" for score in scores]) for fault in scores[0].ranks]
            out.append((subject.name, granularity, [score.strategy for score in scores], faults))
    return out
