"""Importing this module fails where Torch-TensorRT is not installed, and imports nothing of it: see torch.PRELOAD."""

from importlib.util import find_spec

if find_spec("torch_tensorrt") is None:
    raise ModuleNotFoundError("No module named 'torch_tensorrt'", name="torch_tensorrt")
