"""What calling operators by argument name is for every library; each has a module `calls` of its own.

Arguments by name are parameter → live object. What a module or layer is called with has a prefix that its library names, so
that it is told from what its constructor takes, and `training` is its mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor, Value

Watching: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Makes the context in which a call is recorded."""
TRAINING = "training"
"""Of what a constructor makes, the mode that it is called in, as a parameter like others."""


class Unusable(Exception):
    """A call cannot be made of what is given; the text is the category that reports count."""


class Dead(Unusable):
    """The installed library has no such operator, or none that opera captures; the text says why."""


def split(formals: Sequence[str], given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of a call; a formal name `*x` takes all that `x` holds."""
    args: list[Any] = []
    rest = dict(given)
    for name in formals:
        if name.startswith("*"):
            several = rest.pop(name[1:], ())
            args += several if isinstance(several, list | tuple) else [several]
            break
        if name not in rest:
            break
        args.append(rest.pop(name))
    return args, rest


def divided(given: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a constructor, and those that what it makes is called with, without their prefix."""
    called = {name.removeprefix(prefix): item for name, item in given.items() if name.startswith(prefix)}
    return {name: item for name, item in given.items() if not name.startswith(prefix)}, called


def written(instance: Instance, *parts: str) -> Iterator[str]:
    """Yield the names of the arguments that were given, in order; `parts` of the context say them. Raises Unusable."""
    try:
        for part in parts:
            how: Any = instance.context[part]
            yield from (*how["args"], *how["kwargs"])
    except (KeyError, TypeError):
        raise Unusable("an instance that does not say how it was called") from None


def tensor_input(value: Value, most: int) -> Tensor | RandomTensor:
    """Return the value of an input. Raises Unusable for what is no tensor, or one of more than `most` elements."""
    if not isinstance(value, Tensor | RandomTensor):
        raise Unusable("an input that is no tensor")
    if math.prod(value.shape) > most:
        raise Unusable("large inputs")
    return value


def check_called(whole: bool, called: object) -> None:
    """Raise Unusable unless there is something to call just where a class makes it (`whole`)."""
    if whole != (called is not None):
        raise Unusable("a class without what its object is called with" if whole else "a function that is called twice")
