"""Smaller programs of a failing one, and the search among them; nothing here knows a compiler."""
