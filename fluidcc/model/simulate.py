"""Fluid trajectories of a network."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.arrays import jax
from fluidcc.dde.integrate import AbstractMesh, check_mesh, integrate
from fluidcc.dde.located import Located
from fluidcc.dde.uniform import Uniform
from fluidcc.model.delays import explicit_delays
from fluidcc.model.fluid import as_fluid, varies
from fluidcc.model.layout import blank, starts_late
from fluidcc.model.network_mesh import least_rate, uniform_mesh
from fluidcc.model.network_system import network_system
from fluidcc.model.runs import Floats, Trajectory, report
from fluidcc.scenario.network import LONGEST, Network

_POINTS = 1001
_FEW_CLASSES = 4  # every distinct delay multiplies the breaking points to land on


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
            if np.min(flows.feedback.age(trip)) <= 0:
                raise ValueError(
                    f"flows.{name}.reverse_delay: trajectories need signals that take some time: "
                    "expected a reverse_delay, or an access_delay, above 0 s, got 0 s from "
                    f"links.{net.link_names[k]}"
                )


def simulate(
    net: Network,
    *,
    until: float,
    points: ArrayLike | None = None,
    mesh: AbstractMesh | None = None,
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
        to four distinct round trips if no signal jumps, and nothing changes by ticks, by calls
        that vary or at limits of a queue law's memory; else `Uniform()`, whose error is of first
        order in the step if a signal jumps: a peak may be off by a thousandth.

    Returns
    -------
    Trajectory
        Its `status` gives how the run ended; numbers after a failure are NaN.

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
    times = checked_times(until, points)
    if mesh is not None:
        check_mesh(mesh)
    given, net = net, as_fluid(net)
    check_network(net)
    system, y0, args = network_system(net, until=until)
    if mesh is None:
        few = sum(np.size(f.rtt) for f in net.flows) <= _FEW_CLASSES
        smooth = not jax.tree.leaves(blank(args.net)[0].clocks)
        smooth = smooth and not any(k.queue.is_discontinuous() or k.queue.limits for k in net.links)
        mesh = Located(rtol=1e-6) if few and smooth else Uniform()
    if isinstance(mesh, Uniform):
        mesh = uniform_mesh(net, mesh)
    run = integrate(system, y0, 0.0, until, args, mesh=mesh, ts=times)
    reports = report(args.net, run.y, run.record)
    ended = (run.status, run.status_time)
    return Trajectory.of(given, net, times, ended, reports, run.breaking_points)
