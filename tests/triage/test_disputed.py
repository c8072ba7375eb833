"""What independent implementations agree to contradict is a finding against the library's own test."""

import numpy as np

from opera.oracle import screens
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import DISPUTED, SCREENED, Outcome
from opera.report import html, markdown, show, terminal
from opera.report.summary import summarise
from opera.store.rows import Test as MigratedTest
from opera.store.rows import Verdict
from opera.triage import disputed as stage


def captured(name, number, stated):
    value = Tensor.of(np.float32([number]))
    instance = Instance("onnx", "Exp", {}, (Operand("input", value),), ("y",), {"opset": {"": 21}})
    return Captured(instance, Provenance("onnx", "file", name), (value,) if stated else None)


def filled(workspace):
    """Two tests that state what they expect and one that does not; on two frontends, by two reasons."""
    records = [captured("test_a", 1, True), captured("test_b", 2, True), captured("made", 3, False)]
    workspace.add_captured(records)
    tests = [MigratedTest(f"t{place}", x.program.id, "valid") for place, x in enumerate(records)]
    workspace.save_tests("exporter", tests)
    about = {"library": "onnx", "library_version": "1", "version": "1", "options": {}, "exporter": {}, "oracle": "1"}
    run = workspace.start_run({"workers": 1})

    def verdict(test, compiler, by, reason=DISPUTED, agrees=True, **more):
        environment = workspace.save_environment({"compiler": compiler, **about})
        details = {"screen": reason, "by": by, "agrees_with_compiler": agrees, **more}
        outcome = Outcome(SCREENED, "infer", "value", "output 'y': 1 of 1 elements", details=details)
        return Verdict(test, f"{compiler}-onnx", "inputs", environment, outcome)

    verdicts = [
        verdict("t0", "openvino", "tvm", onnxruntime_error="NotImplemented: no kernel"),
        verdict("t0", "tvm", "openvino"),
        verdict("t1", "tvm", "openvino", reason=screens.ILL_CONDITIONED),
        verdict("t2", "tvm", "openvino"),
        verdict("t1", "openvino", "onnxruntime", agrees=False),
    ]
    workspace.save_verdicts(run, verdicts, {})


def test_each_test_is_told_once_with_all_who_contradict_it(workspace):
    filled(workspace)
    [found] = stage.disputed(workspace)
    assert (found.test, found.library, found.operator, found.names) == ("t0", "onnx", "Exp", ("test_a",))
    assert found.compilers == ("openvino", "tvm")
    assert found.refused == {"onnxruntime": "NotImplemented: no kernel"}
    assert stage.DISPUTED == DISPUTED


def test_every_report_and_the_command_list_them(workspace, capsys):
    filled(workspace)
    report = summarise(workspace)
    assert [x.test for x in report.disputed] == ["t0"]
    for told in (markdown.render(report), html.render(report)):
        assert "whose expectation others contradict" in told and "contradicted by openvino, tvm" in told
    assert "opera findings --disputed" in terminal.render(report)
    show.disputed(workspace, "")
    told = capsys.readouterr().out
    assert "test_a" in told and "openvino, tvm" in told and "onnxruntime refuses" in told
    show.disputed(workspace, "inductor-torch")
    assert "No test's expectation is disputed" in capsys.readouterr().out
