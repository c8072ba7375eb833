from __future__ import annotations

import json
from contextlib import ExitStack

import jsonschema
import msgspec
import pytest
from commands import opera
from filled import document, judged
from two_versions import FRONTEND, crash, fill, wrong

from opera.errors import UsageError
from opera.oracle.signature import Signature
from opera.programs.program import Captured, Instance, Provenance
from opera.programs.verdicts import Outcome
from opera.report import differences
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace
from opera.triage.alike import alike
from opera.triage.known import Known
from opera.triage.versions import diff, sides

TRANSLATED = "Errors during ONNX translation: Requested output shape [2,1,1] is incompatible with input shape"
REWORDED = (
    "While validating ONNX node '<Node(Op6): y>': Requested output shape [2,1,1] is incompatible with input shape"
)
PASS, UNSUPPORTED = Outcome("pass"), Outcome("unsupported", "load", "RuntimeError", "no conversion rule for Op")
SCREENED = Outcome("screened", "infer", "value", details={"screen": "ill-conditioned"})
SIDES: dict[str, tuple[Outcome, Outcome]] = {
    "still": (wrong(), wrong()),
    "fixed": (wrong("dtype"), PASS),
    "new": (PASS, wrong("shape")),
    "met": (UNSUPPORTED, wrong("nan-mask")),
    "lost": (PASS, UNSUPPORTED),
    "gained": (UNSUPPORTED, PASS),
    "reworded": (crash(TRANSLATED, "Op6@frontend.cpp:124"), crash(REWORDED, "Op6@split.cpp:41")),
    "changed": (crash("one_1d node not found in graph cache"), crash("axis 7 is out of the range of the tensor")),
    "refused": (crash("unordered_map::at"), UNSUPPORTED),
    "gone": (crash("layout of the cell was not deduced"), SCREENED),
    "passes": (PASS, PASS),
}
"""Name of a test → what it shows in the older version and in the newer one."""


@pytest.fixture
def filled(workspace) -> Workspace:
    fill(workspace, SIDES)
    return workspace


def compared(workspace: Workspace, *named: str) -> diff.Between:
    with ExitStack() as stack:
        (found,) = diff.diff(sides.choose(stack, workspace.root, list(named))).frontends
    return found


def test_every_kind_is_told_of_findings_and_of_tests(filled):
    found = compared(filled)
    assert (found.before, found.after, found.compared) == ("2025.0.0", "2026.4.1", len(SIDES))
    kinds = {x.test: x.kind for x in found.tests}
    assert kinds == {
        "still": diff.STILL,
        "fixed": diff.FIXED,
        "new": diff.NEW,
        "met": diff.REACHED,
        "lost": diff.LOST,
        "gained": diff.GAINED,
        "reworded": diff.STILL,
        "changed": diff.CHANGED,
        "refused": diff.REFUSED,
        "gone": diff.GONE,
        "passes": diff.SAME,
    }
    of = {x.members[0]: x for x in found.findings}
    assert {name: x.kind for name, x in of.items()} == {
        name: kind for name, kind in kinds.items() if name not in ("lost", "gained", "passes")
    }
    assert of["met"].moves == {"unsupported → inconsistent in infer (nan-mask)": 1}
    assert [(x.kind, x.tests, x.reason) for x in found.support] == [
        (diff.LOST, ("lost",), "no conversion rule for Op"), (diff.GAINED, ("gained",), "no conversion rule for Op"),
    ]  # fmt: skip
    assert found.regressions == 3  # two findings, and what is no longer supported


def test_a_finding_worded_anew_is_matched_by_its_tests_and_is_not_new(filled):
    (found,) = [x for x in compared(filled).findings if x.members == ("reworded",)]
    assert found.kind == diff.STILL
    assert len(found.also) == 1 and found.also != (found.finding,)


def test_a_finding_of_more_tests_has_grown_where_they_passed(workspace):
    fill(workspace, {"one": (wrong(), wrong())})
    _, after = fill(workspace, {"one": (wrong(), wrong()), "two": (PASS, wrong())})
    (row,) = workspace.query("SELECT finding FROM verdicts WHERE test = 'one' AND environment = ?", (after,))
    with workspace.transaction():  # of one converter, so of one finding
        workspace.write("UPDATE verdicts SET finding = ? WHERE test = 'two' AND finding != ''", row)
    found = compared(workspace)
    assert [(x.kind, x.finding, x.tests) for x in found.findings] == [(diff.GROWN, row[0], 2)]
    assert found.counts == {diff.NEW: (0, 1), diff.GROWN: (1, 0), diff.STILL: (0, 1)} and found.regressions == 1


