"""What Keras leaves undefined: rules keyed by operator, each with the sentence of a documentation that it rests on.

Keras says of most of its functions that they follow NumPy's; where neither says anything, TensorFlow's documentation of the
operation behind is quoted. A rule that is too wide hides bugs: ties of `top_k` (the lower index comes first), `one_hot` of
an index out of range (zeros) and `saturate_cast` are all *defined*: none is excused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opera.errors import CorpusError
from opera.libraries.keras import codec as keras_values
from opera.oracle import factors
from opera.oracle.undefined import Undefined
from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor, Value

Rule = Callable[[Instance, list[Value]], str | None]


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why the result of an instance is undefined, with the numbers, else None."""
    rule = RULES.get(instance.operator)
    try:
        return rule(instance, expected) if rule else None
    except (CorpusError, IndexError, ValueError, TypeError):
        return None  # a malformed call: nothing can be told, and so nothing is excused


def _array(instance: Instance, place: int) -> np.ndarray[Any, Any] | None:
    """Return the tensor input that comes at a place, None where there is none."""
    if place >= len(instance.inputs):
        return None
    value = instance.inputs[place].value
    return keras_values.to_array(value) if isinstance(value, Tensor | RandomTensor) else None


def _argument(instance: Instance, name: str, place: int) -> np.ndarray[Any, Any] | None:
    """Return an argument by its name, be it a tensor or a plain number."""
    for operand in instance.inputs:
        if operand.name == name:
            return _array(instance, instance.inputs.index(operand))
    plain = instance.params.get(name)
    return None if plain is None else np.asarray(plain)


def _integer_division(instance: Instance, expected: list[Value]) -> str | None:
    """TensorFlow, tf.math.floordiv and floormod: integer division by zero is an error on CPUs and has no stated result."""
    divisor = _argument(instance, "x2", 1)
    if divisor is None or divisor.dtype.kind not in "iu":
        return None
    zeros = divisor == 0
    why = f"an integer is divided by zero; {int(zeros.sum())} of {divisor.size} divisors are zero"
    return Undefined(why, zeros) if zeros.any() else None


def _shift(instance: Instance, expected: list[Value]) -> str | None:
    """tf.bitwise.left_shift: "If y is negative, or greater than or equal to the width of x in bits the result is
    implementation defined." """
    shifted, amount = _argument(instance, "x", 0), _argument(instance, "y", 1)
    if shifted is None or amount is None:
        shifted, amount = _array(instance, 0), _array(instance, 1)
    if shifted is None or amount is None or shifted.dtype.kind not in "iu":
        return None
    width = 8 * shifted.dtype.itemsize
    bad = (amount < 0) | (amount >= width)
    why = f"shifts of a {shifted.dtype} by a negative amount or by its width are undefined; {int(bad.sum())} such"
    return Undefined(why, bad) if bad.any() else None


def _cast(instance: Instance, expected: list[Value]) -> str | None:
    """NumPy, ndarray.astype: casting NaN, infinities or values out of range to an integer type is undefined behaviour of C."""
    source = _array(instance, 0)
    target = str(instance.params.get("dtype", ""))
    if source is None or source.dtype.kind != "f" or not target.startswith(("int", "uint")):
        return None
    limits = np.iinfo(target)
    wide = source.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = ~np.isfinite(wide) | (np.trunc(wide) < limits.min) | (np.trunc(wide) > limits.max)
    why = f"floats that are no {target} are cast to it; {int(bad.sum())} of {source.size} values"
    return Undefined(why, bad) if bad.any() else None


def _sign(what: str, check: factors.Check, *where: bool) -> Rule:
    """NumPy, linalg.svd and eigh: the vectors are determined up to a factor of modulus 1, and for equal values not even so."""

    def rule(instance: Instance, expected: list[Value]) -> str | None:
        holds = factors.of(check, _argument(instance, "x", 0))
        return (
            Undefined(f"the {what} are determined up to their signs", *where, holds=holds)
            if len(expected) > 1
            else None
        )

    return rule


def _partition(instance: Instance, expected: list[Value]) -> str | None:
    """NumPy, argpartition: "The order of all elements in the partitions is undefined." """
    return "the order of the elements within a partition is undefined"


def _top_k(instance: Instance, expected: list[Value]) -> str | None:
    """keras.ops.top_k, `sorted`: "whether to sort the output in descending order": where not, in any."""
    [values, *_] = expected
    some = isinstance(values, Tensor) and values.shape[-1:] > (1,)
    return (
        "top_k with sorted=False does not order its results"
        if instance.params.get("sorted") is False and some
        else None
    )


def _duplicates(instance: Instance, expected: list[Value]) -> str | None:
    """tf.tensor_scatter_nd_update: "If indices contains duplicates, the order in which updates are applied is
    nondeterministic." """
    indices = _argument(instance, "indices", 1)
    if indices is None or indices.ndim < 1:
        return None
    rows = indices.reshape(-1, indices.shape[-1])
    repeated = len(rows) - len(np.unique(rows, axis=0))
    return f"the order of updates at the same place is undefined; {repeated} repeat one" if repeated else None


RULES: Mapping[str, Rule] = {
    **{f"keras.ops.{name}": _integer_division for name in ("floor_divide", "fmod", "mod")},
    **{
        f"keras.ops.{name}": _shift
        for name in ("bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift")
    },
    "keras.ops.cast": _cast,
    "keras.ops.top_k": _top_k,
    "keras.ops.svd": _sign("singular vectors", factors.svd, True, False, True),
    "keras.ops.eig": _sign("eigenvectors", factors.eigen),
    "keras.ops.eigh": _sign("eigenvectors", factors.of_lower, False, True),
    "keras.ops.qr": _sign("factors", factors.qr),
    "keras.ops.argpartition": _partition,
    "keras.ops.scatter_update": _duplicates,
}
"""Operator → rule."""
