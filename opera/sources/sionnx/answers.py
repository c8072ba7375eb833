"""What the references compute for a generated call, and whether it is a test: ONNX's checker, its evaluator, ONNX Runtime.

What is asked is what making the migrated test will ask (opera.libraries.onnx.library.wrap), so that what is accepted here is
accepted there.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import onnx

from opera.compilers.shared import messages
from opera.errors import InvalidTest
from opera.libraries.onnx import codec, library, nodes, opsets, references, wrap
from opera.libraries.onnx.walk import all_nodes
from opera.libraries.onnx.wrap import Parts
from opera.oracle import comparison, conditioning, screens
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Manifest
from opera.programs.program import Instance
from opera.programs.values import Tensor, Value
from opera.store.rows import Disagreement

EVALUATOR, RUNTIME, ALGORITHM = references.EVALUATOR, references.DISPUTING, "algorithm"
INFERENCE = "type inference"
"""ONNX's, which disagrees with the evaluator on the dtype of an output."""
ACCEPTED, CHECKER, REFERENCE, UNANSWERED = "accepted", "checker", "reference", "unanswered"
"""What becomes of a call: a test; rejected by the checker or type inference; rejected by a reference while none computes it;
none can run it."""
EVALUATOR_SECONDS = 1.0
"""CPU seconds that the evaluator, which is Python, may take for one call: it has no answer then."""
NO_REFERENCE = "no reference"
"""How the evaluator's reason begins where it does not implement something (opera.libraries.onnx.references)."""
LACKING = ("TooSlow", "TypeError: Issues with types", "has an unexpected type")
"""What else its reasons hold where it takes too long, or numpy cannot compute with a type that the schema admits."""
BRIEF = 400
"""Characters of a reason that are kept."""
REJECTED = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError)
"""What ONNX's checker raises."""
Algorithm = Callable[[Instance, Parts], list[Value]]
"""Computes a call by the text of a checkout. Raises InvalidTest."""


class Judged(msgspec.Struct):
    """What became of a call.

    Attributes:
        status: See ACCEPTED and the rest.
        reason: Why it was not accepted.
        instance: The call, where it was.
        expected: What another than the evaluator computed, where that has no answer; None else.
        reference: Who computed `expected`.
        disagreements: References that compute something else.
        disputed: Whether one of them is as good as the one whose answer is taken.
        seconds: CPU seconds of the evaluator.
    """

    status: str
    reason: str = ""
    instance: Instance | None = None
    expected: tuple[Value, ...] | None = None
    reference: str = ""
    disagreements: list[Disagreement] = []
    disputed: bool = False
    seconds: float = 0.0


class Answer(msgspec.Struct):
    """What one reference says.

    Attributes:
        name: Who.
        outputs: What it computes, None where it does not.
        reason: Why not.
        lacks: Whether that is because it does not implement the operator or type.
        contradicts: How the types of its outputs contradict what ONNX infers; empty where they do not.
    """

    name: str
    outputs: list[Value] | None
    reason: str = ""
    lacks: bool = False
    contradicts: str = ""


def judge(
    instance: Instance, test: str, *, evaluator: bool = True, runtime: bool = True, algorithm: Algorithm | None = None
) -> Judged:
    """Ask the checker, then the references.

    Args:
        instance: The call.
        test: Its name, for disagreements.
        evaluator: Whether the evaluator is asked: it is not where it took too long before.
        runtime: Whether ONNX Runtime is asked: it is not where it killed the process.
        algorithm: A third reference.
    """
    try:
        made = wrap.parts(instance)
        inferred = wrap.inferred(instance, made)
    except InvalidTest as error:
        return Judged(CHECKER, error.what[:BRIEF])
    started = time.process_time()
    answers = [
        _evaluator(inferred, made) if evaluator else Answer(EVALUATOR, None, "not asked: it takes too long", True)
    ]
    seconds = time.process_time() - started
    judged = _weighed(instance, test, made, inferred, answers, runtime, algorithm)
    judged.seconds = seconds
    return judged


