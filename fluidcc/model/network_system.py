"""A network as a delay equation: its state on a flat vector, its outputs as the record, and their
positions and those of delayed inputs there.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from fluidcc.arrays import jax, jnp
from fluidcc.dde.system import Events, System
from fluidcc.executables import compile_once
from fluidcc.laws.law import SIGNALS, WRITTEN, AbstractQueueLaw, Signal
from fluidcc.model.alike import joined, orders
from fluidcc.model.delays import (
    DelayedInputs,
    Outputs,
    State,
    ages_along,
    breakpoint_distances,
    explicit_delays,
    fifo_delays,
    make_outputs,
    output_index,
    output_indices,
    round_trip,
)
from fluidcc.model.fluid import NEVER, as_fluid, course, varies, with_mean_calls, with_service
from fluidcc.model.rates import (
    FREE,
    HIGH,
    LOW,
    WAITING,
    Flux,
    Modes,
    acknowledgement,
    flux,
    received,
    seen_at_tick,
    sending_rate,
    start_sender,
)
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Network, to_arrays

_KEPT = 64  # structures of networks
_SETTLING = 4  # passes; outputs of a constant history depend on each other through few links


def _initial_clocks(net: Network, senders: tuple, queues: tuple) -> tuple:
    """Times of the first ticks [s], per link and per group (m,); `()` if the law has none."""
    clocks: list[Any] = []
    for link in net.links:
        between = link.queue.period()
        clocks.append(() if between is None else jnp.asarray(between, float))
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
    clocks = _initial_clocks(with_service(net, calls), senders, queues)
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
    return _blank(*_structure(net))


def _structure(net: Network) -> tuple[Any, tuple]:
    """A network of arrays without its numbers: its tree and their shapes."""
    leaves, treedef = jax.tree.flatten(net)
    return treedef, tuple(jnp.shape(leaf) for leaf in leaves)


@functools.lru_cache(maxsize=_KEPT)
def _blank(treedef: Any, shapes: tuple) -> tuple[State, Outputs]:
    net = jax.tree.unflatten(treedef, [np.zeros(shape) for shape in shapes])
    state = jax.eval_shape(initial_state, net)
    rates = tuple(np.zeros(flows.rtt.shape) for flows in net.flows)
    none = tuple(np.zeros(()) for _ in net.links)
    signals = tuple(Signal(*(zero for _ in SIGNALS)) for zero in none)
    y = jax.tree.map(lambda v: np.zeros(v.shape, v.dtype), state)
    return y, make_outputs(net, rates, signals, none)


def _is_held(law: AbstractQueueLaw, name: str) -> bool:
    """Whether a field of a law's signal changes at ticks alone: what a law with ticks writes into
    packets does, and `mark` if `zero_order_hold` says so.
    """
    if name in WRITTEN:
        return law.period() is not None
    return name == "mark" and law.zero_order_hold


def _held_columns(net: Network) -> tuple[int, ...]:
    """Columns of the outputs that change at ticks alone (zero-order hold)."""
    return tuple(
        index
        for link, signal in zip(net.links, output_index(net).signals, strict=True)
        for name, index in signal._asdict().items()
        if index is not None and _is_held(link.queue, name)
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
                tuple(
                    tuple(m and m._replace(signal=clip(m.signal)) for m in before)
                    for before in links
                )
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


class NetworkNumbers(NamedTuple):
    """A network's numbers, the record (U,) of its constant history, per link the course of its
    calls (`()` if they do not vary), the network with alike groups as one if it has any, and that
    with calls at their mean if it has any.
    """

    net: Network
    before: Array
    courses: tuple
    joined: Network | None
    mean: Network | None


class Numbers(NamedTuple):
    """Arguments of the functions of a network's system; stacked over the networks of a batch."""

    own: NetworkNumbers

    @classmethod
    def of(cls, net: Network, before: Array, courses: tuple) -> "Numbers":
        """The numbers of a network with calls at their mean if they do not vary."""
        own, varied = joined(net), any(link.voice is not None for link in net.links)
        mean = with_mean_calls(own) if varied else None
        return cls(NetworkNumbers(net, before, courses, None if own is net else own, mean))

    @property
    def net(self) -> Network:
        """The network."""
        return self.own.net

    @property
    def joined(self) -> Network:
        """The network with alike groups as one."""
        return self.own.net if self.own.joined is None else self.own.joined

    @property
    def mean(self) -> Network:
        """The joined network of delays by present queues, with calls at their mean: a delay that
        jumps with their rate would turn time back.
        """
        return self.joined if self.own.mean is None else self.own.mean

    def along(self, direction: Network) -> "Numbers":
        """Tangent in the direction of a network; zero for all other numbers."""
        zero = jax.tree.map(jnp.zeros_like, self.own)
        one = joined(direction)
        mean = None if self.own.mean is None else one
        own = None if self.own.joined is None else one
        return Numbers(zero._replace(net=direction, joined=own, mean=mean))


