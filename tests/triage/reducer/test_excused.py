"""What a screen excuses is asked about where its excuse does not hold."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes  # noqa: F401 - NumPy learns bfloat16 of it
import numpy as np
import pytest
from faults.onnx_faults import Silent

from opera.errors import CorpusError, NoAnswer
from opera.oracle.conditioning import OF_SUMS
from opera.programs import degenerate
from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, SCREENED, Limits, Outcome
from opera.report import show
from opera.run import driver as stage
from opera.run import plan
from opera.run.probe import Probe
from opera.store import examined, verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import findings
from opera.triage.known import NONE
from opera.triage.reducer import excused, reducing
from opera.triage.shrink import smaller


def test_angles_that_are_never_reduced_are_found_of_a_thousand_numbers(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime's DFT of ten numbers is off by three epsilons, which readings of screened verdicts took for rounding."""
    pytest.importorskip("onnxruntime")
    numbers = np.arange(100, dtype="f4").reshape(1, 10, 10, 1)
    dft = Instance("onnx", "DFT", {"axis": 1}, (Operand("x", Tensor.of(numbers)),), ("y",), {"opset": {"": 19}})
    workspace.add_captured([Captured(dft, Provenance("suite", "file", "of_ten"))])
    stage.run(workspace, stage.Options(compilers=("onnxruntime",), workers=1, limits=Limits(60.0)), Silent())
    assert findings(workspace) == [] and [x.test for x in verdicts.of_kind(workspace, SCREENED)]
    with monkeypatch.context() as hurried:
        hurried.setattr(excused, "SECONDS", 0.0)
        excused.show(workspace, 600.0, 1)
    with monkeypatch.context() as silent:
        silent.setattr(excused, "longer", unanswered)
        excused.show(workspace, 600.0, 1)
    assert findings(workspace) == [], "there was no time, or no answer: it is asked about again"
    after = reducing.Afterwards(reducing.Given(wanted=False, workers=1))
    after(workspace)
    [found] = findings(workspace)
    assert found.origins == ("of_ten longer",) and found.id in capsys.readouterr().out
    assert after.found == [found.id], "a run tells it with its own new ones, and fails of it"
    [aside] = verdicts.of_kind(workspace, SCREENED)
    for details in (False, True):
        show.show(workspace, aside.test, NONE, details=details)
        assert f"is wrong by more than rounding with a longer axis: {found.id}" in capsys.readouterr().out
    with Probe.of(workspace, workers=1) as probe:
        assert not list(excused.ask(workspace, probe, 600.0)), "each is asked about once"


def unanswered(program: Program) -> Iterator[Program]:
    raise NoAnswer("nobody was asked")


def test_a_program_that_cannot_be_made_ends_no_question_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Instance("onnx", "Neg", {}, (Operand("x", Tensor.of(np.ones(2, "f4"))),), ("y",), {"opset": {"": 19}})

    def too_large(program: Program) -> Iterator[Program]:
        yield program
        raise CorpusError("no tensor may be so large")

    monkeypatch.setattr(excused, "longer", too_large)
    why = excused.of(Outcome(SCREENED, details={"screen": "ill-conditioned", OF_SUMS: 4.0}))
    assert why is not None
    assert [how for _, how in excused._beyond(why, call)] == [excused.DOUBLE, excused.LONGER]


def test_a_tie_that_is_rounded_wrongly_is_found_of_what_a_last_bit_moves(workspace: Workspace) -> None:
    """OpenVINO's DynamicQuantizeLinear rounds 2.5 of a scale of 1 up; of a scale of 5/255 that is a matter of the last bit."""
    pytest.importorskip("openvino")
    numbers = np.float32([0, 2, -3, -2.5, 1.34, 0.5])
    outputs = ("y", "y_scale", "y_zero_point")
    given = (Operand("x", Tensor.of(numbers)),)
    call = Instance("onnx", "DynamicQuantizeLinear", {}, given, outputs, {"opset": {"": 11}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "of_six"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(600.0)), Silent())
    assert findings(workspace) == [] and list(verdicts.of_kind(workspace, SCREENED))
    excused.show(workspace, 600.0, 1)
    assert {x.origins for x in findings(workspace)} == {("of_six of plain numbers",)}


