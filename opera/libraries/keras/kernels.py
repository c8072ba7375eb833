"""Keeping TensorFlow's kernels where Keras would drop them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Keep TensorFlow's kernels, which a cleared session and a set seed drop: every operation would be prepared anew.

    They are dropped for the sake of random kernels that hold a seed; all that Keras draws, it draws by stateless ones. On
    another backend nothing is done.
    """
    import keras

    if keras.config.backend() != "tensorflow":
        yield
        return
    from tensorflow.python.eager import context

    drop = context.pywrap_tfe.TFE_ContextClearCaches
    context.pywrap_tfe.TFE_ContextClearCaches = lambda _: None
    try:
        yield
    finally:
        context.pywrap_tfe.TFE_ContextClearCaches = drop
