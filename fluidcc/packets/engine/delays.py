"""Histograms of delays and transfer times, by the bits of the numbers: a bin is as wide as 2^-8, or
0.4 %, of its power of 2.
"""

import numpy as np

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import float_bits, inlined

_MANTISSA, _BIAS = 52, 1023  # IEEE 754
_SHIFT = _MANTISSA - r.DELAY_BITS
_BEFORE = ((_BIAS + r.DELAY_FIRST) << r.DELAY_BITS) - 1


@inlined
def count_delay(histogram, delay):
    """Count a delay [s] of at least 0."""
    slot = (float_bits(delay) >> _SHIFT) - _BEFORE
    entry = r.count_at(histogram, min(max(slot, 0), r.DELAY_SIZE - 1))
    entry.value = entry.value + 1


def ends() -> np.ndarray:
    """Ends of the bins [s], shape (DELAY_SIZE + 1,)."""
    exponent, part = np.divmod(np.arange(r.DELAY_SIZE), 1 << r.DELAY_BITS)
    powers = 2.0 ** (exponent + r.DELAY_FIRST) * (1 + part / (1 << r.DELAY_BITS))
    return np.concatenate([[0.0], powers])
