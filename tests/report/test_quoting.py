"""What a draft quotes: the rule that is broken, by what decides and by what a crash names."""

import msgspec
import numpy as np
import pytest
from filled import floats

from opera.libraries.documented import Wrong, argument, prose, rule_on
from opera.libraries.documented import quoted as quoted_of
from opera.libraries.onnx import library, schemas
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.report import quoting
from opera.triage.reproducers.choice import Choice


def quotes_of(operator, params, inputs, deciding, outcome):
    operands = tuple(Operand(name, Tensor.of(value)) for name, value in inputs.items())
    call = Instance("onnx", operator, params, operands, ("y",), {"opset": {"": 22}})
    return [x.text for x in quoting.quotes(call, type("Shown", (), {"deciding": deciding, "told": deciding}), outcome)]


def wrong(expected, actual, output="y"):
    details = {"output": output, "expected": expected, "actual": actual}
    return Outcome(INCONSISTENT, "infer", "value", "wrong", details=details)


@pytest.mark.parametrize(
    ("x", "outcome", "begins"),
    [
        ([1.0, 2.0], wrong(1, 2), "For `(x / y_scale)`, it rounds to the nearest even."),
        ([2.0, 2.0], wrong(1, 2), "Zero point for doing quantization"),  # no tie
        ([1.0, 2.0], wrong(1, 9), "Zero point for doing quantization"),  # rounding is not what is wrong
    ],
)
def test_how_is_rounded_is_quoted_of_a_tie_that_is_one_off(x, outcome, begins):
    inputs = {"x": np.float32(x), "y_scale": np.float32(2), "y_zero_point": np.uint16([1])[0]}
    [found] = quotes_of("QuantizeLinear", {}, inputs, ("input y_zero_point",), outcome)
    assert found.startswith(begins)


@pytest.mark.parametrize(
    ("deciding", "message", "told"),
    [
        (("axes given",), "no", 1),
        (("axes given", "an empty input"), "no", 0),  # what is said of axes in general says nothing of that
        (("axes given", "an input of rank 1"), "no", 0),
        (("axes given", "an empty input"), "axes are not known: 'axes'", 1),
        ((), "axes are not known: 'axes'", 1),
        ((), "axes are not known", 0),
    ],
)
def test_what_a_parameter_is_in_general_is_quoted_where_it_decides_alone_or_a_crash_names_it(deciding, message, told):
    found = quotes_of("Resize", {"axes": [0]}, {"X": np.float32([1])}, deciding, Outcome(CRASH, "load", "E", message))
    assert [x.startswith("If provided, it specifies a subset of axes") for x in found] == [True] * told
    assert quotes_of(
        "Resize", {"axes": [0]}, {"X": np.float32([1])}, ("axes given", "an input of rank 1"), wrong(1.0, 2.0)
    )


def test_that_a_dtype_is_admitted_is_no_rule_on_numbers_nor_beside_a_parameter_that_decides():
    crash = Outcome(CRASH, "load", "E", "dtype mismatch between input (int32) and attribute (1)")
    x = {"input": np.int32([[1]])}
    [about] = quotes_of("EyeLike", {"dtype": 1}, x, ("dtype given",), crash)
    assert about.startswith("(Optional) The data type for the elements of the output tensor.")
    assert quotes_of("EyeLike", {}, x, (), crash) == ["Among the types of T1 is tensor(int32)."]
    assert quotes_of("Abs", {}, {"X": np.float64([1])}, ("float64 inputs",), wrong(1.0, 2.0)) == []
    both = {"X": np.int32([1]), "Y": np.float32([1])}
    [types] = quotes_of(
        "Pow", {}, both, ("inputs of two dtypes",), Outcome(CRASH, "load", "E", "must have the same dtype")
    )
    assert types.startswith("T: Constrain input X")