def _weighed(
    instance: Instance, test: str, made: Parts, inferred: Any, answers: list[Answer], runtime: bool,
    algorithm: Algorithm | None,
) -> Judged:  # fmt: skip
    """Ask the others, and weigh the answers."""
    if runtime:
        answers.append(_runtime(inferred, made))
    if algorithm is not None:
        answers.append(_algorithm(algorithm, instance, made))
    for answer in answers:
        _contradicts(answer, instance, made, inferred)
    taken = next((answer for answer in answers if answer.outputs is not None and not answer.contradicts), None)
    if taken is None and answers[0].contradicts:
        return _as_inferred(answers[0], instance, test, made, inferred)
    if taken is None:
        rejecting = [answer for answer in answers if not answer.lacks]
        said = "; ".join(f"{answer.name}: {answer.reason[: BRIEF // len(answers)]}" for answer in rejecting or answers)
        return Judged(REFERENCE if rejecting else UNANSWERED, said[:BRIEF])
    judged = Judged(ACCEPTED, instance=instance)
    if taken.name != EVALUATOR:
        judged.expected, judged.reference = tuple(taken.outputs or ()), taken.name
    _compare(judged, instance, test, made, taken, [answer for answer in answers if answer is not taken])
    return judged


def _contradicts(answer: Answer, instance: Instance, made: Parts, inferred: Any) -> None:
    """Note how the types of an answer contradict what ONNX infers, which no migrated test may."""
    if answer.outputs is None:
        return
    try:
        wrap.checked(
            wrap.model(instance, made, wrap.output_types(inferred, answer.outputs), check=False), inference=True
        )
    except InvalidTest as error:
        answer.contradicts = error.what[:BRIEF]


def _as_inferred(answer: Answer, instance: Instance, test: str, made: Parts, inferred: Any) -> Judged:
    """Take the evaluator's numbers in the dtypes that ONNX infers, where nobody else computes them."""
    names = [codec.DTYPES.get(x.type.tensor_type.elem_type, "") for x in inferred.graph.output]
    outputs = answer.outputs or []
    if not all(
        isinstance(x, Tensor) and name and "string" not in (x.dtype, name)
        for x, name in zip(outputs, names, strict=True)
    ):
        return Judged(UNANSWERED, f"{answer.name} alone: {answer.contradicts}")
    cast = Answer(
        EVALUATOR, [codec.cast(x, name) for x, name in zip(outputs, names, strict=True) if isinstance(x, Tensor)]
    )
    _contradicts(cast, instance, made, inferred)
    if cast.contradicts:
        return Judged(UNANSWERED, f"{answer.name} alone: {answer.contradicts}")
    found = Disagreement(instance.id, instance.operator, test, INFERENCE, answer.name, "dtype", answer.contradicts)
    return Judged(ACCEPTED, "", instance, tuple(cast.outputs or ()), "evaluator", [found])


def _compare(judged: Judged, instance: Instance, test: str, made: Parts, taken: Answer, others: list[Answer]) -> None:
    """Compare what others computed with what is taken, and note who disagrees.

    What is undefined, random, or off by what rounding explains is no disagreement. A published algorithm against two references
    and an answer of types that ONNX does not infer disagree, and dispute nothing.
    """
    tags = library.facts(instance, made)
    if "nondeterministic" in tags:
        return
    expected = taken.outputs or []
    names = tuple(made.outputs)
    manifest = Manifest(
        test="", instance="", library="onnx", operator=instance.operator, exporter={}, inputs=tuple(made.inputs),
        outputs=names, artefacts={}, reference=taken.name, tags=tuple(sorted(tags)),
    )  # fmt: skip
    agreeing = 0
    for other in others:
        if other.outputs is None:
            continue
        found = comparison.compare(expected, other.outputs, names, None, None)
        if not found.symptom or _explained(instance, made, manifest, expected, other.outputs, found.symptom):
            agreeing += 1
            continue
        judged.disputed |= not other.contradicts and (other.name != ALGORITHM or not agreeing)
        judged.disagreements.append(
            Disagreement(
                instance.id, instance.operator, test, taken.name, other.name, found.symptom, found.message[:BRIEF]
            )
        )


