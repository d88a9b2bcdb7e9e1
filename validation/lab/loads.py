"""Load factors of a router, and what receivers make of them, from the samples of packet runs."""

from typing import Any

import numpy as np

from fluidcc.laws.law import Arrival
from fluidcc.laws.load_code import ADPM
from fluidcc.laws.queue.load_factor import LoadFactor

from .samples import Runs


def load_factors(runs: Runs, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and load factors of the first link at point k, by eq. 1 of Qazi et al. (2010).

    From what passed the link: `t_p` has to be a multiple of the experiment's `sample`.
    """
    net = runs.experiment.net(k)
    link: Any = net.links[0]
    name, period = net.link_names[0], float(link.queue.t_p)
    times, system = runs.series(k, "link_number_in_system", name)
    busy, drops, average = (
        runs.series(k, f"link_{key}", name)[1]
        for key in ("utilization_sampled", "drop_rate", "average")
    )
    step = times[1] - times[0]
    each = round(period / step)
    count = (len(times) - 1) // each
    arrived = np.diff(system) + (busy * float(link.capacity) + drops)[1:] * step
    sums = arrived[: count * each].reshape(count, each).sum(axis=1)
    last = each * np.arange(1, count + 1)
    state, tick = (
        LoadFactor().state_of(sums, average[last], 0.0),
        Arrival(1, period, 0.0, float(link.capacity)),
    )
    return times[last], link.queue.on_tick(state, tick).factor


def estimates(loads: np.ndarray, packets: np.ndarray, *, seed: int = 1) -> np.ndarray:
    """A receiver's estimate by ADPM (section 3.2) at the end of each interval, shape (intervals,).

    Parameters
    ----------
    loads
        The load factor told in each interval.
    packets
        Packets that the receiver gets in each; their hashes are drawn.
    seed
        Of the hashes.
    """
    law, rng, found = ADPM(), np.random.default_rng(seed), np.zeros(len(loads))
    estimate = float(law.lowest)
    for k, (load, count) in enumerate(zip(loads, packets, strict=True)):
        hashes = np.sort(rng.random(round(float(count))))
        told = np.searchsorted(hashes, float(law.distribution(law.coded(load))))
        for hashed in (*hashes[:told][-1:], *hashes[told:][:1]):  # the others tell no more
            estimate += float(law.decode(estimate, float(hashed), float(load)))
        found[k] = estimate
    return found
