"""Stands in for Torch-TensorRT: dynamo.compile with the parameters of a release, and a registry with its methods' names."""

from torch_tensorrt import dynamo as dynamo
