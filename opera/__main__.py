"""The command line. Ctrl-C is told as such from here on, while the commands are still being imported, too."""

from __future__ import annotations

import sys

from opera import interrupts
from opera.errors import INTERRUPTED


def main() -> None:
    """Run `opera`."""
    interrupts.handle()
    try:
        from opera.cli import main as run

        run()
    except KeyboardInterrupt:
        interrupts.tell()
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
