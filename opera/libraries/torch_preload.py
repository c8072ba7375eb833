"""Imports what PyTorch and its exporters would else import in every worker when they are first used (seconds each).

Importing starts no threads and runs no operator. Names that begin with an underscore are PyTorch's own business: what another
version does not have is passed over.
"""

from contextlib import suppress
from importlib import import_module

import torch  # noqa: F401

MODULES = """
torch.export torch.export._trace torch.export.exported_program torch.overrides torch.utils._pytree
torch.utils.serialization.config torch._export.passes.replace_autocast_with_hop_pass
torch._export.passes.replace_set_grad_with_hop_pass
torch._inductor.compiler_bisector torch._inductor.fx_passes.dedupe_symint_uses torch._inductor.ir torch._inductor.sizevars
torch._subclasses.schema_check_mode torch.fx.experimental.symbolic_shapes torch.fx.experimental.validator
onnxscript onnxscript.function_libs.torch_lib.ops onnxscript.rewriter.rules.fusion onnxscript._framework_apis.torch_2_9
torch.onnx._internal.exporter._compat torch.onnx._internal.exporter._torchlib.ops
"""

for name in MODULES.split():
    with suppress(ImportError):
        import_module(name)
