"""Draws of random operators are judged by what is declared of them."""

import msgspec
import numpy as np
import pytest

from opera import libraries, resources
from opera.oracle import declared, draws, laws, randomness, screens
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor

RUNS = 65


def call(library, operator, inputs=None, **params):
    held = {name: Tensor.of(np.asarray(x)) for name, x in (inputs or {}).items()}
    operands = tuple(Operand(name, x) for name, x in held.items())
    return Instance(library, operator, params, operands, ("y",), {"opset": {"": 22}} if library == "onnx" else {})


def why(program, draw, runs=RUNS):
    generator = np.random.default_rng(5)
    made = [draw(generator) for _ in range(runs)]
    each = [x if isinstance(x, tuple) else (x,) for x in made]
    found = draws.broken(program, [[Tensor.of(np.asarray(y)) for y in x] for x in each])
    return "" if found is None else found.why


X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
EMPTY = {"input": np.zeros((3, 4), np.float32)}
P = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)


def dropped(generator, p=0.25, shape=X.shape):
    mask = generator.random(shape) >= p
    return (X * np.broadcast_to(mask, X.shape) / np.float32(1 - p)).astype(np.float32), mask


TORCH = "torch.Tensor."
RIGHT = [
    (
        call("onnx", "RandomUniformLike", EMPTY, low=-2.0, high=3.0),
        lambda g: g.uniform(-2, 3, (3, 4)).astype(np.float32),
    ),
    (call("onnx", "RandomNormalLike", EMPTY, mean=1.0), lambda g: g.normal(1, 1, (3, 4)).astype(np.float16)),
    (call("onnx", "Bernoulli", {"input": P}), lambda g: (g.random((3, 4)) < P).astype(np.float32)),
    (call("onnx", "Multinomial", {"input": np.log(P)}), lambda g: np.int32([g.choice(4, 9, p=x / x.sum()) for x in P])),
    (call("onnx", "Dropout", {"data": X, "ratio": np.float32(0.25)}), dropped),
    (call("torch", "torch.rand_like", EMPTY), lambda g: g.random((3, 4), np.float32)),
    (call("torch", f"{TORCH}log_normal_", EMPTY, mean=0, std=0.25), lambda g: g.lognormal(0, 0.25, (3, 4))),
    (call("torch", f"{TORCH}exponential_", EMPTY, lambd=2), lambda g: g.exponential(0.5, (3, 4))),
    (call("torch", f"{TORCH}cauchy_", EMPTY, median=3, sigma=2), lambda g: 3 + 2 * g.standard_cauchy((3, 4))),
    (call("torch", f"{TORCH}geometric_", EMPTY, p=0.2), lambda g: g.geometric(0.2, (3, 4)).astype(np.float32)),
    (call("torch", "torch.randint_like", EMPTY, arg1=10), lambda g: g.integers(0, 10, (3, 4))),
    (call("torch", "torch.randint_like", EMPTY, arg1=-3, arg2=2), lambda g: g.integers(-3, 2, (3, 4))),
    (
        call("torch", "torch.multinomial", {"input": P[0]}, num_samples=3),
        lambda g: g.choice(4, 3, False, P[0] / P[0].sum()),
    ),
    (
        call("torch", "torch.nn.functional.dropout2d", {"input": X}, p=0.25),
        lambda g: dropped(g, shape=(3, 1))[0],
    ),
    (
        call("torch", "torch.rrelu", {"input": -X}, training=True),
        lambda g: -X * g.uniform(1 / 8, 1 / 3, X.shape).astype("f"),
    ),
    (call("keras", "keras.layers.GaussianNoise", {"inputs": X}, stddev=0.5), lambda g: X + g.normal(0, 0.5, X.shape)),
    (call("keras", "keras.layers.RandomCrop", {"data": X}, height=1), lambda g: X[g.integers(3)][None]),
]


@pytest.mark.parametrize(("program", "draw"), RIGHT, ids=[x.operator for x, _ in RIGHT])
def test_what_is_drawn_as_documented_is_right(program, draw):
    assert why(program, draw) == "" and why(program, draw, 1) == ""


