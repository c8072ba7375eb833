"""Memory that nobody wrote holds a pattern while a worker infers."""

import ctypes
import platform

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
