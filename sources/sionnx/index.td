// Operators that read or write elements by their place.

def GatherOp : Instruction<[Gather]> {
  data : dims(1..4);
  let axis = axis(rank(data));
  let d = shape(data)[axis];
  indices : dims(0..3) in (-d if since >= 11 else 0)..d-1;
}

def GatherElementsOp : Instruction<[GatherElements]> {
  data : dims(1..4);
  let axis = axis(rank(data));
  let d = shape(data)[axis];
  indices : put([1..x for x in shape(data)], axis, dim()) in -d..d-1;
}

def GatherNDOp : Instruction<[GatherND]> {
  let B = dims(0..2) if has("batch_dims") else [];
  let batch_dims = len(B);
  let D = dims(1..3);
  let q = 1..len(D);
  data : [B..., D...];
  indices : [B..., dims(0..2)..., q] in -min(D[:q])..min(D[:q])-1;
}

def Scattered : Instruction<[ScatterElements, Scatter]> {
  data : dims(1..4);
  let axis = axis(rank(data));
  let d = shape(data)[axis];
  let reduction = ({"none", "add", "mul", "max", "min"} if since >= 18 else {"none", "add", "mul"}) if is_float(T) or is_integer(T) else "none";
  indices : put([1..x for x in shape(data)], axis, 1..d) in ({range(d)...} if reduction == "none" else -d..d-1) ;
  updates : shape(indices);
  where reduction != "none" or size(indices) == shape(indices)[axis];
}

def ScatterNDOp : Instruction<[ScatterND]> {
  let D = dims(1..3);
  let q = 1..len(D);
  let reduction = ({"none", "add", "mul", "max", "min"} if since >= 18 else {"none", "add", "mul"}) if is_float(T) or is_integer(T) else "none";
  data : D;
  let n = 1..D[0];
  let first = permutation(D[0]);
  let indices = [[first[i], [0..x-1 for x in D[1:q]]...] for i in range(n)];
  updates : [n, D[q:]...];
}

def CompressOp : Instruction<[Compress]> {
  input : dims(1..4);
  let axis = axis(rank(input));
  let d = shape(input)[axis] if given(axis) else size(input);
  condition : [0..d] ;
}

def OneHotOp : Instruction<[OneHot]> {
  indices : dims(1..3) in -n..n-1;
  let depth = {n, [n]} if since < 11 else {n, [n]};
  values : [2];
  let axis = (-rank(indices)-1)..rank(indices);
}

def TopKOp : Instruction<[TopK]> {
  X : dims(1..4) in -100..100;
  let axis = axis(rank(X));
  let d = shape(X)[axis];
  let k = 0..d if since >= 10 else 1..d;
  let K = [k];
  let largest = {0, 1};
  let sorted = 1;
  where d > 0;
}

def TensorScatterOp : Instruction<[TensorScatter]> {
  let mode = {"linear", "circular"};
  let P = dims(0..2);
  past_cache : [N, P..., s, D];
  let axis = -2;
  let u = 1..s;
  update : [N, P..., u, D];
  write_indices : [N] in 0..(s - u if mode == "linear" else s - 1);
}

def NonMaxSuppressionOp : Instruction<[NonMaxSuppression]> {
  boxes : [N, s, 4] in 0.0..1.0;
  scores : [N, C, s] in 0.0..1.0;
  max_output_boxes_per_class : {[], [1]} in 0..5;
  iou_threshold : {[], [1]} in 0.0..1.0;
  score_threshold : {[], [1]} in 0.0..1.0;
}

def CumulativeOp : Instruction<[CumSum, CumProd]> {
  x : dims(1..4) in -4..4;
  axis : [] in -rank(x)..rank(x)-1;
}
