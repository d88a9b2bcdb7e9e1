"""Fluid trajectories of a network."""

import dataclasses
import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from fluidcc.advice import advice
from fluidcc.fluid.delays import State, Wire, ages_on, explicit_way, round_trip
from fluidcc.fluid.flights import excess_in_flight
from fluidcc.fluid.integrate import integrate
from fluidcc.fluid.layout import blank, starts_late
from fluidcc.fluid.mean_traffic import as_fluid
from fluidcc.fluid.meshes import Located, MethodOfSteps, Uniform
from fluidcc.fluid.network_system import network_system
from fluidcc.fluid.rates import heard, link_signal
from fluidcc.fluid.senders import known_load, starts_slowly
from fluidcc.fluid.service import varies, with_service
from fluidcc.fluid.status import Status
from fluidcc.laws.law import Ack
from fluidcc.network import LONGEST, Link, Network
from fluidcc.shown import Shown

if TYPE_CHECKING:
    import xarray

_POINTS = 1001
_FEW_CLASSES = 4  # every distinct delay multiplies the breaking points to land on
_STEPS_PER_DELAY = 32  # of the shortest round trip; see the orders measured in the tests

Floats = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class LinkRun:
    """A link over time, shape (T,) each."""

    queue: Floats  # packet, with the one in service
    average: Floats  # packet, of the queue law
    signal: Floats  # probability to mark, or to drop early where flows have no ECN
    marked: Floats  # share of the packets sent now that it marks
    dropped: Floats  # share that it drops: queue law and overflow
    load: Floats  # load factor that it tells, 0 where it tells none
    offered: Floats  # packet/s that sources send now
    quenches: Floats  # packet/s that it sends back to sources itself
    utilization: Floats  # share of the link rate in use


@dataclasses.dataclass(frozen=True)
class FlowsRun:
    """A group of flows over time, shape (T, m) each: m distinct round trips."""

    window: Floats  # packet
    rate: Floats  # packet/s, of one flow
    rtt: Floats  # s
    mark: Floats  # probability that a packet sent now is marked, over the links of the route
    loss: Floats  # probability that it is lost
    load: Floats  # load factor that the senders know of
    active: Floats  # share of the sources that have something to send
    slow: Floats  # share of the active flows in slow start
    n: Floats  # (m,) how many flows