def test_each_setting_of_an_operator_is_asked_about_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told of an operator is not asked of its next setting."""
    pytest.importorskip("onnxruntime")
    numbers = np.arange(100, dtype="f4").reshape(1, 10, 10, 1)
    calls = [
        Instance("onnx", "DFT", params, (Operand("x", Tensor.of(x)),), ("y",), {"opset": {"": 19}})
        for params in ({"axis": 1}, {"axis": 1, "onesided": 1})
        for x in (numbers, numbers + 1)
    ]
    workspace.add_captured([Captured(x, Provenance("suite", "file", f"of_{n}")) for n, x in enumerate(calls)])
    stage.run(workspace, stage.Options(compilers=("onnxruntime",), workers=1, limits=Limits(600.0)), Silent())
    asked: list[tuple[object, set[str]]] = []

    def wrong(_: object, __: object, verdict: Verdict, ___: object, program: Instance, told: set[str]) -> list[object]:
        asked.append((program.params.get("onesided"), set(told)))
        return [(verdict, excused.LONGER)]

    monkeypatch.setattr(excused, "_wrong", wrong)
    excused.show(workspace, 600.0, 1)
    assert {x for x, _ in asked} == {None, 1} and [told for _, told in asked] == [set(), {excused.LONGER}]


def like(dtype: str) -> Instance:
    call = {"args": ["arg0", "arg1", "arg2"], "kwargs": []}
    given = (Operand("arg0", Tensor.of(np.full(16, -8, dtype))),)  # one number is the expected one by chance
    return Instance(
        "torch", "torch.randint_like", {"arg1": 2, "arg2": 10}, given, (), {"kind": "function", "call": call}
    )


@pytest.mark.parametrize(
    ("dtype", "asked"), [("int8", {"int8", "int64"}), ("int64", {"int64"}), ("float32", {"float32"})]
)
def test_nothing_is_left_to_chance_and_integers_hold_what_is_asked_for(dtype: str, asked: set[str]) -> None:
    found = [x for x, how in excused.certainly(like(dtype)) if how == excused.CERTAIN]
    assert {x.inputs[0].value.dtype for x in found} == asked  # type: ignore[union-attr]
    assert all(degenerate.holds(x) for x in found if isinstance(x, Instance))  # type: ignore[arg-type]
    assert {x.params["arg1"] for x in found if isinstance(x, Instance)} >= {3, 2**24 + 1}
    assert not list(excused.certainly(call_of("Abs")))


def call_of(operator: str) -> Instance:
    return Instance("onnx", operator, {}, (Operand("x", Tensor.of(np.ones(2, "f4"))),), ("y",), {"opset": {"": 19}})


def test_an_excuse_is_one_of_what_a_screen_set_aside() -> None:
    def of(screen: str, verdict: str = SCREENED, **details: float) -> set[str]:
        found = excused.of(Outcome(verdict, "infer", "value", details={"screen": screen, **details}))
        program = like("int8") if screen == "nondeterministic" else call_of("Abs")
        hows = {how for _, how in found.beyond(program)} if found is not None else set()
        assert found is None or hows <= {*found.hows}
        return hows

    assert of("ill-conditioned", **{OF_SUMS: 3.0}) == {excused.DOUBLE, excused.LONGER}
    assert of("nondeterministic") == {excused.CERTAIN}
    assert of("ill-conditioned") == {excused.DOUBLE, excused.PLAIN}, "its inputs were moved, no sum is in it"
    assert of("undefined-behaviour") == {excused.DEFINED}
    assert of("reference-disputed") == of("nondeterministic", INCONSISTENT) == set()


def test_a_range_that_chance_hides_is_found_of_a_dtype_that_cannot_hold_it(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyTorch's exporter makes `Floor(u * (high - low) + low)` in float32 of `randint_like`: of int8 it looks as documented."""
    for module in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(module)
    workspace.add_captured([Captured(like("int8"), Provenance("suite", "file", "of_int8"))])
    stage.run(workspace, stage.Options(compilers=("onnxexport",), workers=1, limits=Limits(120.0)), Silent())
    [aside] = verdicts.of_kind(workspace, SCREENED)
    assert findings(workspace) == [] and aside.outcome.details["screen"] == "nondeterministic"
    excused.show(workspace, 600.0, 1)
    [found] = findings(workspace)
    assert found.origins == ("of_int8 where nothing is left to chance",) and found.id in capsys.readouterr().out
    show.show(workspace, aside.test, NONE)
    assert f"is wrong where nothing is left to chance: {found.id}" in capsys.readouterr().out