def boxed(u):
    """Box and Muller's method, given one number twice: of mean 0 nearly, and never below -1.208."""
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * u)


WRONG = [
    (call("onnx", "RandomUniformLike", EMPTY), lambda g: g.uniform(0, 1.01, (3, 4)), "the documentation lets it draw 0 to 1"),
    (call("onnx", "RandomUniformLike", EMPTY), lambda g: g.uniform(0, 0.5, (3, 4)), "never above 0.51, as 49 %"),
    (call("onnx", "RandomNormalLike", EMPTY), lambda g: g.normal(0, 2, (3, 4)), "a standard deviation of about 2, not 1;"),
    (call("onnx", "RandomNormalLike", EMPTY), lambda g: g.normal(1, 1, (3, 4)), "has a mean of about 1, not 0;"),
    (call("onnx", "RandomNormalLike", EMPTY), lambda g: boxed(g.random((3, 4))), "never below -1.3, as 9.7 %"),
    (call("onnx", "RandomNormalLike", EMPTY), lambda g: g.normal(0, 1, (3, 4)) * np.inf, "draw finite numbers"),
    (call("onnx", "Bernoulli", {"input": P}), lambda g: (g.random((3, 4)) > P) * 1.0, "not in 10 %; documented: 1 with"),
    (call("onnx", "Bernoulli", {"input": P}), lambda g: g.random((3, 4)), "whole numbers 0 to 1"),
    (call("onnx", "Multinomial", {"input": np.log(P)}), lambda g: g.integers(0, 4, (3, 9)), "in about 25 % of the"),
    (call("onnx", "Multinomial", {"input": np.log(P)}), lambda g: g.integers(1, 5, (3, 9)), "draw whole numbers 0 to 3"),
    (call("onnx", "Dropout", {"data": X, "ratio": np.float32(0.25)}), lambda g: dropped(g)[0] * 0.75, "over 1 - p"),
    (
        call("onnx", "Dropout", {"data": X, "ratio": np.float32(0.25)}),
        lambda g: (dropped(g)[0], dropped(g)[1]),
        "the mask says",
    ),
    (call("torch", "torch.rand_like", EMPTY), lambda g: np.round(g.random((3, 4), np.float32), 1), "holds 1, which is not"),
    (call("torch", "torch.randint_like", EMPTY, arg1=10), lambda g: g.integers(-1, 10, (3, 4)), "holds numbers below 0"),
    (call("torch", "torch.randint_like", EMPTY, arg1=10), lambda g: g.integers(0, 11, (3, 4)), "holds numbers above 9"),
    (call("torch", "torch.multinomial", {"input": P[0]}), lambda g: g.choice(4, 3), "an index twice"),
    (call("torch", "torch.multinomial", {"input": np.float32([0, 1])}), lambda g: np.int64([0]), "has no weight"),
    (call("torch", "torch.rrelu", {"input": -X}), lambda g: -X * np.float32(11 / 48), "is always within 0.22 and 0.23, as"),
    (call("torch", "torch.rrelu", {"input": X}), lambda g: X * 2, "does not stay"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "draw", "says"), WRONG)
def test_what_contradicts_the_documentation_is_told(program, draw, says):
    assert says in why(program, draw)


MEANS = np.linspace(-4, 7, 12, dtype=np.float16).reshape(3, 4)


def of_one_number(generator):
    """Box and Muller's transform, with one number for both: never below -1.21."""
    u = generator.random((3, 4))
    return (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * u) * 2.7 + MEANS).astype(np.float16)


def test_numbers_of_which_each_has_a_mean_of_its_own_are_judged_together():
    """Of twelve means each is drawn 65 times: too few for any of them."""
    program = call("torch", "torch.normal", {"mean": MEANS}, std=2.7)
    told = why(program, of_one_number)
    assert told.startswith(
        "output 0: about 77 % of the numbers are in the lowest 65 % of a normal distribution, each of"
    )
    assert not why(program, lambda g: g.normal(MEANS, 2.7).astype(np.float16))
    many = np.linspace(-4, 7, 5000, dtype=np.float32)
    of_many = call("torch", "torch.normal", {"mean": many}, std=1.0)
    assert not why(of_many, lambda g: g.normal(many, 1).astype(np.float32), 2)
    assert why(of_many, lambda g: g.normal(many, 2).astype(np.float32), 2), "too many means to look at each"
    spread = np.where(np.arange(12).reshape(3, 4) % 2, np.float16(2.7), np.float16(0))
    program = call("torch", "torch.normal", {"mean": MEANS, "std": spread})
    assert not why(program, lambda g: g.normal(MEANS, spread).astype(np.float16)), (
        "half of them leave nothing to chance"
    )


