// Operators that move elements, or tell of a shape.

def Flattened : Instruction<[Flatten]> {
  input : dims(1..5);
  let axis = (-rank(input) if since >= 11 else 0)..rank(input);
}

def TransposeOp : Instruction<[Transpose]> {
  data : dims(0..6);
  let perm = permutation(rank(data)) default reversed(range(rank(data)));
}

def ReshapeOp : Instruction<[Reshape]> {
  data : dims(0..5);
  let S = shape(data);
  let allowzero = {0, 1} default 0;
  let shape = {reversed(S), [size(S)], [-1], [S..., 1], [1, S...], [-1, S...], repeat(0, len(S)), [0, -1]} required;
  where has("shape") and (0 not in shape or (since >= 5 and allowzero == 0) and len(S) > 0);
  where -1 not in shape or size(S) > 0;
  where since >= 5 or -1 not in shape or len(S) > 0;
}

def ShapeOp : Instruction<[Shape]> {
  data : dims(0..6);
  let r = rank(data);
  let start = -r-1..r+1;
  let end = -r-1..r+1;
}

def SqueezeOp : Instruction<[Squeeze]> {
  let r = 1..5;
  let axes = axes(r, 1..r);
  let ones = [x % r for x in axes] if given(axes) else {range(r), []};
  data : [(1 if x in ones else dim()) for x in range(r)];
}

def UnsqueezeOp : Instruction<[Unsqueeze]> {
  data : dims(0..4);
  let axes = axes(rank(data) + n, n) required;
  where n > 0;
}

def Concatenated : Instruction<[Concat]> {
  let S = dims(1..5);
  let axis = axis(len(S)) required;
  inputs : put(S, axis, dim()) repeated 1..4;
}

def SplitOp : Instruction<[Split]> {
  input : dims(1..4);
  let axis = axis(rank(input)) default 0;
  let d = shape(input)[axis];
  let k = 1..max(1, min(4, d));
  let even = d % k == 0;
  let num_outputs = k if has("num_outputs") and divide_up(d, k) * (k - 1) < d else none;
  let split = [(d / k + (d % k if x == k - 1 else 0)) for x in range(k)];
  where d > 0 and (given(split) or even or given(num_outputs)) and (since < 18 or given(split) != given(num_outputs));
  let outputs = k;
}

def SliceOp : Instruction<[Slice]> {
  data : dims(1..5);
  let r = rank(data);
  let axes = axes(r, 1..r) default range(r);
  let D = [shape(data)[x] for x in axes];
  let steps = [{1, 2, 3, -1, -2} for d in D] if has("steps") else repeat(1, len(D)) default repeat(1, len(D));
  let starts = [{-d-1..d+1, 0} for d in D] required;
  let ends = [{-d-1..d+1, d, 2147483647} for d in D] required;
  where since >= 10 or all([x >= 0 for x in starts]);
}

def PadOp : Instruction<[Pad]> {
  let mode = {"constant", "reflect", "edge", "wrap"} if since >= 19 else {"constant", "reflect", "edge"};
  data : dims(1..4);
  let r = rank(data);
  let axes = (axes(r, 1..r) if has("axes") else range(r)) default range(r);
  let D = [shape(data)[x] for x in axes];
  let most = [(3 if mode == "constant" or mode == "edge" else min(3, d - 1)) for d in D];
  let least = -1 if mode == "constant" else 0;
  let pads = [(max(least, 1 - d))..m for d, m in [zip(D, most)..., zip(D, most)...]] required;
  where all([d + a + b > 0 for d, a, b in zip(D, pads[:len(D)], pads[len(D):])]);
  let paddings = pads required;
  constant_value : [] if mode == "constant";
  let value = -2.0..2.0;
}

def ExpandOp : Instruction<[Expand]> {
  let S = dims(0..5);
  input : broadcast(S);
  let shape = broadcast(S);
}

def TileOp : Instruction<[Tile]> {
  input : dims(1..4);
  let repeats = [1..3 for d in shape(input)] required;
  let tiles = 1..3;
  let axis = 0..rank(input)-1;
  where since >= 6;
}

def DepthToSpaceOp : Instruction<[DepthToSpace]> {
  let blocksize = 1..4;
  let mode = {"DCR", "CRD"};
  input : [N, C*blocksize*blocksize, dim(), dim()];
}

def SpaceToDepthOp : Instruction<[SpaceToDepth]> {
  let blocksize = 1..4;
  let mode = {"DCR", "CRD"};
  input : [N, C, dim(1..5)*blocksize, dim(1..5)*blocksize];
}

def CenterCropPadOp : Instruction<[CenterCropPad]> {
  input_data : dims(1..4);
  let axes = axes(rank(input_data), 1..rank(input_data)) default range(rank(input_data));
  let shape = [1..9 for x in axes];
}

def ConstantOfShapeOp : Instruction<[ConstantOfShape]> {
  let input = dims(0..4);
  let value = constant({types("output")...}, [{0, 1, 5}]);
}

def ConstantOp : Instruction<[Constant]> {
  let kind = {"value", "value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings"}
             if since >= 12 else "value";
  let S = dims(0..4);
  let t = {types("output")...};
  let value = tensor(t, S) if kind == "value" else none required;
  let value_int = -100..100 if kind == "value_int" else none required;
  let value_ints = vector(0..4, -100..100) if kind == "value_ints" else none required;
  let value_float = -10.0..10.0 if kind == "value_float" else none required;
  let value_floats = vector(0..4, -10.0..10.0) if kind == "value_floats" else none required;
  let value_string = {"", "text", "é"} if kind == "value_string" else none required;
  let value_strings = vector(0..4, {"", "text", "é"}) if kind == "value_strings" else none required;
}

def EyeLikeOp : Instruction<[EyeLike]> {
  let k = -5..5;
  let dtype = number({types("output")...});
}

def TriluOp : Instruction<[Trilu]> {
  input : dims(2..5);
  let upper = {0, 1};
  k : [] in -5..5;
}

def ReverseSequenceOp : Instruction<[ReverseSequence]> {
  input : [S, N, dims(0..2)...];
  let time_axis = {0, 1};
  let batch_axis = {0, 1};
  where time_axis + batch_axis == 1;
  sequence_lens : [shape(input)[batch_axis]] in 1..shape(input)[time_axis];
}

def RangeOp : Instruction<[Range]> {
  start : [] in 0..5;
  limit : [] in 0..20;
  delta : [] in ({-2, -1, 1, 2, 3} if not is_float(T) else {-1.5, -1.0, 0.5, 1.0, 3.0});
  let stash_type = {1, 11};
}

def AffineGridOp : Instruction<[AffineGrid]> {
  let D = dims(2..3);
  let size = [N, C, D...];
  theta : [N, len(D), len(D) + 1] in -2.0..2.0;
}

def UniqueOp : Instruction<[Unique]> {
  X : dims(1..4) in ({-1, 0, 1, 2} if T != string else {"a", "b", "é"});
  let axis = axis(rank(X));
}

def NonZeroOp : Instruction<[NonZero]> {
  X : dims(0..5) in ({0, 1} if T != string else {"", "a"});
}
