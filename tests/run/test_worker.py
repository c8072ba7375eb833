"""What a worker looks at beside the outputs of one run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opera.oracle import randomness
from opera.programs.values import Tensor
from opera.run import worker


@pytest.mark.parametrize(
    ("seconds", "changes", "renewed"),
    [(1, 1, True), (1, 3, False), (worker.SECONDS, 3, True), (worker.SECONDS, 99, False)],
)
def test_what_is_the_same_within_a_second_is_looked_at_in_the_next_ones(
    monkeypatch: pytest.MonkeyPatch, seconds: int, changes: int, renewed: bool
) -> None:
    """Of two numbers that may be drawn the next second draws the same in one of two: `multinomial` was told never to change."""
    slept, first = list[float](), [Tensor.of(np.array([0]))]
    monkeypatch.setattr(worker.time, "sleep", slept.append)
    other = [Tensor.of(np.array([1]))]
    frontend: Any = SimpleNamespace(infer=lambda compiled, case: other if len(slept) >= changes else first)
    case: Any = None
    same = first * 3  # of the model compiled anew, and of two more runs
    found = worker._renewed(frontend, None, case, first, same, seconds)
    assert found == ({randomness.RENEWED: True} if renewed else {}) and len(slept) == min(seconds, changes)
    assert not worker._renewed(frontend, None, case, first, [*first, *other], seconds), "it changes within the second"
