"""`make bench`: every benchmark, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALL = (
    ["pipeline.py"],
    ["pipeline.py", "--library", "torch", "--compiler", "tvm", "--compiler", "openvino", "--limit", "2000"],
    ["pipeline.py", "--library", "keras", "--compiler", "tvm", "--compiler", "openvino", "--limit", "1000"],
    ["prioritize.py"],
    ["pool.py"],
    ["probe.py"],
    ["capture.py"],
    ["scale.py"],
    ["data.py"],
)


def main() -> None:
    """Run them; a failing one stops the rest."""
    for name, *arguments in ALL:
        print(f"\n## {' '.join([name, *arguments])}\n", flush=True)
        subprocess.run([sys.executable, HERE / name, *arguments], check=True)


if __name__ == "__main__":
    main()
