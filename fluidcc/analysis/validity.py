"""Validity of the fluid model, from an equilibrium and a trajectory of its own.

The model applies the rules of a law at the mean window. Windows vary, and senders stand still while
a mark is echoed, a pause lasts or a loss is repaired: the equilibrium of their stationary law
(`closure = "population"`) has both, and what it has otherwise is an error of the mean. If its
fluctuations are not small, a mean queue is not that of the rules at a mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.fluctuations import Fluctuations, fluctuations
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.operating_point import Regime, conditions
from fluidcc.analysis.population import moments, stationary_law, why_no_population
from fluidcc.analysis.sending import listens_at_once
from fluidcc.analysis.steady_laws import steady_signal
from fluidcc.laws.law import Ack
from fluidcc.model.delays import explicit_delays, signal_age
from fluidcc.model.fluid import steady
from fluidcc.model.rates import acknowledgement
from fluidcc.programs import leaves, map_tree
from fluidcc.scenario.network import Flows, Link, Network, sees_marks, to_arrays, why_packets

if TYPE_CHECKING:
    from fluidcc.model.simulate import Trajectory

_QUEUE = 0.10  # smallest error of a mean queue that is reported
_SHARE = 0.05  # the same of a share of a link
_FEWEST = 4.0  # packets; three duplicate ACKs, and a halving that leaves more than one
_FEWEST_LOST = 8.0  # packets; below, losses end in timeouts more often than the mean says
_SWING = 0.3  # standard deviation of a queue over its mean
_WHOLE = 0.9  # of a round trip: shorter times of marking are parts of a reaction in the mean
_CROSS = 0.05  # share of a link
_CUT = 0.05  # of a window, by one reaction
_BUSY = 0.4  # utilization from which an empty queue is one of the mean alone
_SHRUNK = 0.1  # w p^w, up to which a flight is that of independent modifications
_ALL_LOST = 0.01  # share of the time in which a queue law may lose everything


def validity_warnings(
    eq: Equilibrium, fluid: Trajectory | None = None, noise: Fluctuations | None = None
) -> tuple[str, ...]:
    """One sentence for each reason for which packets will differ from the fluid model.

    None of them: the mean queue should be right within 10 %, the throughputs within 5 %. Of a
    hundred random networks beside packets 68 have none: 66 of these are, two miss the queue by 11
    and 12 % (`validation/random_networks.py`).

    Parameters
    ----------
    eq
        The equilibrium of a network.
    fluid
        Its trajectory, which tells more: cycles, and what they lose.
    noise
        The fluctuations of its population, if they are known already.
    """
    reasons = [*filter(None, [why_packets(eq.net)]), *_of_links(eq), *_of_flows(eq)]
    known = eq.status not in ("none", "undetermined", "continuum")
    if known and eq.net.closure == "mean":
        noise = noise or fluctuations(eq.net)
        reasons += _of_windows(eq, noise.equilibrium)
        if noise.status == "refused" and math.isfinite(noise.margin):  # a loop, but not small
            reasons.append(noise.message)
    if fluid is not None:
        reasons += _of_trajectory(fluid)
    elif eq.sliding:
        links = ", ".join(f"links.{name}" for name in eq.sliding)
        reasons.append(f"{links}: at a discontinuity, about which the mean of a cycle may differ")
    elif eq.switching:
        reasons.append("rules of senders jump at their windows, and the mean of a cycle may differ")
    return tuple(reasons)


def _of_links(eq: Equilibrium) -> Iterator[str]:
    """Equilibria that bursts of packets decide."""
    if eq.status in ("none", "undetermined", "continuum"):
        yield f"the equilibrium has the status {eq.status}: it does not determine the queues"
        return
    yield from _of_fair_links(eq)
    net = to_arrays(eq.net)
    for k, (name, found) in enumerate(eq.links.items()):
        code, law = int(eq.op.codes[k]), net.links[k].queue
        if code == Regime.FULL:
            yield f"links.{name}: losses at a full buffer come in bursts, in the fluid model evenly"
        if found.queue <= 0 and _BUSY < found.utilization:
            yield (
                f"links.{name}: the queue is empty at a utilization of {found.utilization:.3g}; "
                "bursts of packets make a queue"
            )
        if law.loads and name in eq.sliding:
            yield (
                f"links.{name}: senders switch at a load factor of 1, and in packets those of "
                "single periods vary about it"
            )
        if float(net.links[k].cross) > _CROSS * float(net.links[k].capacity):
            yield f"links.{name}: cross traffic varies, in the fluid model its rate is constant"
        beside, weight = net.links[k].beside, net.links[k].weight
        if beside is not None and weight is not None and found.utilization > float(weight):
            yield (
                f"links.{name}: takes {found.utilization:.3g} of its transmitter, more than its "
                f"weight of {float(weight):g}; in the fluid model it is always served first"
            )
        if _voice(net.links[k]) > _CROSS * float(net.links[k].capacity):
            yield f"links.{name}: voice calls vary, in the fluid model their load is constant"
        if math.isfinite(float(eq.op.escapes[k])):
            yield f"links.{name}: packets may stay at longer queues, where it is overloaded again"
        if code == Regime.JUMP and name in eq.sliding and not leaves(eq.op.laws[k]):
            yield from _parts(eq, net, k)
        if code == Regime.JUMP and name in eq.sliding and _drops(net.links[k], float(found.queue)):
            yield (
                f"links.{name}: above this queue every packet is dropped; in packets single ones "
                "pass it, in the fluid model all do at once"
            )


def _of_fair_links(eq: Equilibrium) -> Iterator[str]:
    """Queues of fair links that leave others a part of their share."""
    net = (eq.asked or eq.net).by_group
    for k in (k for k, link in enumerate(net.links) if link.fair):
        own, *others = (
            eq.links[net.link_names[j]].utilization
            for j in (k, *net.served_with(k)) if net.link_names[j] in eq.links
        )  # fmt: skip
        if own < 1 - _SHARE and max(others, default=0.0) > own + _SHARE:
            yield (
                f"links.{net.link_names[k]}: uses {own:.3g} of its share of the fair link, whose "
                "other queues take the rest; in the fluid model each has its share alone"
            )


def _voice(link: Link) -> float:
    """Mean load of the voice calls on a link [packet/s]."""
    return 0.0 if link.voice is None else float(link.voice.mean(link.packet_size))


def _parts(eq: Equilibrium, net: Network, k: int) -> Iterator[str]:
    """Whether marking above the jump of link k ends before a round trip, or a law's round, is
    over.
    """
    queues = tuple(map(float, eq.op.queues))
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if k not in flows.route or flows.window.loads or listens_at_once(flows):
            continue
        trip = explicit_delays(net, flows, queues).trips[flows.route.index(k)]
        age = signal_age(flows, net.links[k], trip)
        rounds = flows.window.rounds(Ack(0.0, 0.0, trip.round_trip))
        loop = np.asarray((age + trip.forward) / trip.round_trip * rounds)
        span = "round trip" if isinstance(rounds, int) else "round"
        if float(np.min(loop)) < _WHOLE:
            yield (
                f"flows.{name}: links.{net.link_names[k]} marks for {np.min(loop):.2g} of a "
                f"{span}, in which the fluid model has a part of a reaction and packets a whole one"
            )


def _drops(link: Link, queue: float) -> bool:
    """Whether the law of a link drops from its jump at a queue on."""
    at_random = 0.0 if link.random_loss is None else float(link.random_loss)
    return float(steady_signal(link, 1.001 * queue + 1e-6).drop) > at_random


def _of_flows(eq: Equilibrium) -> Iterator[str]:
    """Windows of too few packets, and sources that come in bursts."""
    for name, flows in zip(eq.net.flow_names, eq.net.flows, strict=True):
        if flows.traffic.starts:
            yield f"flows.{name}: transfers come in bursts, in the fluid model evenly"
        if name not in eq.flows or not np.all(np.isfinite(eq.flows[name].window)):
            continue
        low, given = (
            float(np.min(eq.flows[name].window)),
            float(np.max(eq.flows[name].mark_probability)),
        )
        losses = not sees_marks(flows)
        if given > 0 and low < (_FEWEST_LOST if losses else _FEWEST):
            yield (
                f"flows.{name}: windows of {low:.3g} packets; "
                + ("losses end in timeouts" if losses else "reactions are steps of whole packets")
            )
        if not flows.feedback.on_data and low * given**low > _SHRUNK:
            yield (
                f"flows.{name}: w p^w is {low * given**low:.2g}, above {_SHRUNK:g}: rewritten "
                "windows hold packets back in runs"
            )


def _of_windows(eq: Equilibrium, settled: Equilibrium) -> Iterator[str]:
    """Queues and shares of links that the stationary law of the windows has otherwise."""
    if settled.status in ("none", "undetermined", "continuum"):
        if len({type(flows.window) for flows in eq.net.flows}) > 1:
            why = settled.message.partition("; next: ")[0]
            yield f"windows vary in each law differently: shares of groups are unknown ({why})"
        yield from _of_unknown_windows(eq)
        return
    net = to_arrays(eq.net)
    for k, (name, found) in enumerate(eq.links.items()):
        adapts = leaves(eq.op.laws[k]) and not _drops(net.links[k], found.queue)
        if int(eq.op.codes[k]) == Regime.JUMP and name in eq.sliding and adapts:
            swing = _swing(settled, k)
            if not swing <= _QUEUE * found.queue:
                yield (
                    f"links.{name}: its law adapts up on one side of this queue and down on the "
                    f"other; windows of packets move the queue by some {swing:.2g} packets, so "
                    "that both need not balance as in the fluid model"
                )
        queue = settled.links[name].queue
        error = found.queue / queue - 1 if queue > 0 else math.inf
        if max(found.queue, queue) > 1 and abs(error) > _QUEUE:
            yield (
                f"links.{name}: windows vary and senders stand still after a reaction; with both, "
                f"the equilibrium has a queue of {queue:.4g} packets: that of the mean window is "
                f"{_off(found.queue, queue)}"
            )
    for flows, (name, group) in zip(eq.net.flows, eq.flows.items(), strict=True):
        rates = group.rate, settled.flows[name].rate
        rate, own = (float(mean_over_flows(flows.n, v)) for v in rates)
        if abs(rate / own - 1) > _SHARE:
            yield (
                f"flows.{name}: with windows that vary its flows have rates of {own:.4g} "
                f"packet/s: that of the mean window is {_off(rate, own)}"
            )


def _of_unknown_windows(eq: Equilibrium) -> Iterator[str]:
    """Windows without a known stationary law that reactions move far, and rates, whose variations
    add up in a queue.
    """
    net = to_arrays(eq.net)
    for name, flows, s in zip(net.flow_names, net.flows, eq.op.senders, strict=True):
        law, why = flows.window, why_no_population(flows)
        signal, rtt = conditions(net, eq.op, flows)
        if not why or not np.any(signal.mark + signal.drop > 0):
            continue
        ack = acknowledgement(flows, s, signal, rtt)
        rule = law.on_mark if np.any(signal.mark > 0) else law.on_loss
        cut = float(np.max(-law.window(rule(s.law, ack)) / law.window(s.law)))
        if law.rate_based:
            yield (
                f"flows.{name}: rates vary with each reaction, and the queue sums up by how much, "
                f"which is not known: {why}"
            )
        elif cut > _CUT:
            yield (
                f"flows.{name}: a reaction takes {cut:.0%} of a window; by how much windows vary "
                f"is not known: {why}"
            )


def _off(value: float, other: float) -> str:
    """How far a value is above or below another."""
    if not other > 0:
        return f"{value:.4g}"
    return f"{abs(value / other - 1):.0%} too {'high' if value > other else 'low'}"


def _swing(settled: Equilibrium, k: int) -> float:
    """Standard deviation of the flights of all flows over link k [packet], without a loop."""
    net, op, squares = steady(settled.net), settled.op, 0.0
    for flows in net.flows:
        if k not in flows.route:
            continue
        law = stationary_law(flows, *map_tree(lambda v: v[:1], conditions(net, op, flows)))
        squares += float(np.sum(flows.n)) * moments(law).flight_std ** 2
    return math.sqrt(squares)


def _number(flows: Flows) -> float:
    return float(np.sum(np.asarray(flows.n))) * float(flows.traffic.sources())


def _of_trajectory(fluid: Trajectory) -> Iterator[str]:
    """Swings, and times in which everything is lost."""
    late, several = fluid.time >= fluid.time[-1] / 2, sum(map(_number, fluid.net.flows)) > 1
    for name, run in fluid.links.items():
        queue, dropped = run.queue[late], run.drop_fraction[late]
        if not np.all(np.isfinite(queue)):
            continue
        if several and queue.mean() > 1 and queue.std() > _SWING * queue.mean():
            yield (
                f"links.{name}: the queue of the fluid model oscillates, with a standard deviation "
                f"of {queue.std() / queue.mean():.0%} of its mean: its flows are in step, those of "
                "packets are not"
            )
        lost = float(np.mean(dropped > 0.5))
        if lost > _ALL_LOST:
            yield (
                f"links.{name}: for {lost:.0%} of the time the fluid model loses most packets, of "
                "all flows at once"
            )
