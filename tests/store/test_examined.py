"""Documents about findings, and findings that are another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance
from opera.store import examined, rows, tests
from opera.store.examined import BLAME, REDUCTION, Examined
from opera.store.rows import pack, unpack
from opera.store.workspace import Workspace


def test_documents_are_kept_by_kind_and_member(workspace: Workspace) -> None:
    long = b'{"a": "' + b"x" * 1000 + b'"}'
    examined.save(workspace, REDUCTION, Examined("F1", "env", "t1", b"{}"))
    examined.save(workspace, REDUCTION, Examined("F1", "env", "t1", long))
    examined.save(workspace, REDUCTION, Examined("F1", "env", "t2", b"{}"))
    examined.save(workspace, REDUCTION, Examined("F2", "env", "t1", b"{}"))
    examined.save(workspace, BLAME, Examined("F1", "env", "t1", b"[]"))
    assert [(x.finding, x.test) for x in examined.documents(workspace, REDUCTION)] == [
        ("F1", "t1"), ("F1", "t2"), ("F2", "t1"),
    ]  # fmt: skip
    assert examined.documents(workspace, REDUCTION, "F1")[0].document == long
    examined.forget(workspace, REDUCTION, "F1", "env")
    assert [x.finding for x in examined.documents(workspace, REDUCTION)] == ["F2"]
    assert len(examined.documents(workspace, BLAME)) == 1


def test_what_findings_are_called_now_is_kept_with_what_was_known_of_them(workspace: Workspace) -> None:
    examined.save(workspace, REDUCTION, Examined("F3", "env", "t1", b"{}"))
    workspace.move_verdicts([], {}, {"F2": "F1", "F3": "F1", "F4": "F4"}, ["F2", "F3", "F4"])
    assert examined.aliases(workspace) == {"F2": "F1", "F3": "F1"}
    assert [x.finding for x in examined.documents(workspace, REDUCTION)] == ["F1"]
    workspace.move_verdicts([], {"F2": b"{}"}, {"F1": "F2"}, ["F1"])
    assert examined.aliases(workspace) == {"F1": "F2", "F3": "F1"}, "what is a finding again is no alias"


@given(st.text(max_size=8), st.integers(1, 400))
def test_a_packed_document_and_any_text_come_back(text: str, times: int) -> None:
    """A name may begin with the letter that a zlib stream begins with."""
    for data in ((text * times).encode(), b"x" * times):
        assert unpack(pack(data)) == data


@pytest.mark.parametrize("name", ["test_short", "x of type float16, " * 30])
def test_what_a_test_was_made_of_is_told_however_long_it_is(workspace: Workspace, name: str) -> None:
    """Names of generated tests are long; `opera findings` ended in "Could not decode to UTF-8"."""
    program = Instance("onnx", "Relu", {}, (), ("y",), {})
    examined.save_made(workspace, Examined("F1", "env", "t1", name.encode()), program)
    workspace.save_tests("exporter", [rows.Test("t1", program.id, "valid")])
    assert tests.origin(workspace, "t1") == tests.Origin("Relu", name)
    assert tests.origins(workspace) == {"t1": tests.Origin("Relu", name)}
