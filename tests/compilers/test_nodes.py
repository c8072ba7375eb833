"""Operators that an importer made, each by itself: what they mean, who is wrong, and who dies; of real OpenVINO and TVM."""

from typing import Any

import numpy as np
import openvino
import openvino.opset16 as ops
import pytest

from opera.compilers.openvino import nodes, operators
from opera.compilers.openvino.interpreter import NotEvaluated
from opera.compilers.shared.packing import Faulty, Refusal

INTS = np.array([1, 0, 2, 1], np.int64)
MEANT = {
    "CumSum": lambda x, a, b: ops.cum_sum(x, np.int64(1), exclusive=a, reverse=b),
    "DepthToSpace": lambda x, a, b: ops.depth_to_space(
        ops.reshape(x, np.array([1, 8, 1, 3]), False), "blocks_first" if a else "depth_first", 2
    ),
    "Divide": lambda x, a, b: ops.divide(ops.convert(ops.abs(ops.multiply(x, np.float32(5))), "i32"), np.int32(3)),
    "Einsum": lambda x, a, b: ops.einsum([x, x], "ij,kj->ik"),
    "Elu": lambda x, a, b: ops.elu(x, 0.7),
    "Erf": lambda x, a, b: ops.erf(x),
    "ErfInv": lambda x, a, b: ops.erfinv(ops.multiply(x, np.float32(0.3))) if hasattr(ops, "erfinv") else ops.erf(x),
    "Gather": lambda x, a, b: ops.gather(x, INTS, np.int64(a)),
    "GatherElements": lambda x, a, b: ops.gather_elements(x, np.array([[1, 0, 2], [3, 2, 1]]), 0),
    "Gelu": lambda x, a, b: ops.gelu(x, "tanh" if a else "erf"),
    "HSwish": lambda x, a, b: ops.hswish(x),
    "HardSigmoid": lambda x, a, b: ops.hard_sigmoid(x, np.float32(0.3), np.float32(0.4)),
    "Identity": lambda x, a, b: ops.identity(x),
    "LRN": lambda x, a, b: ops.lrn(
        ops.reshape(x, np.array([1, 2, 4, 3]), False), np.array([2, 3] if a else [1]), 0.5, 0.75, 2.0, 3 if b else 1
    ),
    "LogSoftmax": lambda x, a, b: ops.log_softmax(x, int(a)),
    "NonZero": lambda x, a, b: ops.non_zero(ops.relu(x)),
    "OneHot": lambda x, a, b: ops.one_hot(
        ops.constant(INTS), ops.constant(np.int64(2)), ops.constant(np.float32(3)), ops.constant(np.float32(a)), -b
    ),
    "Pad": lambda x, a, b: ops.pad(
        x, np.array([1, 0]), np.array([0, 2]), ("reflect" if a else "symmetric") if b else ("edge" if a else "constant"),
        np.float32(7),
    ),
    "ReduceL1": lambda x, a, b: ops.reduce_l1(x, np.array([0]), a),
    "ReduceL2": lambda x, a, b: ops.reduce_l2(x, np.array([0, 1]), a),
    "Roll": lambda x, a, b: ops.roll(x, np.array([1, -2]), np.array([0, 1])),
    "ScatterElementsUpdate": lambda x, a, b: ops.scatter_elements_update(
        x, np.array([[1, 0, 2], [3, 2, 1]]), np.arange(6, dtype=np.float32).reshape(2, 3), np.int64(0)
    ),
    "Selu": lambda x, a, b: ops.selu(x, np.float32(1.6), np.float32(1.1)),
    "Slice": lambda x, a, b: ops.slice(
        x, np.array([-1, 0]), np.array([-100, 2]), np.array([-2, 1]), np.array([0, 1])
    ),
    "SoftPlus": lambda x, a, b: ops.softplus(x),
    "SoftSign": lambda x, a, b: ops.softsign(x),
    "Softmax": lambda x, a, b: ops.softmax(x, int(a)),
    "SpaceToDepth": lambda x, a, b: ops.space_to_depth(
        ops.reshape(x, np.array([1, 1, 4, 6]), False), "blocks_first" if a else "depth_first", 2
    ),
    "Split": lambda x, a, b: ops.split(x, np.int64(0), 4).output(2),
    "SquaredDifference": lambda x, a, b: ops.squared_difference(x, np.float32(2)),
    "StridedSlice": lambda x, a, b: ops.strided_slice(
        x, np.array([1, 0]), np.array([8, 2]), np.array([2, 1]), [0, int(a)], [int(b), 0], [0, 0], [0, int(a)], [0, 0]
    ),
    "Swish": lambda x, a, b: ops.swish(x, np.float32(1.5)),
    "Tile": lambda x, a, b: ops.tile(x, np.array([2, 1, 3] if a else [2])),
    "VariadicSplit": lambda x, a, b: ops.variadic_split(x, np.int64(0), np.array([1, -1, 2])).output(1),
}  # fmt: skip


