"""Derivatives of equilibria, of their linear systems, characteristic roots and margins by
parameters: the solution of F(x, p) = 0 has derivative -F_x^-1 F_p by p, the implicit function
theorem.

So all are differentiated at the solution and never through the iterations that found it. For an
equilibrium the equations are drift = 0 for free states, value = bound for states held at a bound,
assumed = computed outputs, and for links on a discontinuity the equation of its surface. The
unknowns are states, outputs and Filippov weights, the shares of the time on either side of the
discontinuities.

At the edge of a regime several such systems have the same solution: with a queue held at its end or
free, on either side of a kink of the marking, on a discontinuity or next to it. One-sided
derivatives are then taken at neighbours that are not on the edge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, FlowsEquilibrium, LinkEquilibrium, without
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, still
from fluidcc.analysis.local_model import NEAR, local_state, present_function
from fluidcc.analysis.margins import received_signals
from fluidcc.analysis.operating_point import (
    OperatingPoint,
    Regime,
    alone,
    arrivals,
    conditions,
    steady_senders,
    steady_state,
)
from fluidcc.analysis.population import population
from fluidcc.analysis.sliding import (
    SIGNAL,
    NoDerivativeError,
    SlidingSurface,
    exact,
    given,
    mixed,
    shares,
    sides,
    sliding_surfaces,
    stepped,
    surfaces,
    weighed,
    with_exact_loads,
)
from fluidcc.analysis.steady_laws import offered_rate
from fluidcc.arrays import jax, jnp
from fluidcc.executables import compile_once
from fluidcc.laws.law import Signal
from fluidcc.model.delays import (
    Outputs,
    State,
    ages,
    kinks,
    make_outputs,
    output_indices,
    path_delay,
    round_trip,
)
from fluidcc.model.fluid import as_fluid, has_motion, steady, with_mean_calls
from fluidcc.model.rates import (
    HIGH,
    LOW,
    Modes,
    emit_signal,
    flux,
    in_its_share,
    own_share,
    queue_law_rate,
    received,
    seen_at_tick,
    sending_rate,
    touched,
)
from fluidcc.ops import Num
from fluidcc.programs import flatten, leaves, ravel
from fluidcc.scenario.network import Network, to_arrays
from fluidcc.scenario.paths import number_at, replace


def directions(net: Network, paths: Sequence[str], *, steady: bool = True) -> list[Network]:
    """Derivatives of all numbers of the fluid model by the value at each path.

    If `steady`, those of the network with calls at their mean rate, as for equilibria; else calls
    keep varying at random. The number of flows scales a group in proportion over its round trips.
    Raises ScenarioError for paths that lead to no number.
    """

    def direction(path: str) -> Network:
        def numbers(value: jax.Array) -> Network:
            fluid = to_arrays(as_fluid(replace(net, {path: value}, where="gradient")))
            return with_mean_calls(fluid, varying=steady)

        value = jnp.asarray(number_at(net, path), float)
        return jax.jvp(numbers, (value,), (jnp.ones_like(value),))[1]

    return [direction(path) for path in paths]


def expand(function: Callable[[Num, Any], Any], x: Num, p: Any, along: Any) -> tuple[Any, Any, Any]:
    """A function of x (N,) and of a tree p to first order: its value, its derivatives by x (..., N)
    and those along K directions of p (K, ...).
    """

    def pushed(direction: Any) -> Any:
        return jax.jvp(lambda p: function(x, p), (p,), (direction,))[1]

    return function(x, p), jax.jacfwd(function)(x, p), jax.lax.map(pushed, along)


def _motion_of(by_x: Array, along: Array) -> Array:
    """Derivatives (K, N) of the solution of N equations, from those of the equations by x (N, N)
    and along K directions (K, N); NaN where they are singular.
    """
    try:
        return -np.linalg.solve(by_x, along.T).T
    except np.linalg.LinAlgError:
        return np.full(along.shape, np.nan)


def carry(by_x: Array, along: Array, moves: Array) -> Array:
    """Derivatives (K, ...) of a function of x and p by the chain rule, with those (K, N) of x."""
    return along + np.tensordot(moves, np.moveaxis(by_x, -1, 0), (1, 0))


_OFF_BALANCE = 1e-6  # relative Newton step up to which an equilibrium balances
_UNMOVED = 1e-9  # of what is observed, in its unit per unit of a memory
_EDGE = 1e-9  # up to this a queue is at its end, a loss or a share of the time is 0
_JUMP = 1e-6  # of a probability: far above the change of a continuous marking from side to side

Observed = tuple[dict[str, LinkEquilibrium], dict[str, FlowsEquilibrium]]
"""Reported part of an equilibrium: links and groups of flows, or derivatives of these."""

for _seen in (LinkEquilibrium, FlowsEquilibrium):
    jax.tree_util.register_dataclass(_seen, [f.name for f in dataclasses.fields(_seen)], [])


class Motion(NamedTuple):
    """Derivatives of an equilibrium along K directions: state (K, n), outputs (K, m); its
    reported part and the derivatives of that (K, ...), the largest relative change (K,), and a
    message if there are none.
    """

    state: Array
    outputs: Array
    seen: Observed
    slopes: Observed
    pace: Array
    message: str


def pinned(net: Network, y: State, modes: Modes) -> Num:
    """Value of each component of the flat state if it is held: its bound, or the present value."""
    senders = []
    for flows, s, mode in zip(net.flows, y.senders, modes.windows, strict=True):
        law = flows.window
        low, high = law.min_window + 0.0 * flows.rtt, law.max_window + 0.0 * flows.rtt
        free = law.window(s.law)
        window = jnp.where(mode == HIGH, high, jnp.where(mode == LOW, low, free))
        senders.append(s._replace(law=law.with_window(s.law, window)))
    queues = tuple(
        jnp.where(mode == LOW, 0.0, jnp.where(mode == HIGH, link.buffer, q))
        for link, q, mode in zip(net.links, y.queues, modes.queues, strict=True)
    )

    def limited(value: Num, low: Num, high: Num) -> Num:
        return jnp.where(value <= low, low, jnp.where(value >= high, high, value))

    laws = tuple(
        x if link.queue.limits is None else jax.tree.map(limited, x, *link.queue.limits)
        for link, x in zip(net.links, y.laws, strict=True)
    )
    return ravel_pytree(y._replace(senders=tuple(senders), queues=queues, laws=laws))[0]


def _rates(net: Network, y: State, signals: tuple[Signal, ...]) -> Num:
    """Rates of the flows at equilibrium: flight sizes over round trips."""
    out = []
    for flows, s in zip(net.flows, y.senders, strict=True):
        rtt = round_trip(net, flows, y.queues)
        emitted = received(flows, tuple(signals[k] for k in flows.route))
        rate = sending_rate(flows, s, Signal(*(v + 0.0 * rtt for v in emitted)), rtt)
        out.append(s.active * rate if flows.traffic.starts else rate)
    return jnp.concatenate(out)


def _observe(net: Network, y: State, u: Num, outputs: Outputs, modes: Modes) -> Observed:
    past = jax.tree.map(lambda index: u[index], output_indices(net))
    raw = flux(net, y, past, modes, ticks=True).queue_raw
    links, flows = {}, {}
    loads = [own.n * rate for own, rate in zip(net.flows, outputs.rates, strict=True)]
    for k, (name, link) in enumerate(zip(net.link_names, net.links, strict=True)):
        signal = outputs.signals[k]
        share: Any = own_share(net, k, enumerate(loads))
        used: Any = share * jnp.where(modes.queues[k] == LOW, 1 + raw[k] / link.capacity, 1.0)
        load = signal.load if link.queue.loads else None
        part = in_its_share(link, y.laws[k], y.queues[k], share)
        links[name] = LinkEquilibrium(*part, signal.either, used, load)
    for i, (name, own) in enumerate(zip(net.flow_names, net.flows, strict=True)):
        s, rtt = y.senders[i], round_trip(net, own, y.queues)
        delay = path_delay(net, own, y.queues) + 0.0 * own.rtt
        seen = touched(own, tuple(outputs.signals[k] for k in own.route)) + 0.0 * own.rtt
        active: Any = s.active if own.traffic.starts else jnp.ones_like(rtt)
        flows[name] = FlowsEquilibrium(
            own.window.window(s.law), rtt, delay, outputs.rates[i], seen, active
        )
    return jax.tree.map(lambda v: jnp.asarray(v, float), (links, flows))


class _Rows(NamedTuple):
    """Residuals: drift and distance from the bound (n,), outputs (m,), surfaces that hold the state
    (c,); and the reported part.
    """

    drift: Any
    bound: Any
    outputs: Any
    surfaces: Any
    seen: Observed


class _Expanded(NamedTuple):
    """Values, derivatives by the unknowns (..., n + m + s) and along K directions (K, ...); ones
    for states held at a bound, and for memories of queue laws at no limit; state and outputs.
    """

    values: _Rows
    by_x: _Rows
    along: _Rows
    frozen: Any
    loose: Any
    state: Any
    outputs: Any


@compile_once(static_argnames="held")
def _expanded(
    net: Network, op: OperatingPoint, along: Network, held: tuple[SlidingSurface, ...]
) -> Any:
    part = shares(op, held)
    emitted = given(net, held, steady_state(net, op), part)
    at = local_state(
        net,
        op,
        jnp.zeros(()),
        emitted,
        lambda u: weighed(net, op, held, part, u, jnp.arange(len(u))),
    )
    _, v, index = present_function(net, at.y, at.modes)
    paces = tuple(jnp.ones(()) for _ in net.links)
    state_of, wire_of = (
        ravel_pytree(tree)[1] for tree in (at.y, make_outputs(net, op.rates, op.signals, paces))
    )
    n, m = len(v), len(at.outputs)

    def balance(x: Num, net: Network) -> _Rows:
        v, u, part = jnp.split(x, [n, n + m])
        y, outputs = state_of(v), wire_of(u)
        modes = at.modes._replace(emitted=given(net, held, y, part))
        function = present_function(net, y, modes)[0]
        now = mixed(weighed(net, op, held, part, u[index], index), lambda z: function(net, v, z))
        bound = pinned(net, state_of(jax.lax.stop_gradient(v)), at.modes)
        sent = now[n:]
        if net.rates == "self_clocked":  # whose numbers in flight are conserved
            rates = _rates(net, y, outputs.signals)
            sent = sent.at[: len(rates)].set(rates)
        there = surfaces(net, held, y, tuple(s.load for s in outputs.signals))
        seen = _observe(net, y, u, outputs, modes)
        return _Rows(now[:n], bound - v, sent - u, there, seen)

    zeros = jax.tree.map(jnp.zeros_like, at.y)
    laws = ravel_pytree(zeros._replace(laws=jax.tree.map(jnp.ones_like, at.y.laws)))[0]
    pins = jax.jvp(lambda v: pinned(net, state_of(v), at.modes), (v,), (jnp.ones_like(v),))[1]
    x = jnp.concatenate([v, at.outputs, part])
    return _Expanded(*expand(balance, x, net, along), at.frozen, laws * pins, v, at.outputs)


def motion(eq: Equilibrium, along: Network, held: tuple[SlidingSurface, ...] = ()) -> Motion:
    """Derivatives of an equilibrium along K directions of its network's numbers (K, ...).

    `held` are its discontinuities; memories that ticks step up and down there adapt.
    """
    net = steady(eq.net)
    net, along, op = exact(net, held), exact(along, held), with_exact_loads(eq.op, held)
    parts: _Expanded = jax.tree.map(np.asarray, _expanded(net, op, along, held))
    stepping = sum((stepped(net, op, c) for c in held if not c.weighs), parts.frozen > np.inf)
    n, m = len(parts.state), len(parts.outputs)
    idle = ~np.any(parts.by_x.drift[:, : n + m] != 0, axis=1) & ~stepping
    bound = (parts.frozen > 0) | idle

    def balance(rows: _Rows, axis: int = 0) -> Array:
        """The n + m + s equations of the balance, along an axis."""
        drift, pins, *others = (np.moveaxis(part, axis, 0) for part in rows[:4])
        moves = np.where(bound.reshape(-1, *(1,) * (drift.ndim - 1)), pins, drift)
        return np.concatenate([moves[~stepping], *others])

    by_x = balance(parts.by_x)
    wanted = np.vstack([balance(parts.along, 1).T, balance(parts.values)])
    solution = _motion_of(by_x, wanted)
    moves, newton = solution[:-1], solution[-1]
    size = 1.0 + np.abs(np.concatenate([parts.state, parts.outputs, np.zeros(len(newton) - n - m)]))
    lost = np.flatnonzero((idle & (parts.loose > 0) & (parts.frozen == 0))[~stepping])
    message = _fault(solution, newton / size)
    if not message and lost.size:  # whether a reported value depends on these undetermined states
        shifts = _motion_of(by_x, np.eye(len(by_x))[lost])
        seen = [carry(by, np.asarray(0.0), shifts) for by in jax.tree.leaves(parts.by_x.seen)]
        if any(np.any(np.abs(change) > _UNMOVED) for change in seen):
            message = "the state of a queue law keeps its initial value: its derivative is unknown"
    slopes = jax.tree.map(
        lambda by, along: carry(by, along, moves), parts.by_x.seen, parts.along.seen
    )
    pace = np.max(np.abs(moves) / size, axis=1)
    return Motion(moves[:, :n], moves[:, n : n + m], parts.values.seen, slopes, pace, message)


_SHARE = 1e-4  # of a number: steps over which a stationary law on one grid is smooth


def _observe_population(
    net: Network, op: OperatingPoint, x: Array, tops: list[Array]
) -> tuple[Array, Observed]:
    """What is left of the equations of a population at queues, arrivals of links and memories of
    their laws, all in x (N,), for stationary laws of windows up to `tops` (m,), infinite at a cap;
    and the reported part.
    """
    memories, busy = ravel(op.laws)[1], op.backlogs > 0
    queues, offered, rest = np.split(x, [len(net.links), 2 * len(net.links)])
    rows = list(zip(net.links, memories(rest), queues, offered, strict=True))
    signals = [emit_signal(*row) for row in rows]
    emitted = [alone(signal) for signal in signals]
    caps = [
        np.minimum(top, own.window.max_window) for top, own in zip(tops, net.flows, strict=True)
    ]
    senders = steady_senders(net, list(queues), emitted, tops=caps)
    arriving, accepted = map(np.stack, arrivals(net, emitted, senders))
    capacities = np.stack([link.capacity for link in net.links])
    excess = np.where(busy, accepted - capacities, queues)
    ticks = [seen_at_tick(net, list(queues), k) for k in range(len(rows))]
    changes = flatten([queue_law_rate(*row, t) for row, t in zip(rows, ticks, strict=True)])
    loads = [own.n * rate for own, (_, rate) in zip(net.flows, senders, strict=True)]
    shares = np.stack([own_share(net, k, enumerate(loads)) for k in range(len(net.links))])
    used = np.where(busy, shares, accepted / capacities - (1 - shares))
    links, flows = {}, {}
    for k, (name, (link, law, queue, _)) in enumerate(zip(net.link_names, rows, strict=True)):
        part = in_its_share(link, law, queue, shares[k])
        links[name] = LinkEquilibrium(*part, signals[k].either, used[k])
    for name, own, (s, rate) in zip(net.flow_names, net.flows, senders, strict=True):
        rtt = round_trip(net, own, tuple(queues))
        delay = path_delay(net, own, tuple(queues)) + 0.0 * rtt
        seen = touched(own, tuple(signals[k] for k in own.route)) + 0.0 * rtt
        window = own.window.window(s.law)
        flows[name] = FlowsEquilibrium(window, rtt, delay, rate, seen, np.ones_like(rtt))
    reported = jax.tree.map(lambda v: np.asarray(v, float), (links, flows))
    return np.concatenate([excess, arriving - offered, changes]), reported


def _largest_windows(net: Network, op: OperatingPoint) -> list[Array]:
    """Of the stationary laws of each group's flows (m,); infinite at a cap."""
    out = []
    for flows in net.flows:
        top = population(flows, *conditions(net, op, flows)).windows[-1]
        out.append(np.where(top < flows.window.max_window, top, np.inf))
    return out


