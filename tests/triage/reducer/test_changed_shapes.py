"""What is told of a program of another shape, or whose result is of another: opera.triage.reducer.changed."""

from __future__ import annotations

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, PASS, Outcome
from opera.run.probe import Question
from opera.triage import contrasts
from opera.triage.contrasts import FAILS, PASSES
from opera.triage.reducer import changed
from opera.triage.reducer.asking import Asker


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (Outcome(CRASH, "load", "Fail", "'repeats' must have the length of its rank"), False),
        (Outcome(CRASH, "infer", "Fail", "'repeats' must have the length of its rank"), True),
        (Outcome(CRASH, "load", "Fail", "no kernel"), True),
        (Outcome(PASS), True),
    ],
)
def test_a_shape_that_a_witness_says_to_be_none_is_not_told_as_right(says: Outcome, told: bool) -> None:
    """OpenVINO ran a `Tile` of four repeats of five axes, which ONNX forbids."""
    own, other = (
        Instance("onnx", "Any", {}, (Operand("X", Tensor.of(np.ones(shape, np.float32))),), ("Y",), {})
        for shape in ((1, 2), (1, 2, 1))
    )
    ask = Asker(None, Question(frontend="tvm-onnx"), Question(frontend="onnxruntime-onnx"))  # type: ignore[arg-type]
    ask._one = lambda program, question: says  # type: ignore[method-assign]
    change = contrasts.change(other, own)
    assert change is not None and change.form == contrasts.SHAPE
    assert changed._surely(ask, Outcome(CRASH, "load"), own, other, change) is told


@pytest.mark.parametrize(
    ("failing", "passing", "told"),
    [
        ([1, 1], [2, 3], ("1x1", (), ("1x2", "1x3"))),
        ([0], [1, 2], ("1x0", (), ("1x1", "1x2"))),
        ([1, 2], [3], None),
        ([1], [11, 2], None),
        ([2], [3], None),
        ([1], [], None),
    ],
)
def test_that_what_should_be_returned_is_of_length_one_is_told_where_it_separates(
    failing: list[int], passing: list[int], told: tuple[str, tuple[str, ...], tuple[str, ...]] | None
) -> None:
    """A resize divides by a length less one: sizes of 1 and scales of a half were told, and not what they have in common."""

    own, *others = (
        Instance("onnx", "Any", {"size": x}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
        for x in (*failing, *passing)
    )
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.reference = lambda x: [Tensor.of(np.ones((1, x.params["size"] % 10), "f4"))]  # type: ignore[attr-defined, method-assign]
    found = [(x, FAILS if n < len(failing) - 1 else PASSES) for n, x in enumerate(others)]
    row = next(changed.short(ask, own, found), None)
    assert (row and (row.own, row.fails, row.passes)) == told
