"""Digests of rules: they change with what rules say, and with nothing else."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path

import pytest

from opera import compilers
from opera.compilers.shared import messages
from opera.oracle import comparison as oracle
from opera.programs import verdicts as records
from opera.run import culprit, rules
from opera.run.rules import Rules

CODE = '''"""Says something."""
import sys
from opera.compilers.messages import Rule

LIMIT = 3
"""Of something."""
TABLE = {"a": 1}


def judge(x: int) -> bool:
    """Whether."""
    return x > LIMIT  # a remark
'''


FOLDER = messages.file_of("tvm").parent
NUMBERS = itertools.count()
"""Modules are read once: each has a name of its own."""


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return the digest of a module of some code."""
    monkeypatch.syspath_prepend(tmp_path)

    def of(code: str, without: str = "") -> str:
        name = f"judging_{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(code)
        importlib.invalidate_caches()
        return rules._digest((name,), without)

    return of


def test_words_and_layout_do_not_count(digest) -> None:
    same = (
        CODE.replace("a remark", "another").replace("Whether.", "If.").replace("Says", "Tells").replace("\n\n\n", "\n")
    )
    assert digest(CODE) == digest(same.replace('"""Of something."""\n', ""))


@pytest.mark.parametrize(
    ("old", "new"), [("x > LIMIT", "x >= LIMIT"), ("LIMIT = 3", "LIMIT = 4"), ('"a": 1', '"a": 2')]
)
def test_what_is_said_counts(digest, old: str, new: str) -> None:
    assert digest(CODE) != digest(CODE.replace(old, new))


def test_a_table_with_a_digest_of_its_own_is_left_out(digest) -> None:
    other = CODE.replace('"a": 1', '"a": 2')
    assert digest(CODE, "TABLE") == digest(other, "TABLE") != digest(CODE)


def test_a_frontends_rules_are_in_all_modules_it_imports() -> None:
    found = rules.closure("opera.compilers.openvino.torch", "opera.compilers")
    assert {
        "opera.compilers.openvino.onnx",
        "opera.compilers.recipes.openvino_torch",
        "opera.compilers.shared.torch_operators",
    } <= set(found)
    assert not {"opera.compilers.openvino.keras", "opera.compilers.tvm.torch"} & set(found)
    assert not any(name.startswith("opera.libraries") for name in found)


def test_each_frontend_of_a_compiler_has_rules_of_its_own() -> None:
    onnx, torch = rules.of("openvino", "onnx"), rules.of("openvino", "torch")
    assert onnx.refusals != torch.refusals
    assert onnx.screens != torch.screens
    assert rules.of("openvino", "onnx") == onnx
    assert rules.of("onnxruntime", "onnx").tolerances != onnx.tolerances  # OpenVINO computes float64 in float32


def test_every_frontend_has_rules() -> None:
    for name in compilers.registered():
        for library in compilers.get(name).FRONTENDS:
            assert all(len(part) == 8 for part in str(rules.of(name, library)).split(" "))


def test_a_tolerance_changes_only_its_own_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rules.of("tvm", "onnx")
    monkeypatch.setitem(oracle.TOLERANCES, "float32", (1.0, 1.0))
    after = rules.of("tvm", "onnx")
    assert after.tolerances != before.tolerances
    assert (after.refusals, after.comparison, after.screens) == (before.refusals, before.comparison, before.screens)


def test_tables_of_refusals_are_rules_and_their_remarks_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests(old: str = "", new: str = "") -> dict[str, Rules]:
        folder = tmp_path / f"{next(NUMBERS)}"
        folder.mkdir()
        for file in FOLDER.glob("*.toml"):
            text = file.read_text(encoding="utf-8")
            (folder / file.name).write_text(text.replace(old, new) if file.stem == "tvm" and old else text)
        monkeypatch.setattr(messages, "file_of", lambda name: folder / f"{name}.toml")
        return {name: rules.of(name, "onnx") for name in ("tvm", "openvino")}

    before = digests()
    remarked = digests('why = "its own words"', 'why = "as it says"')
    changed = digests("no converter for", "nothing converts")
    assert remarked == before
    assert changed["openvino"] == before["openvino"]
    assert changed["tvm"].refusals != before["tvm"].refusals
    assert changed["tvm"].screens == before["tvm"].screens


def test_every_table_is_of_some_frontend() -> None:
    frontends = [compilers.frontend(x, y) for x in compilers.registered() for y in compilers.get(x).FRONTENDS]
    own = {culprit.adapter_of(x) for x in frontends if culprit.adapter_of(x).startswith("opera.")}
    found = {table for name in own for table in rules.tables_of(rules.closure(name, "opera.compilers"))}
    assert found == {file.stem for file in FOLDER.glob("*.toml")}


def test_every_module_of_the_screens_is_digested() -> None:
    names = (
        "screens",
        "conditioning",
        "randomness",
        "draws",
        "declared",
        "laws",
        "quantities",
        "ties",
        "domains",
        "undefined",
    )
    own = {f"opera.oracle.{x}" for x in names}
    assert own | {"opera.libraries.rulings"} == set(rules.SCREENS)
    assert own <= set(rules.closure("opera.oracle.screens", "opera.oracle"))


NOW = Rules("a", "b", "c", "d")
HOLDS = {
    records.CRASH: "refusals", records.REFUSED: "refusals", records.UNSUPPORTED: "refusals",
    records.PASS: "comparison tolerances",
    records.INCONSISTENT: "comparison tolerances screens", records.SCREENED: "comparison tolerances screens",
    records.UNSTABLE: "comparison tolerances screens",
    records.ABORT: "", records.TIMEOUT: "", records.OUT_OF_MEMORY: "",
    records.FLAKY: "refusals comparison tolerances screens", records.ERROR: "refusals comparison tolerances screens",
}  # fmt: skip


@pytest.mark.parametrize("verdict", HOLDS)
@pytest.mark.parametrize("changed", Rules.__struct_fields__)
def test_a_verdict_is_stale_where_its_own_kind_of_rule_changed(verdict: str, changed: str) -> None:
    old = Rules(**{name: getattr(NOW, name) + ("x" if name == changed else "") for name in Rules.__struct_fields__})
    assert old.hold(verdict, NOW) == (changed not in HOLDS[verdict].split())
    assert Rules.parse(str(old)) == old
    assert Rules.parse("").hold(verdict, NOW) == (not HOLDS[verdict])
