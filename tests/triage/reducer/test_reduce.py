"""Findings are reduced to the smallest program that fails alike, by the real compilers where a behaviour of theirs matters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from commands import opera
from faults.onnx_faults import Silent, relu
from hypothesis import given
from hypothesis import strategies as st
from opsets import f32
from several_calls import node

from opera.errors import NoAnswer
from opera.oracle.screens import AGREEING
from opera.oracle.signature import Signature
from opera.programs.program import Captured, Graph, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, INVALID, TIMEOUT, UNSTABLE, Limits, Outcome
from opera.report import draft, issue
from opera.report.summary import summarise
from opera.run import driver as stage
from opera.run.probe import Probe, Question
from opera.store import tests
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.conditions import circumstances, deciding, readable
from opera.triage.findings import findings
from opera.triage.reducer import asking, embedded, reduce, reducing
from opera.triage.reproducers import scripts
from opera.triage.sentence import reads_as_refusal
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

pytest.importorskip("onnx")


def onnx(
    operator: str, inputs: dict[str, Tensor | None], outputs: tuple[str, ...] = ("y",), **params: object
) -> Instance:
    operands = tuple(Operand(name, value) for name, value in inputs.items())
    return Instance("onnx", operator, dict(params), operands, outputs, {"opset": {"": 22}})


def run(workspace: Workspace, compiler: str, *programs: Program | Captured) -> None:
    seen = Provenance("suite", "file", "test")
    workspace.add_captured([x if isinstance(x, Captured) else Captured(x, seen) for x in programs])
    options = stage.Options(compilers=(compiler,), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())


def counted(workspace: Workspace) -> dict[str, object]:
    """Return what a report says, but for when it was made and which findings have a script."""
    told: dict[str, object] = msgspec.to_builtins(summarise(workspace))
    return {name: value for name, value in told.items() if name not in ("generated", "findings")}


def reduced(workspace: Workspace, seconds: float = 60.0) -> dict[str, reduction.Reduction]:
    """Reduce all findings; return them by operator of what is left."""
    said: list[str] = []
    reducing.reduce_all(workspace, list(scripts.members(workspace)), seconds, 600.0, said.append, workers=1)
    found = {x.program().program.operator: x for x in reduction.stored(workspace)}
    assert found, said
    return found


def test_a_planted_fault_is_reduced_and_the_corpus_does_not_know(workspace: Workspace) -> None:
    run(workspace, "faults.onnx_faults:wrong_value", *(relu(n, "LeakyRelu") for n in range(2)), relu(3, "Relu"))
    before = tests.newest(workspace)
    told = counted(workspace)
    [found] = reduced(workspace).values()
    assert found.elements <= 2 and found.nondefault == 0 and found.deciding == () and found.finished
    assert found.outcome.verdict == INCONSISTENT and found.outcome.symptom == "value"
    assert tests.newest(workspace) == before and counted(workspace) == told
    assert len(list(workspace.documents("onnx"))) == 3
    assert len(workspace.corpus("onnx")) == 3 and [len(x.members) for x in findings(workspace)] == [2]
    made = tests.test(workspace, found.stored)
    assert workspace.instance(made.instance) == found.program().program
    with Probe.of(workspace, workers=1) as probe:
        stored = probe(Question(frontend=found.frontend, test=found.stored))
    assert (stored.verdict, stored.symptom) == (INCONSISTENT, "value")
    [script] = scripts.members(workspace)
    text = (workspace.root / "reproducers" / f"{script}.py").read_text()
    assert "LeakyRelu1 (file)" in text or "LeakyRelu0 (file)" in text, "it says where the member came from"
    shown = scripts.choose(workspace, scripts.members(workspace)[script])
    assert shown is not None and shown.verdict.test in {x.stored for x in reduction.stored(workspace)}
    for x in reduction.stored(workspace):
        reduction.save(workspace, msgspec.structs.replace(x, asked=-1))  # no search ends so
    marked = {x.test: -1 for x in reduction.stored(workspace)}
    reducing.show(workspace, ["all"], 60.0, 0.0, 1, again=True)
    assert {x.test: x.asked for x in reduction.stored(workspace)} == marked, "the time was over: nothing is lost"
    reducing.show(workspace, ["all"], 60.0, 600.0, 1, again=True)
    later = {x.test: x.asked for x in reduction.stored(workspace)}
    assert later.keys() == marked.keys() and min(later.values()) > 0, "all were reduced once more"


def test_what_fails_no_more_when_it_is_to_be_reduced_is_not_ready(workspace: Workspace, monkeypatch: Any) -> None:
    run(workspace, "faults.onnx_faults:wrong_value", relu(1, "LeakyRelu"))
    [ready] = findings(workspace)
    monkeypatch.setattr(reduce, "alike", lambda *_, **__: False)
    reducing.reduce_all(workspace, [ready.id], 60.0, 600.0, lambda _: None, workers=1)
    [found] = findings(workspace)
    assert set(found.doubts) - set(ready.doubts) and "it is now inconsistent" in " ".join(found.doubts)


def test_wrong_outputs_that_vary_now_are_the_failure_that_did_not(workspace: Workspace) -> None:
    """Memory that nobody writes may hold the same twice."""
    run(workspace, "faults.onnx_faults:random", relu(1, "LeakyRelu"))
    [[verdict]] = scripts.members(workspace).values()
    assert verdict.outcome.verdict == UNSTABLE
    settled = msgspec.structs.replace(verdict.outcome, verdict=INCONSISTENT, symptom="value", details={})
    with Probe.of(workspace, workers=1) as probe:
        ask, _ = reduce.asker(workspace, probe, msgspec.structs.replace(verdict, outcome=settled))
        assert ask.target.verdict == UNSTABLE
        crashed = msgspec.structs.replace(settled, verdict=CRASH)
        with pytest.raises(reduce.NotReduced, match="it is now unstable"):
            reduce.asker(workspace, probe, msgspec.structs.replace(verdict, outcome=crashed))


def test_a_worker_that_another_program_spoilt_is_not_believed(workspace: Workspace, monkeypatch: Any) -> None:
    """OpenVINO's wrong sum of two int8 was "now abort", where the worker had run other programs before."""
    run(workspace, "faults.onnx_faults:wrong_value", relu(1, "LeakyRelu"))
    [[verdict]] = scripts.members(workspace).values()

    def dies(self: asking.Asker, programs: Sequence[Program]) -> list[Outcome]:
        self.outcomes.update((x.id, Outcome(ABORT, "infer", "SIGSEGV")) for x in programs)
        return [self.outcomes[x.id] for x in programs]

    monkeypatch.setattr(asking.Asker, "look", dies)
    with Probe.of(workspace, workers=1) as probe:
        ask, program = reduce.asker(workspace, probe, verdict)
    assert ask.target is ask.outcomes[program.id] and ask.target.verdict == INCONSISTENT