def population_motion(eq: Equilibrium, along: Network) -> Motion:
    """Derivatives of the equilibrium of a population along K directions of its network's numbers
    (K, ...), by its own equations: what stationary laws of flows send, and what links carry.

    Its equations are differentiated by differences on the grids of the equilibrium: the laws are
    smooth on one grid, and their own grids move with every change.
    """
    (numbers, network), op = ravel(steady(eq.net)), eq.op
    net = network(numbers)
    tops = _largest_windows(net, op)
    pairs = zip(net.links, op.backlogs, op.lost, strict=True)
    offered = np.stack([offered_rate(*pair) for pair in pairs])
    x = np.concatenate([op.queues, offered, flatten(op.laws)])
    at, count = np.concatenate([x, numbers]), len(x)

    def balance(at: Array) -> tuple[Array, Observed]:
        return _observe_population(network(at[count:]), op, at[:count], tops)

    def differentiate(way: Array) -> tuple[Array, Observed]:
        sizes = np.where((at == 0) | ~np.isfinite(at), 1.0, abs(at))[way != 0]
        step = _SHARE * float(np.min(sizes / abs(way[way != 0]), initial=1 / _SHARE))
        low, high = (balance(at + side * step * way) for side in (-1, 1))
        return jax.tree.map(lambda a, b: (b - a) / (2 * step), low, high)

    def stacked(ways: Array) -> tuple[Array, Observed]:
        return jax.tree.map(lambda *v: np.stack(v), *map(differentiate, ways))

    values, seen = balance(at)
    by_x, seen_by_x = stacked(np.eye(count, len(at)))
    ways = np.concatenate([np.asarray(v).reshape((len(v), -1)) for v in leaves(along)], axis=1)
    by_number, seen_along = stacked(np.pad(ways, ((0, 0), (count, 0))))
    idle = ~np.any(by_x != 0, axis=0)  # memories at a limit stay there
    solution = _motion_of(by_x.T + np.diag(1.0 * idle), np.vstack([by_number, values]))
    moves, size = solution[:-1], 1.0 + np.abs(x)
    slopes = jax.tree.map(
        lambda by, along: carry(np.moveaxis(by, 0, -1), along, moves), seen_by_x, seen_along
    )
    pace, message = np.max(np.abs(moves) / size, axis=1), _fault(solution, solution[-1] / size)
    return Motion(moves, np.zeros((len(moves), 0)), seen, slopes, pace, message)


