"""Period and extremes of oscillations, of trajectories and of noisy series."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.analysis.linear import Array
from fluidcc.scenario.parsing import in_seconds

_STILL = 1e-6  # of the mean size: smaller ranges are no oscillation
_HYSTERESIS = 0.25  # of the range on either side of its middle: ripples are no cycles
_REPEATED = 0.3  # least autocorrelation at a period
_SETTLED = 0.01  # of the mean: smaller deviations are the last of a decay


class Oscillation(NamedTuple):
    """Mean time between cycles [s], None without two of them, extremes and mean of the values.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import numpy as np
    >>> time = np.linspace(0, 20, 2001)
    >>> found = fc.oscillation(time, 3 + np.sin(time))
    >>> round(found.lowest, 3), round(found.highest, 3)
    (2.0, 4.0)
    """

    period: float | None
    lowest: float
    highest: float
    mean: float


def oscillation(time: ArrayLike, values: ArrayLike, *, after: float | str = 0.0) -> Oscillation:
    """Period and extremes of values over time, such as a queue of a trajectory.

    A cycle begins where the values rise through the middle of their range, having been a quarter
    of it lower since the last time.

    Parameters
    ----------
    time, values
        Times [s], increasing, and values, shapes (T,).
    after
        Start of the evaluation [s], after the transient; text is read with its unit.

    Returns
    -------
    Oscillation
        `period` in the unit of `time`, None without two cycles; `lowest`, `highest`, `mean` in that
        of `values`.

    Raises
    ------
    ValueError
        If the shapes differ, or fewer than two times are left.

    Examples
    --------
    >>> import fluidcc as fc
    >>> import numpy as np
    >>> time = np.linspace(0, 20, 2001)
    >>> found = fc.oscillation(time, np.sin(2 * np.pi * time / 4), after=4.0)
    >>> round(found.period, 6)
    4.0
    """
    t, v, after = np.asarray(time, float), np.asarray(values, float), in_seconds("after", after)
    if t.ndim != 1 or t.shape != v.shape:
        raise ValueError(f"time and values need one shape (T,), got {t.shape} and {v.shape}")
    t, v = t[t >= after], v[t >= after]
    if len(t) < 2:
        raise ValueError(f"after: expected at least two times from {after!r} s on, got {len(t)}")
    low, high, mean = float(v.min()), float(v.max()), float(np.trapezoid(v, t) / (t[-1] - t[0]))
    if high - low <= _STILL * max(abs(low), abs(high)):
        return Oscillation(None, low, high, mean)
    starts = rises(t, v, low, high)
    period = float(np.mean(np.diff(starts))) if len(starts) > 1 else None
    return Oscillation(period, low, high, mean)


def rises(time: Array, values: Array, low: float, high: float) -> list[float]:
    """When values (T,) rise through the middle of the range `low` to `high`, ripples left out."""
    middle, margin = 0.5 * (low + high), _HYSTERESIS * (high - low)
    starts, armed = [], False
    for k in range(1, len(time)):
        armed = armed or values[k - 1] < middle - margin
        if armed and values[k - 1] < middle <= values[k]:
            share = (middle - values[k - 1]) / (values[k] - values[k - 1])
            starts.append(float(time[k - 1] + share * (time[k] - time[k - 1])))
            armed = False
    return starts


def repeating_period(time: ArrayLike, values: ArrayLike) -> float | None:
    """Period of a noisy series [s]; None if it does not repeat.

    The lag of the highest autocorrelation beyond its first zero, if it is at least 0.3: noise
    without a period stays below. Standard deviations of less than a hundredth of the mean count as
    an equilibrium.

    Parameters
    ----------
    time, values
        Times [s], evenly spaced, and values, shapes (T,).
    """
    t, v = np.asarray(time, float), np.asarray(values, float)
    if len(v) < 3 or not np.all(np.isfinite(v)):
        return None
    apart = v - v.mean()
    if apart.std() <= _SETTLED * abs(v.mean()):
        return None
    power = np.abs(np.fft.rfft(apart, 2 * len(v))) ** 2  # padded: no lag wraps around
    again = np.fft.irfft(power)[: len(v) // 2]
    again /= again[0]
    negative = np.flatnonzero(again < 0)
    if not negative.size:
        return None
    first = int(negative[0])
    k = first + int(np.argmax(again[first:]))
    if again[k] < _REPEATED or k == len(again) - 1:
        return None
    before, here, after = again[k - 1 : k + 2]
    lag = k + 0.5 * (before - after) / (before - 2 * here + after)  # top of the parabola
    return float(lag * (t[-1] - t[0]) / (len(t) - 1))
