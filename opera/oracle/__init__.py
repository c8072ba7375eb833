"""Is the answer wrong? Comparing outputs, and screens that look for another explanation."""
