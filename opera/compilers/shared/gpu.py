"""Which NVIDIA GPU there is, by the driver's own library: for compilers whose Python packages do not tell."""

from __future__ import annotations

import ctypes

MAJOR, MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h."""


def described() -> dict[str, str]:
    """Return name, compute capability and driver of the first GPU. Raises ImportError where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise ImportError(f"an NVIDIA GPU and its driver are needed, and there is no driver ({error})") from None
    number, version, parts = ctypes.c_int(), ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    name = ctypes.create_string_buffer(256)
    _asked(driver.cuInit(0), "cuInit")
    _asked(driver.cuDeviceGet(ctypes.byref(number), 0), "cuDeviceGet")
    _asked(driver.cuDeviceGetName(name, len(name), number), "cuDeviceGetName")
    for part, attribute in zip(parts, (MAJOR, MINOR), strict=True):
        _asked(driver.cuDeviceGetAttribute(ctypes.byref(part), attribute, number), "cuDeviceGetAttribute")
    _asked(driver.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    capability = ".".join(str(part.value) for part in parts)
    return {"gpu": name.value.decode(), "compute_capability": capability, "cuda_driver": str(version.value)}


def _asked(error: int, call: str) -> None:
    if error:
        raise ImportError(f"an NVIDIA GPU and its driver are needed: {call} fails with {error}")
