"""What documentation says is quoted where it decides, and nothing that it says of other matters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.libraries.documented import (
    Quote,
    Wrong,
    body,
    holds,
    of_docstring,
    option,
    quoted,
    reaching,
    sentences,
    telling,
)
from opera.libraries.onnx import library
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor


@pytest.mark.parametrize(
    ("operator", "names", "deciding", "wrong", "wanted"),
    [
        ("MaxPool", ("X",), ["ceil_mode"], Wrong("Y", "shape"), "start in the right padded region are ignored"),
        (
            "NonMaxSuppression",
            ("boxes", "scores"),
            ["iou_threshold"],
            Wrong("selected_indices", "shape"),
            "strictly greater",
        ),
        ("Pow", ("X", "Y"), [], Wrong("", "TypeError"), "T1: Constrain input Y types"),
    ],
)
def test_the_clause_that_decides_is_quoted(operator, names, deciding, wrong, wanted):
    dtypes = [np.float32, np.int64]
    inputs = tuple(
        Operand(name, Tensor.of(np.ones((1, 1, 3), dtype))) for name, dtype in zip(names, dtypes, strict=False)
    )
    call = Instance(
        "onnx", operator, {"ceil_mode": 1} if operator == "MaxPool" else {}, inputs, ("Y",), {"opset": {"": 22}}
    )
    assert any(wanted in x.text for x in library.documented(call, deciding, wrong))
    assert not any("ignored" in x.text for x in library.documented(call, [], wrong))


def test_the_sentence_on_a_limit_is_reached_however_late_it_comes():
    text = f"The threshold. {'It is one. ' * 60}Boxes strictly greater than it are suppressed."
    assert "strictly" not in quoted(text) and reaching(text).endswith(
        "[...] Boxes strictly greater than it are suppressed."
    )
    assert reaching("Strictly greater boxes are dropped.") == "Strictly greater boxes are dropped."


DOCSTRING = """f(x, p=2, dim=None) -> Tensor

    Computes a norm. See :func:`g`.

    ========  ==========
    :attr:`p` norm
    ========  ==========
    `2`       `sqrt`
    `0`       `sum(x != 0)`
    ========  ==========

    .. warning::
        If :attr:`dim` is not given, it defaults to the first one.

    In the spatial (4-D) case the output will have shape :math:`(N, H_\\text{out})`.

    Output shape:

    ```python
    f(x, p=3)
    ```

    Supports :ref:`type promotion <doc>`. When ``p = 1`` it is a sum.

    - is an item
    - **kept** (*Tensor*): what is kept if flag is True

    Args:
        p (int): order of the norm. If it is 7, nothing is done.
        dim: the dimension.
        flag: whether more is returned than the norm itself. Default: no

            When p = 3 something else is said of another thing.

    Example::

        >>> f(x, p=4)
    """


@pytest.mark.parametrize(
    ("params", "names", "wrong", "told"),
    [
        ({"p": 0.0}, ["p"], Wrong(), ["`0`: `sum(x != 0)`"]),
        ({"p": 1}, ["p"], Wrong(), ["When `p = 1` it is a sum."]),
        ({"p": 3}, ["p"], Wrong(), ["order of the norm. If it is 7, nothing is done."]),
        ({"p": 4}, ["p"], Wrong(), ["order of the norm. If it is 7, nothing is done."]),
        ({"p": 7}, ["p"], Wrong(), ["If it is 7, nothing is done."]),
        ({"flag": True}, ["p", "flag"], Wrong(), ["kept (Tensor): what is kept if flag is True"]),
        ({"p": 1, "flag": False}, ["p", "flag"], Wrong(), ["When `p = 1` it is a sum."]),
        ({"dim": 1}, ["dim"], Wrong(), []),
        ({}, ["dim"], Wrong(omitted=("dim",)), ["If dim is not given, it defaults to the first one."]),
        ({}, ["flag"], Wrong(omitted=("flag",)), []),  # "Default: no" is no rule
        ({}, [], Wrong("y", "shape"), ["In the spatial (4-D) case the output will have shape (N, H_out)."]),
        ({}, [], Wrong("y", "TypeError", dtypes=True), ["Supports type promotion."]),
    ],
)  # fmt: skip
def test_a_docstring_is_quoted_where_it_speaks_of_the_very_value(params, names, wrong, told):
    """A table's row, a clause, a sentence of the text; what a parameter is in general only where no rule is quoted."""
    image = Operand("x", Tensor.of(np.ones((1, 1, 1, 1), np.float32)))
    call = Instance("torch", "f", params, (image,), ("y",), {})
    assert [x.text for x in of_docstring(call, DOCSTRING, names, "", wrong)] == told


