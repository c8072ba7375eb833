"""Which findings, and which members of one, have one cause."""
