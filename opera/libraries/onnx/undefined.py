"""What ONNX leaves undefined: rules keyed by operator, which rest on what the operator documentation says or omits.

A rule that is too wide hides bugs: ties of TopK (the lower index comes first), ties of ArgMax since opset 12, Mod of
floats by zero, BitShift by the width since opset 28, Clip with min > max since opset 13 and casts to 8-bit floats are
all *defined*: none is excused here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
import numpy as np

from opera.errors import InvalidTest
from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx import wrap as onnx_model
from opera.oracle.undefined import Undefined, twice
from opera.programs.program import Instance
from opera.programs.values import Tensor, Value

Array = np.ndarray[Any, Any]

NEVER_ROUNDED = """
Abs And ArgMax ArgMin BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil
CenterCropPad Clip Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace Equal Expand
EyeLike Flatten Floor Gather GatherElements GatherND GlobalMaxPool Greater GreaterOrEqual Hardmax Identity If
IsInf IsNaN Less LessOrEqual Loop Max MaxPool MaxUnpool Min Neg NonZero Not OneHot Optional OptionalGetElement
OptionalHasElement Or Pad Relu ReduceMax ReduceMin Reshape ReverseSequence Round Scan Scatter ScatterElements
ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength Shape Sign
Size Slice SpaceToDepth Split SplitToSequence Squeeze Tile TopK Transpose Trilu Unique Unsqueeze Where Xor
"""
EXACT = frozenset(NEVER_ROUNDED.split())
"""Operators that select, move, compare or convert their inputs and never round a sum: no correct implementation can
differ on an exact input, so that no result of theirs is excused as ill-conditioned."""


class Call(msgspec.Struct, frozen=True):
    """An instance as the rules see it."""

    instance: Instance
    expected: list[Value]

    def tensor(self, name: str, position: int) -> Tensor | None:
        """Return an input by its formal name, else (in an expanded body, whose names are its own) by position."""
        operands = self.instance.inputs
        found = [x.value for x in operands if x.name == name]
        if not found and "body" in self.instance.context and position < len(operands):
            found = [operands[position].value]
        value = onnx_values.materialise(found[0]) if found else None
        return value if isinstance(value, Tensor) else None

    def param(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.instance.params.get(name, default)
        return value if isinstance(value, int) else default

    @property
    def opset(self) -> int:
        return onnx_model.opset(self.instance).get(onnx_model.split(self.instance.operator)[0], 1)


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why the result of an instance is undefined, with the numbers, else None."""
    rule = RULES.get(instance.operator)
    try:
        return rule(Call(instance, expected)) if rule else None
    except (InvalidTest, IndexError, ValueError, TypeError):
        return None  # a malformed call: nothing can be told, and so nothing is excused


def _shift(call: Call) -> str | None:
    """BitShift-28 says what a shift by a negative amount or by the width gives; before, no word."""
    amounts = call.tensor("Y", 1)
    if amounts is None or "int" not in amounts.dtype or call.opset >= 28:
        return None
    width = 8 * np.dtype(amounts.dtype).itemsize
    shifts = amounts.array()
    bad = (shifts < 0) | (shifts >= width)
    if not bad.any():
        return None
    first = f"a shift of {width} bits by {shifts[bad][0]}; {int(bad.sum())} such"
    return Undefined(f"BitShift before opset 28 gives no meaning to {first}", bad)


def _integer_division(call: Call) -> str | None:
    dividend, divisor = call.tensor("A", 0), call.tensor("B", 1)
    if divisor is None or dividend is None or "int" not in divisor.dtype:
        return None
    name, divisors = call.instance.operator, divisor.array()
    zeros, over = divisors == 0, np.zeros((), dtype=bool)
    if name == "Div" and divisor.dtype.startswith("int"):
        over = (dividend.array() == -(1 << (_bits(divisor.dtype) - 1))) & (divisors == -1)
    if zeros.any():
        count = f"{int(zeros.sum())} of {divisors.size} divisors are zero"
        return Undefined(f"{name} of {divisor.dtype} by zero has no result; {count}", zeros | over)
    if over.any():
        return Undefined(f"Div of the least {divisor.dtype} by -1 overflows; {int(over.sum())} such", over)
    return None


def _integer_power(call: Call) -> str | None:
    base, exponent = call.tensor("X", 0), call.tensor("Y", 1)
    if base is None or exponent is None or "int" not in base.dtype:
        return None
    negative = exponent.numbers() < 0
    if not negative.any():
        return None
    count = f"{int(negative.sum())} such exponents"
    return Undefined(f"Pow of {base.dtype} to a negative power is no {base.dtype}; {count}", negative)


