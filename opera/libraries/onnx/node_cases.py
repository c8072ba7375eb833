"""Node tests as Python: case files in the form of ONNX's own (`onnx/backend/test/case/node/*.py`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from opera.errors import InvalidTest
from opera.libraries.onnx import codec
from opera.libraries.onnx import source as onnx_source
from opera.libraries.onnx import wrap as onnx_model
from opera.programs import literals
from opera.programs.literals import fold, literal
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Instance, Program
from opera.programs.values import Optional, Sequence, Value

FORM = "onnx-node-cases"

HEAD = '''"""Node tests of {operator}: `opera corpus export --as {form}` wrote this file."""

from __future__ import annotations

{standard}import {low}numpy as np

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.base import Base
from onnx.backend.test.case.node import expect
{functions}

class {name}(Base):
'''
UNPACK = """

def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()
"""
ATTRIBUTES = """

def with_attributes(node, *attributes):
    node.attribute.extend(attributes)
    return node
"""


def method(manifest: Manifest, directory: Path, program: Program, name: str) -> str:
    """Return the method that states one test. Raises InvalidTest for what `expect` cannot be told."""
    if not isinstance(program, Instance):
        raise InvalidTest("ONNX's case files hold tests of one node")
    if "body" in program.context:
        raise InvalidTest("ONNX's case files hold no expanded function: `expect` expands what they hold")
    if program.context.get("captured"):
        raise InvalidTest("ONNX's case files hold no node whose subgraph reads values from outside")
    given, expected = read_values(directory, "inputs"), read_values(directory, "expected")
    node = onnx_model.parts(program).nodes[0]
    imports = [f"helper.make_opsetid({literal(domain)}, {version})" for domain, version in _opset(program)]
    named = {"inputs": given, "outputs": expected}
    parts = ["node"]
    parts += [fold(f"{key}=[", [literals.source(x) for x in found], "]") for key, found in named.items()]
    parts += [f"name={literal(name)}", fold("opset_imports=[", imports, "]")]
    for key, found in named.items():
        if any(isinstance(x, Sequence | Optional) for x in found):
            parts.append(fold(f"{key.removesuffix('s')}_type_protos=[", [_type(x) for x in found], "]"))
    body = f"node = {onnx_source.node_source(node)}\n{fold('expect(', parts, ')')}"
    head = f"    @staticmethod\n    def export_{name.removeprefix('test_')}() -> None:\n"
    return head + "".join(f"        {line}\n" if line else "\n" for line in body.splitlines())


def module(operator: str, methods: list[str]) -> str:
    """Return the text of a case file: a class of an operator, with a method a test."""
    text = "\n".join(methods)
    needs = literals.needs(text)
    functions = (UNPACK if "unpack" in needs else "") + (ATTRIBUTES if "with_attributes(" in text else "")
    head = HEAD.format(
        operator=operator,
        form=FORM,
        standard="import base64\nimport zlib\n\n" if "unpack" in needs else "",
        low="ml_dtypes\nimport " if "ml_dtypes" in needs else "",
        functions=functions,
        name=re.sub(r"\W", "", onnx_model.split(operator)[1]),
    )
    return head + text


def _opset(program: Instance) -> list[tuple[str, int]]:
    return sorted(onnx_model.opset(program).items())


def _type(value: Value) -> str:
    """Return the source of a value's type, as the model of the test declares it."""
    proto: Any = codec.type_proto(value)
    return onnx_source.type_source(proto)
