"""Which modules are being called, and what their model calls them (`Net.blocks.0.conv`)."""

from __future__ import annotations

import threading
import weakref
from typing import Any

MAX_MODELS = 100
"""More models than this are not remembered at a time."""


class Paths:
    """The modules that each thread is in, the outermost first."""

    def __init__(self) -> None:
        self._inside = threading.local()
        self._names: dict[int, tuple[Any, dict[int, str]]] = {}

    def enter(self, module: Any) -> list[Any]:
        """Note that a module is called; return the modules of this thread, of which the caller takes it off."""
        modules: list[Any] | None = getattr(self._inside, "modules", None)
        if modules is None:
            modules = self._inside.modules = []
        modules.append(module)
        return modules

    def current(self) -> int:
        """Return what tells the innermost module from others; 0 outside of one."""
        modules = getattr(self._inside, "modules", None)
        return id(modules[-1]) if modules else 0

    def path(self) -> str:
        """Return the path of the innermost module; one that its model does not hold is told by its class."""
        modules = getattr(self._inside, "modules", None)
        if not modules:
            return ""
        model, module = modules[0], modules[-1]
        title = type(model).__name__
        if module is model:
            return title
        name = self._of(model, anew=False).get(id(module)) or self._of(model, anew=True).get(id(module))
        return f"{title}.{name}" if name else f"{title}.({type(module).__name__})"

    def _of(self, model: Any, *, anew: bool) -> dict[int, str]:
        """Return id of a module → its name in the model."""
        known = self._names.get(id(model))
        if known is None or known[0]() is not model or anew:
            if len(self._names) >= MAX_MODELS:
                self._names.clear()
            known = weakref.ref(model), {id(module): name for name, module in model.named_modules()}
            self._names[id(model)] = known
        return known[1]
