"""What becomes of a case: accepted, rejected, unanswered; and which references disagree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from opera.errors import InvalidTest
from opera.libraries.onnx import library, mended, wrap
from opera.programs.migrated import read_manifest, read_values
from opera.programs.program import Captured, Instance, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import DISPUTED
from opera.sources.sionnx import answers, encode
from opera.sources.sionnx.case import Case, Given, Input


def call(operator: str, since: int, *arrays: Any, outputs: tuple[str, ...] = ("Y",), **attributes: Any) -> Instance:
    kinds = {int: "int", float: "float", list: "ints", str: "string"}
    held = {name: Given(kinds[type(x)], x) for name, x in attributes.items()}
    inputs = tuple(None if x is None else Input("X", x.dtype.name, x) for x in arrays)
    return encode.instance(Case(operator, "", since, held, inputs, outputs, {}, ("", ""), 0))


def f32(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype("float32")


def pooled(dtype: str) -> Instance:
    region = np.array([[0, 0, 0, 1, 1]], dtype)
    return call("MaxRoiPool", 1, f32(1, 1, 2, 2).astype(dtype), region, pooled_shape=[1, 1])


def wrapped(judged: answers.Judged, folder: Path) -> Any:
    tags = (DISPUTED,) if judged.disputed else ()
    assert judged.instance is not None
    captured = Captured(
        judged.instance, Provenance("sionnx", "x.td", "t"), judged.expected, reference=judged.reference, tags=tags
    )
    return library.wrap(captured, "ab" * 10, folder)


def test_what_both_compute_is_accepted() -> None:
    judged = answers.judge(call("Add", 14, f32(2, 3), f32(3)), "t")
    assert (judged.status, judged.expected, judged.disagreements) == (answers.ACCEPTED, None, [])


@pytest.mark.parametrize(
    ("instance", "status", "words"),
    [
        (call("Concat", 13, f32(2, 3), f32(2), axis=0), answers.CHECKER, "inference"),
        (call("Gather", 13, f32(2, 3), np.array([7])), answers.REFERENCE, "reference-evaluator"),
        (pooled("float64"), answers.UNANSWERED, "MaxRoiPool"),
    ],
)  # fmt: skip
def test_what_is_no_test_says_who_rejects_it(instance: Instance, status: str, words: str) -> None:
    judged = answers.judge(instance, "t")
    assert (judged.status, words in judged.reason) == (status, True), judged


def test_what_onnx_runtime_alone_computes_is_expected(tmp_path: Path) -> None:
    """The evaluator has no MaxRoiPool."""
    judged = answers.judge(pooled("float32"), "t")
    assert (judged.status, judged.reference) == (answers.ACCEPTED, answers.RUNTIME)
    manifest = wrapped(judged, tmp_path)
    assert read_manifest(tmp_path).reference == manifest.reference == answers.RUNTIME
    assert read_values(tmp_path, "expected") == list(judged.expected or ())
    assert answers.judge(pooled("float32"), "t", runtime=False).status == answers.UNANSWERED


def test_references_that_disagree_dispute_the_test_from_the_start(tmp_path: Path) -> None:
    """Softmax before opset 13 flattens what is right of the axis; the evaluator does not."""
    judged = answers.judge(call("Softmax", 1, f32(2, 2, 2), axis=1), "Softmax-1 0: axis 1")
    assert judged.status == answers.ACCEPTED and judged.disputed
    [found] = judged.disagreements
    assert (found.operator, found.test, found.taken, found.other) == (
        "Softmax", "Softmax-1 0: axis 1", answers.EVALUATOR, answers.RUNTIME,
    )  # fmt: skip
    assert (
        "expected" in found.message
        and "got" in found.message
        and found.instance == call("Softmax", 1, f32(2, 2, 2), axis=1).id
    )
    assert DISPUTED in wrapped(judged, tmp_path).tags


def test_an_answer_of_another_type_than_onnx_infers_is_no_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluator itself computes AffineGrid of any float type in float32."""
    monkeypatch.setattr(mended, "operators", list)
    instance = call("AffineGrid", 20, f32(1, 2, 3).astype("float64"), np.array([1, 1, 2, 2]))
    judged = answers.judge(instance, "t")
    assert (judged.status, judged.reference, judged.disputed) == (answers.ACCEPTED, answers.RUNTIME, False)
    assert [(x.other, x.symptom) for x in judged.disagreements] == [(answers.EVALUATOR, "dtype")]
    alone = answers.judge(instance, "t", runtime=False)
    assert (alone.status, alone.reference) == (answers.ACCEPTED, "evaluator"), "its numbers, in the right type"
    assert [(x.taken, x.other) for x in alone.disagreements] == [(answers.INFERENCE, answers.EVALUATOR)]
    assert wrapped(alone, tmp_path).reference == "evaluator"
    assert [x.dtype for x in read_values(tmp_path, "expected") if isinstance(x, Tensor)] == ["float64"]


