"""`opera.open`: a workspace for Python, as pandas DataFrames."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opera.data import tables
from opera.data.query import Names, Query, query
from opera.errors import NotInstalled
from opera.store.workspace import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame


class Results:
    """A workspace, open for reading; a context manager. docs/data.md has the columns.

    Nothing is read before it is asked for, and every call reads anew: of one moment, also while a run goes on. Filters choose
    rows where they are stored. Each is a name, several, or None for all:

    - `frontend`: `tvm-onnx`; `library`: `onnx`.
    - `operator`: a glob, `Conv*`; of a program of several calls, one of them is enough.
    - `status`: of verdicts and findings, the verdict; of instances, `valid`, `invalid` or `error`.
    - `environment`: an id of the column of that name; None takes all but what a later run superseded, as reports do.

    Every method raises UsageError for a name that the workspace does not know, and WorkspaceError where it is damaged.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def root(self) -> Path:
        """The workspace's folder: what `reproducer` of a finding is relative to."""
        return self._workspace.root

    def verdicts(
        self,
        *,
        frontend: Names = None,
        library: Names = None,
        operator: Names = None,
        status: Names = None,
        environment: Names = None,
    ) -> DataFrame:
        """Return the verdicts: a row for a test, a variant of a frontend, and an environment."""
        asked = query(frontend=frontend, library=library, operator=operator, status=status, environment=environment)
        return self._frame(tables.VERDICTS, asked)

    def findings(
        self,
        *,
        frontend: Names = None,
        library: Names = None,
        operator: Names = None,
        status: Names = None,
        environment: Names = None,
    ) -> DataFrame:
        """Return the findings: a row for a suspected bug in an environment."""
        asked = query(frontend=frontend, library=library, operator=operator, status=status, environment=environment)
        return self._frame(tables.FINDINGS, asked)

    def instances(
        self, *, library: Names = None, operator: Names = None, status: Names = None, details: bool = False
    ) -> DataFrame:
        """Return the corpus: a row for an operator instance.

        `details` adds parameters, dtypes and shapes, which takes a few seconds for a hundred thousand.
        """
        asked = query(library=library, operator=operator, status=status, details=details)
        return self._frame(tables.INSTANCES, asked)

    def rankings(self, *, frontend: Names = None, library: Names = None, operator: Names = None) -> DataFrame:
        """Return the rankings: a row for a frontend and an instance, best first."""
        return self._frame(tables.RANKINGS, query(frontend=frontend, library=library, operator=operator))

    def coverage(
        self, *, frontend: Names = None, library: Names = None, operator: Names = None, environment: Names = None
    ) -> DataFrame:
        """Return what `opera coverage` collected: a row for an instance and a file of a frontend."""
        asked = query(frontend=frontend, library=library, operator=operator, environment=environment)
        return self._frame(tables.COVERAGE, asked)

    def close(self) -> None:
        """Close the workspace."""
        self._workspace.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"opera.open({str(self.root)!r})"

    def _frame(self, table: tables.Table, asked: Query) -> DataFrame:
        from opera.data import frames  # needs pandas

        with self._workspace.snapshot():
            return frames.frame(tables.columns(table, asked), table.rows(self._workspace, asked))


def results(root: str | os.PathLike[str] | None = None) -> Results:
    """Open a workspace for reading; see `opera.open`."""
    if find_spec("pandas") is None:
        raise NotInstalled(
            "pandas is not installed",
            cause="only opera's data interface needs it, so that it is an extra",
            fix='pip install "opera[pandas]"; `opera report --format csv` needs nothing',
        )
    given = os.environ.get("OPERA_WORKSPACE", "results") if root is None else root
    return Results(Workspace.open(Path(given), write=False))
