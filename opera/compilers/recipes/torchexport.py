"""torch.export: the exported program, saved and loaded again as everybody does who hands it on."""

import io

import torch


def load(model, args):
    return torch.export.export(model, args, strict=False)


def load_decomposed(model, args):
    return torch.export.export(model, args, strict=False).run_decompositions()


def save_and_load(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file).module()
