// Operators that reduce along axes. Sums are of numbers between -10 and 10, for what overflows depends on their order.

def Reduce : Instruction<[ReduceL1, ReduceL2, ReduceMean, ReduceSum, ReduceSumSquare]> {
  data : dims(0..5) in -10..10;
  let axes = axes(rank(data));
  let keepdims = {0, 1};
  let noop_with_empty_axes = {0, 1};
  where since >= 13 or not given(axes) or len(axes) > 0;
}

def ReduceExtreme : Instruction<[ReduceMax, ReduceMin]> {
  data : dims(0..5);
  let axes = axes(rank(data));
  let keepdims = {0, 1};
  let noop_with_empty_axes = {0, 1};
  where since >= 13 or not given(axes) or len(axes) > 0;
}

def ReduceProducts : Instruction<[ReduceProd]> {
  data : dims(0..4) in -2..2;
  let axes = axes(rank(data));
  let keepdims = {0, 1};
  let noop_with_empty_axes = {0, 1};
  where since >= 13 or not given(axes) or len(axes) > 0;
}

def ReduceLogarithm : Instruction<[ReduceLogSum, ReduceLogSumExp]> {
  data : dims(0..5) in 1..10;
  let axes = axes(rank(data));
  let keepdims = {0, 1};
  let noop_with_empty_axes = {0, 1};
  where since >= 13 or not given(axes) or len(axes) > 0;
}

def Extreme : Instruction<[ArgMax, ArgMin]> {
  data : dims(1..5);
  let axis = axis(rank(data));
  let keepdims = {0, 1};
  let select_last_index = {0, 1};
  where shape(data)[axis] > 0;
}

def SoftmaxLike : Instruction<[Softmax, LogSoftmax, Hardmax]> {
  input : dims(1..5) in -100..100;
  let axis = axis(rank(input));
}

def LpNormalizationOp : Instruction<[LpNormalization]> {
  input : dims(1..4) in -10..10;
  let axis = axis(rank(input));
  let p = {1, 2};
}

// Its function body adds a constant of float32, so that strict inference refuses every other type.
def MeanVarianceNormalizationOp : Instruction<[MeanVarianceNormalization]> {
  let T = float32;
  X : dims(4) in -10..10;
  let axes = subset(range(4), 1..4) if since >= 13 else [0, 2, 3] required;
}
