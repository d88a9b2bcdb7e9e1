"""Positions of a network's state, outputs and delayed inputs on flat vectors."""

from typing import Any

import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from fluidcc.arrays import jax, jnp
from fluidcc.laws.law import SIGNALS, Signal
from fluidcc.model.delays import (
    DelayedInputs,
    Outputs,
    State,
    ages_along,
    fifo_delays,
    make_outputs,
    output_index,
    output_indices,
    round_trip,
)
from fluidcc.model.fluid import varies, with_service
from fluidcc.model.rates import flux, received
from fluidcc.model.senders import acknowledgement, sending_rate, start_sender
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network

_SETTLING = 4  # passes; outputs of a constant history depend on each other through few links


def initial_clocks(net: Network, senders: tuple, queues: tuple) -> tuple:
    """Times of the first ticks [s], per link and per group (m,); `()` if the law has none."""
    clocks: list[Any] = []
    for link in net.links:
        name = link.queue.period
        clocks.append(() if name is None else jnp.asarray(getattr(link.queue, name), float))
    for flows, s in zip(net.flows, senders, strict=True):
        rtt = round_trip(net, flows, queues)
        between = flows.window.period(acknowledgement(flows, s, Signal(), rtt))
        clocks.append(() if between is None else between + 0.0 * rtt)
    return tuple(clocks)


def initial_state(net: Network, courses: tuple = ()) -> State:
    """The state before the start: the scenario's constant history.

    `courses` has per link the times at which the rate of its calls changes and the rates; they
    are at their mean if it is left out.
    """
    shapes = (jnp.shape(f.rtt) for f in net.flows)
    senders = tuple(
        start_sender(f, jnp.broadcast_to(jnp.asarray(f.initial.window, float), shape))
        for f, shape in zip(net.flows, shapes, strict=True)
    )
    queues = tuple(jnp.asarray(link.initial.queue, float) for link in net.links)
    laws = tuple(link.queue.start(jnp.asarray(link.initial.average, float)) for link in net.links)
    laws = jax.tree.map(lambda v: jnp.asarray(v, float), laws)
    edges, calls = _initial_calls(net, courses)
    state = State(senders, queues, laws, (), calls)
    clocks = initial_clocks(with_service(net, calls), senders, queues)
    return state._replace(clocks=clocks + edges)


def _initial_calls(net: Network, courses: tuple) -> tuple[tuple, tuple]:
    """First change of the calls [s] and their rate before it [packet/s], per link with calls that
    vary; both empty if no calls vary.
    """
    if not any(varies(link) for link in net.links):
        return (), ()
    nothing = (jnp.zeros(1), jnp.zeros(1))
    known = [course or nothing for course in courses] or [nothing] * len(net.links)
    used = [c if varies(link) else () for c, link in zip(known, net.links, strict=True)]
    first = [(c[0][0], c[1][0]) if c else ((), ()) for c in used]
    edges, calls = zip(*first, strict=True)
    return edges, calls


def starts_late(flows: Flows) -> Num:
    """Whether flows start at one time after 0. Starts drawn from a range are for packets alone."""
    return (flows.start.low == flows.start.high) & (flows.start.low > 0)


def initial_outputs(net: Network, y: State) -> Outputs:
    """Outputs before the start, with state `y` at all earlier times: flights over round trips, and
    the signals that follow. Self-clocked flows of constant queues send at the pace of ACKs.
    """
    nothing, one = jnp.asarray(0.0), jnp.asarray(1.0)
    signals = tuple(Signal(*(nothing for _ in SIGNALS)) for _ in net.links)
    index, now = output_indices(net), with_service(net, y.services)
    outputs = make_outputs(net, (), signals, tuple(one for _ in net.links))
    for _ in range(_SETTLING):
        outputs = outputs._replace(rates=_rates_before(now, y, outputs.signals))
        flat = ravel_pytree(outputs)[0]
        past = jax.tree.map(lambda i, flat=flat: flat[i], index)
        sent = flux(net, y, past).outputs
        paces = outputs.paces if net.rates == "self_clocked" else sent.paces
        outputs = sent._replace(rates=outputs.rates, paces=paces)
    return outputs


def _rates_before(net: Network, y: State, signals: tuple) -> tuple:
    """Rates of the flows (m,) before the start; flows that start later send nothing."""
    rates = []
    for flows, s in zip(net.flows, y.senders, strict=True):
        rtt = round_trip(net, flows, y.queues)
        signal = received(flows, tuple(signals[k] for k in flows.route))
        rate = sending_rate(flows, s, Signal(*(v + 0.0 * rtt for v in signal)), rtt)
        rate = s.active * rate if flows.traffic.starts else rate
        rates.append(jnp.where(starts_late(flows), 0.0, rate))
    return tuple(rates)