@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.75])
def test_one_element_that_is_always_dropped_is_seen(ratio):
    program = call("onnx", "Dropout", {"data": X, "ratio": np.float32(ratio)})

    def first_never(generator):
        y, mask = dropped(generator, ratio)
        y[0, 0], mask[0, 0] = 0, False
        return y, mask

    assert "output 0[0, 0] is the same in every run of a compiled model, others are not" in why(program, first_never)
    assert not why(program, lambda g: dropped(g, ratio))


def test_an_element_that_chance_leaves_as_it_was_is_not_told_where_all_are_drawn_wrongly():
    """ONNX Runtime's Bernoulli draws 1 - p, as the reference evaluator does: of p = 0.96 it mostly gave no 1 in 65 runs."""
    p = np.array([0.55, 0.72, 0.6, 0.42, 0.89, 0.96], dtype=np.float32)

    def others(generator):
        drawn = (generator.random(6) > p).astype(np.float32)
        drawn[5] = 0
        return drawn

    told = why(call("onnx", "Bernoulli", {"input": p}), others)
    assert "is 1 in about" in told and "same in every run" not in told


def test_false_alarms_are_as_rare_as_stated(monkeypatch):
    """At one in twenty the bound tells of 200 right programs at most a twentieth; it is conservative."""
    monkeypatch.setattr(draws, "CHANCE", 0.05)
    program, generator = call("onnx", "Bernoulli", {"input": P}), np.random.default_rng(11)
    told = 0
    for _ in range(200):
        runs = [[Tensor.of((generator.random((3, 4)) < P).astype(np.float32))] for _ in range(16)]
        told += draws.broken(program, runs) is not None
    assert told <= 10


def test_false_alarms_of_numbers_judged_together_are_as_rare(monkeypatch):
    monkeypatch.setattr(draws, "CHANCE", 0.05)
    program, generator = call("torch", "torch.normal", {"mean": MEANS}, std=2.7), np.random.default_rng(12)
    runs = ([[Tensor.of(generator.normal(MEANS, 2.7).astype(np.float16))] for _ in range(16)] for _ in range(200))
    assert sum(draws.broken(program, x) is not None for x in runs) <= 10


def test_an_overflow_that_the_dtype_makes_is_no_infinity_of_the_law():
    program = call("torch", f"{TORCH}cauchy_", EMPTY, median=0, sigma=10000)
    held = np.float16([[1, 2, 3, np.inf]] * 3)
    assert "finite" not in why(program, lambda g: held, 1)
    assert "finite" in why(program, lambda g: held.astype(np.float32), 1)


def test_what_is_not_declared_or_not_known_is_not_judged():
    for program in (
        call("onnx", "Exp", {"input": X}),
        call("torch", f"{TORCH}random_", EMPTY, from_=3),
        call("torch", f"{TORCH}geometric_", EMPTY),
        call("keras", "keras.layers.Dropout", {"inputs": X}, rate=0.5, noise_shape=[1]),
    ):  # fmt: skip
        assert why(program, lambda g: X * 1000) == ""


@pytest.mark.parametrize("library", ["onnx", "torch", "keras"])
def test_declarations_name_laws_with_all_their_parameters(library):
    assert library in libraries.registered()
    for draw in resources.declaration("instrumentation", library)["draws"]:
        law = draw["law"]
        wanted = {"dropout": {"p"}, "categorical": {"weights"}, "chosen": set()}.get(law)
        wanted = set(laws.LAWS[law].parameters) if wanted is None else wanted
        assert set(draw.get("parameters", ())) == wanted, draw


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_what_is_chosen_may_be_no_number(odd):
    flip = call("keras", "keras.layers.RandomFlip", {"data": np.float32([[1, odd, 3]])})
    assert draws.broken(flip, [[Tensor.of(np.float32([[3, odd, 1]]))]]) is None
    assert draws.broken(flip, [[Tensor.of(np.float32([[3, odd, 2]]))]]) is not None


