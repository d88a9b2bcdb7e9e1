"""The mean of many packets under a rule versus the fluid model's drift.

Reactions are random: their means are compared with the drift within 5 standard errors of a run with
a fixed seed (a right rule fails one seed in two million). Spreading and averaging are not: their
means are computed as such.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidcc.arrays import jax, jnp
from fluidcc.check.assertions import Why
from fluidcc.check.cases import Case
from fluidcc.laws.law import (
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Signal,
    Since,
)
from fluidcc.laws.parameters import parameter_values
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.model.rates import (
    deciding_rate,
    queue_law_rate,
    reaction_shares,
    scaled,
    sender_change,
    start_sender,
    summed,
)
from fluidcc.programs import leaves, slope
from fluidcc.scenario.network import Flows, Link

RTT = 0.25  # s; with windows of powers of two, ACKs come at exact binary fractions of it
POINTS = ((0.02, 16), (0.3, 8))
"""Probabilities of a mark, and windows [packet]."""
SEED = 20261

_ERRORS = 5
_NUMBERS = (np.arange(1000.0) + 0.5) / 1000
_PACE = 40.0  # ACKs per second, of all the flows' rates
_FARTHEST = 100_000  # packets from one signal to the next


_PROPORTIONAL = 0.01  # of a change; rules that divide by a growing window differ by less


def sender(window: AbstractWindowLaw, reaction: AbstractReaction) -> Iterator[Why]:
    """Faults of the means of a window law and of a reaction."""
    for p, w in POINTS:
        acks = w / float(window.rounds(Ack(1.0, 0.0, RTT)))  # in a round
        counts = counts_per_block(reaction, p, round(acks))
        yield shares_are_means(reaction, p, acks, counts)
        yield drift_is_mean(window, reaction, p, w, counts)


def _seen(length: float) -> Arrival:
    return Arrival(1.0, 0.001, length, 1250.0, buffer=200.0)


def queue(law: AbstractQueueLaw) -> Iterator[Why]:
    """Faults of the memory of a queue law, and of the gap probabilities of its signals."""
    yield memory_follows_its_drift(law)
    for length in (5.0, 30.0, 60.0, 120.0):
        seen = _seen(length)
        yield from (chances_meet_the_rate(law, x, seen) for x in law.initial_states(length))


def drawn(law: Any) -> Iterator[Why]:
    """Faults of the means of rules that draw a random number: those over many numbers."""
    window = isinstance(law, AbstractWindowLaw)
    event = Ack(1.0, 0.004, RTT, 0.9, 0.3, 0.1) if window else _seen(30.0)
    for method in getattr(law, "draws", ()):
        for number in (4.0, 60.0):
            rule, state = getattr(law, method), law.start(number)
            many = [leaves(rule(state, event._replace(random=u))) for u in _NUMBERS]
            for k, mean in enumerate(leaves(rule(state, event))):
                values = np.array([float(each[k]) for each in many])
                if abs(values.mean() - mean) > np.ptp(values) / len(values) + 1e-12:
                    yield (
                        f"{law.name}.{method}: its mean over `random` is {values.mean():.6g} by "
                        f"{len(values)} numbers, the fluid has {float(mean):.6g}"
                    )


def counts_per_block(reaction: AbstractReaction, p: float, w: int) -> np.ndarray:
    """(growing ACKs, reactions) in each of many blocks of ACKs under a reaction's own rules.

    The window is held at w and the ACKs are spaced RTT/w. `once_per_rtt` states its mean for
    blocks of w ACKs, so its window of data ends with the block; the blocks of the others are
    long enough to hold many reactions.
    """
    fixed = isinstance(reaction, OncePerRTT)
    blocks, length = (4000, w) if fixed else (100, 50 * w)
    growing, ready = Case(reaction, "growing").sympy, Case(reaction, "ready").sympy
    own = parameter_values(reaction)
    marks = np.random.default_rng(SEED).random((blocks, length)) < p
    counts, since = np.zeros((blocks, 2)), 10**9
    for block in range(blocks):
        reacted = False
        for marked in marks[block].tolist():
            since += 1
            time = Since(since * RTT / w, RTT, 0.0 if fixed and reacted else 1.0)
            counts[block, 0] += growing(*time, float(marked), *own)[0]
            if marked and ready(*time, *own)[0]:
                counts[block, 1] += 1
                since, reacted = 0, True
    return counts / length


def off_the_mean(samples: np.ndarray, expected: float, what: str) -> Why:
    """Why the mean of samples is not the expected one, if it is not."""
    mean, error = samples.mean(), samples.std(ddof=1) / np.sqrt(len(samples))
    if abs(mean - expected) <= _ERRORS * error + 1e-12:
        return None
    return (
        f"{what}: the mean of the packets is {mean:.6g} +- {_ERRORS * error:.2g} "
        f"({_ERRORS} standard errors), the fluid has {expected:.6g}"
    )


def shares_are_means(reaction: AbstractReaction, p: float, w: float, counts: np.ndarray) -> Why:
    """The shares of a reaction are the means of its rules."""
    shares, name = reaction.shares(p, float(w), RTT), f"{reaction.name} at p = {p:g}, W = {w}"
    return off_the_mean(counts[:, 0], float(shares.growing), f"{name}, ACKs that let grow") or (
        off_the_mean(counts[:, 1], float(shares.reacting), f"{name}, marks that count per ACK")
    )


def drift_is_mean(
    law: AbstractWindowLaw, reaction: AbstractReaction, p: float, w: int, counts: np.ndarray
) -> Why:
    """The fluid drift of the window is the mean change by the packets' events; laws that packets
    meet in another form have a mean of their own.
    """
    if type(law.in_packets()) is not type(law):
        return None
    ack = Ack(1.0, 0.0, RTT, 0.9, p)
    flows = Flows(law, n=np.ones(1), rtt=np.array([RTT]), reaction=reaction)
    signal = Signal(*(np.array([v]) for v in (p, 0.0, 0.9)))
    acks, window = np.array([_PACE]), np.array([float(w)])
    shares = reaction_shares(flows, signal, window, flows.rtt)
    rate = sender_change(
        flows, start_sender(flows, window), growth=acks * shares.growing, acks=acks, carried=acks,
        signal=signal, rtt=flows.rtt,
    ).law  # fmt: skip
    s = law.start(float(w))
    jumps = [float(law.window(change)) for change in (law.on_ack(s, ack), law.on_mark(s, ack))]
    grown = slope(lambda k: law.on_ack(s, Ack(0.0, k, RTT, 0.9, p)))
    changes = _PACE * (counts @ np.array(jumps)) + float(law.window(grown))
    what = f"{law.name} with {reaction.name} at p = {p:g}, W = {w}, change of the window [packet/s]"
    fault = off_the_mean(changes, float(law.window(rate)[0]), what)
    if fault is None:
        return None
    by_count = slope(lambda k: law.on_ack(s, Ack(k, 0.0, RTT, 0.9, p)))
    one, slight = jumps[0], float(law.window(by_count))
    if abs(one - slight) <= _PROPORTIONAL * abs(one):
        return fault
    return (
        f"{fault}; on_ack is not proportional to ack.count: one packet changes the window by "
        f"{one:.4g}, small parts of one, as the fluid has them, by {slight:.4g} per packet"
    )


def mean_gap(law: AbstractQueueLaw, x: Any, seen: Arrival) -> float:
    """Mean number of packets from one signal to the next, by the gap probabilities."""
    mean, left = 0.0, 1.0
    for gap in range(1, _FARTHEST):
        mean += left
        left *= 1 - float(law.gap_probability(x, seen, float(gap)))
        if left < 1e-12:
            return mean
    return float("nan")


def chances_meet_the_rate(law: AbstractQueueLaw, x: Any, seen: Arrival) -> Why:
    """`gap_probability` gives signals at the rate of `signal`, to one packet between two."""
    mark = float(law.signal(x, seen).mark)
    if not 0.001 < mark <= 1:
        return None
    gap = mean_gap(law, x, seen)
    if abs(gap - 1 / mark) <= 1 + 1e-9:
        return None
    return (
        f"{law.name}.gap_probability at a queue of {seen.queue:g} packets: {gap:.6g} packets from "
        f"mark to mark, by signal() {1 / mark:.6g}"
    )


def memory_follows_its_drift(law: AbstractQueueLaw, queue: float = 60.0) -> Why:
    """Packet after packet at a constant queue, the memory moves as the fluid's does."""
    capacity, offered, count = 1250.0, 1500.0, 64
    link = Link(law, capacity=capacity, buffer=200.0)
    pace = float(law.sampling_rate(deciding_rate(link, queue, offered), capacity))
    x = fluid = law.start(20.0)
    seen = link.arrival(1.0, 1 / pace, queue)
    for _ in range(count):
        x = summed(x, law.move_memory(x, seen))
        x = summed(x, scaled(law.signal(x, seen).either, law.on_signal(x, seen)))

    @functools.partial(jax.jit, static_argnums=1)
    def course(x: Any, fine: int) -> Any:
        def moved(x: Any, h: float, rate: Any) -> Any:
            return jax.tree.map(lambda v, r: v + h * r, x, rate)

        def step(_: Any, x: Any) -> Any:
            h = 1 / (pace * fine)
            begin = queue_law_rate(link, x, queue, offered)
            middle = queue_law_rate(link, moved(x, h / 2, begin), queue, offered)
            return moved(x, h, middle)

        return jax.lax.fori_loop(0, count * fine, step, x)

    begun = jax.tree.map(lambda v: jnp.asarray(v, float), fluid)
    for fine in (64, 4096):  # more steps for memories that forget between two packets
        fluid = course(begun, fine)
        if all(np.isfinite(v).all() for v in jax.tree.leaves(fluid)):
            break
    pairs = zip(jax.tree.leaves(x), jax.tree.leaves(fluid), strict=True)
    for k, (packets, drifted) in enumerate(pairs):
        size = max(abs(float(packets)), abs(float(drifted)), 1e-9)
        if not abs(float(packets) - float(drifted)) <= 1e-5 * size:
            return (
                f"{law.name}.{law.packet_rule}: after {count} packets at a queue of {queue:g} the "
                f"memory {law.symbols[k]} is {float(packets):.6g}, "
                f"by the fluid {float(drifted):.6g}"
            )
    return None
