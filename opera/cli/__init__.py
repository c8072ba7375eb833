"""The commands of `opera`. No logic: each reads its options, opens the workspace and calls the stage that does the work."""

from __future__ import annotations

import errno
import os
import sys

from opera import interrupts

from opera.cli import prepare, execute, env, results, known, drafts  # isort: skip
from opera.cli.app import app
from opera.errors import INTERRUPTED, USAGE, OperaError, UsageError

__all__ = ["drafts", "env", "execute", "known", "main", "prepare", "results"]
"""Modules of commands, imported in the order in which `opera --help` lists them, and what runs them."""

MACHINES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota of the disk is used up",
    errno.EFBIG: "a limit on the size of files (ulimit -f)",
    errno.EROFS: "a read-only file system",
    errno.EACCES: "missing rights",
    errno.EIO: "the disk, or what it is reached by, has failed",
    errno.EMFILE: "a limit on open files (ulimit -n)",
    errno.ENFILE: "the machine has no more open files to give",
    errno.EAGAIN: "a limit on processes (ulimit -u)",
    errno.ENOMEM: "the machine is out of memory",
}
"""Errors of the machine, not of opera, that any command can meet wherever it writes or starts something."""


def _check_text(words: list[str]) -> None:
    """Refuse arguments that cannot be stored, nor shown."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{os.fsencode(word)!r} is no UTF-8 text",
                cause="a file that is named in another encoding, such as Latin-1",
                fix="rename the file; with convmv, all of a folder",
            ) from None


def main() -> None:
    """Run the command line; what the user can mend is told in a few lines, never as a traceback."""
    try:
        interrupts.handle()
        _check_text(sys.argv[1:])
        app()
    except OperaError as error:
        print(f"opera: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        interrupts.tell()
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.errno not in MACHINES:
            raise
        what = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"opera: {what}\n  likely cause: {MACHINES[error.errno]}", file=sys.stderr)
        print("  what to do:   mend that, and run the same command again: what was stored is whole", file=sys.stderr)
        sys.exit(USAGE)