def tensor(array: Any) -> openvino.Tensor:
    return openvino.Tensor(np.ascontiguousarray(array).reshape(np.shape(array)))


def built(make: Any, array: Any) -> tuple[nodes.Nodes, dict[str, Any]]:
    x = ops.parameter(list(np.shape(array)), tensor(array).element_type, name="x")
    return nodes.Nodes(openvino.Model([make(x)], [x])), {"x": tensor(array)}


def test_all_that_is_said_to_be_known_is_tried() -> None:
    assert sorted(MEANT) == sorted(operators.MEANINGS)


@pytest.mark.parametrize("name", MEANT)
@pytest.mark.parametrize(("a", "b"), [(False, False), (True, False), (False, True), (True, True)])
def test_numpys_meaning_is_that_of_the_cpu_plugin(name: str, a: bool, b: bool) -> None:
    x = np.linspace(-2.5, 2.4, 24, dtype=np.float32).reshape(8, 3)
    made, fed = built(lambda p: MEANT[name](p, a, b), x)
    np.testing.assert_allclose(made.mixed(fed)[0].data, made.each(fed)[0].data, rtol=1e-4, atol=1e-5)
    with pytest.raises(Refusal, match="each operator gives by itself what numpy does"):
        made.check(fed)


def single(kind: str, x: Any) -> tuple[nodes.Nodes, dict[str, Any]]:
    made = {
        "LRN": lambda p: ops.lrn(p, np.array([1]), 1e-4, 0.75, 0.8, 1),
        "DepthToSpace": lambda p: ops.depth_to_space(p, "blocks_first", 1),
        "NonZero": ops.non_zero,
    }
    return built(made[kind], x)


def test_an_operator_that_is_wrong_by_itself_is_named() -> None:
    made, fed = single("LRN", np.ones((1, 1, 1, 1), np.float32))
    with pytest.raises(Faulty, match=r"LRN .*bias=0.8.* gives 1000, not 1.18207"):  # 0.8 is cut to 0
        made.check(fed)
    assert made.mixed(fed)[0].data.item() == pytest.approx(1.18207, rel=1e-5)
    assert made.each(fed)[0].data.item() == pytest.approx(1000)


def test_what_looks_at_no_element_is_known_of_strings() -> None:
    """The plugin gives empty ones, and spoils its memory."""
    texts = np.array(list("abcdefgh")).reshape(1, 8, 1, 1)
    made, fed = single("DepthToSpace", texts)
    assert (nodes.array(made.mixed(fed)[0]) == texts).all()


def test_of_what_is_not_documented_nobody_is_wrong() -> None:
    made, fed = single("NonZero", np.float32(1))
    with pytest.raises(NotEvaluated, match="none of its operators"):
        made.mixed(fed)
    with pytest.raises(Refusal, match="each operator gives"):
        made.check(fed)


def relax_module(build: Any, *arrays: Any) -> Any:
    from tvm import relax

    given = [relax.Var(f"x{k}", relax.TensorType(x.shape, str(x.dtype))) for k, x in enumerate(arrays)]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        builder.emit_func_output(builder.emit(build(relax, *given)))
    return builder.get()


ROWS = np.array([[1.5, -2.5], [3.0, 4.5]], np.float32)
RELAX = {
    "concat": lambda r, x: r.op.concat([x, x], 0),
    "erf": lambda r, x: r.op.erf(x),
    "gather_elements": lambda r, x: r.op.gather_elements(x, r.const(np.array([[1, 0]])), 0),
    "gather_nd": lambda r, x: r.op.gather_nd(x, r.const(np.array([[1, 0], [0, 1]]), "int64")),
    "nn.gelu": lambda r, x: r.op.nn.gelu(x),
    "nn.leakyrelu": lambda r, x: r.op.nn.leakyrelu(x, 0.3),
    "nn.pad": lambda r, x: r.op.nn.pad(x, [1, 0, 0, 2], pad_value=7.0),
    "nn.silu": lambda r, x: r.op.nn.silu(x),
    "nonzero": lambda r, x: r.op.nonzero(x),
    "one_hot": lambda r, x: r.op.one_hot(r.const(np.array([1, 0])), r.prim_value(3), r.prim_value(-1), 4, 0),
    "repeat": lambda r, x: r.op.repeat(x, 2, 1),
    "round": lambda r, x: r.op.round(x),
    "scatter_elements": lambda r, x: r.op.scatter_elements(x, r.const(np.array([[0, 1]])), r.const(ROWS[:1]), 0),
    "scatter_nd": lambda r, x: r.op.scatter_nd(x, r.const(np.array([[1]])), r.const(ROWS[:1])),
    "sort": lambda r, x: r.op.sort(x, 0, True),
    "split": lambda r, x: r.op.split(x, 2, 1),
    "stack": lambda r, x: r.op.stack([x, x], 1),
    "strided_slice": lambda r, x: r.op.strided_slice(x, [0], [1], [-100], [-1]),
    "take": lambda r, x: r.op.take(x, r.const(np.array([1, 0])), 1),
    "tril": lambda r, x: r.op.tril(x, -1),
    "triu": lambda r, x: r.op.triu(x, 1),
}


