"""What a call is decomposed to is told as a user would call it."""

from __future__ import annotations

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor, Value

torch = pytest.importorskip("torch")

from opera.libraries.torch import calls, expansion  # noqa: E402


def call(operator: str, *args: object, **kwargs: Value) -> Instance:
    return calls.instance(operator, args, kwargs)


def test_an_operator_is_known_by_the_function_that_takes_its_arguments() -> None:
    """`aten.unfold` is along a dimension, `torch.nn.functional.unfold` of windows; `rand` is no `__rand__`."""
    made = expansion.expanded(call("torch.unfold_copy", torch.tensor(2.0), 0, 1, 1))
    [unfold] = (x for x in made if "unfold" in x.operator)
    assert unfold.operator == "torch.Tensor.unfold" and dict(unfold.params) == {"dimension": 0, "size": 1, "step": 1}
    assert expansion._public("unfold", ("input", "dimension", "size", "step")) == "torch.Tensor.unfold"
    assert expansion._public("unfold") == "torch.nn.functional.unfold"
    assert not any("__" in x for x in expansion._squeezed().values())


def test_self_is_the_input_of_a_function_that_calls_it_so() -> None:
    made = expansion.expanded(call("torch.heaviside", torch.tensor([1.0]), torch.tensor([2.0])))
    mixed = [x for x in made if x.operator == "torch.where" and len({y.value.dtype for y in x.inputs}) == 3]
    [where] = mixed
    assert [x.name for x in where.inputs] == ["condition", "input", "other"]
    assert where.inputs[1] == Operand("input", Tensor.of(np.array([2.0], "f4")))
