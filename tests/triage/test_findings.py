from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import pytest
from filled import HOSTILE, document, fill, instance_of, judged
from filled import captured as made_of

from opera.oracle import signature
from opera.oracle.screens import SINGLE_REFERENCE
from opera.oracle.signature import Signature
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import Outcome
from opera.report.words import in_list
from opera.run import renewal
from opera.store import examined
from opera.store.rows import Test as MigratedTest
from opera.store.rows import Verdict
from opera.store.tests import Origin
from opera.store.verdicts import created as created_of
from opera.store.workspace import REPRODUCERS
from opera.triage import doubts, reduction
from opera.triage.blame import Blame
from opera.triage.distinct import causes
from opera.triage.evidence import Evidence
from opera.triage.findings import _alike, _odd, _settled, _unwitnessed, alike, findings, first_tests, version_key
from opera.triage.part import KERNELS, OTHER, shows
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice


def by_id(found, environment):
    return {x.id: x for x in found if x.environment == environment}


def test_members_are_grouped_by_finding_and_environment(workspace):
    names = fill(workspace)
    found = findings(workspace)
    assert len({(x.id, x.environment) for x in found}) == len(found) == 6
    new, old = by_id(found, names["tvm"])["Faaaaaaaa"], by_id(found, names["old"])["Faaaaaaaa"]
    assert (new.members, old.members) == (("t0", "t2"), ("t0",))
    assert (new.compiler_version, old.compiler_version) == ("0.27.0", "0.9.0")
    assert new.origins == ("test_Conv_0", f"test_{HOSTILE[:12]}_2")
    assert new.message == HOSTILE
    assert (new.operator, new.operators) == ("Conv", ("Conv", HOSTILE))
    assert (new.confirmed, new.first_found, new.reproducer) == (1, 2, "reproducers/Faaaaaaaa.py")


def test_flaky_verdicts_and_screened_ones_make_none(workspace):
    fill(workspace)
    members = {test for x in findings(workspace) for test in x.members}
    assert members == {"t0", "t1", "t2", "t8", "t9"}


def test_tags_and_numbers(workspace):
    names = fill(workspace)
    found = by_id(findings(workspace), names["tvm"])
    assert found["Faaaaaaaa"].tags == ("passes-as-constants",)
    assert found["Fbbbbbbbb"].tags == ("single-reference",)
    assert found["Fbbbbbbbb"].numbers == {"max_abs": 0.5, "index": "[0]"}
    assert found["Fdddddddd"].tags == ("state-dependent",)
    assert by_id(findings(workspace), names["old"])["Faaaaaaaa"].tags == ()


def test_only_some_of_the_tests_passing_as_constants_is_no_tag(workspace):
    names = fill(workspace)
    failing = judged("t2", "tvm-onnx", "constants", names["tvm"], "crash", "load", finding="Faaaaaaaa")
    workspace.save_verdicts(1, [failing], {})
    found = by_id(findings(workspace), names["tvm"])["Faaaaaaaa"]
    assert found.tags == ()
    assert (found.members, found.variants) == (("t0", "t2"), ("inputs", "constants"))


def test_what_only_newer_operators_show_comes_last_and_is_tagged(workspace):
    names = fill(workspace)

    def fails(test, finding, *tags):
        details = {"tags": list(tags)}
        return judged(test, "tvm-onnx", "x", names["tvm"], "crash", "load", "E", finding=finding, details=details)

    new = [fails(f"t{n}", "F11111111", "newer-opset") for n in range(5)]
    mixed = [fails("t3", "F22222222", "newer-opset"), fails("t4", "F22222222")]
    workspace.save_verdicts(1, [*new, *[msgspec.structs.replace(x, variant="y") for x in mixed]], {})
    found = [x for x in findings(workspace, "tvm-onnx") if x.compiler_version == "0.27.0"]
    places = {x.id: place for place, x in enumerate(found)}
    assert by_id(found, names["tvm"])["F11111111"].tags == ("newer-opset",)
    assert by_id(found, names["tvm"])["F22222222"].tags == () and places["F22222222"] < places["F11111111"]