def test_what_is_in_the_corpus_stays_there(workspace: Workspace) -> None:
    """The test of a corpus that was not run yet, and that an excused one leads to, was taken for no part of it."""
    for module in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(module)
    captured = degenerate.with_degenerate([Captured(like("int64"), Provenance("suite", "file", "of_int64"))])
    workspace.add_captured(captured)
    before = workspace.corpus("torch")
    assert len(before) == 3
    only = plan.Selection(test=like("int64").id)
    options = stage.Options(compilers=("onnxexport",), workers=1, limits=Limits(120.0), selection=only)
    stage.run(workspace, options, Silent())
    excused.show(workspace, 600.0, 1)
    [found] = findings(workspace)
    assert found.origins == ("of_int64 with arg1 = 16777217, arg2 = 16777218",)
    assert workspace.corpus("torch") == before and not examined.made(workspace)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_asked_about_in_float32_first(dtype: str) -> None:
    call = smaller.as_dtype(call_of("ReduceSum"), "float32", dtype)
    assert isinstance(call, Instance)
    (first, how), (second, after), *rest = excused.of_many(call)
    assert how == excused.WIDE and first == call_of("ReduceSum")
    assert after == excused.DOUBLE and second == smaller.as_dtype(first, "float32", "float64")
    casts = [x for x, how in rest if how == excused.CAST]
    hows = [how for _, how in rest]
    assert list(dict.fromkeys(hows)) == [excused.LONGER, excused.KEPT, excused.CAST] and hows.count(excused.CAST) == 2
    kept = [x.inputs[0].value for x, how in rest if how == excused.KEPT and isinstance(x, Instance)]
    assert all(isinstance(x, Tensor) and x.dtype == dtype and set(x.numbers().ravel()) == {1.75} for x in kept)
    assert len({x.shape for x in kept if isinstance(x, Tensor)}) == len(kept) > 1, "as it is, and longer"
    assert [x.params for x in casts if isinstance(x, Instance)] == [{"to": 10}, {"to": 16}], (
        "whichever the program holds"
    )
    held = casts[0].inputs[0].value if dtype == "float16" else casts[1].inputs[0].value
    assert isinstance(held, Tensor)
    numbers = held.numbers()
    rounded = numbers.astype(dtype).astype("f4")
    kinds = {(x < y) - (x > y) for x, y in zip(numbers.tolist(), rounded.tolist(), strict=True)}
    assert kinds == {-1, 0, 1}, "some are rounded up, some down, and some not"
    assert {how for _, how in excused.of_many(call_of("ReduceSum"))} == {excused.DOUBLE, excused.LONGER}, (
        "it holds no such floats"
    )


def colours(*numbers: float) -> Instance:
    call = {"args": ["images"], "kwargs": []}
    given = (Operand("images", Tensor.of(np.float32(numbers).reshape(1, -1, 3))),)
    return Instance("keras", "keras.ops.image.hsv_to_rgb", {}, given, (), {"kind": "function", "call": call})


