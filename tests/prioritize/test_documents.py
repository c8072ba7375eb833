from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import INSTANCES, tensors

from opera.prioritize.documents import from_document
from opera.prioritize.subspaces import from_program
from opera.programs import values
from opera.programs.program import Instance, Operand, parse_instance
from opera.programs.values import Optional, RandomTensor, Sequence, Tensor


def both(instance: Instance, expected: tuple[object, ...] | None) -> None:
    document = None
    if expected is not None:
        document = msgspec.json.encode({"expected": [values.encode(x) for x in expected], "rtol": None, "atol": None})
    row, other = (
        from_document(instance.canonical(), document),
        from_program(parse_instance(instance.canonical()), expected),
    )
    assert repr(row) == repr(other)  # NaN is not equal to itself


@settings(deadline=None)
@given(INSTANCES, st.none() | st.lists(tensors(), max_size=3).map(tuple))
def test_a_document_gives_the_row_of_its_instance(instance: Instance, expected: tuple[Tensor, ...] | None) -> None:
    both(instance, expected)


def test_values_that_are_no_tensors_are_looked_at_whole() -> None:
    plain = Tensor("float32", (2, 0), b"")
    inputs = (
        plain, None, RandomTensor("int64", (7,), 1, 0, 3), Sequence("float32", (plain, plain)), Optional("float32", plain)
    )  # fmt: skip
    for value in inputs:
        operands = (Operand("x", plain), Operand("y", value))
        both(Instance("onnx", "Op", {"a": [1, {"k": (2,)}], "b": b"x"}, operands, ("z",), {}), None)
        both(Instance("onnx", "Op", {}, operands[:1], ("z",), {}), (plain, value))
