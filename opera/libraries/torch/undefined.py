"""What PyTorch leaves undefined: rules keyed by operator, each resting on a sentence of its documentation.

A rule that is too wide hides bugs: ties of argmax and of max over a dimension (the first wins), division by zero of floats,
and reductions over nothing of sum, prod and mean are *defined*, and integer division by zero raises: none is excused here.
What returns uninitialized memory (`torch.empty`) is no operator of opera's at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from opera.errors import CorpusError
from opera.oracle import comparison, factors
from opera.oracle.conditioning import INTERPOLATING, wide
from opera.oracle.undefined import Undefined, twice
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value

Array = np.ndarray[Any, Any]

NEVER_ROUNDED = """
abs absolute adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d all amax amin aminmax and any argmax argmin
argsort argwhere as_strided atleast_1d atleast_2d atleast_3d bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor block_diag broadcast_tensors broadcast_to bucketize cartesian_prod cat ceil
channel_shuffle chunk clamp clamp_max clamp_min clip clone column_stack combinations complex concat concatenate conj
copysign count_nonzero cummax cummin diag diag_embed diagflat diagonal dsplit dstack embedding eq expand expand_as eye
fill fix flatten flip fliplr flipud floor fmax fmin full full_like gather ge getitem greater greater_equal gt
hardshrink hardtanh heaviside hsplit hstack imag index_copy index_fill index_put index_select invert isfinite isin
isinf isnan isneginf isposinf isreal kthvalue le less less_equal logical_and logical_not logical_or logical_xor lshift
lt masked_fill masked_scatter masked_select max max_pool1d max_pool2d max_pool3d maximum meshgrid min minimum mode
moveaxis movedim msort nan_to_num narrow ne neg negative nextafter nonzero not_equal one_hot ones ones_like or pad
permute pixel_shuffle pixel_unshuffle positive put ravel real relu relu6 repeat repeat_interleave reshape roll rot90
rshift scatter searchsorted select select_scatter setitem sgn sign signbit slice_scatter sort split split_with_sizes
squeeze stack swapaxes swapdims t take take_along_dim tensor_split threshold tile topk transpose tril tril_indices
triu triu_indices trunc unbind unflatten unfold unique unique_consecutive unsqueeze view view_as vsplit vstack where
xor zeros zeros_like to type_as bfloat16 half float double AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Embedding Flatten
Hardshrink Hardtanh Identity MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d PixelShuffle
PixelUnshuffle ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
ReplicationPad3d Threshold Unflatten Unfold ZeroPad1d ZeroPad2d ZeroPad3d
"""
SUMS = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d addbmm addmm addmv avg_pool1d avg_pool2d avg_pool3d
baddbmm batch_norm bilinear bmm cdist chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
conv_transpose3d corrcoef cov cumsum cumulative_trapezoid dot einsum embedding_bag fft fft2 fftn group_norm hfft
hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn index_add inner instance_norm irfft irfft2 irfftn istft layer_norm
linear local_response_norm logcumsumexp logsumexp lp_pool1d lp_pool2d lp_pool3d matmul matrix_exp matrix_norm
matrix_power mean mm multi_dot multi_head_attention_forward mv nanmean nansum norm rfft rfft2 rfftn rms_norm rmatmul
scaled_dot_product_attention scatter_add scatter_reduce std std_mean stft sum sum_to_size tensordot trace trapezoid
trapz var var_mean vdot vecdot vector_norm AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d
AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
ConvTranspose3d EmbeddingBag GRU GRUCell GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LPPool1d LPPool2d
LPPool3d LSTM LSTMCell LayerNorm Linear LocalResponseNorm MultiheadAttention RMSNorm RNN RNNCell Transformer
TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
"""
EXACT = frozenset(NEVER_ROUNDED.split())
"""Operators (by `plain` name) that select, move, compare or convert their inputs and never round: no correct implementation can
differ on an exact input, so that no result of theirs is excused as ill-conditioned."""
ACCUMULATING = frozenset(SUMS.split())
"""Operators that add many terms, in an order that is each implementation's own."""

