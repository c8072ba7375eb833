"""Decompositions are not unique, and yet they are of a matrix: their product is it, and what is to be unitary is so.

What a library leaves undefined of factors (their signs, a basis of equal eigenvalues) excuses such alone that pass this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opera.oracle.conditioning import EPSILON, wide
from opera.programs.values import Tensor, Value

Array: TypeAlias = np.ndarray[Any, Any]
Check: TypeAlias = Callable[..., bool]

LOOSE = 1024.0
"""Machine epsilons for each row of a matrix, relative to its norm, that a product may be off: a backward-stable decomposition
is off by some (Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 19.3 and 20.1)."""


def of(check: Check, matrix: Array | None) -> Callable[[Sequence[Value]], bool]:
    """Return whether outputs are factors of a matrix, of shape (..., rows, columns), by one of the checks below.

    Whatever is given is one of a matrix that is not known, not finite or empty.
    """

    def holds(outputs: Sequence[Value]) -> bool:
        factors = [x for x in outputs if isinstance(x, Tensor)]
        if matrix is None or not matrix.size or not np.isfinite(matrix).all() or len(factors) != len(outputs):
            return True
        slack = LOOSE * max(matrix.shape[-2:]) * max(EPSILON.get(x.dtype, EPSILON["float64"]) for x in factors)
        exact = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
        with np.errstate(all="ignore"):
            return check(slack, exact, *map(wide, factors))

    return holds


def svd(slack: float, matrix: Array, u: Array, s: Array, vh: Array) -> bool:
    """Whether u, s and vh, of shapes (..., m, k or m), (..., k) and (..., k or n, n), are singular vectors and values."""
    count = s.shape[-1]
    made = (u[..., :count] * s[..., None, :]) @ vh[..., :count, :]
    return _near(slack, made, matrix) and _unitary(slack, u) and _unitary(slack, _adjoint(vh))


def svd_of_v(slack: float, matrix: Array, u: Array, s: Array, v: Array) -> bool:
    """As `svd`, of v, of shape (..., n, k or n), in place of its adjoint."""
    return svd(slack, matrix, u, s, _adjoint(v))


def qr(slack: float, matrix: Array, q: Array, r: Array) -> bool:
    """Whether q, of orthonormal columns, and r, an upper triangle, are factors."""
    return _near(slack, q @ r, matrix) and _unitary(slack, q) and _near(slack, np.triu(r), r)


def eigen(slack: float, matrix: Array, values: Array, vectors: Array) -> bool:
    """Whether they are eigenvalues, of shape (..., n), and eigenvectors, of norm 1, in the columns of (..., n, n)."""
    size = float(np.linalg.norm(matrix, axis=(-2, -1)).max())
    off = np.abs(matrix @ vectors - vectors * values[..., None, :])
    norms = np.linalg.norm(vectors, axis=-2)
    return bool((off <= slack * size).all()) and _near(slack, norms, np.ones(norms.shape))


def of_lower(slack: float, matrix: Array, values: Array, vectors: Array) -> bool:
    """As `eigen`, of the Hermitian matrix of a lower triangle and a real diagonal, whose vectors are orthonormal."""
    lower = np.tril(matrix, -1)
    whole = lower + _adjoint(lower) + matrix.real * np.eye(matrix.shape[-1])
    return eigen(slack, whole, values, vectors) and _unitary(slack, vectors)


def of_upper(slack: float, matrix: Array, values: Array, vectors: Array) -> bool:
    """As `of_lower`, of an upper triangle."""
    return of_lower(slack, _adjoint(matrix), values, vectors)


def _near(slack: float, one: Array, other: Array) -> bool:
    size = float(np.abs(other).max(initial=0.0))
    return one.shape == other.shape and bool((np.abs(one - other) <= slack * size).all())


def _unitary(slack: float, columns: Array) -> bool:
    made = _adjoint(columns) @ columns
    return _near(slack, made, np.broadcast_to(np.eye(made.shape[-1]), made.shape))


def _adjoint(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -2, -1))
