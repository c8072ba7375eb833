"""What an operator gives by itself, held against what numpy gives of the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.compilers.shared.packing import told

RTOL, ATOL = 1e-3, 1e-4
"""How far a number is from numpy's, relative and of the largest, before its operator is called wrong by itself; of floats of
fewer than 32 bits ten times as far."""


def differs(found: Any, meant: Any) -> str:
    """Say how an array is not the one that numpy gives; nothing where it is, but for rounding."""
    if found.shape != meant.shape:
        return f"gives the shape {list(found.shape)}, not {list(meant.shape)}"
    if found.dtype != meant.dtype:
        return f"gives {found.dtype}, not {meant.dtype}"
    if meant.dtype.kind in "fc":
        wide = [x.astype(np.float64 if meant.dtype.kind == "f" else np.complex128) for x in (meant, found)]
        scale = float(np.abs(wide[0][np.isfinite(wide[0])]).max(initial=0.0))
        loose = 10 if meant.dtype.itemsize < 4 else 1
        same = np.isclose(wide[1], wide[0], loose * RTOL, loose * ATOL * scale, equal_nan=True)
    else:
        same = np.asarray(found == meant)
    if same.all():
        return ""
    at = tuple(int(x) for x in np.argwhere(~same)[0])
    return f"gives {told(found[at])}, not {told(meant[at])}"
