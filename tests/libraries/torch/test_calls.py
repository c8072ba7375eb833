"""Operators of PyTorch found, their arguments by name, and the call."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opera.errors import CorpusError  # noqa: E402
from opera.libraries.calls import Dead, Unusable  # noqa: E402
from opera.libraries.torch import api as torch_api  # noqa: E402
from opera.libraries.torch import calls  # noqa: E402
from opera.programs.values import Named, Tensor  # noqa: E402

X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


def value(item: object) -> Tensor:
    import numpy as np

    return Tensor.of(np.asarray(item))


def test_operators_are_found_by_name_and_by_path() -> None:
    assert calls.find("torch.nn.functional.relu") == "torch.nn.functional.relu"
    assert calls.find("torch.nn.modules.conv.Conv2d") == "torch.nn.Conv2d"
    assert calls.find("torch.nn.conv2d", loosely=True) == "torch.nn.Conv2d"
    with pytest.raises(Dead, match="no longer"):
        calls.find("torch.nn.conv2d")


@pytest.mark.parametrize(
    "title", ["torch.rfft", "os.system", "torch.linalg", "torch.hub.load", "torch.allclose", "torch"]
)
@pytest.mark.parametrize("loosely", [False, True])
def test_what_is_no_operator_is_not_found(title: str, loosely: bool) -> None:
    with pytest.raises(Dead):
        calls.find(title, loosely=loosely)


def test_dtypes_of_all_libraries_are_pytorchs_wherever_they_stand() -> None:
    assert calls.decode(Named("dtype", "float16")) is torch.float16
    assert calls.decode([Named("torch.dtype", "int8"), (Named("dtype", "int8"),)]) == [torch.int8, (torch.int8,)]
    assert calls.decode({"a": [1, None]}) == {"a": [1, None]}
    with pytest.raises(CorpusError):
        calls.decode(Named("dtype", "no_such_dtype"))


def test_what_is_seen_can_be_called_again() -> None:
    seen = calls.instance("torch.clamp", (X,), {"min": -1.0})
    given = calls.arguments(seen, ["input", "min", "max"])
    assert torch.equal(given["input"], X) and given["min"] == -1.0
    assert torch.equal(calls.call("torch.clamp", given, torch_api.formals("torch.clamp")), X.clamp(min=-1.0))


def test_arguments_without_a_name_have_that_of_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_api, "formals", lambda operator: ["input", "dim"])
    seen = calls.instance("torch.sum", (X, 1, True), {})
    assert seen.context["call"] == {"args": ["input", "dim", "arg2"], "kwargs": []}
    assert calls.arguments(seen, ["input", "dim", "keepdim"])["keepdim"] is True
    for known in (["input", "dim"], ["input", "dim", "dim"]):  # there is none, or it has another argument
        with pytest.raises(Unusable, match="without a name"):
            calls.arguments(seen, known)


def test_methods_properties_and_modules_are_called() -> None:
    assert torch.equal(calls.call("torch.Tensor.permute", {"input": X, "dims": (1, 0)}, ["input", "*dims"]), X.t())
    assert torch.equal(calls.call("torch.Tensor.T", {"input": X}, ["input"]), X.t())
    given = {"p": 0.5, "forward.input": X, "training": False}
    assert torch.equal(calls.call("torch.nn.Dropout", given, ()), X)
    double = {"in_features": 2, "out_features": 3, "forward.input": X.double()}
    made = calls.call("torch.nn.Linear", double, (), lambda module, called: module.to(called[0].dtype))
    assert made.dtype is torch.float64 and made.shape == (2, 3)


def test_values_are_bound_to_parameters() -> None:
    found = calls.bind("torch.nn.Linear", [3, 4], {"dtype": Named("dtype", "float64")}, [value(X)], ())
    assert (found["in_features"], found["out_features"], found["dtype"]) == (3, 4, torch.float64)
    assert torch.equal(found["forward.input"], X)
    found = calls.bind("torch.Tensor.permute", [value(X), 1, 0], {}, None, ["input", "*dims"])
    assert found["dims"] == [1, 0]
    with pytest.raises(Unusable, match="more positional"):
        calls.bind("torch.abs", [value(X), 1], {}, None, ["input"])
    with pytest.raises(Unusable, match="class"):
        calls.bind("torch.nn.Linear", [3, 4], {}, None, ())
