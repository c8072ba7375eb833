"""Random operators at parameters that leave nothing to chance: a dropout of everything, a uniform draw from one number.

What a compiler does there can be compared, where a random result cannot. instrumentation/<library>.toml declares them,
`[degenerate]`: operator → settings, each of which is parameter or input → number (of an input: all of its elements), or ABSENT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from opera import resources
from opera.errors import CorpusError
from opera.programs.program import Captured, Instance
from opera.programs.values import RandomTensor, Tensor

ABSENT = "absent"
"""What a setting says of a parameter that a call at it does not have: an upper end of 1 leaves nothing to chance from 0 on."""
Setting = Mapping[str, float | str]


def settings(library: str, operator: str) -> list[Setting]:
    """Return the settings at which an operator is not random."""
    found: list[Setting] = resources.declaration("instrumentation", library).get("degenerate", {}).get(operator, [])
    return found


def with_degenerate(records: Iterable[Captured]) -> Iterator[Captured]:
    """Yield what was captured, and after each random operator the same call at its degenerate parameters."""
    for record in records:
        yield record
        if isinstance(record.program, Instance):
            for setting in settings(record.program.library, record.program.operator):
                made = at(record.program, setting)
                if made is not None and made != record.program:
                    told = ", ".join(
                        f"{name} = {number:.10g}" for name, number in setting.items() if not isinstance(number, str)
                    )
                    seen = msgspec.structs.replace(
                        record.provenance, test=f"{record.provenance.test} with {told}"[:1000]
                    )
                    yield Captured(made, seen)


def holds(instance: Instance) -> bool:
    """Whether a call of a random operator is at parameters that leave nothing to chance."""
    return any(at(instance, setting) == instance for setting in settings(instance.library, instance.operator))


def at(instance: Instance, setting: Setting) -> Instance | None:
    """Return the call at a setting, None where it does not have all of its parameters and inputs."""
    params, inputs = dict(instance.params), list(instance.inputs)
    for name, number in setting.items():
        places = [place for place, operand in enumerate(inputs) if operand.name == name]
        if isinstance(number, str):
            if places or params.get(name) is not None:
                return None
            continue
        if name in params and isinstance(params[name], int | float):
            params[name] = type(params[name])(number) if number == int(number) else number
        elif places:
            try:
                value = _filled(inputs[places[0]].value, number)
            except (CorpusError, TypeError, ValueError):
                return None
            inputs[places[0]] = msgspec.structs.replace(inputs[places[0]], value=value)
        else:
            return None
    return msgspec.structs.replace(instance, params=params, inputs=tuple(inputs))


def _filled(value: object, number: float) -> Tensor:
    """Return a tensor like a value, with one number all over. Raises TypeError where it is none that numpy can compute with."""
    if not isinstance(value, Tensor | RandomTensor) or not value.dtype.startswith(("float1", "float3", "float6")):
        raise TypeError("no tensor of floats")
    return Tensor.of(np.full(value.shape, number, dtype=np.dtype(value.dtype)))
