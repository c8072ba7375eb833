// Losses, and random operators: mostly what is certain, for nothing else has one right answer.

def NegativeLogLikelihoodLossOp : Instruction<[NegativeLogLikelihoodLoss]> {
  let D = dims(0..2);
  let C = dim(2..9);
  let reduction = {"none", "sum", "mean"};
  let ignore_index = {-1, 0..C-1};
  input : [N, C, D...] in -10.0..0.0;
  target : [N, D...] in 0..C-1;
  weight : [C] in 0.1..2.0;
}

def SoftmaxCrossEntropyLossOp : Instruction<[SoftmaxCrossEntropyLoss]> {
  let D = dims(0..2);
  let C = dim(2..9);
  let reduction = {"none", "sum", "mean"};
  let ignore_index = {-1, 0..C-1};
  scores : [N, C, D...] in -10.0..10.0;
  labels : [N, D...] in 0..C-1;
  weights : [C] in 0.1..2.0;
}

// Nothing is dropped where this is no training, or the ratio is 0.
def DropoutOp : Instruction<[Dropout]> {
  data : dims(0..5);
  let training_mode = {false, true};
  let training = since >= 12 and training_mode == true;
  let is_test = 1 required;
  let seed = {0, 1, 7, -3};
  let ratio = 0.0 if training else {0.0, 0.25, 0.75};
}

// A probability of 0 or 1.
def BernoulliOp : Instruction<[Bernoulli]> {
  input : dims(0..4) in {0, 1};
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({types("output")...});
}

// One class.
def MultinomialOp : Instruction<[Multinomial]> {
  input : [N, 1] in -2.0..2.0;
  let sample_size = 1..5;
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({int32, int64});
}

// No deviation from the mean, and some.
// Some draw a thousand numbers and more: of a few a wrong tail is not to be told.
def RandomNormalOp : Instruction<[RandomNormal]> {
  let shape = [dims(0..2)..., {dim(), 1000}];
  let scale = {0.0, 0.5, 1.0};
  let mean = {0.0, 1.0, -2.5};
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({types("output")...});
}

def RandomNormalLikeOp : Instruction<[RandomNormalLike]> {
  input : [dims(0..2)..., {dim(), 1000}];
  let scale = {0.0, 0.5, 1.0};
  let mean = {0.0, 1.0, -2.5};
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({types("output")...}) required;
}

// One number only between low and high, and many.
def RandomUniformOp : Instruction<[RandomUniform]> {
  let shape = [dims(0..2)..., {dim(), 1000}];
  let low = {1.0, 0.0, -2.0};
  let high = {low, low + 3.0};
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({types("output")...});
}

def RandomUniformLikeOp : Instruction<[RandomUniformLike]> {
  input : [dims(0..2)..., {dim(), 1000}];
  let low = {1.0, 0.0, -2.0};
  let high = {low, low + 3.0};
  let seed = {1.0, 0.0, 7.0};
  let dtype = number({types("output")...}) required;
}
