"""The suite inside PyTorch's wheel: OpInfo's samples of every operator, ModuleInfo's of every module.

They are data, not tests, so this module drives them: it calls each operator or module with each of its samples while the
mode of opera.libraries.torch.hooks watches. A part of the suite is `opinfo/DTYPE` or `moduleinfo/DTYPE`.
"""

from __future__ import annotations

import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch

from opera.capture.recorder import Recorder
from opera.errors import SourceError
from opera.libraries.calls import Watching
from opera.libraries.torch.hooks import watching

Samples: TypeAlias = Callable[[], Iterator[Callable[[], object]]]
"""Makes the calls of one operator or module, one a sample."""
SECONDS = 60
"""An operator whose samples take more CPU time than this loses the rest of them, however busy the machine is."""


class _TooLong(BaseException):
    """Not an Exception, so that nothing on the way takes it for an operator's own."""


def run(recorder: Recorder, part: str) -> tuple[int, int]:
    """Run one part; return how many samples were run, and how many of those raised. Raises SourceError for no such part."""
    kind, _, name = part.partition("/")
    dtype = getattr(torch, name, None)
    subjects = {"opinfo": _operators, "moduleinfo": _modules}.get(kind)
    if subjects is None or not isinstance(dtype, torch.dtype):
        raise SourceError(f"PyTorch has no samples called {part!r}", fix="name opinfo/DTYPE or moduleinfo/DTYPE")
    tests = failed = 0
    with warnings.catch_warnings(), watching(recorder) as watched:
        warnings.simplefilter("ignore")
        for test, samples in subjects(dtype):
            recorder.test = test
            _seed()
            ran, raised = _run(recorder, watched, samples)
            tests, failed = tests + ran, failed + raised
    return tests, failed


def _run(recorder: Recorder, watched: Watching, samples: Samples) -> tuple[int, int]:
    """Run the samples of one operator; only the calls themselves are watched, not how samples are made."""
    ran = raised = 0
    try:
        with _limit():
            for call in samples():
                ran += 1
                try:
                    with watched():
                        call()
                except Exception:
                    raised += 1
    except _TooLong:
        recorder.left_out[f"samples that take more than {SECONDS} s of CPU"] += 1
    except Exception as error:
        recorder.left_out[f"samples cannot be made: {type(error).__name__}"] += 1
    return ran, raised


def _operators(dtype: Any) -> Iterator[tuple[str, Samples]]:
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if dtype in op.supported_dtypes("cpu"):
            yield op.formatted_name, partial(_operator_calls, op, dtype)


def _operator_calls(op: Any, dtype: Any) -> Iterator[Callable[[], object]]:
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        in_place = None
        if op.get_inplace() is not None and not sample.broadcasts_input and isinstance(sample.input, torch.Tensor):
            in_place = partial(op.get_inplace(), sample.input.clone(), *sample.args, **sample.kwargs)
        yield partial(op.op, sample.input, *sample.args, **sample.kwargs)
        if in_place is not None:
            yield in_place


def _modules(dtype: Any) -> Iterator[tuple[str, Samples]]:
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if dtype in info.supported_dtypes("cpu"):
            yield info.formatted_name, partial(_module_calls, info, dtype)


def _module_calls(info: Any, dtype: Any) -> Iterator[Callable[[], object]]:
    for training in (True, False):
        for sample in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training):
            yield partial(_module_call, info.module_cls, dtype, sample, training)


def _module_call(kind: Any, dtype: Any, sample: Any, training: bool) -> None:
    made = kind(*sample.constructor_input.args, **sample.constructor_input.kwargs)
    if sample.forward_input is not None:
        made.to(dtype).train(training)(*sample.forward_input.args, **sample.forward_input.kwargs)


def _seed() -> None:
    """Two extractions see the same values."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


@contextmanager
def _limit() -> Iterator[None]:
    """Raise _TooLong after SECONDS of CPU time; signals reach the main thread only, elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
