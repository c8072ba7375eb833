"""What relations are inferred from, and what is asked of a library: one module a library, in the group `opera.relations`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from opera import plugins
from opera.capture.recorder import Recorder
from opera.libraries.calls import Unusable, Watching
from opera.oracle import comparison
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Value

__all__ = ["GROUP", "Api", "Parameter", "Related", "Unusable", "agree", "get", "linked", "observed", "types"]

_UNNAMED = re.compile(r"((forward|call)\.)?arg\d+")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of an operator.

    Attributes:
        name: Formal name. What a module or layer is called with has the prefix that its captured instances use, or none.
        types: What it takes: `tensor`, `tensors`, `int`, `float`, `bool`, `str`, `ints`, ...; empty where nothing says.
        default: NO_DEFAULT where there is none, or none is known.
        required: Whether a call needs it.
        called: Whether it belongs to the call of what a constructor makes.
    """

    name: str
    types: frozenset[str] = frozenset()
    default: Value = NO_DEFAULT
    required: bool = False
    called: bool = False


class Api(msgspec.Struct, frozen=True):
    """An operator, and what relations to others are guessed from.

    Attributes:
        operator: Its public name.
        parameters: In order, those that only keywords reach last.
        text: Its documentation.
        links: Operators that its documentation says it is an alias or a variant of.
    """

    operator: str
    parameters: tuple[Parameter, ...]
    text: str = ""
    links: frozenset[str] = frozenset()


class Related(Protocol):
    """The protocol: a library whose operators may be related. All functions import it."""

    FREE: tuple[str, ...]
    """Parameters that may be left out whatever their value, where the partner has no such."""

    def apis(self) -> list[Api]:
        """Return all operators of the installed library, sorted by name."""

    def prepare(self) -> None:
        """Set up a process that calls operators."""

    def arguments(self, instance: Instance) -> dict[str, Any]:
        """Return the arguments of an instance by parameter name, tensors fresh. Raises Unusable."""

    def types(self, instance: Instance) -> dict[str, str]:
        """Return parameter → type of what an instance was called with."""

    def encode(self, item: Any) -> Value:
        """Return the value of an argument that is no tensor; NO_DEFAULT for what has none."""

    def decode(self, value: Value) -> Any:
        """Inverse of `encode`."""

    def find(self, title: str) -> str:
        """Return the operator that another tool calls so. Raises Unusable."""

    def bind(
        self, operator: str, positional: Sequence[Value], named: Mapping[str, Value], called: Sequence[Value] | None
    ) -> dict[str, Any]:
        """Return arguments by parameter name; `called` is what the object is called with that a class makes.

        Raises Unusable where they do not fit.
        """

    def call(self, operator: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Call an operator, seeded, and return the tensors that it returns. Raises what the library raises."""

    def agree(self, one: list[Any], other: list[Any]) -> bool:
        """Whether outputs are the same: number, dtypes, shapes, and values within tolerance."""

    def telling(self, outputs: list[Any], arguments: Mapping[str, Any]) -> bool:
        """Whether agreement on these outputs says anything: not all are zero, and they are not just the arguments."""

    def watching(self, recorder: Recorder) -> AbstractContextManager[Watching]:
        """Prepare for calls that are recorded; what is given wraps each of them."""


GROUP = "opera.relations"


def get(library: str) -> Related:
    """Import the module of a library. Raises UsageError for an unknown name."""
    related: Related = plugins.load(GROUP, "library with relations", library)
    return related


def linked(
    operator: str, text: str, link: re.Pattern[str], places: Sequence[str], known: Collection[str]
) -> frozenset[str]:
    """Return the operators that a documentation refers to.

    Args:
        operator: Whose it is.
        text: The documentation.
        link: Matches a reference; its group is a name.
        places: What may come before a name; empty for names that are whole.
        known: All operators.
    """
    names = (place + name.rstrip(".") for name in link.findall(text) for place in places)
    return frozenset(name for name in names if name in known and name != operator)


def types(instance: Instance, prefix: str, kind_of: Callable[[Value], str]) -> dict[str, str]:
    """Return parameter → type of what an instance was called with.

    Args:
        instance: The call.
        prefix: Comes before the names of its tensor inputs.
        kind_of: Gives the type of a value that is no tensor, empty where it has none.
    """
    found = {}
    for operand in instance.inputs:
        base, _, rest = operand.name.partition(".")
        found[prefix + base] = "tensors" if rest else "tensor"
    for name, value in instance.params.items():
        found[name] = found.get(name) or kind_of(value)
    return {name: kind for name, kind in found.items() if kind and not _UNNAMED.fullmatch(name)}


def agree(
    one: Sequence[Any],
    other: Sequence[Any],
    equal: Callable[[Any, Any], bool],
    close: Callable[[Any, Any, float, float], bool],
) -> bool:
    """Whether outputs are the same: number (not none), dtypes, shapes, and values within the oracle's tolerance of the dtype.

    Args:
        one, other: Arrays or tensors.
        equal: Whether all elements of two are.
        close: Likewise, within a relative and an absolute tolerance.
    """

    def same(left: Any, right: Any) -> bool:
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        rtol, atol = comparison.tolerance(str(left.dtype).removeprefix("torch."), None, None)
        return equal(left, right) or (bool(rtol) and close(left, right, rtol, atol))

    return bool(one) and len(one) == len(other) and all(map(same, one, other))


def observed(api: Api, instances: Iterator[Mapping[str, str]]) -> Api:
    """Add to the parameters what calls show: names that no signature states, and types that none states.

    Args:
        instances: For each call, parameter name → type.
    """
    seen: dict[str, set[str]] = {}
    for types in instances:
        for name, kind in types.items():
            seen.setdefault(name, set()).add(kind)
    known = {parameter.name for parameter in api.parameters}
    parameters = [
        msgspec.structs.replace(x, types=x.types | seen[x.name]) if x.name in seen else x for x in api.parameters
    ]
    parameters += [Parameter(name, frozenset(types)) for name, types in seen.items() if name not in known]
    return msgspec.structs.replace(api, parameters=tuple(parameters))
