"""opera: migrate the tests of deep-learning libraries to the frontends of deep-learning compilers."""

__version__ = "0.1.0"
