"""`python -m opera`: the command line, for an environment whose scripts are not on the path."""

from __future__ import annotations

from opera.cli import main

main()
