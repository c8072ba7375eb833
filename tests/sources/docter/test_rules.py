from __future__ import annotations

import pytest

from opera.sources.docter import docstrings, rules

DOC = """scale(input, dim, *, mode='mean') -> Tensor

Args:
    input (Tensor): the input tensor, of shape :math:`(N, *)`.
    dim (int or tuple of ints): the dimension (or dimensions)
        to reduce.

Keyword args:
    mode (str, optional): ``'mean'`` | ``'sum'``: how. Default: ``'mean'``
    eps (float(32), optional): small

Shape:
    - Input: :math:`(N, C_{in}, *)`, or :math:`(C_{in})`
    - Output: a scalar

Examples::

    >>> other: nothing (at all): here
"""


def test_docstrings_are_read_by_heading() -> None:
    found = docstrings.entries(DOC)
    assert list(found["args"]) == ["input", "dim"] and list(found["keyword args"]) == ["mode", "eps"]
    assert found["args"]["dim"] == docstrings.Entry("int or tuple of ints", "the dimension (or dimensions) to reduce.")
    assert list(found["shape"]) == ["Input", "Output"]
    assert "other" not in docstrings.arguments(DOC)
    assert docstrings.entries(None) == {}


@pytest.mark.parametrize(
    ("kind", "description", "default", "expected"),
    [
        ("Tensor", "the input tensor.", None, {"tensor_t": ["tensor"]}),
        ("int, optional", "number of groups", "1", {"dtype": ["int"], "ndim": ["0"], "range": ["[0,inf)"]}),
        ("float", "probability of an element to be zeroed", None, {"dtype": ["float"], "ndim": ["0"], "range": ["[0,1]"]}),
        ("int or tuple", "the stride", None, {"dtype": ["int"], "structure": ["tuple"], "ndim": ["0", "1"]}),
        ("LongTensor", "indices", None, {"dtype": ["int64"], "tensor_t": ["tensor"]}),
        ("sequence of Tensors", "what is joined", None, {"structure": ["list", "tuple"], "tensor_t": ["tensor"]}),
        ("", "Boolean, whether it has a bias.", "True", {"dtype": ["bool"], "ndim": ["0"]}),
        ("", 'One of `"valid"` or `"same"`.', '"valid"', {"dtype": ["string"], "ndim": ["0"], "enum": ["valid", "same"]}),
        ("", "int or tuple/list of 2 integers, the window.", None,
         {"dtype": ["int"], "structure": ["list", "tuple"], "shape": ["[2]"], "ndim": ["0", "1"]}),
        ("", "Target shape. Tuple of integers, without the batch.", None,
         {"dtype": ["int"], "structure": ["tuple"], "ndim": ["1"]}),
        ("", "Input tensor. It must be of dimension 1, and it must only contain non-negative integer(s).", None,
         {"dtype": ["int"], "tensor_t": ["tensor"], "ndim": ["1"], "range": ["[0,inf)"]}),
        (":class:`torch.dtype`", "the desired data type", "None", {"dtype": ["dtype"]}),
        ("", "", None, {}),
    ],
)  # fmt: skip
def test_words_become_constraints(
    kind: str, description: str, default: str | None, expected: dict[str, list[str]]
) -> None:
    assert rules.texts("x", kind, description, default) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(N, C_{in}, *)", "[N,C_in,...]"), (r"(N, C, d_1, \ldots, d_K)", "[N,C,d_1,...,d_K]"),
        ("(batch_size, height)", "[batch_size,height]"),
        (r"(D * \text{num\_layers}, N)", "[D*num_layers,N]"), ("(see below; or not)", ""), ("(2, 3)", ""), ("()", ""),
    ],
)  # fmt: skip
def test_shapes(text: str, expected: str) -> None:
    assert rules.shape(text) == expected
