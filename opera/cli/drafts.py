"""Commands that hand findings on: issue, export-tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opera.cli.app import RESULTS, KnownFile, Root, app


@app.command()
def issue(
    name: Annotated[
        str,
        typer.Argument(metavar="ID", help="A finding, or a test whose expectation is disputed, or how its id begins."),
    ],
    tracker: Annotated[
        str, typer.Option(help="tvm, openvino, onnxruntime, pytorch, keras or onnx; default: whose part is wrong.")
    ] = "",
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    known: KnownFile = None,
    workspace: Root = RESULTS,
) -> None:
    """Write the draft of an issue in the form of a tracker, as Markdown. Nothing is sent: read it, and file it yourself.

    The script in it is run first; a draft that should not be filed says so, and why.

    Example: opera issue F3a09c11 --output issue.md
    """
    from opera.report import draft
    from opera.report.issue import render
    from opera.store.workspace import Workspace
    from opera.triage.known import Known

    with Workspace.open(workspace, write=False) as opened:
        text = render(draft.draft(opened, name, tracker, Known.beside(known)))
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        typer.echo(output)


@app.command("export-tests")
def export_tests(
    names: Annotated[list[str], typer.Argument(metavar="FINDING...", help="Findings, or how their ids begin.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write into.")],
    style: Annotated[str, typer.Option("--as", help="pytest, tvm, openvino, onnxruntime or keras.")] = "pytest",
    workspace: Root = RESULTS,
) -> None:
    """Write findings as test files in the style of a compiler's own suite: they fail today, and pass once it is fixed.

    A file holds the members of a finding, each as small as it was reduced, and needs no opera.

    Example: opera export-tests F3a09c11 --as tvm tvm/tests/python/relax
    """
    from opera.store.workspace import Workspace
    from opera.triage.reproducers import export

    with Workspace.open(workspace, write=False) as opened:
        export.show(opened, names, style, folder)
