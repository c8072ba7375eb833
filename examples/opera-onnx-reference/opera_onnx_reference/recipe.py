"""What a user of the compiler writes: it needs nothing of opera, and the scripts of findings print it."""

from onnx.reference import ReferenceEvaluator


def load(path):
    return ReferenceEvaluator(path)


def infer(evaluator, feeds, outputs):
    return evaluator.run(list(outputs), feeds)
