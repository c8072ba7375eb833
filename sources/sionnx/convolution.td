// Operators that move a window: N images of C channels and the spatial sizes D, kernels of the sizes K.
// Elements lie between -10 and 10, for sums of larger ones depend on their order.

def Convolutions : Instruction<[Conv]> {
  let D = dims(1..3, 3..9);
  let K = [1..min(d, 4) for d in D];
  let group = 1..3;
  let kernel_shape = K;
  let strides = [1..3 for d in D] default repeat(1, len(D));
  let dilations = [1..2 for d in D] default repeat(1, len(D));
  let auto_pad = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  let pads = (vector(2*len(D), 0..2) if auto_pad == "NOTSET" else none)
    default (repeat(0, 2*len(D)) if auto_pad == "NOTSET" else none);
  where not (auto_pad == "SAME_UPPER" or auto_pad == "SAME_LOWER") or max(dilations) == 1;
  X : [N, C*group, D...] in -10..10;
  W : [M*group, C, K...] in -10..10;
  B : [M*group] in -10..10;
  where all([(k - 1)*x + 1 <= d for k, x, d in zip(K, dilations, D)]);
}

def ConvIntegerOp : Instruction<[ConvInteger]> {
  let D = dims(1..3, 3..9);
  let K = [1..min(d, 4) for d in D];
  let group = 1..3;
  let kernel_shape = K;
  let strides = [1..3 for d in D] default repeat(1, len(D));
  let dilations = [1..2 for d in D] default repeat(1, len(D));
  let auto_pad = "NOTSET";
  let pads = vector(2*len(D), 0..2) default repeat(0, 2*len(D));
  x : [N, C*group, D...];
  w : [M*group, C, K...];
  x_zero_point : [];
  w_zero_point : {[], [M*group]};
  where all([(k - 1)*y + 1 <= d for k, y, d in zip(K, dilations, D)]);
}

def QLinearConvOp : Instruction<[QLinearConv]> {
  let D = dims(1..3, 3..9);
  let K = [1..min(d, 4) for d in D];
  let group = 1..3;
  let kernel_shape = K;
  let strides = [1..3 for d in D] default repeat(1, len(D));
  let dilations = [1..2 for d in D] default repeat(1, len(D));
  let auto_pad = "NOTSET";
  let pads = vector(2*len(D), 0..2) default repeat(0, 2*len(D));
  let T3 = T1;
  x : [N, C*group, D...];
  x_scale : [] in 0.01..0.2;
  x_zero_point : [];
  w : [M*group, C, K...];
  let Z = {[], [M*group]};
  w_scale : Z in 0.01..0.2;
  w_zero_point : Z in 0..0;
  y_scale : [] in 0.1..1.0;
  y_zero_point : [];
  B : [M*group] in -100..100;
  where all([(k - 1)*z + 1 <= d for k, z, d in zip(K, dilations, D)]);
}

def ConvTransposeOp : Instruction<[ConvTranspose]> {
  let D = dims(1..3, 1..6);
  let K = [1..3 for d in D];
  let group = 1..3;
  let kernel_shape = K;
  let strides = [1..3 for d in D] default repeat(1, len(D));
  let dilations = [1..2 for d in D] default repeat(1, len(D));
  let auto_pad = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  let full = [(d - 1)*s + (k - 1)*x + 1 for d, s, k, x in zip(D, strides, K, dilations)];
  let output_shape = [f..f + s - 1 for f, s in zip(full, strides)] if auto_pad == "NOTSET" else none;
  let padded = auto_pad == "NOTSET" and not given(output_shape);
  let pads = (vector(2*len(D), 0..1) if padded else none) default (repeat(0, 2*len(D)) if padded else none);
  let P = pads if given(pads) else repeat(0, 2*len(D));
  let output_padding = ([0..s-1 for s in strides] if not given(output_shape) and auto_pad == "NOTSET" else none) default repeat(0, len(D));
  where given(output_shape) or all([f - a - b >= 1 for f, a, b in zip(full, P[:len(D)], P[len(D):])]);
  where auto_pad == "NOTSET" or sum(output_padding) == 0;
  where auto_pad == "NOTSET" or auto_pad == "VALID" or all([f >= d*s for f, d, s in zip(full, D, strides)]);
  X : [N, C*group, D...] in -10..10;
  W : [C*group, M, K...] in -10..10;
  B : [M*group] in -10..10;
}

