"""What the workers of PyTorch's frontends import before they are forked."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")


def test_operators_are_remembered_until_one_is_registered():
    """In a process of its own, so that nothing else has replaced the listing."""
    code = """
import torch
from torch._export import utils
x = torch.ones(2, 2)
class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.nn.functional.linear(a, b) + torch.linalg.norm(a)
program = torch.export.export(Model(), (x, x))
original, before = utils._collect_all_valid_cia_ops, program.run_decompositions().graph_module.code
import opera.libraries.torch_preload
assert utils._collect_all_valid_cia_ops is not original
assert program.run_decompositions().graph_module.code == before
assert utils._collect_all_valid_cia_ops() == original()
library = torch.library.Library("opera_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
assert torch.ops.opera_test.twice.default in utils._collect_all_valid_cia_ops()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