def test_tests_of_one_side_are_not_compared(filled):
    with filled.transaction():
        filled.write("DELETE FROM verdicts WHERE test = 'new' AND verdict = 'pass'")
        filled.write("DELETE FROM verdicts WHERE test = 'fixed' AND verdict = 'pass'")
    found = compared(filled)
    assert (found.compared, found.only_before, found.only_after) == (len(SIDES) - 2, 1, 1)
    assert not {"new", "fixed"} & {x.test for x in found.tests}
    assert not {"new", "fixed"} & {test for x in found.findings for test in x.members}


def test_what_passes_by_another_route_only_is_not_fixed(workspace):
    """It failed with inputs, which are refused now; that it passes with constants says nothing of the failure."""
    before, after = fill(workspace, {"moved": (wrong(), UNSUPPORTED), "older": (UNSUPPORTED, wrong())})
    passes = [
        judged("moved", FRONTEND, "constants", after, "pass"),
        judged("older", FRONTEND, "constants", before, "pass"),
    ]
    workspace.save_verdicts(workspace.start_run({}), passes, {})
    found = compared(workspace)
    assert {x.test: x.kind for x in found.tests} == {"moved": diff.REFUSED, "older": diff.REACHED}


def test_what_passes_by_a_route_that_was_refused_before_leaves_the_other_open(workspace):
    """The second route failed; now the first is supported, so that the second is not asked any more."""
    before, _ = fill(workspace, {"open": (UNSUPPORTED, PASS)})
    fails = judged(
        "open",
        FRONTEND,
        "constants",
        before,
        "inconsistent",
        "infer",
        "value",
        finding="Fopen",
        confirmation="confirmed",
    )
    signature = msgspec.json.encode(Signature.of(FRONTEND, "Op0", wrong()))
    workspace.save_verdicts(workspace.start_run({}), [fails], {"Fopen": signature})
    found = compared(workspace)
    assert [x.kind for x in found.tests] == [x.kind for x in found.findings] == [diff.GONE]


def test_a_finding_is_fixed_when_all_its_tests_are(workspace):
    before, _ = fill(workspace, {"one": (wrong(), PASS), "two": (wrong(), UNSUPPORTED)})
    (row,) = workspace.query("SELECT finding FROM verdicts WHERE test = 'one' AND environment = ?", (before,))
    with workspace.transaction():
        workspace.write("UPDATE verdicts SET finding = ? WHERE test = 'two' AND finding != ''", row)
    found = compared(workspace)
    assert [x.kind for x in found.findings] == [diff.REFUSED]
    assert {x.test: x.kind for x in found.tests} == {"one": diff.FIXED, "two": diff.REFUSED}


def test_what_varies_may_be_right_by_chance(workspace):
    varies = Outcome("unstable", "infer", "unstable")
    fill(workspace, {"before": (varies, PASS), "after": (PASS, varies), "both": (varies, varies)})
    kinds = {x.test: x.kind for x in compared(workspace).tests}
    assert kinds == {"before": diff.GONE, "after": diff.REACHED, "both": diff.STILL}


def test_an_unconfirmed_timeout_says_nothing(workspace):
    late = Outcome("timeout", "infer", "timeout")
    fill(workspace, {"late": (PASS, late)})
    with workspace.transaction():
        workspace.write("UPDATE verdicts SET finding = 'Flate', confirmation = 'unconfirmed' WHERE verdict = 'timeout'")
    assert compared(workspace).regressions == 0


@pytest.mark.parametrize(
    "named", [("openvino=2025.0", "openvino=2026"), ("openvino-onnx=2025", "openvino-onnx=2026.4.1"), ()]
)
def test_sides_are_named_by_version(filled, named):
    assert compared(filled, *named).after == "2026.4.1"
    assert not named or compared(filled, *reversed(named)).after == "2025.0.0"


def test_sides_are_named_by_id_and_by_folder(filled, tmp_path):
    one, other = filled.environments()
    assert compared(filled, one[:6], other[:6]).compared == len(SIDES)
    with Workspace.open(tmp_path / "nightly", write=True) as nightly:
        fill(nightly, SIDES, ("2026.4.1", "2027.0.0"))
        found = compared(filled, str(filled.root), str(nightly.root))
        assert (found.before, found.after) == ("2026.4.1", "2027.0.0")
        found = compared(filled, "openvino=2025", f"{nightly.root}@openvino=2027")
        assert (found.before, found.after, found.regressions) == ("2025.0.0", "2027.0.0", 3)


