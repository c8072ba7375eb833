"""Whether an ov.Model is one that a plugin can run, whatever its kernels do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opera.compilers.shared.packing import Refusal, Unlawful


def check(model: Any) -> None:
    """Raise Unlawful where a cast is to no dtype, or an inner model has an input without one: no plugin can choose a kernel
    then. Else a Refusal.
    """
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Convert" and node.get_output_element_type(0).is_dynamic():
            raise Unlawful(f"a Convert ({node.get_friendly_name()}) is to no dtype")
    for node, inner in _inner(model):
        for parameter in inner.get_parameters():
            if parameter.get_element_type().is_dynamic():
                kind, name = node.get_type_name(), parameter.get_friendly_name()
                raise Unlawful(f"the body of {kind} has an input ({name}) without a dtype")
    raise Refusal("no rule is broken that opera knows")


def _inner(model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the models within a model, each with the operator that has it."""
    for node in model.get_ordered_ops():
        match node.get_type_name():
            case "TensorIterator" | "Loop":
                found = [node.get_function()]
            case "If":
                found = [node.get_function(0), node.get_function(1)]
            case _:
                continue
        for inner in found:
            yield node, inner
            yield from _inner(inner)