def test_newest_compiler_first_then_confirmed_then_most_members(workspace):
    fill(workspace)
    order = [(x.id, x.compiler_version) for x in findings(workspace, "tvm-onnx")]
    assert order[0] == ("Faaaaaaaa", "0.27.0")
    assert {name for name, _ in order[1:3]} == {"Fbbbbbbbb", "Feeeeeeee"}
    assert order[3:] == [("Fdddddddd", "0.27.0"), ("Faaaaaaaa", "0.9.0")]
    assert sorted(["0.27.0", "0.9.0", "0.27.0.post1"], key=version_key) == ["0.9.0", "0.27.0", "0.27.0.post1"]


def test_filters(workspace):
    names = fill(workspace)
    assert {x.frontend for x in findings(workspace, "openvino-onnx")} == {"openvino-onnx"}
    assert [x.id for x in findings(workspace, "tvm-onnx", names["old"])] == ["Faaaaaaaa"]
    assert findings(workspace, "nobody-onnx") == []


def test_a_superseded_environment_shows_only_where_it_is_asked_for(workspace):
    names = fill(workspace)
    document = workspace.environments()[names["tvm"]] | {"oracle": "2"}
    newer = workspace.save_environment(document)
    workspace.save_verdicts(3, [judged("t0", "tvm-onnx", "inputs", newer, "pass")], {})
    assert names["tvm"] not in {x.environment for x in findings(workspace)}
    assert len(findings(workspace, environment=names["tvm"])) == 4


def test_the_order_of_first_verdicts_survives_a_rerun(workspace):
    names = fill(workspace)
    before = first_tests(workspace)["tvm-onnx", names["tvm"]]
    workspace.save_verdicts(2, [judged("t3", "tvm-onnx", "inputs", names["tvm"], "pass")], {})
    assert first_tests(workspace)["tvm-onnx", names["tvm"]] == before
    assert before["t3"] == 1
    assert before["t0"] == 2


def test_the_number_of_queries_does_not_grow(workspace, monkeypatch):
    def queries() -> int:
        asked = []
        with monkeypatch.context() as patch:
            for name in ("query", "stream"):
                real = getattr(workspace, name)
                patch.setattr(workspace, name, lambda *a, real=real: (asked.append(a), real(*a))[1])
            findings(workspace)
        return len(asked)

    names = fill(workspace)
    few = queries()
    workspace.save_tests("exporter", [MigratedTest(f"n{n}", instance_of(0), "valid") for n in range(200)])
    more = [
        judged(f"n{n}", "tvm-onnx", "inputs", names["tvm"], "crash", "load", finding=f"F{n:08}") for n in range(200)
    ]
    workspace.save_verdicts(2, more, {x.finding: b"{}" for x in more})
    assert queries() == few
    assert len(findings(workspace)) == 206
    assert queries() < few, "which of them are one cause is worked out once"


def test_findings_are_json(workspace):
    fill(workspace)
    for finding in findings(workspace):
        assert msgspec.json.decode(msgspec.json.encode(finding), type=type(finding)) == finding


def test_failures_that_another_version_of_the_signature_sorted_are_sorted_anew(workspace, monkeypatch):
    names = fill(workspace)
    place = ("crash", "load", "ValueError")
    verdicts = [
        judged(
            test,
            "tvm-onnx",
            "inputs",
            names["tvm"],
            *place,
            message=f"R.add({name}, lv) differ",
            conversion_function="Add",
        )
        for test, name in (("t0", "x"), ("t2", "y"))
    ]
    monkeypatch.setattr(signature, "SIGNATURE_VERSION", 0)
    monkeypatch.setattr(signature, "normalise", str)
    old = {x.test: Signature.of("tvm-onnx", "Conv", x.outcome) for x in verdicts}
    workspace.save_verdicts(
        7,
        [msgspec.structs.replace(x, finding=old[x.test].id, confirmation="confirmed") for x in verdicts],
        {x.id: msgspec.json.encode(x) for x in old.values()},
    )
    script = workspace.root / REPRODUCERS / f"{old['t0'].id}.py"
    script.parent.mkdir(exist_ok=True)
    script.touch()
    assert len({x.id for x in old.values()}) == 2
    monkeypatch.undo()

    assert renewal.renew(workspace) >= 2  # what `fill` stores is of no version either
    moved = [x for x in workspace.verdicts() if x.outcome.symptom == "ValueError"]
    assert {x.finding for x in moved} == {Signature.of("tvm-onnx", "Conv", verdicts[0].outcome).id}
    assert {x.confirmation for x in moved} == {"confirmed"}
    assert not script.exists()
    assert workspace.query("SELECT DISTINCT run FROM verdicts WHERE symptom = 'ValueError'") == [(7,)]
    assert renewal.renew(workspace) == 0
    assert {name for x in old.values() for name in causes.resolve(workspace, x.id)} == {x.finding for x in moved}


