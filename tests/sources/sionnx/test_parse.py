"""The specification language: what is read, and what errors say."""

from __future__ import annotations

import pytest

from opera.errors import SourceError
from opera.sources.sionnx import command, skeleton
from opera.sources.sionnx.parse import parse
from opera.sources.sionnx.spec import Attribute, Let, Operand, Shape, Where

PUBLISHED = """
/* A comment
   of two lines. */
include "onnx_instr.td"

class ValueType<int size, string name, int vec=0> {
  int size_ = size;
  list<ValueType> others;
}
def f32 : ValueType<32, "float32">;
def str : ValueType<-1, "str"> {
  let is_string_ = 1;
}
class Target;

def PoolOp : Instruction<[op_pool],
                         [Attr<"pads", [i32_v2, i32_v4], "", ["0"], ["10"]>,
                          Attr<"auto_pad", [str], "NOTSET", ["NOTSET,SAME_UPPER, VALID"]>,
                          Attr<"dtype", [i32], "?", ["1", "9"], ["7","13"]>,
                          Attr<"value", [tensor]>],
                         [IOType<0, [f32, f16, ui8], 3, 5>,
                          IOType<1, [i64], 0, 3, 0, 1, ["0"], ["?"], 1>],
                         [IOType<-1, [i1, str, complex64]>],
                         [broadcasting, nonzero]>;
"""


def test_the_published_form():
    [spec] = parse(PUBLISHED, "pool.td")
    assert (spec.name, spec.operator, spec.domain, spec.line) == ("PoolOp", "Pool", "", 16)
    assert spec.attributes == (
        Attribute(name="pads", types=("int32_v2", "int32_v4"), minimum=(0,), maximum=(10,)),
        Attribute(name="auto_pad", types=("string",), default="NOTSET", choices=("NOTSET", "SAME_UPPER", "VALID")),
        Attribute(name="dtype", types=("int32",), dependent=True, minimum=(1, 9), maximum=(7, 13)),
        Attribute(name="value", types=("tensor",)),
    )
    first, second = spec.inputs
    assert first == Operand(index=0, types=("float32", "float16", "uint8"), min_rank=3, max_rank=5)
    assert (second.normal, second.axis_bound, second.optional) == (False, True, True)
    assert (second.minimum, second.maximum) == ((0,), ("?",))
    [output] = spec.outputs
    assert output.variadic and output.types == ("bool", "string", "complex64")
    assert spec.properties == ("broadcasting", "nonzero")


def test_a_body_and_several_operators_at_once():
    specs = parse(
        """
        def Some : Instruction<[Relu, ai.onnx.ml::Scaler]> {
          let D = dims(1..3);          // a symbol
          let axis = axis(len(D)) default 0 required;
          X : [N, D...] in -1.0..1.0;
          B : [N] in {0, 1} repeated 2 required distinct if axis >= 0 and not since < 11;
          where all([x > 0 for x in D if x != 1]);
        }
        """,
        "some.td",
    )
    assert [x.signature for x in specs] == ["Relu", "ai.onnx.ml::Scaler"]
    assert specs[0].body == specs[1].body
    first, second, third, fourth, fifth = specs[0].body
    assert isinstance(first, Let) and first.name == "D" and not first.required and first.default is None
    assert isinstance(second, Let) and second.required and second.default is not None
    assert isinstance(third, Shape) and third.values is not None and third.condition is None
    assert isinstance(fourth, Shape) and fourth.required and fourth.distinct and fourth.repeated and fourth.condition
    assert isinstance(fifth, Where) and fifth.line == 7


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("def A : Instruction<[Relu]>", 1, "; or {"),
        ("def A : Instruction<[Relu]> {\n  let x = ;\n}", 2, "a name"),
        ("def A : Instruction<[Relu]> {\n\n  X : [N, ;\n}", 3, "a name"),
        ("def A : Instruction<[Relu]> { let x = 3 @ 4; }", 1, ";"),
        ("\ndef A : Instruction<[Relu], [Attr<1, [f32]>]>;", 2, "a string"),
        ('\ndef A : Instruction<[Relu], [Attr<"a">]>;', 2, "2 to 5: name, types"),
        ('def A : Instruction<[Relu], [Attr<"a", [f32], "x">]>;', 1, "a number in quotes"),
        ("def A : Instruction<[Relu], [], [IOType<0, [f33]>]>;", 1, "did you mean f32"),
        ("def A : Instruction<[Relu], [], [IOType<0, [f32], 3, 2>]>;", 1, "a minimum that the maximum reaches"),
        ("def A : Instruction<[Relu], [], [], [], [broadcast]>;", 1, "did you mean broadcasting"),
        ("def A : Instruction<[]>;", 1, "Instruction<[Relu]>"),
        ("def A : Instruction<[Relu], Attr>;", 1, "a list of Attr"),
    ],
)
def test_an_error_names_file_and_line_and_what_was_expected(text: str, line: int, expected: str):
    with pytest.raises(SourceError) as found:
        parse(text, "bad.td")
    assert found.value.what.startswith(f"bad.td:{line}: ")
    assert expected in found.value.cause


def test_a_skeleton_is_read_back_as_it_was_written():
    for operator, domain in [("Conv", ""), ("SequenceAt", ""), ("Loop", ""), ("Resize", ""), ("Scaler", "ai.onnx.ml")]:
        for since in skeleton.versions(operator, domain):
            before = skeleton.skeleton(operator, since, domain)
            [after] = parse(command.text(before, "onnx"), "x.td")
            assert (after.operator, after.domain) == (operator, domain)
            assert [(x.name, x.types, x.default) for x in after.attributes] == [
                (x.name, x.types, x.default) for x in before.attributes
            ]
            for ours, theirs in zip(after.inputs + after.outputs, before.inputs + before.outputs, strict=True):
                assert (ours.types, ours.optional, ours.variadic) == (theirs.types, theirs.optional, theirs.variadic)
                assert (ours.min_rank, ours.max_rank) == (theirs.min_rank, theirs.max_rank)


def test_a_skeleton_knows_ranks_and_types_of_the_schema():
    lstm = skeleton.skeleton("LSTM", 22)
    assert (lstm.inputs[0].min_rank, lstm.inputs[0].max_rank) == (3, 3)
    assert lstm.inputs[0].variable == lstm.inputs[1].variable == "T"
    assert lstm.inputs[3].optional and not lstm.inputs[0].optional
    cast = skeleton.skeleton("Cast", 25)
    assert {"int4", "uint4", "float8_e4m3fn", "bfloat16", "float4_e2m1fn"} <= set(cast.inputs[0].types)
    assert next(x for x in cast.attributes if x.name == "to").required


def test_the_command_writes_a_file_for_each_operator(tmp_path):
    command.write(tmp_path / "out")
    files = {x.name for x in (tmp_path / "out").iterdir()}
    assert len(files) == len(skeleton.operators()) and {"Conv.td", "ai.onnx.ml.Scaler.td"} <= files
    assert parse((tmp_path / "out" / "Gather.td").read_text(), "Gather.td")[0].inputs[1].types == ("int32", "int64")
