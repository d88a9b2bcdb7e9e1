"""Bounds of Qazi, Znati and Andrew (2010): BMCC."""
