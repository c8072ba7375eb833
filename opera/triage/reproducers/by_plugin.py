"""What a script uses to run a compiler that has no stand-alone recipe: its frontend, by way of opera."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opera import compilers
from opera.programs import values
from opera.programs.case import Case


class Plugin:
    """A frontend that takes and returns what scripts hold: arrays, of ml_dtypes' types where numpy has none, lists, None.

    Args:
        compiler, library, operator, variant, artefact: What fails.
        feeds: Input name → array.
        outputs: Names of the outputs.
        live: Returns the library's own model, where the artefact is that.
    """

    def __init__(
        self, compiler: str, library: str, operator: str, variant: str, artefact: str, feeds: dict[str, Any],
        outputs: list[str], *, live: Callable[[], Any] | None = None,
    ) -> None:  # fmt: skip
        compilers.get(compiler).prepare()
        self.frontend = compilers.frontend(compiler, library)
        fed = {name: _value(item) for name, item in feeds.items()}
        self.case = Case(library, operator, Path(), fed, tuple(outputs), variant, artefact, live)
        self._folder = tempfile.TemporaryDirectory()

    def load(self, model: Any) -> Any:
        """Load a model by the path of its file; one that is live is there already."""
        if isinstance(model, str):
            self.case = _of_file(self.case, Path(model))
        self.case = compilers.exported(self.frontend, self.case, Path(self._folder.name))
        return self.frontend.load(self.case)

    def compile(self, loaded: Any) -> Any:
        return self.frontend.compile(loaded, self.case)

    def infer(self, compiled: Any) -> list[Any]:
        return [_plain(item) for item in self.frontend.infer(compiled, self.case)]


def _of_file(case: Case, model: Path) -> Case:
    return Case(case.library, case.operator, model, case.feeds, case.outputs, case.variant, case.artefact)


def _value(item: Any) -> values.Value:
    if isinstance(item, list):
        items = tuple(_value(part) for part in item)
        return values.Sequence(items[0].dtype if items and isinstance(items[0], values.Tensor) else "float32", items)
    return values.Optional("float32", None) if item is None else values.Tensor.of(item)


def _plain(item: values.Value) -> Any:
    import ml_dtypes

    match item:
        case values.Optional(value=inner):
            return None if inner is None else _plain(inner)
        case values.Sequence(items=items):
            return [_plain(part) for part in items]
        case values.Tensor(dtype=dtype):
            array, low = item.array(), getattr(ml_dtypes, item.dtype, None)
            return array if low is None else array.astype(low) if "int" in dtype else array.view(low)
    raise TypeError(f"the compiler returned a {type(item).__name__}")
