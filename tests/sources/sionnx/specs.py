"""Small specifications of ours, in the published form and in opera's own."""

from __future__ import annotations

from pathlib import Path

PUBLISHED = {
    "onnx_instr.td": """
class Property;
def broadcasting : Property;
class Type<string name>;
def f32 : Type<"float">;
""",
    "onnx_add.td": """
include "onnx_instr.td"
def AddOp : Instruction<[op_add], [], [IOType<0, [f32, i32, f64]>, IOType<1, [f32, i32, f64]>],
    [IOType<0, [f32, i32, f64]>], [broadcasting]>;
""",
    "onnx_clip.td": """
def ClipOp : Instruction<[op_clip], [Attr<"max", [f32], "", ["0.0"], ["9.0"]>, Attr<"min", [f32], "", ["-9.0"], ["0.0"]>],
    [IOType<0, [f32]>], [IOType<0, [f32]>]>;
""",
    "onnx_softmax.td": """
def SoftmaxOp : Instruction<[op_softmax], [Attr<"axis", [i32], "1", ["0"], ["2"]>],
    [IOType<0, [f32], 3, 4, 1, 1>], [IOType<0, [f32]>]>;
""",
    "add.algorithm": "def Add_compute(x_0, x_1):\n    return x_0 + x_1\n",
}
"""Files of a checkout of ours, in the form of the published ones."""
OWN = {
    "some.td": """
def ReluOp : Instruction<[Relu]>;
def GatherOp : Instruction<[Gather]> {
  data : dims(1..3);
  let axis = axis(rank(data));
  indices : dims(0..2) in -shape(data)[axis]..shape(data)[axis]-1;
}
""",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder
