"""Experiments, figures and claims of published papers."""
