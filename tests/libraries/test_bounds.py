"""Ranks, sizes and ranges are read out of documentation, and hold of programs or not."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.libraries import bounds, ranges
from opera.libraries.bounds import Bound
from opera.libraries.ranges import End, Range
from opera.programs.program import Argument, Call, Graph, Instance, Operand
from opera.programs.values import RandomTensor, Sequence, Tensor, Value


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("This is a 1-dimensional tensor with size of at least 2, the value [H, W].", Bound(ranks=(1,), least=2)),
        ("4D tensor with shape (b, n, s, h) or 3D tensor with shape (b, s, h).", Bound(ranks=(3, 4))),
        ("Tensor of rank r >= 1.", Bound(least_rank=1)),
        ("It must be of dimension 1, and it must only contain non-negative integer(s).", Bound(ranks=(1,), must=True)),
        ("The weights can either be 1-D (its length must be the size of `X`), or of any shape.", Bound(ranks=(1,))),
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


def test_ranges_bind_parameters_and_inputs() -> None:
    texts = {
        "num_tokens": "All inputs must integers in the range `0 <= value < num_tokens`, or an error is thrown.",
        "count": "Must be non-negative.",
    }
    stated = {"Op": bounds.read(texts, ["y", "count"])}
    assert stated["Op"]["y"].range == Range(End(0.0), End(0.0, "num_tokens", open=True))

    def breaks(value: int, tokens: int) -> bool:
        program = call(y=Tensor.of(np.int64([0, value])))
        return ("Op", "y", "range") in bounds.broken(
            stated, msgspec.structs.replace(program, params={"num_tokens": tokens})
        )

    assert not breaks(1, 2) and breaks(2, 2) and breaks(-1, 2)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The ratio of random dropout, with value in [0, 1).", Range(End(0.0), End(1.0, open=True))),
        ("Values are expected to be in the range [-depth, depth-1].", Range(End(0.0, "depth", -1), End(-1.0, "depth"))),
        (r"All values have to be in the range: :math:`0 \leq \text \leq 1`.", None),
        ("Labels element value shall be in range of [0, C).", Range(End(0.0))),
        ("Values must be between 0 and 100 inclusive.", Range(End(0.0), End(100.0))),
        ("must be >= 0 and <= kernel_size / 2", Range(End(0.0))),
        ("The value must be positive.", Range(End(0.0, open=True))),
        ("should be positive or zero", None),
        (r"Accepted range is $[-r, -2] \cup [0, r-2]$ where `r = rank(input)`.", None),
        ("All index values are expected to be within bounds [-s, s-1] along axis of size s.", None),
        ("it should have most values in the range of [-1, 1].", None),
        ("If containing probabilities, each value should be between [0, 1].", None),
        ("as in [Jozefowicz et al., 2015](http://x)", None),
        ("for p in `(2, -2)`", None),
        (
            "Accepted range is [-r, r-1] where r = rank(depth).",
            Range(End(0.0, "depth", -1, rank=True), End(-1.0, "depth", rank=True)),
        ),
        (
            "Accepted range is `[-r, r-1]` where `r = rank(input)`.",
            Range(End(0.0, sign=-1, rank=True), End(-1.0, rank=True)),
        ),
        ("Accepted range is [-r, r-1] where r = rank(expanded).", None),
        ("it can take any value greater than or equal to 0.", Range(End(0.0))),
        ("The block size is a positive integer.", Range(End(open=True))),
        ("and `axis=i`, the accepted range is `[ceil(Di/Si), ceil(Di/(Si-1))-1]`", Range(blocks=True)),
    ],
)
def test_what_is_stated_of_values_is_read(sentence: str, expected: Range | None) -> None:
    assert ranges.read(sentence, {"depth"}) == expected


@given(
    st.integers(-5, 5),
    st.integers(-5, 5),
    st.lists(st.integers(-9, 9), min_size=1),
    st.sampled_from(["[]", "[)", "(]", "()"]),
)
def test_what_lies_in_a_range_is_what_an_interval_says(low: int, high: int, numbers: list[int], brackets: str) -> None:
    found = ranges.read(f"values in {brackets[0]}{low}, {high}{brackets[1]}", ())
    assert (found is None) == (low > high)
    if found is not None:
        outside = {low if brackets[0] == "(" else None, high if brackets[1] == ")" else None}
        inside = all(low <= x <= high and x not in outside for x in numbers)
        for given_as in (numbers, Tensor.of(np.int64(numbers)), Tensor.of(np.float32(numbers))):
            assert ranges.holds(found, given_as, {}) == inside


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), st.sampled_from([0, -2]))
def test_a_block_is_as_large_as_it_takes_for_each_to_have_a_scale_and_each_scale_a_block(
    length: int, scales: int, size: int, axis: int
) -> None:
    """One scale of two elements in blocks of one was called a finding: the second element has none."""
    given_ = {
        "x": RandomTensor("float32", (length, 3), 1, 0.0, 1.0),
        "y_scale": RandomTensor("float32", (scales, 3), 1, 0.0, 1.0),
    }
    blocks = {place // size for place in range(length)}
    assert ranges.holds(Range(blocks=True), size, {**given_, "axis": axis}) == (len(blocks) == scales)
    assert not ranges.holds(Range(blocks=True), size, {**given_, "axis": 2})
    assert ranges.holds(Range(blocks=True), 0, given_)


def test_what_an_axis_may_be_is_told_by_the_rank_of_an_input() -> None:
    stated = {"Op": bounds.read({"axis": "Accepted range is [-r, r-1] where r = rank(input)."}, ["X"])}
    program = call(X=Tensor.of(np.ones((2, 2), "f4")))
    for axis in range(-3, 3):
        made = msgspec.structs.replace(program, params={"axis": axis})
        assert (bounds.broken(stated, made) == frozenset()) == (-2 <= axis < 2)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (Range(End(open=True)), "positive"),
        (Range(End()), "non-negative"),
        (Range(End(2.0)), "in [2, inf)"),
        (Range(End(), End(-1.0, "depth", open=True)), "in [0, depth - 1)"),
        (Range(End(0.0, "", -1, rank=True), End(-1.0, rank=True)), "in [-rank, rank - 1]"),
        (Range(blocks=True), ""),
    ],
)
def test_a_range_is_told_as_documentation_writes_it(stated: Range, words: str) -> None:
    assert ranges.told(stated) == words


def test_what_onnx_says_of_the_number_of_elements_of_topk_speaks_against_none() -> None:
    """A frontend that returns all elements for K = 0 breaks nothing that ONNX says: "a single positive value"."""
    from opera.triage.doubts import inadmissible, undocumented

    def top(count: int) -> Instance:
        operands = (Operand("X", Tensor.of(np.float32([[1, 2]]))), Operand("K", Tensor.of(np.int64([count]))))
        return Instance("onnx", "TopK", {}, operands, ("values", "indices"), {"opset": {"": 24}})

    assert undocumented(top(0)) == "K, which is documented to be positive, is 0"
    assert not undocumented(top(1))
    for count in (0, 1):  # a file holds it as a constant
        program, version = top(count), {"opset": {"": 24}}
        held = Call("Constant", {"value": program.inputs[1].value}, (), ("c",), version)
        call = Call("TopK", {}, (Argument("X", "x"), Argument("K", "c")), ("v", "i"), version)
        of_file = Graph("onnx", (Operand("x", program.inputs[0].value),), (held, call), ("v",))
        assert bool(inadmissible(of_file)) is bool(inadmissible(program)) is (count == 0)


def test_the_dtype_that_pytorch_states_of_an_index_binds() -> None:
    torch = pytest.importorskip("torch")
    from opera.libraries.torch import calls, library
    from opera.triage.doubts import undocumented

    def gathered(dtype: str) -> Instance:
        index = torch.zeros((0, 1), dtype=getattr(torch, dtype))
        return calls.instance("torch.gather", (torch.ones(2, 2), 0, index), {})

    said = {"torch.gather": bounds.read(library.described(gathered("int64")))}
    assert said["torch.gather"]["index"].dtypes == ("int64",)
    assert not bounds.broken(said, gathered("int64"))
    assert bounds.broken(said, gathered("uint8")) == {("torch.gather", "index", "dtypes")}
    assert undocumented(gathered("uint8")) == "index is uint8, where int64 is documented"
    assert not undocumented(gathered("int64"))
    chosen = calls.instance("torch.index_select", (torch.ones(2), 0, torch.zeros(1, dtype=torch.int32)), {})
    assert not undocumented(chosen), "it is an IntTensor or a LongTensor"


def test_a_rank_that_an_input_must_have_is_told_where_it_has_another() -> None:
    """What `keras.ops.bincount` counts "must be of dimension 1": of a number without axes no compiler need count anything."""
    pytest.importorskip("keras")
    from opera.triage.doubts import undocumented

    def counted(x: Any) -> Instance:
        return Instance("keras", "keras.ops.bincount", {}, (Operand("x", Tensor.of(np.int32(x))),), (), {})

    assert undocumented(counted(1)) == "x is 0-d, where it must be 1-d as documented"
    assert not undocumented(counted([1, 2]))
