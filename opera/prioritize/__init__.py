"""Ranking operator instances so that those likely to reveal different bugs come first.

A strategy is an object that fits the `Strategy` protocol, or `Informed` where it needs more than the instances, and is named
in the entry-point group `opera.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import Any, Protocol, TypeAlias, cast

from opera import plugins
from opera.errors import UsageError
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


class Informed(Protocol):
    """A strategy that needs to know more; `NEEDS` is one of the keys of `opera.prioritize.knowledge.KINDS`.

    One that is a `Strategy` but of no use without equipped tests says NEEDS = "equipped".
    """

    NAME: str
    NEEDS: str

    def rank(
        self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None, known: Sequence[Any]
    ) -> list[int]:
        """As `Strategy.rank`; `known` has what is needed of each of `rows`."""


Lookup: TypeAlias = Callable[[str], Sequence[Any]]
"""Takes what a strategy NEEDS and returns it for every row; UsageError where it is not there."""

GROUP = "opera.strategies"
EQUIPPED = "equipped"


def registered() -> dict[str, EntryPoint]:
    """Return name → entry point of all strategies that this environment registers, sorted by name."""
    return plugins.registered(GROUP)


def get(name: str) -> Strategy | Informed:
    """Import a strategy. Raises UsageError for an unknown name."""
    strategy: Strategy | Informed = plugins.load(GROUP, "strategy", name)
    return strategy


def needs(name: str) -> str:
    """Return what a strategy needs to know beside the instances, empty where that is nothing."""
    return str(getattr(get(name), "NEEDS", ""))


def nothing_known(need: str) -> Sequence[Any]:
    """Be the source where there is no workspace. Raises UsageError."""
    raise UsageError(
        f"no {need} is known of these tests",
        cause="it is collected of tests in a workspace, such as by `opera coverage --frontend tvm-onnx`",
        fix="leave out the strategies that need it, or score a workspace: `opera benchmark --workspace DIR`",
    )


def rank(
    strategy: str,
    rows: Iterable[Row],
    equipped: Iterable[Row],
    defaults: Defaults,
    seed: int | None = None,
    source: Lookup = nothing_known,
) -> list[int]:
    """Return the positions of `rows`, best first, as the strategy of that name ranks them (see `Strategy.rank`)."""
    need, known = needs(strategy), require(strategy, equipped := list(equipped), source)
    if need and need != EQUIPPED:
        return cast(Informed, get(strategy)).rank(rows, equipped, defaults, seed, known)
    return cast(Strategy, get(strategy)).rank(rows, equipped, defaults, seed)


def require(strategy: str, equipped: Sequence[Row], source: Lookup) -> Sequence[Any]:
    """Return what a strategy needs to know, empty where that is nothing. Raises UsageError where it is not there."""
    need = needs(strategy)
    if need == EQUIPPED and not equipped:
        raise UsageError(
            f"the strategy {strategy} cannot tell operators apart without equipped tests, and none are known",
            cause="the compiler's own tests were not extracted",
            fix="run `opera extract --equipped COMPILER CHECKOUT` (or give --equipped FILE), or choose another strategy",
        )
    return source(need) if need and need != EQUIPPED else ()
