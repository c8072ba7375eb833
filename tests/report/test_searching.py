"""A tracker is searched for the operator and what tells the failure from others, at an address of its own."""

from __future__ import annotations

import pytest

from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, Outcome
from opera.report import searching, trackers


@pytest.mark.parametrize(
    ("operator", "told", "outcome", "wanted"),
    [
        ("torch.special.erfcx", (), Outcome(INCONSISTENT), ["erfcx"]),
        ("Abs", ("int8 inputs",), Outcome(INCONSISTENT), ["Abs", "int8"]),
        ("ReduceL1", ("noop_with_empty_axes=1", "an empty input"), Outcome(INCONSISTENT), ["ReduceL1", "noop_with_empty_axes"]),
        (
            "torch.repeat_interleave",
            ("output_size given",),
            Outcome(CRASH, "load", "TypeError", "aten_repeat_interleave_Tensor() got an unexpected 'output_size'"),
            ["repeat_interleave", "unexpected", "output_size"],
        ),
        ("Expand", (), Outcome(INCONSISTENT, "infer", "shape"), ["Expand", "shape"]),
        ("expand", ("size=[]",), Outcome(ABORT, "compile", "SIGSEGV", "Fatal Python error"), ["expand", "SIGSEGV", "size"]),
        ("AffineGrid", (), Outcome(CRASH, "load", "E", "Arguments of no type (arg0: bf16)"), ["AffineGrid", "Arguments"]),
        (
            "Asin",
            (),
            Outcome(CRASH, "compile", "E", 'unknown intrinsic ir.Op(ty=ir.Type(x=1), name="tirx.asin", num_inputs=1)'),
            ["Asin", "unknown", "intrinsic", "tirx.asin"],
        ),
        ("AffineGrid", (), Outcome(CRASH, "load", "E", "Arguments (f(g(a_b))) differ"), ["AffineGrid", "Arguments", "differ"]),
        ("", ("int8 inputs",), Outcome(CRASH, "infer", "E", "Failed to set tensor"), ["int8", "Failed", "tensor"]),
        ("Constant + Gather", ("x > 1",), Outcome(CRASH, "load", "E", "12: 3"), ["Gather", "x"]),
    ],
)  # fmt: skip
def test_what_is_searched_for_tells_a_failure_from_others(operator, told, outcome, wanted) -> None:
    assert searching.words(operator, told, outcome) == wanted


def test_every_tracker_can_be_searched() -> None:
    for name, tracker in trackers.trackers().items():
        address = searching.address(name, "torch.add", ("a&b=1",), Outcome(INCONSISTENT))
        assert address.startswith(tracker.form.partition("/issues/")[0] + "/issues?q=add"), name
        assert " " not in address and "a&b" not in address