def _fault(solution: Array, newton: Array) -> str:
    """Why an equilibrium has no derivatives, with its relative Newton step; empty if it has."""
    if not np.all(np.isfinite(solution)):
        return "the equilibrium is singular: it has no derivative"
    if np.max(np.abs(newton)) > _OFF_BALANCE:
        return "the equilibrium found does not solve its own equations, so has no derivative"
    return ""


def edge(eq: Equilibrium) -> tuple[tuple[SlidingSurface, ...], str]:
    """The discontinuities that hold an equilibrium, and the edge of a regime it is at, if any.

    Raises NoDerivativeError if it has no derivatives, or none that are known.
    """
    if eq.status == "none":
        raise NoDerivativeError("there is no equilibrium")
    if eq.status == "undetermined":
        raise NoDerivativeError(eq.message)
    if eq.status == "continuum":
        raise NoDerivativeError(
            "the equilibrium is not unique: the one reached depends on the initial condition"
        )
    if eq.switching:
        raise NoDerivativeError("rules of senders jump there, at windows that no law declares")
    population = eq.net.closure == "population" and eq.status in ("regular", "empty")
    if not (population or has_motion(eq.net)):
        raise NoDerivativeError(without(eq))
    held = () if eq.smooth or population else sliding_surfaces(steady(eq.net), eq.op)
    jumping = {c.link for c in held if c.kind == SIGNAL}
    bends = kinks(eq.net, steady_state(eq.net, eq.op))
    near = {k for k, distance in bends if abs(float(distance)) < NEAR and k not in jumping}
    if any(_jumps(eq, k) for k in near) or any(
        c.weighs and _has_no_share(eq, c.link) for c in held
    ):
        return held, "at the end of a discontinuity of the marking function"
    if near:
        return held, "at a corner of the marking function"
    if any(_at_end(eq, k) for k in range(len(eq.net.links))):
        return held, "between a queue that moves and an empty or full one"
    return held, "at a discontinuity of two thresholds" if any(c.surfaces[1:] for c in held) else ""