def DeformConvOp : Instruction<[DeformConv]> {
  let D = dims(2, 3..7);
  let K = [1..3 for d in D];
  let group = 1..2;
  let offset_group = 1..2;
  let kernel_shape = K;
  let strides = [1..2 for d in D] default [1, 1];
  let dilations = [1..2 for d in D] default [1, 1];
  let pads = vector(4, 0..1) default [0, 0, 0, 0];
  let O = [(d + a + b - (k - 1)*x - 1) / s + 1 for d, a, b, k, x, s in zip(D, pads[:2], pads[2:], K, dilations, strides)];
  where min(O) > 0;
  X : [N, C*2, D...] in -10..10;
  W : [M*group, C*2/group, K...] in -10..10;
  offset : [N, offset_group*size(K)*2, O...] in -2.0..2.0;
  B : [M*group] in -10..10;
  mask : [N, offset_group*size(K), O...] in 0.0..1.0;
}

def Pools : Instruction<[AveragePool, MaxPool, LpPool]> {
  let D = dims(1..3, 3..9);
  let K = [1..min(d, 4) for d in D];
  let kernel_shape = K required;
  let strides = [1..3 for d in D] default repeat(1, len(D));
  let dilations = ([1..2 for d in D] if has("dilations") else repeat(1, len(D))) default repeat(1, len(D));
  let auto_pad = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  let pads = ([0..k-1 for k in [K..., K...]] if auto_pad == "NOTSET" else none)
    default (repeat(0, 2*len(D)) if auto_pad == "NOTSET" else none);
  where auto_pad == "NOTSET" or max(dilations) == 1;
  let ceil_mode = {0, 1};
  let count_include_pad = {0, 1};
  let storage_order = {0, 1};
  let p = {1, 2, 3} if since >= 2 else 2.0;
  X : [N, C, D...] in -10..10;
  where all([(k - 1)*x + 1 <= d for k, x, d in zip(K, dilations, D)]);
}

def GlobalPools : Instruction<[GlobalAveragePool, GlobalMaxPool, GlobalLpPool]> {
  X : [N, C, dims(1..3)...] in -10..10;
  let p = {1, 2, 3} if since >= 2 else 2.0;
}

def MaxUnpoolOp : Instruction<[MaxUnpool]> {
  let D = dims(1..3, 1..5);
  let K = [1..3 for d in D];
  let kernel_shape = K required;
  let strides = K required;
  let O = [d*k for d, k in zip(D, K)];
  X : [1, 1, D...] in -10..10;
  let first = [x * k for x, k in zip(permutation(size(D)), repeat(size(K), size(D)))];
  I : [1, 1, D...] in {first...} distinct;
  let output_shape = [1, 1, O...];
}

def MaxRoiPoolOp : Instruction<[MaxRoiPool]> {
  let pooled_shape = vector(2, 1..3);
  let spatial_scale = {0.5, 1.0};
  let H = dim(3..9);
  let W = dim(3..9);
  X : [N, C, H, W] in -10..10;
  let rois = [[float(0..N-1), 0.0, 0.0, float(1..W), float(1..H)] for i in range(1..3)];
}

def RoiAlignOp : Instruction<[RoiAlign]> {
  let H = dim(3..9);
  let W = dim(3..9);
  X : [N, C, H, W] in -10..10;
  let n = 1..4;
  let rois = [[0.0..3.0, 0.0..3.0, 3.0..6.0, 3.0..6.0] for x in range(n)];  // x1 <= x2 and y1 <= y2: what else a region is, is not said
  batch_indices : [n] in 0..N-1;
  let mode = {"avg", "max"};
  let coordinate_transformation_mode = {"half_pixel", "output_half_pixel"};
  let output_height = 1..4;
  let output_width = 1..4;
  let sampling_ratio = 0..3;
  let spatial_scale = {0.5, 1.0, 2.0};
}

