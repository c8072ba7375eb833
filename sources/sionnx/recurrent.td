// Recurrent networks: S steps of N sequences, I inputs, H hidden units, d directions.

def RecurrentOp : Instruction<[RNN]> {
  let direction = {"forward", "reverse", "bidirectional"};
  let d = 2 if direction == "bidirectional" else 1;
  let layout = {0, 1} if has("layout") else 0;
  let H = 1..4;
  let S = 1..5;
  let hidden_size = H;
  let activations = vector(d, {"Tanh", "Relu", "Sigmoid"}) default repeat("Tanh", d);
  let clip = 0.5..4.0;
  let activation_alpha = none;
  let activation_beta = none;
  let output_sequence = 1;
  X : ([N, S, I] if layout == 1 else [S, N, I]) in -2..2;
  W : [d, H, I] in -1..1;
  R : [d, H, H] in -1..1;
  B : [d, 2*H] in -1..1;
  sequence_lens : [N] in 1..S;
  initial_h : ([N, d, H] if layout == 1 else [d, N, H]) in -1..1;
}

def GRUOp : Instruction<[GRU]> {
  let direction = {"forward", "reverse", "bidirectional"};
  let d = 2 if direction == "bidirectional" else 1;
  let layout = {0, 1} if has("layout") else 0;
  let H = 1..4;
  let S = 1..5;
  let hidden_size = H;
  let activations = vector(2*d, {"Sigmoid", "Tanh", "Relu"});
  let clip = 0.5..4.0;
  let linear_before_reset = {0, 1};
  let activation_alpha = none;
  let activation_beta = none;
  let output_sequence = 1;
  X : ([N, S, I] if layout == 1 else [S, N, I]) in -2..2;
  W : [d, 3*H, I] in -1..1;
  R : [d, 3*H, H] in -1..1;
  B : [d, 6*H] in -1..1;
  sequence_lens : [N] in 1..S;
  initial_h : ([N, d, H] if layout == 1 else [d, N, H]) in -1..1;
}

def LSTMOp : Instruction<[LSTM]> {
  let direction = {"forward", "reverse", "bidirectional"};
  let d = 2 if direction == "bidirectional" else 1;
  let layout = {0, 1} if has("layout") else 0;
  let H = 1..4;
  let S = 1..5;
  let hidden_size = H;
  let activations = vector(3*d, {"Sigmoid", "Tanh", "Relu"});
  let clip = 0.5..4.0;
  let input_forget = {0, 1};
  let activation_alpha = none;
  let activation_beta = none;
  let output_sequence = 1;
  X : ([N, S, I] if layout == 1 else [S, N, I]) in -2..2;
  W : [d, 4*H, I] in -1..1;
  R : [d, 4*H, H] in -1..1;
  B : [d, 8*H] in -1..1;
  sequence_lens : [N] in 1..S;
  initial_h : ([N, d, H] if layout == 1 else [d, N, H]) in -1..1;
  initial_c : ([N, d, H] if layout == 1 else [d, N, H]) in -1..1;
  P : [d, 3*H] in -1..1;
}
