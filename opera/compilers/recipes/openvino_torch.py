"""OpenVINO's importers of PyTorch's exported programs, and of modules that PyTorch traced."""

import copy
import os

import openvino
import torch

os.environ["CI"] = "true"  # keeps conversion from reporting to OpenVINO's makers, by processes that it forks


def load_program(path, tensors):
    """Convert an ExportedProgram; without the shapes of its inputs all of them would become dynamic."""
    program = torch.export.load(path)
    shapes = [openvino.PartialShape(list(tensor.shape)) for tensor in tensors.values()]
    return named(openvino.convert_model(program, input=shapes), tensors, program.graph_signature.user_inputs)


def trace(model, args):
    """Trace the module in the mode that it is in: convert_model would put it into evaluation mode first."""
    return torch.jit.trace(model, copy.deepcopy(args), check_trace=False)


def load_traced(traced, args, tensors):
    shapes = [openvino.PartialShape(list(tensor.shape)) for tensor in args]
    return named(openvino.convert_model(traced, input=shapes, example_input=copy.deepcopy(args)), tensors, ())


def named(model, tensors, user_inputs):
    """Name the model's inputs by their place where all are there, else by their own names."""
    names = list(tensors)
    whole = len(model.inputs) == len(names)
    for place, port in enumerate(model.inputs):
        known = [name for name, own in zip(names, user_inputs, strict=False) if own in port.get_names()]
        if whole or known:
            port.get_tensor().add_names({names[place] if whole else known[0]})
    return model
