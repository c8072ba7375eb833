"""What is worked out once until something is stored."""

from __future__ import annotations

from opera.store import examined
from opera.store.examined import REDUCTION, Examined
from opera.store.once import once
from opera.store.workspace import Workspace


def test_an_answer_is_worked_out_again_once_anything_is_stored(workspace: Workspace) -> None:
    asked = list[Workspace]()

    @once
    def count(of: Workspace) -> int:
        asked.append(of)
        return len(examined.documents(of, REDUCTION))

    assert (count(workspace), count(workspace), len(asked)) == (0, 0, 1)
    examined.save(workspace, REDUCTION, Examined("F1", "env", "t1", b"{}"))
    assert (count(workspace), len(asked)) == (1, 2)
    with Workspace.open(workspace.root, write=False) as other:  # another process sees what this one stores
        assert count(other) == 1
        examined.save(workspace, REDUCTION, Examined("F1", "env", "t2", b"{}"))
        assert count(other) == 2
