"""All forms of an operator, and what one converter serves, have one name; what differs keeps its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.oracle import location
from opera.oracle.location import canonical
from opera.oracle.signature import SIGNATURE_VERSION, Signature
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome

WORDS = st.sampled_from(
    [
        *(
            "torch",
            "Tensor",
            "nn",
            "functional",
            "conv2d",
            "Conv1d",
            "add_",
            "LSTM",
            "GRUCell",
            "CastLike",
            "Cast",
            ".",
        ),
        *(
            "aten::",
            "onnx_frontend:",
            "._impl_v13",
            "@pool.cpp:12",
            "fft2",
            "std_mean",
            "native_",
            "cross_entropy",
            "Loss",
        ),
        *("_max_pool3d_with", " + ", "expanded "),
    ]
)


@given(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=6).map("".join)))
def test_a_name_that_forms_share_is_its_own(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    "forms",
    [
        ("torch.Tensor.add_", "torch.Tensor.add", "torch.add"),
        ("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"),
        ("torch.nn.LeakyReLU", "torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_"),
        ("torch.nn.Conv1d", "torch.nn.Conv3d", "torch.nn.functional.conv2d", "torch.conv1d"),
        ("torch.nn.BatchNorm2d", "torch.native_batch_norm", "torch.nn.functional.batch_norm"),
        ("torch.full_like", "torch.full"),
        ("keras.layers.Conv1D", "keras.layers.Conv3D"),
        ("keras.layers.LSTM", "keras.layers.GRU", "keras.layers.SimpleRNN"),
        ("LSTM", "GRU", "RNN"),
        ("torch.fft.hfft", "torch.fft.hfft2", "torch.fft.hfftn"),
        ("aten::fft_fft", "aten::fft_fft2", "aten::fft_fftn"),
        ("torch.std", "torch.Tensor.var", "torch.var_mean", "torch.std_mean"),
        ("aten::lstm", "aten::gru"),
        (
            "aten::avg_pool1d@avg_poolnd.cpp:30",
            "aten::avg_pool3d@avg_poolnd.cpp:30",
            "aten::avg_pool@avg_poolnd.cpp:30",
        ),
        ("aten::floor_divide_", "aten::floor_divide"),
        ("onnx_frontend:CastLike._impl_v15", "onnx_frontend:Cast._impl_v13", "expanded CastLike", "Cast", "CastLike"),
        ("fx:Importer._max_pool2d_with_indices", "fx:Importer._max_pool3d_with_indices"),
    ],
)
def test_forms_of_one_operator(forms: tuple[str, ...]) -> None:
    assert len({canonical(x) for x in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("torch.linalg.norm", "torch.norm"),
        ("torch.fft.fft", "torch.fft.ifft"),
        ("aten::conv1d@a.cpp:1", "aten::conv1d@a.cpp:2"),
        ("EyeLike", "Eye"),
        ("onnx_frontend:Resize._impl_v10", "onnx_frontend:Resize._impl_v18"),
        ("ReduceMax", "ReduceMin"),
        ("expanded Softmax", "Softmax"),
    ],
)
def test_what_differs_keeps_its_name(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "name", ["Conv", "torch.add", "onnx_frontend:Conv._impl_v11", "Split@split.cpp:35", "ai.onnx.ml::Scaler"]
)
def test_most_names_are_what_they_were(name: str) -> None:
    assert canonical(name) == name


def sign(operator: str, frontend: str = "openvino-torch", **fields: str) -> Signature:
    base = {
        "verdict": CRASH,
        "stage": "load",
        "symptom": "RuntimeError",
        "message": "the axes of slices must be sorted",
    }
    return Signature.of(frontend, operator, Outcome(**(base | fields)))


def test_in_place_forms_of_a_wrong_dtype_are_one() -> None:
    def wrong(operator: str, symptom: str = "dtype") -> Signature:
        return sign(operator, verdict=INCONSISTENT, symptom=symptom, message="", conversion_function=operator)

    assert wrong("torch.Tensor.eq_").id == wrong("torch.Tensor.logical_xor_").id
    assert wrong("torch.Tensor.eq_").id != wrong("torch.Tensor.eq").id
    assert wrong("torch.Tensor.eq_", "value").id != wrong("torch.Tensor.ne_", "value").id
    assert wrong("torch.Tensor.eq_", "value").id == wrong("torch.eq", "value").id
    assert wrong("torch.Tensor.__add__").operator != location.IN_PLACE


def test_an_apis_name_is_no_place_of_a_crash_that_says_where_it_was() -> None:
    def at(operator: str, **fields: str) -> Signature:
        return sign(operator, conversion_function=operator, **fields)

    assert at("torch.diff").id == at("torch.roll").id
    assert at("torch.diff", location="lowering.py:slice").id != at("torch.roll", location="lowering.py:cat").id
    assert at("torch.diff", message="'num_heads'").id != at("torch.roll", message="'num_heads'").id
    assert at("torch.diff", verdict=REFUSED).id == at("torch.roll", verdict=REFUSED).id
    long = "the exporter failed at some step of its work, and says so at length: " * 5
    assert at("torch.diff", message=long).id != at("torch.roll", message=long).id
    assert at("Diff").id != at("Roll").id  # the operator of a model is what its converter is told by
    assert (
        sign("torch.diff", conversion_function="aten::diff").id
        != sign("torch.roll", conversion_function="aten::roll").id
    )


def test_an_expanded_operator_and_a_shared_converter_are_told_by_the_assertion() -> None:
    tvm = "tvm-torch"
    one = sign("torch.nn.InstanceNorm1d", tvm, conversion_function="expanded InstanceNorm1d")
    assert one.id == sign("torch.nn.functional.instance_norm", tvm, conversion_function="expanded instance_norm").id
    add, bmm = (
        sign("torch.add", tvm, conversion_function=f"fx:Importer._binary_op[{x}]") for x in ("add.Tensor", "bmm")
    )
    assert add.id == bmm.id and add.conversion_function == "fx:Importer._binary_op"
    wrong = {"verdict": INCONSISTENT, "symptom": "value", "message": ""}
    add, bmm = (
        sign("torch.add", tvm, conversion_function=f"fx:Importer._binary_op[{x}]", **wrong)
        for x in ("add.Tensor", "bmm")
    )
    assert add.id != bmm.id
    one = sign("torch.nn.LPPool1d", tvm, conversion_function="expanded LPPool1d", **wrong)
    assert one.id == sign("torch.nn.functional.lp_pool2d", tvm, conversion_function="expanded lp_pool2d", **wrong).id


def test_an_id_is_that_of_the_version_that_first_had_its_fields() -> None:
    kept = Signature.of(
        "tvm-onnx", "Conv", Outcome(CRASH, "load", "ValueError", "bad rank", conversion_function="f:Conv._impl")
    )
    assert kept.id == "F586cc45d" and kept.version == SIGNATURE_VERSION


def test_a_family_is_of_one_to_three_dimensions_and_ids_do_not_know_it():
    layers = [f"keras.layers.Conv{n}DTranspose" for n in (1, 2, 3)]
    assert {location.family(x) for x in layers} == {"keras.layers.convtranspose"}
    assert len({location.canonical(x) for x in layers}) == 3
    assert location.family("torch.Tensor.add_") == "torch.add"
