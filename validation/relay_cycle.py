"""Switching cycles under step marking, from the law's own rates.

A link that marks every packet above a queue and none below is a relay: windows grow until marks
arrive, and fall until they cease, one signal delay after the queue crossed the step each time.
For one class of self-clocked flows the ACKs come at C/N as long as the link is busy, and the queue
is N W - C T. So the cycle follows from two integrals of one variable, the window.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.integrate import quad, solve_ivp

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.operating_point import Regime
from fluidcc.analysis.steady_laws import past_slow_start, per_flow, steady_signal
from fluidcc.laws.law import Ack, Signal, Since
from fluidcc.model.delays import explicit_delays
from fluidcc.model.fluid import as_fluid
from fluidcc.model.rates import growing_rate, received, sender_change
from fluidcc.ops import Num
from fluidcc.programs import leaves, write_out
from fluidcc.scenario.network import Flows, Link, Network, to_arrays

_TOLERANCE = 1e-12
_SIGNAL, _QUIET = Signal(mark=1.0), Signal()


@dataclasses.dataclass(frozen=True)
class RelayCycle:
    """A switching cycle around a step of the marking.

    `period` [s]; `delay` [s] from a signal to the change it causes in the queue; least and largest
    `window` of one flow and `queue` [packet], whose average is the queue itself. It holds up to the
    buffer, and while the queue does not run empty (`valid`): then the link is always busy. It is
    `exact` if the network uses `model.rates = "self_clocked"`, with `model.delay = "fifo"` unless
    marks are set at the front. `message` says why it does not hold.
    """

    period: float
    delay: float
    window: tuple[float, float]
    queue: tuple[float, float]
    valid: bool
    exact: bool
    message: str


def _pace(link: Link, flows: Flows, signal: Signal, carried: Num, window: Num) -> Num:
    """Change of the window (1,) per second at ACKs of rate C/N, all of them with `signal`.

    `carried` is the share of them to which senders may react.
    """
    emitted = received(flows, (per_flow(signal, window),))
    rate = link.capacity / flows.n
    s = past_slow_start(flows, window)
    change = sender_change(
        flows, s, growth=growing_rate(flows, s, emitted, rate, window / rate), acks=rate,
        carried=rate * carried, signal=emitted, rtt=window / rate,
    )  # fmt: skip
    return flows.window.window(change.law)


class _Windows:
    """The window over time while all ACKs are marked, or none."""

    def __init__(self, net: Network, signal: Signal, carried: float = 1.0) -> None:
        self._net, flows = net, net.flows[0]
        held = net.links[0], flows, signal, carried
        self._pace = write_out(_pace, held, (flows.rtt,))

    def pace(self, window: float) -> float:
        """Change per second [packet/s]."""
        return float(np.ravel(self._pace(np.array([window])))[0])

    def after(self, time: float, window: float) -> float:
        """The window `time` seconds later, at most the cap."""

        def slope(_: float, log_window: np.ndarray) -> list[float]:
            now = math.exp(float(log_window[0]))
            return [self.pace(now) / now]

        run = solve_ivp(
            slope, (0.0, time), [math.log(window)], method="DOP853",
            rtol=_TOLERANCE, atol=_TOLERANCE,
        )  # fmt: skip
        return min(float(self._net.flows[0].window.max_window), math.exp(run.y[0, -1]))

    def time(self, first: float, last: float) -> float:
        """Seconds from one window to another."""
        return quad(
            lambda u: math.exp(u) / self.pace(math.exp(u)), math.log(first), math.log(last),
            epsabs=0.0, epsrel=_TOLERANCE, limit=200,
        )[0]  # fmt: skip


def relay_cycle(net: Network, *, one_reaction: bool = False) -> RelayCycle:
    """The switching cycle of one class of flows over a link that marks all above a queue.

    Durresi et al. (2001), section 4, for any window law with one number of state. With
    `one_reaction` there is one for each time that the queue is above the step, as of senders that
    react at most once per round trip; by default the reaction's mean share of the marks is taken,
    as in the fluid model. Raises ValueError if the network is no relay of this kind, with the
    reason.
    """
    net = as_fluid(net)
    eq = equilibrium(net)
    if problem := _obstacle(net, eq):
        raise ValueError(f"no closed form of its cycle: {problem}")
    arrays, link, flows = to_arrays(net), net.links[0], net.flows[0]
    count, step = float(np.ravel(flows.n)[0]), float(eq.op.queues[0])
    pipe = float(link.capacity) * float(np.ravel(flows.rtt)[0])
    crossing, delay = (pipe + step) / count, _delay(net, step)
    free, marked = _Windows(arrays, _QUIET), _Windows(arrays, _SIGNAL)
    if not (free.pace(crossing) > 0 > marked.pace(crossing)):
        raise ValueError(
            "no closed form of its cycle: windows do not grow below the step and fall above it"
        )
    top = free.after(delay, crossing)
    if one_reaction:
        low, period, message = _one_reaction(arrays, crossing, delay, top)
    else:
        low, message = marked.after(delay, crossing), ""
        period = 2 * delay + marked.time(top, crossing) + free.time(low, crossing)
    queue = (count * low - pipe, count * top - pipe)
    if queue[0] <= 0:
        message = "the queue runs empty in the cycle: the formulas end there"
    if queue[1] > float(link.buffer):
        message = "the queue reaches the buffer in the cycle: the formulas end there"
    exact = net.rates == "self_clocked"
    return RelayCycle(period, delay, (low, top), queue, not message, exact, message)


def _one_reaction(
    net: Network, crossing: float, delay: float, top: float
) -> tuple[float, float, str]:
    """Least window, period and message, for one reaction per crossing of the step."""
    link, flows = net.links[0], net.flows[0]
    if float(flows.reaction.ready(Since(0.0, delay, 0.0))):
        raise ValueError(f"{flows.reaction.name} reacts to more than one mark per round trip")
    law, rtt = flows.window, float(np.ravel(flows.n)[0]) * top / float(link.capacity)
    change = law.window(law.on_mark(law.start(top), Ack(1.0, 0.0, rtt, marked=1.0)))
    low = top + float(change)
    message = "" if low < crossing else "one reaction does not end the marking"
    free, deaf = _Windows(net, _QUIET), _Windows(net, _SIGNAL, 0.0)  # marks come for one more delay
    after = low if deaf.pace(low) <= 0 else deaf.after(delay, low)
    rising = delay + free.time(after, crossing) if after < crossing else deaf.time(low, crossing)
    return low, delay + rising, message


def _delay(net: Network, queue: float) -> float:
    """Time from a signal to the change that it causes in the queue [s]."""
    flows = net.flows[0]
    (trip,) = explicit_delays(net, flows, (queue,)).trips
    return float(np.ravel(flows.feedback.age(trip) + trip.forward)[0])


def _obstacle(net: Network, eq: Equilibrium) -> str:
    """Reason why a network is no relay with a closed form; empty if it is one."""
    link, flows = net.links[0], net.flows[0]
    if (len(net.links), len(net.flows), np.size(flows.rtt)) != (1, 1, 1):
        return "the formulas are for one link and one class of flows"
    if link.queue.loads:
        return "the formulas are for marks, and these senders act on a load factor"
    if int(eq.op.codes[0]) != Regime.JUMP or leaves(link.queue.start(0.0)):
        return f"the equilibrium is not at a step of the marking (status {eq.status})"
    below, above = (float(steady_signal(link, math.nextafter(float(eq.op.queues[0]), to)).mark)
                    for to in (0.0, math.inf))  # fmt: skip
    if (below, above) != (0.0, 1.0):
        return f"the marking steps from {below:.3g} to {above:.3g}, not from 0 to 1"
    if flows.feedback.quench or not flows.feedback.marks:
        return f"the formulas are for marks on ACKs, not for {flows.feedback.name}"
    if float(np.max(received(flows, (_SIGNAL,)).drop)) > 0:
        return f"the formulas are for marks, and {flows.feedback.name} loses packets"
    memory = past_slow_start(flows, np.ones(1))._replace(slow=())
    one = len(leaves(memory)) == 1
    return "" if one else f"the senders ({flows.window.name}) remember more than their window"