def test_what_is_undefined_is_asked_about_where_it_is_defined() -> None:
    """OpenVINO is wrong of a hue of 1, the nearest to 100; a hue of 1, 2, ... is outside, too, and the screens say so."""
    nearest, spread, counted = (
        x.inputs[0].value.numbers().ravel().tolist()  # type: ignore[union-attr]
        for x, how in excused.defined(colours(100, -100, np.nan))
        if how == excused.DEFINED
    )
    assert (nearest, spread, counted) == ([1, 0, 0], [0, 0.5, 1], [1, 2, 3])
    assert [x for x, _ in excused.defined(colours(0, 0.5, 1))] == [colours(1, 2, 3)], "it is within already"
    [(plain, _)] = excused.defined(call_of("Abs"))
    assert isinstance(plain, Instance) and plain.inputs[0].value == Tensor.of(np.float32([1, 2]))


def shift(dtype: str, counts: list[int]) -> Instance:
    call = {"args": ["input", "other"], "kwargs": []}
    given = tuple(
        Operand(name, Tensor.of(np.array(x).astype(dtype))) for name, x in (("input", [-1, -7, 3]), ("other", counts))
    )
    return Instance("torch", "torch.bitwise_right_shift", {}, given, (), {"kind": "function", "call": call})


def test_integers_of_both_signs_are_asked_about_in_signed_dtypes() -> None:
    """Of undefined shifts of 8 bits: of small positive numbers OpenVINO shifts rightly."""
    [_, *signed] = (x for x, _ in excused.defined(shift("uint8", [1, 8, 9])))
    assert [x.inputs[0].value.dtype for x in signed] == ["int32", "int64"]  # type: ignore[union-attr]
    for x in signed:
        data, counts = (y.value.numbers().tolist() for y in x.inputs)  # type: ignore[union-attr]
        assert min(data) < 0 < max(data) and counts == [1, 2, 3]
    own = [x.inputs[0].value.dtype for x, _ in excused.defined(shift("int8", [1, 8, 9]))][1:]  # type: ignore[union-attr]
    assert own == ["int8", "int32", "int64"], "its own comes first"


@pytest.mark.full
def test_a_bug_of_negative_numbers_is_found_of_an_undefined_shift_of_int8(workspace: Workspace) -> None:
    """OpenVINO computes what PyTorch's exporter makes of a shift to the right by division and sums, wrong below 0."""
    for module in ("torch", "onnxscript", "openvino"):
        pytest.importorskip(module)
    workspace.add_captured([Captured(shift("int8", [8, 9, 1]), Provenance("suite", "file", "of_bytes"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(600.0)), Silent())
    assert findings(workspace) == [] and list(verdicts.of_kind(workspace, SCREENED))
    excused.show(workspace, 6000.0, 1)
    assert {x.origins for x in findings(workspace)} == {("of_bytes where it is defined",)}


@pytest.mark.full
def test_a_bug_at_the_end_of_a_domain_is_found_of_what_lies_beyond(workspace: Workspace) -> None:
    """OpenVINO takes a hue of 1 for none of six sectors: of 1.5, which is none, it is as wrong, and excused."""
    for module in ("tensorflow", "openvino"):
        pytest.importorskip(module)
    of_hues = Captured(colours(*[1.5] * 9), Provenance("suite", "file", "of_hues"))
    workspace.add_captured([of_hues])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(600.0)), Silent())
    assert findings(workspace) == [] and list(verdicts.of_kind(workspace, SCREENED))
    excused.show(workspace, 6000.0, 1)
    assert {x.origins for x in findings(workspace)} == {("of_hues where it is defined",)}


