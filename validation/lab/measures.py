"""Quantities that the figures and the claims of a paper take from the same runs."""

import dataclasses

import numpy as np

from fluidcc.scenario.network import Network

from .samples import Runs


def goodputs(runs: Runs) -> list[np.ndarray]:
    """Goodputs of all flows [bit/s]: of each point an array of shape (seeds, flows)."""
    groups = runs.experiment.net(0).flow_names
    each = [runs.each(f"flows.{group}.flow_goodput") for group in groups]
    return [np.concatenate(parts, axis=-1) for parts in zip(*each, strict=True)]


def link_efficiency(runs: Runs) -> np.ndarray:
    """Goodput of all flows over the rate of the slowest link, shape (points, seeds)."""
    nets = [runs.experiment.net(k) for k in range(len(runs.x))]
    rates = [8 * min(float(k.capacity * k.packet_size) for k in net.links) for net in nets]
    return np.array([g.sum(axis=-1) for g in goodputs(runs)]) / np.array(rates)[:, None]


def unfair(shares: np.ndarray) -> np.ndarray:
    """One less Jain's index, 1 - (sum x)^2 / (n sum x^2), along the last axis."""
    return 1 - shares.sum(axis=-1) ** 2 / (shares.shape[-1] * (shares**2).sum(axis=-1))


def flow_unfairness(runs: Runs) -> np.ndarray:
    """One less Jain's index of the goodputs, shape (points, seeds)."""
    return np.array([unfair(each) for each in goodputs(runs)])


def pipe_of(net: Network) -> float:
    """Packets that the first link sends in the shortest fixed round trip of the first group."""
    return float(net.links[0].capacity) * float(np.min(net.flows[0].rtt))


def first_link(net: Network) -> Network:
    """The network of the first link alone: the same equations where the queues behind are empty."""
    flows = tuple(dataclasses.replace(f, route=f.route[:1]) for f in net.flows)
    return dataclasses.replace(net, links=net.links[:1], link_names=net.link_names[:1], flows=flows)
