"""What keras's test modules expect of the conftest.py at the root of its repository, which its wheel does not ship.

A pytest plugin: it knows the suite's markers, skips what the backend in use cannot do, seeds what modules draw while they
are imported, and is itself the module `conftest` from which tests import `skip_if_backend`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

MARKERS = ("requires_trainable_backend", "multi_device")
INFERENCE_ONLY = ("numpy", "openvino")
"""Backends that cannot train."""

sys.modules["conftest"] = sys.modules[__name__]


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", f"{marker}: declared by keras's suite")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule() -> Iterator[None]:
    """Seed the generators, so that parameters which are drawn at import are the same in every extraction."""
    random.seed(0)
    np.random.seed(0)
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that the backend or this one device cannot run."""
    import keras

    backend = keras.config.backend()
    for item in items:
        if backend in INFERENCE_ONLY and item.get_closest_marker("requires_trainable_backend"):
            item.add_marker(pytest.mark.skip(reason=f"the backend {backend} cannot train"))
        if item.get_closest_marker("multi_device"):
            item.add_marker(pytest.mark.skip(reason="it needs several devices"))


def skip_if_backend(given: str, reason: str) -> Callable[[Any], Any]:
    """Return a decorator that skips a test under one backend."""
    import keras

    return pytest.mark.skipif(keras.config.backend() == given, reason=reason)