INTERPOLATES = frozenset(("interpolate", "upsample", "upsample_bilinear"))
"""Operators whose results are numbers between those of the input, of which no documentation says how integers are rounded."""


INDICES = {"arg1", "idx", "index", "indices", "key"}
"""What the indices are called that index_put, put and assignment write to."""


class Call(msgspec.Struct, frozen=True):
    """An instance as the rules see it."""

    instance: Instance
    expected: list[Value]

    def tensor(self, *names: str) -> Tensor | None:
        """Return the first input that has one of these names."""
        for operand in self.instance.inputs:
            if operand.name in names:
                value = operand.value
                return (
                    value.tensor() if isinstance(value, RandomTensor) else value if isinstance(value, Tensor) else None
                )
        return None

    def argument(self, name: str, default: Value = None) -> Value:
        """Return an argument that is no tensor."""
        return self.instance.params.get(name, default)

    @property
    def result(self) -> Tensor:
        """The first output."""
        (first, *_) = self.expected
        if not isinstance(first, Tensor):
            raise TypeError("no tensor")
        return first


def plain(operator: str) -> str:
    """Return the last part of an operator's name, without the underscores that mark methods and in-place variants.

    `torch.Tensor.__rshift__` is `rshift`, `torch.relu_` and `torch.nn.functional.relu` are `relu`; `__iadd__` is `iadd`.
    """
    return operator.rpartition(".")[2].strip("_")


def tags(program: Program) -> set[str]:
    """Return facts for the screens: `exact` where no result is ever rounded, `accumulating` where many terms are added,
    `interpolating` where integers are rounded in a way that is not documented."""
    found = [_tags(call) for call in program.instances()]
    return set.intersection(*found) & {comparison.EXACT} | set.union(*found) - {comparison.EXACT}


def _tags(instance: Instance) -> set[str]:
    name = plain(instance.operator)
    whole = not any(getattr(operand.value, "dtype", "").startswith("complex") for operand in instance.inputs)
    exact = name in EXACT and whole and not _rounds(instance)  # the size of a complex number is rounded
    facts = {comparison.EXACT: exact, "accumulating": name in ACCUMULATING, INTERPOLATING: name in INTERPOLATES}
    return {fact for fact, holds in facts.items() if holds}


def _rounds(instance: Instance) -> bool:
    """Whether a scatter or index_put also adds or multiplies, an embedding renormalises, or floats are shifted: by a power of 2
    of any exponent."""
    if plain(instance.operator) in ("lshift", "rshift"):
        return any("float" in getattr(operand.value, "dtype", "") for operand in instance.inputs)
    return any(instance.params.get(name) not in (None, False) for name in ("reduce", "accumulate", "max_norm"))


def undefined(instance: Instance, expected: list[Value]) -> str | None:
    """Return why the result of an instance is undefined, with the numbers, else None."""
    rule = RULES.get(plain(instance.operator))
    try:
        return rule(Call(instance, expected)) if rule else None
    except (CorpusError, IndexError, ValueError, TypeError, AttributeError):
        return None  # an unusual call: nothing can be told, and so nothing is excused


def _shift(call: Call) -> str | None:
    """torch.bitwise_right_shift: "In any case, if the value of the right operand is negative or is greater or equal to the
    number of bits in the promoted left operand, the behavior is undefined"."""
    reverse = plain(call.instance.operator) in ("rlshift", "rrshift")
    right = call.tensor("input" if reverse else "other")
    amounts = np.asarray(call.argument("other")) if right is None else right.array()
    if amounts.dtype.kind not in "iu" or "int" not in call.result.dtype:
        return None
    width = _bits(call.result.dtype)
    bad = (amounts < 0) | (amounts >= width)
    if not bad.any():
        return None
    return Undefined(f"a shift of {width} bits by {amounts[bad][0]} is undefined; {int(bad.sum())} such", bad)


