// Quantisation: one scale, one for each element of an axis, or one for each block of an axis (since 21).

def QuantizeLinearOp : Instruction<[QuantizeLinear]> {
  x : dims(1..4) in -20.0..20.0;
  let r = rank(x);
  let kind = {"tensor", "axis", "block"} if since >= 21 else {"tensor", "axis"} if since >= 13 else "tensor";
  let axis = axis(r);
  let d = shape(x)[axis];
  let b = 1..3;
  let block_size = b if kind == "block" else 0;
  let S = [] if kind == "tensor" else [d] if kind == "axis" else put(shape(x), axis, divide_up(d, b));
  where kind != "block" or d % b == 0;
  y_scale : S in 0.25..4.0;
  y_zero_point : S in (0..0 if "float" in T3 or "int32" in T3 else 0..3);
  let saturate = {0, 1};
  let precision = 0;
  let output_dtype = 0;
  where saturate == 1 or "float8" in T3;
}

def DequantizeLinearOp : Instruction<[DequantizeLinear]> {
  x : dims(1..4);
  let r = rank(x);
  let kind = {"tensor", "axis", "block"} if since >= 21 else {"tensor", "axis"} if since >= 13 else "tensor";
  let axis = axis(r);
  let d = shape(x)[axis];
  let b = 1..3;
  let block_size = b if kind == "block" else 0;
  let S = [] if kind == "tensor" else [d] if kind == "axis" else put(shape(x), axis, divide_up(d, b));
  where kind != "block" or d % b == 0;
  x_scale : S in 0.25..4.0;
  x_zero_point : S in (0..0 if "float" in T1 or T1 == int32 else 0..1) if T1 != int32;
  let output_dtype = (number({types("y")...}) if T2 == float8_e8m0fnu else 0) required;
}

def DynamicQuantizeLinearOp : Instruction<[DynamicQuantizeLinear]> {
  x : dims(1..4) in -100.0..100.0;
}
