"""The registry of converters."""

from __future__ import annotations

import operator
from typing import Any

import torch

from torch_tensorrt.dynamo.conversion import aten_ops_converters

HAS = {
    torch.ops.aten.sub.Tensor: aten_ops_converters.aten_ops_sub,
    torch.ops.aten.sort.default: aten_ops_converters.aten_ops_sort,
    operator.getitem: aten_ops_converters.aten_ops_getitem,
    torch.ops.aten.cumsum.default: aten_ops_converters.aten_ops_cumsum,
    torch.ops.aten.abs.default: aten_ops_converters.aten_ops_abs,
}


class ConverterRegistry:
    def get_unvalidated(self, key: Any, value: Any = None) -> Any:
        return (HAS[key], "CallingConvention.CTX") if key in HAS else value


DYNAMO_CONVERTERS = ConverterRegistry()