def test_what_version_2_stored_keeps_its_ids_where_its_fields_stay_and_is_found_by_old_ones_elsewhere(workspace):
    environment = fill(workspace)["tvm"]
    converters = {
        "t1": "onnx_frontend:Cast._impl_v13",
        "t4": "onnx_frontend:CastLike._impl_v15",
        "t5": "onnx_frontend:Pad._impl_v2",
    }
    fields = {"stage": "infer", "symptom": "nan-mask", "message": "", "operator": "", "frontend": "tvm-onnx"}
    old = {}
    for test, converter in converters.items():
        hashed = ["2", "tvm-onnx", "infer", "nan-mask", converter, "", ""]
        name = "F" + hashlib.sha256(msgspec.json.encode(hashed)).hexdigest()[:8]
        old[test] = name
        verdict = judged(test, "tvm-onnx", "inputs", environment, "inconsistent", "infer", "nan-mask", finding=name,
                         conversion_function=converter)  # fmt: skip
        workspace.save_verdicts(5, [verdict], {name: msgspec.json.encode(fields | {"conversion_function": converter})})
    created = created_of(workspace)
    script = workspace.root / REPRODUCERS / f"{old['t5']}.py"
    script.touch()
    renewal.renew(workspace)
    now = {x.test: x.finding for x in workspace.verdicts("frontend = 'tvm-onnx' AND symptom = 'nan-mask'")}
    assert now["t5"] == old["t5"] and script.exists()
    assert now["t1"] == now["t4"] not in old.values()
    assert [causes.resolve(workspace, old[test]) for test in ("t1", "t4")] == [[now["t1"]]] * 2
    after = created_of(workspace)
    assert after[now["t5"]] == created[old["t5"]] and after[now["t1"]] == created[old["t1"]]
    (merged,) = (x for x in findings(workspace, environment=environment) if x.id == now["t1"])
    assert set(merged.aliases) == {old["t1"], old["t4"]}
    assert renewal.renew(workspace) == 0


def test_operators_that_the_same_code_converts_are_told_and_what_is_made_of_several_is_not():
    def verdict(test, function):
        outcome = Outcome("crash", "load", "E", "no", conversion_function=function)
        return Verdict(test, "tvm-torch", "x", "e", outcome, "F1", "")

    def told(operator, function, members, unlike=()):
        call = Captured(Instance("torch", operator, {}, (), ("y",), {}), Provenance("a", "b", "c"))
        shown = verdict("t", function)
        reduced = Reduction("F1", "e", "tvm-torch", "x", "t", call.form(), shown.outcome)
        group = [verdict(name, code) for name, code in members.values()]
        origins = {name: Origin(of, "test") for of, (name, _) in members.items()}
        return alike(Choice(shown, shown, reduced, ("torch.first",), unlike=unlike), group, origins)

    both = {"torch.argmax": ("a", "m:_argmax_argmin[argmax]"), "torch.argmin": ("b", "m:_argmax_argmin[argmin]")}
    assert told("torch.argmin", "m:_argmax_argmin[argmin]", both) == ("torch.first", "torch.argmax", "torch.argmin")
    body = {"torch.nanmean": ("a", "m:_sum"), "torch.sum": ("b", "m:_sum"), "torch.mean": ("c", "m:_mean")}
    assert told("torch.sum", "m:_sum", body) == ("torch.first", "torch.sum")  # what is made of a sum is another thing
    inner = {"keras.layers.LSTM": ("a", "m:convert_slice")}
    assert told("keras.layers.SimpleRNN", "m:convert_slice", inner)[1:] == ("keras.layers.LSTM",)
    assert told("torch.sum", "", body) == ("torch.first",)
    assert told("torch.argmin", "m:_argmax_argmin[argmin]", both, ("torch.argmax",)) == ("torch.first", "torch.argmin")