def test_what_is_random_or_undefined_is_not_disputed() -> None:
    random = answers.judge(call("Bernoulli", 22, np.full((64,), 0.5, "float32")), "t")
    shifted = call("BitShift", 11, np.array([1], "uint8"), np.array([9], "uint8"), direction="LEFT")
    for judged in (random, answers.judge(shifted, "t")):
        assert (judged.status, judged.disagreements) == (answers.ACCEPTED, [])


def test_an_algorithm_is_a_third_reference() -> None:
    instance = call("Add", 14, f32(2), f32(2))

    def wrong(*_: Any) -> list[Any]:
        return [Tensor.of(f32(2))]

    def refuses(*_: Any) -> list[Any]:
        raise InvalidTest("no")

    judged = answers.judge(instance, "t", algorithm=wrong)
    assert [x.other for x in judged.disagreements] == [answers.ALGORITHM] and not judged.disputed, "two against one"
    assert answers.judge(instance, "t", algorithm=wrong, runtime=False).disputed
    assert not answers.judge(instance, "t", algorithm=refuses).disagreements
    alone = answers.judge(pooled("float32"), "t", algorithm=lambda *_: [Tensor.of(f32(1, 1, 1, 1))], runtime=False)
    assert alone.reference == answers.ALGORITHM


def test_the_evaluator_may_take_its_time_but_not_all_of_it() -> None:
    """And a late signal of its limit, which the kernel may deliver after the timer is off, kills nobody.

    This is tried in a process of its own. In one that had used TensorFlow and PyTorch, CPython 3.11.7 died (SIGSEGV in its own
    interpreter loop) in half of the runs when a signal's handler raised TooSlow; why is not known.
    """
    code = """
import os, signal
import numpy as np
from opera.sources.sionnx import answers, encode
from opera.sources.sionnx.case import Case, Given, Input

arrays = np.linspace(-1, 1, 64).reshape(1, 1, 8, 8).astype("float32"), np.zeros((1, 24, 24, 2), "float32")
inputs = tuple(Input("X", "float32", x) for x in arrays)
instance = encode.instance(Case("GridSample", "", 20, {"mode": Given("string", "cubic")}, inputs, ("Y",), {}, ("", ""), 0))
answers.EVALUATOR_SECONDS = 0.001
judged = answers.judge(instance, "t")
assert (judged.status, judged.reference) == (answers.ACCEPTED, answers.RUNTIME), judged
with answers._limit(10):
    pass
os.kill(os.getpid(), signal.SIGVTALRM)
try:
    with answers._limit(10):
        os.kill(os.getpid(), signal.SIGVTALRM)
        raise SystemExit("the limit raised nothing")
except answers.TooSlow:
    print("as it should be")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "as it should be\n"), done.stderr


def test_a_call_of_a_version_newer_than_a_reference_knows_is_asked_in_an_older_one() -> None:
    """Of Compress, version 28 admits more types and says nothing else: ONNX Runtime is asked in the version before."""
    instance = call("Compress", 28, f32(3), np.array([True, False, True]), axis=0)
    model = wrap.inferred(instance, made := wrap.parts(instance))
    assert answers._run(model.SerializeToString(), made).outputs is None, "as it is, it knows none"
    [found] = answers._runtime(model, made).outputs or []
    assert found == Tensor.of(f32(3)[::2])
