"""Every rule fires where PyTorch's documentation gives no meaning, and nowhere else."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library  # noqa: E402
from opera.libraries.torch import undefined as torch_undefined  # noqa: E402
from opera.libraries.torch import wrap as torch_module  # noqa: E402
from opera.programs.program import Instance, Operand  # noqa: E402
from opera.programs.values import Tensor  # noqa: E402


def call(operator, *args, **kwargs):
    return torch_calls.instance(f"torch.{operator}", args, kwargs)


def undefined(instance):
    return library.undefined(instance, torch_module.run(instance).expected)


def ints(*items, dtype=torch.int64):
    return torch.tensor(items, dtype=dtype)


def floats(*items):
    return torch.tensor(items, dtype=torch.float32)


def lstm(cell, projection):
    """A call of one layer of hidden size 1, with the state of a cell of some size."""
    state, weights = (torch.ones(1, 1, 2), torch.ones(1, 1, cell)), [torch.ones(4, 1), torch.ones(4, 2), projection]
    return call("lstm", torch.ones(1, 1, 1), state, weights, False, 1, 0.0, False, False, False)


X, SQUARE, THREE, TWO = floats(3, 1, 3, 2), floats(1.5, 0.5, 0.5, 2.5).reshape(2, 2), torch.zeros(3), torch.ones(2)
POOLED, SMALL = torch.ones(1, 1, 2), ints(1, dtype=torch.int8)
PAIRS = [
    (call("bitwise_left_shift", ints(1, 1), ints(63, 64)), call("bitwise_left_shift", ints(1, 1), ints(63, 0))),
    (call("Tensor.__rshift__", ints(8), -1), call("Tensor.__rshift__", ints(8), 1)),
    (call("Tensor.__ilshift__", SMALL, 8), call("Tensor.__ilshift__", SMALL, 7)),
    (call("Tensor.__rlshift__", ints(64), 1), call("Tensor.__rlshift__", ints(3), 64)),
    (call("Tensor.to", floats(1e20), torch.int64), call("Tensor.to", floats(1e9), torch.int64)),
    (call("Tensor.int", floats(math.nan)), call("Tensor.double", floats(math.nan))),
    (call("Tensor.byte", floats(-1)), call("Tensor.byte", floats(-0.5, 255))),
    (call("Tensor.copy_", ints(0), floats(math.inf)), call("Tensor.copy_", ints(0), floats(2))),
    (call("sort", X), call("sort", X[1:])),
    (call("sort", floats(math.nan, math.nan)), call("sort", floats(math.nan, 1))),
    (call("Tensor.argsort", X), call("argsort", X, stable=True)),
    (call("sort", floats(1, 1, 2, 3).reshape(2, 2)), call("sort", floats(1, 1, 2, 3).reshape(2, 2), dim=0)),
    (call("topk", X, 2), call("topk", X[1:], 2)),
    (call("topk", X[1:], 2, sorted=False), call("topk", floats(3, 1, 1), 1)),
    (call("median", X, 0), call("median", X)),
    (call("kthvalue", torch.tensor([1.0, 1.0, 2.0]), 1), call("kthvalue", torch.tensor([1.0, 3.0, 2.0]), 1)),
    (call("scatter", THREE, 0, ints(1, 1), TWO), call("scatter", THREE, 0, ints(1, 2), TWO)),
    (call("scatter", THREE, 0, ints(1, 1), TWO), call("scatter", THREE, 0, ints(1, 1), TWO, reduce="add")),
    (call("scatter", THREE, 0, ints(1, 1), TWO), call("scatter", THREE, 0, ints(1, 1), 5.0)),
    (call("Tensor.index_copy_", THREE, 0, ints(1, 1), TWO), call("Tensor.index_copy_", THREE, 0, ints(0, 1), TWO)),
    (call("index_put", THREE, (ints(1, -2),), TWO), call("index_put", THREE, (ints(1, -1),), TWO)),
    (call("index_put", THREE, (ints(1, 1),), TWO), call("index_put", THREE, (ints(1, 1),), TWO, accumulate=True)),
    (call("Tensor.__setitem__", THREE, ints(1, 1), TWO), call("Tensor.__setitem__", THREE, ints(1, 0), TWO)),
    (call("Tensor.put_", THREE, ints(1, 1), TWO), call("Tensor.put_", THREE, ints(1, 1), TWO, True)),
    (lstm(1, torch.ones(1, 1)), lstm(1, torch.ones(2, 1))),
    (call("polar", -TWO, TWO), call("polar", TWO, TWO)),
    (call("polar", TWO, TWO * math.inf), call("polar", TWO, -TWO)),
    (call("bucketize", X, ints(1, 1)), call("bucketize", X, ints(1, 2))),
    (call("special.multigammaln", SQUARE, 2), call("special.multigammaln", SQUARE, 1)),
    (call("linalg.svd", SQUARE), call("linalg.svdvals", SQUARE)),
    (call("linalg.eigh", SQUARE), call("linalg.eigvalsh", SQUARE)),
    (call("unique", X, False), call("unique", X)),
    (
        call("nn.functional.max_unpool1d", POOLED, ints(0, 0).reshape(1, 1, 2), 2),
        call("nn.functional.max_unpool1d", POOLED, ints(0, 3).reshape(1, 1, 2), 2),
    ),
]


@pytest.mark.parametrize(("wild", "tame"), PAIRS, ids=[f"{x.operator}-{i}" for i, (x, _) in enumerate(PAIRS)])
def test_a_rule_fires_and_says_why(wild, tame):
    assert undefined(wild), "nothing is said"
    assert undefined(tame) is None


def test_an_unusual_call_is_excused_nothing():
    strange = call("sort", X)
    strange.params["dim"] = "first"
    assert library.undefined(strange, []) is None
    assert library.undefined(call("topk", X, 2), []) is None


@pytest.mark.parametrize(
    ("instance", "tags"),
    [
        (call("cat", [X, X]), {"exact"}),
        (call("nn.functional.relu_", X), {"exact"}),
        (call("Tensor.__getitem__", X, 0), {"exact"}),
        (call("sum", X), {"accumulating"}),
        (call("Tensor.__matmul__", SQUARE, SQUARE), {"accumulating"}),
        (call("exp", X), set()),
        (call("abs", X), {"exact"}),
        (call("abs", torch.complex(X, X)), set()),
        (call("scatter", THREE, 0, ints(1, 1), TWO, reduce="add"), set()),
        (call("Tensor.to", X, torch.bfloat16), {"exact"}),
        (call("Tensor.__lshift__", X, X), set()),
        (call("Tensor.__lshift__", ints(1), ints(1)), {"exact"}),
        (call("nn.functional.embedding", ints(0), SQUARE, max_norm=1.0), set()),
    ],
)
def test_what_never_rounds_and_what_adds_up_is_known(instance, tags):
    assert torch_undefined.tags(instance) == tags


def test_every_name_in_the_tables_is_an_operator():
    from opera.libraries.torch import api as torch_api

    known = {torch_undefined.plain(name) for name in torch_api.operators()}
    assert torch_undefined.EXACT | torch_undefined.ACCUMULATING | set(torch_undefined.RULES) <= known
    assert not torch_undefined.EXACT & torch_undefined.ACCUMULATING


@pytest.mark.parametrize(
    ("module", "inner", "given"),
    [
        ("LSTM", "lstm", {}),
        ("LSTM", "lstm", {"proj_size": 1}),
        ("LSTM", "lstm", {"bias": False, "num_layers": 2, "bidirectional": True, "proj_size": 1}),
        ("GRU", "gru", {"bidirectional": True}),
        ("RNN", "rnn_tanh", {"num_layers": 2}),
    ],
)
def test_weights_of_a_module_are_those_of_its_call_and_bear_their_names(module, inner, given):
    params = {"input_size": 3, "hidden_size": 2, **given}
    written = {"init": {"args": [], "kwargs": list(params)}, "call": {"args": ["input"], "kwargs": []}}
    data = Operand("input", Tensor.of(np.ones((2, 1, 3), np.float32)))
    made = Instance(
        "torch", f"torch.nn.{module}", params, (data,), (), {"kind": "module", "training": False, **written}
    )
    calls = [x for x in library.expanded(made) if x.operator == f"torch.{inner}"]
    assert calls and all(undefined(x) is None and x.params["has_biases"] is given.get("bias", True) for x in calls)