@dataclasses.dataclass(frozen=True)
class Trajectory(Shown):
    """A fluid run: `time` (T,) [s], links and groups of flows by name, and how it ended.

    Examples
    --------
    >>> import fluidcc as fc
    >>> run = fc.simulate(fc.load("hollot2001/slow"), until=5)
    >>> round(float(run.time[-1]), 2), run.to_dataset().sizes["time"]
    (5.0, 1001)
    """

    time: Floats
    links: dict[str, LinkRun]
    flows: dict[str, FlowsRun]
    status: Status
    status_time: float
    breaking_points: Floats
    net: Network

    @property
    def message(self) -> str:
        """How the run ended, and what may not be meant in the network."""
        notes = [self.status.advice, *advice(self.net)]
        if self.net.rates == "self_clocked":
            notes += [_lost_count(self, name) for name in self.flows]
        return "; ".join(filter(None, notes))

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as plain lists: time, links and flows by name."""
        links = {
            name: {f.name: getattr(run, f.name).tolist() for f in dataclasses.fields(run)}
            for name, run in self.links.items()
        }
        flows = {
            name: {key: getattr(run, key).T.tolist() for key in FLOW_UNITS}
            for name, run in self.flows.items()
        }
        return {
            "time": self.time.tolist(),
            "links": links,
            "flows": flows,
            "status": self.status.name,
            "message": self.message,
        }

    def to_dataset(self) -> "xarray.Dataset":
        """The trajectory as a labelled dataset with units."""
        data: dict[str, Any] = {}
        for name, run in self.links.items():
            for key, unit in LINK_UNITS.items():
                data[f"{name}.{key}"] = ("time", getattr(run, key), {"units": unit})
        coords: dict[str, Any] = {"time": ("time", self.time, {"units": "s"})}
        for name, run in self.flows.items():
            dim = f"{name}.class"
            coords[f"{name}.propagation"] = (dim, _propagation(self.net, name), {"units": "s"})
            for key, unit in FLOW_UNITS.items():
                data[f"{name}.{key}"] = (("time", dim), getattr(run, key), {"units": unit})
        attrs = {"title": self.net.title, "source": self.net.source, "status": self.status.name}
        import xarray  # heavy

        return xarray.Dataset(data, coords, attrs)

    def __repr__(self) -> str:
        lines = [f"Trajectory to {self.time[-1]:g} s, {self.status.name}"]
        for name, run in self.links.items():
            lines.append(f"  link {name}: queue {_summary(run.queue)}")
        for name, flow in self.flows.items():
            lines.append(f"  flows {name}: window {_summary(flow.window)}")
        return "\n".join(lines)


LINK_UNITS = {
    "queue": "packet",
    "average": "packet",
    "signal": "1",
    "marked": "1",
    "dropped": "1",
    "load": "1",
    "offered": "packet/s",
    "quenches": "packet/s",
    "utilization": "1",
}
FLOW_UNITS = {
    "window": "packet", "rate": "packet/s", "rtt": "s", "mark": "1", "loss": "1", "load": "1",
    "active": "1", "slow": "1",
}  # fmt: skip


def _summary(values: Floats) -> str:
    """The last value (mean over classes) and the range of what was reached."""
    known = values[np.isfinite(values)]
    if not known.size:
        return "not reached"
    return f"{values[-1].mean():.4g} packets (range {known.min():.4g} to {known.max():.4g})"


def _lost_count(run: Trajectory, name: str) -> str:
    """What is to be said where self-clocked flows have more or less in flight than they may."""
    flow = run.flows[name]
    excess = excess_in_flight(run.time, flow.window, flow.rate, flow.rtt)
    if excess is None:
        return ""
    helps = "a smaller step" if run.net.delay == "fifo" else "model.delay = 'fifo'"
    return (
        f"not to be trusted: flows.{name} have {abs(excess):.0%} {'more' if excess > 0 else 'less'}"
        f" in flight than their windows; use {helps}, or model.rates = 'ack'"
    )


def _propagation(net: Network, name: str) -> Floats:
    return np.asarray(net.flows[net.flow_names.index(name)].rtt, float)


def _link_seen(net: Network, k: int, y: State, wire: Wire) -> tuple:
    """What a run reports of link k, in the order of LinkRun."""
    link, said = net.links[k], wire.signals[k]
    q = jnp.clip(y.queues[k], 0.0, link.buffer)  # cubics between nodes overshoot
    said = said._replace(mark=jnp.clip(said.mark, 0.0, 1.0), drop=jnp.clip(said.drop, 0.0, 1.0))
    marked, dropped, quenches = (jnp.asarray(0.0) for _ in range(3))
    offered = jnp.asarray(link.cross, float)
    dropped = link.cross * said.drop
    for flows, rate in zip(net.flows, wire.rates, strict=True):
        if k in flows.route:
            own, sent = link_signal(flows, said), flows.n * jnp.maximum(rate, 0.0)
            offered = offered + jnp.sum(sent)
            marked = marked + jnp.sum(sent * (own.either - own.drop))
            dropped = dropped + jnp.sum(sent * own.drop)
            if flows.feedback.quench:
                quenches = quenches + jnp.sum(sent * own.either)
    some = jnp.maximum(offered, 1e-9)
    share = jnp.minimum((offered - dropped) / link.capacity, 1.0)
    used = jnp.where(q > 0, 1.0, share)
    average = link.queue.average(y.laws[k], q)
    shares = (marked / some, dropped / some)
    return q, average, said.mark, *shares, said.load, offered, quenches, used


def _flows_seen(net: Network, i: int, y: State, wire: Wire) -> tuple:
    """What a run reports of group i, in the order of FlowsRun."""
    flows, rate, s = net.flows[i], jnp.maximum(wire.rates[i], 0.0), y.senders[i]
    said = heard(flows, tuple(wire.signals[k] for k in flows.route))
    each = jnp.ones_like(rate)
    rtt = round_trip(net, flows, y.queues)
    load = known_load(flows, s, said) * each
    active = s.active if flows.traffic.starts else each
    slow = s.slow if starts_slowly(flows) else 0.0 * each
    law = flows.window  # cubics between nodes overshoot
    window = jnp.clip(law.window(s.law), law.min_window, law.max_window)
    return window, rate, rtt, said.mark * each, said.drop * each, load, active, slow


@jax.jit
def report(net: Network, states: jax.Array, records: jax.Array) -> tuple[list, list]:
    """What a run tells of each link and each group, from states (T, n) and records (T, U)."""
    y, wire = blank(net)
    to_state, to_wire = ravel_pytree(y)[1], ravel_pytree(wire)[1]
    width = ravel_pytree(wire)[0].size

    def one(state: jax.Array, record: jax.Array) -> tuple[list, list]:
        y, wire = to_state(state), to_wire(record[:width])
        now = with_service(net, y.services)
        links = [_link_seen(now, k, y, wire) for k in range(len(net.links))]
        return links, [_flows_seen(now, i, y, wire) for i in range(len(net.flows))]

    return jax.vmap(one)(states, records)


def periods(net: Network) -> list[float]:
    """Times between the ticks of a network's laws [s] that do not depend on its state."""
    found = [float(getattr(k.queue, k.queue.period)) for k in net.links if k.queue.period]
    for flows in net.flows:
        long, short = (flows.window.period(Ack(1.0, 0.0, rtt)) for rtt in (2.0, 1.0))
        if long is not None and short is not None and float(long) == float(short):
            found.append(float(long))
    return sorted(set(found))


