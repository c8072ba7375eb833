"""Measuring how early strategies find bugs: on labelled corpora, and on what a workspace has run (docs/benchmark.md)."""
