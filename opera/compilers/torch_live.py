"""The live PyTorch model of a case: what compilers that PyTorch itself holds are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opera.compilers import Case
from opera.compilers.messages import Rule
from opera.compilers.messages import unsupported as first_rule
from opera.compilers.packing import CannotCarry
from opera.errors import OperaError
from opera.values import Value

REFUSALS = {
    "Unsupported": "{}",
    "GuardOnDataDependentSymNode": "control flow that depends on data",
    "DataDependentOutputException": "{} returns a number that depends on data",
    "DynamicOutputShapeException": "the shape of what {} returns depends on data",
    "UnsupportedFakeTensorException": "{}",
    "UnsupportedOperatorException": "{} has no implementation that computes only shapes",
    "UnsupportedMutationAliasingException": "{}",
    "UnsupportedOperatorError": "{}",
}
"""PyTorch's exceptions whose very name is a refusal → what is refused, from the first line of their text."""


def unsupported(rules: tuple[Rule, ...], stage: str, error: BaseException) -> str | None:
    """Return why PyTorch's own compilers and exporters refuse a model, by the exception's class or else by its words.

    Refusals are often wrapped in an exception of the layer above, so that causes are looked at as well.
    """
    link: BaseException | None = error
    while link is not None:
        for kind in type(link).__mro__:
            if kind.__name__ in REFUSALS and kind.__module__.startswith("torch."):
                return REFUSALS[kind.__name__].format(str(link).strip().partition("\n")[0][:160])
        link = link.__cause__
    return first_rule(rules, stage, error)


def rebuilt(case: Case) -> Any:
    """Return the Live object of opera.libraries.torch: `module`, `args`, and the exporters."""
    assert case.live is not None
    return case.live()


def ran(live: Any, model: Callable[..., Any]) -> list[Value]:
    """Run a compiled model on the inputs, and return its outputs. Raises CannotCarry for what opera cannot read."""
    import torch

    with torch.no_grad():
        result = model(*live.args)
    try:
        found: list[Value] = live.results(result)
    except OperaError as error:
        raise CannotCarry(error.what) from None
    return found
