"""What compilers say of themselves, each frontend in processes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from opera.errors import NotInstalled
from opera.pool.workers import DONE, ERROR, Result
from opera.run import groups

PAIRS = [("tensorrt", "onnx"), ("tensorrt", "torch"), ("tract", "onnx")]


class Pool:
    """Answers for the frontends that are `there`."""

    def __init__(self, *there: str) -> None:
        self.there, self.asked = there, list[str]()

    def submit(self, group: str, job: Any, *, seconds: float, tag: str, call: str) -> None:
        self.asked.append(group)

    def results(self) -> Iterator[Result]:
        for name in reversed(self.asked):
            if name in self.there:
                payload = {"compiler": name.partition("-")[0], "version": "1", "error": ""}
                yield Result(tag=name, group=name, status=DONE, payload=payload)
            else:
                yield Result(
                    tag=name, group=name, status=ERROR, message="ModuleNotFoundError: No module named 'torch_tensorrt'"
                )


def test_a_frontend_that_lacks_a_package_does_not_stop_the_compilers_others() -> None:
    found, missing = groups.describe(Pool("tensorrt-onnx", "tract-onnx"), PAIRS, ("tensorrt", "tract"))  # type: ignore[arg-type]
    assert list(found) == ["tensorrt-onnx", "tract-onnx"] and found["tensorrt-onnx"]["version"] == "1"
    assert list(missing) == ["tensorrt-torch"] and isinstance(missing["tensorrt-torch"], NotInstalled)


def test_a_compiler_that_is_asked_for_and_has_no_frontend_left_is_told() -> None:
    with pytest.raises(NotInstalled, match="tensorrt"):
        groups.describe(Pool("tract-onnx"), PAIRS, ("tensorrt",))  # type: ignore[arg-type]
    found, missing = groups.describe(Pool("tract-onnx"), PAIRS, ())  # type: ignore[arg-type]
    assert list(found) == ["tract-onnx"] and list(missing) == ["tensorrt-onnx", "tensorrt-torch"]
    with pytest.raises(NotInstalled, match="no compiler is installed"):
        groups.describe(Pool(), PAIRS, ())  # type: ignore[arg-type]
