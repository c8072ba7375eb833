"""Coverage is stored as coverage.py packs line numbers: what earlier workspaces hold, and what strategies read."""

from __future__ import annotations

from coverage.numbits import nums_to_numbits
from hypothesis import given
from hypothesis import strategies as st

from opera.prioritize.knowledge import Known
from opera.run.collect import union
from opera.store.rows import Covered
from opera.store.workspace import Workspace

LINES = st.dictionaries(st.sampled_from("ab"), st.sets(st.integers(1, 70), min_size=1))


def test_a_bitmap_has_the_bit_of_each_line_least_significant_first() -> None:
    assert nums_to_numbits([1, 2, 9, 31]) == bytes([0b110, 0b10, 0, 0b10000000])


@given(st.lists(LINES, min_size=2, max_size=5))
def test_statements_are_the_lines_of_all_files(tests: list[dict[str, set[int]]]) -> None:
    stored = {str(at): {file: nums_to_numbits(x) for file, x in lines.items()} for at, lines in enumerate(tests)}
    found = Known(Stored(stored), "f").of(list(stored), "coverage")
    assert [len(x) for x in found] == [sum(map(len, lines.values())) for lines in tests]
    for one, mine in zip(found, tests, strict=True):
        for other, theirs in zip(found, tests, strict=True):
            shared = sum(len(lines & theirs.get(file, set())) for file, lines in mine.items())
            assert len(set(one.tolist()) & set(other.tolist())) == shared


@given(LINES, LINES)
def test_a_union_has_the_lines_of_both(first: dict[str, set[int]], second: dict[str, set[int]]) -> None:
    one, other = ({file: nums_to_numbits(x) for file, x in lines.items()} for lines in (first, second))
    both = {file: first.get(file, set()) | second.get(file, set()) for file in first | second}
    assert union(one, other) == {file: nums_to_numbits(lines) for file, lines in both.items()}


def test_what_is_stored_is_read(workspace: Workspace) -> None:
    workspace.save_coverage("f", "e", [Covered("i", {"a": nums_to_numbits([3, 4])}, 0.5)])
    (found,) = Known(workspace, "f").of(["i"], "coverage")
    assert found.tolist() == [3, 4]


class Stored(Workspace):
    """A workspace that is asked for nothing but coverage."""

    def __init__(self, covered: dict[str, dict[str, bytes]]) -> None:
        self.covered = covered

    def coverage(self, frontend: str, environment: str = "") -> dict[str, dict[str, bytes]]:
        return self.covered
