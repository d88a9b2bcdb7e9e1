"""Cubic Hermite interpolation between two nodes."""

from jax import Array

from fluidcc.arrays import jax, jnp


def weights(theta: Array) -> tuple[Array, Array, Array, Array]:
    """Weights of (older value, older slope, newer value, newer slope) at `theta` in [0, 1].

    The slopes are multiplied by the distance of the nodes. Outside [0, 1] this extrapolates.
    """
    left = 1.0 - theta
    newer = theta * theta * (3.0 - 2.0 * theta)
    return 1.0 - newer, theta * left * left, newer, -theta * theta * left


def interpolate(
    theta: Array, older: Array, older_slope: Array, newer: Array, newer_slope: Array
) -> Array:
    """Value at `theta` of the cubic through two values and two slopes (times the distance)."""
    a, b, c, d = weights(theta)
    return a * older + b * older_slope + c * newer + d * newer_slope


def extended(theta: Array, *ends: Array) -> Array:
    """The cubic between its ends and its tangents beyond them.

    Trial steps that are later shortened read past the end of an interval, which may be far shorter
    than the step: an extrapolated cubic would explode there.
    """
    inside = jnp.clip(theta, 0.0, 1.0)
    value, rise = jax.jvp(lambda x: interpolate(x, *ends), (inside,), (jnp.ones_like(inside),))
    return value + rise * (theta - inside)
