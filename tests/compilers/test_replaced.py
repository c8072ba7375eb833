"""Which operator of several TVM gets wrong: real programs of PyTorch's, in which one converter is wrong, or is made so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from opera.compilers.tvm import replaced
from opera.programs.values import Tensor

X = torch.tensor([[0.5, 1.0], [2.0, 3.0]])


def culprit(function: Callable[[torch.Tensor], Any]) -> str:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    program = torch.export.export(Module(), (X,)).run_decompositions()
    node = replaced.culprit(program, [Tensor.of(X.numpy())])
    return "" if node is None else str(node.target.__name__)


def test_an_operator_is_found_whose_neighbour_is_called_before_and_after_it() -> None:
    assert culprit(lambda x: (functional.dropout(x.mm(x), 1.0) + x).mm(x)) == "native_dropout.default"


def test_nothing_is_found_where_all_is_right_two_are_wrong_or_numbers_are_drawn() -> None:
    assert culprit(lambda x: x.exp().mm(x)) == ""
    assert culprit(lambda x: functional.dropout(x, 1.0) + functional.dropout(x.sin(), 1.0)) == ""
    assert culprit(lambda x: functional.dropout(x, 0.5).exp()) == ""


def test_a_converter_that_is_made_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, node: Any) -> Any:
        return self.block_builder.emit(relax.op.negative(self.env[node.args[0]]))

    monkeypatch.setattr(ExportedProgramImporter, "_cumsum", wrong)
    assert culprit(lambda x: torch.cumsum(x.exp(), 0).sum()) == "cumsum.default"
