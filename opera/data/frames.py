"""Rows as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from opera.data.tables import BYTES, CATEGORY, COUNT, NUMBER, TEXT, TIME, VERDICT, Column, Values, batches
from opera.store.workspace import COMBINED

DTYPES: dict[str, Any] = {
    TEXT: "str",
    CATEGORY: "category",
    VERDICT: pd.CategoricalDtype(COMBINED, ordered=True),
    COUNT: "int64",
    NUMBER: "float64",
    TIME: "datetime64[us, UTC]",
    BYTES: "object",
}
"""Kind of a column → dtype, whatever its values are; categories are strings, sorted."""


def frame(columns: Sequence[Column], rows: Iterable[Values]) -> pd.DataFrame:
    """Return a DataFrame of these columns, also where there are no rows."""
    held: list[list[Any]] = [[] for _ in columns]
    for batch in batches(rows):  # rows that live for long would cost more in garbage collection than they do here
        for column, cells in zip(held, zip(*batch, strict=True), strict=True):
            column.extend(cells)
    return pd.DataFrame({x.name: _series(x.kind, cells) for x, cells in zip(columns, held, strict=True)})


def _series(kind: str, held: Sequence[Any]) -> Any:
    if kind == CATEGORY:
        codes, categories = pd.factorize(pd.Series(held, dtype="object"), sort=True)
        return pd.Categorical.from_codes(codes, pd.Index(categories, dtype="str"))
    return pd.Series(held, dtype=DTYPES[kind])
