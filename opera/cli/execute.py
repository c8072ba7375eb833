"""Commands that run compilers: run, check, coverage, doctor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from opera.cli.app import CORES, RESULTS, Device, KnownFile, Option, Root, Workers, app
from opera.errors import NEW_FINDINGS, OK, USAGE, UsageError


@app.command()
def run(
    compiler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=PYTHON]",
            help="Only this compiler (repeatable), with the interpreter of an environment of its own;"
            " default: all installed ones.",
        ),
    ] = None,
    library: Annotated[list[str] | None, typer.Option(help="Only this library (repeatable).")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the best-ranked N tests of each frontend, done ones included.")
    ] = None,
    time_budget: Annotated[str, typer.Option(help="Begin no test after this time: seconds, or 30m, 2h.")] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at a time, of each node with --cluster; default: its CPUs.")
    ] = None,
    cluster: Annotated[
        str, typer.Option(help="Run on a Ray cluster: its address (HOST:PORT, ray://HOST:PORT, auto), or local.")
    ] = "",
    store: Annotated[
        str,
        typer.Option(help="Folder or bucket (s3://…) that all nodes reach, for the tests; default: Ray moves them."),
    ] = "",
    operator: Annotated[str, typer.Option(help="Only operators that match this glob: 'Conv*'.")] = "*",
    test: Annotated[str, typer.Option(help="Only the test (or instance) whose id begins so.")] = "",
    rerun: Annotated[bool, typer.Option("--rerun", help="Run again what has a verdict.")] = False,
    balance: Annotated[
        bool,
        typer.Option(
            "--balance", help="The same number of tests from each migration source; --limit is shared equally."
        ),
    ] = False,
    python: Annotated[
        str,
        typer.Option(
            help="Interpreter of another environment (opera and compilers of other versions in it), for all that have none of"
            " their own."
        ),
    ] = "",
    option: Option = None,
    device: Device = "",
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that one test may take; what a busy machine takes does not count.")
    ] = 30.0,
    memory: Annotated[float, typer.Option(min=0.1, help="GiB that a worker may grow by in one test.")] = 4.0,
    fail_on_new: Annotated[
        bool,
        typer.Option(
            "--fail-on-new", help="Exit with 1 if there are findings that neither the workspace had nor --known lists."
        ),
    ] = False,
    known: KnownFile = None,
    reduce: Annotated[
        bool,
        typer.Option("--reduce/--no-reduce", help="Look for the smallest program of each new finding, at the end."),
    ] = True,
    reduce_seconds: Annotated[
        float | None, typer.Option(min=0, help="What that may take; default: half as long as the run, 30 s at least.")
    ] = None,
    workspace: Root = RESULTS,
) -> None:
    """Run the ranked tests, best first, on the compilers' frontends. The same command resumes what was interrupted.

    Example: opera run --compiler tvm

    Example: opera run --compiler openvino --operator 'Conv*' --limit 200 --time-budget 10m

    Example: opera run --compiler onnxruntime --python ../old/bin/python

    Example: opera run --compiler openvino --compiler mnn=../mnn/bin/python

    Example: opera run --library torch --balance --limit 3000

    Example: opera run --cluster 10.0.0.1:6379 --store /mnt/shared/opera
    Example: opera run --compiler onnxruntime --option provider=CUDAExecutionProvider

    Example: opera run --compiler inductor --device cuda
    """
    from opera.programs import verdicts as records
    from opera.report.known import after_run
    from opera.run import environments, show
    from opera.run.driver import Options
    from opera.run.plan import Selection
    from opera.store.workspace import Workspace
    from opera.triage.known import Known
    from opera.triage.reducer import reducing as reduction

    if store and not cluster:
        raise UsageError("--store is of a cluster", fix="name one with --cluster, or leave --store out")
    issues = Known.beside(known)  # a file that cannot be read is told before hours of running, not after
    compilers, pythons = environments.chosen(compiler or (), python, workspace)
    options = Options(
        compilers=compilers,
        libraries=tuple(library or ()),
        python=environments.interpreter(python) if python else "",
        pythons=pythons,
        workers=workers or (0 if cluster else CORES),
        cluster=cluster,
        store=store,
        time_budget=seconds(time_budget) if time_budget else None,
        selection=Selection(limit, operator, test, rerun, balance),
        limits=records.Limits(timeout, int(memory * (1 << 30))),
        chosen=_chosen(option, device, compilers),
    )
    show.check(options)
    given = reduction.Given(reduce, reduce_seconds, options.time_budget, workers or CORES)
    with Workspace.open(workspace, write=True, make=False) as opened:
        after = reduction.Afterwards(given)
        new = show.run(opened, options, after, lambda of, names: after_run(of, issues, [*names, *after.found]))
    raise typer.Exit(NEW_FINDINGS if fail_on_new and new else OK)


@app.command()
def check(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT [-- ARGUMENTS]",
            help="A script, an .onnx file, or python or pytest with what follows; arguments of the script after `--`.",
        ),
    ],
    compiler: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=PYTHON]", help="Only this compiler (repeatable); default: all installed ones."),
    ] = None,
    library: Annotated[
        str, typer.Option(help="The library whose operators are checked (onnx, torch, keras); default: by the imports.")
    ] = "",
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", help="Folder that keeps what was found; default: results/check/SCRIPT."),
    ] = None,
    temporary: Annotated[bool, typer.Option("--temporary", help="Keep nothing.")] = False,
    time_budget: Annotated[str, typer.Option(help="Begin no test after this time: seconds, or 30m, 2h.")] = "",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one test may take.")] = 30.0,
    workers: Workers = CORES,
    format: Annotated[str, typer.Option(help="terminal or json.")] = "terminal",
    option: Option = None,
    device: Device = "",
) -> None:
    """Tell which lines of a program fail on a compiler: run it, record what it calls, and try each call on the compiler.

    Exits with 0 if every call passes, 1 if one fails, 2 if the program cannot be checked.

    Example: opera check train.py --compiler openvino

    Example: opera check train.py --compiler openvino --compiler tvm --library torch -- --epochs 1

    Example: opera check model.onnx --compiler onnxruntime
    """
    from opera.check import command

    if workspace is not None and temporary:
        raise UsageError("--temporary keeps nothing, and --workspace says where to", fix="leave one of them out")
    fails = command.check(
        command.Wanted(
            library=library, words=tuple(program), compilers=tuple(compiler or ()), workspace=workspace,
            temporary=temporary, workers=workers, time_budget=seconds(time_budget) if time_budget else None,
            timeout=timeout, format=format, settings=_settings(option, device),
        )
    )  # fmt: skip
    raise typer.Exit(NEW_FINDINGS if fails else OK)


@app.command()
def coverage(
    frontend: Annotated[str, typer.Option(help="A frontend written in Python (tvm-onnx).")] = "",
    library: Annotated[
        str,
        typer.Option(help="Instead: how much of what the schemas of this library (onnx) admit its instances are at."),
    ] = "",
    workers: Workers = CORES,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one test may take.")] = 30.0,
    rerun: Annotated[bool, typer.Option("--rerun", help="Trace again what has coverage.")] = False,
    only_run: Annotated[
        bool, typer.Option("--only-run", help="Only the tests that were run on it: what opera benchmark scores.")
    ] = False,
    operator: Annotated[str, typer.Option(help="With --library: only operators that match this glob: 'Conv*'.")] = "*",
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="With --library: ask references what else they run.")
    ] = True,
    format: Annotated[str, typer.Option(help="With --library: terminal, markdown or json.")] = "terminal",
    workspace: Root = RESULTS,
) -> None:
    """Record which statements of a frontend each test covers, or tell how much of a library's schemas its instances cover.

    Example: opera coverage --frontend tvm-onnx

    Example: opera coverage --frontend tvm-torch --only-run

    Example: opera coverage --library onnx --operator 'Reduce*'
    """
    from opera.programs import verdicts as records
    from opera.store.workspace import Workspace

    if bool(frontend) == bool(library):
        raise UsageError("give --frontend or --library, one of the two", fix="opera coverage --library onnx")
    if library:
        from opera.report import admitted

        with Workspace.open(workspace, write=False) as opened:
            admitted.show(opened, library, operator, probe=probe, workers=workers, format=format)
        return
    from opera.run import collect

    collect.traceable(frontend)
    with Workspace.open(workspace, write=True, make=False) as opened:
        limits = records.Limits(timeout)
        collect.show(opened, frontend, workers=workers, limits=limits, rerun=rerun, only_run=only_run)


@app.command()
def doctor(
    compiler: Annotated[
        list[str] | None, typer.Option(metavar="NAME[=PYTHON]", help="Only this compiler (repeatable); default: all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only what is installed, in a second: no compiler is started.")
    ] = False,
    python: Annotated[
        str, typer.Option(help="Interpreter of another environment: the compilers are tried with it.")
    ] = "",
    option: Option = None,
    device: Device = "",
    workspace: Root = RESULTS,
    workers: Workers = CORES,
) -> None:
    """Show what is there, and check every compiler with a canary: a right answer and a planted wrong one.

    Example: opera doctor

    Example: opera doctor --compiler tvm --compiler openvino

    Example: opera doctor --quick

    Example: opera doctor --compiler openvino --python ../old/bin/python

    Example: opera doctor --compiler inductor --device cuda
    """
    from opera.run import doctor as stage
    from opera.run import environments

    if quick and python:
        raise UsageError("--quick starts no other interpreter", fix="leave --quick or --python out")
    names, pythons = environments.chosen(compiler or (), python, workspace)
    rest = environments.interpreter(python) if python else ""
    chosen = _chosen(option, device, names)
    fine = stage.show(
        workspace, workers, names, quick=quick, interpreter=lambda name: pythons.get(name, rest), chosen=chosen
    )
    raise typer.Exit(OK if fine else USAGE)


def _chosen(option: list[str] | None, device: str, names: Iterable[str]) -> dict[str, str]:
    """Return what is chosen of the settings of these compilers, of all where none is named."""
    from opera import compilers
    from opera.compilers import settings

    texts = _settings(option, device)
    return settings.parsed(texts, list(names) or compilers.registered()) if texts else {}


def _settings(option: list[str] | None, device: str) -> tuple[str, ...]:
    return (*(option or ()), *([f"device={device}"] if device else ()))


def seconds(text: str) -> float:
    """Return the seconds of `90`, `30m` or `2h`. Raises UsageError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{text!r} is no time", fix="give seconds, or minutes and hours as 30m and 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
