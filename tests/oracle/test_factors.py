"""Factors are those of a matrix, whatever their signs: of others nothing is excused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera import libraries
from opera.oracle import factors, undefined
from opera.oracle.undefined import Undefined
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor, Value

SHAPES = st.sampled_from([(1, 1), (3, 3), (2, 4, 3), (2, 1, 5), (40, 30)])


def drawn(seed: int, shape: tuple[int, ...], dtype: str, scale: float) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    made = generator.normal(size=shape) + (1j * generator.normal(size=shape) if dtype[0] == "c" else 0)
    return (made * scale).astype(dtype)


def signed(generator: np.random.Generator, columns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return generator.choice([-1, 1], size=(*columns.shape[:-2], 1, columns.shape[-1])).astype(columns.dtype)


@given(
    st.integers(0, 1000),
    SHAPES,
    st.sampled_from(["float32", "float64", "complex64"]),
    st.sampled_from([1e-12, 1.0, 1e8]),
    st.booleans(),
)
def test_factors_of_any_signs_are_those_of_their_matrix_and_of_no_other(seed, shape, dtype, scale, full):
    matrix, generator = drawn(seed, shape, dtype, scale), np.random.default_rng(seed)
    u, s, vh = np.linalg.svd(matrix, full_matrices=full)
    q, upper = np.linalg.qr(matrix)
    count, flips = s.shape[-1], signed(generator, q)
    by_sign = signed(generator, u[..., :count])
    u[..., :count] *= by_sign
    vh[..., :count, :] *= np.swapaxes(by_sign, -2, -1)
    v = np.conj(np.swapaxes(vh, -2, -1))
    for check, made in (
        (factors.svd, (u, s, vh)),
        (factors.svd_of_v, (u, s, v)),
        (factors.qr, (q * flips, upper * np.swapaxes(flips, -2, -1))),
    ):
        outputs = [Tensor.of(x) for x in made]
        assert factors.of(check, matrix)(outputs)
        assert not factors.of(check, matrix * 3)(outputs)
        assert not factors.of(check, matrix)([Tensor.of(np.zeros_like(made[0])), *outputs[1:]])
        assert not factors.of(check, matrix)([Tensor.of(np.full_like(made[0], np.nan)), *outputs[1:]])


@given(st.integers(0, 1000), st.sampled_from([(1, 1), (3, 3), (2, 4, 4)]), st.sampled_from(["float32", "complex64"]))
def test_eigenvectors_of_any_phase_are_those_of_their_matrix_and_of_no_other(seed, shape, dtype):
    matrix, generator = drawn(seed, shape, dtype, 1.0), np.random.default_rng(seed)
    found = [(factors.eigen, *np.linalg.eig(matrix))]
    found += [(factors.of_lower, *np.linalg.eigh(matrix)), (factors.of_upper, *np.linalg.eigh(matrix, UPLO="U"))]
    for check, values, vectors in found:
        made = [Tensor.of(values), Tensor.of(vectors * signed(generator, vectors))]
        assert factors.of(check, matrix)(made)
        assert not factors.of(check, matrix)([Tensor.of(values + 1), made[1]])
        assert not factors.of(check, matrix)([made[0], Tensor.of(np.zeros_like(vectors))])
    turned = factors.of(factors.eigen, np.eye(2, dtype="f4"))
    basis = np.float32([[3, 4], [4, -3]]) / np.float32(5)
    assert turned([Tensor.of(np.ones(2, "f4")), Tensor.of(basis)]), "of equal values any basis is one"


def test_nothing_is_asked_of_a_matrix_that_is_not_known_or_finite():
    outputs: list[Value] = [Tensor.of(np.zeros((2, 2), "f4")), Tensor.of(np.zeros((2, 2), "f4"))]
    assert factors.of(factors.qr, None)(outputs)
    assert factors.of(factors.qr, np.float32([[1, np.inf], [0, 1]]))(outputs)
    assert factors.of(factors.qr, np.zeros((0, 2), "f4"))(outputs)


@pytest.mark.parametrize(
    ("library", "operator", "name", "extra", "made"),
    [
        ("keras", "keras.ops.svd", "x", {}, np.linalg.svd),
        ("keras", "keras.ops.qr", "x", {}, np.linalg.qr),
        ("keras", "keras.ops.eigh", "x", {}, np.linalg.eigh),
        ("keras", "keras.ops.eig", "x", {}, np.linalg.eig),
        ("torch", "torch.linalg.svd", "A", {}, np.linalg.svd),
        ("torch", "torch.linalg.eigh", "A", {"UPLO": "U"}, lambda x: np.linalg.eigh(x, UPLO="U")),
        ("torch", "torch.linalg.eig", "A", {}, np.linalg.eig),
    ],
)
def test_what_is_no_decomposition_of_the_input_is_not_excused(library, operator, name, extra, made):
    matrix = drawn(0, (3, 3), "float32", 1.0)
    expected: list[Value] = [Tensor.of(np.asarray(x)) for x in made(matrix)]
    call = Instance(library, operator, extra, (Operand(name, Tensor.of(matrix)),), (), {})
    why = libraries.get(library).undefined(call, expected)
    assert isinstance(why, Undefined)
    place = 1 if "eig" in operator else 0  # the first has vectors of it, elsewhere the second
    array = expected[place].array()  # type: ignore[union-attr]
    broken = [Tensor.of(array[..., ::-1].copy()) if n == place else x for n, x in enumerate(expected)]
    assert undefined.mended(why, expected, broken) == broken
    other = 2 if "svd" in operator else 1 if "qr" in operator else None
    flipped = list(expected)
    flipped[place] = Tensor.of(-array)
    if other is not None:
        flipped[other] = Tensor.of(-expected[other].array())  # type: ignore[union-attr]
    assert undefined.mended(why, expected, flipped) == expected
