"""Of a file's nodes the few that fail are found, whatever stands around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np
import pytest
from faults.onnx_faults import Silent
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Argument, Call, Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Limits, Outcome, Seen
from opera.report.draft import draft
from opera.run import driver as stage
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.failure import alike
from opera.triage.findings import findings
from opera.triage.reducer import cut, reducing
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts
from opera.triage.reproducers.choice import Choice, choose
from opera.triage.shrink import smaller

ONE = Tensor.of(np.ones(1, "f4"))
BARE = Tensor.of(np.ones(0, "f4"))
FAILED = Outcome(CRASH, "compile", "InternalError", "cannot emit this operator directly", conversion_function="it")


FULLY = msgspec.structs.replace(FAILED, conversion_function="FULLY_CONNECTED")


def call(operator: str, name: str, *of: str) -> Call:
    arguments = tuple(Argument(f"input_{n}", x) for n, x in enumerate(of))
    return Call(operator, {} if of else {"value": ONE}, arguments, (name,), {"opset": {"": 20}})


class Compiler:
    """A compiler that fails as it is told."""

    def __init__(self, fails: Callable[[Program], bool]) -> None:
        self.failing, self.batch, self.asked, self.target = fails, 4, list[Program](), FAILED

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        self.asked += programs
        return [FAILED if self.failing(x) else Outcome(PASS) for x in programs]

    def fails(self, outcome: Outcome, *, elsewhere: bool = False) -> bool:
        return alike("tvm-onnx", FAILED, outcome, elsewhere=elsewhere)


def chain(operators: Sequence[str]) -> tuple[Graph, dict[str, Value]]:
    """Return a program in which each call takes what the one before it returns, and a constant of its own."""
    calls, last = list[Call](), "x"
    for n, operator in enumerate(operators):
        calls += [call("Constant", f"c{n}"), call(operator, f"r{n}", last, f"c{n}")]
        last = f"r{n}"
    graph = Graph("onnx", (Operand("x", ONE),), tuple(calls), (last,))
    return graph, dict.fromkeys(("x", *(name for x in calls for name in x.outputs)), ONE)


def found(fails: Callable[[Program], bool], graph: Graph, known: dict[str, Value]) -> Program | None:
    return cut.nodes(Compiler(fails), graph, known)  # type: ignore[arg-type]


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_node_that_fails_is_found_alone_with_its_constants(before: int, after: int) -> None:
    graph, known = chain(["A"] * before + ["Bad"] + ["B"] * after)
    made = found(lambda x: "Bad" in x.operators, graph, known)
    assert made is not None and made.operators == ("Constant", "Bad")


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 9))
def test_what_fails_only_behind_another_is_found_with_it(before: int, between: int, after: int) -> None:
    graph, known = chain(["A"] * before + ["Cause"] + ["B"] * between + ["Bad"] + ["A"] * after)

    def fails(x: Program) -> bool:
        names = x.operators
        return "Bad" in names and "Cause" in names[: names.index("Bad")]

    made = found(fails, graph, known)
    assert made is not None
    assert [x for x in made.operators if x != "Constant"] == ["Cause", *["B"] * between, "Bad"]


def test_what_fails_with_its_constants_fed_alone_is_fed() -> None:
    graph, known = chain(["A", "Bad", "A"])
    made = found(lambda x: "Bad" in x.operators and "Constant" not in x.operators, graph, known)
    assert made is not None and made.operators == ("Bad",)
    assert [x.name for x in made.inputs] == ["input_0", "input_1"]


def test_what_fails_with_one_constant_fed_is_fed_that() -> None:
    graph, known = chain(["Sum", "A", "Bad", "A"])

    def fails(x: Program) -> bool:
        needs = "Sum" not in x.operators or "Constant" in x.operators[: x.operators.index("Sum")]
        return needs and "Bad" in x.operators and "c2" not in {y for c in getattr(x, "calls", ()) for y in c.outputs}

    made = found(fails, graph, known)
    assert made is not None and made.operators == ("Bad",)


def test_a_node_that_fails_only_when_it_is_fed_is_not_taken() -> None:
    """What is computed from a shape that is known is no dynamic shape, as the same node given that shape has."""
    graph, known = chain(["Shape", "Expand", "Unique", "Expand"])

    def fails(x: Program) -> bool:
        names = x.operators
        return ("Expand" in names and "Shape" not in names[: names.index("Expand")]) or names.count("Expand") > 1

    made = found(fails, graph, known)
    assert made is not None and made.operators == ("Constant", "Expand")
    assert [x.name for x in made.inputs] == ["r2"], "the second of the two"


def test_a_file_that_does_not_fail_so_as_a_program_has_no_plain_form() -> None:
    graph, known = chain(["A", "B"])
    assert found(lambda _: False, graph, known) is None
    other = msgspec.structs.replace(FAILED, message="quite another thing is said here")
    compiler = Compiler(lambda _: True)
    compiler.look = lambda programs: [other for _ in programs]  # type: ignore[method-assign]
    assert cut.nodes(compiler, graph, known) is None  # type: ignore[arg-type]


def test_of_a_file_of_constants_alone_the_one_that_fails_is_found() -> None:
    graph = Graph("onnx", (), (call("Constant", "a"), call("Constant", "b")), ("a", "b"))
    graph = msgspec.structs.replace(
        graph, calls=(graph.calls[0], msgspec.structs.replace(graph.calls[1], params={"value": BARE}))
    )
    made = found(lambda x: isinstance(x, Instance) and x.params == {"value": BARE}, graph, {"a": ONE, "b": BARE})
    assert isinstance(made, Instance) and made.operator == "Constant"


def test_of_wrong_draws_the_node_is_found_though_no_law_is_known_of_the_whole() -> None:
    graph, known = chain(["A", "Draw", "B"])
    drawn = Outcome(INCONSISTENT, "infer", "value", "drawn too often", details={"drawn": "shares"})
    compiler = Compiler(lambda _: False)
    compiler.target = drawn
    compiler.look = lambda programs: [  # type: ignore[method-assign]
        drawn if [x for x in p.operators if x != "Constant"] == ["Draw"] else Outcome(PASS) for p in programs
    ]
    found = cut.nodes(compiler, graph, known)  # type: ignore[arg-type]
    assert found is not None and found.operators == ("Constant", "Draw")


def reduction_of(operator: str, outcome: Outcome, **more: object) -> Reduction:
    call = Instance("keras", operator, {}, (Operand("x", ONE),), (), {"kind": "function"})
    held = Captured(call, Provenance("s", "f", "t")).form()
    return Reduction("F1", "e", "mnn-keras", "tflite", "t", held, outcome, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "outcome", "wanted"),
    [
        ("keras.ops.einsum", FULLY, "keras.layers.Dense"),
        ("keras.layers.Dense", FULLY, None),
        ("keras.ops.einsum", msgspec.structs.replace(FULLY, verdict=INCONSISTENT), None),
        ("keras.ops.einsum", msgspec.structs.replace(FULLY, conversion_function="expanded einsum"), None),
        ("keras.ops.einsum", msgspec.structs.replace(FULLY, conversion_function="NO_SUCH_OPERATOR"), None),
    ],
)
def test_the_plainest_call_of_an_operator_is_taken_where_it_fails_in_the_same_words_there(
    operator: str, outcome: Outcome, wanted: str | None
) -> None:
    """Wrong answers of one operator may be of two mistakes; and none of the plainest calls is plainer than another."""
    asked = Compiler(lambda x: smaller.leaves(x)[0].shape == (1, 2, 2))
    asked.fails = partial(alike, "mnn-keras", FULLY)  # type: ignore[method-assign]
    asked.look = lambda programs: [FULLY if asked.failing(x) else Outcome(PASS) for x in programs]  # type: ignore[method-assign]
    found = cut._called(asked, reduction_of(operator, outcome))  # type: ignore[arg-type]
    assert (found and found.operators) == (wanted and (wanted,))
    asked.look = lambda programs: [msgspec.structs.replace(FULLY, message="something else") for _ in programs]  # type: ignore[method-assign]
    assert cut._called(asked, reduction_of(operator, outcome)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("line", "found"), [(5262, False), (5263, True)])
def test_the_plainest_call_fails_at_the_same_line(line: int, found: bool) -> None:
    """TVM reads begin and size of a SLICE one after the other: an LSTM whose size is computed is no `slice` of a begin."""
    name = "tflite_frontend:OperatorConverter.convert_slice"
    whole = Outcome(CRASH, "load", "TypeError", "a bytes-like object is required", conversion_function=name)
    held, now = (
        msgspec.structs.replace(whole, seen=Seen(frames=("opera.run.worker:go:1", f"tvm.tflite:convert_slice:{x}")))
        for x in (5263, line)
    )
    asked = Compiler(lambda _: True)
    asked.fails = lambda *_, **__: True  # type: ignore[method-assign]
    asked.look = lambda programs: [now for _ in programs]  # type: ignore[method-assign]
    assert (cut._called(asked, reduction_of("keras.layers.LSTM", held)) is not None) is found  # type: ignore[arg-type]


def test_a_plain_form_says_what_it_is_of_unless_only_the_way_to_load_it_ties_them() -> None:
    def told(whole: Reduction, shown: Reduction) -> str:
        verdict = Verdict("t", "mnn-keras", "tflite", "e", FAILED, "F1")
        return Choice(verdict, verdict, shown, whole=whole).exported

    whole = reduction_of("keras.layers.EinsumDense", FULLY)
    node = Captured(Instance("onnx", "Relu", {}, (Operand("X", ONE),), ("y",), {}), Provenance("s", "f", "t")).form()
    assert told(whole, reduction_of("keras.layers.Dense", FULLY)) == "seen in keras.layers.EinsumDense"
    assert told(whole, msgspec.structs.replace(whole, captured=node)) == "from keras.layers.EinsumDense"
    assert told(whole, msgspec.structs.replace(whole, captured=node, fed=True)) == ""


@pytest.mark.full
def test_what_fails_by_an_exported_file_is_shown_by_its_node(workspace: Workspace) -> None:
    """OpenVINO loses an axis of the inverse of a real transform, by ONNX's DFT that PyTorch's exporter writes."""
    for name in ("torch", "onnxscript", "openvino"):
        pytest.importorskip(name)
    x = Tensor.of(np.arange(1.0, 5.0, dtype="f4").reshape(1, 2, 2))
    called = {"call": {"args": ["input"], "kwargs": []}, "kind": "function"}
    hfft = Instance("torch", "torch.fft.hfft", {}, (Operand("input", x),), (), called)
    workspace.add_captured([Captured(hfft, Provenance("suite", "file", "test"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(60.0)), Silent())
    [before] = [x for x in findings(workspace) if x.variants == ("onnx",)]
    reducing.reduce_all(workspace, [before.id], 20.0, 120.0, lambda _: None, workers=1)
    [after] = [x for x in findings(workspace) if x.id == before.id]
    assert "DFT" in after.sentence and "(from torch.fft.hfft)" in after.sentence and after.frontend == "openvino-torch"
    members = scripts.members(workspace)[after.id]
    chosen, own = choose(workspace, members), choose(workspace, members, plain=False)
    assert chosen is not None and own is not None and chosen.whole == own.reduction
    assert (
        chosen.verdict.frontend == "openvino-onnx" and "torch" not in scripts.environment(workspace, chosen)["exporter"]
    )
    path = scripts.write(workspace, after.id, members)
    assert path is not None and "torch" not in path.read_text().replace("torch.fft.hfft", "").replace(
        "openvino-torch", ""
    )
    assert scripts.verify(path, after.id).shown
    told = draft(workspace, after.id)
    assert told.framework == "ONNX" and told.library == "PyTorch" and "[ONNX] " in told.title
    assert "import torch" not in told.script and not told.exit_codes


@pytest.mark.full
def test_what_an_exporter_folds_is_shown_by_the_constant_that_is_left(workspace: Workspace) -> None:
    """OpenVINO reads a tensor of no elements that a file holds as a number; what PyTorch called was not exported at all."""
    for name in ("torch", "onnxscript", "openvino"):
        pytest.importorskip(name)
    called = {"call": {"args": ["start", "end", "steps"], "kwargs": []}, "kind": "function"}
    start = (Operand("start", Tensor.of(np.array(1, "f4"))),)
    empty = Instance("torch", "torch.linspace", {"end": 1, "steps": 0}, start, (), called)
    workspace.add_captured([Captured(empty, Provenance("suite", "file", "test"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(60.0)), Silent())
    [before] = [x for x in findings(workspace) if x.variants == ("onnx",)]
    reducing.reduce_all(workspace, [before.id], 20.0, 120.0, lambda _: None, workers=1)
    [after] = [x for x in findings(workspace) if x.id == before.id]
    assert "Constant" in after.sentence and "(from torch.linspace)" in after.sentence
