"""What OpenVINO's importer of PyTorch's programs uses, as far as a release has it: imported before workers are forked."""

from __future__ import annotations

from importlib import import_module

for name in (
    "openvino.frontend.pytorch.fx_decoder",
    "openvino.frontend.pytorch.ts_decoder",
    "openvino.frontend.pytorch.torchdynamo.export_decompositions",  # since 2025.1
):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
