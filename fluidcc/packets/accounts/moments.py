"""Ratios and deviations of accounts; not a number where nothing was counted."""

import math


def ratio(a: float, b: float) -> float:
    """Quotient of two accounts."""
    return float(a / b) if b > 0 else math.nan


def deviation(mean: float, squares: float) -> float:
    """Standard deviation from the means of numbers and of their squares."""
    return math.sqrt(max(squares - mean**2, 0.0))