@pytest.mark.parametrize(
    ("compiler", "verdict"),
    [("segfault", ABORT), pytest.param("hang", TIMEOUT, marks=pytest.mark.full), ("crash", CRASH)],
)
def test_what_dies_hangs_or_raises_is_reduced(workspace: Workspace, compiler: str, verdict: str) -> None:
    workspace.add_captured([relu(3, "LeakyRelu")])
    options = stage.Options(compilers=(f"faults.onnx_faults:{compiler}",), workers=1, limits=Limits(1.0))
    stage.run(workspace, options, Silent())
    [found] = reduced(workspace, 40.0).values()
    assert found.outcome.verdict == verdict and found.elements <= 2


def test_what_cannot_fail_alone_is_said_and_not_stored(workspace: Workspace) -> None:
    run(workspace, "faults.onnx_faults:leaks_state", *(relu(n, "LeakyRelu") for n in range(3)))
    said: list[str] = []
    reducing.reduce_all(workspace, list(scripts.members(workspace)), 10.0, 60.0, said.append, workers=1)
    assert reduction.stored(workspace) == [] and all("is not reduced" in x for x in said) and said


def test_a_verdict_that_does_not_tell_that_nothing_is_expected_is_reduced(workspace: Workspace) -> None:
    run(workspace, "faults.onnx_faults:crash", onnx("LeakyRelu", {"X": Tensor.of(np.ones((0, 2), "f4"))}, ("Y",)))
    [verdict] = workspace.verdicts("finding IS NOT NULL")
    assert verdict.outcome.details.pop("nothing") and verdict.outcome.conversion_function
    with Probe.of(workspace, workers=1) as probe:
        ask, _ = reduce.asker(workspace, probe, verdict)
    assert ask.target is not None and ask.target.details["nothing"]


