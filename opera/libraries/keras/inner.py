"""What Keras calls inside a call: sublayers, and functions that are operators themselves. One of them may fail alone."""

from __future__ import annotations

from opera.capture.recorder import Collector
from opera.errors import InvalidTest
from opera.libraries.keras import hooks
from opera.libraries.keras import wrap as keras_model
from opera.programs.program import Instance

MOST = 60
"""Calls inside one call that are told."""


def expanded(instance: Instance) -> list[Instance]:
    """Return the calls that Keras makes, run eagerly, for one call, each with the tensors it was given; the innermost first.

    A sublayer is one of its configuration, with the weights that its initializers give, as of every layer. What is called
    within a graph that Keras has TensorFlow trace has no tensors, and is left out. Raises InvalidTest where Keras rejects it.
    """
    live, seen = keras_model.build(instance), Collector()
    with hooks.inside(seen):
        try:
            live.run()
        except Exception as error:
            raise InvalidTest(f"Keras cannot run it: {type(error).__name__}") from None
    found = {x.id: x for x in reversed(seen.programs) if isinstance(x, Instance) and x.operator != instance.operator}
    return [x for x in found.values() if not _does_nothing(x)][:MOST]


def _does_nothing(call: Instance) -> bool:
    """Whether a call is a cast of what is of that dtype already, as Keras makes many."""
    held = call.inputs[0].value if call.operator == "keras.ops.cast" and call.inputs else None
    return held is not None and getattr(held, "dtype", None) == call.params.get("dtype")
