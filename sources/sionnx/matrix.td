// Products and normalisations. Elements lie between -10 and 10, for sums of larger ones depend on their order.

def Product : Instruction<[MatMul]> {
  let S = dims(0..3);
  let form = {"matrices", "vector by matrix", "matrix by vector", "vectors"};
  A : (broadcast(S) + [M, K] if form == "matrices" else [K] if form != "matrix by vector" else S + [M, K]) in -10..10;
  B : (broadcast(S) + [K, N] if form == "matrices" else [K] if form != "vector by matrix" else S + [K, N]) in -10..10;
}

def MatMulIntegerOp : Instruction<[MatMulInteger]> {
  let S = dims(0..2);
  A : [S..., M, K];
  B : [S..., K, N];
  a_zero_point : [];
  b_zero_point : [];
}

// No reference multiplies the small floats.
def QLinearMatMulOp : Instruction<[QLinearMatMul]> {
  let S = dims(0..2);
  let T1 = {int8, uint8};
  let T2 = T1;
  let T3 = T1;
  a : [S..., M, K];
  a_scale : [] in 0.01..0.2;
  a_zero_point : [];
  b : [S..., K, N];
  b_scale : [] in 0.01..0.2;
  b_zero_point : [];
  y_scale : [] in 0.1..1.0;
  y_zero_point : [];
}

def GemmOp : Instruction<[Gemm]> {
  let transA = {0, 1};
  let transB = {0, 1};
  let alpha = {0.0, 0.5, 1.0, -2.0};
  let beta = {0.0, 0.5, 1.0, -2.0};
  A : ([K, M] if transA == 1 else [M, K]) in -10..10;
  B : ([N, K] if transB == 1 else [K, N]) in -10..10;
  let broadcast = 1;
  C : broadcast([M, N]) in -10..10;
}

def EinsumOp : Instruction<[Einsum]> {
  let n = dim();
  let m = dim();
  let k = dim();
  let equation = {"ij,jk->ik", "ij->ji", "ii->i", "ij->", "i,j->ij", "bij,bjk->bik", "ij,ij->ij", "...ij->...ji", "ij,jk", "ij -> j"};
  let shapes = [[n, k], [k, m]] if equation == "ij,jk->ik" or equation == "ij,jk" else [[n, n]] if equation == "ii->i"
    else [[n], [m]] if equation == "i,j->ij" else [[2, n, k], [2, k, m]] if equation == "bij,bjk->bik"
    else [[n, m], [n, m]] if equation == "ij,ij->ij" else [[n, m]];
  Inputs : shapes[place] in -10..10 repeated len(shapes);
}

def DetOp : Instruction<[Det]> {
  let n = 1..4;
  X : [dims(0..2)..., n, n] in -4..4;
}

def BatchNormalizationOp : Instruction<[BatchNormalization]> {
  let training_mode = {0, 1} if since >= 14 else 0;
  let epsilon = 0.0..0.1;
  let momentum = 0.0..1.0;
  let spatial = 1;
  let is_test = 1;
  let consumed_inputs = [0, 0, 0, 1, 1] required;
  X : [dim(2..6), C, dims(0..3)...] in -10..10;
  scale : [C] in 0.1..4.0;
  B : [C] in -4..4;
  input_mean : [C] in -4..4;
  input_var : [C] in 0.1..4.0;
  mean : [C] in -4..4;
  var : [C] in 0.1..4.0;
  let outputs = 3 if since >= 14 and training_mode == 1 else 1;
}

def InstanceNormalizationOp : Instruction<[InstanceNormalization]> {
  input : [N, C, dims(1..3)...] in -10..10;
  let epsilon = 0.0..0.1;
  scale : [C] in -4..4;
  B : [C] in -4..4;
}

