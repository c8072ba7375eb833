"""Models that a compiler's own suite hands to a PyTorch exporter or frontend: each is run once, eagerly, while it is watched.

- `exports`: functions whose arguments begin with a module and its example arguments, such as torch.export.export;
- `graphs`: functions whose arguments begin with a torch.fx.GraphModule and what it takes, as a list of (shape, dtype).

Running a model changes neither its buffers and arguments nor the state of the global generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.utils._pytree import tree_map

from opera.capture.recorder import Recorder, replace
from opera.libraries.calls import Watching

BOUND = 2
"""Integers that are made up are below this: they may be indices."""


def hook(recorder: Recorder, watching: Watching, points: dict[str, list[str]]) -> None:
    """Hook the points of both kinds; `watching` returns the context in which calls are recorded."""
    for kind, arguments in (("exports", _example_arguments), ("graphs", _made_up_arguments)):
        for point in points.get(kind, ()):
            replace(point, _running(recorder, watching, arguments))


def _running(
    recorder: Recorder, watching: Watching, arguments: Callable[..., tuple[Any, Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                given, named = arguments(*args, **kwargs)
                with _unchanged(model), watching():
                    model(*given, **named)
            except Exception as error:  # what the test makes of such a model is its own affair
                recorder.left_out[f"model that does not run: {type(error).__name__}"] += 1
            return original(model, *args, **kwargs)

        return call

    return make


def _example_arguments(args: Any = (), kwargs: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
    copies: tuple[Any, Any] = tree_map(_copied, (tuple(args), dict(kwargs or {})))
    return copies


def _made_up_arguments(inputs: Sequence[Any], *_: Any, **__: Any) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    return tuple(_made_up(tuple(map(int, shape)), str(dtype), generator) for shape, dtype in inputs), {}


def _made_up(shape: tuple[int, ...], name: str, generator: Any) -> Any:
    dtype = getattr(torch, name)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, BOUND, shape, generator=generator).to(dtype)


def _copied(item: Any) -> Any:
    return item.detach().clone() if isinstance(item, torch.Tensor) else item


@contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Undo what running a model does to it: batch normalisation counts what it sees."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            yield
    finally:
        with torch.no_grad(), suppress(RuntimeError):
            for buffer, before in buffers:
                buffer.copy_(before)
