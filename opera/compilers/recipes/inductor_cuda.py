"""TorchInductor on an NVIDIA GPU: model and inputs are moved there, outputs back."""

import torch

from opera.compilers.recipes.inductor import load
from opera.compilers.recipes.torch import call

torch.backends.cudnn.allow_tf32 = False  # by default convolutions of float32 have the 10 bits of TF32
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
DEVICE = "cuda"


def load_there(model, args):
    return load(model.to(DEVICE), there(args))


def call_there(model, args, to_numpy):
    return call(model, there(args), lambda x: to_numpy(x.cpu()))


def there(args):
    return tuple(x.to(DEVICE) for x in args)