def record_of(net: Network, y: State, outputs: Outputs) -> Array:
    """The record (U,): the outputs, and under `fifo` the queues, from which delays follow."""
    flat = ravel_pytree(outputs)[0]
    return jnp.concatenate([flat, jnp.stack(y.queues)]) if net.delay == "fifo" else flat


def _bounds(net: Network) -> list[tuple[Any, Any]]:
    """Lower and upper bound of each queue and each group's windows."""
    queues = [(0.0, link.buffer) for link in net.links]
    return queues + [(f.window.min_window, f.window.max_window) for f in net.flows]


def _bounded(net: Network, y: State) -> list[Array]:
    """The quantities with bounds: queues, and each group's windows."""
    windows = [f.window.window(s.law) for f, s in zip(net.flows, y.senders, strict=True)]
    return [*y.queues, *windows]


def _with_bounded(net: Network, y: State, values: list[Array]) -> State:
    links = len(net.links)
    senders = tuple(
        s._replace(law=f.window.with_window(f.window.bounded(s.law), w))
        for f, s, w in zip(net.flows, y.senders, values[links:], strict=True)
    )
    return y._replace(queues=tuple(values[:links]), senders=senders)


_BEYOND = -1e-30  # a bound that is touched and pushed against has been reached


def _distances(mode: Array, raw: Array, low: Any, high: Any, value: Array) -> list[Array]:
    """Two guards, positive while the mode of a bounded quantity lasts: for a free one the distances
    to its bounds, for one at a bound its rate of change towards that bound, twice.
    """
    towards_bound = jnp.where(mode == LOW, -raw, raw)
    free = mode == FREE
    # added to the distance, which keeps its derivative: that moves the event also if it is 0
    down = value - low + jnp.where((value == low) & (raw < 0), _BEYOND, 0.0)
    up = high - value + jnp.where((value == high) & (raw > 0), _BEYOND, 0.0)
    return [jnp.where(free, down, towards_bound), jnp.where(free, up, towards_bound)]


def _time_to_ticks(y: State, t: Any) -> list[Array]:
    """Time left to each tick [s], flat, in the order of the clocks."""
    return [jnp.ravel(due - t) for due in y.clocks if not isinstance(due, tuple)]


def _by_clock(y: State, hit: Array) -> list[Any]:
    """The marked ticks in the shape of each clock; None for links and flows without ticks."""
    parts, at = [], 0
    for due in y.clocks:
        if isinstance(due, tuple):
            parts.append(None)
            continue
        size = due.size
        parts.append(hit[at : at + size].reshape(due.shape))
        at += size
    return parts


def _add_if(state: Any, change: Any, hit: Array) -> Any:
    return jax.tree.map(lambda a, b: a + jnp.where(hit, b, 0.0), state, change)


