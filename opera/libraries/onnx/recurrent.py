"""RNN, GRU and LSTM as ONNX's documentation has them (version 22), which the reference evaluator computes in part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Activation = Callable[[Array], Array]

WAYS = ("forward", "reverse", "bidirectional")
"""Values of `direction`."""
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
"""Operator → rows of weights of each hidden unit: `i`, `zrh`, `iofc`."""
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
"""Operator → activations of each direction."""
SCALED: dict[str, tuple[float | None, float | None, Callable[[Any, Any, Array], Array]]] = {
    "affine": (None, None, lambda a, b, x: a * x + b),
    "elu": (1.0, None, lambda a, _, x: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0)))),
    "hardsigmoid": (0.2, 0.5, lambda a, b, x: np.clip(a * x + b, 0, 1)),
    "leakyrelu": (0.01, None, lambda a, _, x: np.where(x >= 0, x, a * x)),
    "scaledtanh": (None, None, lambda a, b, x: a * np.tanh(b * x)),
    "thresholdedrelu": (1.0, None, lambda a, _, x: np.where(x >= a, x, 0)),
}
"""Activation that takes alpha, or alpha and beta → those of the operator of the same name, and what it makes of them and its
input."""
PLAIN: dict[str, Activation] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanh": np.tanh,
}
"""Activation without alpha and beta → what it makes of its input."""
OF_TWO = ("affine", "hardsigmoid", "scaledtanh")
"""Activations that take beta, too."""


def recurrent(kind: str, given: dict[str, Any], *, reads: int = 0) -> tuple[Array, ...]:
    """Return what an operator computes, in double precision, as arrays of the dtype of X.

    Args:
        kind: RNN, GRU or LSTM.
        given: Inputs and attributes by their names in the schema. X is (steps, batch, inputs), W and R (directions, gates *
            hidden, inputs or hidden); with `layout` 1 the batch comes first.
        reads: How many of the outputs are asked for.

    Returns:
        Y (steps, directions, batch, hidden), Y_h and of LSTM Y_c (directions, batch, hidden).

    Raises ValueError for other shapes, layouts or activations, and where documentation leaves open whether `clip` bounds what
    an LSTM's last activation takes: ONNX Runtime and OpenVINO do not, though it is "the input of activations".
    """
    first, way = bool(given.get("layout")), given.get("direction") or "forward"
    if given.get("layout") not in (None, 0, 1):
        raise ValueError(f"layout {given['layout']} is neither 0 nor 1")
    x, w, r = (np.asarray(given[name], dtype=np.float64) for name in "XWR")
    rows = (1 + (way == "bidirectional"), GATES[kind] * r.shape[-1]) if r.ndim else ()
    sized = x.ndim == w.ndim == r.ndim == 3 and w.shape[:2] == r.shape[:2] == rows and w.shape[2] == x.shape[2]
    if not sized or way not in WAYS or given.get("hidden_size") not in (None, r.shape[2]):
        raise ValueError(f"W {w.shape} and R {r.shape} are no weights of {kind} that is {way}, for X {x.shape}")
    x = x.swapaxes(0, 1) if first else x
    steps, batch, _ = x.shape
    directions, hidden = r.shape[0], r.shape[2]
    b = _or_zeros(given.get("B"), (directions, 2 * GATES[kind] * hidden))
    peepholes = _or_zeros(given.get("P"), (directions, 3 * hidden))
    states = [given.get("initial_h"), given.get("initial_c")]
    h, c = (
        _or_zeros(s if s is None or not first else np.swapaxes(s, 0, 1), (directions, batch, hidden)) for s in states
    )
    lens = given.get("sequence_lens")
    lens = np.full(batch, steps) if lens is None else np.asarray(lens, dtype=np.int64)
    if lens.shape != (batch,) or (lens < 0).any() or (lens > steps).any():
        raise ValueError(f"sequence_lens {lens.tolist()} are no lengths of {batch} sequences of {steps} steps")
    used, found = _activations(kind, directions, given), []
    for place in range(directions):
        cell = _Cell(kind, w[place], r[place], b[place], peepholes[place], used[place], given)
        back = way == "reverse" or place == 1
        found.append(_unrolled(cell, x, lens, h[place], c[place], back=back))
    y, last_h, last_c = (np.stack(part, axis) for part, axis in zip(zip(*found, strict=True), (1, 0, 0), strict=True))
    if first:
        y, last_h, last_c = y.transpose(2, 0, 1, 3), last_h.swapaxes(0, 1), last_c.swapaxes(0, 1)
    outputs = (y, last_h, last_c) if kind == "LSTM" else (y, last_h)
    return tuple(part.astype(given["X"].dtype) for part in outputs[: reads or None])


def _or_zeros(given: Any, shape: tuple[int, ...]) -> Array:
    found = np.zeros(shape) if given is None else np.asarray(given, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"{found.shape} is given where {shape} is wanted")
    return found


class _Cell:
    """One step of one direction: (x, h, c) → (h, c)."""

    def __init__(
        self, kind: str, w: Array, r: Array, b: Array, p: Array, used: Sequence[Activation], given: dict[str, Any]
    ) -> None:
        self.step: Callable[[Array, Array, Array], tuple[Array, Array]] = getattr(self, kind.lower())
        self.w, self.r = w.T, r.T
        self.of_w, self.of_r = np.split(b, 2)
        self.p, self.used, self.given = np.split(p, 3), used, given
        self.most = given.get("clip")

    def through(self, activation: Activation, x: Array) -> Array:
        """Return what an activation makes of its input, bounded first."""
        return activation(x if self.most is None else np.clip(x, -self.most, self.most))

    def rnn(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return self.through(self.used[0], x @ self.w + h @ self.r + self.of_w + self.of_r), c

    def gru(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g = self.used
        (of_z, of_r, of_h), (z, r, _) = np.split(x @ self.w + self.of_w, 3, -1), np.split(h @ self.r + self.of_r, 3, -1)
        z, r = self.through(f, of_z + z), self.through(f, of_r + r)
        own, bias = np.split(self.r, 3, -1)[2], np.split(self.of_r, 3)[2]
        taken = r * (h @ own + bias) if self.given.get("linear_before_reset") else (r * h) @ own + bias
        return (1 - z) * self.through(g, of_h + taken) + z * h, c

    def lstm(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g, last = self.used
        i, o, forget, cell = np.split(x @ self.w + h @ self.r + self.of_w + self.of_r, 4, -1)
        i = self.through(f, i + self.p[0] * c)
        forget = 1 - i if self.given.get("input_forget") else self.through(f, forget + self.p[2] * c)
        c = forget * c + i * self.through(g, cell)
        return self.through(f, o + self.p[1] * c) * last(c), c


def _unrolled(cell: _Cell, x: Array, lens: Array, h: Array, c: Array, *, back: bool) -> tuple[Array, Array, Array]:
    """Return the outputs of one direction (steps, batch, hidden), which are 0 behind a sequence's end, and its last states."""
    steps = np.arange(len(x))[:, None]
    order = np.where(steps < lens, lens - 1 - steps, steps) if back else np.broadcast_to(steps, (len(x), len(lens)))
    every, found = np.arange(len(lens)), np.zeros((len(x), *h.shape))
    for step, places in enumerate(order):
        new_h, new_c = cell.step(x[places, every], h, c)
        goes_on = (step < lens)[:, None]
        if cell.most is not None and (np.abs(new_c[step < lens]) > cell.most).any():  # of an LSTM: others have none
            raise ValueError("ONNX's documentation leaves open whether clip bounds what the last activation takes")
        h, c = np.where(goes_on, new_h, h), np.where(goes_on, new_c, c)
        found[places, every] = np.where(goes_on, new_h, 0)
    return found, h, c