def GroupNormalizationOp : Instruction<[GroupNormalization]> {
  let num_groups = 1..3;
  X : [N, C*num_groups, dims(0..3)...] in -10..10;
  let epsilon = 0.0..0.1;
  let stash_type = 1;
  scale : [C*num_groups] in -4..4;
  bias : [C*num_groups] in -4..4;
}

def LayerNormalizationOp : Instruction<[LayerNormalization]> {
  X : dims(1..4) in -10..10;
  let axis = axis(rank(X));
  let epsilon = 0.0..0.1;
  let stash_type = 1;
  Scale : shape(X)[axis:] in -4..4;
  B : shape(X)[axis:] in -4..4;
}

def RMSNormalizationOp : Instruction<[RMSNormalization]> {
  let V = T;
  X : dims(1..4) in -10..10;
  let axis = axis(rank(X));
  let epsilon = 0.0..0.1;
  let stash_type = 1;
  scale : shape(X)[axis:] in -4..4;
}

// Three dimensions want the number of heads as attributes, four have it.
def AttentionOp : Instruction<[Attention]> {
  let T2 = T1;
  let U = {bool, T1};
  let flat = {false, true};
  let h = 1..3;
  let g = 1..2;
  let e = 2..4;
  let f = 2..4;
  let s = dim();
  let t = dim();
  let past = {0, 1, 3};
  let q_num_heads = h*g if flat else none required;
  let kv_num_heads = h if flat else none required;
  let is_causal = {0, 1};
  let scale = -0.5..2.0;
  let softcap = {0.0, 1.0, 10.0};
  let qk_matmul_output_mode = 0..3;
  let softmax_precision = {1, 11};
  let left_window_size = {-1, 0, 1, 2};
  let right_window_size = {-1, 0, 1, 2};
  Q : ([N, s, h*g*e] if flat else [N, h*g, s, e]) in -4..4;
  K : ([N, t, h*e] if flat else [N, h, t, e]) in -4..4;
  V : ([N, t, h*f] if flat else [N, h, t, f]) in -4..4;
  attn_mask : {[s, t + past], [1, 1, s, t + past], [N, h*g, s, t + past]} in ({0, 1} if U == bool else -4..4);
  past_key : [N, h, past, e] in -4..4 required if past > 0;
  past_value : [N, h, past, f] in -4..4 required if past > 0;
  nonpad_kv_seqlen : [N] in 1..t if past == 0;
  let outputs = {1, 4} if past > 0 else 1;
}

def LinearAttentionOp : Instruction<[LinearAttention]> {
  let S = T;
  let h = 1..2;
  let g = 1..2;
  let d = 2..4;
  let e = 2..4;
  let q_num_heads = h*g;
  let kv_num_heads = h;
  let update_rule = {"linear", "gated", "delta", "gated_delta"};
  let chunk_size = {1, 64};
  let scale = {0.0, 0.5, -0.5};
  query : [N, L, h*g*d] in -2..2;
  key : [N, L, h*d] in -2..2;
  value : [N, L, h*e] in -2..2;
  past_state : [N, h, d, e] in -2..2;
  decay : {[N, L, h*d], [N, L, h]} in -1.0..0.0 required if update_rule == "gated" or update_rule == "gated_delta";
  beta : {[N, L, h], [N, L, 1]} in 0.0..1.0 required if update_rule == "delta" or update_rule == "gated_delta";
}

def RotaryEmbeddingOp : Instruction<[RotaryEmbedding]> {
  let flat = {false, true};
  let h = 1..3;
  let half = 1..3;
  let interleaved = {0, 1};
  let num_heads = h if flat else none required;
  let rotary_embedding_dim = 0;
  let positions = 9;
  X : ([N, s, h*half*2] if flat else [N, h, s, half*2]) in -4..4;
  let by_position = {false, true};
  cos_cache : ([positions, half] if by_position else [N, s, half]) in -1.0..1.0;
  sin_cache : ([positions, half] if by_position else [N, s, half]) in -1.0..1.0;
  position_ids : [N, s] in 0..positions-1 required if by_position;
}
