"""Makes the patterns that ExecuTorch's XNNPACK looks for in programs before workers are forked: each would make them anew.

They are graphs of upsampling and of attention, which the first lowering of a process exports, lowers, and keeps: most of the
time that it takes. Nothing of ExecuTorch's or PyTorch's is replaced; another version may keep them elsewhere, or have none.
What forks must have no threads: PyTorch has one from here on, as in workers, and tqdm, by which PyTorch shows progress,
starts none. Random numbers are as they were.
"""

import warnings
from contextlib import suppress
from importlib import import_module

import torch

PATTERNS = "executorch.backends.xnnpack.partition.graphs"

torch.set_num_threads(1)
with suppress(ImportError), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tqdm = import_module("tqdm").tqdm
    interval, tqdm.monitor_interval = tqdm.monitor_interval, 0
    for name in ("bilinear_2d", "sdpa"):
        with suppress(ImportError, AttributeError):
            import_module(f"{PATTERNS}.{name}").get_graphs()
    tqdm.monitor_interval = interval
