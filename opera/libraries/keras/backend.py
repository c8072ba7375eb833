"""Imports Keras on TensorFlow, quietly, whatever the user's environment and keras.json say.

Importing this module is the way to have Keras in a worker: it is what library-side workers preload before they are forked.
Importing runs no operation of TensorFlow, so that a process that did no more can still be forked.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from opera import precision

BACKEND = "tensorflow"
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_CPP_MAX_VLOG_LEVEL": "0",
    **precision.TENSORFLOW,
    "GRPC_VERBOSITY": "ERROR",
    "ABSL_MIN_LOG_LEVEL": "3",
}
"""Set before TensorFlow is loaded, which reads them once."""

os.environ.update(QUIET)
os.environ["KERAS_BACKEND"] = BACKEND
os.environ["KERAS_HOME"] = os.path.join(os.devnull, "opera")  # noqa: PTH118 - no keras.json is read there, and none written


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what is written to file descriptor 2 from the terminal, unless the import fails.

    A TensorFlow built for GPUs reports a missing CUDA there before any setting of its log level holds.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


with _quiet():
    import keras
    import tensorflow

logging.getLogger("tensorflow").setLevel(logging.ERROR)
logging.getLogger("absl").setLevel(logging.ERROR)

__all__ = ["keras", "tensorflow"]
