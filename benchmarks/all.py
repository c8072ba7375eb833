"""`make bench`: every benchmark, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run them; a failing one stops the rest."""
    for name in ("pipeline.py", "prioritize.py", "pool.py", "capture.py", "scale.py"):
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, HERE / name], check=True)


if __name__ == "__main__":
    main()