def _cast(call: Call) -> str | None:
    """Tensor.to: "If the truncated value cannot fit into the target type (e.g., casting torch.inf to torch.long), the
    behavior is undefined and the result may vary across platforms"."""
    copied = plain(call.instance.operator) in ("copy", "setitem")
    source, target = call.tensor("src", "other", "value") if copied else call.tensor("input"), call.result.dtype
    if source is None or "int" not in target or "float" not in source.dtype:
        return None
    numbers = source.numbers()
    signed, bits = target.startswith("int"), _bits(target)
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    with np.errstate(invalid="ignore"):
        cut = np.trunc(numbers.astype(np.float64))
        bad = ~((cut >= low) & (cut < high))
    if not bad.any():
        return None
    first = numbers[tuple(np.argwhere(bad)[0])]
    count = f"{int(bad.sum())} of {bad.size} elements"
    where = () if plain(call.instance.operator) == "setitem" else (bad,)  # which elements are written is not known
    return Undefined(f"casting {first} from {source.dtype} to {target} does not fit, so undefined; {count}", *where)


def _sort(call: Call) -> str | None:
    """torch.sort: "If False, the relative order of values which compare equal is not guaranteed"."""
    data = call.tensor("input")
    if data is None or not data.shape or call.argument("stable") is True:
        return None
    dim, descending = call.argument("dim", -1), call.argument("descending", False)
    equal = _equal(data.numbers(), dim)
    if not equal.any():
        return None
    why = f"{call.instance.operator} that is not stable does not order equal elements; {int(equal.sum())} have an equal"
    tied = np.flip(equal, dim) if descending else equal
    return Undefined(why, *(() if len(call.expected) == 1 else (False,)), tied)


def _equal(numbers: Array, dim: Value) -> Array:
    """Return which elements have an equal, once all are sorted along a dimension; NaNs are equal."""
    if not isinstance(dim, int):
        raise TypeError("no dimension")
    moved = np.sort(np.moveaxis(numbers, dim, -1))
    one, other = moved[..., 1:], moved[..., :-1]
    same = (one == other) | ((one != one) & (other != other))
    found = np.zeros(moved.shape, dtype=bool)
    found[..., 1:] |= same
    found[..., :-1] |= same
    return np.moveaxis(found, -1, dim)


def _top_k(call: Call) -> str | None:
    """torch.topk: "the indices of tied elements are not guaranteed to be stable and may vary across different invocations";
    `sorted` "controls whether to return the elements in sorted order"."""
    data = call.tensor("input")
    if data is None or not data.shape or not call.result.shape:
        return None
    if call.argument("sorted", True) is False and call.result.shape[0]:
        return "topk with sorted=False does not order its results"
    dim = call.argument("dim", -1)
    axis = dim if isinstance(dim, int) else -1
    rows, best = np.moveaxis(data.numbers(), axis, -1), np.moveaxis(call.result.numbers(), axis, -1)
    same = (rows[..., None, :] == best[..., :, None]) | ((rows != rows)[..., None, :] & (best != best)[..., :, None])
    ties = same.sum(-1) > 1
    if not ties.any():
        return None
    why = f"topk guarantees no order of tied elements; {int(ties.sum())} of its results have an equal"
    return Undefined(why, False, np.moveaxis(ties, -1, axis))


def _median(call: Call) -> str | None:
    """torch.median: "indices does not necessarily contain the first occurrence of each median value found, unless it is
    unique"."""
    return _any_of_equal(call, "the median")


def _kth_value(call: Call) -> str | None:
    """torch.kthvalue: "indices is the index location of each element found"; of equal ones each is. On CUDA it "may
    nondeterministically return indices for any of them"."""
    return _any_of_equal(call, "the k-th")


def _any_of_equal(call: Call, what: str) -> str | None:
    """Say that any of equal elements may be named: values are defined, indices are not."""
    data = call.tensor("input")
    if data is None or len(call.expected) < 2 or not data.shape:
        return None
    ties = int(_equal(data.numbers(), call.argument("dim", -1)).sum())
    why = f"which of equal elements is {what} is not defined; {ties} elements have an equal"
    return Undefined(why, False, True) if ties else None


