"""Errors a user can meet. Each says what happened, the likely cause, and what to do next."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

OK, NEW_FINDINGS, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: nothing new; new findings (only where the user asked to fail on them); opera or its use was wrong; Ctrl-C."""


def near(name: str, names: Iterable[str]) -> str:
    """Return which of the names somebody may have meant, for an error's cause; empty where none is near.

    The last part of a dotted name counts as the name: who writes `conv2d` means `torch.nn.functional.conv2d`.
    """
    names = sorted(set(names))
    plain = name.strip("*?").lower()
    alike = [x for x in names if x.rpartition(".")[2].lower() == plain]
    alike += difflib.get_close_matches(name, names, 3, 0.6) if len(alike) < 3 else []
    found = list(dict.fromkeys(alike))[:8]
    return f"did you mean {' or '.join(found)}?" if found else ""


class OperaError(Exception):
    """Base of all errors that are shown to the user as one message, without a traceback.

    `cause` and `fix` may be empty; `slug` names the section of docs/errors.md that tells more.
    """

    slug = "opera"

    def __init__(self, what: str, *, cause: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.cause, self.fix = what, cause, fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.cause:
            lines.append(f"  likely cause: {self.cause}")
        if self.fix:
            lines.append(f"  what to do:   {self.fix}")
        return "\n".join(lines)


class UsageError(OperaError):
    """An argument is wrong or names something that is not there."""

    slug = "usage"


def unwritable(path: object, error: OSError) -> UsageError:
    """Return what is told where a file or folder that the user named cannot be written."""
    fixes = {
        errno.ENOENT: "make the folder that it is to be in, or name another",
        errno.EISDIR: "name a file, and no folder",
        errno.ENOTDIR: "name a folder in which it is to be, and no file",
        errno.ENOSPC: "free some room, or choose another place",
        errno.EDQUOT: "free some room, or choose another place",
    }
    fix = fixes.get(error.errno or 0, "choose a place that you may write")
    return UsageError(f"{path} cannot be written: {error.strerror}", fix=fix)


class NotInstalled(OperaError):
    """A library, compiler or tool that was asked for cannot be imported."""

    slug = "not-installed"


class NoAnswer(OperaError):
    """A compiler is there, but the processes that should say what it is died, or said nothing in time."""

    slug = "no-answer"


class WorkspaceError(OperaError):
    """The workspace cannot be opened, is newer than this opera, damaged, locked, or cannot be written."""

    slug = "workspace"


class CorpusError(OperaError):
    """A corpus file, or a value in it, is malformed or exceeds a limit."""

    slug = "corpus"


class SourceError(OperaError):
    """A target of `opera extract` is no checkout that opera knows, or its suite cannot be run."""

    slug = "source"


class InvalidTest(OperaError):
    """The library itself rejects the case: it is discarded before any compiler sees it."""

    slug = "invalid"