def _cast(call: Call) -> str | None:
    """Cast-13: float to "fixed point: undefined if OOR"; Cast-24: negative to float8e8m0 "gives undefined behavior", -0 too.

    What NaN becomes in a type without one is said in two ways: https://onnx.ai/onnx/technical/float4.html and float6.html.
    """
    source = call.tensor("input", 0)
    target = onnx_values.DTYPES.get(call.param("to", 0), "")
    if call.instance.operator == "CastLike":
        like = call.tensor("target_type", 1)
        target = like.dtype if like is not None else ""
    if source is None or source.dtype == "string":
        return None
    if target == "float8_e8m0fnu":
        numbers = source.numbers()
        bad, why = np.signbit(numbers) & ~np.isnan(numbers), f"casting negative values to {target} is undefined"
    elif target == "float4_e2m1fn":
        said = "ONNX's page on it says 6, its page on float6 calls it unspecified"
        bad, why = np.isnan(source.numbers().astype(np.float64)), f"casting NaN to {target}, which has none: {said}"
    elif "int" in target and "float" in source.dtype:
        return _out_of_range(source.numbers(), source.dtype, target)
    else:
        return None
    return Undefined(f"{why}; {int(bad.sum())} such", bad) if bad.any() else None


def _out_of_range(numbers: Array, source: str, target: str) -> str | None:
    signed, bits = target.startswith("int"), _bits(target)
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    with np.errstate(invalid="ignore"):
        cut = np.trunc(numbers.astype(np.float64))
        bad = ~((cut >= low) & (cut < high))
    if not bad.any():
        return None
    first = numbers[tuple(np.argwhere(bad)[0])]
    count = f"{int(bad.sum())} of {bad.size} elements"
    return Undefined(f"casting {first} from {source} to {target} is out of range, so undefined; {count}", bad)


def _quantize(call: Call) -> str | None:
    """QuantizeLinear saturates, which says nothing of NaN; a scale of zero divides by zero."""
    x, scale, zero_point = call.tensor("x", 0), call.tensor("y_scale", 1), call.tensor("y_zero_point", 2)
    if x is None or scale is None:
        return None
    zeros = int((scale.numbers() == 0).sum())
    if zeros:
        return f"QuantizeLinear divides by y_scale, which is zero {zeros} times"
    to_integer = "int" in (zero_point.dtype if zero_point is not None else "uint8")
    if not to_integer or "float" not in x.dtype or not (nans := np.isnan(x.numbers())).any():
        return None
    return Undefined(f"QuantizeLinear of NaN to an integer has no result; {int(nans.sum())} such", nans)


def _align(call: Call) -> str | None:
    """RoiAlign's regions are (x1, y1) to (x2, y2): one that ends before it begins has no size, and no samples."""
    rois = call.tensor("rois", 1)
    if rois is None or len(rois.shape) != 2 or rois.shape[1] != 4:
        return None
    left, top, right, bottom = rois.numbers().T
    turned = int(((right < left) | (bottom < top)).sum())
    return (
        f"RoiAlign of a region that ends before it begins has no result; {turned} of {rois.shape[0]}"
        if turned
        else None
    )


def _arg(call: Call) -> str | None:
    """ArgMax-12 added select_last_index and with it a rule for ties; before, none is given."""
    data = call.tensor("data", 0)
    if data is None or not data.shape:
        return None
    axis, numbers = call.param("axis", 0) % len(data.shape), data.numbers()
    if numbers.shape[axis] == 0:
        return f"{call.instance.operator} over an axis of no elements has no result"
    nans = int(np.isnan(numbers).sum()) if numbers.dtype.kind == "f" else 0
    if nans:
        return f"{call.instance.operator} says nothing of the order of NaN; {nans} of {numbers.size} elements"
    if call.opset >= 12:
        return None
    best = numbers.max(axis, keepdims=True) if call.instance.operator == "ArgMax" else numbers.min(axis, keepdims=True)
    ties = int(((numbers == best).sum(axis=axis) > 1).sum())
    return (
        f"{call.instance.operator} before opset 12 does not say which of equal elements wins; {ties} ties"
        if ties
        else None
    )


def _top_k(call: Call) -> str | None:
    """TopK-11: "If sorted is 0, order of returned Values and Indices are undefined"."""
    data, k = call.tensor("X", 0), call.tensor("K", 1)
    if data is None:
        return None
    count = int(k.array().ravel()[0]) if k is not None and k.array().size else call.param("k", 2)
    if call.param("sorted", 1) == 0 and count > 1:
        return f"TopK with sorted=0 leaves the order of its {count} results undefined"
    nans = int(np.isnan(data.numbers()).sum()) if "float" in data.dtype else 0
    return f"TopK says nothing of the order of NaN; {nans} of {data.numbers().size} elements" if nans else None


EMPTY_SET = re.compile(r"empty set of values yields ([^.]*)")


@cache
def _over_nothing(op_type: str, opset: int) -> str:
    """Return what the operator's documentation says that a reduction over nothing yields, or nothing."""
    from onnx import defs

    found = EMPTY_SET.search(defs.get_schema(op_type, opset).doc or "")
    return " ".join(found[1].split()) if found else ""