@pytest.mark.parametrize(
    ("frontend", "operator", "named"),
    [
        ("tvm-torch", "torch.mm", False),
        ("tvm-torch", "torch.Tensor.matmul", True),
        ("openvino-torch", "torch.mm", True),
    ],
)
def test_what_was_reduced_to_another_operator_is_not_told_as_failing_alike(frontend, operator, named):
    """`matmul` of vectors is no `mm`: that the test that called it fails of `mm` says nothing of it."""
    seen = Outcome("inconsistent", "infer", "dtype", "no", conversion_function="m:_product")
    call, inner = (
        Captured(Instance("torch", x, {}, (), ("y",), {}), Provenance("a", "b", "c")).form()
        for x in ("torch.mm", operator)
    )
    shown, member = (Verdict(x, "tvm-torch", "x", "e", seen, "F1", "") for x in ("t", "m"))
    chosen = Choice(shown, shown, Reduction("F1", "e", "tvm-torch", "x", "t", call, seen))
    of = {"m": [Reduction("F1", "e", frontend, "x", "m", inner, seen)]}
    said = alike(chosen, [member], {"m": Origin("torch.Tensor.matmul", "test")}, of)
    assert ("torch.Tensor.matmul" in said) is named


def test_what_is_cut_off_in_a_list_is_not_the_route(workspace):
    fill(workspace)
    of = findings(workspace)[0]
    by = "as an exported program; as TorchScript this model runs"
    long = msgspec.structs.replace(
        of, route=by, sentence=f"OpenVINO cannot load torch.f with {'many words ' * 6}({by}): it fails"
    )
    for width in range(34, 120):
        told = in_list(long, width)
        assert "(as an exported program)" in told and "runs" not in told and len(told.partition(")")[0]) < width
    short = msgspec.structs.replace(of, route=by, sentence=f"TVM cannot load f ({by}): it fails")
    assert in_list(short, 60) == "TVM cannot load f (as an exported program): it fails"
    assert in_list(msgspec.structs.replace(of, sentence="a" * 99), 40) == "a" * 99


def test_a_list_names_an_operator_without_the_path_where_there_is_no_room_for_it(workspace):
    fill(workspace)
    said = "TVM cannot load torch.nn.functional.conv2d (also seen with torch.conv1d) with bias=None: torchvision is not there"
    of = msgspec.structs.replace(findings(workspace)[0], operator="torch.nn.functional.conv2d", sentence=said)
    assert in_list(of, len(said)) == said
    assert in_list(of, 60) == "TVM cannot load conv2d (also seen with conv1d) with bias=None: torchvision is not there"
    assert in_list(msgspec.structs.replace(of, operator="Conv"), 60) == said


def test_a_list_has_room_for_what_is_wrong_beside_what_a_call_is_given(workspace):
    fill(workspace)
    said = "OpenVINO computes TopK(X=int64([0, 0]), K=int64([2])) wrongly: Indices[0] is 1, not 0"
    of = msgspec.structs.replace(findings(workspace)[0], operator="TopK", sentence=said, route="")
    assert in_list(of, len(said)) == said
    assert in_list(of, 80) == "OpenVINO computes TopK(X=int64([0, 0]), …) wrongly: Indices[0] is 1, not 0"
    by = "read by path"
    routed = msgspec.structs.replace(of, route=by, sentence=said.replace(" wrongly", f" ({by}) wrongly"))
    assert in_list(routed, 50).startswith("OpenVINO computes TopK(…) (read by path) wrongly")


