"""From what was seen to a verdict, with the exception itself and with what is kept of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from faults.compilers import Unspeakable
from hypothesis import given
from hypothesis import strategies as st

from opera.compilers import Case, inductor, onnxruntime
from opera.compilers.shared.keras_live import NoGraph
from opera.compilers.shared.packing import CannotCarry, NoAnswer
from opera.compilers.tvm import compiler as tvm
from opera.pool.workers import Result
from opera.programs.case import remembered
from opera.programs.migrated import Manifest
from opera.programs.verdicts import CRASH, ERROR, OUT_OF_MEMORY, REFUSED, UNEXPORTED, UNSUPPORTED, Raised, Seen
from opera.run import culprit, judge, worker
from opera.run.outcomes import outcome_of


class Theirs(RuntimeError):
    """Of a compiler."""


class TheirsToo(Theirs, KeyError):
    """Of two builtins."""


def seen(error: BaseException, whose: str = culprit.COMPILER) -> Seen:
    return Seen(judge.observed(error, "/tests/ab/"), whose)


def test_the_folder_of_the_test_is_no_part_of_a_text() -> None:
    [raised] = judge.observed(Theirs("cannot read /tests/ab/model.onnx"), "/tests/ab/")
    assert raised.text == "cannot read model.onnx"
    assert raised.kinds[0] == f"{__name__}:Theirs"
    assert raised.kinds[1] == "builtins:RuntimeError"


@pytest.mark.parametrize(
    "error",
    [
        Theirs("text"), TheirsToo("text"), KeyError("text"), UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
        CannotCarry("text"), NoAnswer("text"), SystemExit(3), KeyboardInterrupt(), ExceptionGroup("text", [ValueError()]),
        Unspeakable(), OSError(27, "too large"), MemoryError(), Theirs("\ud800"),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_a_stand_in_says_the_same(error: BaseException) -> None:
    raised = judge.observed(error, "/tests/")
    found = judge.restored(msgspec.json.decode(msgspec.json.encode(raised), type=tuple[Raised, ...]))
    assert str(found) == raised[0].text
    assert type(found).__name__ == type(error).__name__
    assert {kind.__name__ for kind in type(found).__mro__} >= {kind.__name__ for kind in type(error).__mro__} - {
        "LookupError", "ExceptionGroup", "BaseExceptionGroup", "RuntimeError" if isinstance(error, TheirsToo) else "",
    }  # fmt: skip
    assert judge.observed(found, "/tests/")[0].text == raised[0].text


def test_causes_stay() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise Theirs("outer") from inner
    except Theirs as error:
        raised = judge.observed(error, "/tests/")
    assert [x.text for x in raised] == ["outer", "'inner'"]
    found = judge.restored(raised)
    assert isinstance(found.__cause__, KeyError)
    assert str(found.__cause__) == "'inner'"


CASE = remembered("onnx", "Foo", "inputs", "onnx")
WORDS = [
    (
        onnxruntime,
        "load",
        "NOT_IMPLEMENTED : Could not find an implementation for Foo(1)",
        UNSUPPORTED,
    ),
    (onnxruntime, "infer", "[ONNXRuntimeError] : 1 : FAIL : node went wrong", CRASH),
    (tvm, "load", "The following operators are not supported for frontend ONNX: Foo", UNSUPPORTED),
    (tvm, "compile", "CodeGenVM cannot emit this Relax operator directly", CRASH),
]


@pytest.mark.parametrize(("compiler", "stage", "text", "verdict"), WORDS)
def test_the_stand_in_is_judged_as_the_exception_is(compiler, stage, text, verdict) -> None:
    error = Theirs(text)
    first = judge.conclude(compiler.FRONTENDS["onnx"], CASE, stage, seen(error), error)
    assert first.verdict == verdict
    assert judge.conclude(compiler.FRONTENDS["onnx"], CASE, stage, seen(error)) == first


def test_refusals_by_class_are_known_again() -> None:
    kind = type("Unsupported", (RuntimeError,), {"__module__": "torch._dynamo.exc"})
    outer = Theirs("wrapped")
    outer.__cause__ = kind("generators")
    assert judge.conclude(inductor.FRONTENDS["torch"], CASE, "load", seen(outer)).verdict == UNSUPPORTED


@pytest.mark.parametrize(
    ("error", "whose", "verdict", "symptom"),
    [
        (Theirs("x"), culprit.COMPILER, CRASH, "Theirs"),
        (Theirs("x"), culprit.OPERA, ERROR, "Theirs"),
        (Theirs("x is not supported"), culprit.OPERA, ERROR, "Theirs"),
        (Theirs("x"), culprit.LIBRARY, UNEXPORTED, "Theirs"),
        (CannotCarry("int2"), culprit.OPERA, UNSUPPORTED, "CannotCarry"),
        (NoAnswer("None"), culprit.OPERA, CRASH, "no-answer"),
        (MemoryError(), culprit.OPERA, OUT_OF_MEMORY, "MemoryError"),
        (Theirs("std::bad_alloc"), culprit.COMPILER, OUT_OF_MEMORY, "Theirs"),
    ],
)
def test_blame_comes_before_words(error, whose, verdict, symptom) -> None:
    found = judge.conclude(onnxruntime.FRONTENDS["onnx"], CASE, "load", seen(error, whose))
    assert (found.verdict, found.symptom) == (verdict, symptom)


def test_a_refusal_of_an_adapter_is_one_whoever_raised_it() -> None:
    from opera.compilers import xla

    found = judge.conclude(xla.FRONTENDS["keras"], CASE, "load", seen(NoGraph("control flow"), culprit.OPERA))
    assert found.verdict == UNSUPPORTED


@pytest.mark.parametrize(
    ("constants", "verdict"),
    [(("split",), REFUSED), ((), UNSUPPORTED), (("input",), UNSUPPORTED)],
)
def test_who_wants_a_constant_and_is_given_one_contradicts_itself(constants, verdict) -> None:
    case = msgspec.structs.replace(CASE, constants=constants)
    error = Theirs("Only constant split supported for SplitToSequence")
    found = judge.conclude(tvm.FRONTENDS["onnx"], case, "load", seen(error))
    assert found.verdict == verdict
    assert found.claimed == ("it wants a constant, and split is one" if verdict == REFUSED else "")


class Broken:
    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        raise AttributeError("renamed")


def test_an_adapter_that_cannot_say_is_noted() -> None:
    found = judge.conclude(Broken(), CASE, "load", seen(Theirs("x")))  # type: ignore[arg-type]
    assert found.verdict == CRASH
    assert found.hooks == {"unsupported": "AttributeError: renamed"}


@given(st.text(max_size=200), st.integers(min_value=20, max_value=100))
def test_cutting_keeps_both_ends(text: str, most: int) -> None:
    found = judge.cut(text, most)
    assert len(found) <= most or len(found) == len(text)
    if len(text) > most:
        assert found[:5] == text.encode("utf-8", "backslashreplace").decode()[:5]


@pytest.mark.parametrize(
    ("declared", "needs", "tags"),
    [
        ({"": 26}, {"": 27}, ["newer-opset"]),
        ({"": 26}, {"": 26}, None),
        ({"": 26}, {"ai.onnx.ml": 5}, None),
        ({}, {"": 27}, None),
        ({"": 26}, {}, None),
        (None, {"": 27}, None),
    ],
)
def test_what_needs_newer_operators_than_a_compiler_declares_is_tagged(declared, needs, tags) -> None:
    class Declares:
        if declared is not None:

            def opsets(self) -> dict[str, int]:
                return declared

    frontend: Any = Declares()
    manifest = Manifest("t", "i", "onnx", "Abs", {}, (), (), {}, needs=needs)
    assert worker._newer(frontend, manifest).get("tags") == tags


@pytest.mark.parametrize(
    ("operators", "newer"),
    [
        ({"Attention": 25}, "Attention 25, where the newest that it ships is 24"),
        ({"Range": 27}, None),  # it ships what it does not declare yet
        ({"Attention": 24, "Abs": 26}, None),
        ({"Abs": 27}, "Abs 27, where it declares opset 26"),
        ({"ai.onnx.ml::Scaler": 5}, None),
    ],
)
def test_what_a_compiler_ships_of_an_operator_outweighs_the_opset_that_it_declares(operators, newer) -> None:
    class Ships:
        def opsets(self) -> dict[str, int]:
            return {"": 26}

        def newest(self, operator: str) -> int | None:
            return {"Attention": 24, "Range": 27}.get(operator)

    frontend: Any = Ships()
    manifest = Manifest("t", "i", "onnx", "Abs", {}, (), (), {}, needs={"": 27}, operators=operators)
    assert worker._newer(frontend, manifest).get("newer") == newer


def test_what_python_warned_of_is_no_word_of_what_ended_a_process() -> None:
    log = (
        "/lib/python3.11/copyreg.py:105: FutureWarning: `isinstance` is deprecated\n  return cls.__new__(cls, *args)\n"
        "free(): invalid pointer\nFatal Python error: Aborted\n"
    )
    ended = Result(tag="t", group="g", status="abort", exit="SIGABRT", note="compile", log=log)
    assert outcome_of(ended).message == "free(): invalid pointer\nFatal Python error: Aborted\n"
