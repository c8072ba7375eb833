"""What real compilers make of two forms of one operator gets one signature, of two operators two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opera.oracle.signature import Signature
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import FAILURES
from opera.run.probe import Probe, Question
from opera.store.workspace import Workspace

pytest.importorskip("onnx")

DOUBLE = Tensor.of(np.zeros(0, "float64"))
SPECIAL = Tensor.of(np.asarray([1.0, np.inf], "float32"))
NAN = Tensor.of(np.asarray([1.0, np.nan], "float32"))
FLOAT8 = Tensor.of(np.zeros(0, "uint8"), "float8_e4m3fnuz")


def program(operator: str, params: dict[str, Any], **inputs: Tensor) -> Captured:
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    outputs = ("Y", "Y_h") if operator in ("LSTM", "GRU", "RNN") else ("output",)
    instance = Instance("onnx", operator, params, operands, outputs, {"opset": {"": 22}})
    return Captured(instance, Provenance("node-tests", "cases.py", operator))


def recurrent(operator: str, gates: int) -> Captured:
    """Return a cell of two hidden units over two batches, whose batches come first: `layout=1`."""
    x = np.asarray([[[1.0, 2.0]], [[3.0, 4.0]]], "float32")
    w, r = (np.full((1, 2 * gates, 2), 0.3, "float32") for _ in range(2))
    return program(operator, {"hidden_size": 2, "layout": 1}, X=Tensor.of(x), W=Tensor.of(w), R=Tensor.of(r))


PAIRS = {
    ("openvino-onnx", "layout of recurrent cells"): (recurrent("LSTM", 4), recurrent("GRU", 3)),
    ("openvino-onnx", "casts to a type that it does not compute in"): (
        program("Cast", {"to": 11}, input=SPECIAL),
        program("CastLike", {}, input=SPECIAL, target_type=DOUBLE),
    ),
    ("tvm-onnx", "casts of NaN to a type that has no sign of zero"): (
        program("Cast", {"to": 18}, input=NAN),
        program("CastLike", {}, input=NAN, target_type=FLOAT8),
    ),
}


@pytest.mark.parametrize(("frontend", "what"), PAIRS)
def test_two_forms_are_one_finding(workspace: Workspace, frontend: str, what: str) -> None:
    pytest.importorskip(frontend.partition("-")[0])
    with Probe.of(workspace, workers=1) as probe:
        pair = PAIRS[frontend, what]
        signed = {}
        for one in pair:
            outcome = probe(Question(frontend=frontend, program=one, variant="inputs"))
            assert outcome.verdict in FAILURES, outcome
            signed[one.program.operator] = Signature.of(frontend, one.program.operator, outcome)
    assert signed.keys() == {one.program.operator for one in pair} and len({x.id for x in signed.values()}) == 1, signed
