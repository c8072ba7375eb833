"""ONNX: hooks, wrapping, references, what is undefined, source text."""
