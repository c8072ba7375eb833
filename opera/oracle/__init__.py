"""Is the answer wrong, and is it the same wrong answer? Comparing outputs, screens, signatures of failures."""