@pytest.mark.full
def test_who_computed_what_a_test_expects_is_asked_where_the_evaluator_cannot(workspace: Workspace) -> None:
    """The evaluator gathers only from as many rows as there are indices along every other axis; OpenVINO as well."""
    pytest.importorskip("openvino")
    data, indices = f32(3, 4), Tensor.of(np.zeros((5, 2), "i8"))
    call = onnx("GatherElements", {"data": data, "indices": indices}, axis=0)
    expected = (Tensor.of(np.broadcast_to(data.array()[0, :2], (5, 2)).copy()),)
    run(workspace, "openvino", Captured(call, Provenance("sionnx", "file", "test"), expected, reference="onnxruntime"))
    found = reduced(workspace)["GatherElements"]
    assert found.elements < 22 and found.program().reference == "onnxruntime"
    failing, passing = found.near
    assert failing > 5 and passing > 5 and any("longer than" in x for x in (*found.besides, *found.circumstances))


@pytest.mark.full
def test_openvino_counts_windows_that_begin_in_the_padding(workspace: Workspace) -> None:
    pytest.importorskip("openvino")
    pool = onnx("MaxPool", {"X": f32(1, 3, 8, 8)}, ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2], dilations=[1, 1])
    run(workspace, "openvino", pool)
    found = reduced(workspace)["MaxPool"]
    program = found.program().program
    assert found.outcome.symptom == "shape" and found.elements <= readable.MOST
    assert "ceil_mode=1" in found.deciding and "dilations" not in program.instances()[0].params


def test_which_constant_matters_is_told_of_each_alone(workspace: Workspace) -> None:
    """ONNX Runtime reads axes of int32 for int64 where they are constants, whatever the pads are."""
    pytest.importorskip("onnxruntime")
    low = Tensor.of(np.zeros(2, "u1"), "float8_e4m3fnuz")  # which it refuses where all are inputs
    held = {"pads": Tensor.of(np.array([1, 1])), "": None, "axes": Tensor.of(np.array([0], "i4"))}
    pad = onnx("Pad", {"data": low, **held})
    run(workspace, "onnxruntime", pad)
    [found] = reduced(workspace).values()
    assert found.variant == "constants" and found.constant == (("pads", False),)
    [before] = findings(workspace)
    text = issue.render(draft.draft(workspace, before.id))
    assert "axes and pads are initializers; it runs where pads alone is a constant" in text


@pytest.mark.full
def test_the_call_that_is_wrong_is_found_among_several(workspace: Workspace) -> None:
    pytest.importorskip("openvino")
    calls = (
        node("Relu", {"X": "x"}, ("h",)),
        node("MaxPool", {"X": "h"}, ("p",), ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2]),
        node("Neg", {"X": "p"}, ("y",)),
    )
    newer = tuple(msgspec.structs.replace(call, context={"opset": {"": 22}}) for call in calls)
    graph = Graph("onnx", (Operand("x", f32(1, 2, 6, 6)),), newer, ("y",))
    run(workspace, "openvino", graph)
    found = reduced(workspace)["MaxPool"]
    assert len(found.program().program.instances()) == 1 and found.elements <= readable.MOST


def test_another_message_is_another_failure_though_the_signature_forgives_names() -> None:
    one = Outcome(CRASH, "load", "KeyError", "'num_heads'")
    other = msgspec.structs.replace(one, message="'scale'")
    assert Signature.of("tvm-onnx", "", one) == Signature.of("tvm-onnx", "", other)
    assert reduce.alike("tvm-onnx", one, one) and not reduce.alike("tvm-onnx", one, other)
    there = msgspec.structs.replace(one, conversion_function="Attention")
    assert not reduce.alike("tvm-onnx", one, there) and reduce.alike("tvm-onnx", one, there, elsewhere=True)


def test_a_gross_deviation_is_not_reduced_to_rounding() -> None:
    off = [Outcome(INCONSISTENT, "infer", "value", details={"max_rel": x, "max_abs": x}) for x in (0.5, 2e-4, 0.02)]
    assert (
        not reduce.alike("f", off[0], off[1])
        and reduce.alike("f", off[0], off[2])
        and reduce.alike("f", off[1], off[1])
    )