def _tick(
    net: Network, t: Any, y: State, past: DelayedInputs, modes: Modes, courses: tuple, hit: Array
) -> tuple[State, Modes]:
    """State and bounds after the ticks marked in `hit`, which has the shape of `_time_to_ticks`.

    `courses` has the steps of the calls' rate per link. Windows held at their cap are free after a
    tick.
    """
    parts = _by_clock(y, hit)
    links, groups = len(net.links), len(net.flows)
    now = with_service(net, y.services)
    clocks, laws, senders = list(y.clocks), list(y.laws), list(y.senders)
    windows, services = list(modes.windows), list(y.services)
    for k, (link, on) in enumerate(zip(now.links, parts[:links], strict=True)):
        if on is not None:
            seen = seen_at_tick(now, y.queues, k)
            laws[k] = _add_if(laws[k], link.queue.on_tick(laws[k], seen), on)
            between: Any = link.queue.period()  # which laws with ticks have
            clocks[k] = clocks[k] + jnp.where(on, between, 0.0)
    for i, (flows, on) in enumerate(zip(net.flows, parts[links : links + groups], strict=True)):
        if on is not None:
            s, signal = y.senders[i], received(flows, past.received[i])
            rtt = round_trip(now, flows, y.queues)
            ack = acknowledgement(flows, s, signal, rtt, past.acked[i])
            change = flows.window.on_tick(s.law, ack)
            moved = on & (modes.windows[i] != WAITING)
            senders[i] = s._replace(law=_add_if(s.law, change, moved))
            windows[i] = jnp.where(moved & (windows[i] == HIGH), FREE, windows[i])
            due, between = clocks[links + i], flows.window.period(ack)
            assert between is not None
            clocks[links + i] = due + jnp.where(on, between, 0.0)
    for k, on in enumerate(parts[links + groups :]):
        if on is not None:
            times, rates = courses[k]
            due = clocks[links + groups + k]
            index = jnp.searchsorted(times, jnp.maximum(t, due), side="right")
            services[k] = jnp.where(on, rates[index], services[k])
            later = jnp.append(times, NEVER)[index]
            clocks[links + groups + k] = jnp.where(on, later, due)
    moved = State(tuple(senders), y.queues, tuple(laws), tuple(clocks), tuple(services))
    return moved, modes._replace(windows=tuple(windows))


