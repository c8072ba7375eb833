"""Memory that nobody wrote holds a pattern while a worker infers."""

import ctypes
import json
import os
import platform
import subprocess
import sys

import pytest

from opera import poison

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt(M_PERTURB) is glibc's")


def fresh(size):
    place, libc = ctypes.c_void_p(), ctypes.CDLL(None)
    assert libc.posix_memalign(ctypes.byref(place), 64, size) == 0
    data = ctypes.string_at(place, size)
    libc.free(place)
    return set(data)


@pytest.mark.parametrize("size", [64, 1000, 5000, 200_000, 40_000_000])
@pytest.mark.parametrize("pattern", [poison.FIRST, poison.SECOND])
def test_fresh_memory_is_filled(size, pattern):
    with poison.memory(pattern):
        assert fresh(size) == {pattern}


def test_it_ends_also_with_an_exception():
    with pytest.raises(ValueError, match="x"), poison.memory(poison.FIRST):
        raise ValueError("x")
    assert fresh(40_000_000) == {0}


def test_small_blocks_that_were_used_before_are_filled_in_a_worker():
    """glibc's cache of a thread hands out what was freed as it is: three numbers that nobody wrote looked right."""
    program = """
import ctypes, json
from opera import poison
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
seen = set()
for size in (24, 64, 200, 1000) * 8:
    place = libc.malloc(size)
    ctypes.memset(place, 1, size)
    libc.free(place)
    with poison.memory(poison.FIRST):
        place = libc.malloc(size)
        seen |= set(ctypes.string_at(place, size))
        libc.free(place)
print(json.dumps(sorted(seen)))
"""
    command = [sys.executable, "-c", program]
    seen = subprocess.run(
        command, env=os.environ | poison.uncached(os.environ), capture_output=True, text=True, check=True
    )
    assert json.loads(seen.stdout) == [poison.FIRST]


def test_what_else_an_environment_tunes_is_kept():
    assert poison.uncached({}) == {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    tuned = poison.uncached({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"})
    assert tuned == {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"}
