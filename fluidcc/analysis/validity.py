"""Validity of the fluid model, from an equilibrium and a trajectory of its own.

The model applies the rules of a law at the mean window, for independent marks. Its error is known
for steady marks: senders need fewer of them in packets than the mean says, as windows vary
and as senders stand still while a mark is echoed or a pause lasts. Through the slope of a queue law
this is an error of the mean queue, and between laws one of their shares of the link.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.optimize

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.operating_point import Regime
from fluidcc.analysis.steady_laws import (
    WeightedSignal,
    per_flow,
    source_rate,
    steady_sender,
    steady_signal,
)
from fluidcc.analysis.window_distribution import (
    WindowDistribution,
    mark_at,
    sees_marks,
    window_distribution,
)
from fluidcc.laws.law import Since
from fluidcc.model.delays import explicit_delays
from fluidcc.model.rates import received
from fluidcc.programs import leaves
from fluidcc.scenario.network import Flows, Link, Network, stands_still, to_arrays

if TYPE_CHECKING:
    from fluidcc.model.simulate import Trajectory

_QUEUE = 0.10  # smallest error of a mean queue that is reported
_SHARE = 0.05  # the same of a share of a link
_ENOUGH, _TRIES = 1e-3, 12  # relative, in the search for the marks of a window
_FEWER = 0.1  # of the marks, from the first to the second guess
_FEWEST = 4.0  # packets; three duplicate ACKs, and a halving that leaves more than one
_FEWEST_LOST = 8.0  # packets; below, losses end in timeouts more often than the mean says
_SWING = 0.3  # standard deviation of a queue over its mean
_WHOLE = 0.9  # of a round trip: shorter times of marking are parts of a reaction in the mean
_CROSS = 0.05  # share of a link
_BUSY = 0.5  # utilization from which an empty queue is one of the mean alone
_SHRUNK = 0.1  # w p^w, up to which a flight is that of independent modifications
_ALL_LOST = 0.01  # share of the time in which a queue law may lose everything

_JUST = Since(time=0.5, round_trip=1.0, window=0.0)  # a reaction is less than a round trip ago


def validity_warnings(eq: Equilibrium, fluid: Trajectory | None = None) -> tuple[str, ...]:
    """One sentence for each reason for which packets will differ from the fluid model.

    None of them: the mean queue should be right within 10 %, the throughputs within 5 %.

    Parameters
    ----------
    eq
        The equilibrium of a network.
    fluid
        Its trajectory, which tells more: cycles, and what they lose.
    """
    reasons = [*_of_links(eq), *_of_flows(eq)]
    known = eq.status not in ("none", "undetermined", "continuum")
    if known and eq.net.closure == "mean":
        reasons += _of_signals(eq)
    if fluid is not None:
        reasons += _of_trajectory(fluid)
    elif eq.sliding:
        links = ", ".join(f"links.{name}" for name in eq.sliding)
        reasons.append(f"{links}: held at a jump, where the mean of a cycle may be another one")
    return tuple(reasons)


def _of_links(eq: Equilibrium) -> Iterator[str]:
    """Equilibria that bursts of packets decide."""
    if eq.status in ("none", "undetermined", "continuum"):
        yield f"the status is {eq.status}: the equilibrium does not say where packets are"
        return
    net = to_arrays(eq.net)
    for k, (name, found) in enumerate(eq.links.items()):
        code, law = int(eq.op.codes[k]), net.links[k].queue
        if code == Regime.FULL:
            yield f"links.{name}: losses at a full buffer come in bursts, here they are even"
        if found.queue <= 0 and _BUSY < found.utilization:
            yield (
                f"links.{name}: the queue is empty at a utilization of {found.utilization:.3g}; "
                "bursts of packets make one"
            )
        if law.loads and name in eq.sliding:
            yield (
                f"links.{name}: senders switch at full load, and in packets the load factors of "
                "single periods vary about it"
            )
        if float(net.links[k].cross) > _CROSS * float(net.links[k].capacity):
            yield f"links.{name}: cross traffic comes in packets and files, here it is even"
        if _voice(net.links[k]) > _CROSS * float(net.links[k].capacity):
            yield f"links.{name}: voice calls come, go and pause, here their mean load is even"
        if math.isfinite(float(eq.op.escapes[k])):
            yield f"links.{name}: packets may stay at longer queues, where it is overloaded again"
        if code == Regime.JUMP and name in eq.sliding and not leaves(eq.op.laws[k]):
            yield from _parts(eq, net, k)
        if code == Regime.JUMP and name in eq.sliding and _drops(net.links[k], float(found.queue)):
            yield (
                f"links.{name}: above this queue everything is dropped; packets pass it one by "
                "one, here all do at once"
            )


def _voice(link: Link) -> float:
    """Mean load of the voice calls on a link [packet/s]."""
    return 0.0 if link.voice is None else float(link.voice.mean(link.packet_size))


def _parts(eq: Equilibrium, net: Network, k: int) -> Iterator[str]:
    """Whether marking above the jump of link k ends before a round trip is over."""
    queues = tuple(eq.links[name].queue for name in net.link_names)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if k not in flows.route or flows.window.loads or not _deaf(flows):
            continue
        trip = explicit_delays(net, flows, queues).trips[flows.route.index(k)]
        loop = np.asarray(flows.feedback.age(trip) + trip.forward) / np.asarray(trip.round_trip)
        if float(np.min(loop)) < _WHOLE:
            yield (
                f"flows.{name}: marks of links.{net.link_names[k]} last for {np.min(loop):.2g} of "
                "a round trip, which is part of a reaction in the mean and a whole one in packets"
            )


def _drops(link: Link, queue: float) -> bool:
    """Whether the law of a link drops from its jump at a queue on."""
    return float(steady_signal(link, 1.001 * queue + 1e-6).drop) > 0


def _of_flows(eq: Equilibrium) -> Iterator[str]:
    """Windows of too few packets, and sources that come in bursts."""
    for name, flows in zip(eq.net.flow_names, eq.net.flows, strict=True):
        if flows.traffic.starts:
            yield f"flows.{name}: transfers come in bursts, here they are even"
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


def _in_packets(flows: Flows, window: float) -> WindowDistribution | None:
    """The windows of packets whose mean over time is the one given, at the marks that it takes.

    None where they are not known: for losses, and for laws with more memory than a window.
    """
    law, reaction = flows.window, flows.reaction
    if not (flows.feedback.marks and sees_marks(flows)) or window > 0.999 * float(law.max_window):
        return None

    def found(log_p: float) -> WindowDistribution:
        return window_distribution(
            law, math.exp(log_p), reaction=reaction, quiet=stands_still(flows)
        )

    def gap(log_p: float) -> float:
        return math.log(found(log_p).time_mean / window)

    try:
        first = math.log(mark_at(law, window, reaction=reaction))
        beside = first - _FEWER
        root = scipy.optimize.root_scalar(gap, x0=first, x1=beside, xtol=_ENOUGH, maxiter=_TRIES)
        return found(root.root) if root.converged else None
    except ValueError:
        return None


def excess(flows: Flows, window: float) -> float:
    """Marks that the fluid has more than packets at a window, relative to these.

    The stationary law of the window says it: windows vary, and stand still in a pause or while a
    mark is echoed until the sender confirms it. Packets of NewReno at windows of 31, 15, 7.5 and 5
    give 0.26, 0.44, 0.74 and 1.05; this says 0.28, 0.40, 0.64 and 0.88. 0 where it is not known:
    for losses, and for laws with more memory than a window.
    """
    return _too_many(flows, window, _in_packets(flows, window))


def _too_many(flows: Flows, window: float, found: WindowDistribution | None) -> float:
    if found is None:
        return 0.0
    return mark_at(flows.window, window, reaction=flows.reaction) / found.mark_probability - 1


def _deaf(flows: Flows) -> bool:
    """Whether senders do not react for a while after a reaction."""
    return not float(flows.reaction.ready(_JUST)) > 0


def _of_signals(eq: Equilibrium) -> Iterator[str]:
    """Errors of queues and of shares of links from too many marks."""
    net = to_arrays(eq.net)
    groups = list(zip(net.flow_names, net.flows, strict=True))
    known = [(name, flows) for name, flows in groups if not flows.window.loads]
    if not known or len(known) < len(groups):
        return
    means = {n: float(np.mean(eq.flows[n].window)) for n, _ in known}
    windows = {n: _in_packets(f, means[n]) for n, f in known}
    over = {n: _too_many(f, means[n], windows[n]) for n, f in known}
    for k, (name, found) in enumerate(eq.links.items()):
        here = [n for n, f in known if k in f.route]
        adapts = leaves(eq.op.laws[k]) and not _drops(net.links[k], found.queue)
        if int(eq.op.codes[k]) == Regime.JUMP and name in eq.sliding and adapts:
            varying = [(_number(f), windows[n]) for n, f in known if n in here]
            yield from _of_a_switch(name, found.queue, varying)
        if int(eq.op.codes[k]) != Regime.INTERIOR or not here or not found.mark_probability > 0:
            continue
        loads = [float(np.sum(eq.flows[n].rate * np.asarray(f.n))) for n, f in known if n in here]
        marks = float(np.average([over[n] for n in here], weights=loads))
        queue = _queue_at(net.links[k], found.queue, found.mark_probability / (1 + marks))
        if found.queue / queue - 1 > _QUEUE:
            yield (
                f"links.{name}: with windows of "
                + ", ".join(f"{means[n]:.3g}" for n in here)
                + f" packets the fluid has some {marks:.0%} too many marks, which alone makes "
                f"its queue {found.queue / queue - 1:.0%} too long"
            )
    if len({f.route for _, f in known}) == 1 < len(known):
        yield from _of_shares(eq, dict(known), over)


def _of_a_switch(
    name: str, queue: float, varying: list[tuple[float, WindowDistribution | None]]
) -> Iterator[str]:
    """Whether the windows of packets carry a queue to both sides of where its law adapts.

    They vary as independent ones do, each group's `(number, window)`. Packets of Reno under PI at
    windows of 15.8 move a queue by 41 +- 18 packets, this says 49.
    """
    if sum(number for number, _ in varying) <= 1 or any(w is None for _, w in varying):
        return
    swing = math.sqrt(sum(number * w.variance for number, w in varying if w is not None))
    if swing > _QUEUE * queue:
        yield (
            f"links.{name}: its law settles where it turns round, and windows of packets move the "
            f"queue by some {swing:.2g} packets to both sides, which need not balance as here"
        )


def _queue_at(link: Link, longest: float, signal: float) -> float:
    """The queue [packet] at which a link gives a smaller signal."""
    tried = np.linspace(0.0, longest, 201)
    given = np.broadcast_to(steady_signal(link, tried).either, tried.shape)
    return max(float(np.interp(signal, given, tried)), 1e-9)


def _of_shares(eq: Equilibrium, known: dict[str, Flows], over: dict[str, float]) -> Iterator[str]:
    """Groups on one route whose marks are off by different factors."""
    rates, packets = {}, {}
    for name, flows in known.items():
        if flows.traffic.starts or not flows.feedback.on_data:
            continue
        found = eq.flows[name]
        own = received(flows, tuple(eq.op.signals[k] for k in flows.route))
        if not float(own.either) > 0:
            continue
        n, rtt = np.asarray(flows.n), np.asarray(found.rtt)
        mark, drop = (min((1 + over[name]) * float(v), 1.0) for v in (own.mark, own.drop))
        cases = [WeightedSignal(1.0, per_flow(own._replace(mark=mark, drop=drop), rtt))]
        s = steady_sender(flows, cases, rtt, growth_on_all_acks=eq.net.rates == "mgt")
        rates[name] = float(np.sum(found.rate * n))
        packets[name] = float(np.sum(source_rate(flows, s, cases, rtt) * n))
    total = sum(rates.values()) / sum(packets.values()) if packets else math.nan
    for name, rate in rates.items():
        error = rate / (packets[name] * total) - 1
        if abs(error) > _SHARE:
            yield (
                f"flows.{name}: the fluid model overestimates marking, by different factors "
                f"for the groups: this group's share of the link is about {abs(error):.0%} too "
                f"{'high' if error > 0 else 'low'}"
            )


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
                f"links.{name}: the queue of the fluid swings by {queue.std() / queue.mean():.0%} "
                "of its mean: all flows are in step there, those of packets are not"
            )
        lost = float(np.mean(dropped > 0.5))
        if lost > _ALL_LOST:
            yield (
                f"links.{name}: for {lost:.0%} of the time most packets are lost, of all flows at "
                "once"
            )
