from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

CASES = "onnx/backend/test/case/node"
GOOD = """
import numpy as np
import onnx
from onnx.backend.test.case.base import Base
from onnx.backend.test.case.node import expect

class Thing(Base):
    @staticmethod
    def export() -> None:
        x = np.random.randn(2).astype(np.float32)
        expect(onnx.helper.make_node("Identity", ["x"], ["y"]), [x], [x], name="test_NAME")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Make an onnx checkout with the given files (path → text)."""

    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "checkout"
        for name, text in ({f"{CASES}/__init__.py": "", "VERSION_NUMBER": "9.9.9\n"} | files).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return make
