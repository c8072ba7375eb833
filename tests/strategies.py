"""Hypothesis strategies for values and instances."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand
from opera.programs.values import CONTAINERS, Message, Named, Optional, RandomTensor, Sequence, Tensor

SHAPES = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Tensors of every dtype, with arbitrary bits."""
    dtype, shape = draw(st.sampled_from(sorted(CONTAINERS))), draw(SHAPES)
    count = math.prod(shape)
    if dtype == "string":
        return Tensor(dtype, shape, msgspec.msgpack.encode(draw(st.lists(st.binary(), min_size=count, max_size=count))))
    size = count * np.dtype(CONTAINERS[dtype]).itemsize
    return Tensor(dtype, shape, draw(st.binary(min_size=size, max_size=size)))


RANDOM = st.builds(
    RandomTensor, st.sampled_from(["bfloat16", "float16", "float32", "float64"]), SHAPES, st.integers(0, 2**63 - 1),
    st.floats(-100, 0), st.floats(0, 100),
) | st.builds(
    RandomTensor, st.sampled_from(["int8", "int16", "int32", "int64"]), SHAPES, st.integers(0, 2**63 - 1),
    st.integers(-128, 0).map(float), st.integers(0, 127).map(float),
) | st.builds(
    RandomTensor, st.sampled_from(["bool", "uint8", "uint16", "uint32", "uint64"]), SHAPES, st.integers(0, 2**63 - 1),
    st.just(0.0), st.integers(0, 1).map(float),
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary()
NAMES = st.text(min_size=1, max_size=20)
LEAVES = (
    SCALARS
    | tensors()
    | RANDOM
    | st.builds(Message, NAMES, st.binary())
    | st.builds(Named, NAMES, NAMES)
    | st.builds(Sequence, NAMES, st.lists(tensors(), max_size=3).map(tuple))
    | st.builds(Optional, NAMES, st.none() | tensors())
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(SCALARS.filter(lambda x: x == x), inner, max_size=3)
    ),
    max_leaves=8,
)
INSTANCES = st.builds(
    Instance,
    library=NAMES,
    operator=NAMES,
    params=st.dictionaries(NAMES, VALUES, max_size=3),
    inputs=st.lists(st.builds(Operand, NAMES, st.none() | tensors() | RANDOM), max_size=3).map(tuple),
    outputs=st.lists(NAMES, max_size=2).map(tuple),
    context=st.dictionaries(NAMES, VALUES, max_size=2),
)
