"""Every strategy ranks every test, with ties by corpus order or seed; each equals its definition, written plainly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.errors import UsageError
from opera.prioritize import needs, rank, registered
from opera.prioritize.baselines import tie_order
from opera.prioritize.covering import ADDITIONAL, TOTAL
from opera.prioritize.diversity import OPERA, OPERA_OP, OPERA_PARA
from opera.prioritize.fast import FAST_ALL, FAST_ONE, FAST_PW, HASHES, Bands, signatures, text
from opera.prioritize.subspaces import Row
from opera.programs.values import Message, Named, Optional, RandomTensor, Sequence, Tensor

ROWS = [
    Row(f"Op{i % 3}", {"axis": i % 4, "mode": "ab"[i % 2]}, [[2, i % 5], []], ["float32", None], [[2]], ["float32"])
    for i in range(40)
]
COVERAGE = [np.array(sorted({i % 7, 10 + i % 3, 20 + i // 10}), np.int32) for i in range(40)]
SETS = st.lists(st.frozensets(st.integers(0, 9), max_size=5), max_size=12)


def source(need: str) -> list[object]:
    return {"coverage": list(COVERAGE)}[need]


@pytest.mark.parametrize("name", list(registered()))
def test_every_strategy_ranks_every_test_and_ties_are_seeded(name: str) -> None:
    orders = {seed: rank(name, iter(ROWS), ROWS[:2], {}, seed, source) for seed in (None, 0, 1, 2)}
    assert all(sorted(order) == list(range(40)) for order in orders.values())
    assert all(rank(name, ROWS, ROWS[:2], {}, seed, source) == order for seed, order in orders.items())
    assert len({tuple(orders[seed]) for seed in (0, 1, 2)}) == 3, "other seeds break ties otherwise"
    assert rank(name, [], ROWS, {}, 0, lambda need: []) == []
    assert rank(name, ROWS[:1], ROWS, {}, None, lambda need: source(need)[:1]) == [0]


@pytest.mark.parametrize("name", ["total", "additional"])
def test_what_is_not_known_is_told(name: str) -> None:
    assert needs(name) == "coverage"
    with pytest.raises(UsageError, match="no coverage is known"):
        rank(name, ROWS, [], {})


def test_without_equipped_tests_operators_have_no_score() -> None:
    with pytest.raises(UsageError, match="opera extract --equipped"):
        rank("opera-op", ROWS, [], {})


def test_round_robin_takes_one_of_each_operator_in_turn() -> None:
    rows = [Row(name, {}) for name in "AABCAB"]
    assert rank("round-robin", rows, [], {}) == [0, 2, 3, 1, 5, 4]
    for seed in range(3):
        told = [rows[at].operator for at in rank("round-robin", rows, [], {}, seed)]
        assert sorted(told[:3]) == ["A", "B", "C"]
        assert sorted(told[3:5]) == ["A", "B"]


def test_opera_op_is_the_rate_alone_and_opera_para_goes_without_it() -> None:
    rows = [Row("A", {"p": 1}), Row("A", {"p": 2}), Row("B", {"p": 1}), Row("C", {"p": 1})]
    assert OPERA_OP.rank(rows, [Row("A", {"p": 1})], {}, None) == [2, 3, 0, 1], "A is covered in part"
    assert OPERA_PARA.rank(rows, [], {}, None) == OPERA.rank(rows, [], {}, None), (
        "without equipped tests every rate is 1"
    )


@given(SETS, st.sampled_from([None, 3]))
def test_total_is_the_number_of_statements(sets: list[frozenset[int]], seed: int | None) -> None:
    known = [np.array(sorted(x), np.int32) for x in sets]
    order = tie_order(len(sets), seed)
    assert TOTAL.rank([], [], {}, seed, known) == sorted(range(len(sets)), key=lambda i: (-len(sets[i]), order[i]))


@settings(max_examples=300)
@given(SETS, st.sampled_from([None, 3]))
def test_additional_is_greedy_with_resets(sets: list[frozenset[int]], seed: int | None) -> None:
    order, left, naive, seen = tie_order(len(sets), seed), set(range(len(sets))), list[int](), frozenset[int]()
    while left:
        best = min(left, key=lambda i: (-len(sets[i] - seen), order[i]))
        if not sets[best] - seen and seen:
            seen = frozenset()
            continue
        left.remove(best)
        naive.append(best)
        seen |= sets[best]
    known = [np.array(sorted(x), np.int32) for x in sets]
    assert ADDITIONAL.rank([], [], {}, seed, known) == naive


def test_fast_signatures_are_minhashes_of_shingles() -> None:
    found = signatures(ROWS)
    assert found.shape == (40, HASHES)
    same = [i for i, row in enumerate(ROWS) if text(row) == text(ROWS[0])]
    assert all((found[i] == found[0]).all() for i in same)
    near, far = Row("Conv", {"a": 1}, [[2, 3]], ["float32"]), Row("Identity", {}, [[7]], ["string"])
    a, b, c = signatures([near, Row("Conv", {"a": 2}, [[2, 3]], ["float32"]), far])
    assert (a == b).sum() > (a == c).sum()


def test_bands_answer_as_the_index_of_datasketch_does() -> None:
    found = signatures(ROWS)
    plain = MinHash(num_perm=HASHES, seed=1)
    sketches = [MinHash(num_perm=HASHES, seed=1, hashvalues=x, scheme=plain.scheme) for x in found]
    index = MinHashLSH(num_perm=HASHES, params=(HASHES, 1))
    for number, sketch in enumerate(sketches):
        index.insert(number, sketch)
    bands = Bands(found, [])
    picked = MinHash(num_perm=HASHES, seed=1)
    for test in (5, 17, 3):
        bands.pick(test)
        picked.merge(sketches[test])
        index.remove(test)
        assert set(index.query(picked)) == {i for i in range(40) if 0 < bands.shared[i] < 50}
    bands.reset()
    assert set(np.flatnonzero(bands.shared)) == {5, 17, 3}, "what was picked stays so"


def unlike(count: int, each: int) -> np.ndarray:
    """Signatures of `each` equal tests of `count` kinds that share nothing."""
    return np.repeat(np.arange(count), each)[:, None] * 100 + np.arange(HASHES)


def test_fast_picks_one_of_each_kind_before_it_starts_anew() -> None:
    assert FAST_PW.order(unlike(2, 2)[::-1], None) == [0, 2, 1, 3], "once both were picked, only the lesser one counts"
    for strategy in (FAST_PW, FAST_ONE):
        for seed in range(4):
            kinds = [i // 3 for i in strategy.order(unlike(6, 3), seed)]
            assert kinds[0] != kinds[1]
            assert sorted(kinds) == sorted([0, 1, 2, 3, 4, 5] * 3)


def test_fast_all_takes_all_that_is_unlike_the_first_at_once() -> None:
    kinds = [i // 3 for i in FAST_ALL.order(unlike(6, 3), 0)]
    assert kinds[0] not in kinds[1:16]
    assert kinds[16:] == [kinds[0]] * 2


def test_text_tells_every_value_and_holds_no_address() -> None:
    values = [
        1, 1.5, "x", b"y", None, [1, (2,)], {"k": [3]}, Tensor.of(np.zeros((2, 1), np.float32)),
        RandomTensor("int8", (3,), 0, 0.0, 1.0), Message("onnx.GraphProto", b"1"), Named("torch.dtype", "float32"),
        Sequence("float32", ()), Optional("float32", None),
    ]  # fmt: skip
    texts = [text(Row("A", {"p": value})) for value in values]
    assert len(set(texts)) == len(values)
    assert all("0x" not in told and "object" not in told for told in texts)


def test_draws_differ_between_the_family() -> None:
    rows = [Row(f"Op{i}" * 4, {"x": i}) for i in range(300)]
    orders = [rank(name, rows, [], {}, 0) for name in ("fast-pw", "fast-one", "fast-log", "fast-sqrt", "fast-all")]
    assert all(a != b for a, b in pairwise(orders))
