from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from opera.capture.recorder import Recorder  # noqa: E402
from opera.libraries.torch import exported_programs as torch_exports  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.ran = torch.nn.BatchNorm1d(3), []

    def forward(self, x, y=None, scale=1.0):
        self.ran.append((tuple(x.shape), str(x.dtype), y is None, scale))
        x.add_(torch.rand(()))
        return self.norm(x) * scale


@pytest.fixture
def hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[ModuleType, Recorder, list[str]]]:
    """Hook the function `entry` of a module as a point of the given kind; the last item says when it was watched."""

    def hook(kind: str) -> tuple[ModuleType, Recorder, list[str]]:
        module = ModuleType("a_frontend")
        module.entry = lambda model, *args, **kwargs: ("original", args, kwargs)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "a_frontend", module)
        recorder, watched = Recorder("demo"), []

        @contextmanager
        def watching():
            watched.append("begin")
            yield
            watched.append("end")

        make: Callable[[], AbstractContextManager[None]] = watching
        torch_exports.hook(recorder, make, {kind: ["a_frontend:entry"]})
        return module, recorder, watched

    return hook


def test_an_exported_model_runs_once_and_nothing_of_it_changes(hooked) -> None:
    module, recorder, watched = hooked("exports")
    net, x = Net(), torch.ones(4, 3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert module.entry(net, (x,), {"scale": 2.0}, strict=False) == (
        "original",
        ((x,), {"scale": 2.0}),
        {"strict": False},
    )
    assert net.ran == [((4, 3), "torch.float32", True, 2.0)] and watched == ["begin", "end"]
    assert torch.equal(x, torch.ones(4, 3)), "its argument is as it was"
    assert int(net.norm.num_batches_tracked) == 0 and torch.equal(net.norm.running_mean, torch.zeros(3))
    assert torch.equal(torch.get_rng_state(), before)
    assert module.entry(net, args=(x,))[0] == "original" and len(net.ran) == 2
    assert not recorder.left_out


def test_a_graph_gets_inputs_of_the_shapes_it_was_given_with(hooked) -> None:
    module, _, _ = hooked("graphs")
    net = Net()
    module.entry(net, [((4, 3), "float64"), ([2], "int64")])
    assert net.ran == [((4, 3), "torch.float64", False, 1.0)]


@pytest.mark.parametrize("model", [Net(), None, lambda x: x], ids=["wrong arguments", "none", "function"])
def test_a_model_that_does_not_run_is_counted_and_left_to_the_test(hooked, model) -> None:
    module, recorder, _ = hooked("exports")
    assert module.entry(model, (1, 2, 3, 4))[0] == "original"
    assert sum(recorder.left_out.values()) == 1 and next(iter(recorder.left_out)).startswith("model that does not run")


def test_without_points_nothing_is_hooked() -> None:
    torch_exports.hook(Recorder("demo"), nullcontext, {})
