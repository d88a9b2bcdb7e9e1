"""Feedback laws, one a file."""
