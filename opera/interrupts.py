"""Ctrl-C: the first ends the command, and nothing is left behind; further ones do not disturb that, but the third."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

MESSAGE = "opera: interrupted; nothing that was stored is lost, and the same command does what is left\n"
STOPPING = b"opera: ending its processes; once more Ctrl-C leaves without that\n"


class _Handler:
    """Raises KeyboardInterrupt the first time, and from the third on: what cleans up may hang."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 2:
            os.write(2, STOPPING)  # print may be what was interrupted
        else:
            raise KeyboardInterrupt


def tell() -> None:
    """Say that the command was interrupted; from here on it only ends, and Python gives up its handlers at its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr.write(MESSAGE)


def handle() -> None:
    """Take over SIGINT, unless whoever started this process has it ignored (nohup, a shell's background job)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Handler())