def each(module: Any, *arrays: Any, **how: bool) -> list[Any]:
    from opera.compilers.tvm.nodes import Each

    return ran(Each(module, **how), *arrays)


def ran(made: Any, *arrays: Any) -> list[Any]:
    import tvm

    made.set_input("main", *(tvm.runtime.tensor(x) for x in arrays))
    made.invoke_stateful("main")
    found = made.get_outputs("main")
    return [x.numpy() for x in (found if isinstance(found, list) else [found])]


@pytest.mark.parametrize("name", RELAX)
def test_numpys_meaning_is_that_of_relax(name: str) -> None:
    from opera.compilers.tvm.interpreter import NotKnown

    module = relax_module(RELAX[name], ROWS)
    for want, got in zip(each(module, ROWS), each(module, ROWS, mixed=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(Refusal, match="each operator gives") as told:
        each(module, ROWS, check=True)
    assert not isinstance(told.value, NotKnown)


def test_all_of_relax_that_is_said_to_be_known_is_tried() -> None:
    from opera.compilers.tvm import operators as known

    assert sorted(set(RELAX) - {"concat"}) == sorted(known.MEANINGS)


def test_an_operator_of_relax_that_is_wrong_or_fails_by_itself_is_named() -> None:
    x, at = np.zeros((2, 2, 2), np.float32), np.array([[[0], [0]], [[1], [1]]])
    module = relax_module(lambda r, x: r.op.scatter_elements(x, r.const(at), r.const(np.float32(at + 1)), 0), x)
    with pytest.raises(Faulty, match=r"relax\.scatter_elements gives"):
        each(module, x, check=True)
    numbers = np.array([0, 1], np.uint8)
    with pytest.raises(Exception, match=r"relax\.sign by itself: "):
        each(relax_module(lambda r, x: r.op.sign(x), numbers), numbers)
    assert each(relax_module(lambda r, x: r.op.sign(x), numbers), numbers, mixed=True)[0].tolist() == [0, 1]


def test_what_tvm_does_not_check_is_no_fault_of_its_operators() -> None:
    """A negative index, which the importer should have made another, is written out of bounds."""
    module = relax_module(lambda r, x: r.op.scatter_nd(x, r.const(np.array([[-1]])), r.const(ROWS[:1])), ROWS)
    with pytest.raises(Refusal, match="negative index"):
        each(module, ROWS)


FROM_END = {
    "gather_elements": (lambda r, x, i: r.op.gather_elements(x, r.const(i), 1), np.array([[-1], [0]])),
    "gather_nd": (lambda r, x, i: r.op.gather_nd(x, r.const(i, "int64")), np.array([[-1, 0], [0, -2]])),
    "scatter_elements": (lambda r, x, i: r.op.scatter_elements(x, r.const(i), r.const(ROWS[:1]), 0), np.array([[0, -1]])),
    "scatter_nd": (lambda r, x, i: r.op.scatter_nd(x, r.const(i), r.const(ROWS[:1])), np.array([[-1]])),
    "take": (lambda r, x, i: r.op.take(x, r.const(i), 0), np.array([-1, 0])),
    "take, flat": (lambda r, x, i: r.op.take(r.op.reshape(x, [4]), r.const(i)), np.array([-3])),
}  # fmt: skip


@pytest.mark.parametrize("name", FROM_END)
def test_an_index_that_counts_from_the_end_is_counted_from_the_front(name: str) -> None:
    """The same call of indices from the front is what it means; of a call that has these there is nothing to count."""
    from opera.compilers.tvm.nodes import FromFront

    build, indices = FROM_END[name]
    size = 4 if name == "take, flat" else 2
    plain = relax_module(lambda r, x: build(r, x, indices % size), ROWS)
    [found] = ran(FromFront(relax_module(lambda r, x: build(r, x, indices), ROWS)), ROWS)
    np.testing.assert_array_equal(found, each(plain, ROWS)[0])
    with pytest.raises(Refusal, match="no operator is given an index"):
        ran(FromFront(plain), ROWS)
