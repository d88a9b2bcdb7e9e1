"""Bounds of papers put to the test: derived from the laws, and attacked over their parameters."""
