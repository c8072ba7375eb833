"""Documented domains: inputs for which the library's documentation says that the output is not well defined.

Declared in instrumentation/<library>.toml, `[[domains]]`, with the sentence and its address. A domain belongs there only
where the documentation leaves the *output* open; an input for which NaN, an infinity or an error is documented, or follows
from the mathematics, is defined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera import resources
from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor

Array: TypeAlias = np.ndarray[Any, Any]


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One documented domain.

    Attributes:
        operator: Whose; `input`: the name of its input.
        least, most: Bounds of the domain, both within.
        says: The sentence; `source`: its address.
        parameter: The name of a parameter whose two numbers are the bounds, in any order, where it is given; else none is.
    """

    operator: str
    input: str
    least: float
    most: float
    says: str
    source: str
    parameter: str = ""

    def bounds(self, call: Instance) -> tuple[float, float]:
        """Return the bounds for a call, both within."""
        match call.params.get(self.parameter):
            case (int() | float() as one, int() | float() as other):
                return min(one, other), max(one, other)
        return self.least, self.most


@cache
def declared(library: str) -> tuple[Domain, ...]:
    """Return the documented domains of a library's operators."""
    return msgspec.convert(resources.declaration("instrumentation", library).get("domains", []), tuple[Domain, ...])


def outside(instance: Instance) -> str:
    """Return which elements of a call's inputs are outside a documented domain, with its sentence; empty where none is."""
    for domain, tensor in _bounded(instance):
        least, most = domain.bounds(instance)
        numbers = tensor.numbers()
        bad = int((~((numbers >= least) & (numbers <= most))).sum())
        if bad:
            told = f"{bad} of {numbers.size} elements of {domain.input} are outside [{least:g}, {most:g}]"
            return f'{told}: "{domain.says}" ({domain.source})'
    return ""


def within(instance: Instance) -> Iterator[Instance]:
    """Yield a call whose inputs are outside of documented domains with numbers in them: each the nearest, of NaN the least;
    then, of each input, numbers from the least to the greatest, in even steps."""
    bounded = [(domain.input, domain.bounds(instance), tensor) for domain, tensor in _bounded(instance)]
    if outside(instance):
        for way in (_nearest, _spread):
            made = {name: Tensor.of(way(x.numbers(), *bounds), x.dtype) for name, bounds, x in bounded}
            inputs = tuple(msgspec.structs.replace(x, value=made.get(x.name, x.value)) for x in instance.inputs)
            yield msgspec.structs.replace(instance, inputs=inputs)


def _nearest(numbers: Array, least: float, most: float) -> Array:
    return np.clip(np.where(np.isnan(numbers), least, numbers), least, most)


def _spread(numbers: Array, least: float, most: float) -> Array:
    return np.linspace(least, most, numbers.size).reshape(numbers.shape)


def _bounded(instance: Instance) -> Iterator[tuple[Domain, Tensor]]:
    """Yield the documented domains of a call's inputs, each with what is given."""
    for domain in declared(instance.library):
        for operand in instance.inputs if domain.operator == instance.operator else ():
            if operand.name == domain.input and isinstance(operand.value, Tensor | RandomTensor):
                yield domain, operand.value.tensor() if isinstance(operand.value, RandomTensor) else operand.value
