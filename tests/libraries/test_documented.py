"""What documentation says is quoted where it decides, and nothing that it says of other matters."""

import numpy as np
import pytest

from opera.libraries.documented import Wrong, quoted, reaching
from opera.libraries.onnx import library
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor


@pytest.mark.parametrize(
    ("operator", "names", "deciding", "wrong", "wanted"),
    [
        ("MaxPool", ("X",), ["ceil_mode"], Wrong("Y", "shape"), "start in the right padded region are ignored"),
        (
            "NonMaxSuppression",
            ("boxes", "scores"),
            ["iou_threshold"],
            Wrong("selected_indices", "shape"),
            "strictly greater",
        ),
        ("Pow", ("X", "Y"), [], Wrong("", "TypeError"), "T1: Constrain input Y types"),
    ],
)
def test_the_clause_that_decides_is_quoted(operator, names, deciding, wrong, wanted):
    dtypes = [np.float32, np.int64]
    inputs = tuple(
        Operand(name, Tensor.of(np.ones((1, 1, 3), dtype))) for name, dtype in zip(names, dtypes, strict=False)
    )
    call = Instance(
        "onnx", operator, {"ceil_mode": 1} if operator == "MaxPool" else {}, inputs, ("Y",), {"opset": {"": 22}}
    )
    assert any(wanted in x.text for x in library.documented(call, deciding, wrong))
    assert not any("ignored" in x.text for x in library.documented(call, [], wrong))


def test_the_sentence_on_a_limit_is_reached_however_late_it_comes():
    text = f"The threshold. {'It is one. ' * 60}Boxes strictly greater than it are suppressed."
    assert "strictly" not in quoted(text) and reaching(text).endswith(
        "[...] Boxes strictly greater than it are suppressed."
    )
    assert reaching("Strictly greater boxes are dropped.") == "Strictly greater boxes are dropped."