@pytest.mark.full
def test_a_sum_that_is_kept_in_narrow_floats_is_found_of_one_number(workspace: Workspace) -> None:
    """TVM's Conv adds in bfloat16: of a sum of 216 terms rounding explains what is off, and of 216 equal ones no more."""
    for module in ("tvm", "openvino"):
        pytest.importorskip(module)
    draw = np.random.default_rng(1)
    given = tuple(
        Operand(name, Tensor.of(draw.uniform(-9, 9, shape).astype("bfloat16"), "bfloat16"))
        for name, shape in (("X", (2, 18, 4, 4, 5)), ("W", (12, 9, 4, 2, 3)))
    )
    params = {"auto_pad": "VALID", "group": 2, "strides": [2, 3, 2]}
    call = Instance("onnx", "Conv", params, given, ("Y",), {"opset": {"": 22}})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "of_216"))])
    stage.run(workspace, stage.Options(compilers=("tvm",), workers=1, limits=Limits(600.0)), Silent())
    assert {x.outcome.details["screen"] for x in verdicts.of_kind(workspace, SCREENED)} == {"ill-conditioned"}
    excused.show(workspace, 6000.0, 1)
    assert {x.origins for x in findings(workspace)} == {("of_216 of one number",)}


@pytest.mark.full
def test_a_wrong_formula_that_float16_hides_is_found_in_float32(workspace: Workspace) -> None:
    """OpenVINO reads `correction=-1` of PyTorch's `std` as 1: by 0.8 % of a hundred numbers, which float16 excuses."""
    pytest.importorskip("openvino")
    torch = pytest.importorskip("torch")
    from opera.libraries.torch import calls

    numbers = torch.linspace(-9, 9, 125).reshape(5, 5, 5).half()
    call = calls.instance("torch.std", [numbers], {"dim": None, "correction": -1})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "of_half"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(60.0)), Silent())
    before = {x.id for x in findings(workspace)}
    assert [x.variant for x in verdicts.of_kind(workspace, SCREENED)] == ["torchscript"]
    excused.show(workspace, 600.0, 1)
    made = [(x.operator, x.verdict, x.origins) for x in findings(workspace) if x.id not in before]
    formula = ("torch.std", INCONSISTENT, ("of_half in float32",))  # in float64 it is the same one
    assert sorted(made) == [("torch.Tensor.to", INCONSISTENT, ("of_half cast",)), formula]


@pytest.mark.full
def test_a_cast_that_rounds_wrongly_is_found_of_what_is_excused_as_rounding(workspace: Workspace) -> None:
    """OpenVINO cuts off what it should round up to bfloat16, where the last bit that is left is even."""
    pytest.importorskip("openvino")
    torch = pytest.importorskip("torch")
    from opera.libraries.torch import calls

    draw = torch.Generator().manual_seed(1)
    given = [torch.randn(shape, generator=draw).mul(9).bfloat16() for shape in ((4, 6, 6), (4, 8, 3, 3), (8,))]
    call = calls.instance("torch.nn.functional.conv_transpose2d", given, {"stride": 1})
    workspace.add_captured([Captured(call, Provenance("suite", "file", "of_bfloat16"))])
    stage.run(workspace, stage.Options(compilers=("openvino",), workers=1, limits=Limits(600.0)), Silent())
    assert {x.outcome.details["screen"] for x in verdicts.of_kind(workspace, SCREENED)} == {"ill-conditioned"}
    before = {x.id for x in findings(workspace)}
    excused.show(workspace, 6000.0, 1)
    [found] = [x for x in findings(workspace) if x.id not in before]
    assert (found.verdict, found.operator, found.origins) == (INCONSISTENT, "torch.Tensor.to", ("of_bfloat16 cast",))
    aside = next(iter(verdicts.of_kind(workspace, SCREENED)))
    [told] = excused.told(workspace, [aside], "torch.nn.functional.conv_transpose2d")
    assert told == f"torch.Tensor.to on openvino-torch is wrong of numbers that are rounded: {found.id}"