def test_the_specification_is_quoted_where_it_speaks_of_what_decides():
    data = Operand("X", Tensor("float32", (1,), bytes(4)))
    call = Instance("onnx", "Resize", {"keep_aspect_ratio_policy": "not_smaller"}, (data,), ("Y",), {"opset": {"": 21}})
    [found] = library.documented(call, ["keep_aspect_ratio_policy"], Wrong())
    assert '"not_smaller"' in found.text and "no extent of the output is smaller" in found.text
    assert found.address == "https://onnx.ai/onnx/operators/onnx__Resize.html#l-onnx-op-resize-19"
    message = "inconsistent total_sequence_length (between attn_mask and past_key), bad input"
    operands = tuple(Operand(name, Tensor("float32", (1,), bytes(4))) for name in ("input", "attn_mask"))
    mentioned = quoting.mentioned(
        Instance("onnx", "A", {"axis": 1}, operands, ("Y",), {}), Outcome(CRASH, message=message)
    )
    assert list(mentioned) == ["attn_mask"]
    assert library.documented(call, [], Wrong("Y")) == [] == library.documented(call, ["no_such"], Wrong())
    empty = Operand("data", Tensor("float32", (0,), b""))
    call = Instance("onnx", "ReduceMax", {}, (empty,), ("reduced",), {"opset": {"": 20}})
    [found] = schemas.quotes(call, [], Wrong())
    infinite = msgspec.structs.replace(call, inputs=(Operand("data", Tensor.of(np.array([np.inf], np.float32))),))
    assert schemas.quotes(infinite, [], Wrong()) == []  # what is said of infinities is said of empty sets alone
    assert found.about == "empty inputs" and found.text.startswith("Reduction over an empty set of values yields")
    call = Instance("onnx", "Dropout", {}, (data,), ("output", "mask"), {"opset": {"": 22}})
    [found] = schemas.quotes(call, [], Wrong("mask", "dtype"))
    assert found.text == "The output mask. Its type is tensor(bool)."
    assert schemas.quotes(Instance("onnx", "Nothing", {}, (), (), {"opset": {"": 22}}), ["a"], Wrong()) == []


def asked(operator, params, names, value=1.0, opset=25):
    given = Operand("input", Tensor.of(np.array([value], np.float32)))
    return library.documented(
        Instance("onnx", operator, params, (given,), ("y",), {"opset": {"": opset}}), names, Wrong()
    )


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        ("Bernoulli", "an output of 1 is produced with probability p and an output of 0 is produced with probability (1-p)."),
        ("RandomNormalLike", "Generate a tensor with random values drawn from a normal distribution."),
        ("Dropout", "If `training_mode` is true then the output Y will be a random dropout"),
        ("Abs", ""),
    ],
)  # fmt: skip
def test_the_law_that_a_random_operator_breaks_is_quoted(operator, says):
    call = Instance("onnx", operator, {}, (), ("y",), {"opset": {"": 22}})
    shown = Choice(None, None)
    wrong = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "share", "why": "y has a mean of about 1, not 0"})
    assert [says in x.text for x in quoting.quotes(call, shown, wrong)] == ([True] if says else [])
    assert quoting.quotes(call, shown, msgspec.structs.replace(wrong, symptom="shape")) == []
    assert quoting.quotes(call, shown, msgspec.structs.replace(wrong, details={"drawn": "seed"})) == []


def test_a_signature_and_a_formula_are_no_law():
    text = "normal(mean, out=None) -> Tensor Draws from a normal distribution: .. math:: x"
    assert quoting._prose(text) == "Draws from a normal distribution."
    assert quoting._prose("more details) probability distribution") == quoting._prose("It is: .. math:: x") == ""


@pytest.mark.parametrize(
    ("operator", "params", "begins", "ends"),
    [
        ("GRU", {"layout": 1}, "If 1, the following shapes are expected: X.shape = [batch_size, seq", "hidden_size]."),
        ("GRU", {"layout": 0}, "If 0, the following shapes are expected: X.shape = [seq_length", "hidden_size]."),
        ("Attention", {"is_causal": 1}, "If set to `1`, causal masking is applied.", "for an external cache)."),
        ("Resize", {"exclude_outside": 1}, "If set to 1, the weight of sampling locations", "sum is 1.0."),
        ("IsInf", {"detect_negative": 0}, "Set this attribute to 0 if negative infinity", "mapped to false."),
    ],
)
def test_the_clause_for_the_value_that_is_set_is_quoted(operator, params, begins, ends):
    """Up to the next condition, and not the description's beginning."""
    [found] = asked(operator, params, list(params))
    assert found.text.startswith(begins) and found.text.endswith(ends), found.text


