"""What a script does with PyTorch as a compiler of its own programs."""

import numpy as np
import onnxruntime
import torch


def load_live(model):
    return model


def load_pt2(path):
    return torch.export.load(path).module()


def load_torchscript(path):
    return torch.jit.load(path)


def load_onnx(path):
    return onnxruntime.InferenceSession(path)


def infer_onnx(session, feeds, outputs):
    return [np.asarray(x) for x in session.run(outputs, feeds)]
