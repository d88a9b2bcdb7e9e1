"""What a request costs, reckoned before it begins; beyond a bound it is refused."""

import jax
import numpy as np

from fluidcc.errors import Fault, ScenarioError
from fluidcc.model.network_mesh import periods, uniform_mesh
from fluidcc.scenario.network import Network

_AT_ONCE = 200
"""Links and distinct round trips of what is shown at once: some seconds, and 1 GB."""

_IN_A_MAP = 60
"""Links and distinct round trips of a map: some minutes for its points."""

_STEPS = 3e7
"""Steps of a trajectory, times links and distinct round trips: some minutes."""

_EVENTS = 3e8
"""Packets at links, and ticks of laws, of a packet run: some minutes."""


def check_present(net: Network) -> None:
    """Raise ScenarioError for a network whose equilibrium and roots take too long."""
    _require(_size(net), _AT_ONCE, "scenario", "links and distinct round trips to show at once")


def check_map(net: Network) -> None:
    """Raise ScenarioError for a network whose stability map takes too long."""
    _require(_size(net), _IN_A_MAP, "scenario", "links and distinct round trips to map")


def check_trajectory(net: Network, until: float) -> None:
    """Raise ScenarioError for a fluid run that takes too long."""
    step = float(uniform_mesh(net).step)
    size = _size(net)
    what = f"steps of {step:.3g} s, times {size} links and distinct round trips"
    _require(until / step * size, _STEPS, "until", what)


def check_packets(net: Network, until: float) -> None:
    """Raise ScenarioError for a packet run that takes too long."""
    rates = [float(link.capacity) + float(link.cross) for link in net.links]
    rates += [1.0 / period for period in periods(net)]
    _require(until * sum(rates), _EVENTS, "until", "packets at links and ticks of laws")


def structure(net: Network) -> tuple[object, ...]:
    """What programs are compiled for: all of a network but its numbers."""
    leaves, kind = jax.tree.flatten(net)
    return kind, *map(np.shape, leaves)


def _size(net: Network) -> int:
    return len(net.links) + sum(np.size(flows.rtt) for flows in net.flows)


def _require(cost: float, most: float, key: str, what: str) -> None:
    if not cost <= most:
        raise ScenarioError([Fault("", key, f"at most {most:g} {what}", f"{cost:.4g}")])