@pytest.mark.parametrize(
    ("operator", "inputs", "wrong", "told"),
    [
        (
            "BatchNormalization",
            {"X": floats(1)},
            Wrong("running_mean", "value", 0.1),
            "running_mean = input_mean * mom",
        ),
        ("BatchNormalization", {"X": floats(1)}, Wrong("Y", "value", 0.1), ""),  # one formula for training, one without
        ("BatchNormalization", {"X": floats(1)}, Wrong(), ""),
        ("LayerNormalization", {"X": floats(1)}, Wrong("Mean", "shape", (1, 1)), "If `X`'s shape is `[d[0], ..."),
        ("TopK", {"X": floats(1, 1)}, Wrong("Indices", "value", 0), "Given two equivalent values, this operator uses"),
        ("TopK", {"X": floats(1, 2)}, Wrong("Indices", "value", 0), ""),
        ("TopK", {"X": floats(1, 1)}, Wrong("Values", "value", 0), ""),
        (
            "Attention",
            {"Q": floats(1)},
            Wrong("Y", "value", 0.0),
            "A fully-masked query row (no key attended, including",
        ),
        ("Attention", {"Q": floats(1)}, Wrong("Y", "nan-mask", "nan"), ""),  # "produces a zero output row, not NaN"
        ("Attention", {"Q": floats(1)}, Wrong("Y", "value", 0.5), ""),
        (
            "ReduceMax",
            {"data": Tensor("float32", (0,), b"")},
            Wrong("reduced", "nan-mask", "-inf"),
            "Reduction over an em",
        ),
        ("ReduceMax", {"data": floats(-np.inf)}, Wrong("reduced", "nan-mask", "-inf"), ""),
    ],
)
def test_what_is_said_of_what_is_wrong_is_quoted(operator, inputs, wrong, told):
    """Its formula, shape or order of ties, and when 0, NaN or infinity results; nothing that is said of another case."""
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    found = library.documented(Instance("onnx", operator, {}, operands, ("y",), {"opset": {"": 25}}), [], wrong)
    assert [x.text[: len(told)] for x in found] == [told] * bool(told), found


def test_what_is_said_of_a_shape_in_general_does_not_stand_beside_what_decides():
    call = Instance("onnx", "RNN", {"layout": 1}, (Operand("X", floats(1)),), ("", "Y_h"), {"opset": {"": 22}})
    [found] = library.documented(call, ["layout"], Wrong("Y_h", "shape", (2, 1)))
    assert found.exact and "Y_h.shape = [batch_size" in found.text
    [found] = library.documented(msgspec.structs.replace(call, params={}), [], Wrong("Y_h", "shape", (2, 1)))
    assert "has shape `[num_directions, batch_size" in found.text


def test_the_rule_is_looked_for_in_the_whole_text_by_the_words_of_what_decides():
    """A sentence that has all of them, or their like; no attribute's description that is of something else."""
    told = (("NonMaxSuppression", 11, "a number equal to iou_threshold", ["iou_threshold"], "exactly equal to the threshold"),
            ("Resize", 19, "scales that give no whole size", ["mode"], "`output_width` the target length"),
            ("Resize", 19, "an output that nobody knows", [], ""),
            ("IsNaN", 20, "scales that give no whole size", [], ""))  # fmt: skip
    for operator, opset, says, parameters, wanted in told:
        given = (Operand("X", floats(1)), Operand("iou_threshold", floats(0.5)))
        call = Instance("onnx", operator, {"mode": "linear"}, given, ("Y",), {"opset": {"": opset}})
        found = library.documented(call, parameters, Wrong("Y", "value", 1.0, (says,)))
        assert [wanted in x.text and x.about == "the rule" for x in found] == [True] * bool(wanted), found
    assert rule_on("Weights are shared. The kernel is flipped.", "weights of the kernel") == ""
    plain = "mode=1, float16 inputs, an empty input, an input of rank 3, input B, NaN in an input, output Indices"
    relations = ("scales that give no whole size", "a number equal to iou_threshold", *plain.split(", "))
    assert [quoting.is_rule(x) for x in relations] == [True, True, *[False] * 7]


