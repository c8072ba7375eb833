"""What numpy makes of 0-d arrays and of empty ones is its own manner here and there, and no proof: where it stands for an
operator, it gives what PyTorch does, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from opera.compilers.openvino import operators as openvino  # noqa: E402
from opera.compilers.tvm import interpreter  # noqa: E402
from opera.compilers.tvm import operators as tvm  # noqa: E402

SHAPES = ((), (0,), (1,), (2, 0), (0, 2), (2, 3))


def relax(name: str, **attrs: Any) -> Callable[[Any], Any]:
    """Return what stands for an operator of Relax."""

    def run(x: Any) -> Any:
        held = SimpleNamespace(**attrs)
        found = tvm.meant(name, held, [x])
        return interpreter._call(name, [x], held) if found is None else found

    return run


def node(kind: str, *given: Any, **attributes: Any) -> Callable[[Any], Any]:
    """Return what stands for an operator of OpenVINO."""
    return lambda x: openvino.meant(kind, attributes, [x, *given])[0]  # type: ignore[index]


ZERO = np.array(0)
REDUCED: dict[str, Any] = {
    "sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin, "mean": torch.mean,
}  # fmt: skip
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cumsum": (relax("cumsum", axis=0, exclusive=False), lambda x: torch.cumsum(x, 0)),
    "cumprod": (relax("cumprod", axis=-1, exclusive=False), lambda x: torch.cumprod(x, -1)),
    "CumSum": (node("CumSum", ZERO, reverse=False, exclusive=False), lambda x: torch.cumsum(x, 0)),
    "CumSum reversed": (node("CumSum", ZERO, reverse=True, exclusive=False), lambda x: x.flip(0).cumsum(0).flip(0)),
    **{
        f"{name} keepdims={keep}": (
            relax(name, axis=[0], keepdims=keep), lambda x, of=of, keep=keep: of(x, 0, keepdim=keep))
        for name, of in REDUCED.items() for keep in (False, True)
    },
    **{
        f"{name} keepdims={keep}": (
            relax(name, axis=0, keepdims=keep), lambda x, name=name, keep=keep: getattr(torch, name)(x, 0, keepdim=keep))
        for name in ("argmax", "argmin") for keep in (False, True)
    },
    "argmax of all": (relax("argmax", axis=None, keepdims=False), torch.argmax),
    "variance": (relax("variance", axis=[0], keepdims=False), lambda x: torch.var(x, 0, correction=0)),
    "flip": (relax("flip", axis=0), lambda x: torch.flip(x, (0,))),
    "sort": (relax("sort", axis=0, descending=True), lambda x: torch.sort(x, 0, descending=True).values),
    "repeat": (relax("repeat", repeats=2, axis=0), lambda x: torch.repeat_interleave(x, 2, 0)),
    "tile": (relax("tile", repeats=[2]), lambda x: torch.tile(x, (2,))),
    "squeeze": (relax("squeeze", axis=None), torch.squeeze),
    "softmax": (relax("nn.softmax", axis=0), lambda x: torch.softmax(x, 0)),
    "Softmax": (node("Softmax", axis=-1), lambda x: torch.softmax(x, -1)),
    "Tile": (node("Tile", np.array([2])), lambda x: torch.tile(x, (2,))),
    "Roll": (node("Roll", np.array([1]), np.array([0])), lambda x: torch.roll(x, 1, 0)),
    "ReduceL1": (node("ReduceL1", np.array([0]), keep_dims=True), lambda x: torch.linalg.vector_norm(x, 1, 0, True)),
    "Gelu": (node("Gelu", approximation_mode="tanh"), lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_numpy_is_asked_only_where_it_has_no_manners_of_its_own(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = CASES[name]
    x = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(ours(x))
        wanted = theirs(torch.from_numpy(np.array(x)))
    except (ValueError, IndexError, TypeError, RuntimeError):
        return
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5)
