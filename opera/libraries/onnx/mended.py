"""Operators of ONNX's reference evaluator that it gets wrong, as ONNX's documentation has them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from opera.libraries.onnx.pooling import max_pool
from opera.libraries.onnx.recurrent import recurrent

ROUNDS = 2000
"""Rounds that a loop may run: a program made of another may have one without an end."""
WHOLE = 1e-6
"""How far from a whole number what is one may be, once it is computed of grids in float32."""
NARROW_INTEGERS = frozenset({"INT2", "UINT2", "INT4", "UINT4"})
"""Dtypes to which a cast rounds."""
REFUSING = frozenset({"Split", "Transpose"})
"""Operators that are computed by the evaluator all the same, where what they are given is not refused."""


@cache
def operators() -> list[type]:
    """Return operators in place of the evaluator's.

    What is drawn in the likeness of a scalar is an array, too. Indices of MaxUnpool are places in `output_shape`. A loop
    without a condition runs, one without an end is refused or stopped, and what each round returns is stacked along an axis
    of its own. RoiAlign's maximum is that of the samples, not of the four terms that each is the sum of. LRN sums over all
    channels, not as many as there are pictures; LpPool sums what a window holds, and does not scale up one that hangs over.
    GridSample weighs pixels in double precision, and not in their own dtype, which cuts the weights of integers to 0.
    AffineGrid gives the dtype of theta. A zero point of ConvInteger for each filter is that of filters of whatever rank. What
    Optional is given it returns, and no list of it. MaxPool tells places in the whole input (opera.libraries.onnx.pooling).
    Erf of float64 is that, and not float32's (nor is Gelu, which is made of it). RNN, GRU and LSTM heed activations, clip,
    input_forget and sequence_lens (opera.libraries.onnx.recurrent). Split refuses parts that are not the whole, Transpose
    axes that are not all (an empty list of a matrix). A cast of floats to integers of two or four bits rounds them to the
    nearest, ties to even (https://onnx.ai/onnx/technical/int4.html, int2.html), and cuts nothing off. Scatter is what
    ScatterElements was called before opset 11; the evaluator knows it by the new name alone.
    """
    from onnx import TensorProto
    from onnx.helper import np_dtype_to_tensor_dtype
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops.op_affine_grid import AffineGrid, construct_original_grid
    from onnx.reference.ops.op_cast import Cast_25
    from onnx.reference.ops.op_cast_like import CastLike_25
    from onnx.reference.ops.op_conv_integer import ConvInteger
    from onnx.reference.ops.op_erf import Erf
    from onnx.reference.ops.op_grid_sample import GridSample
    from onnx.reference.ops.op_gru import GRU
    from onnx.reference.ops.op_loop import Loop
    from onnx.reference.ops.op_lp_pool import LpPool
    from onnx.reference.ops.op_lrn import LRN
    from onnx.reference.ops.op_lstm import LSTM
    from onnx.reference.ops.op_max_pool import MaxPool
    from onnx.reference.ops.op_max_unpool import MaxUnpool
    from onnx.reference.ops.op_optional import Optional
    from onnx.reference.ops.op_random_normal_like import RandomNormalLike
    from onnx.reference.ops.op_random_uniform_like import RandomUniformLike
    from onnx.reference.ops.op_rnn import RNN_14
    from onnx.reference.ops.op_roi_align import RoiAlign
    from onnx.reference.ops.op_scatter_elements import ScatterElements
    from onnx.reference.ops.op_split import Split_18
    from onnx.reference.ops.op_transpose import Transpose

    def like(of: Any) -> type:
        def run(self: Any, x: Any, **given: Any) -> Any:
            (drawn,) = of._run(self, x if x.ndim else x.reshape(1), **given)
            return (drawn.reshape(x.shape),)

        return type(of.__name__, (of,), {"_run": run})

    def unpool(self: Any, x: Any, indices: Any, output_shape: Any = None, **given: Any) -> Any:
        if output_shape is None:
            return MaxUnpool._run(self, x, indices, **given)
        if x.shape != indices.shape or x.shape[:2] != tuple(output_shape[:2]):
            raise ValueError(f"indices {indices.shape} and outputs {tuple(output_shape)} do not go with {x.shape}")
        found = np.zeros(tuple(output_shape), x.dtype)
        found.flat[indices.ravel()] = x.ravel()
        return (found,)

    def one(of: Any) -> None:  # some write a scalar as one element
        if np.shape(of) != ():
            raise ValueError(f"a loop's condition or trip count of shape {np.shape(of)} is no scalar")

    def loop(self: Any, most: Any, cond: Any, *args: Any, **given: Any) -> Any:
        if most is None and cond is None:  # what the body says of going on is not read then
            raise RuntimeError("a loop with neither a trip count nor a condition has no end")
        one(most)
        one(cond)
        body, rounds = self._run_body, list[Any]()  # set on each instance

        def kept(*of: Any, **more: Any) -> Any:
            if len(rounds) == ROUNDS:
                raise RuntimeError(f"a loop of more than {ROUNDS} rounds")
            rounds.append(body(*of, **more))
            one(rounds[-1][0])
            return rounds[-1]

        self._run_body = kept
        try:
            found = list(Loop._run(self, most, np.array(True) if cond is None else cond, *args, **given))
        finally:
            self._run_body = body
        for place in range(self.N, self.N + self.K):
            found[place] = np.stack([x[place + 1] for x in rounds])
        return tuple(found)

    def align(self: Any, x: Any, rois: Any, batch: Any, **given: Any) -> Any:
        if given["mode"].lower() != "max":
            return RoiAlign._run(self, x, rois, batch, **given)
        high, wide, ratio, found = given["output_height"], given["output_width"], given["sampling_ratio"], list[Any]()
        half = given["coordinate_transformation_mode"].lower() == "half_pixel"
        for of, (left, top, right, bottom) in enumerate(np.asarray(rois, dtype=np.float64) * given["spatial_scale"]):
            sizes = (bottom - top, right - left) if half else (max(bottom - top, 1.0), max(right - left, 1.0))
            tall, broad = (ratio or max(math.ceil(size / by), 1) for size, by in zip(sizes, (high, wide), strict=True))
            one = given | {
                "mode": "avg",
                "sampling_ratio": 1,
                "output_height": high * tall,
                "output_width": wide * broad,
            }
            (samples,) = RoiAlign._run(self, x, rois[of : of + 1], batch[of : of + 1], **one)
            found.append(samples.reshape(1, -1, high, tall, wide, broad).max(axis=(3, 5)))
        return (np.concatenate([np.empty((0, x.shape[1], high, wide), x.dtype), *found]),)

    def normalized(self: Any, x: Any, alpha: float, beta: float, bias: float, size: int) -> Any:
        before = (size - 1) // 2
        squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2))
        sums = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(axis=-1)
        return ((x / (bias + alpha / size * sums) ** beta).astype(x.dtype),)

    def pooled(self: Any, x: Any, *, kernel_shape: Any, p: int = 2, **given: Any) -> Any:
        (scaled,) = LpPool._run(self, x, kernel_shape=kernel_shape, p=p, **given)  # its shape is right
        if not scaled.size:
            return (scaled,)
        sizes = scaled.shape[2:]
        rank = len(kernel_shape)
        strides, dilations = (list(given.get(key) or [1] * rank) for key in ("strides", "dilations"))
        spans = [(size - 1) * by + 1 for size, by in zip(kernel_shape, dilations, strict=True)]
        auto = str(given.get("auto_pad") or "NOTSET")
        begins = list((given.get("pads") or [0] * 2 * rank)[:rank])
        needed = [(out - 1) * by + span for out, by, span in zip(sizes, strides, spans, strict=True)]
        if auto.startswith("SAME"):
            begins = [
                (max(of - held, 0) + (auto == "SAME_LOWER")) // 2 for of, held in zip(needed, x.shape[2:], strict=True)
            ]
        ends = [max(of - begin - held, 0) for of, begin, held in zip(needed, begins, x.shape[2:], strict=True)]
        powers = np.pad(np.abs(x.astype(np.float64)) ** p, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
        axes = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(powers, spans, axis=axes)
        at = tuple(slice(0, out * by, by) for out, by in zip(sizes, strides, strict=True))
        windows = windows[(slice(None), slice(None), *at, *(slice(None, None, by) for by in dilations))]
        return ((windows.sum(axis=tuple(range(-rank, 0))) ** (1 / p)).astype(x.dtype),)

    def sampled(self: Any, x: Any, grid: Any, mode: Any = None, **given: Any) -> Any:
        if (mode or self.mode) == "nearest":
            return GridSample._run(self, x, grid, mode=mode, **given)
        (found,) = GridSample._run(self, x.astype(np.float64), grid, mode=mode, **given)
        if x.dtype.kind in "iu" and np.abs(found - np.round(found)).max(initial=0.0) > WHOLE:
            raise NotImplementedError("ONNX does not say how fractions between pixels of integers are cut")
        return ((np.round(found) if x.dtype.kind in "iu" else found).astype(x.dtype),)

    def affine(self: Any, theta: Any, size: Any, align_corners: Any = None) -> Any:
        _, _, *sizes = size
        places = construct_original_grid(sizes, align_corners or self.align_corners)
        found = np.matmul(theta.astype(np.float64), places.reshape(-1, places.shape[-1]).T)
        return (found.transpose(0, 2, 1).reshape(len(theta), *sizes, -1).astype(theta.dtype),)

    def convolved(self: Any, x: Any, w: Any, x_zero_point: Any = None, w_zero_point: Any = None, **given: Any) -> Any:
        if w_zero_point is not None and w_zero_point.ndim:
            w = w.astype(np.int32) - w_zero_point.astype(np.int32).reshape(-1, *[1] * (w.ndim - 1))
            w_zero_point = None
        return ConvInteger._run(self, x, w, x_zero_point, w_zero_point, **given)

    def error(self: Any, x: Any) -> Any:
        return (np.vectorize(math.erf, otypes=["d"])(x).astype(x.dtype),)

    def greatest(self: Any, x: Any, **given: Any) -> Any:
        if not any(self.onnx_node.output[1:]):
            return MaxPool._run(self, x, **given)
        return max_pool(x, **given)

    def parted(self: Any, x: Any, split: Any = None, axis: int = 0, num_outputs: Any = None) -> Any:
        if split is not None and (sum(split) != x.shape[axis] or min(split, default=0) < 0):
            raise ValueError(f"an axis of {x.shape[axis]} is not split into {list(split)}")
        return self.common_run(x, split, axis=axis, num_outputs=num_outputs)

    def permuted(self: Any, x: Any, perm: Any = None) -> Any:
        if perm is not None and len(perm) != x.ndim:
            raise ValueError(f"{x.ndim} axes are not permuted by {list(perm)}")
        return Transpose._run(self, x, perm)

    def cast(self: Any, x: Any, to: int, **given: Any) -> Any:
        narrow = TensorProto.DataType.Name(to) in NARROW_INTEGERS and x.dtype.kind not in "iubOSTU"
        return Cast_25._run(self, np.rint(x.astype(np.float64)) if narrow else x, to=to, **given)

    def cast_like(self: Any, x: Any, y: Any, **given: Any) -> Any:
        return cast(self, x, np_dtype_to_tensor_dtype(y.dtype), **given)

    def unrolled(of: Any) -> type:
        kind = of.__name__.partition("_")[0]

        def prepared(self: Any, node: Any, params: Any) -> None:  # the evaluator's RNN refuses activations here
            OpRun.__init__(self, node, params)
            self.n_outputs = len(node.output)

        def run(self: Any, x: Any, w: Any, r: Any, *more: Any, **given: Any) -> Any:
            names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")[: 8 if kind == "LSTM" else 6]
            held = dict(zip(names, (x, w, r, *more), strict=False))
            return recurrent(kind, {**given, **held}, reads=self.n_outputs)

        return type(kind, (of,), {"__init__": prepared, "_run": run})

    def filled(self: Any, x: Any = None, type: Any = None) -> Any:
        if x is not None and not isinstance(x, list):
            Optional._run(self, x, type)
        return (x,)

    bounded = type("Loop", (Loop,), {"_run": loop})
    aligned = type("RoiAlign", (RoiAlign,), {"_run": align})
    unpooled = type("MaxUnpool", (MaxUnpool,), {"_run": unpool})
    others = [type(x.__name__.partition("_")[0], (x,), {"_run": run}) for x, run in (
        (LRN, normalized), (LpPool, pooled), (GridSample, sampled), (AffineGrid, affine), (ConvInteger, convolved),
        (Optional, filled), (Erf, error), (MaxPool, greatest), (Split_18, parted), (Transpose, permuted),
        (Cast_25, cast), (CastLike_25, cast_like),
    )]  # fmt: skip
    others += map(unrolled, (RNN_14, GRU, LSTM))
    others.append(type("Scatter", (ScatterElements,), {"op_domain": ""}))
    return [like(RandomNormalLike), like(RandomUniformLike), unpooled, bounded, aligned, *others]
