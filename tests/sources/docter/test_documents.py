"""What is read out of the installed libraries, and whether what is made of it can be called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opera.errors import UsageError
from opera.libraries.torch import api as torch_api
from opera.sources.docter import command, constraints, documented, files, torch_schemas
from opera.sources.docter.constraints import Api
from opera.sources.docter.documented import Dead
from opera.sources.docter.generate import Generator

torch = pytest.importorskip("torch")


def texts(api: Api, name: str) -> dict[str, list[str]]:
    return api.parameters[name].texts


def share_taken(library: str, api: Api, count: int = 60) -> float:
    target = documented.get(library)
    bound = target.bind(api)
    generator, taken = Generator(bound.api, 0), 0
    for number in range(count):
        made = generator.draw(number)
        call: Callable[[], Any] = target.prepare(bound, made.values, number)
        try:
            call()
            generator.learn(made, True)
            taken += 1
        except Exception:  # whatever the library says
            generator.learn(made, False)
    return taken / count


def torch_api_of(operator: str, place: int = 0) -> Api:
    from opera.sources.docter import torch_documents

    return torch_documents.apis(operator)[place]


def test_schemas_and_words_are_joined() -> None:
    module = torch_api_of("torch.nn.Conv2d")
    assert module.layer and module.required[-1] == "forward.input"
    assert texts(module, "groups") == {"dtype": ["int"], "ndim": ["0"], "range": ["[0,inf)"]}
    assert "[N,&in_channels,H_in,W_in]" in texts(module, "forward.input")["shape"]
    function = torch_api_of("torch.nn.functional.conv2d")
    assert texts(function, "stride")["shape"] == ["[2]"] and texts(function, "bias") == {"tensor_t": ["tensor"]}
    assert [api.required for api in (torch_api_of("torch.sum"), torch_api_of("torch.sum", 1))] == [
        ("input", "dim"),
        ("input",),
    ]


def test_schemas_that_take_outputs_or_no_tensor_are_no_way_to_call_a_method() -> None:
    for operator in ("torch.Tensor.eq", "torch.Tensor.cummax", "torch.Tensor.pow"):
        found = torch_schemas.overloads(operator)
        assert found and all(x[0].kind == "Tensor" and "values" not in {y.name for y in x} for x in found)
    assert torch_schemas.overloads("torch.Tensor.float")[0][0] == torch_schemas.Argument("input", "Tensor")


def test_a_default_is_written_alike_in_every_process() -> None:
    assert torch_api_of("torch.nn.TransformerEncoderLayer").parameters["activation"].default == "<function relu>"


def test_every_operator_of_torch_has_constraints_that_can_be_written_and_read(tmp_path: Path) -> None:
    apis = list(documented.get("torch").builtin())
    assert {api.title for api in apis} == set(torch_api.operators())
    files.write_folder(apis[::20], tmp_path)
    again, unread = files.read_folder(tmp_path)
    assert not unread and {x.file: x for x in again} == {x.file: x for x in apis[::20]}


@pytest.mark.parametrize(
    "operator", ["torch.abs", "torch.cumsum", "torch.matmul", "torch.nn.Linear", "torch.Tensor.clamp"]
)
def test_most_inputs_are_taken_by_torch(operator: str) -> None:
    assert share_taken("torch", torch_api_of(operator)) > 0.5


def test_apis_that_are_gone_are_dead_and_others_renamed() -> None:
    made = {name: constraints.parameter(name, {"tensor_t": ["tensor"]}, None, "") for name in ("self", "axis")}
    bind = documented.get("torch").bind
    bound = bind(Api("torch.softmax", "torch", ("self", "axis"), (), made))
    assert bound.operator == "torch.softmax" and set(bound.names.values()) == {"input", "dim"}
    assert bound.remarks == ("self is now input", "axis is now dim")
    assert (
        bind(
            Api("torch.nn.conv2d", "torch", ("in_channels",), (), {"in_channels": constraints.Parameter("in_channels")})
        ).operator
        == "torch.nn.Conv2d"
    )
    for title in ("torch.rfft", "torch.nowhere", "os.system", "torch.hub.load", "torch.allclose"):
        with pytest.raises(Dead):
            bind(Api(title, "torch", ("input",), (), {"input": constraints.Parameter("input")}))


def test_constraints_of_a_library_are_written_to_a_folder_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="holds other files"):
        command.write("torch", tmp_path)
    with pytest.raises(UsageError):
        command.write("numpy", tmp_path / "out")
    command.write("torch", tmp_path / "out")
    assert (tmp_path / "out" / "torch.nn.Conv2d.yaml").is_file()
    assert f"{len(torch_api.operators())} operators" in capsys.readouterr().out


def test_keras_says_what_its_layers_take() -> None:
    pytest.importorskip("keras")
    target = documented.get("keras")
    next(iter(target.builtin()))  # imports Keras in silence
    from opera.sources.docter import keras_documents

    dense = keras_documents.api("keras.layers.Dense")
    assert texts(dense, "kernel_initializer")["enum"] == ["glorot_uniform"] and "name" not in dense.parameters
    assert (
        texts(keras_documents.api("keras.layers.Conv2D"), "call.inputs")["shape"][0]
        == "[batch_size,height,width,channels]"
    )
    widened = keras_documents.widened(dense).parameters
    assert {"relu", "gelu"} <= set(widened["activation"].enum) and {"zeros", "ones"} <= set(
        widened["bias_initializer"].enum
    )
    bound = target.bind(
        Api("tf.keras.layers.MaxPool2D", "tensorflow", (), ("strides",), {"strides": constraints.Parameter("strides")})
    )
    assert bound.operator == "keras.layers.MaxPooling2D" and "call.inputs" in bound.api.required
    with pytest.raises(Dead, match="TensorFlow's own"):
        target.bind(Api("tf.abs", "tensorflow", ("x",), (), {"x": constraints.Parameter("x")}))
    assert share_taken("keras", dense, 20) > 0.5
    assert share_taken("keras", keras_documents.api("keras.ops.absolute"), 20) > 0.5
