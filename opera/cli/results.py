"""Commands that tell what is stored: findings, show, operators, repro, report, benchmark."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from opera.cli.app import CORES, RESULTS, KnownFile, Root, Workers, app
from opera.errors import NEW_FINDINGS, OK, USAGE, UsageError


@app.command()
def findings(
    frontend: Annotated[str, typer.Option(help="Only this frontend (tvm-onnx).")] = "",
    operator: Annotated[str, typer.Option(help="Only findings of operators that match this glob: 'Conv*'.")] = "*",
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="Only those that are so (repeatable): ready, doubtful, new, known, confirmed, unconfirmed, a verdict, a tag."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array instead.")] = False,
    by: Annotated[str, typer.Option(help="`cause`: what findings of several frontends have in common.")] = "",
    disputed: Annotated[
        bool, typer.Option("--disputed", help="Instead: tests of the library whose expectation others contradict.")
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Only what --known does not list.")] = False,
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """List the findings: each a set of failing tests of one cause, one suspected bug.

    Example: opera findings --frontend openvino-onnx

    Example: opera findings --operator '*conv*' --status inconsistent --status confirmed

    Example: opera findings --json

    Example: opera findings --by cause

    Example: opera findings --disputed
    """
    from opera.report import show
    from opera.report.chosen import Wanted
    from opera.store.workspace import Workspace
    from opera.triage.known import Known

    if by not in ("", "cause"):
        raise UsageError(f"findings are not grouped by {by!r}", fix="give --by cause, or leave it out")
    if (by or disputed) and (as_json or status or operator != "*"):
        raise UsageError(
            f"{'--by' if by else '--disputed'} goes with --frontend alone",
            fix="leave out --operator, --status and --json",
        )
    if new and (by or disputed):
        raise UsageError("--new lists findings, and neither causes nor tests", fix="leave out --by and --disputed")
    with Workspace.open(workspace, write=False) as opened:
        if disputed:
            show.disputed(opened, frontend)
        elif by:
            show.by_cause(opened, frontend)
        else:
            words = (*(status or ()), *(["new"] if new else []))
            show.findings(opened, Wanted(frontend, operator, words), Known.beside(known), as_json=as_json)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A finding, test or instance, or how its id begins; or an operator.")
    ],
    details: Annotated[
        bool, typer.Option("--details", help="Of a test or an instance, all that was measured as well.")
    ] = False,
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Show what is known of a finding, a test, an operator instance or an operator.

    Example: opera show F3a09c11

    Example: opera show torch.bmm
    """
    from opera.report import show as stage
    from opera.store.workspace import Workspace
    from opera.triage.known import Known

    with Workspace.open(workspace, write=False) as opened:
        stage.show(opened, name, Known.beside(known), details=details)


@app.command()
def operators(
    library: Annotated[list[str] | None, typer.Option(help="Only this library (repeatable).")] = None,
    frontend: Annotated[list[str] | None, typer.Option(help="Only this frontend (repeatable).")] = None,
    operator: Annotated[str, typer.Option(help="Only operators that match this glob: 'Conv*'.")] = "*",
    shows: Annotated[
        str,
        typer.Option(help="Only operators that show this somewhere: fails, partly, unsupported, passes, 'not run'."),
    ] = "",
    format: Annotated[str, typer.Option(help="terminal, markdown, csv or json.")] = "terminal",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    workspace: Root = RESULTS,
) -> None:
    """Show operators × frontends: which pass, which fail, which are unsupported, by the tests that were run.

    Example: opera operators --library keras

    Example: opera operators --frontend tvm-onnx --shows fails

    Example: opera operators --format csv --output operators.csv
    """
    from opera import report
    from opera.report import support
    from opera.store.workspace import Workspace

    with Workspace.open(workspace, write=False) as opened:
        found = support.support(opened, library or [], frontend or [], operator, shows)
    colour = output is None and sys.stdout.isatty()
    text = support.render(found, format, colour=colour)
    report.put([text if text.endswith("\n") else text + "\n"], output, "table")


@app.command()
def repro(
    name: Annotated[str, typer.Argument(metavar="ID", help="A finding (or how its id begins), or `all`.")],
    output: Annotated[Path | None, typer.Option(help="File to write; default: reproducers/ in the workspace.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Run it in a fresh process and say what it showed.")] = False,
    python: Annotated[
        str,
        typer.Option(
            help="With --verify: interpreter to run it with; default: the one that the finding was seen with."
        ),
    ] = "",
    workspace: Root = RESULTS,
) -> None:
    """Write a stand-alone Python script that shows a finding.

    It exits 1 while this very failure is there, 0 once it is gone, and 2 for anything else, such as another failure.

    Example: opera repro F3a09c11 --verify
    """
    from opera.store.workspace import Workspace
    from opera.triage.reproducers import scripts

    with Workspace.open(workspace, write=False) as opened:
        ok = scripts.show(opened, name, output, check=verify, python=python)
    raise typer.Exit(OK if ok else NEW_FINDINGS)