def _scatter(call: Call) -> str | None:
    """Tensor.scatter_: "When indices are not unique, the behavior is non-deterministic (one of the values from src will be
    picked arbitrarily)"; likewise index_copy_."""
    index, dim = call.tensor("index"), call.argument("dim", 0)
    constant = call.tensor("src", "source") is None
    if index is None or constant or not isinstance(dim, int) or call.argument("reduce") is not None:
        return None
    array, mask = index.array().astype(np.int64), np.zeros(call.result.shape, dtype=bool)
    if plain(call.instance.operator) == "index_copy":
        return twice(call.instance.operator, array.reshape(-1, 1), np.moveaxis(mask, dim, 0))
    places = np.indices(array.shape)
    places[dim % max(array.ndim, 1)] = array
    return twice(call.instance.operator, places.reshape(array.ndim, -1).T, mask)


def _put(call: Call) -> str | None:
    """Tensor.index_put_: "If accumulate is False, the behavior is undefined if indices contain duplicate elements"; likewise
    put_, and `tensor[indices] = values`, which is the same."""
    if call.argument("accumulate") is True:
        return None
    shape = call.result.shape
    values = call.instance.inputs[1:]  # after the tensor itself: indices, then what is written
    arrays = [x.value.array() for x in values if isinstance(x.value, Tensor) and x.name.partition(".")[0] in INDICES]
    if not arrays or any(x.dtype.kind not in "iu" for x in arrays):
        return None
    mask = np.zeros(shape, dtype=bool)
    mask = mask.reshape(-1) if plain(call.instance.operator) == "put" else mask
    rows = np.stack([x.ravel() for x in np.broadcast_arrays(*arrays)], axis=1)
    return twice(call.instance.operator, rows % np.array(mask.shape[: len(arrays)]), mask)


def _unpool(call: Call) -> str | None:
    """torch.nn.MaxUnpool2d: "This operation may behave nondeterministically when the input indices has repeat values"."""
    indices = call.tensor("indices")
    if indices is None:
        return None
    kept = 1 if plain(call.instance.operator).lower().endswith("1d") else 2 if "2" in call.instance.operator else 3
    rows = indices.array().reshape(int(np.prod(indices.shape[:-kept])), -1)
    doubled = sum(len(row) - len(np.unique(row)) for row in rows)
    return f"unpooling with {doubled} repeated indices has no order that is defined" if doubled else None


def _polar(call: Call) -> str | None:
    """torch.polar: "The behavior of this function is undefined if abs is negative or NaN, or if angle is infinite"."""
    size, angle = call.tensor("abs"), call.tensor("ang", "angle")
    if size is None or angle is None:
        return None
    bad = ~(size.numbers() >= 0) | np.isinf(angle.numbers())
    why = f"polar of negative or NaN sizes, or infinite angles, is undefined; {int(bad.sum())} such"
    return Undefined(why, bad) if bad.any() else None


def _bucketize(call: Call) -> str | None:
    """torch.bucketize: boundaries "must contain a strictly increasing sequence, or the return value is undefined"."""
    bounds = call.tensor("boundaries")
    if bounds is None:
        return None
    bad = int((~(np.diff(bounds.numbers().astype(np.float64)) > 0)).sum())
    return f"boundaries that do not increase leave the result undefined; {bad} such" if bad else None


def _log_gamma(call: Call) -> str | None:
    """torch.special.multigammaln: "All elements must be greater than (p - 1) / 2, otherwise the behavior is undefined"."""
    data, p = call.tensor("input"), call.argument("p")
    if data is None or not isinstance(p, int):
        return None
    bad = ~(data.numbers() > (p - 1) / 2)
    why = f"multigammaln of elements not above {(p - 1) / 2} is undefined; {int(bad.sum())} such"
    return Undefined(why, bad) if bad.any() else None


