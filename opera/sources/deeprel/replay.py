"""Runs recorded invocations of an API (opera.sources.deeprel.published) under instrumentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import numpy as np

from opera.capture.recorder import Recorder
from opera.errors import CorpusError
from opera.programs.values import CONTAINERS, Named, RandomTensor, Tensor, Value
from opera.sources.deeprel.apis import Related, Unusable

CALLED, SELF = "input_signature", "_input_tensor"
MAX_ELEMENTS = 1 << 22
"""Elements of a tensor that is made for a record."""
RANGES = ((0, 7), (0, 1))
"""A record says nothing of values: integers are drawn from these, the second where the library refuses the first."""
PREFIXES = ("torch.", "tf.", "np.")


class Replayed(msgspec.Struct):
    """What became of the records of an API.

    Attributes:
        operator: What it was found to be; `dead` says why there is none.
        taken, refused: Records that the library took, or refused by an exception.
        errors: Why records were refused or not usable → how many.
    """

    operator: str = ""
    dead: str = ""
    taken: int = 0
    refused: int = 0
    errors: dict[str, int] = {}


class Replay:
    """The records of one API at work.

    `attempt` is told which record runs, and returns the context in which it is to be run.
    """

    def __init__(
        self,
        recorder: Recorder,
        target: Related,
        watched: Callable[[], AbstractContextManager[None]],
        attempt: Callable[[int, str], AbstractContextManager[None]],
    ) -> None:
        self.recorder, self.target, self.watched, self.attempt = recorder, target, watched, attempt

    def all(self, title: str, names: Sequence[str], records: Sequence[Mapping[str, Any]], skip: set[int]) -> Replayed:
        """Run the records but those to `skip`."""
        result = Replayed()
        errors: Counter[str] = Counter()
        try:
            result.operator = self.target.find(title)
        except Unusable as reason:
            result.dead = str(reason)
            return result
        for place, (name, record) in enumerate(zip(names, records, strict=True)):
            if place in skip:
                errors["it hung or killed the process"] += 1
                continue
            self.recorder.test = name
            problem = self._one(result.operator, place, record)
            result.taken += not problem
            result.refused += bool(problem)
            errors.update([problem] if problem else [])
        result.errors = dict(errors.most_common(8))
        return result

    def _one(self, operator: str, place: int, record: Mapping[str, Any]) -> str:
        """Run one record; return why it could not be, empty where it was."""
        problem = ""
        for low, high in RANGES:
            try:
                given = self.target.bind(operator, *parts(record, low, high))
                with self.attempt(place, operator), self.watched():
                    self.target.call(operator, given)
                return ""
            except (Unusable, CorpusError) as error:
                return str(error).splitlines()[0][:100]
            except Exception as error:
                problem = problem or f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
            finally:
                self.recorder.flush()
        return problem


def parts(record: Mapping[str, Any], low: int, high: int) -> tuple[list[Value], dict[str, Value], list[Value] | None]:
    """Return positional and named arguments, and what the object is called with. Raises Unusable, CorpusError."""
    made = {key: value(item, low, high, place) for place, (key, item) in enumerate(record.items())}
    called = made.pop(CALLED, None)
    numbers = sorted(int(key[10:]) for key in made if key.startswith("parameter:") and key[10:].isdigit())
    if numbers != list(range(len(numbers))):
        raise Unusable("positional arguments with a gap")
    positional = [made.pop(f"parameter:{number}") for number in numbers]
    if SELF in made:
        positional.insert(0, made.pop(SELF))
    if called is not None and not isinstance(called, list):
        called = [called]
    return positional, made, called


def value(item: Any, low: int, high: int, seed: int = 0) -> Value:
    """Return the value of what a record holds; tensors are made, floats in 0 .. 1. Raises Unusable, CorpusError."""
    match item:
        case None | bool() | int() | float():
            return item
        case str():
            return _named(item)
        case list():
            return [value(x, low, high, seed + place) for place, x in enumerate(item)]
        case {"shape": list() as shape, "dtype": str() as dtype}:
            return tensor(dtype, shape, low, high, seed)
    raise Unusable("a value that the record does not hold")


def tensor(dtype: str, shape: list[Any], low: int, high: int, seed: int) -> Tensor:
    """Make a tensor. Raises Unusable for one that is too large, or of a dtype that cannot be made up."""
    name = next((dtype.removeprefix(x) for x in PREFIXES if dtype.startswith(x)), dtype)
    if name not in CONTAINERS or not all(type(x) is int and 0 <= x <= MAX_ELEMENTS for x in shape) or len(shape) > 32:
        raise Unusable("a tensor of unknown shape or dtype")
    if int(np.prod([float(x) for x in shape])) > MAX_ELEMENTS:
        raise Unusable(f"a tensor of more than {MAX_ELEMENTS} elements")
    if name.startswith("complex"):
        generator = np.random.Generator(np.random.PCG64(seed))
        return Tensor.of((generator.random(shape) + 1j * generator.random(shape)).astype(name))
    whole = "float" not in name
    most = float(min(high, 1) if name == "bool" else high) if whole else 1.0
    return RandomTensor(name, tuple(shape), seed, float(low) if whole else 0.0, most).tensor()


def _named(text: str) -> Value:
    """Return what a string stands for: a dtype and the like where it begins so, else itself."""
    for prefix in ("torch.", "tf."):
        name = text.removeprefix(prefix)
        if name != text and name in CONTAINERS:
            return Named("dtype", name)
    if text in ("torch.contiguous_format", "torch.channels_last", "torch.preserve_format"):
        return Named("torch.memory_format", text.removeprefix("torch."))
    if text in UNKNOWN or text.startswith(("torch.", "tf.", "tensorflow.", "np.", "<class")):
        raise Unusable("a value that the record does not hold")
    return text


UNKNOWN = ("torchdtype", "torchmemory_format", "tf_object", "KerasTensor", "tensor", "other", "nparray", "DType")
"""What the instrumentation of DeepREL wrote in place of objects."""