def _jumps(eq: Equilibrium, k: int) -> bool:
    """Whether the marking of link k differs from side to side."""
    low, high = sides(eq.net.links[k], eq.op.laws[k], eq.op.queues[k])
    return abs(float(high.either) - float(low.either)) > _JUMP


def _has_no_share(eq: Equilibrium, k: int) -> bool:
    """Whether link k is above its jump, or drops, for no share of the time."""
    return float(eq.op.emitted[k].share) <= _EDGE


def _at_end(eq: Equilibrium, k: int) -> bool:
    """Whether link k is between a queue at its end and one that moves."""
    backlog, full = float(eq.op.backlogs[k]), float(eq.net.links[k].buffer)
    if int(eq.op.codes[k]) == Regime.FULL:
        return abs(backlog) <= _EDGE or _has_no_share(eq, k)
    return abs(backlog) <= _EDGE or backlog >= full * (1 - _EDGE)


_LEVEL = 1e-9  # relative slope below which a curve is level: a grazing crossover, a double root


@compile_once
def _slopes(net: Network, op: OperatingPoint, along: Network, dv: Num, du: Num) -> tuple[Any, ...]:
    """Derivatives of A, B, C, D and the lags (K, ...) as parameters, state and outputs move."""
    at = local_state(net, op, jnp.zeros(()))
    function, v, index = present_function(net, at.y, at.modes)
    unflatten = ravel_pytree(at.y)[1]
    n = len(v)

    def matrices(net: Network, v: Num, u: Num) -> tuple[Num, ...]:
        by_state, by_past = jax.jacfwd(function, (1, 2))(net, v, u[index])
        lag = ravel_pytree(ages(net, unflatten(v)))[0]
        return by_state[:n], by_past[:n], by_state[n:], by_past[n:], lag

    def one(direction: tuple) -> tuple[Num, ...]:
        return jax.jvp(matrices, (net, v, at.outputs), direction)[1]

    return jax.lax.map(one, (along, dv, du))


