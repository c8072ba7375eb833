"""ONNX compilers with one planted fault each, which only the operator LeakyRelu brings out, and the tests they are given.

`opera.compilers.get("faults.onnx_faults:wrong_value")` finds them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from faults.engine import fail

from opera.compilers import Case, Variant
from opera.compilers.shared.packing import of_numpy
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor, Value


class Silent:
    """Watches a run, and keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, total: int) -> None: ...
    def step(self, counts: Counter[str], done: int, efficiency: float) -> None: ...


def relu(number: int, operator: str) -> Captured:
    """Return a test of Relu or LeakyRelu whose input ends in `number`, with what it expects."""
    x = np.array([-4.0, 2.0, number], dtype=np.float32)
    y = np.where(x < 0, x * np.float32(0.5), x) if operator == "LeakyRelu" else np.maximum(x, np.float32(0))
    params = {"alpha": 0.5} if operator == "LeakyRelu" else {}
    instance = Instance("onnx", operator, params, (Operand("X", Tensor.of(x)),), ("Y",), {"opset": {"": 16}})
    return Captured(instance, Provenance("suite", "file", f"{operator}{number}"), (Tensor.of(y),))


def unordered(number: int) -> Captured:
    """Return a test of TopK that leaves the order of its results undefined, with what it expects."""
    x = np.array([4.0, 2.0, number, 1.0], dtype=np.float32)
    best = np.argsort(-x, kind="stable")[:2]
    inputs = (Operand("X", Tensor.of(x)), Operand("K", Tensor.of(np.array([2]))))
    instance = Instance("onnx", "TopK", {"sorted": 0}, inputs, ("Values", "Indices"), {"opset": {"": 16}})
    return Captured(instance, Provenance("suite", "file", f"TopK{number}"), (Tensor.of(x[best]), Tensor.of(best)))


class Planted:
    """ONNX's reference evaluator, but for what `fault` does to the outputs of one operator."""

    PACKAGE = "onnx"
    PRELOAD = ("onnx.reference",)
    PACKAGES = ("onnx", "faults.engine")
    VARIANTS: tuple[Variant, ...] = (Variant("inputs", "onnx"),)

    def __init__(
        self,
        name: str,
        fault: Callable[[list[Any], int], Any],
        drop_attributes: bool = False,
        operator: str = "LeakyRelu",
    ) -> None:
        self.NAME, self.fault, self.drop_attributes, self.operator = name, fault, drop_attributes, operator
        self.runs = 0
        self.FRONTENDS: Mapping[str, Planted] = {"onnx": self}

    def version(self) -> str:
        return "1.0"

    def options(self) -> dict[str, str]:
        return {}

    def prepare(self) -> None:
        self.runs = 0

    def load(self, case: Case) -> Any:
        import onnx
        from onnx.reference import ReferenceEvaluator

        model = onnx.load(case.model)
        if self.drop_attributes:
            for node in model.graph.node:
                del node.attribute[:]
        return ReferenceEvaluator(model)

    def compile(self, loaded: Any, case: Case) -> Any:
        return loaded

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        outputs = compiled.run(None, {name: value.array() for name, value in case.feeds.items()})
        self.runs += 1
        if case.operator == self.operator:
            outputs = self.fault(outputs, self.runs)
        return outputs if outputs is None else [of_numpy(x) for x in outputs]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return None

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        return f"convert_{case.operator}"


def _hang(outputs: list[Any], runs: int) -> Any:
    while True:
        time.sleep(0.01)


def _eat(outputs: list[Any], runs: int) -> Any:
    kept = []
    while True:
        kept.append(np.ones(8 << 20, dtype=np.uint8))


def _fresh(like: Any) -> Any:
    """Return memory that nobody wrote, as a runtime gets it for a tensor; never freed."""
    place = ctypes.c_void_p()
    ctypes.CDLL(None).posix_memalign(ctypes.byref(place), 64, max(64, like.nbytes))
    return np.frombuffer(ctypes.string_at(place, like.nbytes), like.dtype).reshape(like.shape)


def _raise(outputs: list[Any], runs: int) -> Any:
    return fail(RuntimeError(f"shape {runs} of node_{runs} at {id(outputs):#x} is not understood"))


class TwoCauses(Planted):
    """Computes LeakyRelu wrongly where alpha is stated, and where its tensor is float64: one signature, two causes."""

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        nodes = [node for node in compiled.proto_.graph.node if node.op_type == self.operator]
        double = any(x.array().dtype == np.float64 for x in case.feeds.values())
        wrong = bool(nodes) and (double or any(node.attribute for node in nodes))
        outputs = compiled.run(None, {name: value.array() for name, value in case.feeds.items()})
        return [of_numpy(x + x.dtype.type(wrong)) for x in outputs]

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        return f"convert_{self.operator}"


class Hidden(TwoCauses):
    """Computes LeakyRelu wrongly where alpha is stated; else float64 gets an axis more, which the first fault hides."""

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        alpha = any(node.attribute for node in compiled.proto_.graph.node if node.op_type in (self.operator, "Elu"))
        outputs = compiled.run(None, {name: value.array() for name, value in case.feeds.items()})
        return [of_numpy(x + 1 if alpha else x[None] if x.dtype == np.float64 else x) for x in outputs]


BFLOAT16 = "bfloat16"


