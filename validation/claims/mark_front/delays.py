"""Sections 3 and 4: how late marks are heard, and how long geostationary ways are."""

import math

import numpy as np

from fluidcc.laws.law import PathTimes
from fluidcc.scenario.network import forward_delays, link_delays, reverse_delays

from ...bounds.one_connection import FRONT, TAIL, feedback, optimal
from ...lab.judging import judge, searched, shown
from ...lab.measures import pipe_of

EARTH, SECOND_ORDER = 6.378137e6, 3.986004418e14  # radius [m], gravitational constant [m^3/s^2]
DAY, LIGHT = 86164.1, 299792458.0  # sidereal [s], [m/s]


def _sooner(net):
    """How much sooner the front's marks are heard at the queue rd - 1 [s], by the laws' ages."""
    flows, delays = net.flows[0], link_delays(net)
    queued = float(optimal(pipe_of(net))) / float(net.links[0].capacity)
    nearest = [np.min(forward_delays(flows, delays)[0]), np.min(reverse_delays(flows, delays)[0])]
    ahead, back = map(float, nearest)
    way = PathTimes(float(np.min(flows.rtt)) + queued, ahead, queued, back)
    return float(feedback(TAIL).age(way) - feedback(FRONT).age(way))


@judge("MF-06", needs=("ten_leo_tail", "ten_geo_apart_tail"))
def sooner(lab, claim):
    """Whether marks at the front are heard a fixed round trip sooner, at the queue rd - 1, searched
    over ways; the difference in two networks of the paper is told.
    """
    plain, exact = lab.bound("mark_front.delay")["bounds"]
    words = []
    for name in ("ten_leo_tail", "ten_geo_apart_tail"):
        net = lab.experiment(name).net(0)
        saved, fixed = _sooner(net), float(np.min(net.flows[0].rtt))
        words.append(f"by {1000 * saved:.0f} ms at a round trip of {1000 * fixed:.0f} ms")
    return searched([plain], "analytic", "s").noting(
        f"marks are heard sooner {' and '.join(words)}",
        f"{exact['definitions']['sooner']}: {exact['verdict']}",
    )


@judge("MF-26", definition=True)
def geostationary(lab, claim):
    """Twice up and twice down at the speed of light, from the nearest place to the farthest; within
    10 % of the range.
    """
    orbit = (SECOND_ORDER * (DAY / (2 * math.pi)) ** 2) ** (1 / 3)
    ways = orbit - EARTH, math.sqrt(orbit**2 - EARTH**2)
    low, high = (4000 * way / LIGHT for way in ways)
    why = (
        f"{low:.0f} ms to {high:.0f} ms of propagation from below the satellite to the horizon, "
        f"against {claim.value:g} ms"
    )
    right = 0.9 * low <= claim.value <= 1.1 * high
    return shown(right, why, engine="analytic", value=[low, high], unit="ms")