def slopes_of_linear(
    eq: Equilibrium, system: Linear, along: Network, dv: Array, du: Array
) -> list[Linear]:
    """Derivatives along K directions of the linear system at an equilibrium, whose state and
    outputs move by dv and du (K, ...): systems with derivatives in place of matrices and lags.
    """
    net = steady(eq.net)
    A, B, *_, frozen = map(np.asarray, jacobians(net, eq.op, jnp.zeros(())))
    free = (frozen == 0) & ~still(A, B)
    found = map(np.asarray, _slopes(net, eq.op, along, jnp.asarray(dv), jnp.asarray(du)))
    return [
        dataclasses.replace(system, A=a[free][:, free], B=b[free], C=c[:, free], D=d, lag=lag)
        for a, b, c, d, lag in zip(*found, strict=True)
    ]


def _matrix_along(system: Linear, moved: Linear, s: complex) -> Array:
    """Derivative of the characteristic matrix as matrices and lags move."""
    looked_up, late = np.eye(system.size[1])[system.pick], np.exp(-s * system.lag)
    now, change = (
        late[:, None] * looked_up,
        (-s * moved.lag * late)[:, None] * looked_up,
    )
    return -np.block([
        [moved.A, moved.B @ now + system.B @ change],
        [moved.C, moved.D @ now + system.D @ change],
    ])  # fmt: skip