def _activations(kind: str, directions: int, given: dict[str, Any]) -> list[list[Activation]]:
    """Return the activations of each direction. Alphas and betas go to those that take any, in their order."""
    names = [str(x).lower() for x in given.get("activations") or DEFAULTS[kind] * directions]
    if names == ["tanh", "tanh"] and kind == "RNN":  # the schema's default, of one direction, too
        names = names[:directions]
    if len(names) != len(DEFAULTS[kind]) * directions:
        raise ValueError(f"{len(names)} activations are given where {kind} takes {len(DEFAULTS[kind]) * directions}")
    alphas, betas = (
        _consumed(given.get(f"activation_{key}"), [x in takes for x in names], key)
        for key, takes in (("alpha", SCALED), ("beta", OF_TWO))
    )
    made = [_activation(*x) for x in zip(names, alphas, betas, strict=True)]
    return [made[place : place + len(DEFAULTS[kind])] for place in range(0, len(made), len(DEFAULTS[kind]))]


def _consumed(given: Sequence[float] | None, takes: Sequence[bool], key: str) -> Iterator[float | None]:
    """Yield what each activation is given; what names more or fewer than take any is refused."""
    left = list(given or ())
    if left and len(left) != sum(takes):
        raise ValueError(f"{len(left)} of activation_{key} are given where {sum(takes)} activations take any")
    for does in takes:
        yield left.pop(0) if does and left else None


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    if name in SCALED:
        of_alpha, of_beta, made = SCALED[name]
        a, b = of_alpha if alpha is None else alpha, of_beta if beta is None else beta
        if a is None or (b is None and name in OF_TWO):
            raise ValueError(f"{name} is given no alpha, or no beta, and has none by default")
        return partial(made, a, b)
    if name not in PLAIN:
        raise ValueError(f"ONNX documents no activation {name!r}")
    return PLAIN[name]
