"""How a process runs eager PyTorch: one thread, as precisely as it can, without warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from opera import precision


@cache
def prepare() -> None:
    """Set up this process: one thread, for there is a worker a core, and as precise as PyTorch can be."""
    import torch

    torch.set_num_threads(1)
    precision.set_torch()


@contextmanager
def quiet() -> Iterator[None]:
    """Run PyTorch without its warnings, and without gradients."""
    import torch

    prepare()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield
