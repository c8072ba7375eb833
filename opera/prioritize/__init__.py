"""Ranking operator instances so that those likely to reveal different bugs come first.

A strategy is an object that fits the `Strategy` protocol and is named in the entry-point group `opera.strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Protocol

from opera import plugins
from opera.prioritize.subspaces import Defaults, Row


class Strategy(Protocol):
    """The protocol."""

    NAME: str

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return the positions of `rows`, best first.

        Args:
            rows: The instances in corpus order; read once.
            equipped: The compiler's own tests, empty where none are known.
            defaults: Operator → attribute → default of the library's schema.
            seed: None breaks ties by corpus order, a number by a permutation drawn with it.

        Returns:
            A permutation: nothing is ever dropped.
        """


GROUP = "opera.strategies"
DEFAULT = "opera"


def registered() -> dict[str, EntryPoint]:
    """Return name → entry point of all strategies that this environment registers, sorted by name."""
    return plugins.registered(GROUP)


def get(name: str) -> Strategy:
    """Import a strategy. Raises UsageError for an unknown name."""
    strategy: Strategy = plugins.load(GROUP, "strategy", name)
    return strategy


def rank(
    strategy: str, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None = None
) -> list[int]:
    """Return the positions of `rows`, best first, as the strategy of that name ranks them (see `Strategy.rank`)."""
    return get(strategy).rank(rows, equipped, defaults, seed)
