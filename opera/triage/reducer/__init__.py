"""Reductions: of one finding, of many, and the asking of the probe."""
