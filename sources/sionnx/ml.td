// Classical machine learning (the domain ai.onnx.ml): N samples of F features.

def ArrayFeatureExtractorOp : Instruction<[ai.onnx.ml::ArrayFeatureExtractor]> {
  X : [dims(0..2)..., F];
  Y : [1, dim()] in 0..F-1;
}

def BinarizerOp : Instruction<[ai.onnx.ml::Binarizer]> {
  X : dims(1..3);
  let threshold = -1.0..1.0;
}

def CategoryMapperOp : Instruction<[ai.onnx.ml::CategoryMapper]> {
  X : dims(1..3) in ({"cat", "dog", "cow", "bird"} if T1 == string else {0, 1, 2, 5});
  let cats_int64s = [0, 1, 2] required;
  let cats_strings = ["cat", "dog", "cow"] required;
  let default_int64 = {-1, 0, 1, 7, -5};
  let default_string = {"_Unused", "other"};
}

def FeatureVectorizerOp : Instruction<[ai.onnx.ml::FeatureVectorizer]> {
  let n = 1..3;
  let inputdimensions = [1..4 for x in range(n)] required;
  X : [N, inputdimensions[place]] repeated n;
}

def ImputerOp : Instruction<[ai.onnx.ml::Imputer]> {
  X : [N, F] in {-1, 0, 1, 2};
  let whole = is_integer(T);
  let imputed_value_floats = ({[5.0], repeat(2.0, F)} if not whole else none) required;
  let replaced_value_float = {0.0, 1.0} if not whole else 0.0;
  let imputed_value_int64s = ({[5], repeat(2, F)} if whole else none) required;
  let replaced_value_int64 = {0, 1} if whole else 0;
}

def LabelEncoderOp : Instruction<[ai.onnx.ml::LabelEncoder]> {
  let to = {"string", "int64", "float"};
  X : dims(1..3) in ({"a", "b", "c"} if T1 == string else {1, 2, 3});
  let classes_strings = ["a", "b", "c"] required;
  let keys_strings = (["a", "b"] if T1 == string else none) required;
  let keys_int64s = ([1, 2] if T1 == int64 else none) required;
  let keys_floats = ([1.0, 2.0] if T1 == float32 else none) required;
  let values_strings = (["x", "y"] if to == "string" else none) required;
  let values_int64s = ([7, 8] if to == "int64" else none) required;
  let values_floats = ([0.5, 1.5] if to == "float" else none) required;
  let keys_tensor = none;
  let values_tensor = none;
  let default_tensor = none;
  let default_string = {"_Unused", "none"};
  let default_int64 = {-1, 0, 1, 9, -5};
  let default_float = {0.0, 2.5, -1.5};
  let T1 = {string, int64, float32};
}

def LinearClassifierOp : Instruction<[ai.onnx.ml::LinearClassifier]> {
  let E = 2..4;
  X : [N, F] in -4..4;
  let coefficients = vector(E*F, -2.0..2.0);
  let intercepts = vector(E, -1.0..1.0);
  let by_name = {false, true};
  let classlabels_ints = (range(E) if not by_name else none) required;
  let classlabels_strings = (["a", "b", "c", "d"][:E] if by_name else none) required;
  let multi_class = {0, 1};
  let post_transform = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};
}

// Other types than float32 have no reference.
def LinearRegressorOp : Instruction<[ai.onnx.ml::LinearRegressor]> {
  let T = float32;
  let targets = 1..3;
  X : [N, F] in -4..4;
  let coefficients = vector(targets*F, -2.0..2.0) required;
  let intercepts = vector(targets, -1.0..1.0);
  let post_transform = {"NONE", "LOGISTIC", "SOFTMAX"};
}

def NormalizerOp : Instruction<[ai.onnx.ml::Normalizer]> {
  X : [N, F] in 1..10;
  let norm = {"MAX", "L1", "L2"};
}

def OneHotEncoderOp : Instruction<[ai.onnx.ml::OneHotEncoder]> {
  X : dims(1..2) in ({"a", "b", "c"} if T == string else {0, 1, 2});
  let cats_int64s = ([0, 1, 2] if T != string else none) required;
  let cats_strings = (["a", "b", "c"] if T == string else none) required;
  let zeros = {0, 1};
}

def ScalerOp : Instruction<[ai.onnx.ml::Scaler]> {
  X : [N, F];
  let offset = {[0.5], repeat(1.5, F)} required;
  let scale = {[0.5], repeat(2.0, F)} required;
  where len(offset) == len(scale);
}