class Beside(Planted):
    """Takes no LeakyRelu of float64, and computes that of float16 wrongly, without a word. It refuses bfloat16."""

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return str(error) if BFLOAT16 in str(error) else None

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        [given] = {x.array().dtype.name for x in case.feeds.values()}
        if any(x.dtype == BFLOAT16 for x in case.feeds.values()):  # numpy would have its bits alone
            raise RuntimeError(f"{BFLOAT16} is not supported")
        outputs = compiled.run(None, {name: value.array() for name, value in case.feeds.items()})
        if case.operator == self.operator and given == "float64":
            fail(RuntimeError("it takes no tensor of these"))
        return [of_numpy(x + x.dtype.type(given == "float16")) for x in outputs]


def _far(outputs: list[Any], off: float) -> Any:
    """Return outputs a little off, and infinite ones where they are large."""
    return [np.where(np.abs(x) < 0.5, x * np.float32(1 + off), -np.inf).astype(x.dtype) for x in outputs]


quiet = Planted("quiet", lambda outputs, runs: _far(outputs, 5e-4))
coarse = Planted("coarse", lambda outputs, runs: _far(outputs, 0.0))
beside = Beside("beside", lambda outputs, runs: outputs)
two_causes = TwoCauses("two-causes", lambda outputs, runs: outputs)
hidden = Hidden("hidden", lambda outputs, runs: outputs)
right = Planted("right", lambda outputs, runs: outputs)
wrong_value = Planted("wrong-value", lambda outputs, runs: [x + 1 for x in outputs])
dropped_attribute = Planted("dropped-attribute", lambda outputs, runs: outputs, drop_attributes=True)
nearly = Planted("nearly", lambda outputs, runs: [x * np.float32(1 + 2e-6) for x in outputs])
wrong_shape = Planted("wrong-shape", lambda outputs, runs: [x[None] for x in outputs])
wrong_dtype = Planted("wrong-dtype", lambda outputs, runs: [x.astype(np.float64) for x in outputs])
wrong_count = Planted("wrong-count", lambda outputs, runs: [*outputs, *outputs])
not_a_number = Planted("not-a-number", lambda outputs, runs: [x * np.float32(np.nan) for x in outputs])
missing_output = Planted("missing-output", lambda outputs, runs: outputs[:1], operator="TopK")
unwritten = Planted("unwritten", lambda outputs, runs: [_fresh(x) for x in outputs])
right_first = Planted("right-first", lambda outputs, runs: outputs if runs == 1 else [x + runs for x in outputs])
random = Planted("random", lambda outputs, runs: [x + np.float32(os.urandom(1)[0] + runs) for x in outputs])
segfault = Planted("segfault", lambda outputs, runs: ctypes.string_at(0))
hang = Planted("hang", _hang)
memory = Planted("memory", _eat)
silent_exit = Planted("silent-exit", lambda outputs, runs: os._exit(0))
no_answer = Planted("no-answer", lambda outputs, runs: None)
crash = Planted("crash", _raise)
leaks_state = Planted("leaks-state", lambda outputs, runs: outputs if runs == 1 else [x + 1 for x in outputs])


def _once(number: float | None) -> Callable[[list[Any], int], Any]:
    """Fail the first time only, by a file that stays: for all inputs, or always but for the one that ends in `number`."""

    def fault(outputs: list[Any], runs: int) -> Any:
        marks, last = Path(os.environ["OPERA_TEST_MARKS"]), float(np.asarray(outputs[0]).ravel()[-1])
        mark = marks / f"mark-{last}"
        once = number is None or last == number
        if once and mark.exists() and not (marks / "always").exists():
            return outputs
        mark.touch()
        return fail(RuntimeError("it fails"))

    return fault


class Second(Planted):
    """What runs through its second variant spoils what runs later."""

    VARIANTS = (Variant("first", "onnx"), Variant("second", "onnx"))

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        before = self.runs
        outputs = super().infer(compiled, case)
        self.runs = before + (case.variant == "second" and case.operator == "Relu")
        return outputs


class Routes(Planted):
    """Wrong by its first variant where alpha is stated; the second takes no three numbers, and gives fewer an axis more; of Elu
    one is right."""

    VARIANTS = (Variant("first", "onnx"), Variant("second", "onnx"))

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        alpha = any(node.attribute for node in compiled.proto_.graph.node if node.op_type in (self.operator, "Elu"))
        outputs = compiled.run(None, {name: value.array() for name, value in case.feeds.items()})
        if case.variant == "second" and case.operator == "Elu":
            return [of_numpy(x[None] if x.size > 1 else x) for x in outputs]
        if case.variant == "second":
            return [of_numpy(x[None]) for x in outputs if x.size < 3 or fail(RuntimeError("it takes no three"))]
        return [of_numpy(x + 1 if alpha else x) for x in outputs]


class Patched(Planted):
    """opera runs it with patches, unless the environment says otherwise."""

    UNPATCHED: Mapping[str, str] = {"OPERA_TEST_UNPATCHED": "1"}


class Speechless(Planted):
    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        raise AttributeError("a private name was renamed")


def _patched(outputs: list[Any], runs: int) -> Any:
    return outputs if os.environ.get("OPERA_TEST_UNPATCHED") else fail(RuntimeError("the patch is wrong"))


def _kill_parent(outputs: list[Any], runs: int) -> Any:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


fails_once = Planted("fails-once", _once(None))
fails_once_for_one = Planted("fails-once-for-one", _once(1.0))
fails_otherwise = Planted(
    "fails-otherwise", lambda outputs, runs: fail(KeyError("x") if runs == 1 else ValueError("another"))
)
leaks_through_second = Second(
    "leaks-through-second", lambda outputs, runs: [x + 1 for x in outputs] if runs > 1 else outputs
)
routes = Routes("routes", lambda outputs, runs: outputs)
patched = Patched("patched", _patched)
speechless = Speechless("speechless", _raise)
kills_parent = Planted("kills-parent", _kill_parent)
