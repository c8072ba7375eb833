"""What all commands share: the application that they are commands of, and the options that several of them take."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from opera import __version__, interrupts
from opera.errors import INTERRUPTED, OK


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

Root = Annotated[Path, typer.Option("--workspace", help="Folder that holds everything.", envvar="OPERA_WORKSPACE")]
KnownFile = Annotated[
    Path | None,
    typer.Option("--known", help="File of known issues; default: known.toml, where it is there.", envvar="OPERA_KNOWN"),
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes at a time.")]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A setting of a compiler, see docs/adapters.md (repeatable)."),
]
Device = Annotated[str, typer.Option("--device", help="Short for --option device=…: cpu or cuda.")]
RESULTS = Path("results")
CORES = min(os.cpu_count() or 1, 16)


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
