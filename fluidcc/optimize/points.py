"""Points that fill a box evenly."""

from scipy.stats import qmc

from fluidcc.analysis.linear import Array


def halton(size: int, count: int) -> Array:
    """Points (count, size) of Halton's sequence in the unit box, always the same."""
    sampler = qmc.Halton(size, scramble=False)
    sampler.fast_forward(1)  # the first is a corner
    return sampler.random(count)
