"""Capture of PyTorch: calls that test code makes of functions, methods and `torch.nn` modules.

`install` hooks the points of instrumentation/torch.toml:

- `mode`: a TorchFunctionMode is active while tests or scripts run (Recorder.around), in threads that they start as well. It
  sees outermost calls only, and looks at their arguments before the call, for in-place and `out=` calls change them;
- `modules`: constructors and calls of torch.nn.Module;
- `exports`, `graphs`: see exported_programs.

A call is attributed to the frame that makes it: what PyTorch itself calls is left out. Nothing here consumes random numbers,
keeps a tensor alive or raises.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import BuiltinFunctionType, FrameType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType
from typing import Any

import torch.overrides
from torch._C import _functorch, _get_tracing_state, _len_torch_dispatch_stack, _len_torch_function_stack
from torch.compiler import is_compiling
from torch.jit._builtins import _register_builtin
from torch.overrides import TorchFunctionMode, _get_current_function_mode, _get_current_function_mode_stack

from opera.capture.recorder import LeftOut, Recorder
from opera.capture.sites import Frames
from opera.libraries.calls import Watching
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import calls, modules
from opera.libraries.torch import exported_programs as torch_exports
from opera.libraries.torch.codec import NotRepresentable
from opera.libraries.torch.paths import Paths
from opera.programs.program import Instance

RAISES = "the library raises"
INTERNAL = "called by PyTorch itself"
FACTS = "it reads facts of a tensor"
NO_OPERATOR = "no public operator"
MAKER = "it makes an input"
TRANSFORMED = "within a transform, a trace or a dispatch mode"
NO_TENSOR = "it returns no tensor"

_TORCH = str(Path(torch.__file__).parent) + os.sep
_TRANSPARENT = tuple(
    _TORCH + path
    for path in (
        "overrides.py", "functional.py", "nn/functional.py", "_tensor.py", "_jit_internal.py", "utils/_contextlib.py",
        "_lowrank.py", "_lobpcg.py", "_linalg_utils.py", "masked/_ops.py", "signal/windows/windows.py",
    )
)  # fmt: skip
"""Files of PyTorch whose calls are those of their caller: public functions in Python."""
_HOLDERS = (_TORCH + "nn/modules/module.py", _TORCH + "nn/modules/container.py", __file__)
"""Files whose calls of modules are those of their caller: modules that hold modules."""
_DRIVERS = _TORCH + "testing" + os.sep
USER, TORCH, HOLDER, TRANSPARENT = range(4)
_LASTING = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
"""Callables of these classes are PyTorch's own and may be remembered; others may hold tensors."""
_INSTALLED: list[Watch] = []
_LASTING_QUERIES: list[Callable[..., Any]] = []


def install(recorder: Recorder, points: dict[str, list[str]]) -> None:
    """Hook the points; see opera.capture.Capture."""
    watch = Watch(recorder)
    _INSTALLED.append(watch)
    if points.get("modules"):
        _hook_modules(watch)
    if points.get("mode"):
        recorder.around.append(watch.active)
        _hook_threads(watch)
    torch_exports.hook(recorder, watch.active, points)
    os.register_at_fork(after_in_child=watch.stop)


def installed(recorder: Recorder) -> Watch:
    """Return what `install` made for a recorder; ValueError where it was not called."""
    for watch in _INSTALLED:
        if watch.recorder is recorder:
            return watch
    raise ValueError("capture of PyTorch is not installed for this recorder")