def test_a_witness_of_the_member_is_none_of_what_is_shown():
    """But for what a law says: of a certain form of what is drawn the documentation says what is right."""
    tagged = Outcome("inconsistent", "infer", "value", details={"tags": [SINGLE_REFERENCE]})
    shown = judged("t", "openvino-onnx", "inputs", "e", "crash", "load")
    reduced = Reduction("F1", "e", "openvino-onnx", "inputs", "t", {}, tagged)
    drawn = msgspec.structs.replace(reduced, outcome=Outcome("inconsistent", details={"drawn": "unlike", "why": "0"}))
    other = msgspec.structs.replace(reduced, outcome=Outcome("inconsistent"))
    assert _unwitnessed(Choice(shown, shown, reduced)) and _unwitnessed(Choice(shown, shown, reduced, whole=other))
    assert not _unwitnessed(Choice(shown, shown, reduced, whole=drawn)) and not _unwitnessed(Choice(shown, shown))
    assert not _unwitnessed(Choice(shown, shown, other))


@pytest.mark.parametrize(
    ("others", "agreeing", "blamed", "wanted"),
    [
        ({"onnxruntime 1": "same", "tvm 0": "right"}, "", "kernel", "onnxruntime"),
        ({"onnxruntime 1": "same", "tvm 0": "right"}, "torch", "kernel", ""),
        ({"onnxruntime 1": "same", "tvm 0": "other"}, "tvm, torch", "kernel", ""),
        ({"onnxruntime 1": "same", "tvm 0": "same"}, "torch", "kernel", "onnxruntime and tvm"),
        ({"onnxruntime 1": "same", "tvm 0": "same"}, "", "library", ""),
        ({"onnxruntime 1": "right"}, "", "kernel", ""),
    ],
)
def test_who_gives_the_same_answer_is_asked_about_where_as_many_do_as_give_the_expected_one(
    others, agreeing, blamed, wanted
):
    """LpPool of a window that hangs over: ONNX Runtime was right as well, and the evaluator and one more were not."""
    outcome = Outcome("inconsistent", "infer", "value", details={"agreeing": agreeing})
    shown = msgspec.structs.replace(
        judged("t", "openvino-onnx", "inputs", "e", "inconsistent", "infer"), outcome=outcome
    )
    said = {"same": "the same answer", "other": "another answer", "right": ""}
    rows = tuple(
        Evidence(way, shows(Outcome("pass" if x == "right" else "inconsistent")), said[x], OTHER)
        for way, x in others.items()
    )
    assert _alike(Choice(shown, shown), Blame("F1", "e", "t", blamed, "", rows)) == wanted
    assert not _alike(Choice(shown, shown), None)


def test_who_gives_both_answers_by_kernels_of_its_own_settles_nothing():
    """TFLite's MINIMUM of NaN and a number is NaN by XNNPACK, and the number by its reference kernels."""
    wrong = judged("t", "mnn-keras", "tflite", "e", "inconsistent", "infer")
    right = Evidence("tflite 2.21.0", shows(Outcome("pass")), "", OTHER)
    other = Evidence("tflite 2.21.0, on its reference kernels", "inconsistent", "the same answer", KERNELS)
    more = Evidence("xla 2.21.0", shows(Outcome("pass")), "", OTHER)

    def told(*rows: Evidence) -> str:
        return _alike(Choice(wrong, wrong), Blame("F1", "e", "t", "kernel", "", rows))

    assert told(right, other) == other.way
    assert not told(right) and not told(right, msgspec.structs.replace(other, remark="another answer"))
    assert told(right, other, more) == other.way and not told(
        right, other, more, msgspec.structs.replace(more, way="openvino 2026")
    )


@pytest.mark.parametrize(
    ("said", "right", "held"),
    [
        ({}, True, True),
        ({"settled": True}, False, False),
        ({"spoken_of": True}, True, False),
        ({"spoken_of": True}, False, True),
    ],
)
def test_what_documentation_says_is_read_as_blame_left_it(monkeypatch, said, right, held):
    """Reading it takes the library itself: a list of findings would import PyTorch."""
    monkeypatch.setattr(doubts, "_quoted", lambda *_: pytest.fail("the documentation is not asked again"))
    wrong = judged("t", "tvm-onnx", "inputs", "e", "inconsistent", "infer")
    answers = {"openvino 2026.4.1": ("inconsistent", "the same answer")}
    answers |= {"onnxruntime 1.31.1": ("pass", "")} if right else {}
    rows = tuple(Evidence(way, shows(Outcome(does)), remark, OTHER) for way, (does, remark) in answers.items())
    laid = Blame("F1", "e", "t", "conversion", "", rows, **said)
    assert bool(_alike(Choice(wrong, wrong), laid)) is held
    assert _settled(Choice(wrong, wrong), laid) is laid.settled and not _settled(Choice(wrong, wrong), None)


