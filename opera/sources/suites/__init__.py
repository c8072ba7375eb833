"""Test suites of libraries and compilers, and programs of the user's own."""
