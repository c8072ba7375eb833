"""The commands of `opera`. No logic: each reads its options, opens the workspace and calls the stage that does the work."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from opera import __version__
from opera.cli import interrupts
from opera.errors import INTERRUPTED, NEW_FINDINGS, OK, USAGE, OperaError, UsageError


class _Commands(TyperGroup):
    """All commands. What ends them from outside is taken before typer turns it into exit codes of its own."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            interrupts.tell()
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of our output is gone, as with `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(OK) from None


app = typer.Typer(
    name="opera",
    cls=_Commands,
    help="Migrate the tests of deep-learning libraries to the frontends of deep-learning compilers.\n\n"
    "opera extract onnx && opera prioritize && opera run && opera report",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
corpus_app = typer.Typer(
    help="Exchange operator instances with others as files (docs/corpus.md).", no_args_is_help=True
)
app.add_typer(corpus_app, name="corpus")

Root = Annotated[Path, typer.Option("--workspace", help="Folder that holds everything.", envvar="OPERA_WORKSPACE")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes at a time.")]
Names = Annotated[list[str] | None, typer.Option()]
RESULTS = Path("results")
CORES = min(os.cpu_count() or 1, 16)
MACHINES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota of the disk is used up",
    errno.EFBIG: "a limit on the size of files (ulimit -f)",
    errno.EROFS: "a read-only file system",
    errno.EACCES: "missing rights",
    errno.EIO: "the disk, or what it is reached by, has failed",
    errno.EMFILE: "a limit on open files (ulimit -n)",
    errno.ENFILE: "the machine has no more open files to give",
    errno.EAGAIN: "a limit on processes (ulimit -u)",
    errno.ENOMEM: "the machine is out of memory",
}
"""Errors of the machine, not of opera, that any command can meet wherever it writes or starts something."""
MAX_SEED = 2**32 - 1
"""numpy's limit."""


def _version(value: bool) -> None:
    if value:
        typer.echo(f"opera {__version__}")
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    return


@app.command()
def doctor(
    compiler: Annotated[list[str] | None, typer.Option(help="Only this compiler (repeatable); default: all.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only what is installed, in a second: no compiler is started.")
    ] = False,
    workspace: Root = RESULTS,
    workers: Workers = CORES,
) -> None:
    """Show what is there, and check every compiler with a canary: a right answer and a planted wrong one.

    Example: opera doctor

    Example: opera doctor --compiler tvm --compiler openvino

    Example: opera doctor --quick
    """
    from opera.run import doctor as stage

    raise typer.Exit(OK if stage.show(workspace, workers, compiler or [], quick=quick) else USAGE)


class _Extract(TyperCommand):
    """`opera extract`, whose --library takes a command that has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {word.partition("=")[0] for word in args}
        if "--library" in options and not {"--", "-h", "--help", "--source"} & options:
            raise UsageError(
                "--library needs a command after `--`",
                cause="without `--`, options of the command would be taken for opera's",
                fix="opera extract --library torch -- python train.py --epochs 1, or --source for a generator of inputs",
            )
        return super().parse_args(ctx, args)


@app.command(cls=_Extract)
def extract(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET | -- COMMAND",
            help="A checkout of a library, the name of an installed one (onnx, torch), or with --library a command.",
            show_default=False,
        ),
    ] = None,
    library: Annotated[
        str,
        typer.Option(help="Record what the COMMAND after `--` calls of this library: python or pytest and arguments."),
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            help="Take inputs from this generator (docter, deeprel); TARGET is what it published, if anything."
        ),
    ] = "",
    count: Annotated[int, typer.Option(min=0, help="With --source: inputs for each operator.", show_default=False)] = 0,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="With --source: of all that is random.", show_default=False)
    ] = 0,
    violating: Annotated[
        bool,
        typer.Option("--violating", help="With --source docter: each input breaks one constraint, to find crashes."),
    ] = False,
    equipped: Annotated[
        str, typer.Option(help="TARGET is a checkout of this compiler: record what its own frontend suite covers.")
    ] = "",
    workspace: Root = RESULTS,
    workers: Workers = CORES,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that one test file, or the command, may take.", min=1)
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run again the files that are done.")] = False,
) -> None:
    """Run a library's test suite, or a script or suite of your own, under instrumentation: record its operator instances.

    Example: opera extract onnx

    Example: opera extract ../onnx

    Example: opera extract --equipped tvm ../tvm

    Example: opera extract --library torch -- python train.py --epochs 1

    Example: opera extract --library torch -- pytest my_tests/

    Example: opera extract --source docter --library torch

    Example: opera extract --source docter ../DocTer/constraints_extracted/pytorch1.5
    """
    from opera.sources import generators as sources
    from opera.sources.suites import extract as stage
    from opera.sources.suites import program as command
    from opera.store.workspace import Workspace

    words = target or []
    if source:
        if equipped or len(words) > 1:
            raise UsageError("--source takes one folder at most", fix="see `opera extract --help`")
        request = sources.Request("".join(words), library, workers, timeout, rerun, seed, count, violating)
        work = sources.get(source)(request)
        with Workspace.open(workspace, write=True) as opened:
            ok = work(opened)
    elif count or seed or violating:
        raise UsageError("--count, --seed and --violating go with --source", fix="see `opera extract --help`")
    elif library or len(words) != 1:
        program = command.parse(library, words, equipped)
        with Workspace.open(workspace, write=True) as opened:
            ok = command.extract(opened, program, timeout=timeout)
    else:
        found = stage.recognised(words[0], equipped)  # a wrong path makes no workspace
        with Workspace.open(workspace, write=True) as opened:
            ok = stage.extract(opened, found, equipped=equipped, workers=workers, timeout=timeout, rerun=rerun)
    raise typer.Exit(OK if ok else USAGE)


@app.command()
def constraints(
    library: Annotated[
        str, typer.Argument(help="An installed library that opera generates inputs for (torch, keras).")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write YAML files to, one an operator.")],
) -> None:
    """Write what a library documents of its operators' parameters, to read, edit, and generate inputs from.

    Example: opera constraints torch --out constraints && opera extract --source docter constraints
    """
    from opera.sources.docter import command

    command.write(library, out)


@app.command()
def prioritize(
    strategy: Annotated[str, typer.Option(help="How to rank (docs/benchmark.md lists them).")] = "opera-wide",
    library: Annotated[list[str] | None, typer.Option(help="Only this library (repeatable).")] = None,
    compiler: Annotated[list[str] | None, typer.Option(help="Only for this compiler (repeatable).")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Break ties at random with this seed, not by corpus order.")
    ] = None,
    workspace: Root = RESULTS,
) -> None:
    """Rank the instances of each library for each compiler, those likely to reveal different bugs first.

    Example: opera prioritize

    Example: opera prioritize --strategy random --seed 7 --compiler tvm
    """
    from opera import compilers
    from opera import prioritize as strategies
    from opera.prioritize import order
    from opera.store.workspace import Workspace

    strategies.get(strategy)
    for name in compiler or ():
        compilers.get(name)
    with Workspace.open(workspace, write=True) as opened:
        order.show(
            opened, strategy, chosen=library or [], compilers=compiler or list(compilers.registered()), seed=seed
        )


@app.command()
def coverage(
    frontend: Annotated[str, typer.Option(help="A frontend written in Python (tvm-onnx).")],
    workers: Workers = CORES,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one test may take.")] = 30.0,
    rerun: Annotated[bool, typer.Option("--rerun", help="Trace again what has coverage.")] = False,
    only_run: Annotated[
        bool, typer.Option("--only-run", help="Only the tests that were run on it: what opera benchmark scores.")
    ] = False,
    workspace: Root = RESULTS,
) -> None:
    """Record which statements of a frontend each test covers, for the strategies total and additional.

    Example: opera coverage --frontend tvm-onnx

    Example: opera coverage --frontend tvm-torch --only-run
    """
    from opera.programs import verdicts as records
    from opera.run import collect
    from opera.store.workspace import Workspace

    collect.traceable(frontend)
    with Workspace.open(workspace, write=True) as opened:
        limits = records.Limits(timeout)
        collect.show(opened, frontend, workers=workers, limits=limits, rerun=rerun, only_run=only_run)


@app.command()
def run(
    compiler: Annotated[
        list[str] | None, typer.Option(help="Only this compiler (repeatable); default: all installed ones.")
    ] = None,
    library: Annotated[list[str] | None, typer.Option(help="Only this library (repeatable).")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the best-ranked N tests of each frontend, done ones included.")
    ] = None,
    time_budget: Annotated[str, typer.Option(help="Begin no test after this time: seconds, or 30m, 2h.")] = "",
    workers: Workers = CORES,
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
        str, typer.Option(help="Interpreter of another environment (opera and a compiler of another version in it).")
    ] = "",
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that one test may take; what a busy machine takes does not count.")
    ] = 30.0,
    memory: Annotated[float, typer.Option(min=0.1, help="GiB that a worker may grow by in one test.")] = 4.0,
    fail_on_new: Annotated[
        bool, typer.Option("--fail-on-new", help="Exit with 1 if there are findings that the workspace did not have.")
    ] = False,
    workspace: Root = RESULTS,
) -> None:
    """Run the ranked tests, best first, on the compilers' frontends. The same command resumes what was interrupted.

    Example: opera run --compiler tvm

    Example: opera run --compiler openvino --operator 'Conv*' --limit 200 --time-budget 10m

    Example: opera run --compiler onnxruntime --python ../old/bin/python

    Example: opera run --library torch --balance --limit 3000
    """
    from opera.programs import verdicts as records
    from opera.run import show
    from opera.run.driver import Options
    from opera.run.plan import Selection
    from opera.store.workspace import Workspace
    from opera.triage import scripts

    options = Options(
        compilers=tuple(dict.fromkeys(compiler or ())),
        libraries=tuple(library or ()),
        python=python,
        workers=workers,
        time_budget=seconds(time_budget) if time_budget else None,
        selection=Selection(limit, operator, test, rerun, balance),
        limits=records.Limits(timeout, int(memory * (1 << 30))),
    )
    show.check(options)
    with Workspace.open(workspace, write=True) as opened:
        new = show.run(opened, options, scripts.write_all)
    raise typer.Exit(NEW_FINDINGS if fail_on_new and new else OK)


@app.command()
def findings(
    frontend: Annotated[str, typer.Option(help="Only this frontend (tvm-onnx).")] = "",
    workspace: Root = RESULTS,
) -> None:
    """List the findings: each a set of failing tests with one signature, one suspected bug.

    Example: opera findings --frontend openvino-onnx
    """
    from opera.report import show
    from opera.store.workspace import Workspace

    with Workspace.open(workspace, write=False) as opened:
        show.findings(opened, frontend)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A finding, test or instance, or how its id begins; or an operator.")
    ],
    workspace: Root = RESULTS,
) -> None:
    """Show all that is known of a finding, a test, an operator instance or an operator.

    Example: opera show F3a09c11

    Example: opera show torch.bmm
    """
    from opera.report import show as stage
    from opera.store.workspace import Workspace

    with Workspace.open(workspace, write=False) as opened:
        stage.show(opened, name)


@app.command()
def repro(
    name: Annotated[str, typer.Argument(metavar="ID", help="A finding (or how its id begins), or `all`.")],
    output: Annotated[Path | None, typer.Option(help="File to write; default: reproducers/ in the workspace.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Run it in a fresh process and say what it showed.")] = False,
    workspace: Root = RESULTS,
) -> None:
    """Write a stand-alone Python script that shows a finding: it exits 1 while the failure is there, 0 once it is gone.

    Example: opera repro F3a09c11 --verify
    """
    from opera.store.workspace import Workspace
    from opera.triage import scripts

    with Workspace.open(workspace, write=False) as opened:
        ok = scripts.show(opened, name, output, check=verify)
    raise typer.Exit(OK if ok else NEW_FINDINGS)


@app.command()
def report(
    format: Annotated[str, typer.Option(help="terminal, json, markdown or html.")] = "terminal",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    balance: Annotated[
        bool,
        typer.Option(
            "--balance", help="Compare migration sources by the same number of tests each, best-ranked first."
        ),
    ] = False,
    workspace: Root = RESULTS,
) -> None:
    """Report from what is stored, also while a run goes on: verdicts, findings, efficiency, what each source found.

    Example: opera report --format html --output report.html

    Example: opera report --balance
    """
    from opera import report as stage
    from opera.report.summary import summarise
    from opera.store.workspace import Workspace

    chosen = stage.get(format)
    with Workspace.open(workspace, write=False) as opened:
        stage.write(chosen, summarise(opened, balance=balance), output)


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
    held_out: Annotated[Path | None, typer.Option(help="TOML that names the frontends that were tuned on.")] = None,
    instances: Annotated[Path | None, typer.Option(help="JSON lines of operator instances: a labelled corpus.")] = None,
    equipped: Annotated[Path | None, typer.Option(help="With --instances: JSON lines of the compiler's tests.")] = None,
    costs: Annotated[Path | None, typer.Option(help="With --instances: JSON object, id → seconds, for APFDc.")] = None,
    format: Annotated[str, typer.Option(help="terminal, markdown or json.")] = "terminal",
    output: Annotated[
        Path | None, typer.Option(help="Folder for report.html, figures, ...; default: WORKSPACE/benchmarks/DATE.")
    ] = None,
    workers: Workers = CORES,
    workspace: Annotated[
        list[Path] | None,
        typer.Option(help="Folder that holds runs (repeatable); default: results.", envvar="OPERA_WORKSPACE"),
    ] = None,
) -> None:
    """Score strategies: how early would each have found what was found? By APFD and RAUC, on live runs or labelled corpora.

    Example: opera benchmark

    Example: opera benchmark --freeze labels.json && opera benchmark --labels labels.json --strategy opera --repeat 5

    Example: opera benchmark --workspace onnx-runs --workspace torch-runs --output report

    Example: opera benchmark --instances onnx.jsonl --equipped tvm.jsonl --labels bugs.json --format json
    """
    from opera import prioritize as strategies
    from opera.benchmark import command
    from opera.benchmark.result import Settings
    from opera.store.workspace import Workspace

    command.check(format, strategy or [])
    names = list(dict.fromkeys(strategy or strategies.registered()))
    settings = Settings(names, bool(strategy), seeds, workers, baseline)
    if instances is not None:
        if labels is None or freeze is not None or held_out is not None:
            why = "without --freeze and --held-out, which are about workspaces"
            raise UsageError(f"--instances goes with --labels, {why}", fix="see `opera benchmark --help`")
        command.show_corpus(instances, equipped, labels, costs, settings, format, output)
        return
    if equipped is not None or costs is not None:
        raise UsageError("--equipped and --costs go with --instances", fix="see `opera benchmark --help`")
    with ExitStack() as stack:
        opened = [stack.enter_context(Workspace.open(root, write=False)) for root in workspace or [RESULTS]]
        if freeze is not None:
            command.freeze(opened, freeze)
        else:
            command.show_live(opened, labels, held_out, settings, format, output)


@corpus_app.command("export")
def corpus_export(
    file: Path,
    library: Annotated[str, typer.Option(help="Only this library.")] = "",
    workspace: Root = RESULTS,
) -> None:
    """Write the instances of the workspace to FILE (gzip where it ends in .gz).

    Example: opera corpus export onnx.jsonl.gz
    """
    from opera.store import corpus
    from opera.store.workspace import Workspace

    with Workspace.open(workspace, write=False) as opened:
        typer.echo(f"{corpus.write(opened, file, library)} instances written to {file}")


@corpus_app.command("import")
def corpus_import(file: Path, workspace: Root = RESULTS) -> None:
    """Add the instances of FILE to the workspace; all of them or, if any line is bad, none.

    Example: opera corpus import onnx.jsonl.gz
    """
    from opera import libraries
    from opera.store import corpus
    from opera.store.workspace import Workspace

    if not file.is_file():
        raise UsageError(f"there is no file {file}", fix="check the path")
    with Workspace.open(workspace, write=True) as opened:
        total, new = corpus.read_into(opened, file, libraries.declares)
    typer.echo(f"{total} instances read, {new} of them new")


@corpus_app.command("merge")
def corpus_merge(output: Path, files: list[Path]) -> None:
    """Write the union of several corpus FILES to OUTPUT.

    Example: opera corpus merge all.jsonl.gz mine.jsonl.gz yours.jsonl.gz
    """
    from opera import libraries
    from opera.store import corpus

    typer.echo(f"{corpus.merge(output, files, libraries.declares)} instances written to {output}")


def seconds(text: str) -> float:
    """Return the seconds of `90`, `30m` or `2h`. Raises UsageError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{text!r} is no time", fix="give seconds, or minutes and hours as 30m and 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _check_text(words: list[str]) -> None:
    """Refuse arguments that cannot be stored, nor shown."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{os.fsencode(word)!r} is no UTF-8 text",
                cause="a file that is named in another encoding, such as Latin-1",
                fix="rename the file; with convmv, all of a folder",
            ) from None


def main() -> None:
    """Run the command line; what the user can mend is told in a few lines, never as a traceback."""
    try:
        interrupts.handle()
        _check_text(sys.argv[1:])
        app()
    except OperaError as error:
        print(f"opera: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        interrupts.tell()
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.errno not in MACHINES:
            raise
        print(f"opera: {error}\n  likely cause: {MACHINES[error.errno]}", file=sys.stderr)
        print("  what to do:   mend that, and run the same command again: what was stored is whole", file=sys.stderr)
        sys.exit(USAGE)
