"""Values of one parameter: the forms that its constraints allow, and a value of a form."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from opera.programs.values import CONTAINERS, Named, Tensor, Value
from opera.sources.docter.constraints import MAX_NDIM, Parameter
from opera.sources.docter.terms import Unbound, Values, inside, tensor_dtypes

MAX_DIM = 20
"""Largest size of a dimension that is generated (DocTer's MAX_DIM)."""
MAX_SIZE = 1 << 12
"""Elements of a generated tensor: DocTer has no limit; instances are kept small here."""
SIZES = {1: 0.1, 2: 0.2, 3: 0.2, 4: 0.18, 5: 0.08, 6: 0.08, 8: 0.08, 12: 0.03, 16: 0.03, MAX_DIM: 0.02}
DTYPE_WEIGHTS = {
    "float32": 0.55, "float64": 0.09, "int64": 0.09, "int32": 0.06, "bool": 0.05, "float16": 0.04, "bfloat16": 0.04,
    "uint8": 0.02, "int8": 0.01, "int16": 0.01, "complex64": 0.03, "complex128": 0.01,
}  # fmt: skip
"""What is tried where nothing is said of a dtype."""
NDIM_WEIGHTS = {0: 0.04, 1: 0.22, 2: 0.3, 3: 0.2, 4: 0.18, 5: 0.06}
RELATIONS = {"same": 0.45, "free": 0.12, "square": 0.16, "chain": 0.14, "batch": 0.08, "broadcast": 0.05}
"""How tensors whose shapes nobody states relate to each other."""
NUMBERS = {"small": 0.5, "zero or one": 0.25, "signed": 0.25}
SIGNS = {"positive": 0.7, "zero": 0.15, "negative": 0.15}
WHOLE = {1: 4, 2: 3, 3: 2, 4: 1, 5: 1, 8: 0.5}
EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31))
ITEMS = {1: 0.25, 2: 0.35, 3: 0.2, 4: 0.1, 5: 0.1}
STRINGS = ("", "a", "mean", "same", "valid")


class Unsatisfied(Exception):
    """The constraints of a parameter cannot be satisfied, given the other values; the text says why."""


class Scene:
    """What a value is made from: chance, the values there are, and what was guessed for the whole input."""

    def __init__(
        self,
        rng: random.Random,
        values: Mapping[str, Value],
        variables: dict[str, int],
        guess: Callable[[str, dict[str, float]], str],
    ) -> None:
        self.rng, self.values, self.guess = rng, values, guess
        self.scope = Values(values, variables, lambda: size(rng))


def forms(parameter: Parameter, required: bool) -> dict[str, float]:
    """Return the forms that a parameter may take, with prior weights."""
    names = {x.name for x in parameter.dtypes}
    scalars = names - {"dtype", "tensorshape", ""}
    found: dict[str, float] = {}
    if parameter.enum:
        found["enum"] = 1.0
    if "dtype" in names:
        found["dtype"] = 1.0
    if parameter.tensors:
        found["tensor"] = 1.0
    for structure in parameter.structures:
        found[structure] = 1.0
    if "tensorshape" in names:
        found["tuple"] = 1.0
    zero = any(x.sign == "=" and getattr(x.term, "value", None) == 0 for x in parameter.ndims)
    plain = not (parameter.structures or parameter.tensors or parameter.enum)
    follows = any(x.of for x in parameter.dtypes)
    if scalars and (zero or (plain and not parameter.ndims and not parameter.shapes)):
        found["scalar"] = 1.0
    if plain and (follows or _wide(scalars) or ((parameter.ndims or parameter.shapes) and not zero)):
        found["tensor"] = 1.0 if scalars - {"string"} or follows or not scalars else 0.1
    if not found and (required or parameter.constrained):
        return {"tensor": 1.0, "scalar": 0.5, "tuple": 0.2}
    if not found:
        return {"scalar": 0.5, "tensor": 0.3, "none": 0.2}
    return found


def _wide(names: set[str]) -> bool:
    """Whether dtypes are named that only tensors have (`int64`, not `int`)."""
    return any(name[-1].isdigit() for name in names)


