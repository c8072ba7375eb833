"""What follows from all that is stored, worked out once until something is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from opera.store.workspace import Workspace

Answer = TypeVar("Answer")


def once(ask: Callable[[Workspace], Answer]) -> Callable[[Workspace], Answer]:
    """Remember an answer about a workspace until this process or another stores anything: reports ask for each finding."""
    known: WeakKeyDictionary[Workspace, tuple[tuple[int, int], Answer]] = WeakKeyDictionary()

    @wraps(ask)
    def asked(workspace: Workspace) -> Answer:
        before, state = known.get(workspace), workspace.state()
        if before is None or before[0] != state:
            known[workspace] = before = (state, ask(workspace))
        return before[1]

    return asked
