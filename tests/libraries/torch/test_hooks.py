"""Capture of PyTorch, in a process of its own for each script: its hooks last as long as the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opera.capture import sites
from opera.programs.program import Instance, parse_captured
from opera.programs.values import Named, RandomTensor, Tensor

HARNESS = """
import json, os, sys
from pathlib import Path
import torch
from opera import resources
from opera.libraries.torch import hooks as capture
from opera.capture.recorder import Recorder

torch.set_num_threads(1)
points = resources.declaration("instrumentation", "torch")["points"]

def run(script, spool, install):
    recorder = Recorder("demo", sited=True)
    if install:
        capture.install(recorder, points)
    recorder.begin("demo.py", spool, spool.with_name(spool.name + ".sites"))
    names = {"__name__": "demo", "torch": torch, "F": torch.nn.functional, "results": []}
    error = ""
    with recorder.watching():
        try:
            exec(compile(script.read_text(), str(script), "exec"), names)
        except BaseException as caught:
            error = type(caught).__name__
    recorder.close()
    modes = torch.overrides._get_current_function_mode_stack()
    return {"left_out": recorder.left_out, "error": error, "modes": len(modes),
        "results": [repr(x) for x in names["results"]], "random": torch.rand(3).tolist()}

for script in map(Path, sys.argv[1:]):
    for install in (True, False):
        if os.fork() == 0:
            name = "on" if install else "off"
            try:
                told = run(script, script.with_suffix("." + name), install)
                script.with_suffix("." + name + ".json").write_text(json.dumps(told))
            finally:
                os._exit(0)
        os.wait()
"""


SCRIPTS = {
    "places": """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    def forward(self, x):
        y = self.layers(x)
        return F.hardswish(y) + y
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.softplus(x)
net, x = Net().eval(), torch.tensor([[1.0, 2.0]])
for _ in range(3):
    net(x)
net.blocks.append(Block().eval())
net(x)
torch.nn.ReLU()(x)
torch.vmap(torch.sin)(x)
""",
    "calls": """
x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
y = x @ x.t()
x.add_(10)
x.clamp_(max=12.0)
torch.cat([x, x], dim=1)
torch.add(y, 1, out=torch.tensor([[9.0, 9.0], [9.0, 9.0]]))
y.permute(1, 0)
x[..., 1:]
x.T
F.max_pool2d(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 2)
torch.special.expit(y), torch.linalg.norm(y), torch.fft.rfft(x)
torch.einsum("ij,kj->ik", x, x)
x.sum(dtype=torch.float64)
""",
    "modules": """
import copy
x = torch.tensor([[1.0, 2.0, 3.0]])
torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.ReLU()).eval()(x)
torch.nn.Softplus(beta=2).double()(x)
torch.nn.BatchNorm1d(3).double().eval()(x.double())
torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))(x, torch.tensor([1]))
torch.nn.LSTM(3, 2, num_layers=1)(x, (torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0]])))
torch.nn.MultiheadAttention(3, 1)(x, x, value=x, need_weights=False)
copied = copy.deepcopy(torch.nn.Softplus(beta=3))
copied(x)
class Own(torch.nn.Module):
    def forward(self, x):
        return F.gelu(x)
Own()(x)
""",
    "left out": """
x = torch.tensor([1.0, 2.0])
x.shape, x.size()
x.tolist()
torch.testing.assert_close(x, x)
try:
    torch.matmul(x, torch.tensor([1.0]))
except RuntimeError as error:
    results.append(type(error))
loop = []
loop.append(loop)
try:
    F.interpolate(x, size=loop)
except BaseException as error:
    results.append(type(error))
torch.bernoulli(x / 2, generator=torch.Generator())
torch.relu(torch.ones(2, device="meta"))
torch.abs(x.to_sparse())
torch.vmap(torch.sin)(x)
class Sub(torch.Tensor): pass
torch.exp(x.as_subclass(Sub))
big = torch.zeros(1).expand(1 << 31)
torch.neg(big[:1]), torch.ones(1).expand(1 << 31).view(-1)
torch.histc(torch.zeros(1 << 15)), torch.add(torch.ones(1 << 15), 1)
""",
    "threads": """