def test_numbers_beyond_a_type_are_told_with_the_attribute_that_says_what_becomes_of_them():
    below = Operand("input", floats(-1e6, 1.0))
    like = Operand("target_type", Tensor("float8_e4m3fn", (0,), b""))
    call = Instance("onnx", "CastLike", {}, (below, like), ("output",), {"opset": {"": 24}})
    found = library.documented(call, [], Wrong("output", "nan-mask", -448.0))
    assert [(x.about, x.text[:40]) for x in found if not x.types] == [
        (
            "numbers below its range cast to `float8_e4m3fn`",
            "[x] < -FLT_MAX becomes -FLT_MAX.",
        ),  # as Cast's own text says
        ("attribute `saturate`", "The parameter defines how the conversion"),
    ]
    assert quoting.ruled(call, found) == ["numbers below its range", "saturate=1"]
    assert quoting.ruled(msgspec.structs.replace(call, params={"saturate": 1}), found) == ["numbers below its range"]
    within = msgspec.structs.replace(call, inputs=(Operand("input", floats(448.0)), like))
    assert [x for x in library.documented(within, [], Wrong("output", "value", 1.0)) if not x.types] == []
    norm = Instance(
        "onnx", "BatchNormalization", {"training_mode": 1}, (below,), ("Y", "running_mean"), {"opset": {"": 15}}
    )
    assert quoting.ruled(norm, library.documented(norm, [], Wrong("running_mean", "value", 0.1))) == ["momentum=0.9"]


def test_special_values_are_told_by_the_type_that_they_are_cast_to():
    """`[x]` is no sentence on NaN, and what becomes of strings is none where there are none."""
    nan, inf = float("nan"), float("inf")
    for to, more, value, told in (
        (17, {}, nan, "NaN becomes NaN."),
        (17, {}, inf, "Inf becomes FLT_MAX."),
        (17, {"saturate": 0}, inf, "Inf becomes NaN."),
        (19, {"saturate": 0}, inf, "Inf becomes Inf."),
        (24, {}, inf, None),
        (23, {}, nan, "NaN becomes 6."),
        (7, {}, nan, None),
    ):
        found = asked("Cast", {"to": to, **more}, [], value)
        assert [x.text for x in found] == ([told] if told else []), (to, found)
    assert found == [] and asked("Cast", {"to": 23}, [], nan)[0].address.endswith("float4.html")
    text = Operand("input", Tensor.of(np.array(["NaN"], dtype=object)))
    call = Instance("onnx", "Cast", {"to": 1}, (text,), ("y",), {"opset": {"": 25}})
    assert prose("Strings: NaN.\n\n| NaN |", call) == "Strings: NaN."


@pytest.mark.parametrize(
    ("message", "deciding", "told"),
    [
        ("power only applies to float", (), True),
        ("Total length of splits: 7 must match the length of the chosen axis: 5", (), False),
        ("it cannot be", ("int32 inputs",), True),
        ("it cannot be", ("mode='wrap'",), False),
    ],
)
def test_that_a_dtype_is_admitted_is_quoted_where_dtypes_matter(message, deciding, told):
    given = (Operand("X", Tensor.of(np.int32([1]))), Operand("Y", Tensor.of(np.int32([1]))))
    call = Instance("onnx", "Pow", {}, given, ("Z",), {"opset": {"": 15}})
    shown = type("Shown", (), {"deciding": deciding, "told": deciding})
    found = quoting.quotes(call, shown, Outcome(CRASH, "compile", "Error", message))
    assert [x.text for x in found] == [
        "Among the types of T is tensor(int32).",
        "Among the types of T1 is tensor(int32).",
    ] * told


def test_docstrings_are_quoted_by_parameter():
    doc = "Pool.\n\nArgs:\n    input: tensor :math:`(N)`\n    size (int): size of the\n      region\n\n    other: no\n"
    assert argument(doc, "size") == "size of the\nregion" and argument(doc, "missing") == ""
    assert quoted_of(argument(doc, "input")) == "tensor (N)"


def test_a_sentence_is_not_quoted_twice():
    """What is said of the very value is a part of what is said of the attribute."""
    data = (Operand("data", Tensor.of(np.float32([5, 6]))),)
    call = Instance("onnx", "ReduceLogSum", {"noop_with_empty_axes": 1}, data, ("reduced",), {"opset": {"": 18}})
    told = ("noop_with_empty_axes=1",)
    shown = type("Shown", (), {"deciding": told, "told": told})
    outcome = wrong(1.6094379425048828, 5.0, "reduced")
    outcome.details["index"] = "[0]"
    found = quoting.quotes(call, shown, outcome)
    assert [x.text.count("returns the Log of input tensor") for x in found] == [1]
