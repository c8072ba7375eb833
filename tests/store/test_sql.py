"""All SQL is in opera/store."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import opera

ROOT = Path(opera.__file__).parent
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s(OR\s\w+\s)?INTO|UPDATE\s\w+\sSET|DELETE\sFROM|PRAGMA|CREATE\s(TEMP\s)?\w+)\s", re.S
)
ASKS = {"query", "stream", "execute", "executemany", "executescript", "verdicts"}
"""Methods of workspaces and connections that are given SQL."""


def sql(source: str) -> Iterator[str]:
    """Yield what is SQL in a module: strings that say it, and strings that are handed to what takes it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value + " "):
            yield node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS and node.args:
            first = node.args[0]
            if isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                yield ast.unparse(first)


@pytest.mark.parametrize(
    "source",
    [
        'workspace.query("SELECT id FROM tests")',
        'ROWS = f"SELECT id FROM {table}"',
        'workspace.verdicts("finding = ?", (name,))',
        'db.execute("DELETE FROM tests")',
        'text = "UPDATE tests SET reason = 1"',
    ],
)
def test_it_would_be_seen(source: str) -> None:
    assert list(sql(source))


def test_all_sql_is_in_store() -> None:
    files = [file for file in ROOT.rglob("*.py") if ROOT / "store" not in file.parents]
    assert len(files) > 100
    found = {str(file.relative_to(ROOT)): list(sql(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: texts for name, texts in found.items() if texts} == {}