import os, threading
from concurrent.futures import ThreadPoolExecutor
x = torch.tensor([1.0, 2.0])
def work(): torch.cumsum(x, 0)
class Own(threading.Thread):
    def run(self): torch.cumprod(x, 0)
for thread in (threading.Thread(target=work), Own()):
    thread.start()
    thread.join()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(torch.logsumexp, [x, x], [0, 0]))
    list(pool.map(lambda y: torch.argsort(y), [x, x]))
if os.fork() == 0:
    torch.erfinv(x)
    os._exit(0)
os.wait()
torch.digamma(x)
""",
    "equal": """
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
for _ in range(5):
    torch.sin(x)
torch.sin(x.t()), torch.sin(x.double())
for other in (1, 1.0, True, 0.0, -0.0, float("nan"), float("nan")):
    torch.mul(x, other)
""",
}


class Run:
    """What one script showed: instances by operator, and what the harness told."""

    def __init__(self, script: Path, capture: str = "on") -> None:
        told: dict[str, Any] = json.loads(script.with_suffix(f".{capture}.json").read_text())
        self.left_out, self.error, self.results = told["left_out"], told["error"], told["results"]
        self.modes, self.random = told["modes"], told["random"]
        lines = script.with_suffix(f".{capture}").read_bytes().splitlines()
        self.instances = [parse_captured(line).program for line in lines]
        self.operators = [found.operator for found in self.instances]

    def one(self, operator: str) -> Instance:
        (found,) = [item for item in self.instances if item.operator == operator]
        return found


def run(folder: Path, scripts: dict[str, str]) -> dict[str, Path]:
    """Run scripts in forks of one process that has imported torch, with and without capture."""
    (folder / "harness.py").write_text(HARNESS)
    paths = {name: folder / f"{name.replace(' ', '_')}.py" for name in scripts}
    for name, path in paths.items():
        path.write_text(scripts[name])
    command = [sys.executable, str(folder / "harness.py"), *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return paths


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return run(tmp_path_factory.mktemp("scripts"), SCRIPTS | HOSTILE)


def test_calls_are_recorded_as_they_were_written(scripts: dict[str, Path]) -> None:
    run = Run(scripts["calls"])
    assert run.error == ""
    matmul = run.one("torch.Tensor.matmul")
    assert [x.name for x in matmul.inputs] == ["input", "other"]
    assert matmul.context == {
        "kind": "method", "call": {"args": ["input", "other"], "kwargs": []}, "layout": {"other": [1, 3]},
    }  # fmt: skip
    before = run.one("torch.Tensor.add_").inputs[0].value
    assert isinstance(before, Tensor) and before.array().tolist() == [[1, -2, 3], [4, 5, 6]]
    cat = run.one("torch.cat")
    assert cat.params == {"tensors": [Named("torch.input", "tensors.0"), Named("torch.input", "tensors.1")], "dim": 1}
    assert cat.context["call"] == {"args": ["tensors"], "kwargs": ["dim"]}
    out = {x.name: x.value for x in run.one("torch.add").inputs}["out"]
    assert isinstance(out, Tensor) and out.array().tolist() == [[9, 9], [9, 9]]
    assert run.one("torch.Tensor.permute").params == {"dims": (1, 0)}
    assert run.one("torch.Tensor.__getitem__").params == {"key": (Named("builtins", "Ellipsis"), Named("slice", "1::"))}
    assert run.one("torch.Tensor.T").context["kind"] == "property"
    assert run.one("torch.Tensor.sum").params == {"dtype": Named("torch.dtype", "float64")}
    assert run.one("torch.einsum").context["call"] == {"args": ["equation", "operands.0", "operands.1"], "kwargs": []}
    assert {"torch.special.expit", "torch.linalg.norm", "torch.fft.rfft", "torch.nn.functional.max_pool2d"} <= set(
        run.operators
    )


def test_modules_are_recorded_with_their_constructor(scripts: dict[str, Path]) -> None:
    run = Run(scripts["modules"])
    assert run.error == ""
    linear = run.one("torch.nn.Linear")
    assert linear.params == {"in_features": 3, "out_features": 4, "bias": False}
    assert linear.context == {
        "kind": "module", "init": {"args": ["in_features", "out_features"], "kwargs": ["bias"]},
        "call": {"args": ["input"], "kwargs": []}, "training": False,
    }  # fmt: skip
    assert run.one("torch.nn.Softplus").params == {"beta": 2}  # the copy's constructor was not called
    assert run.left_out["module whose constructor was not seen"] == 1
    assert run.one("torch.nn.BatchNorm1d").params == {"num_features": 3, "dtype": Named("torch.dtype", "float64")}
    assert isinstance(run.one("torch.nn.CrossEntropyLoss").params["weight"], Tensor)
    lstm = run.one("torch.nn.LSTM")
    assert lstm.params["forward.hx"] == (Named("torch.input", "hx.0"), Named("torch.input", "hx.1"))
    assert [x.name for x in lstm.inputs] == ["input", "hx.0", "hx.1"]
    attention = run.one("torch.nn.MultiheadAttention")
    assert attention.context["call"] == {"args": ["query", "key"], "kwargs": ["value", "forward.need_weights"]}
    assert "torch.nn.functional.gelu" in run.operators and "torch.nn.functional.linear" not in run.operators


def test_what_is_not_recorded_is_counted(scripts: dict[str, Path]) -> None:
    run = Run(scripts["left out"])
    assert run.error == ""
    for category in (
        "it reads facts of a tensor", "it leaves PyTorch", "called by PyTorch itself", "the library raises", "generator",
        "container nested too deep, or within itself", "tensor that is not dense", "tensor subclass", "it makes an input",
        "device other than cpu", "tensor above the size limit",
    ):  # fmt: skip
        assert run.left_out.get(category), category
    assert not any(category.startswith("capture failed") for category in run.left_out)
    assert run.one("torch.add").inputs[0].value == RandomTensor("float32", (1 << 15,), 1 << 15, 1.0, 1.0)
    assert not {"torch.matmul", "torch.bernoulli", "torch.exp", "torch.abs"} & set(run.operators)


HOSTILE = {
    "a mode of its own": """
