"""What PyTorch calls inside a call: submodules and functions, with what they were given; PyTorch is left as it was."""

from __future__ import annotations

import torch

from opera.libraries.torch import inner, library, modules
from opera.libraries.torch import wrap as torch_module
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

SEEN = Provenance("suite", "file", "test")


def encoder() -> Instance:
    source = Operand("src", Tensor.of(torch.arange(8.0).reshape(1, 2, 4).numpy()))
    params = {"d_model": 4, "nhead": 2, "dim_feedforward": 3}
    given = {"init": {"args": list(params), "kwargs": []}, "call": {"args": ["src"], "kwargs": []}}
    operator = "torch.nn.TransformerEncoderLayer"
    return Instance("torch", operator, params, (source,), (), {"kind": "module", "training": False, **given})


def test_submodules_and_functions_are_calls_of_their_own_the_innermost_first(tmp_path) -> None:
    before = torch.nn.Module.__call__, torch.nn.Module.__init__, torch.nn.functional.has_torch_function_unary
    found = inner.inner(encoder())
    names = [x.operator for x in found]
    attention = "torch.nn.functional.scaled_dot_product_attention"
    outer = [attention, "torch.nn.functional.multi_head_attention_forward", "torch.nn.MultiheadAttention"]
    assert [x for x in names if x in outer] == outer
    linear = next(x for x in found if x.operator == "torch.nn.Linear")
    assert (linear.params["in_features"], linear.inputs[0].value.shape) == (3, (1, 2, 3))
    library.wrap(Captured(linear, SEEN), "a" * 20, tmp_path / "linear")
    now = torch.nn.Module.__call__, torch.nn.Module.__init__, torch.nn.functional.has_torch_function_unary
    assert now == before and torch.overrides._get_current_function_mode() is None
    torch.nn.Linear(2, 3)  # a class whose __new__ was another one for a while makes its objects still


def test_what_a_call_was_given_is_what_is_told() -> None:
    normalised = next(x for x in inner.inner(encoder()) if x.operator == "torch.nn.LayerNorm" and x.inputs)
    assert normalised.inputs[0].value.shape == (1, 2, 4) and normalised.context["training"] is False


def test_constructors_are_seen_as_long_as_they_are_hooked() -> None:
    known = modules.Constructors(torch._C.DisableTorchFunction)
    with known.hooked():
        seen = torch.nn.Linear(2, 3)
    unseen = torch.nn.Linear(2, 3)
    assert known.of(seen).params["out_features"] == 3
    assert id(unseen) not in known._known


def test_what_the_exporter_refuses_is_made_of_calls_still(monkeypatch) -> None:
    def refused(_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(torch_module.Live, "program", refused)
    assert "torch.nn.Linear" in [x.operator for x in library.expanded(encoder())]