def _aligned(step: float, ticks: list[float]) -> float:
    """A step of at most `step` that divides the times between ticks, if some shorter one does."""
    if not ticks:
        return step
    least = math.ceil(ticks[0] / step - 1e-9)
    for parts in range(least, 4 * least + 1):
        shares = [tick * parts / ticks[0] for tick in ticks]
        if all(abs(share - round(share)) < 1e-9 * share for share in shares):
            return ticks[0] / parts
    return ticks[0] / least


def uniform_mesh(net: Network) -> Uniform:
    """Uniform steps for a network: a small share of its round trips, below its shortest delay.

    Ticks of the laws fall on its nodes where one step can divide all their periods.
    """
    net = as_fluid(net)
    empty = tuple(0.0 for _ in net.links)
    trips = [explicit_way(net, flows, empty) for flows in net.flows]
    seen = [
        np.min(np.asarray(age)) for age in jax.tree.leaves(ages_on(net, trips)._replace(paces=()))
    ]
    shortest = min(age for age in seen if age > 0)
    rtt = min(float(np.min(np.asarray(f.rtt))) for f in net.flows)
    step = _aligned(min(rtt / _STEPS_PER_DELAY, 0.9 * float(shortest)), periods(net))
    full = max(
        float(np.max(np.asarray(f.rtt)))
        + sum(float(net.links[k].buffer) / _least_rate(net.links[k]) for k in f.route)
        for f in net.flows
    )
    return Uniform(step) if math.isinf(full) else Uniform(step, slots=math.ceil(full / step) + 4)


def _least_rate(link: Link) -> float:
    """The least rate at which a link serves its flows [packet/s]."""
    if link.voice is None:
        return float(link.capacity)
    return float(link.voice.left(link.capacity, math.inf))


