"""Keras: hooks, wrapping, exports, what is undefined, source text."""
