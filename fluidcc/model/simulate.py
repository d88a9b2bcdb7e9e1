"""Fluid trajectories of a network, and their result: its links and groups of flows over time."""

import dataclasses
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from fluidcc.arrays import jax, jnp
from fluidcc.dde.integrate import AbstractMesh, Status, check_mesh, integrate
from fluidcc.dde.uniform import Uniform
from fluidcc.executables import compile_once
from fluidcc.laws.law import combine
from fluidcc.model.advice import advice, faults_of_sharing
from fluidcc.model.delays import (
    Outputs,
    State,
    explicit_delays,
    path_delay,
    round_trip,
    signal_age,
)
from fluidcc.model.fluid import as_fluid, varies, with_service
from fluidcc.model.network_mesh import least_rate, uniform_mesh
from fluidcc.model.network_system import blank, network_system, starts_late
from fluidcc.model.rates import (
    in_its_share,
    known_load,
    link_signal,
    own_share,
    received,
    starts_slowly,
)
from fluidcc.progress import reporting
from fluidcc.quantities import about, attributes, full_name
from fluidcc.result import Result
from fluidcc.scenario.network import LONGEST, Network, why_packets
from fluidcc.scenario.parsing import in_seconds

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

_MOST_EXCESS = 0.1  # of the mean window; ends of a run and sparse points cause smaller differences
_ROUND_TRIPS = 20  # that a mean takes at least, so that its ends count little
_FEWEST_POINTS = 100

Reports = tuple[list, list]
"""Numbers of links and of groups, in the order of LinkRun and FlowsRun."""


@dataclasses.dataclass(frozen=True)
class LinkRun:
    """A link over time, shape (T,) each."""

    queue: Floats  # packet, with the one in service
    queueing_delay: Floats  # s
    average: Floats  # packet, of the queue law
    mark_probability: Floats  # probability to mark or to drop
    mark_fraction: Floats  # share of the packets sent now that it marks
    drop_fraction: Floats  # share that it drops: queue law and overflow
    load_factor: Floats  # 0 if it gives none
    offered: Floats  # packet/s that sources send now
    source_quench_rate: Floats  # packet/s, source quenches that it sends
    utilization: Floats  # share of the link rate in use


@dataclasses.dataclass(frozen=True)
class FlowsRun:
    """A group of flows over time, shape (T, m) each: m distinct round trips."""

    window: Floats  # packet
    rate: Floats  # packet/s, of one flow
    rtt: Floats  # s
    queueing_delay: Floats  # s, over the links of the route
    mark_fraction: (
        Floats  # probability that a packet sent now is marked, over the links of the route
    )
    loss_fraction: Floats  # probability that it is lost
    load_factor: Floats  # as the senders know it
    active: Floats  # share of the sources that have something to send
    slow_start: Floats  # share of the active flows in slow start
    n: Floats  # (m,) how many flows


LINK_KEYS, FLOW_KEYS = (
    tuple(field.name for field in dataclasses.fields(run) if field.name != "n")
    for run in (LinkRun, FlowsRun)
)


