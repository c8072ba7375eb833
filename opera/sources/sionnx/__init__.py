"""Sionnx as a migration source: operators specified in a small language, and tests generated at the boundaries of it.

The language (OSL) and the way of generating (TDBc-gen) are those of "Sionnx: Automatic Unit Test Generator for ONNX
Conformance"; docs/sionnx.md says where opera differs, and what was added to the language.
"""
