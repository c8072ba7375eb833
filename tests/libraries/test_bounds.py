"""Ranks and sizes are read out of documentation, and hold of programs or not."""

from __future__ import annotations

import numpy as np
import pytest

from opera.libraries import bounds
from opera.libraries.bounds import Bound
from opera.programs.program import Instance, Operand
from opera.programs.values import RandomTensor, Sequence, Tensor, Value


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("This is a 1-dimensional tensor with size of at least 2, the value [H, W].", Bound(ranks=(1,), least=2)),
        ("4D tensor with shape (b, n, s, h) or 3D tensor with shape (b, s, h).", Bound(ranks=(3, 4))),
        ("Tensor of rank r >= 1.", Bound(least_rank=1)),
        ("rank at least 3", Bound(least_rank=3)),
        ("Input tensor of rank 2 or higher.", Bound(least_rank=2)),
        ("A tensor with at least two dimensions.", Bound(least_rank=2)),
        ("Scalar or Rank 1 tensor containing exactly one element", Bound(ranks=(0, 1), least=1)),
        ("Must have the same shape as `X`.", Bound(like="X")),
        ("Tensor of r >= 1 (same rank as input).", Bound(least_rank=1, like="X", rank_alone=True)),
        ("(same rank and shape as indices)", Bound(like="indices")),
        ("a list of at least two tensors", Bound(count=2)),
        ("Note that this is for the 2D image. Otherwise the size is (N x C x D1 x D2 ... x Dn).", Bound()),
        ("For 2D input, it is the number of pixels.", Bound()),
        ("N-dimensional matrix A", Bound()),
        ("The bias.", Bound()),
    ],
)
def test_what_is_stated_of_an_input_is_read(text: str, bound: Bound) -> None:
    found = bounds.read({"X": "", "indices": "", "y": text})
    assert found.get("y", Bound()) == bound


def call(**inputs: Value) -> Instance:
    return Instance("onnx", "Op", {}, tuple(Operand(name, x) for name, x in inputs.items()), ("o",), {})


def test_a_program_breaks_what_does_not_hold_of_its_inputs() -> None:
    stated = {"Op": {"X": Bound(ranks=(1, 2), least=2), "y": Bound(least_rank=1, like="X"), "items": Bound(count=2)}}
    one, two = (Tensor.of(np.ones(x, "f4")) for x in (1, 2))
    assert bounds.broken(stated, call(X=two, y=RandomTensor("float32", (2,), 1, 0.0, 1.0))) == frozenset()
    assert bounds.broken(stated, call(X=one, y=two)) == {("Op", "X", "least"), ("Op", "y", "like")}
    scalar = Tensor.of(np.float32(1))
    assert bounds.broken(stated, call(y=scalar)) == {("Op", "y", "least_rank")}
    assert bounds.broken(stated, call(X=scalar)) == {("Op", "X", "ranks"), ("Op", "X", "least")}
    assert bounds.broken(stated, call(items=Sequence("float32", (one,)))) == {("Op", "items", "count")}