@pytest.mark.full
def test_the_command_reduces_and_a_run_does_so_by_itself(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    root = tmp_path / "w"
    pool = onnx("MaxPool", {"X": f32(1, 1, 2, 2)}, ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2])
    with Workspace.open(root, write=True) as opened:
        opened.add_captured([Captured(pool, Provenance("suite", "file", "test"))])
    plain = opera("run", "--compiler", "openvino", "--no-reduce", "--workspace", root)
    assert plain.returncode == 0 and "reduced" not in plain.stdout, plain.stderr
    with Workspace.open(root, write=False) as opened:
        assert reduction.stored(opened) == []
        [name] = scripts.members(opened)
    done = opera("reduce", name[:5], "--seconds", 30, "--workspace", root)
    assert done.returncode == 0 and "only with ceil_mode=1" in done.stdout, done.stdout + done.stderr
    assert "every finding is reduced" in opera("reduce", "all", "--workspace", root).stdout
    with Workspace.open(root, write=False) as opened:
        [found] = reduction.stored(opened)
    shown = opera("show", found.stored, "--workspace", root)
    assert shown.returncode == 0 and "MaxPool" in shown.stdout, shown.stderr
    assert "1 new findings" not in opera("run", "--compiler", "openvino", "--workspace", root).stdout
    assert "elements" in opera("reduce", name[:5], name, "--again", "--seconds", 5, "--workspace", root).stdout
    assert opera("reduce", name, "Fzz", "--workspace", root).returncode == 2
    other = tmp_path / "v"
    with Workspace.open(other, write=True) as opened:
        opened.add_captured([Captured(pool, Provenance("suite", "file", "test"))])
    ran = opera("run", "--compiler", "openvino", "--reduce-seconds", 40, "--workspace", other)
    assert "1 of 1 new findings reduced" in ran.stdout and "1 reproducers written" in ran.stdout, (
        ran.stdout + ran.stderr
    )
    over = opera("run", "--compiler", "openvino", "--rerun", "--time-budget", 1, "--workspace", other)
    assert "reduced" not in over.stdout


def test_what_was_drawn_fails_alike_where_the_same_is_wrong_with_it():
    def shown(kind, off):
        return Outcome("inconsistent", "infer", "value", "y", details={"drawn": kind, "max_rel": off})

    assert reduce.alike("tvm-onnx", shown("constant", 5.0), shown("constant", 1e-9))
    assert not reduce.alike("tvm-onnx", shown("constant", 5.0), shown("range", 5.0))


def nan_mask(expected, actual):
    return Outcome(INCONSISTENT, "infer", "nan-mask", "y", details={"expected": expected, "actual": actual})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (nan_mask("-inf", -3.4028234663852886e38), nan_mask("-inf", -3.4028234663852886e38), True),
        (nan_mask("-inf", -3.4028234663852886e38), nan_mask("-inf", -65504.0), True),
        (nan_mask("-inf", -3.4028234663852886e38), nan_mask("-inf", 2.0), False),
        (nan_mask("nan", 1.5), nan_mask("inf", 1.5), False),
        (nan_mask(1.0, "nan"), nan_mask(7.0, "nan"), True),
    ],
)
def test_the_kind_of_wrong_number_stays(one, other, same):
    assert reduce.alike("tvm-onnx", one, other) is same
    assert reduce.alike("tvm-onnx", one, other, elsewhere=True), "another call may give another number"


@pytest.mark.parametrize(
    ("message", "reads"),
    [
        ("Check failed: only float32 is not yet supported", True),
        ("index 2 is out of bounds", False),
        ("While validating node 'opset1::Reshape aten::svd/requires_3x3_1'", True),
        ("While validating node 'opset1::Reshape aten::svd/Reshape_1', which requires a shape", False),
    ],
)
def test_a_crash_reads_as_a_refusal_for_finding_and_draft_alike(message, reads):
    assert reads_as_refusal(Outcome(CRASH, "load", "RuntimeError", message)) is reads
    assert not reads_as_refusal(Outcome(INCONSISTENT, "infer", "value", message))


