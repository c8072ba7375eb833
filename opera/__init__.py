"""opera: migrate the tests of deep-learning libraries to the frontends of deep-learning compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from opera.data.results import Results

__version__ = "0.1.0"


def open(workspace: str | os.PathLike[str] | None = None) -> Results:
    """Open a workspace for reading, as pandas DataFrames: `opera.open("results").verdicts(frontend="tvm-onnx")`.

    Without a folder, it is what OPERA_WORKSPACE names, else `results`. Nothing is read before it is asked for; docs/data.md
    has the tables. Raises opera.errors.NotInstalled where pandas is missing, WorkspaceError where there is no workspace.
    """
    from opera.data.results import results

    return results(workspace)
