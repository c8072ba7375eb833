"""What a workspace knows of tests beside the instances, for strategies that need it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from opera.errors import UsageError
from opera.store.workspace import Workspace

KINDS = {"coverage": "statements of the frontend that each test covers"}
"""What a strategy may need → what it is."""


class Known:
    """What is known of the tests of one frontend.

    `environment` empty takes the newest that coverage was collected in. Where not `whole`, tests of which nothing is known go
    last, and stderr says how many; else they are an error.
    """

    def __init__(self, workspace: Workspace, frontend: str, environment: str = "", *, whole: bool = False) -> None:
        self._workspace, self._frontend, self._environment, self._whole = workspace, frontend, environment, whole

    def of(self, instances: Sequence[str], need: str) -> Sequence[Any]:
        """Return what is known of each of the instances (ids). Raises UsageError where it was not collected."""
        if need not in KINDS:
            raise UsageError(f"opera cannot know {need!r} of tests", fix=f"a strategy NEEDS one of: {', '.join(KINDS)}")
        stored = self._workspace.coverage(self._frontend, self._environment)
        if not stored:
            raise UsageError(
                f"the coverage of {self._frontend} was not collected",
                cause="a pass of its own collects it, of frontends written in Python",
                fix=f"run `opera coverage --frontend {self._frontend}`; where it is compiled, choose another strategy",
            )
        known = sum(instance in stored for instance in instances)
        if known < len(instances):
            told = f"the coverage of {self._frontend} is known of {known} of {len(instances)} tests"
            if self._whole:
                raise UsageError(told, fix=f"run `opera coverage --frontend {self._frontend} --only-run`: it goes on")
            print(f"{told}; the others go last", file=sys.stderr)
        return _statements([stored.get(instance, {}) for instance in instances])

    def seconds(self) -> dict[str, float]:
        """Return need → seconds that collecting it has taken."""
        return {"coverage": self._workspace.coverage_seconds(self._frontend, self._environment)}


def _statements(covered: list[dict[str, bytes]]) -> list[np.ndarray[Any, Any]]:
    """Return for each test the numbers of its statements, ascending; a statement is a bit of a file's bitmap.

    The bitmaps are those of coverage.numbits. numpy reads them, a file at once: ranking needs no coverage.py.
    """
    lengths: dict[str, int] = defaultdict(int)
    for files in covered:
        for file, bits in files.items():
            lengths[file] = max(lengths[file], 8 * len(bits))
    starts = dict(
        zip(sorted(lengths), np.cumsum([0, *(lengths[file] for file in sorted(lengths))]).tolist(), strict=False)
    )
    seen: dict[tuple[tuple[str, bytes], ...], np.ndarray[Any, Any]] = {}
    found = []
    for files in covered:
        key = tuple(sorted(files.items()))
        if key not in seen:
            parts = [
                np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")) + starts[file]
                for file, bits in key
            ]
            seen[key] = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int32)
        found.append(seen[key])
    return found
