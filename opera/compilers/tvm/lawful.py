"""Whether an imported Relax module is one that TVM's own rules let through, whatever its kernels do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from opera.compilers.shared.packing import Refusal, Unlawful
from opera.compilers.tvm import interpreter

LEFT = re.compile(r"cannot emit this Relax operator directly.*?Offending call:\s+R\.([\w.]+)\(", re.DOTALL)
"""What is said of a call that reaches code generation as it was imported."""


def check(module: Any) -> None:
    """Raise Unlawful where the importer wrote what no kernel can answer for; else a Refusal.

    - A number that an operator of integers is given is none: an infinity, or a fraction; or what it computes of constants
      alone, such as a parameter, is none that their dtype holds. One of an unsigned dtype has no negative, whatever it is.
    - An operator that is lowered else is not lowered as it stands: its layout, or a shape that is not known, is none of
      those that its legalisation takes.
    """
    for call in _calls(module):
        if told := _no_integer(call) or _out_of_range(call):
            raise Unlawful(told)
    if told := _left(module):
        raise Unlawful(told)
    raise Refusal("no rule is broken that opera knows")


def _calls(module: Any) -> Iterator[Any]:
    """Yield the calls of operators in all functions."""
    from tvm import relax

    for function in module.functions.values():
        found: list[Any] = []
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, found.append)
        yield from (x for x in found if isinstance(x, relax.Call) and hasattr(x.op, "name"))


def _no_integer(call: Any) -> str:
    """Say which number is no integer though all tensors of a call are of integers; else nothing."""
    tensors = [dtype for x in call.args if (dtype := _dtype(x))]
    if not tensors or not all(re.match(r"u?int", dtype) for dtype in (*tensors, _dtype(call))):
        return ""
    for argument in call.args:
        number = _number(argument)
        if isinstance(number, float) and (not math.isfinite(number) or not number.is_integer()):
            return f"{call.op.name} of {tensors[0]} is given {number}, which no {tensors[0]} is"
    return ""


def _out_of_range(call: Any) -> str:
    """Say which constants an operator is given whose result is none that their dtype holds; else nothing."""
    given: list[Any] = [getattr(x, "value", getattr(x, "data", None)) for x in call.args]
    if not given or not all(hasattr(x, "numpy") for x in given):
        return ""
    numbers = [x.numpy() for x in given]
    name, unsigned = call.op.name.removeprefix("relax."), numbers[0].dtype.kind == "u"
    if name == "negative" and unsigned:  # which it makes by -1, though it be of 0
        return f"{call.op.name} is called of {numbers[0].dtype}, which holds no negative number"
    if not interpreter.overflows(name, numbers, call.attrs):
        return ""
    told = " and ".join(str(x) if x.ndim == 0 else f"a constant of shape {x.shape}" for x in numbers)
    return f"{call.op.name} of {told} leaves the numbers of {numbers[0].dtype}"


def _number(node: Any) -> Any:
    """Return the number that an argument is: a FloatImm, or what holds one; None for a tensor."""
    value = getattr(node, "value", None)
    return getattr(value, "value", value)


def _dtype(node: Any) -> str:
    """Return the dtype that Relax states for a tensor, empty for what is none."""
    stated = getattr(node, "ty", None) or getattr(node, "struct_info_", None)
    return str(getattr(stated, "dtype", "") or "") if hasattr(stated, "ndim") else ""


def _left(module: Any) -> str:
    """Say which operator is not lowered as the importer wrote it, though TVM lowers it else; empty where none is left."""
    import tvm

    from opera.compilers.recipes import tvm as recipe

    try:
        recipe.compile_module((module,))
    except Exception as error:
        found = LEFT.search(str(error))
        if found and tvm.ir.Op.get(f"relax.{found[1]}").has_attr("FLegalize"):
            return f"relax.{found[1]} is not lowered in the form that was imported{_form(module, found[1])}"
    return ""


def _form(module: Any, name: str) -> str:
    """Return the layouts that calls of an operator have, in brackets."""
    calls = [call for call in _calls(module) if call.op.name == f"relax.{name}"]
    told = {
        f"{key}={getattr(call.attrs, key)!s}"
        for call in calls
        for key in ("data_layout", "kernel_layout", "layout")
        if hasattr(call.attrs, key)
    }
    return f" ({', '.join(sorted(told))})" if told else ""