def checked_times(net: Network, until: float, points: ArrayLike | None, mesh: object) -> Floats:
    """The times to report, (T,); raises ValueError as `simulate` says."""
    if not isinstance(until, Real | np.ndarray | jax.Array) or not 0 < until <= LONGEST:
        raise ValueError(f"until: expected a time in (0, {LONGEST:g}] s, got {until!r}")
    times = np.linspace(0.0, until, _POINTS) if points is None else np.asarray(points, float)
    if times.ndim != 1 or times.size == 0 or times[0] < 0 or times[-1] > until:
        raise ValueError(f"points: expected times within 0 and {until!r} s")
    if mesh is not None and not isinstance(mesh, Uniform | Located | MethodOfSteps):
        raise ValueError(f"mesh: expected Uniform, Located or MethodOfSteps, got {mesh!r}")
    for name, link in zip(net.link_names, net.links, strict=True):
        if net.delay == "fifo" and varies(link) and _least_rate(link) < float(link.capacity):
            raise ValueError(
                f"links.{name}.voice.process: calls that vary the rate of the flows' queue need "
                "model.delay = 'explicit', got 'fifo', whose delay by the work served is not here"
            )
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if net.rates == "self_clocked" and bool(starts_late(flows)):
            raise ValueError(
                f"flows.{name}.start: a self-clocked fluid needs flows that have always run, got a "
                f"start at {float(flows.start.low)!r} s; use model.rates = 'ack'"
            )
        trips = explicit_way(net, flows, tuple(0.0 for _ in net.links)).trips
        for k, trip in zip(flows.route, trips, strict=True):
            if np.min(flows.feedback.age(trip)) <= 0:
                raise ValueError(
                    f"flows.{name}.reverse_delay: trajectories need signals that take some time: "
                    "expected a reverse_delay, or an access_delay, above 0 s, got 0 s from "
                    f"links.{net.link_names[k]}"
                )
    return times


def simulate(
    net: Network,
    *,
    until: float,
    points: ArrayLike | None = None,
    mesh: Uniform | Located | MethodOfSteps | None = None,
) -> Trajectory:
    """Integrate the fluid model of a network from its initial history.

    Parameters
    ----------
    net
        The network; `initial` of links and flows is its constant history.
    until
        End of the run [s].
    points
        Times to report [s], increasing, within [0, until]; 1001 evenly spaced by default.
    mesh
        How the delay equation is stepped; see `solve_dde`. By default `Located(rtol=1e-6)` for up
        to four distinct round trips where no signal jumps, and nothing changes by ticks, by calls
        that vary or at limits of a queue law's memory; else `uniform_mesh(net)`, whose error is of
        first order in the step where a signal jumps: a peak may be off by a thousandth.

    Returns
    -------
    Trajectory
        Its `status` says how the run ended; numbers after a failure are NaN.

    Raises
    ------
    ValueError
        If `until` is not positive, `points` lie outside the run, `mesh` is no mesh, flows of a
        self-clocked network start late (nothing would ever clock them), or a signal takes no time.

    Examples
    --------
    >>> import fluidcc as fc
    >>> run = fc.simulate(fc.load("hollot2001/slow"), until=5)
    >>> run.status.name, round(float(run.links["bottleneck"].queue[-1]), 2)
    ('ok', 188.09)
    """
    given, net = net, as_fluid(net)
    times = checked_times(net, until, points, mesh)
    system, y0, args = network_system(net, until=until)
    if mesh is None:
        few = sum(np.size(f.rtt) for f in net.flows) <= _FEW_CLASSES
        smooth = not jax.tree.leaves(blank(args.net)[0].clocks)
        smooth = smooth and not any(k.queue.jumps() or k.queue.limits for k in net.links)
        mesh = Located(rtol=1e-6) if few and smooth else uniform_mesh(net)
    run = integrate(system, y0, 0.0, until, args, mesh=mesh, ts=times)
    reached = times <= float(run.status_time) + 1e-12 * until
    failed = Status(int(run.status)) is not Status.ok
    links, groups = report(args.net, run.y, run.record)
    if failed:  # what was not reached has no numbers
        links, groups = jax.tree.map(
            lambda v: np.where(reached.reshape(-1, *(1,) * (v.ndim - 1)), v, np.nan),
            (links, groups),
        )
    breaks = np.asarray(run.breaking_points, float)
    return Trajectory(
        time=times,
        links={
            name: LinkRun(*(np.asarray(v) for v in values))
            for name, values in zip(net.link_names, links, strict=True)
        },
        flows={
            name: FlowsRun(*(np.asarray(v) for v in values), n=np.asarray(flows.n, float))
            for name, values, flows in zip(net.flow_names, groups, net.flows, strict=True)
        },
        status=Status(int(run.status)),
        status_time=float(run.status_time),
        breaking_points=breaks[np.isfinite(breaks)],
        net=given,
    )
