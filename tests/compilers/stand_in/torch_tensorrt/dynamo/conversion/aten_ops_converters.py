"""Converters: of cumsum one that fails, of abs one that says what it does not support."""

from __future__ import annotations

from typing import Any


def aten_ops_sub(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> None:
    return


def aten_ops_sort(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> None:
    return


def aten_ops_getitem(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> None:
    return


def aten_ops_cumsum(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> None:
    args[99]


def aten_ops_abs(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> None:
    raise RuntimeError("UnaryOperation.ABS is not supported yet!")
