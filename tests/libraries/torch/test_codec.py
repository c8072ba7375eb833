from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import SHAPES, tensors

from opera.errors import CorpusError
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch.codec import NotRepresentable, decode, encode, overlapping, tensor, to_torch
from opera.programs.values import Named, RandomTensor, Tensor

DTYPES = torch_values.DTYPES


@given(tensors().filter(lambda x: x.dtype in DTYPES))
def test_a_tensor_comes_back_bit_for_bit(value: Tensor) -> None:
    if value.dtype == "bool":
        value = Tensor.of(value.array().view("uint8") % 2 == 1)
    made = to_torch(value)
    assert str(made.dtype) == f"torch.{value.dtype}" and tuple(made.shape) == value.shape
    assert tensor(made) == value


ARGUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.just(...)
    | st.builds(slice, *[st.none() | st.integers(-(2**60), 2**60)] * 3)
    | st.sampled_from(
        [
            torch.float8_e5m2,
            torch.bool,
            torch.device("cpu"),
            torch.strided,
            torch.channels_last,
            torch.nn.functional.relu,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(ARGUMENTS)
def test_an_argument_comes_back(argument: object) -> None:
    assert decode(encode(argument)) == argument


def test_what_looks_alike_stays_apart() -> None:
    assert encode(torch.Size([1, 2])) == (1, 2)
    assert encode([1, 2]) == [1, 2]
    assert type(encode(np.float64(1.5))) is float and type(encode(np.int64(3))) is int
    assert encode(torch.return_types.max((1, 2))) == (1, 2)
    assert math.isnan(decode(encode(complex("nan+1j"))).real)


def test_views_are_resolved_and_layouts_kept() -> None:
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    assert to_torch(tensor(x.conj())).tolist() == [1 - 2j, 3 + 1j]
    assert to_torch(tensor(x.conj().imag)).tolist() == [-2.0, 1.0]
    y = torch.arange(6.0).reshape(2, 3).t()
    back = to_torch(tensor(y), y.stride())
    assert torch.equal(back, y) and back.stride() == y.stride()
    assert to_torch(tensor(torch.tensor(3.0))).shape == ()


def test_tensors_stay_resizable() -> None:
    x = torch.arange(3.0)
    tensor(x), tensor(x.to(torch.uint16))
    x.resize_(1000)
    to_torch(Tensor.of(np.zeros(3))).resize_(1000)
    assert x.shape == (1000,)


@given(SHAPES, st.lists(st.integers(-1, 9), max_size=4).map(tuple))
def test_a_layout_is_refused_or_obeyed(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    value = Tensor.of(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
    try:
        made = to_torch(value, strides)
    except CorpusError:
        return
    assert made.stride() == strides and tensor(made) == value


def test_layouts_that_repeat_elements_or_need_a_lot_of_memory_are_refused() -> None:
    assert overlapping((3, 3), (0, 1)) and overlapping((3, 3), (2, 1)) and not overlapping((3, 3), (1, 3))
    assert not overlapping((1, 3), (0, 1))
    for strides in ((0,), (1 << 40,), (1, 1), (-1,)):
        with pytest.raises(CorpusError):
            to_torch(Tensor.of(np.zeros(3)), strides)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint16", "float16", "bfloat16", "float32"])
def test_large_tensors_are_described_by_their_range(dtype: str) -> None:
    large = torch.ones(40, 1000, dtype=getattr(torch, dtype))
    large[3, 4] = 0
    described = tensor(large)
    assert described == RandomTensor(dtype, (40, 1000), 40_000, 0.0, 1.0)
    made = to_torch(described)
    assert made.dtype == large.dtype
    assert ((made.double() >= 0) & (made.double() <= 1)).all()
    assert tensor(torch.zeros(1, dtype=large.dtype).expand(1 << 30)) == RandomTensor(
        dtype, (1 << 30,), 1 << 30, 0.0, 0.0
    )


def test_large_tensors_of_odd_values() -> None:
    odd = torch.full((1 << 15,), math.nan)
    assert tensor(odd) == RandomTensor("float32", (1 << 15,), 1 << 15, 0.0, 1.0)
    odd[:2] = torch.tensor([3.0, math.inf])
    assert tensor(odd) == RandomTensor("float32", (1 << 15,), 1 << 15, 3.0, 3.0)
    extreme = torch.full((1 << 15,), -(2**63))
    assert tensor(extreme) == RandomTensor("int64", (1 << 15,), 1 << 15, -(2.0**53), -(2.0**53))
    assert isinstance(tensor(torch.zeros(1 << 15, dtype=torch.complex64).conj()), Tensor)


class Wrapped(torch.Tensor):
    pass


UNREPRESENTABLE = {
    "tensor subclass": lambda: torch.ones(2).as_subclass(Wrapped),
    "tensor that is not dense": lambda: torch.ones(2).to_sparse(),
    "quantized tensor": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "device other than cpu": lambda: torch.ones(2, device="meta"),
    "dtype torch.complex32": lambda: torch.zeros(2, dtype=torch.complex32),
    "tensor above the size limit": lambda: torch.zeros(1).expand(1 << 31),
    "large tensor of dtype complex64": lambda: torch.zeros(1, dtype=torch.complex64).expand(1 << 20),
}


@pytest.mark.parametrize("category", UNREPRESENTABLE)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_cannot_be_represented_say_why(category: str) -> None:
    item = UNREPRESENTABLE[category]()
    with pytest.raises(NotRepresentable) as caught:
        tensor(item)
    assert str(caught.value) == category


def test_tensors_of_a_transform_are_not_looked_into() -> None:
    seen: list[str] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(NotRepresentable) as caught:
            tensor(x)
        seen.append(str(caught.value))
        return x

    torch.vmap(look)(torch.ones(2, 2))
    assert seen == ["tensor of a function transform"]


def test_arguments_that_cannot_be_represented_say_why() -> None:
    loop: list[object] = []
    loop.append(loop)
    for item, category in (
        (torch.Generator(), "generator"), (lambda x: x, "callable that is no operator"), (loop, "container nested"),
        (torch.device("meta"), "device other than cpu"), (torch.nn.ReLU(), "module"), (np.ones(2), "NumPy array"),
        ({(1, 2): 3}, "dictionary"), (slice(torch.tensor(1), None), "slice"), (object(), "value of type builtins.object"),
        (torch.load, "callable that is no operator"), (range(3), "value of type builtins.range"),
    ):  # fmt: skip
        with pytest.raises(NotRepresentable, match=category):
            encode(item)


def test_names_of_others_are_not_trusted() -> None:
    for kind, name in (
        ("torch.callable", "os.system"), ("torch.callable", "torch.load"), ("torch.dtype", "load"), ("torch.dtype", "Tensor"),
        ("torch.device", "cpu; rm"), ("builtins", "eval"), ("complex", "__import__('os')"), ("slice", "1:2"), ("module", "os"),
        ("torch.input", "absent"),
    ):  # fmt: skip
        with pytest.raises(CorpusError):
            decode(Named(kind, name))
    with pytest.raises(CorpusError):
        to_torch(Tensor("int4", (1,), b"\0"))


def test_inputs_are_put_in_their_places() -> None:
    x = torch.ones(2)
    found = decode([Named("torch.input", "tensors.0"), (1, Named("torch.input", "tensors.0"))], {"tensors.0": x})
    assert found[0] is x and found[1][1] is x
    assert torch_values.MAX_STORED >= torch_values.STORED
