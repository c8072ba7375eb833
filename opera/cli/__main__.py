"""`python -m opera.cli`, for processes that opera starts itself."""

from __future__ import annotations

from opera.cli import main

main()
