"""Senders under independent marks, by the rules of their laws: rests, and means of random paths."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from fluidcc.analysis.stationary import drift
from fluidcc.laws.law import AbstractReaction, AbstractWindowLaw, Ack, Since

_ACK = Ack(1.0, 0.0, 1.0)
_CHAINS, _TURNS = 400, 24.0  # random paths, and their length in times between marks
_LEAST, _MOST = 1e-9, 1e12  # packets
_EXACT: Any = 1e-14


class Means(NamedTuple):
    """Mean windows [packet]: over acknowledgements, and over time."""

    acks: float
    time: float


def resting(law: AbstractWindowLaw, reaction: AbstractReaction, p: float) -> float:
    """Window whose drift vanishes [packet]."""
    root: Any = brentq(
        lambda w: drift(law, reaction, p, w), _LEAST, _MOST, xtol=_EXACT, rtol=_EXACT
    )
    return float(root)


def means(law: AbstractWindowLaw, reaction: AbstractReaction, p: float, seed: int = 1) -> Means:
    """Means over random paths of a sender whose packets are marked independently.

    A reaction at a window w is over once w further packets are acknowledged; windows stay above
    the law's smallest one.
    """
    rng, floor = np.random.default_rng(seed), float(law.min_window)
    steps = int(_TURNS / p) + 100
    w = np.full(_CHAINS, max(resting(law, reaction, p), floor))
    left, acks, times, count = np.zeros(_CHAINS), 0.0, 0.0, 0
    for k in range(steps):
        if k >= steps // 3:
            acks, times, count = acks + w.mean(), times + (1 / w).mean(), count + 1
        marked = (rng.uniform(size=_CHAINS) < p).astype(float)
        since = Since(left, 0.0, (left <= 0).astype(float))
        ready = marked * np.asarray(reaction.ready(since))
        grown: Any = np.asarray(reaction.growing(since, marked)) * law.on_ack(w, _ACK)
        cut: Any = ready * law.on_mark(w, _ACK)
        left = np.where(ready > 0, w, left - 1)
        w = np.maximum(w + grown + cut, floor)
    return Means(acks / count, count / times)