@pytest.mark.parametrize(("drawn", "kind"), [(0, "range"), (2.5, ""), (13, "range"), (3.0000001, None)])
def test_what_is_chosen_of_an_input_is_among_its_numbers(drawn, kind):
    """XLA resizes the whole of a slice whose length it does not know: RandomCrop returns 0 and means of two pixels."""
    crop = call("keras", "keras.layers.RandomCrop", {"data": X}, height=1)
    found = draws.broken(crop, [[Tensor.of(np.float32([[1, 2, 3, drawn]]))]])
    assert (found.kind if found else None) == kind
    assert found is None or found.why.endswith("which is no number of its input")
    assert draws.legal(crop) == "numbers of its input"


def test_the_rest_of_memory_is_told_without_its_numbers():
    odd = call("onnx", "RandomUniformLike", EMPTY)
    held = draws.broken(odd, [values(np.full((3, 4), -4e15, np.float32))])
    assert held.why == "output 0 holds numbers far outside of what it may draw; the documentation lets it draw 0 to 1"
    assert draws.broken(odd, [values(np.full((3, 4), 1.5, np.float32))]).why.startswith(
        "output 0 holds numbers above 1;"
    )


# ---------------------------------------------------------------------- what runs show together


def values(*arrays):
    return [Tensor.of(np.asarray(x)) for x in arrays]


def test_runs_are_read_as_a_worker_keeps_them():
    held = values(1, 2, 3, 4, 5, 6)
    found = randomness.runs(held, 2)
    assert (found.anew, found.same) == (held[:2], (held[2:4], held[4:]))
    assert randomness.runs(held, 4) == randomness.runs([], 1) == randomness.NONE


@pytest.mark.parametrize(("other", "told"), [(0, "is the same in"), (2, "is 0 in")])
def test_a_single_0_that_may_be_drawn_is_not_told_for_it_is_another_in_the_next_model(other: int, told: str) -> None:
    drawn = [values([x]) for x in (1, other, 1, 1, other, 1, other, 1, 1)]
    found = randomness.repeating(drawn, values([0]), (values([0]),) * 64)
    assert found is not None and told in found.why


def test_three_elements_that_never_change_are_a_finding():
    drawn = [values([x, 1, 2]) for x in (0, 1, 0, 0, 1, 1, 0, 1, 0)]
    first = values([1, 1, 0])
    found = randomness.repeating(drawn, first, (first,) * 64)
    assert (
        found.why
        == "output 0 is the same in every run of a compiled model; 9 runs of the reference give 2 different answers"
    )
    assert found.numbers(["y"])["why"].startswith("y is the same in every run")
    assert not randomness.repeating(drawn, first, (first,) * 5), "chance may do that"
    assert not randomness.repeating(drawn[:1] * 9, first, (first,) * 64), "so is the reference"
    for numbers, said in (
        ([0.0, 0.0], "0 everywhere in"),
        ([0.0], "0 in"),
        ([0.5], "the same in"),
        ([0.5, 1], "the same in"),
    ):
        always = [Tensor.of(np.float32(numbers))]
        told = randomness.repeating(drawn, always, (always,) * 64)
        assert told.why.startswith(f"output 0 is {said} every run of a compiled model"), (
            "a number that was drawn says nothing"
        )
    assert "an input unchanged in every run" in randomness.repeating(drawn, first, (first,) * 64, first).why


def test_what_differs_by_rounding_alone_was_not_drawn_anew():
    """A random shift of equal numbers gives them again, but for the last bits: there is nothing that a compiler could draw."""
    held = [Tensor.of(np.float32([x])) for x in (1.5, 1.5000001, 1.4999999)]
    first = [held[0]]
    assert randomness.repeating([[held[n % 3]] for n in range(9)], first, (first,) * 64) is None
    apart = [[Tensor.of(np.float32([1.5 + n]))] for n in range(9)]
    told = randomness.repeating(apart, first, (first,) * 64)
    assert told is not None and "give 9 different answers" in told.why