@app.command()
def reduce(
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Findings (or how their ids begin), or `all`.")],
    seconds: Annotated[
        float,
        typer.Option(min=1, help="What the search for one may take; trying what decides, and blame, come on top."),
    ] = 60.0,
    total: Annotated[str, typer.Option(help="What all may take together: seconds, or 30m, 2h.")] = "24h",
    again: Annotated[bool, typer.Option("--again", help="Forget all reductions first.")] = False,
    workers: Workers = CORES,
    workspace: Root = RESULTS,
) -> None:
    """Find the smallest program that fails as each finding does, and write its script.

    Example: opera reduce F3a09c11

    Example: opera reduce all --seconds 20
    """
    from opera.cli.execute import seconds as parsed
    from opera.store.workspace import Workspace
    from opera.triage.reducer import reducing as stage

    with Workspace.open(workspace, write=True, make=False) as opened:
        stage.show(opened, names, seconds, parsed(total), workers, again=again)


@app.command()
def blame(
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Findings (or how their ids begin), or `all`.")],
    again: Annotated[bool, typer.Option("--again", help="Ask once more where there is a verdict already.")] = False,
    time_budget: Annotated[str, typer.Option(help="Take up no more findings after that: seconds, or 30m, 2h.")] = "",
    workers: Workers = CORES,
    workspace: Root = RESULTS,
) -> None:
    """Find out which part is wrong: conversion, optimisation, kernel, exporter or library, with what says so.

    Example: opera blame F3a09c11

    Example: opera blame all --time-budget 10m
    """
    from opera.cli.execute import seconds
    from opera.store.workspace import Workspace
    from opera.triage import blame as stage

    budget = seconds(time_budget) if time_budget else None
    with Workspace.open(workspace, write=True, make=False) as opened:
        stage.show(opened, names, budget=budget, again=again, workers=workers)


@app.command()
def bisect(
    name: Annotated[str, typer.Argument(metavar="ID", help="A finding, or how its id begins.")],
    versions: Annotated[
        str, typer.Option(help="Versions of its compiler to ask, as the package index has them: 2024.0,2025.0.")
    ],
    workspace: Root = RESULTS,
) -> None:
    """Find out since which release of its compiler a finding fails, and in which newer one it is gone.

    Environments are made by uv, or pip, and kept in the user's cache folder. Exits with 2 where no release can tell.

    Example: opera bisect F3a09c11 --versions 2023.1,2024.0,2024.3,2025.0,2026.0
    """
    from opera.store.workspace import Workspace
    from opera.triage.versions import bisect as stage

    names = [x.strip() for x in versions.split(",") if x.strip()]
    with Workspace.open(workspace, write=True, make=False) as opened:
        told = stage.show(opened, name, names)
    raise typer.Exit(OK if told else USAGE)


