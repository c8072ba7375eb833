"""Documents about findings, and findings that are another one."""

from __future__ import annotations

from opera.store import examined
from opera.store.examined import BLAME, REDUCTION, Examined
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