def test_unclear_names_are_one_line_of_cause_and_fix(filled, tmp_path):
    def refused(*named: str) -> UsageError:
        with pytest.raises(UsageError) as raised:
            compared(filled, *named)
        assert "\n" not in raised.value.what + raised.value.cause + raised.value.fix
        return raised.value

    assert "openvino=2025.0.0, openvino=2026.4.1" in refused("openvino=2024", "openvino=2026").cause
    assert "same environment" in refused("openvino=2026", "openvino=2026.4").what
    assert "the other one" in refused("openvino=2026").fix
    fill(filled, SIDES, ("2025.0.0", "2027.0.0"))
    error = refused()
    assert "openvino=2025.0.0, openvino=2026.4.1, openvino=2027.0.0" in error.cause
    assert "opera diff openvino=2026.4.1 openvino=2027.0.0" in error.fix
    twin = filled.save_environment(document("openvino", "2027.0.0", numpy="1.26"))
    filled.save_verdicts(filled.start_run({}), [judged("new", FRONTEND, "inputs", twin, "pass")], {})
    assert f"{twin}: numpy 1.26" in refused("openvino=2025", "openvino=2027").cause
    with Workspace.open(tmp_path / "other", write=True) as other:
        environment = other.save_environment(document("tvm", "0.27.0"))
        other.add_captured(
            [Captured(other_instance := Instance("torch", "relu", {}, (), ("y",), {}), Provenance("s", "f", "t"))]
        )
        other.save_tests("exporter", [MigratedTest("t", other_instance.id, "valid")])
        other.save_verdicts(other.start_run({}), [judged("t", "tvm-torch", "inputs", environment, "pass")], {})
        assert "has tvm-torch" in refused(str(filled.root), str(other.root)).cause


def test_formats_tell_the_same(filled):
    with ExitStack() as stack:
        found = diff.diff(sides.choose(stack, filled.root, []))
    for format in differences.FORMATS:
        text = differences.render(format, found, tests=True)
        assert all(x.finding in text for x in found.frontends[0].findings if x.kind != diff.STILL), format
        assert "3 regressions" in text or format == "json"
        assert "test_changed" in text.replace("\\", ""), format
    text = differences.render("json", found, tests=False)
    jsonschema.validate(json.loads(text), json.loads(differences.schema_text()))
    assert "test_changed" not in text and not json.loads(text)["frontends"][0]["tests"]


def test_the_published_schema_is_that_of_the_code(request):
    published = request.config.rootpath / "docs" / "diff.schema.json"
    assert published.read_text(encoding="utf-8").strip() == differences.schema_text().strip()


def test_what_is_known_is_marked_and_no_regression(filled, tmp_path, monkeypatch):
    (new,) = compared(filled).of(diff.NEW)
    file = tmp_path / "known.toml"
    issue = "https://tracker/7"
    file.write_text(f'[[known]]\nfindings = ["{new.finding}"]\nissue = "{issue}"\n', encoding="utf-8")
    with ExitStack() as stack:
        whole = diff.diff(sides.choose(stack, filled.root, []), Known.load(file))
    (told,) = whole.frontends[0].of(diff.NEW)
    assert told.known is not None and told.known.issue == issue and not told.regression
    assert whole.regressions == 2, "3 of which one is known"
    for format in differences.FORMATS:
        assert issue in differences.render(format, whole, tests=False), format
    file.write_text(file.read_text() + 'status = "fixed"\nfixed_in = "2026.1"\n', encoding="utf-8")
    with ExitStack() as stack:
        assert diff.diff(sides.choose(stack, filled.root, []), Known.load(file)).regressions == 3, "it is back"


def test_the_command_exits_with_1_on_regressions_alone(filled):
    filled.close()
    done = opera("diff", "--workspace", str(filled.root), "--tests")
    assert done.returncode == 1 and "3 regressions" in done.stdout, done.stderr
    done = opera("diff", "openvino=2025", "openvino=2026", "--workspace", str(filled.root), "--frontend", "tvm-onnx")
    assert done.returncode == 2 and "called tvm-onnx" in done.stderr


def test_nothing_is_worse_where_all_is_as_it_was(workspace):
    fill(workspace, {name: (after, after) for name, (_, after) in SIDES.items()})
    assert compared(workspace).regressions == 0


def test_failures_are_alike_however_they_are_worded():
    assert alike(crash(TRANSLATED), crash(REWORDED))
    assert alike(crash("a", "Conv@conv.cpp:12"), crash("b", "Conv@conv.cpp:90"))
    assert not alike(crash("one_1d node not found"), crash("axis is out of range"))
    assert not alike(crash("x"), wrong()) and not alike(wrong(), wrong("shape")) and alike(wrong(), wrong())