@app.command()
def report(
    format: Annotated[
        str, typer.Option(help="terminal, json, markdown, html, junit or sarif; csv or parquet: a table.")
    ] = "terminal",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    balance: Annotated[
        bool,
        typer.Option(
            "--balance", help="Compare migration sources by the same number of tests each, best-ranked first."
        ),
    ] = False,
    table: Annotated[
        str, typer.Option(help="With csv and parquet: verdicts (the default), findings, instances or rankings.")
    ] = "",
    source: Annotated[
        Path | None, typer.Option(help="With sarif: a checkout of the compiler, for its files to be found there.")
    ] = None,
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Report from what is stored, also while a run goes on: verdicts, findings, efficiency, what each source found.

    Example: opera report --format html --output report.html

    Example: opera report --format junit --output junit.xml && opera report --format sarif --output opera.sarif

    Example: opera report --balance

    Example: opera report --format csv --table findings --output findings.csv
    """
    from opera import report as stage
    from opera.data import formats
    from opera.store.workspace import Workspace
    from opera.triage.findings import findings as all_findings
    from opera.triage.known import Known

    stage.check(format, output)
    if format in formats.FORMATS:
        if balance:
            raise UsageError(
                "--balance compares sources, and a table does not", fix="leave it out, or use --format json"
            )
        formats.show(workspace, table or "verdicts", format, output)
        return
    if table:
        told = " and ".join(formats.FORMATS)
        raise UsageError(f"--table goes with --format {told}", fix="see `opera report --help`")
    if source is not None and not source.is_dir():
        raise UsageError(
            f"there is no folder {source}", cause="a wrong path", fix="give --source a checkout of the compiler"
        )
    issues = Known.beside(known)
    if format in stage.STREAMED:
        with Workspace.open(workspace, write=False) as opened:
            found = issues.within_workspace(opened).marked(all_findings(opened))
            stage.put(stage.stream(format).chunks(opened, found, source=source), output)
        return
    from opera.report.summary import summarise

    chosen = stage.get(format)
    with Workspace.open(workspace, write=False) as opened:
        stage.write(chosen, summarise(opened, balance=balance, pages=format == "html", known=issues), output)


@app.command()
def diff(
    sides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BEFORE AFTER]",
            help="Environments (openvino=2025.0, or how an id begins), folders of workspaces, or FOLDER@ENVIRONMENT;"
            " default: the two that a frontend has, the older version before.",
        ),
    ] = None,
    frontend: Annotated[str, typer.Option(help="Only this frontend (openvino-onnx).")] = "",
    tests: Annotated[bool, typer.Option("--tests", help="List the tests that differ, too.")] = False,
    known: KnownFile = None,
    format: Annotated[str, typer.Option(help="terminal, json, markdown or html.")] = "terminal",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    workspace: Root = RESULTS,
) -> None:
    """Compare two versions of a compiler: what is new, fixed, changed, still there, now or no longer supported.

    Exits with 1 where something has become worse that is not known. Only tests that were run on both sides are compared.

    Example: opera diff

    Example: opera diff openvino=2025.0 openvino=2026.4 --format markdown

    Example: opera diff release/results nightly/results --tests
    """
    from opera.report import differences
    from opera.triage.known import Known
    from opera.triage.versions import diff as stage
    from opera.triage.versions.sides import choose

    if len(sides or []) > 2:
        raise UsageError(f"two sides are compared, not {len(sides or [])}", fix="see `opera diff --help`")
    if format not in differences.FORMATS:
        raise UsageError(f"there is no format called {format!r}", fix=f"choose from {', '.join(differences.FORMATS)}")
    with ExitStack() as stack:
        found = stage.diff(choose(stack, workspace, sides or [], frontend), Known.beside(known))
        differences.write(differences.render(format, found, tests=tests), output)
    raise typer.Exit(NEW_FINDINGS if found.regressions else OK)


@app.command()
def benchmark(
    strategy: Annotated[list[str] | None, typer.Option(help="Strategy to score (repeatable); default: all.")] = None,
    seeds: Annotated[
        int, typer.Option("--repeat", "--seeds", min=1, help="How often to rank, with other orders of ties and draws.")
    ] = 30,
    baseline: Annotated[str, typer.Option(help="Strategy that the others are compared to.")] = "opera",
    labels: Annotated[
        Path | None, typer.Option(help="Frozen labels; with --instances a JSON object: fault → ids of instances.")
    ] = None,
    freeze: Annotated[
        Path | None, typer.Option(help="Only write the labels of the workspace to this new file.")
    ] = None,
    publish: Annotated[
        Path | None, typer.Option(help="Only write rows, labels and costs to this new folder, for --instances.")
    ] = None,
    held_out: Annotated[Path | None, typer.Option(help="TOML that names the frontends that were tuned on.")] = None,
    instances: Annotated[Path | None, typer.Option(help="JSON lines of instances: a labelled corpus.")] = None,
    equipped: Annotated[Path | None, typer.Option(help="With --instances: JSON lines of the compiler's tests.")] = None,
    costs: Annotated[Path | None, typer.Option(help="With --instances: JSON object, id → seconds, for APFDc.")] = None,
    format: Annotated[str, typer.Option(help="terminal, markdown or json.")] = "terminal",
    output: Annotated[
        Path | None, typer.Option(help="Folder for report.html, figures, ...; default: WORKSPACE/benchmarks/DATE.")
    ] = None,
    workers: Workers = CORES,
    cluster: Annotated[str, typer.Option(hidden=True)] = "",
    workspace: Annotated[
        list[Path] | None,
        typer.Option(help="Folder that holds runs (repeatable); default: results.", envvar="OPERA_WORKSPACE"),
    ] = None,
) -> None:
    """Score strategies: how early would each have found what was found? By APFD and RAUC, on live runs or labelled corpora.

    Example: opera benchmark

    Example: opera benchmark --freeze labels.json && opera benchmark --labels labels.json --strategy opera --repeat 5

    Example: opera benchmark --workspace onnx-runs --workspace torch-runs --output report

    Example: opera benchmark --publish onnx-labels

    Example: opera benchmark --instances onnx.jsonl --equipped tvm.jsonl --labels bugs.json --format json
    """
    from opera import prioritize as strategies
    from opera.benchmark import command
    from opera.benchmark.result import Settings
    from opera.store.workspace import Workspace

    if cluster:
        raise UsageError(
            "opera benchmark runs no tests, and has no --cluster",
            cause="it computes with the verdicts that are stored: minutes of one machine, of which --workers uses all cores",
            fix="leave --cluster out; `opera run --cluster` spreads the tests that it scores",
        )
    command.check(format, strategy or [])
    names = list(dict.fromkeys(strategy or strategies.registered()))
    settings = Settings(names, bool(strategy), seeds, workers, baseline)
    if instances is not None:
        if labels is None or freeze is not None or publish is not None or held_out is not None:
            why = "without --freeze, --publish and --held-out, which are about workspaces"
            raise UsageError(f"--instances goes with --labels, {why}", fix="see `opera benchmark --help`")
        command.show_corpus(instances, equipped, labels, costs, settings, format, output)
        return
    if equipped is not None or costs is not None:
        raise UsageError("--equipped and --costs go with --instances", fix="see `opera benchmark --help`")
    with ExitStack() as stack:
        opened = [stack.enter_context(Workspace.open(root, write=False)) for root in workspace or [RESULTS]]
        if freeze is not None:
            command.freeze(opened, freeze)
        elif publish is not None:
            command.publish(opened, labels, publish)
        else:
            command.show_live(opened, labels, held_out, settings, format, output)
