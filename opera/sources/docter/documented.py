"""What the generator asks of a library: one module a library, named in the entry-point group `opera.constraints`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from opera import plugins
from opera.capture.recorder import Recorder
from opera.libraries.calls import Dead, Watching
from opera.programs.values import Value
from opera.sources.docter.constraints import Api, Parameter

__all__ = ["GROUP", "Bound", "Dead", "Documented", "adapted", "get"]


class Bound(msgspec.Struct, frozen=True):
    """An API found in the installed library.

    Attributes:
        operator: Its name as an operator of opera.
        api: Its constraints, parameters renamed, what is gone left out, what a call needs besides added.
        remarks: What was renamed or left out.
        names: What the constraints call a parameter → its name today; those that are gone are missing.
    """

    operator: str
    api: Api
    remarks: tuple[str, ...] = ()
    names: dict[str, str] = {}


class Documented(Protocol):
    """The protocol: a library whose operators have documented constraints. All functions import it."""

    def builtin(self) -> Iterator[Api]:
        """Yield the constraints that the installed library's own documentation, signatures and schemas state."""

    def bind(self, api: Api) -> Bound:
        """Find an API in the installed library. Raises Dead."""

    def watching(self, recorder: Recorder) -> AbstractContextManager[Watching]:
        """Prepare for calls whose instances are recorded; what is given wraps each of them."""

    def prepare(self, bound: Bound, values: Mapping[str, Value], number: int) -> Callable[[], Any]:
        """Return the call of an operator with these arguments. It, or what it returns, raises what the library raises."""


GROUP = "opera.constraints"


def get(library: str) -> Documented:
    """Import the module of a library. Raises UsageError for an unknown name."""
    documented: Documented = plugins.load(GROUP, "library with constraints", library)
    return documented


def adapted(
    api: Api, formals: tuple[str, ...], required: tuple[str, ...], known: Api | None
) -> tuple[Api, list[str], dict[str, str]]:
    """Fit constraints to the parameters that an operator has today.

    Args:
        api: The constraints.
        formals: Names of the parameters, also of those that belong to the call of what a constructor makes.
        required: Those without a default.
        known: Constraints from today's documentation, for parameters of which `api` says nothing; None if there are none.

    Returns the constraints, what was renamed or left out, and old names → new ones. Raises Dead where nothing is left.
    """
    remarks, parameters, names = [], {}, {}
    for name in (*api.required, *api.optional):
        new = name if name in formals else _renamed(name, formals, api)
        if new is None:
            remarks.append(f"{name} is gone")
        else:
            remarks += [f"{name} is now {new}"] * (new != name)
            names[name] = new
            parameters[new] = msgspec.structs.replace(api.parameters[name], name=new)
    for name in formals:
        today = known.parameters.get(name) if known else None
        stated = parameters.get(name)
        if today is not None and (stated is None or not stated.constrained):
            if stated is not None or name in required:
                parameters[name] = today
        elif stated is None and name in required:
            parameters[name] = Parameter(name)
    needed = tuple(name for name in formals if name in parameters and name in required)
    free = tuple(name for name in formals if name in parameters and name not in required)
    if not needed and api.required and len(remarks) >= len(api.required) + len(api.optional):
        raise Dead("none of its parameters is left")
    return msgspec.structs.replace(api, required=needed, optional=free, parameters=parameters), remarks, names


def _renamed(name: str, formals: tuple[str, ...], api: Api) -> str | None:
    """Return the parameter that took the place of another: a known name, or one that differs by little."""
    for names in RENAMED:
        if name in names:
            for other in names:
                if other in formals and other not in api.parameters:
                    return other
    squeezed = {x.replace("_", "").lower(): x for x in formals}
    found = squeezed.get(name.replace("_", "").lower())
    return found if found not in api.parameters else None


RENAMED = (
    ("input", "self", "tensor", "x", "A", "a", "data"), ("input2", "other", "vec2", "mat2", "B", "b"), ("axis", "dim"),
    ("keepdims", "keepdim", "keep_dims"), ("tensors", "seq", "matrices"), ("cond", "condition"), ("n", "input_length"),
    ("lr", "learning_rate"), ("target", "labels"), ("input", "input1"),
)  # fmt: skip
"""Names that parameters of the same meaning have had."""
