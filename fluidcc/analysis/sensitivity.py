"""`sensitivity`: derivatives of a trajectory, with the motion of every event and breaking point.

Forward mode through the located mesh: its steps land on events by a Newton correction, whose
derivative is that of the event's time; jumps of the right-hand side and of delayed held values
follow from it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.analysis.implicit import directions, pinned
from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import FLUID, Gradient, Measure, find, measures
from fluidcc.analysis.scan import unit_of
from fluidcc.arrays import jax, jnp
from fluidcc.dde import located
from fluidcc.dde.integrate import Status, power_of_two
from fluidcc.dde.located import MOST_STEPS, Located
from fluidcc.dde.system import System
from fluidcc.executables import compile_once
from fluidcc.model.fluid import as_fluid
from fluidcc.model.network_mesh import periods, uniform_mesh
from fluidcc.model.network_system import Numbers, initial_state, network_system, start
from fluidcc.model.rates import Modes
from fluidcc.model.simulate import (
    FLOW_KEYS,
    LINK_KEYS,
    FlowsRun,
    LinkRun,
    Trajectory,
    check_network,
    checked_times,
    named,
    report,
)  # fmt: skip
from fluidcc.ops import Num
from fluidcc.progress import counted, reporting
from fluidcc.quantities import BY_UNIT, about, labels
from fluidcc.result import Result
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import in_seconds
from fluidcc.scenario.paths import check_paths

if TYPE_CHECKING:
    import xarray

_BREAKS_OF_TICK = 8  # breaking points that follow from a tick, about
_GAUSS = 0.5 - 0.5 / math.sqrt(3.0)  # two points an interval, exact for cubics


@dataclasses.dataclass(frozen=True, repr=False)
class Sensitivity(Result):
    """A trajectory, its derivatives by parameters, and means over time with theirs.

    `slopes` has the same structure per path as `run`: links and groups by name, with derivatives in
    place of values. Means are from `after` on, exact for the cubics between nodes.

    `means` and `mean_slopes` have those over time in the same shape.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.sensitivity(fc.load("hollot2001/slow"), ["flow.rtt"], until=5)
    >>> list(found.slopes)
    ['flow.rtt']
    """

    _view = "runs.SensitivityView"

    run: Trajectory
    after: float
    slopes: dict[str, tuple[dict[str, LinkRun], dict[str, FlowsRun]]]
    means: tuple[dict[str, LinkRun], dict[str, FlowsRun]]
    mean_slopes: dict[str, tuple[dict[str, LinkRun], dict[str, FlowsRun]]]

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.run.status

    @property
    def message(self) -> str:
        """The status in words."""
        return self.run.message

    @property
    def quantities(self) -> list[str]:
        """Full names of the quantities with means and final values."""
        links = [f"links.{name}.{key}" for name in self.run.links for key in LINK_KEYS]
        return links + [f"flows.{name}.{key}" for name in self.run.flows for key in FLOW_KEYS]

    def end(self, name: str) -> Gradient:
        """The gradient of a quantity, such as ``links.bottleneck.queue``, at the end of the run."""
        return self._gradient(name, "end", (self.run.links, self.run.flows), self.slopes)

    def mean(self, name: str) -> Gradient:
        """The gradient of a quantity's mean over time, from `after` to the end."""
        return self._gradient(name, "mean", self.means, self.mean_slopes)

    def _gradient(self, name: str, what: str, values: Any, slopes: dict[str, Any]) -> Gradient:
        run, net = self.run, as_fluid(self.run.net)
        of = find(net, name, measures(net, FLUID), "sensitivity")
        units = {path: unit_of(run.net, path) for path in slopes}
        failed = run.status is not Status.ok
        return Gradient(
            f"{what} of {name}", _last(of, values), {p: _last(of, v) for p, v in slopes.items()},
            run.status.name, run.status.advice if failed else "", of.unit, units, {},
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The trajectory, and per path the derivatives of links and flows, as plain lists; means
        and ends of all quantities with their derivatives.
        """
        by = {
            path: dataclasses.replace(self.run, links=links, flows=flows).to_dict()
            for path, (links, flows) in self.slopes.items()
        }
        slopes = {path: {k: v[k] for k in ("links", "flows")} for path, v in by.items()}
        means = {name: _brief(self.mean(name)) for name in self.quantities}
        ends = {name: _brief(self.end(name)) for name in self.quantities}
        totals = {"after": self.after, "means": means, "ends": ends}
        return {**self.run.to_dict(), "slopes": slopes, **totals}

    def to_xarray(self) -> xarray.Dataset:
        """The trajectory, and its derivatives along the dimension `parameter`, with units."""
        import xarray as xr

        out = self.run.to_xarray()
        each = [
            dataclasses.replace(self.run, links=links, flows=flows).to_xarray()
            for links, flows in self.slopes.values()
        ]
        joined = xr.concat(each, dim="parameter", combine_attrs="drop")
        for name in out.data_vars:
            own = out[name].attrs
            out[f"slope of {name}"] = joined[name].assign_attrs(
                units=f"{own['units']} / {BY_UNIT}",
                long_name=f"derivative by the parameter: {own['long_name']}",
            )
        units = [unit_of(self.run.net, path) for path in self.slopes]
        coords = labels(parameter=self.slopes) | {"unit": ("parameter", units, about("unit"))}
        return out.assign_coords(coords)


@reporting
def sensitivity(
    net: Network,
    over: Sequence[str],
    *,
    until: float | str,
    points: ArrayLike | None = None,
    after: float | str = 0.0,
    mesh: Located | None = None,
    progress: Callable[[float], object] | None = None,
) -> Sensitivity:
    """A trajectory of the fluid model and its derivatives by parameters, delays and initial state.

    Parameters
    ----------
    net
        The network; `initial` of links and flows is its constant history.
    over
        Paths of numbers, those of the initial state included; `n` scales a group as a whole.
    until
        End of the run [s]; text is read with its unit.
    points
        Times to report [s], increasing, within [0, until]; 1001 evenly spaced by default.
    after
        Start of the means over time [s], or text as for `until`.
    mesh
        `Located` with a step; by default that of `uniform_mesh`.
    progress
        Called with the finished share, in [0, 1], after each path.

    Returns
    -------
    Sensitivity
        `run`, the trajectory; `slopes` by path: the derivatives of each of its arrays, in the same
        shape and in its unit over that of the parameter; `means` over time and `mean_slopes`.

    Raises
    ------
    ScenarioError
        For paths that do not exist or lead to no number.
    ValueError
        Without a path, if `simulate` refuses the arguments, for `after` outside the run, and a mesh
        without a fixed step.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.sensitivity(net, ["flow.rtt"], until=5)
    >>> found.status.name
    'ok'
    """
    until, after = in_seconds("until", until), in_seconds("after", after)
    check_paths(net, over, where="sensitivity")
    paths = tuple(dict.fromkeys(over))
    if not paths:
        raise ValueError("over: expected at least one path, got none")
    given, fluid = net, as_fluid(net)
    if mesh is None:
        mesh = Located(float(uniform_mesh(net).step))
    if not isinstance(mesh, Located) or mesh.step is None:
        raise ValueError(f"mesh: derivatives need Located with a step, got {mesh!r}")
    times = checked_times(until, points)
    check_network(fluid)
    if not 0 <= after < until:
        raise ValueError(f"after: expected a time within 0 and {until!r} s, got {after!r}")
    system, _, numbers = network_system(fluid, until=until)
    ticks = sum(until / between for between in periods(fluid))
    steps = mesh.max_steps or 1.3 * until / float(mesh.step) + _BREAKS_OF_TICK * ticks + 1000.0
    arguments = (
        numbers.net, numbers.own.courses, jnp.asarray(float(until)), jnp.asarray(float(mesh.step)),
        jnp.asarray(times), jnp.asarray(float(after)),
    )  # fmt: skip
    every, capacity = [], power_of_two(steps + 3)
    for direction in counted(directions(net, paths, steady=False)):
        run_in = functools.partial(_run, *arguments, direction, system=system)
        most = MOST_STEPS if mesh.max_steps is None else capacity
        (values, slopes, (status, reached, breaks)), capacity = _run_with_memory(
            run_in, capacity, most
        )
        if int(status) != Status.ok:
            values, slopes = jax.tree.map(lambda v: np.full_like(v, np.nan), (values, slopes))
        every.append(slopes)
    by_name = functools.partial(named, fluid)
    run = Trajectory.of(given, fluid, times, (status, reached), values[0], breaks)
    return Sensitivity(
        run, after, {p: by_name(s[0]) for p, s in zip(paths, every, strict=True)},
        by_name(values[1]), {p: by_name(s[1]) for p, s in zip(paths, every, strict=True)},
    )  # fmt: skip


def _run_with_memory(run: Callable[..., Any], capacity: int, most: int) -> tuple[Any, int]:
    """Results of a run with enough memory for its steps, up to `most`, and its capacity."""
    while True:
        found = jax.tree.map(np.asarray, run(capacity=capacity))
        if int(found[2][0]) != Status.step_limit or capacity >= most:
            return found, capacity
        capacity *= 8


@compile_once(static_argnames=("system", "capacity"))
def _run(
    net: Network, courses: tuple, until: Num, step: Num, times: Num, after: Num, along: Network,
    *, system: System, capacity: int,
) -> tuple:  # fmt: skip
    """Reports at the times and means over time, their derivatives in one direction, how it ended.

    One direction at a time: runs cost little, and one compiled program serves any number of them.
    """

    def reports(net: Network) -> tuple[tuple, tuple]:
        y0, before = start(net, courses)
        numbers = Numbers.of(net, before, courses)
        zero = jnp.zeros(())
        mode = located.Machine(system, zero, until, step, numbers).start(y0, capacity, 1).mode
        y0 = _on_bounds(net, courses, mode)
        run = located.integrate(
            system, y0, zero, until, step, numbers, capacity=capacity, jump=False
        )
        nodes = jnp.clip(located.nodes(run), after, run.end)
        length = jnp.diff(nodes)
        inside = (nodes[:-1] + _GAUSS * length, nodes[1:] - _GAUSS * length)
        weight = jnp.concatenate([length, length]) / (2 * (run.end - after))
        rows = located.remembered(run, jnp.concatenate([times, *inside]))
        width = rows.shape[1] - y0.size
        seen = report(net, rows[:, width:], rows[:, :width])
        given = jax.tree.map(lambda v: v[: times.size], seen)
        mean = jax.tree.map(lambda v: jnp.tensordot(weight, v[times.size :], 1)[None], seen)
        return (given, mean), (run.status, run.status_time, run.events)

    return jax.jvp(reports, (net,), (along,), has_aux=True)


def _on_bounds(net: Network, courses: tuple, mode: Num) -> Num:
    """The state at the start; components held at a bound move with the bound."""
    ends = np.cumsum([len(net.links), *(np.size(flows.rtt) for flows in net.flows)])
    queues, *windows = jnp.split(mode, ends[:-1])
    return pinned(net, initial_state(net, courses), Modes(tuple(queues), tuple(windows)))


def _brief(found: Gradient) -> dict[str, Any]:
    """A gradient's numbers and unit alone."""
    values = found.to_dict()
    return {name: values[name] for name in ("value", "derivatives", "unit")}


def _last(of: Measure, values: tuple[Any, Any]) -> float:
    """Final value of a quantity of links or groups; for a group the mean over its flows."""
    own = values[of.kind == "flows"][of.owner]
    last: Array = getattr(own, of.key)[-1]
    return float(last if of.kind == "links" else of.of_flows(own.n, last))
