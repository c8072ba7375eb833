"""The ranking equals its definition, row by row, on random small corpora."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.prioritize.baselines import tie_order
from opera.prioritize.diversity import OPERA, OPERA_PAPER, OPERA_WIDE
from opera.prioritize.subspaces import ABSENT, ArtifactSubspaces, PaperSubspaces, Row, Subspaces
from opera.programs.values import NO_DEFAULT

SHAPES = st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=1, max_size=2)
ROWS = st.builds(
    Row,
    st.sampled_from("AB"),
    st.dictionaries(
        st.sampled_from(["p", "q", "r"]), st.sampled_from([0, 1, 2, -1, -5, 0.5, -1.0, "x", "y", [1, 2], None])
    ),
    SHAPES,
    st.lists(st.sampled_from(["float32", "int64"]), min_size=1, max_size=2),
)
CORPORA = st.lists(ROWS, min_size=1, max_size=25), st.lists(ROWS, max_size=6)
DEFAULTS = {"A": {"p": 1, "s": NO_DEFAULT}, "B": {"q": "x"}}


def naive(
    rows: list[Row], equipped: list[Row], subspaces: Subspaces, literal: bool, seed: int | None = None
) -> list[int]:
    """The definition, quadratic and without any shortcut."""

    def encoded(row: Row) -> dict[str, Any]:
        return {name: subspaces.value(value) for name, value in row.params.items()} | dict(subspaces.tensors(row))

    seen: dict[str, list[tuple[Any, ...]]] = {}
    values: dict[str, list[tuple[Any, ...]]] = {}
    rates: dict[str, float] = {}
    for operator in "AB":
        schema = {k: v if v == NO_DEFAULT else subspaces.value(v) for k, v in DEFAULTS[operator].items()}
        tests = {id(row): encoded(row) for row in rows + equipped if row.operator == operator}
        lists = {name for name, _ in subspaces.tensors(Row("", {}))}
        names = sorted({*schema, *lists}.union(*tests.values()))
        unset = {k: v for k, v in schema.items() if v != NO_DEFAULT}
        full = {key: tuple(test.get(k, unset.get(k, ABSENT)) for k in names) for key, test in tests.items()}
        mine = [row for row in equipped if row.operator == operator]
        values[operator] = [full.get(id(row), ()) for row in rows]
        seen[operator] = [tuple(schema.get(k, NO_DEFAULT) for k in names)] + [full[id(row)] for row in mine]
        migrated = [full[id(row)] for row in rows if row.operator == operator]
        rates[operator] = (
            len(migrated) / (len(mine) + 1) if literal else _rate(seen[operator], migrated) if mine else 1.0
        )
    order = tie_order(len(rows), seed).tolist()
    left, ranked = set(range(len(rows))), []
    while left:
        scores = {i: _diversity(values[rows[i].operator][i], seen[rows[i].operator]) for i in left}
        open_rows = [i for i in left if scores[i] > 0]
        if not open_rows:
            break
        best = min(open_rows, key=lambda i: (-round(rates[rows[i].operator] * scores[i], 12), order[i]))
        left.remove(best)
        ranked.append(best)
        seen[rows[best].operator].append(values[rows[best].operator][best])
    return ranked + sorted(left)


def _rate(seen: list[tuple[Any, ...]], migrated: list[tuple[Any, ...]]) -> float:
    share = 1.0
    width = range(len(seen[0]))
    for places in [(k,) for k in width] + list(combinations(width, 2)):
        known = {tuple(row[k] for k in places) for row in seen}
        share *= len(known) / len(known | {tuple(row[k] for k in places) for row in migrated})
    return 1 - share


def _diversity(row: tuple[Any, ...], seen: list[tuple[Any, ...]]) -> float:
    width = len(row)
    sums = []
    for size in (1, 2):
        total = 0.0
        groups = list(combinations(range(width), size))
        for places in groups:
            known = {tuple(x[k] for k in places) for x in seen}
            if tuple(row[k] for k in places) not in known:
                total += 1 / len(known)
        sums.append(total / len(groups) if groups else 0.0)
    return max(sums)


@settings(max_examples=150, deadline=None)
@given(*CORPORA, st.sampled_from([None, 0, 7]))
def test_order_is_the_definition(rows: list[Row], equipped: list[Row], seed: int | None) -> None:
    assert OPERA.rank(rows, equipped, DEFAULTS, seed) == naive(rows, equipped, ArtifactSubspaces(), False, seed)


@settings(max_examples=80, deadline=None)
@given(*CORPORA)
def test_paper_order_is_the_definition(rows: list[Row], equipped: list[Row]) -> None:
    assert OPERA_PAPER.rank(rows, equipped, DEFAULTS, None) == naive(rows, equipped, PaperSubspaces(), True)


def test_many_parameters_need_more_than_one_word_of_places() -> None:
    rows = [Row("A", {f"p{k}": (i * k) % 7 - 3 for k in range(14)}, [[i % 3]], ["f"]) for i in range(60)]
    assert OPERA.rank(rows, rows[::9], DEFAULTS, None) == naive(rows, rows[::9], ArtifactSubspaces(), False)


def test_nothing_is_dropped_and_repeats_come_last_in_corpus_order() -> None:
    rows = [Row("A", {"p": i % 3}, [[2]], ["f"]) for i in range(9)]
    ranked = OPERA.rank(iter(rows), [], {}, 3)
    assert sorted(ranked) == list(range(9))
    assert ranked[3:] == sorted(ranked[3:]), "the six repeats keep corpus order whatever the seed"


def test_the_seed_decides_ties_only() -> None:
    rows = [Row(f"op{i}", {}, [[2]], ["f"]) for i in range(40)]
    orders = {tuple(OPERA.rank(rows, [], {}, seed)) for seed in range(5)}
    assert len(orders) == 5
    assert OPERA.rank(rows, [], {}, None) == list(range(40))
    assert OPERA.rank(rows, [], {}, 2) == OPERA.rank(rows, [], {}, 2)


def test_what_equipped_tests_cover_comes_last() -> None:
    rows = [Row("A", {"p": 1}, [[2]], ["f"]), Row("A", {"p": -1}, [[2]], ["f"])]
    assert OPERA.rank(rows, [rows[0]], {}, None) == [1, 0]


@pytest.mark.parametrize("strategy", [OPERA, OPERA_PAPER])
def test_corner_cases(strategy: Any) -> None:
    assert strategy.rank([], [], {}, None) == []
    assert strategy.rank([Row("A", {})], [], {}, None) == [0]
    assert strategy.rank([Row("A", {})] * 3, [Row("B", {})], {}, None) == [0, 1, 2]


def test_opera_wide_prefers_operators_of_many_attributes_and_takes_turns_when_nothing_is_new() -> None:
    rows = [Row("A", {}), Row("A", {}), Row("A", {}), Row("B", {"p": 1, "q": 2}), Row("B", {"p": 1, "q": 2})]
    assert OPERA.rank(rows, [], {}, None) == [0, 3, 1, 2, 4]
    assert OPERA_WIDE.rank(rows, [], {}, None) == [3, 0, 1, 4, 2]
