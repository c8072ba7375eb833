"""Turning a migration source into operator instances."""
