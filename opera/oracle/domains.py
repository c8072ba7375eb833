"""Documented domains: inputs for which the library's documentation says that the output is not well defined.

Declared in instrumentation/<library>.toml, `[[domains]]`, with the sentence and its address. A domain belongs there only
where the documentation leaves the *output* open; an input for which NaN, an infinity or an error is documented, or follows
from the mathematics, is defined.
"""

from __future__ import annotations

import msgspec

from opera import resources
from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One documented domain.

    Attributes:
        operator: Whose; `input`: the name of its input.
        least, most: Bounds of the domain, both within.
        says: The sentence; `source`: its address.
    """

    operator: str
    input: str
    least: float
    most: float
    says: str
    source: str


def declared(library: str) -> list[Domain]:
    """Return the documented domains of a library's operators."""
    return msgspec.convert(resources.declaration("instrumentation", library).get("domains", []), list[Domain])


def outside(instance: Instance) -> str:
    """Return which elements of a call's inputs are outside a documented domain, with its sentence; empty where none is."""
    for domain in declared(instance.library):
        if domain.operator != instance.operator:
            continue
        for operand in instance.inputs:
            if operand.name != domain.input or not isinstance(operand.value, Tensor | RandomTensor):
                continue
            value = operand.value.tensor() if isinstance(operand.value, RandomTensor) else operand.value
            numbers = value.numbers()
            bad = int((~((numbers >= domain.least) & (numbers <= domain.most))).sum())
            if bad:
                told = f"{bad} of {numbers.size} elements of {domain.input} are outside [{domain.least:g}, {domain.most:g}]"
                return f'{told}: "{domain.says}" ({domain.source})'
    return ""