def blank(net: Network) -> tuple[State, Outputs]:
    """State and outputs of a network with zeros for numbers: only their shapes matter."""

    def both(net: Network) -> tuple[State, Outputs]:
        y = initial_state(net)
        return y, initial_outputs(net, y)

    return jax.tree.map(lambda v: np.zeros(v.shape, v.dtype), jax.eval_shape(both, net))


def held_columns(net: Network) -> tuple[int, ...]:
    """Columns of the outputs that change at ticks alone (zero-order hold)."""
    return tuple(
        index
        for link, signal in zip(net.links, output_index(net).signals, strict=True)
        for name, index in signal._asdict().items()
        if index is not None and (name == "load" or (name == "mark" and link.queue.zero_order_hold))
    )


class Layout:
    """The positions on flat vectors, from a network of the right structure."""

    def __init__(self, net: Network) -> None:
        y, travels = blank(net)
        self.unflatten_state = ravel_pytree(y)[1]
        outputs = ravel_pytree(travels)[0]
        self.queue_columns = tuple(range(outputs.size, outputs.size + len(net.links)))
        index, self.treedef = jax.tree.flatten(output_indices(net))
        self.shapes = [np.shape(i) for i in index]
        columns = [int(c) for c in np.concatenate([np.ravel(i) for i in index])]
        self.passages: tuple[tuple[int, ...], ...] = ()
        self.leading: tuple[tuple[int, tuple[int, ...]], ...] = ()
        if net.delay == "fifo":
            first = len(columns)
            links, self.passages = _passages(net, first)
            columns += [self.queue_columns[k] for k in links]
            led = self._dependence_on_passages(net, len(links))
            self.leading = tuple(
                (first + i, tuple(np.flatnonzero(lags).tolist())) for i, lags in enumerate(led.T)
            )
        self.columns = tuple((c,) for c in columns)

    def _dependence_on_passages(self, net: Network, number: int) -> np.ndarray:
        """Which ages (M,) depend on each of so many passages, (M, number)."""

        def ages(waits: Array) -> Array:
            at, delays = 0, []
            for flows in net.flows:
                size = int(np.size(flows.rtt))

                def entry(leaving: Num, wait_at: Any, size: int = size) -> Num:
                    nonlocal at
                    del wait_at
                    at += size
                    return leaving - waits[at - size : at]

                delays.append(fifo_delays(net, flows, 0.0, lambda k, s, _: 0.0 * s, entry))
            return ravel_pytree(ages_along(net, delays))[0]

        return np.asarray(jax.jit(jax.jacfwd(ages))(jnp.zeros(number))) != 0.0

    def past(self, z: Array) -> DelayedInputs:
        """The delayed inputs from their flat vector, which `z` begins with."""
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in self.shapes])
        parts = zip(jnp.split(z[: ends[-1]], ends[:-1]), self.shapes, strict=True)
        past: DelayedInputs = jax.tree.unflatten(
            self.treedef, [v.reshape(shape) for v, shape in parts]
        )
        ends_of = {k: field.within.ends for k, field in SIGNALS.items() if field.within.bounded}

        def clip(signal: Signal) -> Signal:
            """Clip probabilities to their range: a cubic through a jump overshoots."""
            inside = {k: jnp.clip(getattr(signal, k), *ends) for k, ends in ends_of.items()}
            return signal._replace(**inside)

        return past._replace(
            received=tuple(tuple(clip(v) for v in links) for links in past.received),
            passed=tuple(
                tuple(tuple(m._replace(signal=clip(m.signal)) for m in before) for before in links)
                for links in past.passed
            ),
        )


def _passages(net: Network, first: int) -> tuple[list[int], tuple[tuple[int, ...], ...]]:
    """The queue of each passage of each flow, and per group the number of each passage's lag; lags
    of passages are numbered from `first`.
    """
    links: list[int] = []
    numbers: list[tuple[int, ...]] = []

    def trace() -> None:
        for flows in net.flows:
            passages, size = (
                fifo_delays(net, flows, 0.0, lambda k, s, _: 0.0 * s).passages,
                flows.rtt.size,
            )
            numbers.append(tuple(first + len(links) + size * i for i in range(len(passages))))
            links.extend(k for k, _ in passages for _ in range(size))

    jax.eval_shape(trace)  # traced once, nothing is computed
    return links, tuple(numbers)
