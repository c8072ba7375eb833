"""The commands of `opera env`: environments of compilers that do not go with the others into one."""

from __future__ import annotations

from typing import Annotated

import typer

from opera.cli.app import RESULTS, Root, app
from opera.errors import UsageError

group = typer.Typer(
    name="env",
    help="Environments of a compiler's own, which `opera run` finds by the workspace (environments.toml).\n\n"
    "opera env create tract && opera run --compiler tract",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(group)


@group.command()
def create(
    compiler: Annotated[str, typer.Argument(metavar="COMPILER")],
    version: Annotated[str, typer.Option(help="This version, as the package index has it; default: the newest.")] = "",
    workspace: Root = RESULTS,
) -> None:
    """Make an environment that holds a compiler, numpy and msgspec; the workspace runs the compiler in it from now on.

    It is installed by uv, or by pip, and tried with the canaries of `opera doctor`.

    Example: opera env create tract

    Example: opera env create onnxruntime --version 1.22.0
    """
    from opera.run import environments, releases

    where = releases.create(compiler, version)
    environments.remember(workspace, compiler, str(where / "bin" / "python"))
    typer.echo(f"{where}\n{workspace / environments.FILE}: `opera run --compiler {compiler}` runs it in there")


@group.command("list")
def show(workspace: Root = RESULTS) -> None:
    """List the environments that were made, by this command or by `opera bisect`, and whether the workspace uses them.

    Example: opera env list
    """
    from opera.run import environments, releases

    used = {path: name for name, path in environments.remembered(workspace).items()}
    kept = releases.kept()
    if not kept and not used:
        typer.echo("there are none; `opera env create COMPILER --version VERSION` makes one")
    for x in kept:
        by = used.pop(str(x.python), "")
        typer.echo(f"{x.name:<40} {x.version:<12} {x.size / 1e6:6.0f} MB  {f'runs {by}' if by else ''}".rstrip())
    for path, name in used.items():
        typer.echo(f"{path}  runs {name}")


@group.command()
def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An environment's, or a compiler's, for what it runs in.")
    ],
    workspace: Root = RESULTS,
) -> None:
    """Delete an environment; the workspace runs its compiler as before it was made.

    Example: opera env remove tract

    Example: opera env remove openvino-onnx-2024.0-cpython-311
    """
    from pathlib import Path

    from opera.run import environments, releases

    python = environments.remembered(workspace).get(name, "")
    found = [x for x in releases.kept() if x.name == name or str(x.python) == python]
    gone = [compiler for x in found for compiler in environments.forget(workspace, x.folder)]
    if python and not found:
        gone += environments.forget(workspace, Path(python).parent)  # made by hand, or deleted by hand
    for x in found:
        releases.remove(x)
        typer.echo(f"{x.folder} is deleted, {x.size / 1e6:.0f} MB")
    if gone:
        typer.echo(f"{workspace / environments.FILE} names none for {', '.join(gone)} any more")
    if not found and not gone:
        raise UsageError(
            f"there is no environment {name}",
            cause="it was removed, or the workspace runs that compiler in none of its own",
            fix="`opera env list` tells which there are",
        )
