"""The commands of `opera known`: which findings somebody has looked at, in a file that people review and commit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opera.cli.app import RESULTS, KnownFile, Root, app
from opera.errors import NEW_FINDINGS, OK, UsageError

FILE = Path("known.toml")

group = typer.Typer(
    name="known",
    help="Known issues: a TOML file (known.toml, --known FILE) that says of findings what has become of them.\n\n"
    "opera known add F3a09c11 --issue https://tracker/123 && opera known check",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(group)


@group.command()
def add(
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Findings of one cause, or `all`: new ones, an entry each.")
    ],
    issue: Annotated[str, typer.Option(help="Its address in a tracker.")] = "",
    note: Annotated[str, typer.Option(help="For people.")] = "",
    versions: Annotated[str, typer.Option(help="Only for these versions of the compiler: '>=0.25,<0.28'.")] = "",
    status: Annotated[str, typer.Option(help="open, confirmed, fixed, by-design or not-a-bug; open at first.")] = "",
    fixed_in: Annotated[
        str, typer.Option(help="First version of the compiler without it; the status is `fixed`.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why it is no bug, with the status by-design or not-a-bug.")] = "",
    operator: Annotated[str, typer.Option(help="Only the part of these operators: 'Conv*'.")] = "",
    message: Annotated[str, typer.Option(help="Only where this regular expression is found in what it says.")] = "",
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Note findings in the file, or change what it says of them; several findings are noted as one issue.

    Example: opera known add F3a09c11 --issue https://tracker/123 --versions '>=0.25,<0.28'

    Example: opera known add F3a09c11 --fixed-in 0.28

    Example: opera known add all --note "there before we looked"
    """
    from opera.report import known as stage

    if fixed_in and status not in ("", "fixed"):
        raise UsageError(f"--fixed-in does not go with --status {status}", fix="leave one of them out")
    given = {
        "issue": issue, "note": note, "versions": versions, "status": "fixed" if fixed_in else status,
        "fixed_in": fixed_in, "reason": reason, "operator": operator, "message": message,
    }  # fmt: skip
    stage.add(workspace, known or FILE, names, {name: value for name, value in given.items() if value})


@group.command("list")
def list_(
    status: Annotated[str, typer.Option(help="Only those of this status.")] = "",
    known: KnownFile = None,
) -> None:
    """List what is known: findings, status, what fails, issue.

    Example: opera known list --status open
    """
    from opera.report import known as stage
    from opera.triage.known import Known

    stage.show(Known.beside(known), status)


@group.command()
def check(
    frontend: Annotated[str, typer.Option(help="Only on this frontend (tvm-onnx).")] = "",
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Tell what is no longer as the file says; exit with 1 where something is.

    Told is what is gone although its tests were run (`fixed?`), what fails otherwise (`changed`), and what fails again at or
    after the version that it was fixed in (`regression`).

    Example: opera known check --frontend tvm-onnx
    """
    from opera.report import known as stage
    from opera.store.workspace import Workspace
    from opera.triage.known import Known

    read = Known.load(known or FILE)
    with Workspace.open(workspace, write=False) as opened:
        ok = stage.check(opened, read, frontend)
    raise typer.Exit(OK if ok else NEW_FINDINGS)


@group.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Findings, by their whole ids.")],
    known: KnownFile = None,
) -> None:
    """Remove findings from the file; an entry goes with the last finding that it names.

    Example: opera known remove F6ad529f1
    """
    from opera.report import known as stage

    stage.remove(known or FILE, names)


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What to read.")],
    format: Annotated[
        str,
        typer.Option(help="toml, json, csv, or tests: names of tests that are expected to fail; default: by its name."),
    ] = "",
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Take over known issues: another file of them, or a list of tests that are expected to fail, a name a line.

    Of such a list become known the findings of the workspace all of whose tests are in it.

    Example: opera known import ours.json

    Example: opera known import onnx_excludes.txt
    """
    from opera.report import known as stage

    stage.import_(workspace, known or FILE, file, format)


@group.command()
def export(
    format: Annotated[
        str, typer.Option(help="json, csv, or tests: names of tests that are expected to fail; default: by --output.")
    ] = "",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output, as JSON.")] = None,
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Write what is known in another form.

    Example: opera known export --format csv --output known.csv

    Example: opera known export --format tests --output onnx_excludes.txt
    """
    from opera.report import known as stage
    from opera.triage.known import Known

    stage.export(workspace, Known.load(known or FILE), format, output)
