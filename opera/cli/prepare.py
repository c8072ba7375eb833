"""Commands that bring instances into a workspace and rank them: extract, constraints, corpus, prioritize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from opera.cli.app import CORES, RESULTS, Root, Workers, app
from opera.errors import OK, USAGE, UsageError

MAX_SEED = 2**32 - 1
"""numpy's limit."""

corpus_app = typer.Typer(
    help="Exchange operator instances with others as files (docs/corpus.md).", no_args_is_help=True
)
app.add_typer(corpus_app, name="corpus")


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
