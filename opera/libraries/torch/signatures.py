"""What the signatures of the installed torch say about its operators' parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import Any

from opera.errors import CorpusError
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.programs.values import NO_DEFAULT, Value


def defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Return operator → parameter → default, NO_DEFAULT where a parameter has none (tensors among them).

    Functions that are not written in Python state theirs in torch.overrides. Of a module they are those of its constructor,
    and of forward as `forward.<name>`. Operators that torch does not have are left out. Needs torch (ImportError).
    """
    import torch.overrides

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        overrides = torch.overrides.get_testing_overrides()
    out: dict[str, dict[str, Value]] = {}
    for operator in operators:
        try:
            found = torch_api.resolve(operator)
        except CorpusError:
            continue
        if torch_api.kind(operator) == "module":
            forward = _of(found.forward)
            out[operator] = _of(found.__init__) | {f"forward.{name}": value for name, value in forward.items()}
        else:
            out[operator] = _of(found) or _of(overrides.get(found))
    return out


def _of(function: Any) -> dict[str, Value]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return {}
    return {
        parameter.name: _default(parameter.default)
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and parameter.name != "self"
    }


def _default(value: Any) -> Value:
    if value is inspect.Parameter.empty:
        return NO_DEFAULT
    try:
        return torch_values.encode(value)
    except torch_values.NotRepresentable:
        return NO_DEFAULT