def _reduce(call: Call) -> str | None:
    data, axes = call.tensor("data", 0), call.tensor("axes", 1)
    if data is None or not data.shape:
        return None
    stated = axes.array().ravel() if axes is not None else call.instance.params.get("axes")
    chosen = [] if stated is None else [int(axis) % len(data.shape) for axis in stated]
    if not chosen and call.param("noop_with_empty_axes", 0):
        return None
    sizes = [data.shape[axis] for axis in chosen or range(len(data.shape))]
    kept = math.prod([size for axis, size in enumerate(data.shape) if chosen and axis not in chosen])
    if math.prod(sizes) != 0 or kept == 0:
        return None
    name = call.instance.operator
    said = _over_nothing(name, call.opset)
    if said.startswith("undefined") or (said.endswith("undefined otherwise") and "float" not in data.dtype):
        return f"{name} over nothing is undefined: data {list(data.shape)}, axes {chosen or 'all'}"
    return None if said else f"{name} at opset {call.opset} does not say what a reduction over nothing yields"


def _pool_over_nothing(call: Call) -> str | None:
    data = call.tensor("X", 0)
    if data is None:
        return None
    pooled, kept = math.prod(data.shape[2:]), math.prod(data.shape[:2])
    if pooled or not kept:
        return None
    return f"{call.instance.operator} over no elements has no result: X {list(data.shape)}"


def _auto_pad(call: Call) -> str | None:
    """SAME_UPPER and SAME_LOWER "mean pad the input"; where a stride is larger than the window the sizes that they demand may
    need less than no padding, of which no operator speaks (`pads` is "greater than or equal to 0")."""
    if call.instance.params.get("auto_pad") not in ("SAME_UPPER", "SAME_LOWER"):
        return None
    data, weight = call.tensor("X", 0) or call.tensor("x", 0), call.tensor("W", 1) or call.tensor("w", 1)
    window = call.instance.params.get("kernel_shape") or (weight.shape[2:] if weight is not None else ())
    sizes = data.shape[2:] if data is not None else ()
    strides, dilations = (call.instance.params.get(x) or [1] * len(sizes) for x in ("strides", "dilations"))
    for size, length, stride, apart in zip(sizes, window, strides, dilations, strict=True):
        if size and (-(-size // stride) - 1) * stride + (length - 1) * apart + 1 < size:
            found = f"size {size}, window {length}, stride {stride}"
            return (
                f"{call.instance.operator} with auto_pad says nothing of sizes that need less than no padding: {found}"
            )
    return None


def _scatter(call: Call) -> str | None:
    """ScatterElements-16, ScatterND-16: with reduction "none", "indices should not have duplicate entries"."""
    data, indices = call.tensor("data", 0), call.tensor("indices", 1)
    if data is None or indices is None or call.instance.params.get("reduction", "none") not in ("none", b"none"):
        return None
    array = indices.array().astype(np.int64)
    if call.instance.operator == "ScatterND":
        rows = array.reshape(-1, array.shape[-1]) % np.array(data.shape[: array.shape[-1]], dtype=np.int64)
    else:
        axis = call.param("axis", 0) % len(data.shape)
        places = np.indices(array.shape)
        places[axis] = array % data.shape[axis]
        rows = places.reshape(array.ndim, -1).T
    return twice(call.instance.operator, rows, np.zeros(data.shape, dtype=bool))


def _clip(call: Call) -> str | None:
    """Clip-13: "When 'min' is greater than 'max', ... sets all ... to the value of 'max'"; before, no word."""
    low, high = call.tensor("min", 1), call.tensor("max", 2)
    if call.opset >= 13 or low is None or high is None or low.shape or high.shape:
        return None
    least, most = low.numbers(), high.numbers()
    return f"Clip before opset 13 does not define min {least} > max {most}" if least > most else None


def _range(call: Call) -> str | None:
    delta = call.tensor("delta", 2)
    return "Range with a delta of 0 has no result" if delta is not None and not delta.numbers().all() else None


def _uniform(call: Call) -> str | None:
    """RandomUniform-22: `low` is the "Lower boundary of the output values", `high` the upper one: below it lies none."""
    low, high = (call.instance.params.get(name, default) for name, default in (("low", 0.0), ("high", 1.0)))
    reversed_ = isinstance(low, int | float) and isinstance(high, int | float) and low > high
    return f"{call.instance.operator} between {low} and {high} has no numbers to draw" if reversed_ else None


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


Rule = Callable[[Call], str | None]
RULES: Mapping[str, Rule] = {
    "ArgMax": _arg,
    "ArgMin": _arg,
    **dict.fromkeys(("AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"), _auto_pad),
    "BitShift": _shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Div": _integer_division,
    "GlobalAveragePool": _pool_over_nothing,
    "GlobalLpPool": _pool_over_nothing,
    "GlobalMaxPool": _pool_over_nothing,
    "Mod": _integer_division,
    "Pow": _integer_power,
    "QuantizeLinear": _quantize,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform,
    "Range": _range,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), _reduce),
    **dict.fromkeys(("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"), _reduce),
    "RoiAlign": _align,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "TopK": _top_k,
}
