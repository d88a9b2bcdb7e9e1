"""Scenarios: text to networks and back, and their parameters by path."""
