from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from opera.errors import CorpusError
from opera.libraries.torch import api as torch_api

NAMES = {
    "torch.nn.functional.conv2d": F.conv2d,
    "torch.nn.functional.relu": F.relu,
    "torch.nn.functional.hardswish": F.hardswish,
    "torch.nn.functional.max_pool2d": F.max_pool2d,
    "torch.linalg.svd": torch.linalg.svd,
    "torch.special.expit": torch.special.expit,
    "torch.fft.rfft": torch.fft.rfft,
    "torch.matmul": torch.matmul,
    "torch.einsum": torch.functional.einsum,
    "torch.Tensor.add_": torch.Tensor.add_,
    "torch.Tensor.__getitem__": torch.Tensor.__getitem__,
    "torch.Tensor.T": torch.Tensor.T,
    "torch.nn.Conv2d": torch.nn.Conv2d,
    "torch.arange": torch.arange,
}


WITHOUT_FORMALS = {"torch.arange", "torch.randint_like", "torch.scalar_tensor"}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_resolved_to_what_it_was_taken_from(name: str) -> None:
    assert torch_api.public_name(NAMES[name]) == name
    assert torch_api.resolve(name) is NAMES[name]


def test_every_operator_has_one_name_a_kind_and_formals() -> None:
    operators = torch_api.operators()
    assert len(operators) > 1300
    for name in operators:
        assert torch_api.public_name(torch_api.resolve(name)) == name
        assert torch_api.kind(name) in ("function", "method", "property", "module")
        assert torch_api.formals(name) or name in WITHOUT_FORMALS


def test_the_getter_of_a_property_is_known_by_its_name() -> None:
    assert torch_api.public_name(torch.Tensor.mT.__get__) == "torch.Tensor.mT"
    assert torch_api.public_name(torch.Tensor.shape.__get__) is None
    assert torch_api.public_name([]) is None


@pytest.mark.parametrize(
    "name",
    [
        "os.system", "torch.load", "torch.save", "torch.hub.load", "torch.Tensor.__class__", "torch.Tensor.__reduce_ex__",
        "torch.Tensor.__setstate__", "torch.Tensor.__init__", "torch.nn.functional.os", "torch.nn.functional.__loader__",
        "torch.serialization.pickle", "torch.overrides.types.FunctionType", "torch.from_file", "torch.compile", "torch.ops",
        "torch.classes", "torch.Tensor.map_", "torch.Tensor.apply_", "torch.Tensor.backward", "torch.Tensor.numpy",
        "torch.nn.Module", "torch.nn.Sequential", "torch.nn.LazyLinear", "torch.jit.load", "torch.Tensor.T.__get__",
        "torch.Tensor.set_", "builtins.eval", "torch", "",
        "torch.", "torch.Tensor", "torch.vmap", "torch.cond", "torch.set_num_threads", "torch.manual_seed",
    ],
)  # fmt: skip
def test_names_outside_the_list_are_refused(name: str) -> None:
    with pytest.raises(CorpusError):
        torch_api.resolve(name)
    with pytest.raises(CorpusError):
        torch_api.formals(name)


def test_no_formal_that_is_given_by_its_name_alone_stands_where_something_else_is_given_by_its_place() -> None:
    """`torch.prod(x, 0)` was told as `dtype=0`: torch.overrides lists what is the same in all overloads."""
    wrong = {}
    for name in torch_api.operators():
        short = name.rpartition(".")[2]
        known = name in (f"torch.{short}", f"torch.Tensor.{short}")
        overloads = [x.arguments for x in torch._C._jit_get_schemas_for_operator(f"aten::{short}")] if known else []
        for place, formal in enumerate(torch_api.formals(name)[:3] if overloads else ()):
            others = [x[place].name for x in overloads if place < len(x) and not x[place].kwarg_only]
            by_name = [x.kwarg_only for y in overloads for x in y if x.name == formal]
            if place and others and by_name and all(by_name):
                wrong[name] = formal, others
    assert not wrong


def test_formals() -> None:
    assert torch_api.formals("torch.nn.functional.conv2d")[:3] == ["input", "weight", "bias"]
    assert torch_api.formals("torch.Tensor.add")[:2] == ["input", "other"]
    assert torch_api.formals("torch.nn.functional.interpolate")[:2] == ["input", "size"]
    assert torch_api.formals("torch.nn.functional.max_pool2d")[:2] == ["input", "kernel_size"]
    assert torch_api.formals("torch.block_diag") == ["*tensors"]
    assert torch_api.formals("torch.Tensor.mT") == ["input"]
    assert torch_api.formals("torch.nn.Conv2d") == ["input"]
    assert torch_api.constructor_formals("torch.nn.Conv2d")[:3] == ["in_channels", "out_channels", "kernel_size"]
    with pytest.raises(CorpusError):
        torch_api.constructor_formals("torch.add")


def test_what_is_denied_says_why() -> None:
    assert torch_api.denied("torch.Tensor.size") == "it reads facts of a tensor"
    assert torch_api.denied("torch.Tensor.item") == "it leaves PyTorch"
    assert torch_api.denied("torch.nn.functional.conv2d") is None
    names = [torch_api.public_name(f) for f in (torch.Tensor.size, torch.Tensor.backward)]
    assert names == ["torch.Tensor.size", "torch.Tensor.backward"]


def test_formals_that_are_stated_are_names_that_torch_takes() -> None:
    """What torch.overrides says of some is taken by none: `logsumexp(input, names)` was told where its axes are meant."""
    unlike = []
    for name, stated in torch_api.instrumentation().formals.items():
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name.rpartition('.')[2]}")
        taken = {x.name for schema in schemas for x in schema.arguments} | {"input"}  # which is `self`
        unlike += [f"{name}: {x}" for x in stated if schemas and x.lstrip("*") not in taken]
    assert unlike == []
    assert torch_api.formals("torch.Tensor.logsumexp") == ["input", "dim", "keepdim"]


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        ("torch.amin", ["input", "dim", "keepdim"]),  # its override ends with `dim`
        ("torch.Tensor.argmax", ["input", "dim", "keepdim"]),
        (
            "torch.convolution",
            [*["input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups"]],
        ),
        ("torch.Tensor.fill_diagonal_", ["input", "fill_value", "wrap"]),
        ("torch.Tensor.uniform_", ["input", "from_", "to"]),  # `from` is no name that a call can give
        ("torch.add", ["input", "other"]),  # `alpha` is given by name alone
        ("torch.dsplit", ["input", "indices_or_sections"]),  # schemas do not agree
    ],
)
def test_what_overrides_leave_out_or_misname_is_named_as_pytorchs_schemas_have_it(operator, names) -> None:
    assert torch_api.formals(operator) == names


def test_of_names_of_one_callable_that_of_an_aten_operator_counts():
    assert {torch_api.public_name(x) for x in (torch.mm, torch.spmm, torch.dsmm)} == {"torch.mm"}
    assert torch_api.public_name(torch.Tensor.__neg__) == "torch.Tensor.neg"
    assert torch_api.resolve("torch.dsmm") == torch.mm and "torch.dsmm" not in torch_api.operators()
