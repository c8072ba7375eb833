"""Folders of specifications: a checkout of the published form, and opera's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("lark")

from opera.errors import SourceError, UsageError
from opera.sources import Request
from opera.sources.sionnx import compat, files, generate, parse, skeleton
from opera.sources.sionnx.driver import Plan, chosen
from opera.sources.sionnx.source import extraction
from tests.sources.sionnx.specs import OWN, PUBLISHED, write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    write(tmp_path / "published" / "include", PUBLISHED)
    return tmp_path / "published"


def test_a_published_specification_is_of_the_operators_of_its_time(checkout: Path) -> None:
    """Clip's bounds are attributes up to opset 10, and inputs since; Softmax flattened up to opset 12."""
    found = files.read(checkout)
    assert found.published and not found.unread
    assert {x.operator: x.since for x in found.works} == {"Add": 7, "Clip": 6, "Softmax": 1}
    every = [(x.operator, x.since) for x in files.read(checkout, every=True).works]
    assert [since for operator, since in every if operator == "Clip"] == [6, 1]


def test_a_specification_of_ones_own_is_of_the_newest_version(tmp_path: Path) -> None:
    found = files.read(write(tmp_path / "own", OWN))
    assert not found.published
    assert {x.operator: x.since for x in found.works} == {
        x.operator: skeleton.versions(x.operator)[-1] for x in found.works
    }
    every = files.read(tmp_path / "own", every=True).works
    assert [x.since for x in every if x.operator == "Gather"] == skeleton.versions("Gather")[::-1]


def test_a_published_specification_is_completed_by_operas_own(checkout: Path) -> None:
    [work] = [x for x in files.read(checkout).works if x.operator == "Softmax"]
    assert work.rest[1].endswith(".td")
    plan = Plan(
        text=work.text, file=work.file, name=work.name, operator=work.operator, since=work.since, mode="full", count=1, seed=0,
        rest=work.rest,
    )  # fmt: skip
    spec = chosen(plan)
    assert spec.body and spec.inputs[0].min_rank == 3 and spec.since == 1
    assert all(x.rest == ("", "") for x in files.read(checkout, alone=True).works)


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(checkout: Path) -> None:
    folder = checkout / "include"
    (folder / "a_malformed.td").write_text('def X : Instruction<[op_x],\n  [Attr<"a" [f32]>]>;\n')
    (folder / "b_type.td").write_text("def AbsOp : Instruction<[op_abs], [], [IOType<0, [f31]>], []>;\n")
    (folder / "c_operator.td").write_text("def NopeOp : Instruction<[op_nope], [], [IOType<0, [f32]>], []>;\n")
    (folder / "d_fits.td").write_text(
        'def TanhOp : Instruction<[op_tanh], [Attr<"nope", [f32]>], [IOType<0, [f32]>]>;\n'
    )
    (folder / "e_bytes.td").write_bytes(b"\xff\xfe")
    found = files.read(checkout)
    assert len(found.works) == 3
    told = {x.file: x.reason for x in found.unread}
    assert sorted(told) == ["a_malformed.td", "b_type.td", "c_operator.td", "d_fits.td", "e_bytes.td"]
    assert "a_malformed.td:2" in told["a_malformed.td"] and "expected" in told["a_malformed.td"]
    assert "f31" in told["b_type.td"] and "Nope" in told["c_operator.td"]
    assert "no version of Tanh" in told["d_fits.td"] and "read" in told["e_bytes.td"]


def test_a_folder_without_specifications_says_so(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(SourceError):
            files.read(folder)
    (tmp_path / "x.td").write_text("def ?")
    with pytest.raises(SourceError) as caught:
        extraction(Request(str(tmp_path)))
    assert "x.td:1" in caught.value.cause


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"full": True, "smoke": True}, "exclude"),
        ({"compat": True, "zero": True}, "published code"),
        ({"algorithms": True}, "checkout"),
        ({"operator": "Sofmax"}, "Sofmax"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        extraction(Request(), **given)  # type: ignore[arg-type]
    assert words in caught.value.what
    with pytest.raises(UsageError):
        extraction(Request(library="torch"))


def test_a_glob_matches_names_with_and_without_their_domain(tmp_path: Path) -> None:
    text = "def ScalerOp : Instruction<[ai.onnx.ml::Scaler]>;"
    folder = write(tmp_path / "own", {"scaler.td": text})
    for pattern in ("Scaler", "ai.onnx.ml::Sc*", "Scal*"):
        extraction(Request(str(folder)), operator=pattern)
    with pytest.raises(UsageError, match="'Add'"):
        extraction(Request(str(folder)), operator="Add")


def test_the_published_code_zips_types_and_makes_ten_tests_of_a_node(checkout: Path) -> None:
    [spec] = parse.parse(PUBLISHED["onnx_add.td"], "onnx_add.td")
    spec = compat_spec(spec, 7)
    made = list(compat.cases(spec, generate.FULL, 60, 0))
    assert len(made) == 3 * (60 // 30) * 10
    types = [tuple(x.type for x in case.inputs if x) for case in made]
    assert list(dict.fromkeys(types)) == [("float32",) * 2, ("int32",) * 2, ("float64",) * 2], "zipped, not multiplied"
    ranks = [case.inputs[0].value.ndim for case in made[:7] if case.inputs[0]]
    assert sorted(ranks) == list(range(7)), "every rank once before one comes again"
    assert {x.type for case in compat.cases(spec, generate.SMOKE, 30, 0) for x in case.inputs if x} == {"float32"}
    assert [x.inputs[0].value.shape for x in made if x.inputs[0]] == [
        x.inputs[0].value.shape for x in compat.cases(spec, generate.FULL, 60, 0) if x.inputs[0]
    ]


def compat_spec(spec: parse.Spec, since: int) -> parse.Spec:
    import msgspec

    return msgspec.structs.replace(spec, since=since)


@pytest.mark.skipif("OPERA_SIONNX" not in os.environ, reason="no checkout of alibaba/sionnx (set OPERA_SIONNX)")
def test_all_of_the_published_checkout_is_read() -> None:
    found = files.read(Path(os.environ["OPERA_SIONNX"]), algorithms=True)
    assert found.published and not found.unread
    assert len(found.works) == 76 and sum(bool(x.algorithm) for x in found.works) == 76
    assert all(x.since <= files.LEGACY for x in found.works)