def test_a_reduction_that_had_too_little_time_takes_the_place_of_none_on_its_frontend_alone(
    workspace: Workspace,
) -> None:
    def made(frontend: str, value: float, *, finished: bool) -> reduction.Reduction:
        one = Instance("onnx", "Exp", {}, (Operand("x", Tensor.of(np.float32([value]))),), ("y",), {"opset": {"": 13}})
        captured = Captured(one, Provenance("s", "f", "t")).form()
        outcome = Outcome(INCONSISTENT, "infer", "value", "y")
        return reduction.Reduction(
            f"F{frontend}", "e", frontend, "inputs", "t" * 20, captured, outcome, finished=finished
        )

    whole, later, other = (
        made("a-onnx", 1, finished=True),
        made("a-onnx", 2, finished=False),
        made("b-onnx", 3, finished=False),
    )
    stands = [reducing.store(workspace, x) for x in (whole, later, other)]
    assert stands == [whole, whole, other]
    assert {x.frontend: x.captured for x in reduction.stored(workspace)} == {
        "a-onnx": whole.captured,
        "b-onnx": other.captured,
    }


def said(*words: str) -> dict[str, list[str]]:
    return {"Y": list(words), "Z": ["wrong", "all", "finite>finite"]}


def test_a_program_hides_something_if_other_values_make_a_right_output_wrong() -> None:
    class Probing:
        def __init__(self) -> None:
            self.tags: list[str] = []

        def submit(self, question: Question, tag: str) -> None:
            self.tags.append(tag)

        def answers(self) -> list[Any]:
            tags, self.tags = self.tags, []
            shown = Outcome(INCONSISTENT, details={"manner": said("wrong", "all", "finite>finite")})
            return [type("Answer", (), {"tag": x, "outcome": shown}) for x in tags]

    ask: Any = asking.Asker(Probing(), Question(frontend="f"))  # type: ignore[arg-type]
    equal, differing = (onnx("Add", {"A": Tensor.of(np.float32(x))}) for x in ([1, 1], [1, 2]))
    ask.target = Outcome(INCONSISTENT, details={"manner": said("right")})
    assert ask.hides(equal) and not ask.hides(differing)
    ask.target = Outcome(INCONSISTENT, details={"manner": said("wrong", "all", "finite>finite")})
    assert not ask.hides(equal)


def test_values_are_taken_that_tell_more() -> None:
    before = Outcome(INCONSISTENT, details={"manner": said("wrong", "all", "finite>finite", "uniform")})
    for words, more in ((("wrong", "all", "finite>finite"), True), (("wrong", "all", "zero>finite", "uniform"), False)):
        assert reduce._tells_more(before, Outcome(INCONSISTENT, details={"manner": said(*words)})) is more


def test_what_the_member_fails_without_does_not_decide():
    def istft(shape, **params):
        return Instance(
            "torch", "torch.istft", params, (Operand("input", Tensor.of(np.ones(shape, "float32"))),), (), {}
        )

    def nobody(programs):
        raise Spent

    told = deciding.Decided(("hop_length left out",), ("a 1-d input",))
    defaults = {"torch.istft": {"hop_length": None}}

    def borne(member):
        seen = [circumstances.Labelled(member, True)]
        return circumstances.borne_out(nobody, istft((1,), n_fft=4), defaults, told, seen).decided

    assert borne(istft((2,), n_fft=16, hop_length=4)) == deciding.Decided((), told.besides)
    assert borne(istft((2, 2), n_fft=16)) == deciding.Decided(told.parameters)
    assert borne(msgspec.structs.replace(istft((), hop_length=4), operator="torch.stft")) == told


def test_a_form_that_is_no_program_ends_no_search() -> None:
    form = onnx("Abs", {"X": f32(1)}).form()
    broken = {
        "library": "onnx",
        "calls": [{**form, "inputs": [{"name": "X", "of": "nobody"}]}],
        "inputs": [],
        "outputs": [],
    }
    assert [x.form() for x in reduce._programs([broken, form])] == [form]


def test_a_parameter_becomes_simpler_with_the_elements_that_it_asks_for() -> None:
    """As `fold` of fewer windows, once its dilation is left out: neither change alone is a program."""
    program = onnx("Fold", {"X": f32(1, 4, 6)}, dilation=2, size=3)

    class Answers:
        batch, needed = 4, False

        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            return [Outcome(CRASH if fits(x) else INVALID) for x in programs]

        def vanished(self, program: Program) -> bool:
            return self.needed

        def __call__(self, programs: Sequence[Program]) -> list[bool]:
            return list(map(fits, programs))

        def stands(self, program: Program) -> bool:
            return True

    def fits(x: Program) -> bool:
        [call] = x.instances()
        return x.inputs[0].value.shape[2] == 3 * call.params.get("dilation", 1)  # type: ignore[union-attr]

    kept: list[Program] = [program]
    ask, known = cast(Any, Answers()), {"Fold": {"dilation": 1}}
    assert reduce._fitted(ask, known, kept, 0)
    assert kept[-1].inputs[0].value == Tensor.of(f32(1, 4, 6).array()[..., :3])
    assert "dilation" not in kept[-1].instances()[0].params
    ask.needed, kept = True, [program]
    assert not reduce._fitted(ask, known, kept, 0) and kept == [program], "it passes without its dilation"


