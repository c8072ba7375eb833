"""PyTorch: hooks, wrapping, exports, references, what is undefined, source text."""
