"""Findings of two versions of a compiler side by side, and since when one fails."""