def test_what_is_seeded_by_the_second_is_a_finding_also_where_the_runs_take_seconds():
    drawn = [values([x, 1, 2]) for x in (0, 1, 0, 0, 1, 1, 0, 1, 0)]
    first, later = values([1, 1, 0]), values([1, 1, 1])
    found = randomness.repeating(drawn, first, (first,) * 64, renewed=True)
    assert found.renewed
    assert "the same in every run of a compiled model within a second, and another in the next" in found.why
    crossed = randomness.repeating(drawn, first, (*[first] * 33, *[later] * 31))
    assert crossed.renewed and "hardly ever changes from run to run" in crossed.why
    assert crossed.numbers()["drawn_renewed"] and crossed.kind == draws.CONSTANT
    assert not randomness.repeating(drawn, first, (first, later) * 32), "so does the reference"
    assert not randomness.repeating(drawn, first, (*[first] * 10, *[later] * 2)), "chance may do that"


SEEDED = call("onnx", "Bernoulli", {"input": np.full(40, 0.5, np.float32)}, seed=3.0)


def test_a_seed_makes_two_models_draw_the_same(tmp_path, monkeypatch):
    assert declared.seeded(SEEDED) == "seed=3.0" and not declared.seeded(call("onnx", "Bernoulli", EMPTY))
    from opera.libraries.onnx import library
    from opera.programs.program import Captured, Provenance
    from opera.programs.verdicts import Outcome

    manifest = library.wrap(Captured(SEEDED, Provenance("", "", "")), "t" * 20, tmp_path)
    one, other = (values(np.float32([0, 1] * 20)), values(np.float32([1, 0] * 20)))
    shown = Outcome("inconsistent", "infer", "value", details={"nondeterministic": False})

    def asked(runs):
        found = screens.screen(library, "openvino", manifest, tmp_path, SEEDED, one, shown, runs)
        return found.reason, found.tags

    assert asked(randomness.Runs((one,) * 64, other)) == ("", (draws.SEED,))
    assert asked(randomness.Runs((one,) * 64, one))[1] != (draws.SEED,)


@pytest.mark.parametrize(("shares", "verdict"), [([0.5, 0.5, 0.5], "inconsistent"), ([0.0, 1.0], "pass")])
def test_what_a_random_program_draws_is_looked_at_though_it_agrees_by_chance(tmp_path, monkeypatch, shares, verdict):
    """Of shares 0 and 1 nothing is left to chance; of others, a compiler that draws always the same may agree."""
    from opera.libraries.onnx import library
    from opera.programs import migrated
    from opera.programs.program import Captured, Provenance
    from opera.programs.verdicts import Job
    from opera.run import library_side, transitions, worker
    from opera.run.library_side import ScreenRequest
    from opera.store import folders

    program = call("onnx", "Bernoulli", {"input": np.float32(shares)})
    program = msgspec.structs.replace(program, context={"opset": {"": 15}})  # ONNX Runtime knows it
    name, files = "t" * 20, folders.Folders.of(tmp_path)
    folder = files.test(name)
    wrapped = library.wrap(Captured(program, Provenance("", "", "")), name, folder)
    monkeypatch.setattr(folders, "here", lambda: files)
    expected = migrated.read_values(folder, "expected")

    def always(frontend, compiled, case, seconds, pattern=0):
        seconds["infer"] = 0.0
        return expected

    monkeypatch.setattr(worker, "_infer", always)
    job = Job(name, "onnxruntime", "onnx", "inputs", "onnx", save_outputs="kept.msgpack")
    shown = worker.run(job)
    assert (shown.verdict, shown.details["agrees"]) == ("inconsistent", True) and wrapped.tags
    request = ScreenRequest("onnx", "onnxruntime", name, program.canonical(), "kept.msgpack", shown)
    found = transitions.with_screens(shown, library_side.screen(request))
    assert found.verdict == verdict
