"""Whether what flows have in flight is still what their windows hold."""

import numpy as np
from numpy.typing import NDArray

_MOST = 0.1  # of the mean window: what the ends of a run and sparse points leave open is below
_ROUND_TRIPS = 20  # that a mean takes at least, so that its ends count little
_POINTS = 100

Floats = NDArray[np.float64]


def excess_in_flight(time: Floats, window: Floats, rate: Floats, rtt: Floats) -> float | None:
    """Mean packets in flight above the mean window, as a share of it; None if windows hold them.

    Little's law over the second half of a run: the mean flight is that of rate times round trip.

    Parameters
    ----------
    time
        Times [s], shape (T,).
    window, rate, rtt
        Window [packet], rate [packet/s] and round trip [s] of flows, shape (T, m) each; the class
        that is furthest off counts.
    """
    late = (time >= time[-1] / 2) & np.all(np.isfinite(rate), axis=1)
    t = time[late]
    if t.size < _POINTS or t[-1] - t[0] < _ROUND_TRIPS * np.max(rtt[late]):
        return None
    held = np.trapezoid(window[late], t, axis=0)
    flying = np.trapezoid(rate[late] * rtt[late], t, axis=0)
    excess = np.asarray(flying / held - 1)
    worst = float(excess[np.argmax(np.abs(excess))])
    return worst if abs(worst) > _MOST else None
