"""The ramp that marking functions are made of."""

from fluidcc import ops
from fluidcc.ops import Num


def ramp(v: Num, low: Num, high: Num, top: Num) -> Num:
    """0 below `low`, linear to `top` at `high`, `top` above."""
    return top * ops.clip((v - low) / (high - low), 0.0, 1.0)
