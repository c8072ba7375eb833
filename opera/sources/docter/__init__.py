"""DocTer as a migration source: constraints on parameters, taken from documentation, and inputs generated from them.

The constraint files and the way of generating are those of "DocTer: documentation-guided fuzzing for testing deep learning
API functions" (ISSTA 2022); docs/docter.md says where opera differs.
"""
