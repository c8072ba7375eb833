"""CPU seconds of the stages that a test goes through, added up over tests."""

from __future__ import annotations

import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it waited for: a linker is one."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


class Clock:
    """Adds up the CPU seconds of stages, and counts how often each was run and raised."""

    def __init__(self) -> None:
        self.seconds, self.times, self.failed = defaultdict[str, float](float), Counter[str](), Counter[str]()

    def __call__(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a stage. What it raises is counted, and raised."""
        begin = cpu()
        try:
            return function(*arguments)
        except Exception:
            self.failed[stage] += 1
            raise
        finally:
            self.seconds[stage] += cpu() - begin
            self.times[stage] += 1

    def table(self) -> Iterator[str]:
        """Yield a line for each stage, in the order in which they were first run."""
        for stage, seconds in self.seconds.items():
            times, failed = self.times[stage], self.failed[stage]
            yield f"{stage:26} {1000 * seconds / times:7.1f} CPU ms, {times} times, {failed} failed"
