"""The live PyTorch model of a case: what compilers that PyTorch itself holds are given."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

from opera import precision
from opera.compilers import Case
from opera.compilers.shared import torch_operators
from opera.compilers.shared.messages import Rule
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry
from opera.errors import OperaError
from opera.programs.values import Value


def prepare() -> None:
    """Set PyTorch up in a fresh worker: one thread, no warnings, as precise as it can be."""
    import torch

    warnings.simplefilter("ignore")
    logging.getLogger("torch.fx.experimental.symbolic_shapes").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    precision.set_torch()


def unsupported(rules: tuple[Rule, ...], stage: str, error: BaseException) -> str | None:
    """Return why PyTorch's own compilers and exporters refuse a model, by the exception's class or else by its words."""
    return torch_operators.refusal(error) or first_rule(rules, stage, error)


def rebuilt(case: Case) -> Any:
    """Return the Live object of opera.libraries.torch.library: `module`, `args`, and the exporters."""
    assert case.live is not None
    return case.live()


def reader(live: Any) -> Callable[[Any], Value]:
    """Return what encodes an output of a compiled form of the model. It raises CannotCarry for what opera cannot read."""

    def read(tensor: Any) -> Value:
        try:
            [value] = live.results(tensor)
        except OperaError as error:
            raise CannotCarry(error.what) from None
        found: Value = value
        return found

    return read


def ran(live: Any, model: Callable[..., Any], call: Callable[..., Any] | None = None) -> list[Value]:
    """Run a compiled model on the inputs, and return its outputs. Raises CannotCarry for what opera cannot read.

    `call` is a recipe's, where it is another than that of recipes/torch.py.
    """
    import torch

    from opera.compilers.recipes import torch as recipe

    with torch.no_grad():
        through: Callable[..., Any] = call or recipe.call
        found: list[Value] = through(model, live.args, reader(live))
    return found
