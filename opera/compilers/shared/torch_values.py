"""Values as tensors of PyTorch, and back: for compilers that run tensors, but not PyTorch's live model."""

from __future__ import annotations

from typing import Any

from opera.compilers.shared.packing import BITS, CannotCarry
from opera.programs.values import CONTAINERS, Tensor, Value


def tensor(value: Value) -> Any:
    """Return a value as a torch.Tensor. Raises CannotCarry for what PyTorch has no dtype of."""
    import torch

    dtype = getattr(torch, value.dtype, None) if isinstance(value, Tensor) else None
    if not isinstance(value, Tensor) or value.dtype in BITS or not isinstance(dtype, torch.dtype):
        raise CannotCarry(f"opera cannot feed {getattr(value, 'dtype', type(value).__name__)} to PyTorch")
    flat = torch.frombuffer(bytearray(value.data), dtype=dtype) if value.data else torch.empty(0, dtype=dtype)
    return flat.reshape(value.shape)


def value(item: Any) -> Tensor:
    """Return a tensor of the CPU as a value. Raises CannotCarry for a dtype without encoding."""
    import torch

    dtype = str(item.dtype).removeprefix("torch.")
    if dtype not in CONTAINERS:
        raise CannotCarry(f"opera cannot read an output of dtype {dtype}")
    flat = item.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return Tensor(dtype, tuple(item.shape), flat.view(torch.uint8).numpy().tobytes())
