"""What the workers of PyTorch's frontends import before they are forked."""

import json
import os
import subprocess
import sys
from typing import Any

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
import opera.libraries.torch.preload
assert utils._collect_all_valid_cia_ops is not original
assert program.run_decompositions().graph_module.code == before
assert utils._collect_all_valid_cia_ops() == original()
library = torch.library.Library("opera_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
assert torch.ops.opera_test.twice.default in utils._collect_all_valid_cia_ops()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_what_replaces_decompositions_is_kept_and_taken_away():
    """Kernels and rules are those of PyTorch's own, inside and afterwards, the first time and the second."""
    code = """
import torch
from torch._subclasses.fake_impls import op_implementations_dict as rules
from torch.export import exported_program
own = exported_program._override_composite_implicit_decomp
x = torch.ones(2, 2)
class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.nn.functional.linear(a, b) + torch.linalg.norm(a)
program = torch.export.export(Model(), (x, x))
asked = []
def listening(name):
    def heard(by):
        asked.append(dict(by))
        return name(by)
    return heard
exported_program._override_composite_implicit_decomp = listening(own)
program.run_decompositions()
replaced = asked[-1]
asked.clear()
import opera.libraries.torch.preload
kept = exported_program._override_composite_implicit_decomp
def held():
    return {op: (list(op.py_kernels), op in rules) for op in replaced}
before = held()
with own(replaced):
    inside = held()
ruled = torch.ops.aten.linear.default
rules[ruled] = rule = lambda *_: None  # one of PyTorch's own stands, and goes with the others
with kept({ruled: replaced[ruled]}):
    assert rules[ruled] is rule
with kept({ruled: replaced[ruled]}):
    assert rules[ruled] is not rule
assert held() == before
for n in range(3):
    program.run_decompositions()
    assert held() == before
    with kept(replaced):
        assert held() == inside != before
    assert held() == before
assert max(map(len, asked)) > 400 and not asked[-1], [len(x) for x in asked]  # what is known is asked no more
with kept({**replaced, torch.ops.aten.linear.default: len}):
    assert torch.ops.aten.linear.default.py_kernels[torch._C.DispatchKey.CompositeImplicitAutograd] is len
assert list(asked[-1]) == [torch.ops.aten.linear.default]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


PATCHED = {
    "torch._ops.Callable",
    "torch._export.utils._collect_all_valid_cia_ops",
    "torch.export.decomp_utils._collect_all_valid_cia_ops",
    "torch.export.exported_program._collect_all_valid_cia_ops",
    "torch.export.exported_program._override_composite_implicit_decomp",
    "torch.onnx._internal.exporter._registration.ONNXRegistry.from_torchlib",
    "torch.onnx._internal.exporter._decomp.create_onnx_friendly_decomposition_table",
}
PROBE = """
import hashlib, json, sys
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
import torch
for name in ("torch.export.decomp_utils", "torch.onnx._internal.exporter._core"):
    import_module(name)

def held():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("torch"):
            for key, item in list(vars(module).items()):
                found[f"{name}.{key}"] = item if callable(item) else None
                if isinstance(item, type) and item.__module__ == name:
                    found |= {f"{name}.{key}.{inner}": value for inner, value in vars(item).items()}
    return found

before = held()
from opera.libraries.torch import calls, library
from opera.programs.program import Captured, Provenance

x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
made = {}
for operator, *args in (
    ("torch.nn.functional.linear", x, x),
    ("torch.softmax", x, 1),
    ("torch.sort", x),
    ("torch.linalg.norm", x),
    ("torch.nn.functional.interpolate", x[None, None], None, 2),
    ("torch.nn.functional.batch_norm", x, x[0], x[0]),
):
    folder = Path(mkdtemp(prefix=operator, dir=sys.argv[1]))
    captured = Captured(calls.instance(operator, args, {}), Provenance("a", "b", "c"))
    manifest = library.wrap(captured, "t", folder)
    program = library.live(manifest, folder).program().run_decompositions()
    ran = program.module()(*library.live(manifest, folder).args)
    onnx = (folder / library.export(manifest, folder, "onnx").file).read_bytes()
    made[operator] = [program.graph_module.code, str(program.graph_signature), str(ran), hashlib.sha256(onnx).hexdigest()]
after = held()
print(json.dumps({"replaced": [name for name in before if after.get(name) is not before[name]], "made": made}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process says that may patch PyTorch (`0`), and one that may not (`1`)."""
    pytest.importorskip("onnxscript")
    found = {}
    for value in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROBE, str(tmp_path_factory.mktemp("made"))],
            env=os.environ | {"OPERA_UNPATCHED": value}, check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[value] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.full
def test_nothing_of_pytorch_is_replaced_where_it_is_to_stay_as_it_is(told: dict[str, Any]) -> None:
    """What replaces itself when it is first used does so in both."""
    with_patches, without = (set(told[value]["replaced"]) for value in ("0", "1"))
    assert with_patches - without == PATCHED
    assert without <= with_patches


@pytest.mark.full
def test_quicker_functions_change_no_result(told: dict[str, Any]) -> None:
    assert told["0"]["made"] == told["1"]["made"]
