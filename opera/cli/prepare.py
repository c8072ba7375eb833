"""Commands that bring instances into a workspace and rank them: extract, record, constraints, corpus, prioritize."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from opera import plugins
from opera.cli import options
from opera.cli.app import CORES, RESULTS, Root, Workers, app
from opera.errors import OK, USAGE, UsageError

corpus_app = typer.Typer(
    help="Exchange operator instances with others as files (docs/corpus.md).", no_args_is_help=True
)
app.add_typer(corpus_app, name="corpus")


@app.command(cls=options.Extract)
def extract(
    context: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="A checkout of a library, the name of an installed one (onnx, torch), or what a --source takes.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            help="Take inputs from this generator (docter, deeprel, sionnx), whose own options"
            " `opera extract --source NAME --help` shows.",
        ),
    ] = "",
    library: Annotated[str, typer.Option(help="With --source: only operators of this library.")] = "",
    equipped: Annotated[
        str, typer.Option(help="TARGET is a checkout of this compiler: record what its own frontend suite covers.")
    ] = "",
    workspace: Root = RESULTS,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at a time, of each node with --cluster; default: its CPUs.")
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            help="Run the test files on a Ray cluster: its address (HOST:PORT, ray://HOST:PORT, auto), or local."
        ),
    ] = "",
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that one test file (one input or call of a --source) may take.", min=1),
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run again what is done.")] = False,
) -> None:
    """Run a library's test suite, or a generator of inputs, under instrumentation: record its operator instances.

    For a script or suite of your own: opera record.

    Example: opera extract onnx

    Example: opera extract ../onnx

    Example: opera extract --equipped tvm ../tvm

    Example: opera extract --source docter --library torch

    Example: opera extract --source docter ../DocTer/constraints_extracted/pytorch1.5

    Example: opera extract --source sionnx --full

    Example: opera extract --cluster 10.0.0.1:6379 ../pytorch
    """
    from opera import sources
    from opera.sources import dispatch, engine, spread
    from opera.sources.suites import extract as suites
    from opera.store.workspace import Workspace

    words = target or []
    if cluster and source:
        raise UsageError(
            "--cluster spreads the files of test suites, and --source generates inputs",
            cause="what a generator tries next depends on what came of the last, in files that its processes share",
            fix="leave --cluster out: --workers uses all cores of this machine",
        )
    if equipped and (source or library or len(words) != 1):
        raise UsageError(
            "--equipped takes one target, a checkout of a compiler", fix="opera extract --equipped tvm ../tvm"
        )
    if not source and (library or len(words) > 1):  # what `opera record` was called before
        print("hint: `opera record` does this now: opera record --library LIBRARY -- COMMAND", file=sys.stderr)
        _record(library, words, timeout, workspace)
    if len(words) > 1:
        raise UsageError("--source takes one folder at most", fix="see `opera extract --help`")
    if not (source or words):
        raise UsageError(
            "nothing to extract from was named",
            fix="opera extract onnx; opera extract CHECKOUT; opera extract --source docter",
        )
    request = sources.Request("".join(words), library, timeout)
    begin = (
        sources.begin(source, request, options.given(context))
        if source
        else suites.extraction(request, equipped=equipped, spread=bool(cluster))
    )
    place = spread.over(cluster) if cluster else dispatch.local
    with Workspace.open(workspace, write=True) as opened:  # a wrong request has made none
        processes = workers or (0 if cluster else CORES)
        ok = engine.run(opened, begin(opened), workers=processes, rerun=rerun, open=place)
    raise typer.Exit(OK if ok else USAGE)


@app.command(context_settings={"allow_interspersed_args": False})
def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="python or pytest, and its arguments.", show_default=False),
    ] = None,
    library: Annotated[str, typer.Option(help="The library whose operators are recorded (onnx, torch, keras).")] = "",
    workspace: Root = RESULTS,
    timeout: Annotated[float | None, typer.Option(help="Seconds that the command may take.", min=1)] = None,
) -> None:
    """Run a script or test suite of your own as without opera, and record the operators that it calls.

    Its folder, environment, input and output are yours; how it ends is told, and what it called is kept however that was.

    Example: opera record --library torch -- python train.py --epochs 1

    Example: opera record --library torch -- python -m package.train

    Example: opera record --library onnx -- pytest my_tests/
    """
    _record(library, command or [], timeout, workspace)


def _record(library: str, words: list[str], timeout: float | None, workspace: Path) -> NoReturn:
    from opera.sources import record as stage
    from opera.store.workspace import Workspace

    program = stage.parse(library, words)
    with Workspace.open(workspace, write=True) as opened:
        ok = stage.record(opened, program, timeout=timeout)
    raise typer.Exit(OK if ok else USAGE)


@app.command()
def constraints(
    library: Annotated[
        str,
        typer.Argument(help="An installed library that opera generates inputs for (torch, keras; onnx with --osl)."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write files to, one an operator.")],
    osl: Annotated[
        bool, typer.Option("--osl", help="Write what schemas say, in the language of --source sionnx (docs/sionnx.md).")
    ] = False,
) -> None:
    """Write what a library documents of its operators' parameters, to read, edit, and generate inputs from.

    Example: opera constraints torch --out constraints && opera extract --source docter constraints

    Example: opera constraints onnx --osl --out specifications
    """
    if osl:
        plugins.load("opera.skeletons", "library with schemas", library).write(out)
        return
    from opera.sources.docter import command

    command.write(library, out)


@corpus_app.command("export")
def corpus_export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="With --as: a folder that is not there yet.")],
    form: Annotated[
        str,
        typer.Option("--as", help="Write files of a conformance suite: onnx-node-tests or onnx-node-cases (Python)."),
    ] = "",
    library: Annotated[str, typer.Option(help="Only this library.")] = "",
    source: Annotated[str, typer.Option(help="With --as: only what this migration source brought.")] = "",
    operator: Annotated[str, typer.Option(help="With --as: only operators that match this glob: 'Conv*'.")] = "*",
    workspace: Root = RESULTS,
    workers: Workers = CORES,
) -> None:
    """Write the instances of the workspace to FILE (gzip where it ends in .gz), or as the files of a conformance suite.

    Example: opera corpus export onnx.jsonl.gz

    Example: opera corpus export --as onnx-node-tests node-tests --operator 'Cast*'
    """
    from opera.store import corpus
    from opera.store.workspace import Workspace

    if not form and (source or operator != "*"):
        raise UsageError("--source and --operator choose tests of a suite", fix="give --as onnx-node-tests as well")
    with Workspace.open(workspace, write=False) as opened:
        if not form:
            typer.echo(f"{corpus.write(opened, file, library)} instances written to {file}")
            return
        from opera.run import publish

        found = publish.publish(opened, form, file, library=library, source=source, operator=operator, workers=workers)
    publish.show(found, file)
    raise typer.Exit(OK if found.written else USAGE)


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
    with Workspace.open(workspace, write=True, make=False) as opened:
        order.show(
            opened, strategy, chosen=library or [], compilers=compiler or list(compilers.registered()), seed=seed
        )