def root_slopes(system: Linear, root: complex, along: list[Linear]) -> Array | None:
    """Derivatives (K,) of a simple characteristic root [1/s]; None if it is not simple.

    With null vectors w and v of M at the root, w* M(s) v vanishes to first order with det M, so
    ds/dp = -(w* M_p v)/(w* M_s v) (Lancaster, 1964).
    """
    matrix = system.matrix(root)
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    left, _, right = np.linalg.svd(matrix / scale)
    w, v = left[:, -1].conj() / scale[:, 0], right[-1].conj()
    rate = system.matrix_slope(root)
    if abs(w @ rate @ v) <= _LEVEL * (np.abs(w) @ np.abs(rate) @ np.abs(v)):
        return None
    return np.array([-(w @ _matrix_along(system, d, root) @ v) for d in along]) / (w @ rate @ v)


def crossover_slopes(
    system: Linear, link: int, frequency: float, along: list[Linear], *, gain: bool
) -> tuple[Array, Array] | None:
    """Derivatives (K,) of the frequency of a crossover [rad/s], and there of the phase [rad] (of a
    `gain` crossover) or of log |L| (of a phase crossover); None if the loop only touches it.
    """
    s = 1j * frequency
    changes = [1j * system.matrix_slope(s), *(_matrix_along(system, d, s) for d in along)]
    by_frequency, *by_path = _log_loop_slopes(system, link, s, np.array(changes))
    held, seen = (np.real, np.imag) if gain else (np.imag, np.real)
    if abs(held(by_frequency)) <= _LEVEL * max(abs(by_frequency), 1 / frequency):
        return None
    moves = -held(by_path) / held(by_frequency)
    return moves, seen(by_path) + seen(by_frequency) * moves


def _log_loop_slopes(system: Linear, link: int, s: complex, changes: Array) -> Array:
    """Derivatives (K,) of log L, the loop cut at a link's signal, as M(s) changes (K, N, N).

    1 + L is the determinant of I + R, with R (r, r) the return at the cut rows per unit input.
    """
    rows = len(system.A) + np.array(received_signals(system, link))
    matrix = system.matrix(s)
    enters = np.eye(len(matrix))[:, rows]
    cut, opened = matrix[rows] - enters.T, matrix.copy()
    opened[rows] = enters.T
    inside = np.linalg.solve(opened, enters)
    around = np.linalg.solve(opened.T, cut.T).T
    fixed = changes.copy()
    fixed[:, rows] = 0.0
    returned, moved = cut @ inside, (changes[:, rows] - around @ fixed) @ inside
    if len(rows) == 1:
        return moved[:, 0, 0] / returned[0, 0]
    closed = np.eye(len(rows)) + returned
    whole = np.linalg.det(closed)
    return whole * np.trace(np.linalg.solve(closed, moved), axis1=1, axis2=2) / (whole - 1)
