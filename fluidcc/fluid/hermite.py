"""Cubic Hermite interpolation between two nodes."""

from jax import Array


def weights(theta: Array) -> tuple[Array, Array, Array, Array]:
    """Weights of (older value, older slope, newer value, newer slope) at `theta` in [0, 1].

    The slopes are multiplied by the distance of the nodes. Outside [0, 1] this extrapolates.
    """
    rest = 1.0 - theta
    newer = theta * theta * (3.0 - 2.0 * theta)
    return 1.0 - newer, theta * rest * rest, newer, -theta * theta * rest


def interpolate(
    theta: Array, older: Array, older_slope: Array, newer: Array, newer_slope: Array
) -> Array:
    """Value at `theta` of the cubic through two values and two slopes (times the distance)."""
    a, b, c, d = weights(theta)
    return a * older + b * older_slope + c * newer + d * newer_slope