class NetworkEquation:
    """The functions of a System, for all networks of one structure; numbers come with the call."""

    def __init__(self, example: Network) -> None:
        self.layout = Layout(joined(example))
        y, outputs = blank(example)
        size = record_of(example, y, outputs).size
        self.order, self.recorded, self.modes = orders(example, y, size)
        columns = np.ravel(self.layout.columns).astype(int)
        self.columns = tuple((int(column),) for column in self.recorded.places[columns])

    def _state(self, y: Array) -> State:
        return self.layout.unflatten_state(self.order.joined(y))

    def _modes(self, net: Network, mode: Array) -> Modes:
        mode = self.modes.joined(mode)
        links = len(net.links)
        ends = np.cumsum([np.size(f.rtt) for f in net.flows])[:-1]
        windows = jnp.split(mode[links:], ends)
        return Modes(tuple(mode[k] for k in range(links)), tuple(windows))

    def _flat(self, state: State) -> Array:
        return self.order.given(ravel_pytree(state)[0])

    def _flat_modes(self, modes: list[Array]) -> Array:
        return self.modes.given(jnp.concatenate([jnp.ravel(m) for m in modes]))

    def _present(self, y: Array, z: Array, net: Network, mode: Array | None) -> Flux:
        modes = None if mode is None else self._modes(net, mode)
        return flux(net, self._state(y), self.layout.past(z), modes)

    def slope(self, t: Any, y: Array, z: Array, args: Numbers, mode: Array) -> Array:
        """Change of the state per second, shape (n,)."""
        return self._flat(self._present(y, z, args.joined, mode).drift)

    def record(self, t: Any, y: Array, z: Array, args: Numbers, mode: Array) -> Array:
        """The record, which is read later, shape (U,)."""
        net = args.joined
        found = record_of(net, self._state(y), self._present(y, z, net, mode).outputs)
        return self.recorded.given(found)

    def lags(self, t: Any, y: Array, args: Numbers, look: Callable[..., Array]) -> Array:
        """Age of each delayed number [s], and time since each passage through a queue [s], (M,)."""
        net, state = args.joined, self._state(y)
        if net.delay != "fifo":
            delays = [explicit_delays(args.mean, flows, state.queues) for flows in net.flows]
            return ravel_pytree(ages_along(net, delays, state.senders))[0]

        def queues_of(first: tuple[int, ...]) -> Callable[[int, Array, int], Array]:
            def queue_at(k: int, times: Array, number: int) -> Array:
                column, lags = self.layout.queue_columns[k], first[number] + np.arange(times.size)
                return jax.vmap(lambda s, lag: look(s, column, lag))(times, lags)

            return queue_at

        delays = [
            fifo_delays(net, flows, t, queues_of(first))
            for flows, first in zip(net.flows, self.layout.passages, strict=True)
        ]
        ages = [age for path in delays for _, age in path.passages]
        return jnp.concatenate([ravel_pytree(ages_along(net, delays, state.senders))[0], *ages])

    def history(self, times: Array, columns: Array, args: Numbers) -> Array:
        """The record before the start, which is constant."""
        return args.own.before[columns] + 0.0 * times

    def limit(self, y: Array, mode: Array, args: Numbers) -> Array:
        """The state with queues and windows inside their bounds."""
        net, state = args.joined, self._state(y)
        bounds = zip(_bounded(net, state), _bounds(net), strict=True)
        values = [jnp.clip(value, low, high) for value, (low, high) in bounds]
        return self._flat(_with_bounded(net, state, values))

    def guards(self, t: Any, y: Array, z: Array, args: Numbers, mode: Array) -> Array:
        """Numbers that are positive until a bound is met or left, or flows start."""
        net = args.joined
        now = self._present(y, z, net, mode)
        modes = self._modes(net, mode)
        parts = zip(
            (*modes.queues, *modes.windows),
            (*now.queue_raw, *now.window_raw),
            _bounded(net, self._state(y)),
            _bounds(net),
            strict=True,
        )
        pairs = [_distances(m, raw, low, high, value) for m, raw, value, (low, high) in parts]
        links = len(net.links)
        for i, flows in enumerate(net.flows):
            waiting = modes.windows[i] == WAITING
            left = flows.start.low - t
            pairs[links + i] = [jnp.where(waiting, left, d) for d in pairs[links + i]]
        due = _time_to_ticks(self._state(y), t)
        return jnp.concatenate([*(jnp.ravel(d) for pair in pairs for d in pair), *due])

    def switch(
        self, t: Any, y: Array, z: Array, args: Numbers, mode: Array, hit: Array
    ) -> tuple[Array, Array]:
        """Bounds and state after those marked in `hit` were reached or left, and after ticks."""
        net, state = args.joined, self._state(y)
        modes = self._modes(net, mode)
        parts = zip(
            (*modes.queues, *modes.windows), _bounded(net, state), _bounds(net), strict=True
        )
        new, values, at = [], [], 0
        for m, value, (low, high) in parts:
            size = int(np.size(m))
            down = hit[at : at + size].reshape(jnp.shape(m))
            up = hit[at + size : at + 2 * size].reshape(jnp.shape(m))
            at += 2 * size
            free = m == FREE
            left = jnp.where(~free & (down | up), FREE, m)
            now = jnp.where(free & down, LOW, jnp.where(free & up, HIGH, left))
            new.append(jnp.ravel(now))
            values.append(jnp.where(now == LOW, low, jnp.where(now == HIGH, high, value)))
        moved = _with_bounded(net, state, values)
        if at < hit.size:
            held, past = self._modes(net, self._flat_modes(new)), self.layout.past(z)
            moved, held = _tick(net, t, moved, past, held, args.own.courses, hit[at:])
            new = [jnp.ravel(m) for m in (*held.queues, *held.windows)]
        flat = self.limit(self._flat(moved), mode, args)
        return self._flat_modes(new).astype(mode.dtype), flat

    def initial(self, t: Any, y: Array, z: Array, args: Numbers) -> Array:
        """The bounds that hold at the start."""
        net = args.joined
        now = self._present(y, z, net, None)
        parts = zip(
            (*now.queue_raw, *now.window_raw),
            _bounded(net, self._state(y)),
            _bounds(net),
            strict=True,
        )
        out = []
        for raw, value, (low, high) in parts:
            down, up = (value <= low) & (raw < 0), (value >= high) & (raw > 0)
            out.append(jnp.where(down, LOW, jnp.where(up, HIGH, FREE)))
        for i, flows in enumerate(net.flows, start=len(net.links)):
            out[i] = jnp.where(starts_late(flows), WAITING, out[i])
        return self._flat_modes(out)

    def kinks(self, t: Any, y: Array, z: Array, args: Numbers, mode: Array) -> Array:
        """Switching functions: distances of the queues to kinks or jumps of their signals."""
        return breakpoint_distances(args.net, self._state(y))


