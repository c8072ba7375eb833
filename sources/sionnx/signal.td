// Signal processing.

def Window : Instruction<[BlackmanWindow, HammingWindow, HannWindow]> {
  size : [] in 2..33;
  let output_datatype = number({types("output")...});
  let periodic = {0, 1};
}

def MelWeightMatrixOp : Instruction<[MelWeightMatrix]> {
  num_mel_bins : [] in 1..8;
  dft_length : [] in {16, 32, 64};
  sample_rate : [] in {8000, 16000};
  lower_edge_hertz : [] in 0..100;
  upper_edge_hertz : [] in 2000..4000;
  let T1 = {int32, int64};
  let T2 = {float32, float64};
  let output_datatype = number({float32, float64});
}

// Some are long: that an angle of 2*pi*k*n/N is computed in float32 is lost in the rounding of ten numbers.
// Of a real signal (last dimension 1) one side of the spectrum may be asked for; of a complex one (2) never.
def DFTOp : Instruction<[DFT]> {
  let c = {1, 2};
  let S = dims(0..1, 2..9);
  let n = {2..9, 48..64};
  input : [dim(), S..., n, c] in -10..10;
  let r = rank(input);
  let inverse = {0, 1};
  let onesided = {0, 1} if c == 1 and inverse == 0 else 0;
  let axis = 1..r-2;
  dft_length : [] in {1..9, 48..64};
}

def STFTOp : Instruction<[STFT]> {
  let f = {2..8, 32..48};
  let L = dim(8..33) if f <= 8 else dim(48..64);
  signal : [N, L, 1] in -10..10;
  let frame_step = 1..4;
  let onesided = {0, 1};
  window : [f] in 0.0..1.0;
  let frame_length = f required;
}