def _explained(
    instance: Instance, made: Parts, manifest: Manifest, expected: list[Value], actual: list[Value], symptom: str
) -> bool:
    """Whether something other than a wrong answer explains a difference: an undefined result, or rounding."""
    if screens.why_undefined(library, instance, expected):  # type: ignore[arg-type]
        return True
    if symptom not in ("value", "nan-mask"):
        return False

    def ask(inputs: list[Value]) -> list[Opinion]:
        moved = msgspec.structs.replace(made, values=inputs)
        try:
            answer = _evaluator(wrap.inferred(instance, moved), moved)
        except InvalidTest as error:
            return [Opinion(EVALUATOR, False, None, error.what)]
        return [Opinion(EVALUATOR, False, answer.outputs, answer.reason)]

    inputs = list(made.values)
    return bool(conditioning.ill_conditioned(ask, manifest, instance, inputs, expected, actual, symptom, ask(inputs)))


def _evaluator(model: Any, made: Parts) -> Answer:
    try:
        with _limit(EVALUATOR_SECONDS):
            outputs = references.evaluate(model, dict(zip(made.inputs, made.values, strict=True)))
    except InvalidTest as error:
        lacks = error.what.startswith(NO_REFERENCE) or any(words in error.what for words in LACKING)
        return Answer(EVALUATOR, None, error.what, lacks)
    except (MemoryError, TooSlow) as error:
        return Answer(EVALUATOR, None, type(error).__name__, True)
    return Answer(EVALUATOR, outputs)


class TooSlow(Exception):
    """The evaluator takes too long."""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow in Python code that takes more CPU seconds in user mode.

    The handler stays: the kernel may give the signal to another thread, and so after the timer is off, and a process that has
    no handler by then is killed.
    """
    limited = True

    def late(number: int, frame: Any) -> None:
        if limited:
            raise TooSlow(f"more than {seconds:g} s")

    signal.signal(signal.SIGVTALRM, late)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        limited = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _runtime(model: Any, made: Parts) -> Answer:
    """Ask ONNX Runtime; where the opset is newer than it knows, with the oldest one in which the call means the same."""
    found = _run(model.SerializeToString(deterministic=True), made)
    if not found.lacks:
        return found
    versions = nodes.opset_of(model)
    older = opsets.needed(all_nodes(model.graph.node), versions, opsets.value_types(model))
    if not any(version < versions[domain] for domain, version in older.items()):
        return found
    with suppress(*REJECTED):  # there is no such model
        again = _run(opsets.restamped(model, older), made)
        return again if again.outputs is not None else found
    return found


def _run(model: bytes, made: Parts) -> Answer:
    try:
        from opera.compilers import onnxruntime
    except ImportError as error:
        return Answer(RUNTIME, None, f"not installed: {error}", True)
    feeds = dict(zip(made.inputs, made.values, strict=True))
    stage = "load"
    try:
        session = onnxruntime.unoptimised(model)
        stage = "infer"
        outputs = onnxruntime.ran(session, feeds, made.outputs)
    except ImportError as error:
        return Answer(RUNTIME, None, f"not installed: {error}", True)
    except Exception as error:  # its own kinds of errors are not public; whatever it raises is its answer
        lacks = messages.unsupported(onnxruntime.UNSUPPORTED, stage, error) is not None
        return Answer(RUNTIME, None, f"{type(error).__name__}: {' '.join(str(error).split())}"[:BRIEF], lacks)
    return Answer(RUNTIME, outputs)


def _algorithm(algorithm: Algorithm, instance: Instance, made: Parts) -> Answer:
    try:
        return Answer(ALGORITHM, algorithm(instance, made))
    except InvalidTest as error:
        return Answer(ALGORITHM, None, error.what[:BRIEF], True)


def prepare() -> None:
    """Have ONNX Runtime say nothing on its own."""
    try:
        from opera.compilers import onnxruntime

        onnxruntime.prepare()
    except ImportError:
        return
