"""Python source of values, for generated scripts: numbers, `ascii()` strings and base64, and nothing else.

Whatever a value holds ends up inside a literal, so that a value can never become code. Scripts that use arrays need
`import numpy as np`, low-precision ones `import ml_dtypes`, and large ones the function `unpack` that the templates
define.
"""

from __future__ import annotations

import base64
import cmath
import math
import textwrap
import zlib
from typing import Any

import numpy as np

from opera.programs.values import CONTAINERS, Optional, RandomTensor, Sequence, Tensor, Value

WIDTH = 110
"""Columns that a line may take before it is broken."""
MAX_SPELLED, MAX_LENGTH = 96, 1200
"""A tensor of more elements than this, whose source would have more characters, is shown as base64 of its compressed bytes."""
FEW = 8
"""A tensor of more elements is spelled by a rule where there is one: `np.arange(16)`."""
NATIVE = {name for name, container in CONTAINERS.items() if name == container}


def literal(value: Value) -> str:
    """Return the literal of None, a bool, number, string or bytes, or of a list or tuple of these."""
    match value:
        case None | bool() | int():
            return repr(value)
        case complex() if cmath.isfinite(value) and _loses_a_sign(value):
            return f"complex({value.real!r}, {value.imag!r})"
        case float() | complex():
            return repr(value) if cmath.isfinite(value) else f"{type(value).__name__}({str(value)!r})"
        case str() | bytes():
            return ascii(value)
        case list():
            return fold("[", [literal(item) for item in value], "]")
        case tuple():
            items = [literal(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else fold("(", items, ")")
    raise TypeError(f"a {type(value).__name__} has no literal")


def _loses_a_sign(value: complex) -> bool:
    """Whether Python reads the `repr` of a complex number as one with another sign of a zero: `-1j` is `-(0+1j)`."""
    signs = [math.copysign(1, x) < 0 for x in (value.real, value.imag)]
    return (not value.real and any(signs)) or (not value.imag and signs[1])


def fold(head: str, parts: list[str], tail: str) -> str:
    """Join source parts by commas, on one line where they fit, else one a line (short ones filled)."""
    line = head + ", ".join(parts) + tail
    if len(line) <= WIDTH and "\n" not in line:
        return line
    if all(len(part) <= 24 and "\n" not in part for part in parts):
        rows: list[str] = []
        row = ""
        for part in parts:
            if row and len(row) + len(part) > WIDTH - 12:
                rows, row = [*rows, row.rstrip()], ""
            row += part + ", "
        inner = "\n".join([*rows, row.rstrip()])
    else:
        inner = "\n".join(part + "," for part in parts)
    return f"{head}\n{textwrap.indent(inner, '    ')}\n{tail}"


def comment(text: str, limit: int = 300) -> str:
    """Return text that is safe in a one-line comment: printable ASCII, no line ends."""
    flat = " ".join(str(text).split()).replace("…", "...")
    return "".join(c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in flat)[:limit]


def source(value: Value) -> str:
    """Return an expression for a value: arrays for tensors, a list for a sequence, None for an empty optional."""
    match value:
        case Tensor():
            return _tensor(value)
        case RandomTensor():
            return _tensor(value.tensor())
        case Sequence(items=items):
            return fold("[", [source(item) for item in items], "]")
        case Optional(value=inner):
            return "None" if inner is None else source(inner)
    return literal(value)


def nested(tensor: Tensor) -> str:
    """Return the numbers of a tensor as nested lists (`[[1.0, np.inf]]`; `1.0` of a 0-d one); nothing where it has none, or
    too many, or where rounding them to its dtype does not give the same bits."""
    numbers = tensor.numbers()
    if not 0 < numbers.size <= MAX_SPELLED:
        return ""
    spelled = [_shortest(item) for item in numbers.ravel()]
    if np.array(spelled, dtype=numbers.dtype).tobytes() != numbers.tobytes():
        return ""
    return _nested(np.array([_number(x) for x in spelled], dtype=object).reshape(tensor.shape).tolist())


def needs(text: str) -> list[str]:
    """Return what `source` took for granted in a script: any of `ml_dtypes`, `unpack`."""
    return [name for name, sign in (("ml_dtypes", "ml_dtypes."), ("unpack", "unpack(")) if sign in text]


def _tensor(tensor: Tensor) -> str:
    if tensor.dtype == "string":
        texts = [item.decode() if _is_text(item) else item for item in tensor.array().ravel().tolist()]
        return fold("np.array(", [literal(texts), "dtype=object"], f").reshape({literal(list(tensor.shape))})")
    container = CONTAINERS[tensor.dtype]
    if tensor.dtype not in NATIVE and (text := _numbered(tensor)):
        return text
    text = _spelled(tensor, container) or _packed(tensor, container)
    if tensor.dtype in NATIVE:
        return text
    return f"{text}.{'astype' if 'int' in tensor.dtype else 'view'}(ml_dtypes.{tensor.dtype})"


def _numbered(tensor: Tensor) -> str:
    """Return `np.array([...], dtype=ml_dtypes.bfloat16)`, or nothing where that is long, or not bit for bit the same."""
    import ml_dtypes

    dtype, numbers = getattr(ml_dtypes, tensor.dtype), tensor.numbers()
    if numbers.dtype.kind not in "fiu" or numbers.size > MAX_SPELLED:
        return ""
    spelled = [_shortest(item) for item in numbers.ravel()]
    with np.errstate(all="ignore"):
        if np.array(spelled, dtype=dtype).tobytes() != tensor.data:
            return ""
    texts = [_number(item) for item in spelled]
    if not texts:
        return f"np.zeros({literal(list(tensor.shape))}, dtype=ml_dtypes.{tensor.dtype})"
    nested = np.array(texts, dtype=object).reshape(tensor.shape).tolist()
    line = f"np.array({_nested(nested)}, dtype=ml_dtypes.{tensor.dtype})"
    if len(line) <= WIDTH - 20:
        return line
    flat = fold("np.array(", [fold("[", texts, "]"), f"dtype=ml_dtypes.{tensor.dtype}"], ")")
    return flat if len(tensor.shape) == 1 else f"{flat}.reshape({literal(list(tensor.shape))})"


def _is_text(item: bytes) -> bool:
    try:
        item.decode()
    except UnicodeDecodeError:
        return False
    return True


def _spelled(tensor: Tensor, container: str) -> str:
    """Return `np.array([...])`, or nothing where it would be long or not bit for bit the same."""
    array = tensor.array()
    numpy_type = "np.bool_" if container == "bool" else f"np.{container}"
    if array.size == 0:
        return f"np.zeros({literal(list(tensor.shape))}, dtype={numpy_type})"
    if array.size > FEW and (regular := _regular(array, container)):
        return regular
    if array.size > MAX_LENGTH:
        return ""
    numbers = [_shortest(item) for item in array.ravel()]
    with np.errstate(over="ignore"):
        if np.array(numbers, dtype=container).tobytes() != array.tobytes():
            return ""
    texts = [_number(item) for item in numbers]
    nested = np.array(texts, dtype=object).reshape(array.shape).tolist()
    line = f"np.array({_nested(nested)}, dtype={numpy_type})"
    if len(line) <= WIDTH - 20:
        return line
    if array.size > MAX_SPELLED and sum(map(len, texts)) + 2 * len(texts) > MAX_LENGTH:
        return ""
    flat = fold("np.array(", [fold("[", texts, "]"), f"dtype={numpy_type}"], ")")
    return flat if array.ndim == 1 else f"{flat}.reshape({literal(list(tensor.shape))})"


def _regular(array: Any, container: str) -> str:
    """Return the source of an array of one value, or of integers with one step between them; nothing for any other."""
    numpy_type = "np.bool_" if container == "bool" else f"np.{container}"
    flat, shape = array.ravel(), literal(list(array.shape))
    first = _shortest(flat[0])
    if (full := np.full(array.shape, first, dtype=container)).tobytes() == array.tobytes():
        return f"np.full({shape}, {_number(first)}, dtype={numpy_type})" if full.size else ""
    if container == "bool" or array.dtype.kind not in "iuf" or not np.isfinite(flat).all():
        return ""
    start, step = float(flat[0]), float(flat[1]) - float(flat[0])
    if not (start.is_integer() and step.is_integer() and step) or abs(start) + abs(step) * flat.size > 2**24:
        return ""
    begin, by = int(start), int(step)
    until = begin + by * flat.size
    if np.arange(begin, until, by, dtype=container).tobytes() != array.tobytes():
        return ""
    numbers = literal(until) if (begin, by) == (0, 1) else f"{begin}, {until}" + (f", {by}" if by != 1 else "")
    made = f"np.arange({numbers}, dtype={numpy_type})"
    return made if array.ndim == 1 else f"{made}.reshape({shape})"


def _shortest(item: Any) -> Any:
    """float16 and float32 are spelled with as few digits as tell them apart; no NaN keeps its payload."""
    if item.dtype.kind == "c":
        return complex(repr(item.item()))
    return float(str(item)) if item.dtype.kind == "f" else item.item()


def _number(item: Any) -> str:
    if isinstance(item, float) and not np.isfinite(item):
        return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[str(item)]
    return literal(item)


def _nested(items: Any) -> str:
    return f"[{', '.join(map(_nested, items))}]" if isinstance(items, list) else str(items)


def _packed(tensor: Tensor, container: str) -> str:
    text = base64.b64encode(zlib.compress(tensor.data, 9)).decode("ascii")
    lines = "\n".join(f'"{part}"' for part in textwrap.wrap(text, WIDTH - 10))
    dtype = np.dtype(container).newbyteorder("<").str
    return f"unpack(\n{textwrap.indent(lines, '    ')},\n    {dtype!r}, {literal(list(tensor.shape))},\n)"
