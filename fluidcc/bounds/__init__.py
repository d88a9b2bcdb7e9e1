"""Bounds of papers put to the test: derived from the laws, and searched for counterexamples."""