@pytest.mark.parametrize(("constant", "told"), [("GenericConst", True), ("Var", False)])
def test_what_is_said_of_a_constant_is_told_where_it_is_not_what_is_said_of_an_input(constant: str, told: bool) -> None:
    def crash(of: str) -> Outcome:
        return Outcome(CRASH, "load", "AttributeError", f"'{of}' object has no attribute 'tolist'")

    class Asked:
        def __init__(self, program: Program) -> None:
            self.outcomes = {program.id: crash("Var")}

        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            assert all(x.operators == ("Constant", "MaxUnpool") for x in programs)
            return [crash(constant) for _ in programs]

    shape = Tensor.of(np.array([1, 1, 1, 5], "i8"))
    unpool = onnx(
        "MaxUnpool", {"X": f32(1, 1, 1, 1), "I": Tensor.of(np.ones((1, 1, 1, 1), "i8")), "output_shape": shape}
    )
    said = (("output_shape", "'GenericConst' object has no attribute 'tolist'"),)
    assert embedded.held(cast(Any, Asked(unpool)), unpool) == (said if told else ())


@given(st.lists(st.floats(0.0, 100.0), max_size=5), st.floats(0.5, 60.0))
def test_what_hangs_is_waited_for_as_long_as_ten_usual_tests_take_and_never_longer_than_in_a_run(
    usual: list[float], most: float
) -> None:
    limits = reduce.hanging(Limits(most), usual)
    assert min(most, reduce.HANGS) <= limits.seconds <= most and limits.memory == Limits().memory
    assert limits.seconds >= min(most, 10.0 * min(usual, default=0.0))


class Elements:
    """Of whom a program shows what a test says, and which judges what is fair, or admitted, as it says."""

    def __init__(self, target: Outcome, shown: Outcome, *, fair: bool = True, alike: bool = False) -> None:
        self.target, self.outcomes = target, dict[str, Outcome]()
        self._shown, self._fair, self._alike = shown, fair, alike

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        self.outcomes |= {x.id: self._shown for x in programs}
        return [self._alike for _ in programs]

    def admits(self, program: Program) -> bool:
        return True

    def fair(self, program: Program) -> bool:
        return self._fair

    turned = asking.Asker.turned


def wrong(actual: float, **more: Any) -> Outcome:
    details = {"expected": 0.0, "actual": actual, "max_rel": 2.0, "max_abs": 2.0, **more}
    return Outcome(INCONSISTENT, "infer", "value", "wrong", details=details)


@pytest.mark.parametrize(
    ("ask", "taken"),
    [
        (Elements(wrong(-3e38), wrong(6.0)), True),  # of nothing the lowest float, of a matrix its largest element
        (Elements(wrong(-3e38), wrong(6.0), alike=True), True),
        (Elements(wrong(-3e38), wrong(6.0), fair=False), False),
        (Elements(wrong(-3e38), wrong(6.0), fair=False, alike=True), False),
        (Elements(wrong(-3e38, **{AGREEING: "tvm"}), wrong(6.0)), False),
        (Elements(wrong(-3e38), Outcome(CRASH, "infer", "E", "it stops")), False),
        (Elements(Outcome(CRASH, "infer", "E", "it stops"), wrong(6.0)), False),
    ],
)
def test_what_is_wrong_of_elements_is_reduced_in_the_place_of_nothing(ask: Elements, taken: bool) -> None:
    target, program = ask.target, onnx("ReduceMax", {"data": f32(2, 0)})
    found = reduce._with_elements(cast(Any, ask), program)
    assert bool(found) is taken and all(0 not in x.inputs[0].value.shape for x in found)  # type: ignore[union-attr]
    assert ask.target is target or (taken and ask.target is ask.outcomes[found[0].id])


