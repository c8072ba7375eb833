"""Fresh memory is filled with a pattern, so that what is read before it is written shows, and differs between two runs.

Memory that nobody wrote is often zero, and a compiler that reads it then looks right by luck. While a worker infers, glibc's
`malloc` and its like fill what they hand out (mallopt(3), M_PERTURB; `MALLOC_PERTURB_` in the environment is the same); a
repetition has another pattern, so that outputs that hold such memory change with it. Reached are `malloc`, `posix_memalign`
and `aligned_alloc`, which runtimes get their tensors from. Below 1 KiB glibc's cache of each thread would hand out blocks as
they were freed: workers have none (UNCACHED), for most tensors of tests are as small as that. Not reached is what a compiler
maps by itself (`mmap`), its own pools of memory, what it allocates when it compiles (filling that as well costs up to a fifth
more CPU), what numpy keeps of small arrays, and what is handed out zeroed (`calloc`).

The pattern is opera's own doing, and no part of a verdict's environment: a right compiler computes the same under any.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

M_PERTURB = -6
"""mallopt's number for it, from malloc.h: memory is filled with the complement of the byte, freed memory with the byte."""
TUNABLES, UNCACHED = "GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"
"""What a process reads when it begins, and what there makes that small blocks are filled, too (glibc manual, Memory-Related
Tunables)."""
FIRST, SECOND = 0x7A, 0x2C
"""What bytes hold that nobody wrote: in floats 3e35 (float32), 52,000 (float16) and 1e282 (float64), then numbers near 0."""


def uncached(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes it so in an environment, behind what else that tunes."""
    return {TUNABLES: ":".join(filter(None, (environment.get(TUNABLES, ""), UNCACHED)))}


@contextmanager
def memory(pattern: int) -> Iterator[None]:
    """Fill memory that is handed out meanwhile with a byte; does nothing where the C library cannot (musl, macOS)."""
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    mallopt(M_PERTURB, pattern ^ 0xFF)
    try:
        yield
    finally:
        mallopt(M_PERTURB, 0)


@cache
def _mallopt() -> Any:
    libc = ctypes.CDLL(None)
    return libc.mallopt if hasattr(libc, "gnu_get_libc_version") else None
