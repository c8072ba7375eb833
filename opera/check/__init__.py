"""`opera check`: which lines of a program fail on a compiler; it is recorded, ranked and run in one step."""
