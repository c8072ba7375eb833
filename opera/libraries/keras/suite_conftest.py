"""What keras's test modules expect of the conftest.py at the root of its repository, which its wheel does not ship.

A pytest plugin: it knows the suite's markers, skips what the backend in use cannot do, seeds what modules draw while they
are imported, and is itself the module `conftest` from which tests import `skip_if_backend`. Some modules import a package for
one test of many: where it is not installed, something that skips the test stands in for it, and the others run.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opera.libraries.keras import kernels

MARKERS = ("requires_trainable_backend", "multi_device")
INFERENCE_ONLY = ("numpy", "openvino")
"""Backends that cannot train."""

OPTIONAL = ("grain", "jax", "jax.experimental", "jax.experimental.sparse", "jax.numpy")
"""Packages and submodules that test modules import for a few of their tests, parents first."""

sys.modules["conftest"] = sys.modules[__name__]


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", f"{marker}: declared by keras's suite")


class _Absent(ModuleType):
    """A package that is not installed: using it skips the test."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip(f"{self.__name__} is not installed", allow_module_level=True)


def _stand_ins() -> dict[str, ModuleType]:
    """Return what stands in for packages that are not installed; must not be called while any does."""
    made: dict[str, ModuleType] = {}
    for name in OPTIONAL:
        package, _, last = name.rpartition(".")
        if package in made or (not package and importlib.util.find_spec(name) is None):
            made[name] = _Absent(name)
            if package:
                setattr(made[package], last, made[name])
    return made


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Import a test module with stand-ins for what is missing, and parameters that are drawn seeded.

    Only then: Keras, which looks for these packages at run time, must not find them.
    """
    import keras  # noqa: F401 - before there are stand-ins

    if not isinstance(collector, pytest.Module):
        return (yield)
    random.seed(0)
    np.random.seed(0)
    made = _stand_ins()
    sys.modules.update(made)
    try:
        return (yield)
    finally:
        for name in made:
            sys.modules.pop(name, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that the backend or this one device cannot run."""
    import keras

    backend = keras.config.backend()
    for item in items:
        if backend in INFERENCE_ONLY and item.get_closest_marker("requires_trainable_backend"):
            item.add_marker(pytest.mark.skip(reason=f"the backend {backend} cannot train"))
        if item.get_closest_marker("multi_device"):
            item.add_marker(pytest.mark.skip(reason="it needs several devices"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Let TensorFlow's kernels outlive a test: each begins by clearing the session."""
    with kernels.kept():
        return (yield)


def skip_if_backend(given: str, reason: str) -> Callable[[Any], Any]:
    """Return a decorator that skips a test under one backend."""
    import keras

    return pytest.mark.skipif(keras.config.backend() == given, reason=reason)