def SVMRegressorOp : Instruction<[ai.onnx.ml::SVMRegressor]> {
  let s = 1..4;
  X : [N, F] in -2..2;
  let T = float32;
  let kernel_type = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  let kernel_params = [0.5, 0.25, 2.0] required;
  let n_supports = s required;
  let one_class = {0, 1};
  let coefficients = vector(s, -1.0..1.0) required;
  let support_vectors = vector(s*F, -1.0..1.0) required;
  let rho = [0.25] required;
  let post_transform = "NONE";
}

def SVMClassifierOp : Instruction<[ai.onnx.ml::SVMClassifier]> {
  X : [N, F] in -2..2;
  let kernel_type = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  let kernel_params = [0.5, 0.25, 2.0] required;
  let vectors_per_class = [2, 1] required;
  let coefficients = vector(3, -1.0..1.0) required;
  let support_vectors = vector(3*F, -1.0..1.0) required;
  let rho = [0.25] required;
  let by_name = {false, true};
  let classlabels_ints = ([0, 1] if not by_name else none) required;
  let classlabels_strings = (["a", "b"] if by_name else none) required;
  let prob_a = none;
  let prob_b = none;
  let post_transform = {"NONE", "LOGISTIC", "SOFTMAX"};
}

// A tree of one split and two leaves for each output.
def TreeEnsembleOp : Instruction<[ai.onnx.ml::TreeEnsemble]> {
  let T = {float32, float64};
  let n = 1..3;
  X : [N, F] in -2..2;
  let aggregate_function = {0, 1, 2, 3};
  let post_transform = 0;
  let n_targets = n required;
  let tree_roots = range(n);
  let nodes_featureids = [0..F-1 for x in range(n)];
  let nodes_modes = constant(uint8, [0..5 for x in range(n)]);
  let nodes_splits = constant(T, [-1.0..1.0 for x in range(n)]);
  let nodes_truenodeids = [2*x for x in range(n)];
  let nodes_trueleafs = repeat(1, n);
  let nodes_falsenodeids = [2*x + 1 for x in range(n)];
  let nodes_falseleafs = repeat(1, n);
  let nodes_missing_value_tracks_true = [{0, 1} for x in range(n)];
  let nodes_hitrates = none;
  let membership_values = none;
  let leaf_targetids = join([[x, x] for x in range(n)]);
  let leaf_weights = constant(T, [-2.0..2.0 for x in range(2*n)]);
}

// One tree of one split, its leaves for the same output.
def TreeEnsembleRegressorOp : Instruction<[ai.onnx.ml::TreeEnsembleRegressor]> {
  let T = float32;
  X : [N, F] in -2..2;
  let n_targets = 1 required;
  let aggregate_function = {"SUM", "AVERAGE", "MIN", "MAX"};
  let post_transform = {"NONE", "LOGISTIC"};
  let base_values = [0.5];
  let nodes_treeids = [0, 0, 0] required;
  let nodes_nodeids = [0, 1, 2] required;
  let nodes_featureids = [0..F-1, 0, 0] required;
  let nodes_modes = [{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}, "LEAF", "LEAF"] required;
  let nodes_values = [-1.0..1.0, 0.0, 0.0] required;
  let nodes_truenodeids = [1, 0, 0] required;
  let nodes_falsenodeids = [2, 0, 0] required;
  let target_treeids = [0, 0] required;
  let target_nodeids = [1, 2] required;
  let target_ids = [0, 0] required;
  let target_weights = vector(2, -2.0..2.0) required;
}

def TreeEnsembleClassifierOp : Instruction<[ai.onnx.ml::TreeEnsembleClassifier]> {
  let T1 = {float32, float64, int32, int64};
  X : [N, F] in -2..2;
  let post_transform = {"NONE", "LOGISTIC", "SOFTMAX"};
  let by_name = {false, true};
  let classlabels_int64s = ([0, 1, 2] if not by_name else none) required;
  let classlabels_strings = (["a", "b", "c"] if by_name else none) required;
  let nodes_treeids = [0, 0, 0] required;
  let nodes_nodeids = [0, 1, 2] required;
  let nodes_featureids = [0..F-1, 0, 0] required;
  let nodes_modes = [{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}, "LEAF", "LEAF"] required;
  let nodes_values = [-1.0..1.0, 0.0, 0.0] required;
  let nodes_truenodeids = [1, 0, 0] required;
  let nodes_falsenodeids = [2, 0, 0] required;
  let class_treeids = [0, 0, 0] required;
  let class_nodeids = [1, 1, 2] required;
  let class_ids = [0, 1, 2] required;
  let class_weights = vector(3, 0.0..2.0) required;
}
