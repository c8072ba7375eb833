from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera.errors import UsageError
from opera.libraries.onnx.schemas import attribute_defaults
from opera.prioritize import get, registered
from opera.prioritize.labelled import Record
from opera.prioritize.subspaces import ArtifactSubspaces, PaperSubspaces, Row, from_program
from opera.programs.program import Instance, Operand
from opera.programs.values import NO_DEFAULT, Message, Named, Optional, RandomTensor, Sequence, Tensor

ARTIFACT, PAPER = ArtifactSubspaces(), PaperSubspaces()


@pytest.mark.parametrize("classes", [ARTIFACT, PAPER])
def test_integers_fall_into_five(classes: ArtifactSubspaces) -> None:
    assert len({classes.value(x) for x in (-(2**80), -7, -2)}) == 1
    assert len({classes.value(x) for x in (-2, -1, 0, 1, 2)}) == 5
    assert len({classes.value(x) for x in (2, 9, 2**80)}) == 1
    assert classes.value(True) == classes.value(1) != classes.value(False)


def test_floats_fall_into_two_or_three_and_never_among_integers() -> None:
    numbers = (-1.0, 0.0, 2.5, math.inf, -math.inf)
    assert len({ARTIFACT.value(x) for x in numbers}) == 2
    assert len({PAPER.value(x) for x in numbers}) == 3
    assert ARTIFACT.value(1.0) != ARTIFACT.value(1)
    assert ARTIFACT.value(math.nan) == ARTIFACT.value(-1.0)


def test_lists_are_the_tuple_of_their_elements() -> None:
    assert ARTIFACT.value([3, 1]) == ARTIFACT.value((5, 1)) != ARTIFACT.value([1, 3])
    assert ARTIFACT.value([[2, 3], [1]]) == ARTIFACT.value([[7, 7], [1]])
    assert ARTIFACT.value([]) != ARTIFACT.value(None)
    assert ARTIFACT.value([None, 3]) == ARTIFACT.value([9, 3]), "None in first place is the batch"
    assert ARTIFACT.value([3, None]) != ARTIFACT.value([3, 9])


def test_every_other_value_has_a_class_that_can_be_hashed() -> None:
    others: list[Any] = [
        b"x",
        "x",
        {"a": [1]},
        Tensor.of(np.zeros((2, 1), np.float32)),
        Message("onnx.GraphProto", b"1"),
        Message("onnx.GraphProto", b"2"),
        Named("torch.dtype", "float32"),
        Sequence("float32", ()),
        Optional("float32", None),
        None,
        1,
        1.0,
    ]
    assert len({ARTIFACT.value(x) for x in others}) == len(others)
    small, large = (Tensor.of(np.zeros((n, 1), np.float32)) for n in (2, 5))
    assert (
        ARTIFACT.value(small) == ARTIFACT.value(large) == ARTIFACT.value(RandomTensor("float32", (9, 1), 0, 0.0, 1.0))
    )
    with pytest.raises(TypeError):
        ARTIFACT.value(object())


def test_the_paper_makes_each_tensor_a_parameter() -> None:
    row = Row("A", {}, [[2, 1], [1] * 9], ["f", "i"], [[2]], ["f"])
    found = dict(PAPER.tensors(row))
    assert list(found) == ["input 0", "input 1", "output 0"]
    assert found["input 0"] == ("f", 2, (2, 1))
    assert found["input 1"] == ("i", 6, (1,) * 9)
    assert [name for name, _ in ARTIFACT.tensors(row)] == [
        f"{side} {what}" for side in ("input", "output") for what in ("shapes", "dtypes")
    ]


def test_a_row_of_an_instance_shows_every_operand() -> None:
    tensor = Tensor.of(np.zeros((2, 3), np.float32))
    operands = [tensor, RandomTensor("float64", (4,), 0, 0.0, 1.0), Sequence("float32", (tensor, tensor))]
    operands += [Optional("float32", tensor), Optional("int64", None), None, [tensor]]
    instance = Instance("onnx", "Op", {"axis": 1}, tuple(Operand("x", x) for x in operands), ("y",), {})
    row = from_program(instance)
    assert row.operator == "Op" and row.params == {"axis": 1}
    assert row.input_shapes == [(2, 3), (4,), [(2, 3), (2, 3)], (2, 3), None, None, [(2, 3)]]
    assert row.input_dtypes[:3] == ["float32", "float64", "sequence(float32)"]
    assert row.input_dtypes[3:6] == ["optional(float32)", "optional(int64)", None]
    assert (row.output_shapes, row.output_dtypes) == ([], [])
    assert from_program(instance, (tensor,)).output_shapes == [(2, 3)]
    for classes in (ARTIFACT, PAPER):
        assert hash(tuple(classes.tensors(row)))


def test_a_record_of_the_artifact_and_an_instance_are_encoded_alike() -> None:
    shown = {
        "input_shapes": [[2, 3]],
        "input_dtypes": ["float32"],
        "output_shapes": [[2]],
        "output_dtypes": ["float32"],
    }
    record = Record(id="1", op="Op", params={"axis": 1}, **shown).row()
    tensor = Tensor.of(np.zeros((2, 3), np.float32))
    instance = Instance("onnx", "Op", {"axis": 1}, (Operand("x", tensor),), ("y",), {})
    row = from_program(instance, (Tensor.of(np.zeros(2, np.float32)),))
    assert dict(ARTIFACT.tensors(record)) == dict(ARTIFACT.tensors(row))


def test_defaults_of_the_installed_schemas() -> None:
    found = attribute_defaults(["Conv", "Gemm", "LSTM", "ai.onnx.ml::Scaler", "Scaler", "Nope"])
    assert found["Conv"]["group"] == 1 and found["Conv"]["auto_pad"] == "NOTSET" and found["Conv"]["pads"] == NO_DEFAULT
    assert found["Gemm"]["alpha"] == 1.0 and isinstance(found["Gemm"]["alpha"], float)
    assert found["Scaler"] == found["ai.onnx.ml::Scaler"]
    assert "Nope" not in found


def test_strategies_are_found_by_name() -> None:
    assert {"opera", "opera-paper", "random"} <= set(registered())
    assert [get(name).NAME for name in ("opera", "opera-paper")] == ["opera", "opera-paper"]
    with pytest.raises(UsageError, match=r"choose from .*opera"):
        get("best")


def test_random_is_a_seeded_permutation() -> None:
    rows = [Row("A", {})] * 50
    orders = [get("random").rank(iter(rows), [], {}, seed) for seed in (1, 2, 1, None)]
    assert orders[0] == orders[2] != orders[1]
    assert all(sorted(order) == list(range(50)) for order in orders)


def test_this_module_needs_no_library(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = "import sys, opera.prioritize.diversity, opera.prioritize.labelled; print('onnx' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )
