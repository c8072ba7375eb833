"""What rounding explains of few numbers is asked about with many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faults.onnx_faults import Silent
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import SCREENED, Limits
from opera.report import show
from opera.run import driver as stage
from opera.run.probe import Probe
from opera.store import verdicts
from opera.store.workspace import Workspace
from opera.triage.findings import findings
from opera.triage.known import NONE
from opera.triage.reducer import longer


def call(*shapes: tuple[int, ...], dtype: str = "f4") -> Instance:
    made = (np.arange(math.prod(x), dtype=dtype).reshape(x) for x in shapes)
    return Instance("onnx", "Any", {}, tuple(Operand(f"X{n}", Tensor.of(x)) for n, x in enumerate(made)), ("Y",), {})


@given(st.lists(st.integers(0, 5), max_size=3).map(tuple), st.sampled_from(["f2", "f4", "f8", "i8"]))
def test_one_axis_of_wide_floats_becomes_long_and_nothing_else_is_changed(shape: tuple[int, ...], dtype: str) -> None:
    program = call(shape, (2,), dtype=dtype)
    found = list(longer.longer(program))
    assert len({x.id for x in found}) == len(found) and program.id not in {x.id for x in found}
    assert bool(found) is (dtype in ("f4", "f8") and any(x > 1 for x in shape) and 0 not in shape)
    for x in found:
        value = x.inputs[0].value
        assert isinstance(value, RandomTensor) and value.dtype == program.inputs[0].value.dtype  # type: ignore[union-attr]
        assert {a for a, b in zip(value.shape, shape, strict=True) if a != b} == {longer.LONG}
        assert math.prod(value.shape) <= longer.MOST


def test_both_operands_of_a_product_become_long_together() -> None:
    found = [tuple(y.value.shape for y in x.inputs) for x in longer.longer(call((2, 3), (3, 4)))]  # type: ignore[union-attr]
    assert ((2, 1000), (1000, 4)) in found and ((2, 1000), (3, 4)) in found and ((1000, 3), (3, 4)) in found


def test_angles_that_are_never_reduced_are_found_of_a_thousand_numbers(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime's DFT of ten numbers is off by three epsilons, which readings of screened verdicts took for rounding."""
    pytest.importorskip("onnxruntime")
    numbers = np.arange(100, dtype="f4").reshape(1, 10, 10, 1)
    dft = Instance("onnx", "DFT", {"axis": 1}, (Operand("x", Tensor.of(numbers)),), ("y",), {"opset": {"": 19}})
    workspace.add_captured([Captured(dft, Provenance("suite", "file", "of_ten"))])
    stage.run(workspace, stage.Options(compilers=("onnxruntime",), workers=1, limits=Limits(60.0)), Silent())
    assert findings(workspace) == [] and [x.test for x in verdicts.of_kind(workspace, SCREENED)]
    with monkeypatch.context() as hurried:
        hurried.setattr(longer, "SECONDS", 0.0)
        longer.show(workspace, 600.0, 1)
    assert findings(workspace) == [], "there was no time: it is asked about again"
    longer.show(workspace, 600.0, 1)
    [found] = findings(workspace)
    assert found.origins == ("of_ten longer",) and found.id in capsys.readouterr().out
    [excused] = verdicts.of_kind(workspace, SCREENED)
    show.show(workspace, excused.test, NONE)
    assert f"is wrong by more than rounding: {found.id}" in capsys.readouterr().out
    with Probe.of(workspace, workers=1) as probe:
        assert not list(longer.ask(workspace, probe, 600.0)), "each is asked about once"
