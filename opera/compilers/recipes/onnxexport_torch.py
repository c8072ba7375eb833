"""torch.onnx.export, by way of torch.export."""

import numpy as np
import torch

from opera.compilers.recipes.onnxexport import infer
from opera.compilers.recipes.torch import call


def export(model, path, args, tensors, outputs, **options):
    program = torch.export.export(model, args, strict=False)
    names = {"input_names": list(tensors), "output_names": list(outputs)}
    torch.onnx.export(program, (), path, dynamo=True, verbose=False, external_data=False, **names, **options)
    return path


def infer_complex(session, feeds, model, args, to_numpy):
    """The exporter makes pairs of complex numbers, as its documentation says."""
    found = infer(session, {name: paired(array) for name, array in feeds.items()})
    return [unpaired(got, want) for got, want in zip(found, call(model, args, to_numpy), strict=True)]


def paired(array):
    return array[..., None].view(array.real.dtype) if np.iscomplexobj(array) else array


def unpaired(got, want):
    pairs = np.iscomplexobj(want) and got.shape[-1:] == (2,) and got.dtype == want.real.dtype
    return got.view(want.dtype)[..., 0] if pairs else got
