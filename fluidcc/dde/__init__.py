"""Delay differential equations: a system, meshes, history, events, and their solution."""