@pytest.mark.parametrize(
    ("said", "held", "finding", "variant"),
    [
        ("no len()", ("scales",), "F1", "constants"),
        ("another", ("scales",), "F1", "inputs"),
        ("no len()", (), "F1", "inputs"),
        ("no len()", ("scales",), "F2", "inputs"),  # no member of the finding would have the reduction
    ],
)
def test_what_fails_alike_with_constants_is_asked_with_these(
    said: str, held: tuple[str, ...], finding: str, variant: str, monkeypatch: Any
) -> None:
    """TVM does not read Upsample's scales, whose values it would refuse at run time."""
    call = Instance("onnx", "Upsample", {}, (Operand("X", Tensor.of(np.ones(1, "f4"))),), ("Y",), {"opset": {"": 9}})
    shown, now = (Outcome(CRASH, "load", "TypeError", x, location="onnx_frontend.py:get") for x in ("no len()", said))
    ask = asking.Asker(None, Question(frontend="tvm-onnx", variant="inputs"))  # type: ignore[arg-type]
    ask.target, ask.outcomes = shown, {call.id: shown}
    ask.by_variant = lambda program, name: now  # type: ignore[method-assign]
    manifest = type("Manifest", (), {"constants": held})
    monkeypatch.setattr(embedded.migrated, "read_manifest", lambda _: manifest)
    verdict = Verdict("t" * 20, "tvm-onnx", "inputs", "e", shown, "F1")
    other = msgspec.structs.replace(verdict, variant="constants", finding=finding)
    monkeypatch.setattr(embedded.stored_verdicts, "of_test", lambda *_: iter([verdict, other]))
    workspace = type("W", (), {"tests_folder": Path()})
    found = embedded.of_variant(workspace, ask, call, verdict)  # type: ignore[arg-type]
    assert (found.variant, ask.question.variant) == (variant, variant)


def test_what_ends_a_worker_when_it_is_counted_is_reduced_all_the_same() -> None:
    class Dying:
        def known(self, *_: Any, **__: Any) -> None:
            raise NoAnswer("keras was not asked")

    ask = asking.Asker(Dying(), Question(frontend="tvm-keras"))  # type: ignore[arg-type]
    call = Instance("keras", "keras.ops.abs", {}, (Operand("x", Tensor.of(f32(1))),), (), {"kind": "function"})
    assert reduce._operations(ask, call) == 0


@pytest.mark.parametrize("faulted", [False, True])
def test_longer_axes_are_not_taken_of_which_somebody_says_that_the_program_is_none(faulted: bool) -> None:
    """A scale of both axes is one of the last while both have length 1: of longer ones OpenVINO takes it no more."""
    ones = Tensor.of(np.ones((1, 1), np.float32))
    program = Instance("onnx", "LayerNormalization", {}, (Operand("X", ones), Operand("Scale", ones)), ("Y",), {})
    ask = asking.Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.outcomes[program.id] = ask.target = Outcome(INCONSISTENT, "infer", "shape")
    ask.look = lambda asked: [ask.outcomes.setdefault(x.id, ask.target) for x in asked]  # type: ignore[method-assign]
    ask.stands = ask.fair = lambda _: True  # type: ignore[method-assign]
    ask.faulted = lambda x, first: faulted and first == program and x.inputs[0].value.shape != (1, 1)  # type: ignore[method-assign]
    lengths = {x.shape for made in reduce._ordinary(ask, program, program) for x in smaller.leaves(made)}
    assert bool(lengths - {(1, 1)}) is not faulted


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_drawn_has_several_elements_at_last(fails: bool) -> None:
    """Of one element nobody would say that it is drawn: one program more is asked about, for each is run many times."""
    program, asked = onnx("Dropout", {"data": f32(1)}), list[Program]()
    ask = asking.Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.outcomes[program.id] = ask.target = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "constant"})

    def label(programs: Sequence[Program]) -> list[bool]:
        asked.extend(programs)
        return [fails] * len(programs)

    ask.__class__ = type("Asker", (asking.Asker,), {"__call__": lambda _, x: label(x)})
    ask.stands = lambda _: True  # type: ignore[method-assign]
    found = reduce._ordinary(ask, program, program)
    assert found == (asked if fails else []) and len(asked) == 1
    assert smaller.elements(asked[0]) > 1
