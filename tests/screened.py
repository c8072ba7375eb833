"""Tests of screens share these: a migrated test of one ONNX call, and a library whose opinions are given."""

import numpy as np

from opera.libraries.onnx import library
from opera.oracle import comparison as oracle
from opera.oracle import randomness, screens
from opera.oracle.opinions import Opinion
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome

SEEN = Provenance("by-hand", "test_screens.py", "here")


def made(folder, operator, inputs, expected=None, params=None, opset=21):
    operands = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in inputs.items())
    instance = Instance("onnx", operator, params or {}, operands, ("y",), {"opset": {"": opset}})
    stated = None if expected is None else (Tensor.of(np.asarray(expected)),)
    return library.wrap(Captured(instance, SEEN, stated), "t" * 20, folder), instance


def outcome(manifest, folder, actual, **details):
    expected = migrated.read_values(folder, "expected")
    found = oracle.compare(expected, actual, manifest.outputs, manifest.rtol, manifest.atol)
    assert found.symptom
    shown = Outcome(INCONSISTENT, "infer", found.symptom, found.message, details=found.details | details)
    return randomness.settled(shown, manifest.tags)


def screen(folder, manifest, instance, actual, compiler="openvino", **details):
    actual = [Tensor.of(np.asarray(actual))]
    result = outcome(manifest, folder, actual, **details)
    return screens.screen(library, compiler, manifest, folder, instance, actual, result)


def f32(*items):
    return np.array(items, dtype=np.float32)


class Answers:
    """A library whose independent implementations give these answers, the last only where they are asked for."""

    def __init__(self, *first, further=()):
        self.first, self.more, self.asked = first, further, []

    def undefined(self, instance, expected):
        return None

    def opinions(self, manifest, directory, inputs, besides):
        return [Opinion(f"first {place}", True, [Tensor.of(x)]) for place, x in enumerate(self.first)]

    def further(self, manifest, directory, inputs, besides):
        for place, numbers in enumerate(self.more):
            self.asked.append(place)
            yield Opinion(f"further {place}", True, [Tensor.of(numbers)])


def asked_of(answers, manifest, folder, instance, actual):
    return screens.screen(answers, "any", manifest, folder, instance, actual, outcome(manifest, folder, actual))
