"""Torch-TensorRT: an exported program, moved to the GPU and compiled as one engine."""

import tempfile
from pathlib import Path

import torch
import torch_tensorrt
from torch.export.passes import move_to_device_pass

DEVICE = "cuda"
OPTIONS = {
    "min_block_size": 1,  # by default fewer than five operators stay in PyTorch
    "require_full_compilation": True,  # else what it cannot convert stays in PyTorch without a word
    "disable_tf32": True,  # by default float32 is multiplied with the 10 bits of TF32
    "use_explicit_typing": True,  # dtypes are the model's, as they always are in release 2.13
}


class NothingConverted(RuntimeError):
    """Torch-TensorRT gave the program back as it was, which require_full_compilation does not keep it from."""


def load(path):
    return move_to_device_pass(torch.export.load(path), DEVICE)


def build(program, args):
    """Compile it, with no timing cache of other models."""
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "timing_cache.bin")
        args = [x.to(DEVICE) for x in args]
        compiled = torch_tensorrt.dynamo.compile(program, args, timing_cache_path=cache, **OPTIONS)
    if not any(type(part).__name__.endswith("TorchTensorRTModule") for part in compiled.modules()):
        raise NothingConverted("no operator of the program was converted, and all are left to PyTorch")
    return compiled, args


def infer(built, to_numpy):
    compiled, args = built
    result = compiled(*args)
    return [to_numpy(x.cpu()) for x in (result if isinstance(result, tuple | list) else (result,))]