@functools.lru_cache(maxsize=_KEPT)
def _system(treedef: Any, shapes: tuple) -> System:
    """The system of all networks of one structure."""
    example = jax.tree.unflatten(treedef, [jnp.ones(shape) for shape in shapes])
    equation = NetworkEquation(example)
    system = System(
        slope=equation.slope,
        lags=equation.lags,
        columns=equation.columns,
        history=equation.history,
        record=equation.record,
        limit=equation.limit,
        events=Events(equation.initial, equation.guards, equation.switch),
        kinks=equation.kinks,
        held=_held_columns(example),
        leading=equation.layout.leading,
    )
    return system.identify(jax.tree.map(jax.typeof, example))


@compile_once
def record_at_rest(net: Network, y: State) -> Array:
    """The record of a network that has been in one state for ever."""
    return record_of(net, y, initial_outputs(net, y))


@compile_once
def start(net: Network, courses: tuple) -> tuple[Array, Array]:
    """State and record before the start."""
    state = initial_state(net, courses)
    return ravel_pytree(state)[0], record_at_rest(net, state)


@compile_once
@jax.vmap
def starts(net: Network, courses: tuple) -> tuple[Array, Numbers]:
    """States before the start and numbers of many networks of one structure, stacked."""
    y0, before = start(net, courses)
    return y0, Numbers.of(net, before, courses)


def system_of(net: Network) -> System:
    """The delay equation of a `prepared` network."""
    return _system(*_structure(net))


def prepared(net: Network, until: float) -> tuple[Network, tuple]:
    """A network of arrays in the form of its equation, and per link the course of its calls up to
    `until` [s]. Raises ValueError for the closure of populations, which have no such equation.
    """
    if net.closure != "mean":
        raise ValueError(
            "model.closure: trajectories are those of mean windows, expected 'mean', got "
            f"{net.closure!r} (--set model.closure=mean); equilibrium, stability and fluctuations "
            "know the population"
        )
    courses = tuple(course(link, until) for link in net.links)
    return with_mean_calls(net, varying=False), courses


def network_system(net: Network, *, until: float = 0.0) -> tuple[System, Array, Numbers]:
    """The delay equation of a network in the fluid model, its state at the start and its numbers.

    Networks of one structure share one System, so a change of numbers compiles nothing. Calls that
    vary at random do so up to `until` [s].
    """
    net, courses = prepared(to_arrays(as_fluid(net)), until)
    y0, before = start(net, courses)
    return system_of(net), y0, Numbers.of(net, before, courses)