@pytest.mark.parametrize(
    ("frontend", "symptom", "settled"),
    [("tvm-torch", "dtype", True), ("tvm-torch", "value", False), ("tvm-onnx", "dtype", False)],
)
def test_pytorch_itself_defines_the_dtype_of_its_outputs(frontend, symptom, settled):
    """`cumprod` of int8 is of int64, which the documentation does not say; the ONNX specification says which it is."""
    wrong = judged("t", frontend, "inputs", "e", "inconsistent", "infer", symptom)
    assert _settled(Choice(wrong, wrong), None) is settled


@pytest.mark.parametrize(
    ("number", "expected", "odd"), [(-1.0, "nan", True), (np.nan, "nan", False), (-1.0, "1.0", False)]
)
def test_nan_that_is_made_of_finite_numbers_is_looked_up(number, expected, odd):
    """Celu with alpha 0 divides by it; PyTorch refuses that."""
    program = Instance("onnx", "Celu", {"alpha": 0.0}, (Operand("X", Tensor.of(np.float32([number]))),), ("Y",), {})
    outcome = Outcome("inconsistent", "infer", "nan-mask", details={"expected": expected})
    shown = msgspec.structs.replace(
        judged("t", "openvino-onnx", "inputs", "e", "inconsistent", "infer"), outcome=outcome
    )
    of = Reduction("F1", "e", "openvino-onnx", "inputs", "t", captured(program).form(), outcome)
    assert _odd(Choice(shown, shown, of)) == odd
    assert not _odd(Choice(shown, shown))


def test_what_stands_beside_a_finding_waits_for_it(workspace):
    """It does so for as long as nothing else speaks against filing either of them."""
    tvm = workspace.save_environment(document("tvm", "0.27.0"))
    programs = [made_of(n, "Conv") for n in range(2)]
    workspace.add_captured(programs)
    workspace.save_tests("exporter", [MigratedTest(f"t{n}", x.program.id, "valid") for n, x in enumerate(programs)])
    says = {"load": "no kernel", "compile": "another layout"}
    shown = [Outcome("crash", stage, "RuntimeError", x, conversion_function="Conv") for stage, x in says.items()]
    seen = [Verdict(f"t{n}", "tvm-onnx", "inputs", tvm, x, f"F{n}", "confirmed") for n, x in enumerate(shown)]
    workspace.save_verdicts(workspace.start_run({"workers": 1}), seen, {"F0": b"{}", "F1": b"{}"})
    examined.save(workspace, examined.MADE, examined.Examined("F0", tvm, "t1", b"test_Conv_0 varied"))

    def reduce(n: int, *, finished: bool = True) -> None:
        migrated.folder(workspace.tests_folder, f"t{n}").mkdir(parents=True, exist_ok=True)
        near = {"deciding": (f"axis={n}",), "near": (3, 2), "tried": (4, 0, 0, 4)}
        at = (f"F{n}", tvm, "tvm-onnx", "inputs", f"t{n}")
        made = Reduction(*at, programs[n].form(), shown[n], f"t{n}", finished=finished, **near)
        reduction.save(workspace, made)

    def waiting(name: str) -> tuple[str, ...]:
        [found] = findings(workspace, only=name)
        assert found == by_id(findings(workspace), tvm)[name]
        return found.doubts

    reduce(0)
    assert waiting("F0") == () and waiting("F1")[0].startswith(doubts.UNREDUCED), "one doubt is enough"
    reduce(1)
    [waits] = waiting("F1")
    assert waits.startswith("file F0 first: they were found side by side, both of Conv") and waiting("F0") == ()
    reduce(0, finished=False)
    assert waiting("F0") and waiting("F1") == (), "what waits itself holds nothing back"