def test_what_is_said_of_another_rank_and_what_is_no_prose_is_not_quoted():
    flat = Instance("torch", "f", {}, (Operand("x", Tensor.of(np.ones(2, np.float32))),), ("y",), {})
    assert of_docstring(flat, DOCSTRING, [], "", Wrong("y", "shape")) == []
    assert not any(x in body(DOCSTRING) for x in (">>>", "order of the norm", "->", "something else"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("none", "`'none'`: no reduction"),
        ("mean", "`'mean'`: the mean, of all"),
        ("sum", "'sum': it is summed up"),
        ("last", '`"last"`: like the first'),
        ("of", ""),
        (1, ""),
    ],
)
def test_one_of_several_strings_is_quoted_alone(value, told):
    text = """``'none'`` | ``'mean'``. ``'none'``: no reduction, ``'mean'``: the mean,
      of all, 'sum' - it is summed up. Default: 'mean'.
        - `"last"`: like the first"""
    assert option(text, value) == told


@settings(max_examples=40)
@given(st.lists(st.text("ab.- *\n`", max_size=12), max_size=6).map("\n".join))
def test_sentences_hold_all_words_of_a_paragraph_in_their_order(paragraph):
    assert " ".join(" ".join(sentences(paragraph)).split()) == " ".join(paragraph.split())


FLAGS = {x: st.booleans() for x in ("types", "exact", "general")}


@settings(max_examples=40)
@given(st.lists(st.builds(Quote, st.sampled_from(["NaN", "a"]), st.text("ab ", max_size=4), st.just(""), **FLAGS)))
def test_what_tells_most_is_left_and_nothing_twice(found):
    kept = telling(found)
    assert telling(kept) == kept and all(x in found for x in kept)
    assert len({x.text for x in kept}) == len(kept)
    assert bool(kept) or all(x.general or not x.text for x in found)


def told(operator, params, inputs, names, wrong, opset=22):
    operands = tuple(Operand(name, None if value is None else Tensor.of(value)) for name, value in inputs.items())
    call = Instance("onnx", operator, params, operands, ("y",), {"opset": {"": opset}})
    return [x.text for x in library.documented(call, names, wrong)]


def test_the_rule_stands_alone():
    """Neither what an attribute is beside the clause for its value, nor what is said of infinity in general beside that."""
    x = np.float32([1.0])
    assert told(
        "MaxPool", {"ceil_mode": 1, "strides": [2]}, {"X": x}, ["ceil_mode", "strides"], Wrong("Y", "shape")
    ) == ["Sliding windows that would start in the right padded region are ignored."]
    [clause] = told(
        "IsInf", {"detect_negative": 0}, {"X": np.float32([-np.inf])}, ["detect_negative"], Wrong("Y", "value")
    )
    assert clause == "Set this attribute to 0 if negative infinity should be mapped to false."
    assert told("SequenceInsert", {}, {"input_sequence": x}, ["input_sequence"], Wrong()) == []
    [left] = told("QuantizeLinear", {}, {"x": x}, ["y_zero_point"], Wrong(omitted=("y_zero_point",)))
    assert left.endswith("Default is uint8 with zero point of 0 if it's not specified.")
    found = told("DFT", {"onesided": 1}, {"input": x}, ["onesided"], Wrong("output", "shape"))
    assert any(x.startswith("For RFFT (`onesided=1`") for x in found), found


@pytest.mark.parametrize(
    ("about", "text", "wrong", "wanted"),
    [
        ("empty inputs", "If compute_uv is `False`, it returns zeros.", Wrong(), False),
        ("the rule", "When `keepdims` is 1, the axes are kept.", Wrong(), False),
        ("the rule", "When `keepdims` is 0, the axes are pruned.", Wrong(), True),
        ("attribute `keepdims`", "If keepdims equals 1, the axes are kept.", Wrong(), True),
        ("NaN", "If `x` is infinite, `NaN` is returned.", Wrong("C", "value", "inf"), False),
        ("NaN", "If `x` is infinite, `NaN` is returned.", Wrong("C", "value", "nan"), True),
        ("output `Y`", "Dimensions will vary based on the kernel.", Wrong("Y", "shape"), False),
        ("output `Y`", "Y has the same shape as X.", Wrong("Y", "shape"), True),
    ],
)
def test_what_is_said_of_another_case_is_not_quoted(about, text, wrong, wanted):
    call = Instance("onnx", "Any", {"keepdims": 0}, (Operand("x", Tensor.of(np.ones(2, np.float32))),), ("Y",), {})
    assert holds(Quote(about, text, ""), call, wrong) is wanted
    assert not holds(Quote("the types", "T1: The type of x.", "", types=True), call, wrong)


@pytest.mark.parametrize(("empty", "wanted"), [("axes", False), ("data", True)])
def test_a_rule_on_nothing_is_of_data_not_of_axes(empty, wanted):
    axes, data = np.ones(0 if empty == "axes" else 1, np.int64), np.ones((0 if empty == "data" else 2, 2), np.float32)
    inputs = (Operand("data", Tensor.of(data)), Operand("axes", Tensor.of(axes)))
    call = Instance("onnx", "ReduceL2", {}, inputs, ("reduced",), {"opset": {"": 18}})
    assert any("empty set" in x.text for x in library.documented(call, [], Wrong("", "TypeError"))) is wanted
