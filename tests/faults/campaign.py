"""One compiler that has every fault: the operator of a test is the name of what goes wrong with it.

What `PACKAGES` do wrong is the compiler's failure; what this adapter does wrong itself (`MISTAKES`) is opera's.
`opera.compilers.get("faults.campaign:compiler")` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
from faults import engine, mischief, misdeeds, numbers

from opera.compilers import Case, Variant
from opera.compilers.shared.packing import NoAnswer
from opera.programs.migrated import LIVE
from opera.programs.values import Tensor, Value

MISTAKES: dict[str, Callable[[list[Value]], Any]] = {}
"""Name of a fault → what the adapter does with the right outputs."""


def mistake(function: Callable[[list[Value]], Any]) -> Callable[[list[Value]], Any]:
    """Register a mistake of the adapter under its function's name."""
    MISTAKES[function.__name__] = function
    return function


class Campaign:
    PACKAGE = "faults"
    PRELOAD = ("faults.campaign",)
    PACKAGES = (engine.__name__, misdeeds.__name__, mischief.__name__)
    NAME = "faults.campaign:compiler"
    VARIANTS = (Variant("inputs", "json"), Variant("live", LIVE))

    def __init__(self) -> None:
        self.FRONTENDS: Mapping[str, Campaign] = {numbers.NAME: self}

    def version(self) -> str:
        return "1.0"

    def options(self) -> dict[str, str]:
        return {}

    def prepare(self) -> None:
        return

    def load(self, case: Case) -> Any:
        model = case.live() if case.live is not None else msgspec.json.decode(case.model.read_bytes())
        return engine.step("load", case.operator, model)

    def compile(self, loaded: Any, case: Case) -> Any:
        return engine.step("compile", case.operator, loaded)

    def infer(self, compiled: Any, case: Case) -> Any:
        arrays = [value.array() for value in case.feeds.values() if isinstance(value, Tensor)]
        outputs = engine.step("infer", case.operator, engine.infer(compiled, arrays))
        engine.RAN.append(case.operator)
        values: list[Value] = [Tensor.of(x) for x in outputs]
        return MISTAKES.get(case.operator, list)(values)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        if str(error) == "odd refusal":
            raise KeyError("no such rule")
        return "the operator" if isinstance(error, NotImplementedError) else None

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        if case.operator == "conversion_lost":
            raise KeyError(case.operator)
        return f"convert_{case.operator}"


compiler = Campaign()


@mistake
def no_answer(_: list[Value]) -> Any:
    """The adapter tells that the compiler returned nothing"""
    raise NoAnswer("the compiler returned nothing")


@mistake
def conversion_lost(values: list[Value]) -> Any:
    """Wrong outputs, and `conversion_function` fails"""
    return values[:1]


@mistake
def asserts(_: list[Value]) -> Any:
    """assert"""
    assert _ is None, "one output is expected"


@mistake
def zips_strictly(values: list[Value]) -> Any:
    """zip(strict=True)"""
    return list(zip(values, values[:1], strict=True))


@mistake
def key_error(values: list[Value]) -> Any:
    """KeyError"""
    return {}[len(values)]


@mistake
def attribute_error(values: list[Value]) -> Any:
    """AttributeError"""
    return values.numpy()  # type: ignore[attr-defined]


@mistake
def import_error(_: list[Value]) -> Any:
    """ImportError"""
    return import_module("faults.no_such_module")


@mistake
def returns_none(_: list[Value]) -> Any:
    """Returns None"""
    return None


@mistake
def returns_arrays(_: list[Value]) -> Any:
    """Returns arrays instead of values"""
    return [np.ones(3, dtype=np.float32)]


@mistake
def returns_lie(values: list[Value]) -> Any:
    """Returns a tensor that does not hold what its shape says"""
    [lie, other] = values
    msgspec.structs.force_setattr(lie, "data", b"\0")
    return [lie, other]
