"""Fluid trajectories over a grid of parameters, stepped side by side."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from fluidcc.dde.uniform import Uniform
from fluidcc.model.simulate import checked_times
from fluidcc.model.simulate_batch import Member, simulate_batch
from fluidcc.result import failure
from fluidcc.scenario.network import Network
from fluidcc.sweep.grid import Grid
from fluidcc.sweep.plan import Clock, Progress
from fluidcc.sweep.result import Sweep, evaluate_point


def simulate_map(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    *,
    until: float,
    points: ArrayLike | None = None,
    mesh: Uniform | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Integrate the fluid model at every point of a grid, points of one structure side by side.

    The results are those of `sweep` with `simulate` on uniform steps, to rounding if the steps are
    equal. It uses all processors, without `fast_cpu`. With ``Uniform(fused=True)`` each structure
    is one kernel, on the GPU if JAX computes on one: the fastest choice on processors too.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text stands for quantities with units.
    until
        End of the runs [s].
    points
        Times to report [s], increasing, within [0, until]; 1001 evenly spaced by default.
    mesh
        Uniform steps, by default `Uniform()`: each network has the step of `simulate`, or up to
        16 % less: lengths are rounded down to four per octave, so that networks share them. Ticks
        and self-clocked flows need the exact step: then only equal steps are batched.
    progress
        Called with a `Progress`, the finished share, as runs end; first for points that fail before
        their runs.

    Returns
    -------
    Sweep
        A `Trajectory` for each point, in the order of the grid.

    Raises
    ------
    ScenarioError
        If a path, a value's unit or a list of values is wrong. Errors at single points are in
        `failed`.
    ValueError
        If `until` is not positive, `points` lie outside the runs, `mesh` is not `Uniform` or is in
        single precision, or the trajectories together would not fit in memory.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.simulate_map(net, {"flow.n": [40, 60]}, until=5)
    >>> [round(float(p.result.links["bottleneck"].queue[-1]), 1) for p in found.points]
    [0.0, 188.1]
    """
    mesh = Uniform() if mesh is None else mesh
    if not isinstance(mesh, Uniform) or mesh.single:
        raise ValueError(
            "mesh: expected Uniform, whose steps many networks share, in double precision, got "
            f"{mesh!r}"
        )
    times, grid = checked_times(until, points), Grid.of(net, over)
    begin = functools.partial(Member.of, until=until)
    swept = [evaluate_point(net, changes, begin) for changes in grid.points()]
    runnable = [k for k, point in enumerate(swept) if point.result is not None]
    clock = Clock(len(grid), failed := len(grid) - len(runnable), failed)
    report = progress or (lambda now: None)
    if failed:
        report(clock.count(0, 0))
    for j, run in simulate_batch([swept[k].result for k in runnable], until, times, mesh):
        k = runnable[j]
        result, message = (None, run) if isinstance(run, str) else (run, failure(run))
        swept[k] = dataclasses.replace(swept[k], result=result, message=message)
        report(clock.count(1, int(bool(message))))
    return Sweep(grid.axes, grid.units, tuple(swept))