def _not_unique(call: Call) -> str | None:
    """torch.linalg.svd: "The returned tensors U and V are not unique"; eigh: "The eigenvectors of a symmetric matrix are not
    unique"; eig: "The returned eigenvalues are not guaranteed to be in any specific order"."""
    if call.argument("compute_uv") is False:
        return None
    name, matrix = plain(call.instance.operator), call.tensor("input", "A")
    where: tuple[bool, ...] = {"svd": (True, False, True), "eigh": (False, True)}.get(name, ())
    upper = call.argument("UPLO") in ("U", "u")
    checks = {
        "svd": factors.svd if "linalg" in call.instance.operator else factors.svd_of_v,
        "eigh": factors.of_upper if upper else factors.of_lower,
        "eig": factors.eigen,
    }
    holds = factors.of(checks[name], wide(matrix)) if name in checks and matrix is not None else lambda _: True
    return Undefined(f"{call.instance.operator} returns a decomposition that is not unique", *where, holds=holds)


def _unordered(call: Call) -> str | None:
    """torch.unique: `sorted` says "whether to sort the unique elements in ascending order before returning"."""
    return "unique with sorted=False states no order" if call.argument("sorted") is False else None


def _recurrent(call: Call) -> str | None:
    """torch.nn.LSTM: `weight_ih_l[k]` is "of shape (4*hidden_size, input_size) for k = 0. Otherwise, the shape is
    (4*hidden_size, num_directions * hidden_size)", or "num_directions * proj_size" with a projection; `weight_hh_l[k]`
    "(4*hidden_size, hidden_size)", or proj_size; `weight_hr_l[k]` "(proj_size, hidden_size)"; biases "(4*hidden_size)".
    Likewise GRU, of three gates, and RNN, of one. `torch.lstm`, which these call and nobody documents, computes something of
    many others, too.
    """
    name, data = plain(call.instance.operator), call.tensor("input", "data")
    weights = [x.value for x in call.instance.inputs if x.name.startswith("params.")]
    shapes = [x.shape for x in weights if isinstance(x, Tensor | RandomTensor)]
    layers, sides = call.argument("num_layers"), 2 if call.argument("bidirectional") else 1
    if data is None or not isinstance(layers, int) or not shapes or any(len(x) > 2 for x in shapes):
        return None  # of another overload
    each, rest = divmod(len(shapes), layers * sides)
    biases = 2 if call.argument("has_biases") else 0
    if rest or each not in (2 + biases, 3 + biases):
        return f"{len(shapes)} weights are not those of {layers * sides} layers"
    high = shapes[0][0]
    hidden = high // {"lstm": 4, "gru": 3}.get(name, 1)
    for n in range(layers * sides):
        own = shapes[n * each : (n + 1) * each]
        size = own[-1][0] if each > 2 + biases else hidden
        wide = data.shape[-1] if n < sides else sides * size
        if own != [(high, wide), (high, size), *[(high,)] * biases, *[(size, hidden)] * (each - 2 - biases)]:
            told = ", ".join("x".join(map(str, x)) for x in own)
            return f"weights of shapes {told} are those of no {name} of hidden size {hidden}"
    return None


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


Rule = Callable[[Call], str | None]
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "lshift", "rshift", "ilshift", "irshift"), _shift),
    **dict.fromkeys(("rlshift", "rrshift"), _shift),
    **dict.fromkeys(("byte", "char", "copy", "int", "long", "short", "to", "type_as"), _cast),
    **dict.fromkeys(("argsort", "sort"), _sort),
    "topk": _top_k,
    **dict.fromkeys(("median", "nanmedian"), _median),
    "kthvalue": _kth_value,
    **dict.fromkeys(("index_copy", "scatter"), _scatter),
    **dict.fromkeys(("index_put", "put"), _put),
    "setitem": lambda call: _put(call) or _cast(call),
    **dict.fromkeys((f"{name}{n}" for name in ("max_unpool", "MaxUnpool") for n in ("1d", "2d", "3d")), _unpool),
    "polar": _polar,
    "bucketize": _bucketize,
    **dict.fromkeys(("multigammaln", "mvlgamma"), _log_gamma),
    **dict.fromkeys(("eig", "eigh", "eigvals", "svd"), _not_unique),
    "unique": _unordered,
    **dict.fromkeys(("lstm", "gru", "rnn_relu", "rnn_tanh"), _recurrent),
}  # fmt: skip
