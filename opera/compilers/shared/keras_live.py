"""The live Keras model of a case: what compilers that TensorFlow holds, and exporters, are given."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from opera.compilers import Case
from opera.compilers.shared.packing import Refusal, of_numpy
from opera.programs.values import Value

BACKEND = "opera.libraries.keras.backend"
"""What workers import to have Keras on TensorFlow, quietly. It runs no operation, so that they can be forked after it."""

TOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
"""What Keras writes in bold is what was raised inside a layer; the rest says which layer."""


class NoGraph(Refusal):
    """TensorFlow cannot trace the model, whichever compiler it is for."""


def prepare() -> None:
    """Set TensorFlow up in a fresh worker: one thread, nothing printed."""
    from opera.libraries.keras.backend import tensorflow

    warnings.simplefilter("ignore")
    with suppress(RuntimeError):  # in a process where it ran before, threads stay what they are
        tensorflow.config.threading.set_intra_op_parallelism_threads(1)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)


def rebuilt(case: Case) -> Any:
    """Return the Live object of opera.libraries.keras.library: `model`, `inputs`, `concrete`, and the exporters.

    A stateful layer is in its first state.
    """
    assert case.live is not None
    live = case.live()
    reset(live.model)
    return live


def reset(model: Any) -> None:
    """Bring stateful layers back to their first state, which every run of the model moves on."""
    for layer in model.layers:
        if getattr(layer, "stateful", False) is True:
            layer.reset_state()


@contextmanager
def graph_of(live: Any) -> Iterator[None]:
    """Charge what a compiler's conversion raises to Keras where Keras alone, traced by TensorFlow, raises as well."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:
        if said := untraced(live):
            raise NoGraph(f"TensorFlow cannot trace the model: {said[:180]}") from None
        raise


def untraced(live: Any) -> str:
    """Return why TensorFlow cannot trace a model, whoever compiles or exports it; nothing where it can."""
    try:
        _ = live.concrete
    except Exception as error:  # it is what is asked for
        found = TOLD.search(str(error))
        return f"{type(error).__name__}: {' '.join((found[1] if found else str(error)).split())}"
    return ""


def results(tensors: Iterable[Any]) -> list[Value]:
    """Return outputs that TensorFlow or numpy hold. Raises CannotCarry for what opera cannot read."""
    return [of_numpy(item.numpy() if hasattr(item, "numpy") else item) for item in tensors]


def no_graph(error: BaseException) -> str | None:
    """Return why there is no graph to compile, where that is it."""
    return str(error) if isinstance(error, NoGraph) else None
