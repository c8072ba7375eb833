"""A file that an exporter writes wrongly closes a route: it is a finding of the exporter, whoever was asked for."""

from __future__ import annotations

import pytest
from faults.onnx_faults import Silent

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from opera.libraries.torch import calls  # noqa: E402
from opera.programs.program import Captured, Provenance  # noqa: E402
from opera.programs.verdicts import Limits  # noqa: E402
from opera.run import driver, exporters  # noqa: E402
from opera.triage.findings import findings  # noqa: E402


@pytest.mark.full  # two exports, one of them by an exporter without opera's patches
def test_what_the_exporter_drops_is_the_exporters_finding(workspace) -> None:
    call = (torch.ones(1, 1, 2, 2), 2)
    wrong = calls.instance("torch.nn.functional.avg_pool2d", call, {"divisor_override": 1})
    right = calls.instance("torch.nn.functional.avg_pool2d", call, {})
    workspace.add_captured([Captured(x, Provenance("by-hand", "test.py", "here")) for x in (wrong, right)])
    options = driver.Options(compilers=("faults.reading",), workers=1, limits=Limits(120.0))
    driver.run(workspace, options, Silent())
    found = {(x.frontend, x.variant, x.outcome.verdict, x.outcome.symptom) for x in workspace.verdicts()}
    assert ("faults.reading-torch", "onnx", "unexported", exporters.WRONG) in found, found
    [finding] = findings(workspace)
    assert (finding.frontend, finding.symptom, finding.confirmed) == ("onnxexport-torch", "value", 1)
    before = len(list(workspace.verdicts()))
    driver.run(workspace, options, Silent())
    assert len(list(workspace.verdicts())) == before and len(findings(workspace)) == 1


def test_who_exports_what_is_said_by_the_frontends() -> None:
    assert exporters.makers("torch", "onnx") == ["onnxexport"] == exporters.makers("keras", "onnx")
    assert (
        exporters.testers("torch", "torch.export") == ["torchexport"]
        and exporters.testers("keras", "torch.export") == []
    )
    assert exporters.makers("keras", "tflite") == ["tflite"] and exporters.makers("torch", "pt2") == []
