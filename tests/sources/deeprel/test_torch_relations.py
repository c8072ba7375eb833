"""PyTorch's own operators: what is related, and what one operator's arguments are to another."""

from __future__ import annotations

import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Named, Tensor
from opera.sources.deeprel import candidates, driver, torch_apis
from opera.sources.deeprel.apis import Unusable
from opera.sources.deeprel.driver import express
from opera.sources.deeprel.plans import Pair


def tensor() -> Tensor:
    import numpy as np

    return Tensor.of(np.array([[-2.0, 0.5], [1.5, -0.25]], dtype="float32"))


def function(operator: str, args: list[str], **params: object) -> Instance:
    call = {"args": args, "kwargs": [name for name in params if name not in args]}
    return Instance("torch", operator, params, (Operand("input", tensor()),), (), {"kind": "function", "call": call})


@pytest.fixture(scope="module")
def known() -> dict[str, list[str]]:
    found = candidates.candidates(torch_apis.apis())
    return {operator: [name for name, _ in partners] for operator, partners in found.items()}


def pair(source: str, target: str) -> Pair:
    apis = {name: torch_apis._api(name) for name in (source, target)}
    found = driver._pair(torch_apis, apis[source], apis[target])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("operator", "partner"),
    [
        ("torch.nn.ReLU", "torch.nn.functional.relu"),
        ("torch.abs", "torch.absolute"),
        ("torch.Tensor.clip_", "torch.clamp"),
        ("torch.linalg.inv", "torch.inverse"),
        ("torch.nn.MaxPool2d", "torch.nn.AvgPool2d"),
    ],
)
def test_candidates_come_by_name_by_reference_and_by_description(
    known: dict[str, list[str]], operator: str, partner: str
) -> None:
    assert partner in known[operator]
    assert operator not in known[operator]


@pytest.mark.parametrize(
    ("instance", "partner", "same"),
    [
        (function("torch.abs", ["input"]), "torch.absolute", True),
        (function("torch.nn.functional.relu", ["input"], inplace=False), "torch.nn.ReLU", True),
        (function("torch.nn.functional.hardtanh", ["input"]), "torch.clamp", True),
        (function("torch.clamp", ["input"], min=-1.0), "torch.clamp_min", True),
        (function("torch.sum", ["input", "dim"], dim=1), "torch.mean", False),
        (function("torch.sum", ["input", "dim", "arg2"], dim=1, arg2=True), "torch.Tensor.sum", True),
        (function("torch.nn.functional.softmax", ["input"], dim=1, _stacklevel=3), "torch.nn.Softmax", True),
    ],
)
def test_partners_take_each_others_invocations(instance: Instance, partner: str, same: bool) -> None:
    torch_apis.prepare()
    given = torch_apis.arguments(instance)
    expected = torch_apis.call(instance.operator, torch_apis.arguments(instance))
    found = torch_apis.call(partner, express(torch_apis, pair(instance.operator, partner), given))
    assert torch_apis.agree(expected, found) is same


def test_what_a_partner_cannot_be_told_is_not_tried() -> None:
    instance = function("torch.clamp", ["input"], min=-1.0, max=1.0)
    with pytest.raises(Unusable, match="lacks"):
        express(torch_apis, pair("torch.clamp", "torch.clamp_min"), torch_apis.arguments(instance))


def test_agreement_must_tell_something() -> None:
    import torch

    x = torch.tensor([0.0, 1.0])
    assert torch_apis.telling([x + 1], {"input": x})
    assert not torch_apis.telling([x * 0], {"input": x})
    assert not torch_apis.telling([x.clone()], {"input": x})
    assert not torch_apis.telling([torch.empty(0)], {"input": x})
    assert not torch_apis.agree([x], [x.double()])
    assert torch_apis.agree([torch.tensor([float("nan"), 1.0])], [torch.tensor([float("nan"), 1.0 + 1e-6])])


def test_published_records_find_their_operators() -> None:
    assert torch_apis.find("torch.nn.Conv2d") == "torch.nn.Conv2d"
    with pytest.raises(Unusable, match="no longer"):
        torch_apis.find("torch.lstsq_of_old")
    with pytest.raises(Unusable):
        torch_apis.find("os.system")
    bound = torch_apis.bind("torch.nn.Linear", [3, 4], {"dtype": Named("dtype", "float64")}, [tensor()])
    assert (
        bound["in_features"] == 3 and str(bound["dtype"]) == "torch.float64" and bound["forward.input"].shape == (2, 2)
    )
    with pytest.raises(Unusable, match="class"):
        torch_apis.bind("torch.nn.Linear", [3, 4], {}, None)
