"""Gain and loss of throughput beside SACK, packet by packet: Qazi et al. (2010), figure 11.

    python validation/gain_and_loss.py

A flow shares 45 Mbit/s with a SACK flow of round trip T: BMCC of the same round trip, or SACK of
10 ms. Gain and loss are throughputs over those of two SACK flows of round trip T. Everything takes
about a minute on two cores.
"""

import dataclasses
from typing import Any

import numpy as np

from fluidcc.analysis.fairness import gain_and_loss
from fluidcc.laws.adpm import ADPM
from fluidcc.packets.accounts.results import PacketRuns
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.files import load
from fluidcc.scenario.network import Flows, Network

TRIPS = (0.02, 0.05, 0.1, 0.2, 0.3)  # s
SHORT = 0.01  # s
SEEDS = range(1, 9)
NEAR = 0.003  # s: link and receiver, one way


def _with_trip(flows: Flows, trip: float) -> Flows:
    """The flows with another propagation delay, kept before the link."""
    changes: dict[str, Any] = {"rtt": np.array([trip]), "access_delay": trip / 2 - NEAR}
    if flows.feedback.loads:
        changes["estimator"] = ADPM()
    return dataclasses.replace(flows, **changes)


def network(name: str, trip: float) -> Network:
    """A pair of figure 11 with buffers of one bandwidth-delay product."""
    net = load(f"qazi2010/gain_{name}")
    trips = {"strong": SHORT} if name == "short" else {}
    pairs = zip(net.flow_names, net.flows, strict=True)
    groups = tuple(_with_trip(flows, trips.get(key, trip)) for key, flows in pairs)
    links = tuple(
        dataclasses.replace(link, buffer=float(link.capacity) * trip) for link in net.links
    )
    return dataclasses.replace(net, links=links, flows=groups)


def measured(name: str, trip: float) -> PacketRuns:
    """Packet runs of a pair."""
    return simulate_packets(network(name, trip), until=150.0, warmup=30.0, seeds=SEEDS)


def main() -> None:
    """Print the table."""
    print(f"{'T [ms]':>6}  {'mix':5} {'gain':>16} {'loss':>16}   goodputs [Mbit/s], baseline, mix")
    for trip in TRIPS:
        baseline = measured("baseline", trip)
        for name in ("bmcc", "short"):
            mix = measured(name, trip)
            out = gain_and_loss(mix, baseline, aggressive="strong", other="weak")
            rates = [
                f"{runs.mean['flows'][key]['goodput'] / 1e6:.2f}"
                for runs in (baseline, mix)
                for key in ("weak", "strong")
            ]
            gain = f"{out.gain:.3f} +- {out.gain_ci95:.3f}"
            loss = f"{out.loss:.3f} +- {out.loss_ci95:.3f}"
            print(f"{1000 * trip:6.0f}  {name:5} {gain:>16} {loss:>16}   {' '.join(rates)}")


if __name__ == "__main__":
    main()
