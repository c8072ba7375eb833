// Sequences, optionals and control flow.

def SequenceConstructOp : Instruction<[SequenceConstruct]> {
  inputs : dims(0..3) repeated 1..4;
}

def SequenceEmptyOp : Instruction<[SequenceEmpty]> {
  let dtype = number({[item(x) for x in types("output")]...});
}

def SequenceLengthOp : Instruction<[SequenceLength]> {
  input_sequence : dims(0..3) repeated 0..4;
}

def SequenceAtOp : Instruction<[SequenceAt]> {
  let n = 1..4;
  input_sequence : dims(0..3) repeated n;
  position : [] in -n..n-1;
}

def SequenceEraseOp : Instruction<[SequenceErase]> {
  let n = 1..4;
  input_sequence : dims(0..3) repeated n;
  position : [] in -n..n-1;
}

def SequenceInsertOp : Instruction<[SequenceInsert]> {
  let n = 1..4;
  let T = item(S);
  input_sequence : dims(0..3) repeated n;
  tensor : dims(0..3);
  position : [] in -n..n;
}

def ConcatFromSequenceOp : Instruction<[ConcatFromSequence]> {
  let R = dims(1..3);
  let new_axis = {0, 1};
  let axis = (-len(R)-new_axis)..len(R)+new_axis-1;
  input_sequence : (R if new_axis == 1 else put(R, axis, dim())) repeated 1..4;
}

def SplitToSequenceOp : Instruction<[SplitToSequence]> {
  input : dims(1..3);
  let axis = axis(rank(input));
  let d = shape(input)[axis];
  let k = 1..max(1, min(3, d));
  let keepdims = {0, 1};
  let split = {1..d, [(d / k + (d % k if x == k - 1 else 0)) for x in range(k)]};
  where d > 0;
}

def SequenceMapOp : Instruction<[SequenceMap]> {
  let body = graph("map", "Identity", item(S));
  input_sequence : dims(0..3) repeated 1..3;
  additional_inputs : [] repeated 0;
  let outputs = 1;
}

def OptionalOp : Instruction<[Optional]> {
  input : dims(0..3) repeated 0..3;
  let type = (none if given(input) else type_proto(V)) required;
}

def OptionalElement : Instruction<[OptionalGetElement, OptionalHasElement]> {
  input : dims(0..3) repeated 0..3;
}

def IfOp : Instruction<[If]> {
  let S = dims(0..3);
  let t = {float32, int64, bool, string} if since >= 11 else float32;
  cond : {[], [1]};
  let then_branch = graph("branch", "then", "Identity", t, S);
  let else_branch = graph("branch", "other", "Shape" if t == int64 and len(S) == 1 and S[0] == 1 else "Identity", t, S);
  let outputs = 1;
}

// A loop ends: it has a number of steps, or a condition that is false from the start.
def LoopOp : Instruction<[Loop]> {
  let V = {float32, int64, bool, string};
  let S = dims(0..3);
  let scans = 0..2;
  let M = 0..4;
  let cond = {true, false};
  where given(M) or given(cond) and cond == false;
  let body = graph("loop", "Neg" if V == float32 else "Identity", V, S, scans);
  v_initial : S repeated 1;
  let outputs = 1 + scans;
}

def ScanOp : Instruction<[Scan]> {
  let V = {float32, int32, float64};
  let S = dims(0..2);
  let n = dim();
  let num_scan_inputs = 1;
  let body = graph("scan", {"Add", "Mul", "Sub"}, V, S);
  let axis = 0..len(S);
  let scan_input_axes = [axis] required;
  let scan_output_axes = [0..len(S)];
  let scan_input_directions = [{0, 1}];
  let scan_output_directions = [{0, 1}];
  initial_state_and_scan_inputs : (S if place == 0 else insert(S, axis, n)) in -4..4 repeated 2;
  let outputs = 2;
  where since >= 9;
}