from torch.overrides import TorchFunctionMode
seen = []
class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return func(*args, **(kwargs or {}))
with Mode():
    results.append(torch.sin(torch.tensor([1.0])))
results.append(seen)
results.append(torch.overrides.has_torch_function((torch.tensor(1.0),)))
""",
    "a mode that is left behind": """
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
Mode().__enter__()
results.append(torch.cos(torch.tensor([1.0])))
""",
    "a subclass that raises": """
class Sour(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise KeyError(func.__name__)
    def __repr__(self):
        raise ValueError
try:
    torch.tan(torch.tensor([1.0]).as_subclass(Sour))
except KeyError as error:
    results.append(str(error))
""",
    "results that are resized": """
x = torch.empty([], dtype=torch.long)
torch.nonzero(torch.tensor([0, 1, 1]), out=x)
y = torch.tensor([1.0, 2.0])
torch.exp(y), torch.nn.ReLU()(y)
y.resize_(100)
z = torch.tensor([True])
torch.sum(z)
torch.sort(torch.tensor([3, 1, 2]), out=(torch.empty(0, dtype=torch.long), x))
results.append((x, y.shape))
""",
    "odd objects": """
class Odd:
    def __repr__(self): raise ValueError
    def __hash__(self): raise ValueError
    def __eq__(self, other): raise ValueError
try:
    torch.add(torch.tensor([1.0]), Odd())
except Exception as error:
    results.append(type(error))
results.append(torch.tensor([1.0]).sum().item())
""",
    "random numbers": """
torch.manual_seed(3)
x = torch.rand(4)
results.append(F.dropout(x))
results.append(torch.nn.Linear(4, 2)(x).detach())
results.append(torch.randperm(5))
""",
    "weak references": """
import weakref, gc
x = torch.rand(3)
model = torch.nn.Embedding(3, 3, _weight=torch.zeros(3, 3))
y = torch.exp(x)
model(torch.tensor([1]))
references = [weakref.ref(x), weakref.ref(y), weakref.ref(model), weakref.ref(model.weight)]
del x, y, model
gc.collect()
results.append([reference() for reference in references])
""",
    "versions and gradients": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
y.backward()
results.append(x.grad)
z = x.detach().clone()
z.mul_(3)
results.append(z._version)
""",
    "CUDA that is not there": """
try:
    torch.ones(2, device="cuda")
except Exception as error:
    results.append(type(error))
try:
    torch.tensor([1.0]).cuda()
except Exception as error:
    results.append(type(error))
""",
    "attention's fast path": """
layer = torch.nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
from unittest.mock import patch
with patch("torch._transformer_encoder_layer_fwd", return_value=torch.tensor(1.0)) as fast, torch.no_grad():
    layer(torch.ones(1, 2, 4))
results.append(fast.call_count)
""",
    "script and compile": """
results.append(torch.jit.script(torch.nn.MultiheadAttention(4, 2)) is not None)
results.append(torch.compile(lambda x: F.relu(x) + 1, backend="eager", fullgraph=True)(torch.tensor([-1.0])))
results.append(torch.jit.trace(lambda x: x * 2, torch.tensor([1.0]))(torch.tensor([2.0])))
results.append(torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU())).code)
""",
    "dispatch modes": """
from torch.utils._python_dispatch import TorchDispatchMode
names = []
class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        names.append(str(func))
        return func(*args, **(kwargs or {}))
x = torch.tensor([[1.0, 2.0]]).t()
with Log():
    torch.sinh(x)
results.append(names)
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode() as fake:
    results.append(torch.cosh(torch.empty(3)).shape)
""",
    "an exit": "torch.sin(torch.tensor([1.0])); raise SystemExit(3)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_capture_changes_nothing(scripts: dict[str, Path], name: str) -> None:
    plain, seen = Run(scripts[name], "off"), Run(scripts[name])
    assert (seen.results, seen.error) == (plain.results, plain.error)
    if "torch.manual_seed" in HOSTILE[name]:
        assert seen.random == plain.random
    assert bool(seen.results) or seen.error == "SystemExit"
    assert not any(category.startswith("capture failed") for category in seen.left_out), seen.left_out


def test_threads_are_watched_and_forks_are_not(scripts: dict[str, Path]) -> None:
    run = Run(scripts["threads"])
    assert run.error == ""
    assert {"torch.cumsum", "torch.cumprod", "torch.argsort", "torch.digamma"} <= set(run.operators)
    assert "torch.erfinv" not in run.operators
    assert run.modes == 0


def test_equal_calls_are_recorded_once_and_unequal_ones_told_apart(scripts: dict[str, Path]) -> None:
    run = Run(scripts["equal"])
    assert run.operators.count("torch.sin") == 3
    assert run.operators.count("torch.mul") == 6


def test_torch_jit_knows_no_function_that_is_dead() -> None:
    """It takes functions for builtins by their id, which a test's own function may have once ours has died."""
    import torch
    from torch.jit import _builtins

    from opera.capture.recorder import Recorder
    from opera.libraries.torch.hooks import Watch

    watch = Watch(Recorder("tests"))
    known = len(_builtins._get_builtin_table())
    for _ in range(3):
        with watch.active(), watch.active():
            assert not torch.overrides.has_torch_function((torch.ones(1),))
    assert len(_builtins._get_builtin_table()) == known


def test_each_line_and_module_that_calls_an_instance_is_told(scripts: dict[str, Path]) -> None:
    script = scripts["places"]
    lines = SCRIPTS["places"].splitlines()
    ids: dict[str, str] = {}
    for line in script.with_suffix(".on").read_bytes().splitlines():
        program = parse_captured(line).program
        ids[program.id] = program.operator
    told: dict[tuple[str, str], set[str]] = {}
    for name, site in sites.read(script.with_name("places.on.sites")):
        assert (site.file, lines[site.line - 1].strip()) == (str(script), site.text)
        told.setdefault((ids[name], site.text), set()).add(site.module)
    assert told["torch.nn.Linear", "y = self.layers(x)"] == {f"Net.blocks.{n}.layers.0" for n in range(3)}
    assert told["torch.nn.functional.hardswish", "return F.hardswish(y) + y"] == {f"Net.blocks.{n}" for n in range(3)}
    assert told["torch.nn.functional.softplus", "return torch.nn.functional.softplus(x)"] == {"Net"}
    assert told["torch.nn.ReLU", "torch.nn.ReLU()(x)"] == {"ReLU"}
    assert "torch.sin" not in {operator for operator, _ in told}, "what is left out has no line"
