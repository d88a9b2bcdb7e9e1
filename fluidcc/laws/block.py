"""Packets of one window taken together."""

from fluidcc import ops
from fluidcc.ops import Num

_ALMOST_ONE = 1 - 1e-12  # (1 - p)^w has no slope at p = 1 for w < 1


def any_of(w: Num, p: Num) -> Num:
    """Probability that at least one of `w` packets is hit, each with probability `p`."""
    return -ops.expm1(w * ops.log1p(-ops.minimum(p, _ALMOST_ONE)))