@contextmanager
def watching(recorder: Recorder) -> Iterator[Watching]:
    """Prepare for calls that a generator or `torch.testing` makes for its tests; what is given wraps each of them.

    ValueError where `install` was not called.
    """
    watch = installed(recorder)
    with torch.random.fork_rng(devices=[]), watch.driving():
        yield watch.active


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """The mode: hands what test code calls to the recorder.

    Attributes:
        recorder: Where instances go.
        drives: Whether `torch.testing` makes the calls that are looked for, as it does when its samples are run.
        on: How often `active` is entered.
        paths: Which modules are being called, where it is wanted which line makes a call.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder, self.drives, self.on = recorder, False, 0
        self._verdicts: dict[Any, tuple[str, str]] = {}
        self._places: dict[str, int] = {}
        self.paths = Paths() if recorder.sited else None
        self._frames = Frames((_TORCH,))
        self._makers = frozenset(torch_api.instrumentation().operators.makers)
        self._truthful = self._telling_the_truth(torch.overrides.has_torch_function)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Watch what this thread does inside, and threads that it starts, until the outermost one of these ends."""
        self.on += 1
        query = torch.overrides.has_torch_function
        torch.overrides.has_torch_function = self._truthful
        try:
            with self.pushed():
                yield
        finally:
            torch.overrides.has_torch_function = query
            self.on -= 1

    def _telling_the_truth(self, query: Callable[..., Any]) -> Callable[..., Any]:
        """Tests that ask whether something overrides functions are told what holds without this mode."""

        @functools.wraps(query)
        def has_torch_function(*args: Any) -> Any:
            with self.popped():
                return query(*args)

        # torch.jit compiles it as it does the original. It knows builtins by their id for ever: the function must not die.
        _register_builtin(has_torch_function, "aten::has_torch_function")
        _LASTING_QUERIES.append(has_torch_function)
        return has_torch_function

    @contextmanager
    def pushed(self) -> Iterator[None]:
        """Be on this thread's stack of modes."""
        mine = self not in _get_current_function_mode_stack()
        if mine:
            self.__enter__()
        try:
            yield
        finally:
            if (
                mine and _get_current_function_mode() is self
            ):  # else somebody left a mode behind, and popping takes that
                self.__exit__(None, None, None)

    @contextmanager
    def popped(self) -> Iterator[None]:
        """Be off this thread's stack of modes, if on top of it."""
        mine = _get_current_function_mode() is self
        if mine:
            self.__exit__(None, None, None)
        try:
            yield
        finally:
            if mine:
                self.__enter__()

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Take calls that `torch.testing` makes for those of a test, and what usually makes inputs for what is tested."""
        self._set(True)
        try:
            yield
        finally:
            self._set(False)

    def _set(self, drives: bool) -> None:
        self.drives = drives
        self._verdicts.clear()
        self._places.clear()

    def stop(self) -> None:
        """Watch no longer, as in processes that a test forks: the spool is its parent's."""
        self.on = -1 << 30

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look, then let the call go on as it would have."""
        __tracebackhide__ = True  # else pytest prints the arguments of what raises, at whatever cost
        try:
            verdict = self._verdicts.get(func)
        except Exception:  # a callable of the test's own that cannot be hashed
            verdict = None
        if verdict is not None and verdict[1]:  # most calls: `x.shape` and the like, which are to cost next to nothing
            self.recorder.calls += 1
            self.recorder.left_out[verdict[1]] += 1
            return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = kwargs or {}
        if self.on <= 0 or is_compiling():
            return func(*args, **kwargs)
        seen = self._look(func, args, kwargs, sys._getframe(1), verdict)
        if seen is None:
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self.recorder.left_out[RAISES] += 1
            raise
        self.keep(seen, result)
        return result

    def _look(
        self, func: Any, args: Any, kwargs: Any, frame: FrameType | None, verdict: tuple[str, str] | None
    ) -> tuple[Any, Instance] | None:
        """Return key and instance of a call that is to be recorded once it returned; `verdict` is what `_judge` said."""
        recorder = self.recorder
        recorder.calls += 1
        try:
            operator, category = verdict or self._judge(func)
            if not category and not self.by_test(frame):
                category = INTERNAL
            if category:
                recorder.left_out[category] += 1
                return None
            if _len_torch_function_stack():  # somebody else's modes are still there
                with off():
                    return self._new(operator, args, kwargs, frame)
            return self._new(operator, args, kwargs, frame)
        except Exception as error:
            recorder.left_out[reason(error)] += 1
            return None

    def _new(self, operator: str, args: Any, kwargs: Any, frame: FrameType | None) -> tuple[Any, Instance] | None:
        key = calls.key(operator, args, kwargs)
        if self.came(key, frame) or key in self.recorder.keys:
            return None
        if transformed():
            raise NotRepresentable(TRANSFORMED)
        with off():
            return key, calls.instance(operator, args, kwargs)

    def came(self, key: Any, frame: FrameType | None) -> bool:
        """Note which line and which module make a call, or which module is called; return whether it was recorded before."""
        paths = self.paths
        if paths is None or frame is None:
            return False
        code = frame.f_code  # whose own hash is slow
        place = code.co_filename, code.co_firstlineno, frame.f_lasti, paths.current()
        return self.recorder.came(key, place, lambda: self._frames.site(frame, paths.path()))

    def keep(self, seen: tuple[Any, Instance], result: Any) -> None:
        """Record a call that returned."""
        key, instance = seen
        if result is NotImplemented:
            self.recorder.left_out[RAISES] += 1
            return

        def record() -> None:
            self.recorder.calls -= 1  # it was counted when it was looked at
            self.recorder.keys.add(key)
            if not calls.returned_tensor(result) and not instance.operator.endswith("__setitem__"):
                raise LeftOut(NO_TENSOR)
            self.recorder.record(instance, key=key)

        with off():
            self.recorder.observe(record)

    def _judge(self, func: Any) -> tuple[str, str]:
        """Return (operator, "") or ("", why it is none), and remember it for what PyTorch itself made."""
        name = torch_api.public_name(func)
        if name is None:
            getter = getattr(func, "__name__", "") in ("__get__", "__set__")
            verdict = "", FACTS if getter else NO_OPERATOR
        else:
            category = torch_api.denied(name) or (MAKER if name in self._makers and not self.drives else "")
            verdict = "" if category else name, category
        if name is not None or type(func) in _LASTING:
            self._verdicts[func] = verdict
        return verdict

    def by_test(self, frame: FrameType | None, module: bool = False) -> bool:
        """Return whether a frame, or the one it makes calls for, belongs to something other than PyTorch.

        `module`: the call is one of a module.
        """
        places = self._places
        while frame is not None:
            file = frame.f_code.co_filename
            place = places.get(file)
            if place is None:
                place = places[file] = self._place(file)
            if place in (USER, TORCH):
                return place == USER
            if place == HOLDER and not module:
                return False
            frame = frame.f_back
        return False

    def _place(self, file: str) -> int:
        if file in _HOLDERS:
            return HOLDER
        if file in _TRANSPARENT or (self.drives and file.startswith(_DRIVERS)):
            return TRANSPARENT
        return TORCH if file.startswith(_TORCH) else USER


def off() -> Any:
    """Return a context in which neither modes nor tensor subclasses are told what is called."""
    return torch._C.DisableTorchFunction()


def transformed() -> bool:
    """Return whether tensors are not what they seem: fake, traced, batched, or watched operator by operator."""
    return bool(
        _len_torch_dispatch_stack()
        or _get_tracing_state() is not None
        or _functorch.peek_interpreter_stack() is not None
    )


def reason(error: Exception) -> str:
    """Return the category of an exception that looking raised."""
    return str(error) if isinstance(error, NotRepresentable) else f"capture failed: {type(error).__name__}"


def _hook_threads(watch: Watch) -> None:
    """Modes are per thread: let every thread that starts meanwhile have this one."""
    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(bootstrap)
    def run(self: Any) -> None:
        if watch.on <= 0:
            bootstrap(self)
            return
        with watch.pushed():
            bootstrap(self)

    threading.Thread._bootstrap_inner = run  # type: ignore[attr-defined]


def _hook_modules(watch: Watch) -> None:
    """Wrap `Module.__call__`: the global pre-hooks of PyTorch are not told keyword arguments, nor whether the call returned."""
    constructors = modules.Constructors(off)
    constructors.hook()
    original: Callable[..., Any] = torch.nn.Module.__call__

    def look(operator: str, module: Any, args: Any, kwargs: Any, frame: FrameType) -> tuple[Any, Instance] | None:
        recorder = watch.recorder
        recorder.calls += 1
        try:
            if transformed():
                raise NotRepresentable(TRANSFORMED)
            with off():
                made = constructors.of(module)
                key = modules.module_key(operator, module, made, args, kwargs)
                if watch.came(key, frame) or key in recorder.keys:
                    return None
                return key, modules.module_instance(operator, module, made, args, kwargs)
        except Exception as error:
            recorder.left_out[reason(error)] += 1
            return None

    def called(self: Any, args: Any, kwargs: Any, frame: FrameType) -> Any:
        __tracebackhide__ = True
        operator = torch_api.public_name(type(self))
        if operator is None:
            return original(self, *args, **kwargs)
        seen = look(operator, self, args, kwargs, frame) if watch.by_test(frame, module=True) else None
        with watch.popped():  # modules of PyTorch take other paths where a mode is active
            if seen is None:
                return original(self, *args, **kwargs)
            try:
                result = original(self, *args, **kwargs)
            except BaseException:
                watch.recorder.left_out[RAISES] += 1
                raise
        watch.keep(seen, result)
        return result

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if watch.on <= 0 or is_compiling():
            return original(self, *args, **kwargs)
        if watch.paths is None:
            return called(self, args, kwargs, sys._getframe(1))
        modules = watch.paths.enter(self)
        try:
            return called(self, args, kwargs, sys._getframe(1))
        finally:
            modules.pop()

    torch.nn.Module.__call__ = call