def GridSampleOp : Instruction<[GridSample]> {
  let D = dims(2..3, 2..6) if since >= 20 else dims(2, 2..6);
  let mode = {"linear", "nearest", "cubic"} if since >= 20 else {"bilinear", "nearest", "bicubic"};
  let padding_mode = {"zeros", "border", "reflection"};
  let align_corners = {0, 1};
  where len(D) == 2 or mode != "cubic";
  X : [N, C, D...] in -10..10;
  grid : [N, dims(len(D), 1..5)..., len(D)] in -1.2..1.2;
}

def Col2ImOp : Instruction<[Col2Im]> {
  let D = dims(1..2, 3..8);
  let K = [1..3 for d in D];
  let strides = [1..2 for d in D] default repeat(1, len(D));
  let dilations = [1..2 for d in D] default repeat(1, len(D));
  let pads = vector(2*len(D), 0..1) default repeat(0, 2*len(D));
  let O = [(d + a + b - (k - 1)*x - 1) / s + 1
           for d, a, b, k, x, s in zip(D, pads[:len(D)], pads[len(D):], K, dilations, strides)];
  where min(O) > 0;
  input : [N, C*size(K), size(O)] in -10..10;
  let image_shape = D;
  let block_shape = K;
}

def CausalConvWithStateOp : Instruction<[CausalConvWithState]> {
  let k = 1..4;
  let activation = {"none", "silu", "swish"};
  input : [N, C, L] in -10..10;
  weight : [C, 1, k] in -10..10;
  bias : [C] in -10..10;
  past_state : [N, C, k - 1] in -10..10;
}

// Scales are given for each axis, or sizes: never both. Of versions 11 and 12, scales and roi are there, if empty.
// No reference resizes other things than numbers.
def ResizeOp : Instruction<[Resize]> {
  let D = dims(1..2, 2..6);
  let mode = {"nearest", "linear", "cubic"} if since >= 11 else {"nearest", "linear"};
  let coordinate_transformation_mode =
    {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"} if since >= 19
    else {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"};
  let nearest_mode = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  let cubic_coeff_a = {-0.5, -0.75, 0.0, 0.5};
  let exclude_outside = {0, 1} if mode == "cubic" else 0;
  let antialias = {0, 1} if mode != "nearest" else 0;
  where mode != "cubic" or len(D) == 2;
  X : [1, C, D...] in -10..10;
  where is_float(type(X)) or is_integer(type(X));
  let by_sizes = {false, true} if has("sizes") else false;
  let some = {false, true} if has("axes") else false;
  let axes = (range(2, len(D) + 2) if some else none) required;
  let first = [] if some else [1, C];
  let keep_aspect_ratio_policy = {"stretch", "not_larger", "not_smaller"} if by_sizes else "stretch";
  where keep_aspect_ratio_policy == "stretch" or some;
  let roi = [] if has("roi") and since < 13 else none;
  let sizes = ([first..., [1..9 for d in D]...] if by_sizes else none) required;
  let scales = ([[1.0 for x in first]..., [{0.5, 1.0, 1.5, 2.0, 3.0} for d in D]...] if not by_sizes
                else [] if since == 11 else none) required;
}

def UpsampleOp : Instruction<[Upsample]> {
  let D = dims(2, 2..6);
  let mode = {"nearest", "linear"} if since >= 7 else {"nearest", "bilinear"};
  X : [N, C, D...] in -10..10;
  let scales = [1.0, 1.0, [{1.0, 2.0, 3.0} for d in D]...];
  let height_scale = scales[2];
  let width_scale = scales[3];
}

def LRNOp : Instruction<[LRN]> {
  let size = {1, 3, 5};
  let alpha = 0.0..1.0;
  let beta = -1.0..1.0;
  let bias = 0.5..2.0;
  X : [N, C, dims(2)...] in -10..10;
}