@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory(Result):
    """A fluid run: `time` (T,) [s], links and groups of flows by name, and how it ended.

    `links` has arrays (T,) and `flows` arrays (T, m) for m distinct round trips, with the units
    of the table of quantities. `status` and `status_time` [s] are how and when it ended;
    `breaking_points` [s] are times on which the steps had to land; `net` is the network.

    Examples
    --------
    >>> import fluidcc as fc
    >>> run = fc.simulate(fc.load("hollot2001/slow"), until=5)
    >>> round(float(run.time[-1]), 2), run.to_xarray().sizes["time"]
    (5.0, 1001)
    """

    _view = "runs.TrajectoryView"

    time: Floats
    links: dict[str, LinkRun]
    flows: dict[str, FlowsRun]
    status: Status
    status_time: float
    breaking_points: Floats
    net: Network

    @classmethod
    def of(
        cls, given: Network, net: Network, times: Floats, ended: tuple[Any, Any], reports: Reports,
        breaks: Any = (),
    ) -> "Trajectory":  # fmt: skip
        """The run of `net`, the fluid model's version of `given`, from `report` at `times` [s].

        `ended` is the status and its time [s]; numbers after a failure are NaN.
        """
        status, end = Status(int(ended[0])), float(ended[1])
        links, flows = named(net, reached(reports, times, *ended))
        breaks = np.asarray(breaks, float)
        return cls(times, links, flows, status, end, breaks[np.isfinite(breaks)], given)

    @property
    def message(self) -> str:
        """How the run ended, and settings of the network that may be unintended."""
        when = "" if self.status is Status.ok else f"after {self.status_time:.6g} s: "
        notes = [f"{when}{self.status.advice}", *advice(self.net), *listed_starts(self.net)]
        notes += [f"not to be trusted: {why}" for why in faults_of_sharing(self.net, self.links)]
        if self.net.rates == "self_clocked":
            notes += [_flight_warning(self, name) for name in self.flows]
        return "; ".join(filter(None, notes))

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as plain lists: time, links and flows by name."""
        links = {
            name: {key: getattr(run, key).tolist() for key in LINK_KEYS}
            for name, run in self.links.items()
        }
        flows = {
            name: {key: getattr(run, key).T.tolist() for key in FLOW_KEYS}
            for name, run in self.flows.items()
        }
        return {
            "time": self.time.tolist(),
            "links": links,
            "flows": flows,
            "status": self.status.name,
            "message": self.message,
        }

    def to_xarray(self) -> "xarray.Dataset":
        """The trajectory as a labelled dataset with units."""
        trips = {name: _propagation(self.net, name) for name in self.flows}
        attrs = {"title": self.net.title, "source": self.net.source, "status": self.status.name}
        return label(self.time, self.links, self.flows, trips).assign_attrs(attrs)


def label(
    time: Floats, links: Mapping[str, LinkRun], flows: Mapping[str, FlowsRun],
    trips: Mapping[str, Floats], over: tuple[str, ...] = (),
) -> "xarray.Dataset":  # fmt: skip
    """A dataset with units of a run, or of many, `over` a first dimension; `trips` has the round
    trips (m,) of each group without queues [s].
    """
    data: dict[str, Any] = {}
    for name, run in links.items():
        for key in LINK_KEYS:
            full = full_name("links", name, key)
            data[full] = ((*over, "time"), getattr(run, key), attributes("links", key))
    coords: dict[str, Any] = {"time": ("time", time, about("time"))}
    for name, run in flows.items():
        dim = full_name("flows", name, "class")
        full = full_name("flows", name, "propagation")
        coords[full] = ((*over, dim), trips[name], about("propagation"))
        for key in FLOW_KEYS:
            full = full_name("flows", name, key)
            data[full] = ((*over, "time", dim), getattr(run, key), attributes("flows", key))
    import xarray  # heavy

    return xarray.Dataset(data, coords)


def reached(reports: Reports, times: Floats, status: Any, end: Any) -> Reports:
    """Reports of a run, or of many with a first axis for them, without numbers at times [s] that a
    failed one, with its status and its end [s], did not reach.
    """
    failed, last = np.asarray(status)[..., None] != Status.ok, np.asarray(end)[..., None]
    lacking = failed & (times > last * (1.0 + 1e-12))
    if not np.any(lacking):
        return reports

    def blank_out(v: Any) -> Floats:
        return np.where(lacking.reshape(*lacking.shape, *(1,) * (v.ndim - lacking.ndim)), np.nan, v)

    return jax.tree.map(blank_out, reports)


def listed_starts(net: Network) -> list[str]:
    """What the fluid makes of flows with a start each, in a sentence for each group of them."""
    return [
        f"flows.{name}: in the fluid all run from time 0, in trains and packets from their starts"
        for name, flows in zip(net.flow_names, net.flows, strict=True)
        if flows.start.low < flows.start.high and flows.start.each
    ]


def named(net: Network, reports: Reports) -> tuple[dict[str, LinkRun], dict[str, FlowsRun]]:
    """Reports by the names of links and groups."""
    links, groups = jax.tree.map(np.asarray, reports)
    return (
        {name: LinkRun(*v) for name, v in zip(net.link_names, links, strict=True)},
        {
            name: FlowsRun(*v, n=np.asarray(flows.n, float))
            for name, v, flows in zip(net.flow_names, groups, net.flows, strict=True)
        },
    )


def _flight_warning(run: Trajectory, name: str) -> str:
    """Warning if self-clocked flows have more or less in flight than their windows."""
    flow = run.flows[name]
    excess = excess_in_flight(run.time, flow.window, flow.rate, flow.rtt)
    if excess is None:
        return ""
    remedy = "a smaller step" if run.net.delay == "fifo" else "model.delay = 'fifo'"
    return (
        f"not to be trusted: flows.{name} have {abs(excess):.0%} {'more' if excess > 0 else 'less'}"
        f" in flight than their windows; use {remedy}, or model.rates = 'ack'"
    )


def excess_in_flight(time: Floats, window: Floats, rate: Floats, rtt: Floats) -> float | None:
    """Mean packets in flight above the mean window, as a share of it; None if windows hold them.

    Little's law over the second half of a run: the mean flight is that of rate times round trip.

    Parameters
    ----------
    time
        Times [s], shape (T,).
    window, rate, rtt
        Window [packet], rate [packet/s] and round trip [s] of flows, shape (T, m) each; the class
        that is furthest off counts.
    """
    late = (time >= time[-1] / 2) & np.all(np.isfinite(rate), axis=1)
    t = time[late]
    if t.size < _FEWEST_POINTS or t[-1] - t[0] < _ROUND_TRIPS * np.max(rtt[late]):
        return None
    window_integral = np.trapezoid(window[late], t, axis=0)
    flight_integral = np.trapezoid(rate[late] * rtt[late], t, axis=0)
    excess = np.asarray(flight_integral / window_integral - 1)
    worst = float(excess[np.argmax(np.abs(excess))])
    return worst if abs(worst) > _MOST_EXCESS else None


def _propagation(net: Network, name: str) -> Floats:
    return np.asarray(net.flows[net.flow_names.index(name)].rtt, float)


def _report_link(net: Network, k: int, y: State, outputs: Outputs) -> tuple:
    """Numbers of link k, in the order of LinkRun."""
    link = net.links[k]
    q = jnp.clip(y.queues[k], 0.0, link.buffer)  # cubics between nodes overshoot
    clipped = [
        s._replace(mark=jnp.clip(s.mark, 0.0, 1.0), drop=jnp.clip(s.drop, 0.0, 1.0))
        for s in (combine((own,)) for own in outputs.signals)
    ]
    signal = clipped[k]
    marked, dropped, quenches = (jnp.asarray(0.0) for _ in range(3))
    offered = jnp.asarray(link.cross, float)
    dropped = link.cross * signal.drop
    rates = zip(net.flows, outputs.rates, strict=True)
    loads = [flows.n * jnp.maximum(rate, 0.0) for flows, rate in rates]
    own = own_share(net, k, enumerate(loads))
    for flows, sent in zip(net.flows, loads, strict=True):
        if k in flows.route and k not in flows.passes:
            seen = link_signal(net, flows, clipped, k)
            offered = offered + jnp.sum(sent)
            marked = marked + jnp.sum(sent * (seen.either - seen.drop))
            dropped = dropped + jnp.sum(sent * seen.drop)
            if flows.feedback.quench:
                quenches = quenches + jnp.sum(sent * seen.either)
    some = jnp.maximum(offered, 1e-9)
    share = jnp.minimum((offered - dropped) / link.capacity, 1.0)
    used = jnp.where(q > 0, own, share)
    shares = (marked / some, dropped / some)
    return (
        *in_its_share(link, y.laws[k], q, own),
        signal.either,
        *shares,
        signal.load,
        offered,
        quenches,
        used,
    )


def _report_flows(net: Network, i: int, y: State, outputs: Outputs) -> tuple:
    """Numbers of group i, in the order of FlowsRun."""
    flows, rate, s = net.flows[i], jnp.maximum(outputs.rates[i], 0.0), y.senders[i]
    signal = received(flows, tuple(outputs.signals[k] for k in flows.route))
    each = jnp.ones_like(rate)
    rtt = round_trip(net, flows, y.queues)
    delay = path_delay(net, flows, y.queues) * each
    load = known_load(flows, s, signal) * each
    active = s.active if flows.traffic.starts else each
    slow = s.slow if starts_slowly(flows) else 0.0 * each
    law = flows.window  # cubics between nodes overshoot
    window = jnp.clip(law.window(s.law), law.min_window, law.max_window)
    marked, lost = signal.mark * each, signal.drop * each
    return window, rate, rtt, delay, marked, lost, load, active, slow


@compile_once
def report(net: Network, states: jax.Array, records: jax.Array) -> Reports:
    """Numbers of each link and each group over time, from states (T, n) and records (T, U)."""
    y, outputs = blank(net)
    to_state, to_outputs = ravel_pytree(y)[1], ravel_pytree(outputs)[1]
    width = ravel_pytree(outputs)[0].size

    def at_one_time(state: jax.Array, record: jax.Array) -> Reports:
        y, outputs = to_state(state), to_outputs(record[:width])
        now = with_service(net, y.services)
        links = [_report_link(now, k, y, outputs) for k in range(len(net.links))]
        return links, [_report_flows(now, i, y, outputs) for i in range(len(net.flows))]

    return jax.vmap(at_one_time)(states, records)


_POINTS = 1001
_PER_SECOND = 5e6  # numbers of states and outputs, of uniform steps


def checked_times(until: float, points: ArrayLike | None) -> Floats:
    """The times to report, (T,); raises ValueError as described for `simulate`."""
    number = isinstance(until, Real | np.ndarray | jax.Array) and np.ndim(until) == 0
    if not number or not 0 < until <= LONGEST:
        raise ValueError(f"until: expected a time in (0, {LONGEST:g}] s, got {until!r}")
    try:
        times = np.linspace(0.0, until, _POINTS) if points is None else np.asarray(points, float)
    except (TypeError, ValueError):
        times = np.zeros(0)  # no numbers
    row = times.ndim == 1 and times.size > 0
    if not row or not np.all(np.diff(times, prepend=0.0, append=until) >= 0.0):
        raise ValueError(f"points: expected times that increase, within 0 and {until!r} s")
    return times


def check_network(net: Network) -> None:
    """Raise ValueError if the fluid model cannot simulate a network."""
    if why := why_packets(net):
        raise ValueError(why)
    for name, link in zip(net.link_names, net.links, strict=True):
        if net.delay == "fifo" and varies(link) and least_rate(link) < float(link.capacity):
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
        trips = explicit_delays(net, flows, tuple(0.0 for _ in net.links)).trips
        for k, trip in zip(flows.route, trips, strict=True):
            if np.min(signal_age(flows, net.links[k], trip)) <= 0:
                raise ValueError(
                    f"flows.{name}.reverse_delay: trajectories need signals that take some time: "
                    "expected a reverse_delay, or an access_delay, above 0 s, got 0 s from "
                    f"links.{net.link_names[k]}"
                )


def trajectory_time(net: Network, until: float, mesh: AbstractMesh | None = None) -> float:
    """About how long a trajectory takes [s], without compilation; 0 if its steps suit its course,
    which bounds their number.
    """
    net = as_fluid(net)
    mesh = mesh or Uniform()
    if not isinstance(mesh, Uniform):
        return 0.0
    step = uniform_mesh(net, mesh).step
    size = sum(leaf.size for leaf in jax.tree.leaves(blank(net)))
    return until / float(step or until) * size / _PER_SECOND


@reporting
def simulate(
    net: Network,
    *,
    until: float | str,
    points: ArrayLike | None = None,
    mesh: AbstractMesh | None = None,
    progress: Callable[[float], object] | None = None,
) -> Trajectory:
    """Integrate the fluid model of a network from its initial history.

    Parameters
    ----------
    net
        The network; `initial` of links and flows is its constant history.
    until
        End of the run [s]; text is read with its unit, ``"500 ms"``.
    points
        Times to report [s], increasing, within [0, until]; 1001 evenly spaced by default.
    mesh
        How the delay equation is stepped; see `solve_dde`. By default `Uniform()`, in steps of a
        small share of the round trips: as quick if rules jump. Where one jumps the error is of
        first order in the step, so that a peak may be off by a thousandth; `Located(rtol=1e-6)`
        meets a tolerance.
    progress
        Called with 1.0 at the end: a trajectory is one compiled loop, which has no news before.

    Returns
    -------
    Trajectory
        Its `status` gives how the run ended; numbers after a failure are NaN.

    Raises
    ------
    ValueError
        If `until` is not positive, `points` lie outside the run, `mesh` is no mesh, links have a
        schedule or flows stop, flows of a self-clocked network start late (nothing would ever clock
        them), or a signal takes no time.

    Examples
    --------
    >>> import fluidcc as fc
    >>> run = fc.simulate(fc.load("hollot2001/slow"), until=5)
    >>> run.status.name, round(float(run.links["bottleneck"].queue[-1]), 2)
    ('ok', 188.09)
    """
    until = in_seconds("until", until)
    times = checked_times(until, points)
    if mesh is not None:
        check_mesh(mesh)
    given, net = net, as_fluid(net)
    check_network(net)
    system, y0, args = network_system(net, until=until)
    mesh = Uniform() if mesh is None else mesh
    mesh = uniform_mesh(net, mesh) if isinstance(mesh, Uniform) else mesh
    run = integrate(system, y0, 0.0, until, args, ts=times, mesh=mesh)
    reports = report(args.net, run.y, run.record)
    ended = (run.status, run.status_time)
    return Trajectory.of(given, net, times, ended, reports, run.breaking_points)