def value(scene: Scene, parameter: Parameter, form: str, odd: bool = False) -> Value:
    """Make a value; `odd`: one at a boundary of what is allowed. Raises Unsatisfied."""
    try:
        match form:
            case "none":
                return None
            case "enum":
                return _enum(scene, parameter)
            case "dtype":
                return Named("dtype", weighted(scene.rng, DTYPE_WEIGHTS))
            case "tensor":
                return tensor(scene, parameter, odd)
            case "scalar":
                return scalar(scene, parameter, odd)
            case "list" | "tuple":
                return _sequence(scene, parameter, form, odd)
            case "dict":
                return {}
    except Unbound:
        raise Unsatisfied(f"{parameter.name} depends on what no value has") from None
    raise Unsatisfied(f"{parameter.name} would be a {form}")


def weighted(rng: random.Random, weights: Mapping[Any, float]) -> Any:
    """Return one of the keys, by weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def size(rng: random.Random) -> int:
    """Return a size of a dimension."""
    return int(weighted(rng, SIZES))


def _enum(scene: Scene, parameter: Parameter) -> Value:
    text = scene.rng.choice(parameter.enum)
    return None if text == "None" else text


def scalar(scene: Scene, parameter: Parameter, odd: bool) -> Value:
    """Make a number, a boolean or a string."""
    names = [x.name for x in parameter.dtypes if not x.of and x.name not in ("dtype", "tensorshape")] or ["numeric"]
    if odd and "bool" not in names:
        found = _extreme(scene, parameter, names)
        if found is not None:
            return found
    kind = scene.rng.choice(names)
    if kind == "bool":
        return scene.rng.random() < 0.5
    if kind == "string":
        return scene.rng.choice(STRINGS)
    if kind in ("numeric", "scalar", "number"):
        kind = scene.rng.choice(["int", "float"])
    return number(scene, parameter, whole="int" in kind)


def number(scene: Scene, parameter: Parameter, whole: bool) -> int | float:
    """Make a number within the ranges, if there are any."""
    rng = scene.rng
    sign = scene.guess(f"sign of {parameter.name}", SIGNS)
    if not parameter.ranges:
        if sign == "zero":
            return 0 if whole else 0.0
        found = (
            weighted(rng, WHOLE)
            if whole
            else round(rng.uniform(0, 3), 3)
            if rng.random() < 0.4
            else round(rng.random(), 3)
        )
        return -found if sign == "negative" else found
    interval = rng.choice(parameter.ranges)
    low, high = scene.scope.bounds(interval)
    if sign == "zero" and low <= 0 <= high and inside(0, low, high, interval):
        return 0 if whole else 0.0
    low, closed = (
        (0.0, (False, interval.closed[1])) if sign == "positive" and low <= 0 < high else (low, interval.closed)
    )
    interval = msgspec.structs.replace(interval, closed=closed)
    for _ in range(8):
        least = low if low > -math.inf else min(high, 0.0) - 8
        most = high if high < math.inf else max(low, 0.0) + rng.choice((2, 4, 8))
        if whole or interval.whole:
            if math.ceil(least) > math.floor(most):
                break
            found = rng.randint(math.ceil(least), math.floor(most))
        else:
            found = round(rng.uniform(least, most), 4)
        if inside(found, low, high, interval):
            return found
    raise Unsatisfied(f"no number of {parameter.name} lies in its range")


def _extreme(scene: Scene, parameter: Parameter, names: list[str]) -> Value:
    """Return a number at the end of a range, or an extreme one that is allowed; None where there is none."""
    whole = not any(x.startswith("float") or x in ("numeric", "scalar", "number") for x in names)
    if "string" in names:
        return ""
    ends = {x for made in parameter.ranges for x in scene.scope.bounds(made) if abs(x) < math.inf}
    allowed = []
    for found in (*sorted(ends), *EXTREMES):
        for made in parameter.ranges:
            if inside(found, *scene.scope.bounds(made), made):
                allowed.append(found)
        if not parameter.ranges:
            allowed.append(found)
    if whole:
        allowed = [x for x in allowed if x == int(x)]
    chosen = scene.rng.choice(allowed) if allowed else None
    return int(chosen) if chosen is not None and whole else chosen


def _sequence(scene: Scene, parameter: Parameter, form: str, odd: bool) -> Value:
    """Make a list or tuple: of tensors where it is one of tensors, else of numbers."""
    made: list[Value] = []
    if parameter.tensors:
        count = 0 if odd and scene.rng.random() < 0.3 else int(weighted(scene.rng, ITEMS))
        made = [tensor(scene, parameter, False) for _ in range(count)]
        return tuple(made) if form == "tuple" else made
    lengths = [x.terms for x in parameter.shapes if len(x.terms) == 1]
    if lengths:
        count = scene.scope.number(scene.rng.choice(lengths)[0])
    else:
        allowed = scene.scope.ndims(parameter)
        if allowed is not None and 1 not in allowed:
            raise Unsatisfied(f"{parameter.name} would be nested")
        count = int(scene.guess(f"length of {parameter.name}", {str(k): v for k, v in ITEMS.items()}))
        count = 0 if odd and scene.rng.random() < 0.3 else count
    if not 0 <= count <= 64:
        raise Unsatisfied(f"{parameter.name} would have {count} items")
    made = [scalar(scene, parameter, odd and i == 0) for i in range(count)]
    return tuple(made) if form == "tuple" else made


def tensor(scene: Scene, parameter: Parameter, odd: bool) -> Tensor:
    """Make a tensor: dtype, number of dimensions, shape, values."""
    dtype = _dtype(scene, parameter)
    shape = _shape(scene, parameter)
    if odd and not parameter.shapes:
        shape = _odd_shape(scene, parameter, shape)
    if math.prod(shape) > MAX_SIZE * 16 or any(x < 0 for x in shape):
        raise Unsatisfied(f"{parameter.name} would have the shape {list(shape)[:8]}")
    return fill(scene, parameter, dtype, shape, odd)


def _dtype(scene: Scene, parameter: Parameter) -> str:
    for dtype in parameter.dtypes:
        others = list(tensors({"": scene.values.get(dtype.of)})) if dtype.of else []
        if others:
            return others[0].dtype
        if dtype.of:
            raise Unbound
    names = tuple(x.name for x in parameter.dtypes if x.name != "dtype")
    allowed = tensor_dtypes(names)
    if not names or not allowed:
        if "string" in names:
            return "string"
        common = scene.guess("dtype", DTYPE_WEIGHTS)
        if scene.rng.random() < 0.9:
            return common
        return str(weighted(scene.rng, DTYPE_WEIGHTS))
    common = scene.guess("dtype", DTYPE_WEIGHTS) if len(allowed) > 1 else ""
    if common in allowed:
        return common
    return scene.guess(f"dtype of {parameter.name}", {x: DTYPE_WEIGHTS.get(x, 0.01) for x in allowed})


def _shape(scene: Scene, parameter: Parameter) -> tuple[int, ...]:
    allowed = scene.scope.ndims(parameter)
    if parameter.shapes:
        stated = scene.rng.choice(parameter.shapes)
        sizes = scene.scope.sizes(stated)
        made: list[int] = []
        for x in sizes:
            made += [size(scene.rng) for _ in range(scene.rng.choice((0, 1, 1, 2)))] if x is None else [x]
        if allowed is None or len(made) in allowed:
            return tuple(made)
    weights = {str(n): NDIM_WEIGHTS.get(n, 0.05) for n in sorted(allowed if allowed is not None else NDIM_WEIGHTS)}
    weights = {n: x for n, x in weights.items() if 0 <= int(n) <= MAX_NDIM}
    if not weights:
        raise Unsatisfied(f"{parameter.name} would have more than {MAX_NDIM} dimensions")
    relation = scene.guess("relation", RELATIONS)
    if relation == "free":
        ndim = int(scene.guess(f"ndim of {parameter.name}", weights))
        return limited([size(scene.rng) for _ in range(ndim)])
    common = scene.guess("ndim", {str(n): x for n, x in NDIM_WEIGHTS.items()})
    ndim = int(common if common in weights else scene.guess(f"ndim of {parameter.name}", weights))
    return limited(_related(scene, relation, ndim))


def _related(scene: Scene, relation: str, ndim: int) -> list[int]:
    """Return sizes that relate to those of the tensors made before: by variables of the input that no document names."""

    def shared(place: object) -> int:
        return scene.scope.variables.setdefault(f" {place}", size(scene.rng))

    earlier = sum(1 for _ in tensors(scene.values))
    match relation:
        case "square":
            return [shared(f"b{i}") for i in range(ndim - 2)] + [shared("n")] * min(ndim, 2)
        case "chain" if ndim >= 2:
            return [shared(f"b{i}") for i in range(ndim - 2)] + [shared(f"m{earlier}"), shared(f"m{earlier + 1}")]
        case "batch" if ndim >= 1:
            return [shared("n")] + [size(scene.rng) for _ in range(ndim - 1)]
        case "broadcast":
            return [shared(ndim - i) if scene.rng.random() < 0.7 else 1 for i in range(ndim)]
    return [shared(ndim - i) for i in range(ndim)]


def limited(sizes: list[int]) -> tuple[int, ...]:
    """Keep a tensor small: halve what is largest until it is; equal sizes stay equal."""
    while math.prod(sizes) > MAX_SIZE:
        most = max(sizes)
        sizes = [max(1, x // 2) if x == most else x for x in sizes]
    return tuple(sizes)


def _odd_shape(scene: Scene, parameter: Parameter, shape: tuple[int, ...]) -> tuple[int, ...]:
    allowed = scene.scope.ndims(parameter)
    choice = scene.rng.random()
    if choice < 0.3 and shape:
        place = scene.rng.randrange(len(shape))
        return (*shape[:place], 0, *shape[place + 1 :])
    if choice < 0.5 and (allowed is None or 0 in allowed):
        return ()
    return tuple(1 for _ in shape) if choice < 0.7 else shape


def fill(scene: Scene, parameter: Parameter, dtype: str, shape: tuple[int, ...], odd: bool = False) -> Tensor:
    """Fill a tensor with numbers of its ranges, or such as most operators take."""
    generator = np.random.Generator(np.random.PCG64(scene.rng.getrandbits(64)))
    if dtype == "string":
        words = [scene.rng.choice(STRINGS) for _ in range(math.prod(shape))]
        return Tensor.of(np.array(words, dtype=object).reshape(shape))
    low, high = -2.0, 2.0
    if parameter.ranges:
        interval = scene.rng.choice(parameter.ranges)
        low, high = scene.scope.bounds(interval)
        low, high = (low if low > -math.inf else min(high - 4, -4.0)), (high if high < math.inf else max(low + 4, 4.0))
        low, high = (low, high) if all(interval.closed) else (low + (high - low) / 64, high - (high - low) / 64)
    elif "int" in dtype:
        kind = scene.guess("numbers", NUMBERS)
        low, high = {"small": (0.0, 3.0), "zero or one": (0.0, 1.0), "signed": (-8.0, 8.0)}[kind]
    if odd and not parameter.ranges and scene.rng.random() < 0.5:
        low = high = 0.0 if scene.rng.random() < 0.5 else 100.0
    return numbers(generator, dtype, shape, low, high)


def numbers(generator: np.random.Generator, dtype: str, shape: tuple[int, ...], low: float, high: float) -> Tensor:
    """Make a tensor of numbers in [low, high]."""
    if dtype == "bool":
        return Tensor.of(generator.random(shape) < 0.5)
    if "int" in dtype:
        least = max(math.ceil(low), 0) if dtype.startswith("u") else math.ceil(low)
        return Tensor.of(generator.integers(least, max(least, math.floor(high)), shape, endpoint=True).astype(dtype))
    made = generator.uniform(low, high, shape)
    if dtype.startswith("complex"):
        return Tensor.of((made + 1j * generator.uniform(low, high, shape)).astype(dtype))
    if dtype == "bfloat16":
        bits = np.asarray(made, "float32").view("uint32") >> 16  # towards zero: it stays within the range
        return Tensor.of(bits.astype("uint16"), "bfloat16")
    return Tensor.of(np.asarray(made).astype(CONTAINERS[dtype]))


def tensors(values: Mapping[str, Value]) -> Iterator[Tensor]:
    """Yield all tensors, those in lists and tuples too."""
    for item in values.values():
        yield from (x for x in (item if isinstance(item, list | tuple) else [item]) if isinstance(x, Tensor))


def reshaped(rng: random.Random, old: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of another shape whose elements are drawn from those of the old one."""
    if shape == old.shape or old.dtype == "string" or math.prod(shape) > MAX_SIZE * 4:
        return old
    pool = old.array().ravel()
    if not pool.size:
        pool = np.zeros(1, pool.dtype)
    generator = np.random.Generator(np.random.PCG64(rng.getrandbits(64)))
    return Tensor.of(pool[generator.integers(0, pool.size, shape)], old.dtype)


def retyped(rng: random.Random, old: Tensor, dtype: str) -> Tensor:
    """Return a tensor of the same shape with numbers of another dtype, in the range of the old ones."""
    if old.dtype == "string":
        return old
    low, high = -2.0, 2.0
    if not old.dtype.startswith("complex") and old.dtype != "bool" and math.prod(old.shape) > 0:
        array = old.numbers()
        low, high = float(array.min()), float(array.max())
    if "int" in dtype and math.ceil(low) > math.floor(high):
        low, high = 0.0, 1.0
    generator = np.random.Generator(np.random.PCG64(rng.getrandbits(64)))
    return numbers(generator, dtype, old.shape, low, high)
