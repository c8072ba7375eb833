// Operators that map each element, and those that broadcast two inputs or more.

def Unary : Instruction<[Abs, Ceil, Floor, Neg, Sign, Identity, Relu, Sigmoid, Tanh, Erf, Exp, Sin, Cos, Tan, Asinh, Atan,
    Sinh, Cosh, Softplus, Softsign, Not, BitwiseNot, IsNaN, Round, HardSwish, Mish, Log, Sqrt, IsInf, Elu, Selu, LeakyRelu,
    ThresholdedRelu, HardSigmoid, Celu, Shrink, Swish, Size]>;

def Reciprocals : Instruction<[Reciprocal], [], [], [], [nonzero]>;

def Bounded : Instruction<[Acos, Asin, Atanh]> {
  input : dims(0..6) in -1.0..1.0;
}

def FromOne : Instruction<[Acosh]> {
  input : dims(0..6) in 1.0..1000.0;
}

def GeluOp : Instruction<[Gelu]> {
  let approximate = {"none", "tanh"};
}

def Binary : Instruction<[Add, Sub, Mul, And, Or, Xor, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, BitwiseAnd,
    BitwiseOr, BitwiseXor], [], [], [], [broadcasting]>;

def Variadic : Instruction<[Max, Min, Mean, Sum], [], [], [], [broadcasting]>;

def Divided : Instruction<[Div], [], [], [], [broadcasting, nonzero]>;

def ModOp : Instruction<[Mod], [], [], [], [broadcasting, nonzero]> {
  let fmod = 1 if is_float(T) else {0, 1};
  where fmod == 1 or not is_float(T);
}

// Whole numbers have no negative powers, and negative numbers none that are broken.
def PowOp : Instruction<[Pow]> {
  let S = dims(0..5);
  X : broadcast(S) in 0.5..10.0;
  Y : broadcast(S) in (-2.0..2.0 if is_float(T) else 0..3);
}

def BitShiftOp : Instruction<[BitShift]> {
  let direction = {"LEFT", "RIGHT"};
  let S = dims(0..5);
  X : broadcast(S);
  Y : broadcast(S) in 0..7;
}

def PReluOp : Instruction<[PRelu]> {
  X : dims(1..5);
  where since >= 7 or rank(X) >= 2;
  slope : (broadcast(shape(X)) if since >= 7 else [shape(X)[1]]);
}

def WhereOp : Instruction<[Where]> {
  let S = dims(0..5);
  condition : broadcast(S);
  X : broadcast(S);
  Y : broadcast(S);
}

def ClipOp : Instruction<[Clip]> {
  input : dims(0..5);
  let min = (-5 if has("min") and is_signed(T) else 0)..2;
  let max = 2..100;
}

def SwiGLUOp : Instruction<[SwiGLU]> {
  A : dims(1..4);
  B : shape(A);
}

def BitCastOp : Instruction<[BitCast]> {
  let to = number({[x for x in types("output") if bits(x) == bits(T1)]...});
}

// A string is cast to a number where it is written as one. A float that a type of whole numbers cannot hold has no right result.
def CastOp : Instruction<[Cast]> {
  let target = {types("output")...};
  let to = number(target) if since >= 6 else enumerated(target);
  let saturate = {0, 1};
  let round_mode = {"up", "down", "nearest"};
  input : dims(0..4) in ({"0", "1", "3.5", "-7", "1e3", "100"} if T1 == string and is_float(target)
                        else {"0", "1"} if T1 == string
                        else max(-100, lowest(target))..min(100, highest(target)) if is_integer(target) or is_float(target)
                        else -100..100);
  where saturate == 1 or "float8" in target;
  where round_mode == "up" or target == "float8_e8m0fnu";
  where T1 != string or target != bool;
}

def CastLikeOp : Instruction<[CastLike]> {
  let saturate = {0, 1};
  let round_mode = {"up", "down", "nearest"};
  input : dims(0..4) in ({"0", "1"} if T1 == string
                        else max(-100, lowest(T2))..min(100, highest(T2)) if is_integer(T2) or is_float(T2)
                        else -100..100);
  target_type : dims(0..2);
  where saturate == 1 or "float8" in T2;
  where round_mode == "up" or T2 == "float8_e8m0fnu";
  where T1 != string or T2 != bool;
}
