"""The spectrum of files that come to a queue by themselves: shots of packets, each a file on a new
connection that starts slowly, and reacts to the signals that it meets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.sending import Sending
from fluidcc.laws.law import Signal
from fluidcc.model.rates import marks_seen
from fluidcc.scenario.network import Flows
from fluidcc.scenario.sender import sender_options

_FILES = 1024  # sizes are spread evenly over their distribution, signals drawn
_MOST_TRIPS = 2000  # of a file; what is left then is sent at once
_PARTS = 64  # files at a time


def spectrum_of_files(flows: Flows, signal: Signal, trip: float, omega: Array) -> Array:
    """Spectral density (W,) of the flight [packet^2 s] of files that arrive as a Poisson process,
    at frequencies [rad/s]: arrivals times the mean of the squared transform of the flight of a file
    (Campbell's theorem).

    In each round trip [s] a window is sent, which doubles until the first signal or the threshold.
    Raises ValueError if sizes have no finite variance, or if packets are of files that meet more
    than one signal in the mean: such files answer the queue, as flows do that last.
    """
    traffic: Any = flows.traffic
    if traffic.sizes.startswith("pareto") and traffic.shape <= 2:
        raise ValueError(f"sizes with a shape of {float(traffic.shape):g} have no variance")
    size = np.ceil(traffic.size((np.arange(_FILES) + 0.5) / _FILES))
    met = (marks_seen(flows, signal) + signal.drop) * (size**2).sum() / size.sum()
    if met > 1:
        raise ValueError(
            f"packets are of files that meet {float(met):.3g} signals in the mean, more than one: "
            "such files answer the queue, which is not known"
        )
    sent = [
        abs(_sent(windows, trip, omega)) ** 2
        for windows in np.array_split(_windows(flows, signal, trip, size), _FILES // _PARTS)
    ]
    stay = abs((1 - np.exp(-1j * omega * trip)) / omega) ** 2
    return float(np.sum(flows.n) * traffic.arrivals) * stay * np.concatenate(sent).mean(axis=0)


def _sent(windows: Array, trip: float, omega: Array) -> Array:
    """Transform (F, W) of what files send in each round trip (F, K)."""
    used = windows[:, : int(np.max(np.count_nonzero(windows, axis=1)))]
    return used @ np.exp(-1j * np.outer(np.arange(used.shape[1]) * trip, omega))


def _windows(flows: Flows, signal: Signal, trip: float, size: Array) -> Array:
    """What files of these sizes send in each round trip (F, K) [packet]."""
    options, law = sender_options(flows.sender), flows.window
    row = Signal(*(np.reshape(np.asarray(v, float), (1, 1)) for v in signal))
    sender = Sending(flows, row, np.full((1, 1), trip), 1.0)
    marked, lost = float(marks_seen(flows, signal)), float(signal.drop)
    threshold, most = float(options.initial_ssthresh), float(law.max_window)
    window, left = np.full(len(size), float(options.initial_window)), size
    opening, random, out = np.ones(len(size), bool), np.random.default_rng(0), []
    while left.any() and len(out) < _MOST_TRIPS:
        now = np.minimum(left, np.floor(window))
        left = left - now
        out.append(now)
        met = [random.random(len(size)) < -np.expm1(now * np.log1p(-p)) for p in (marked, lost)]
        opening = opening & ~met[0] & ~met[1] & (window < threshold)
        column = window[:, None]
        by_ack, by_time = sender.growth(column)
        grown = window + (by_ack * column + by_time)[:, 0]
        window = np.where(opening, np.minimum(2 * window, threshold), grown)
        for happened, is_loss in zip(met, (False, True), strict=True):
            window = np.where(happened, sender.cut(column, lost=is_loss)[:, 0], window)
        window = np.clip(window, max(1.0, float(law.min_window)), most)
    return np.stack([*out, left], axis=1)
