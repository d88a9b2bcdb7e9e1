"""Stability over a grid of parameters: equilibria, linearisations and roots of one network at many
values of its parameters, computed in lanes.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc import memory
from fluidcc.analysis.balance import holds
from fluidcc.analysis.batch import filled, in_threads, many_roots
from fluidcc.analysis.equilibrium import Equilibrium, Searches, conclude, equilibrium, search
from fluidcc.analysis.flow_response import Answering
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import jacobians, linearize, still
from fluidcc.analysis.local_model import NEAR
from fluidcc.analysis.operating_point import (
    AGREE,
    OperatingPoint,
    Regime,
    agree,
    has_dead_zones,
    steady_state,
)
from fluidcc.analysis.population_batch import MOST_TOGETHER, answer_together, equilibria_together
from fluidcc.analysis.roots import critical
from fluidcc.analysis.stability import Stability, count_unstable, is_population, judge
from fluidcc.analysis.steady_laws import LARGEST_WINDOW, memory_with_signal
from fluidcc.arrays import jax, jnp
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.executables import compile_once
from fluidcc.model.delays import kinks
from fluidcc.model.fluid import as_fluid, has_motion, steady
from fluidcc.model.members import MemberGrid
from fluidcc.ops import Num
from fluidcc.programs import compiling, map_tree
from fluidcc.progress import report, reporting
from fluidcc.quantities import about, about_parameter, attributes, full_name
from fluidcc.result import REASONED, Result
from fluidcc.scenario.grid import Grid, GridPoints
from fluidcc.scenario.network import Network, to_arrays
from fluidcc.scenario.paths import replace
from fluidcc.scenario.reader import Outcome

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class MapPoint:
    """One point of a map: its parameters, its verdict, and the reason if there is none.

    `status` is that of the equilibrium, or `failed`; `unstable` and `rightmost` [1/s] are None
    if unknown, the latter for populations; `proven`: no root is further right.
    """

    set: Mapping[str, Any]
    status: str
    message: str = ""
    stable: bool | None = None
    unstable: int | None = None
    certified: bool = False
    rightmost: complex | None = None
    proven: bool = False
    queues: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def describe(self) -> str:
        """The failed point and the reason, in one line."""
        return Outcome(self.set, self.status, self.message).describe()


class MapPoints(GridPoints[MapPoint]):
    """Points of a map in the order of the grid, as arrays.

    `columns` has its fields (P,), -1 or NaN where one is None, but what is set; `queues` (P,)
    [packet] are those of the links by name, NaN where there is none.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid)
        count, unknown = len(grid), complex(np.nan, np.nan)
        self.columns: dict[str, Array] = {
            "status": np.full(count, "failed", object), "message": np.full(count, "", object),
            "stable": np.full(count, -1), "unstable": np.full(count, -1),
            "certified": np.zeros(count, bool), "rightmost": np.full(count, unknown),
            "proven": np.zeros(count, bool),
        }  # fmt: skip
        self.queues: dict[str, Array] = {}

    def put(self, numbers: Any, queues: Mapping[str, Any], **columns: Any) -> None:
        """Put what is known of some points, by their numbers."""
        for name, values in columns.items():
            self.columns[name][numbers] = values
        for name, values in queues.items():
            self.queues.setdefault(name, np.full(len(self), np.nan))[numbers] = values

    def put_point(self, number: int, point: MapPoint) -> None:
        """Put one point."""
        known = {name: getattr(point, name) for name in self.columns}
        self.put(number, point.queues, **{k: v for k, v in known.items() if v is not None})

    def at(self, number: int) -> MapPoint:
        """The point of this number."""
        own: dict[str, Any] = {name: v[number] for name, v in self.columns.items()}
        failed, stable, unstable = own["status"] == "failed", own["stable"], own["unstable"]
        queues = {} if failed else {name: float(v[number]) for name, v in self.queues.items()}
        return MapPoint(
            self.grid.point(number), own["status"], own["message"],
            stable=None if stable < 0 else bool(stable),
            unstable=None if unstable < 0 else int(unstable), certified=bool(own["certified"]),
            rightmost=None if np.isnan(own["rightmost"]) else complex(own["rightmost"]),
            proven=bool(own["proven"]), queues=queues,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class StabilityMap(Result):
    """Verdicts over a grid of parameters; `points` in the order of the grid, the last axis fastest.

    `batched` is the number of points computed in batches; the others were computed one by one.

    `axes` has values by path, `units` their units; `net` is the network that was changed.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.stability_map(fc.load("hollot2001/slow"), {"flow.n": [40, 60]})
    >>> found.shape, found.failed
    ((2,), ())
    """

    _view = "grids.MapView"
    _in_dict = ("points",)

    axes: Mapping[str, tuple]
    units: Mapping[str, str]
    points: MapPoints
    batched: int
    net: Network | None = dataclasses.field(default=None, repr=False)

    @property
    def failed(self) -> tuple[MapPoint, ...]:
        """The points at which there is no such network."""
        return self._with("failed")

    @property
    def reasons(self) -> tuple[Outcome, ...]:
        """The points that lack numbers, each with `set`, `status` and `message`."""
        return tuple(Outcome(p.set, p.status, p.message) for p in self._with(*REASONED))

    def _with(self, *statuses: str) -> tuple[MapPoint, ...]:
        """The points with one of these statuses."""
        found = np.isin(self.points.columns["status"].astype(str), statuses)
        return tuple(map(self.points.at, np.flatnonzero(found).tolist()))

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.points.grid.shape

    def grid(self, name: str) -> Array:
        """A field of all points, or ``links.NAME.queue``, over the axes: Booleans are 1 and 0 if
        they may be unknown; what is unknown is -1, a number NaN.

        Raises ScenarioError for a name that is none of these.
        """
        queues = {full_name("links", k, "queue"): v for k, v in self.points.queues.items()}
        known = self.points.columns | queues
        if name not in known:
            form, close = f"one of {', '.join(known)}", nearest(name, list(known))
            raise ScenarioError([Fault("grid", "name", form, f"{name!r}", close)])
        column = known[name]
        kind = str if column.dtype == object else column.dtype
        return column.astype(kind).reshape(self.shape)

    def to_xarray(self) -> xarray.Dataset:
        """Labelled arrays over the axes."""
        import xarray as xr

        dims, roots = tuple(self.axes), self.grid("rightmost")
        counts = ("stable", "unstable", "certified", "proven")
        columns = {
            **{name: self.grid(name).astype(int) for name in counts},
            "root_real": np.real(roots), "root_imag": np.imag(roots),
            **{name: self.grid(name) for name in ("status", "message")},
            "failed": (self.grid("status") == "failed").astype(np.int8),
        }  # fmt: skip
        variables: dict[Any, Any] = {k: (dims, v, about(k)) for k, v in columns.items()}
        for name in self.points.queues:
            full = full_name("links", name, "queue")
            variables[full] = (dims, self.grid(full), attributes("links", "queue"))
        coords = {a: (a, list(v), about_parameter(a, self.units[a])) for a, v in self.axes.items()}
        return xr.Dataset(variables, coords=coords)

    def __repr__(self) -> str:
        stable, words = self.grid("stable"), []
        for value, word in ((1, "stable"), (0, "unstable"), (-1, "undetermined")):
            words.append(f"{int(np.sum(stable == value))} {word}")
        counts = sorted(collections.Counter(self.points.columns["status"].tolist()).items())
        statuses = ", ".join(f"{count} {name}" for name, count in counts)
        sizes = " x ".join(map(str, self.shape))
        lines = [
            f"StabilityMap over {', '.join(self.axes)}, {sizes} points: {', '.join(words)}",
            f"  status: {statuses}; {int(np.sum(self.grid('certified')))} certified, "
            f"{self.batched} in batches",
        ]
        return "\n".join([*lines, *(f"  {p.describe()}" for p in self.failed)])


@reporting
@compiling()
def stability_map(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    *,
    progress: Callable[[float], object] | None = None,
) -> StabilityMap:
    """Stability at every point of a grid: verdict, certified count and rightmost root.

    The same verdicts as `sweep` with `stability`, many times as fast, but without margins, further
    roots and advice. Points of a network of one link with a smooth equilibrium are solved in
    batches, and so are populations at one link that differ in its numbers, in how many flows there
    are and in round trips alone; all others one by one.

    Parameters
    ----------
    net
        The network to start from.
    over
        Values by path; the grid is their product. Text is read as a quantity with its unit.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    StabilityMap
        `points` in the order of the grid, each with its verdict, count of unstable roots and
        `rightmost` root [1/s].

    Raises
    ------
    ScenarioError
        If a path, a value's unit or a list of values is wrong. Failures at single points are in
        `failed`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.stability_map(net, {"link.queue.w_q": [1e-6, 1e-3]})
    >>> [point.unstable for point in found.points]
    [0, 2]
    """
    grid = Grid.of(net, over)
    points, batched = MapPoints(grid), 0
    for numbers, left, searches in _batches(net, points):
        batched += len(numbers) - len(left)
        done = numbers.stop - len(left)
        report(done / len(grid))
        for k, i in enumerate(left):
            ends = map_tree(lambda v, k=k: v[k], searches)
            points.put_point(i, _solve_point(net, grid.point(i), ends))
            report((done + k + 1) / len(grid))
    return StabilityMap(grid.axes, grid.units, points, batched, net)


def _batches(net: Network, points: MapPoints) -> Iterator[tuple[range, Sequence[int], Searches]]:
    """Points of the grid in turn: their numbers, those of the points that are left after the others
    are solved together and put, and the ends of the searches at these, if they are known.
    """
    count = len(points)
    if net.closure != "population":
        yield range(count), *_solve_batch(net, points)
        return
    for first in range(0, count, MOST_TOGETHER):
        numbers = range(first, min(first + MOST_TOGETHER, count))
        changes = [points.grid.point(i) for i in numbers]
        try:
            rests = equilibria_together(net, changes)
            answers = answer_together(rests)
            found = {k: _judge(changes[k], rest, answers.get(k)) for k, rest in rests.items()}
        except Exception:  # one by one, so that what is wrong at one ends no others
            found = {}
        for k, point in found.items():
            points.put_point(first + k, point)
        yield numbers, [i for i in numbers if i - first not in found], ()


def _judge(
    changes: dict[str, Any], rest: Equilibrium, answering: list[list[Answering]] | None = None
) -> MapPoint:
    """One point of a population, whose groups may be known to answer so."""
    unstable, message = count_unstable(rest, answering)
    queues = {name: link.queue for name, link in rest.links.items()}
    stable = None if unstable is None else unstable == 0
    return MapPoint(changes, rest.status, message, stable, unstable, queues=queues)


def _solve_batch(net: Network, points: MapPoints) -> tuple[Sequence[int], Searches]:
    """Put the points with a smooth equilibrium; the numbers of the others, and the ends of the
    searches there.
    """
    grid = points.grid
    members = MemberGrid(net, grid.axes, to_arrays).together() if _batchable(net) else None
    if members is None:
        return range(len(points)), ()
    rests, searches = at_rest(members.stacked)
    chosen = np.flatnonzero(rests.smooth)
    names = as_fluid(net).link_names
    for own, systems in families(rests, chosen, lambda i: replace(net, grid.point(i))):
        places = np.stack(np.unravel_index(own, grid.shape), axis=1)
        roots = many_roots(systems, places=places)
        near = ~roots.certified & critical(roots.rightmost)
        points.put(
            own, dict(zip(names, rests.queues[own].T, strict=True)),
            status=np.where(rests.empty[own], "empty", "regular"),
            stable=np.where(near, -1, roots.unstable == 0), unstable=roots.unstable,
            certified=roots.certified, rightmost=roots.rightmost, proven=roots.proven,
        )  # fmt: skip
    return np.flatnonzero(~rests.smooth).tolist(), searches


def _solve_point(net: Network, changes: dict[str, Any], searches: Searches) -> MapPoint:
    """One point by `stability`; without cycles if the equilibrium is on a discontinuity."""
    try:
        here = replace(net, changes)
        rest = conclude(here, steady(here), searches) if searches else equilibrium(here)
        if is_population(rest):
            return _judge(changes, rest)
        queues = {name: link.queue for name, link in rest.links.items()}
        if not rest.smooth:
            return MapPoint(changes, rest.status, rest.message, queues=queues)
        found: Stability = judge(rest)
    except Exception as error:  # whatever goes wrong at one point must not end the others
        return MapPoint(changes, "failed", str(error) or type(error).__name__)
    return MapPoint(
        changes, found.status, found.message, found.stable, found.unstable, found.certified,
        found.rightmost, found.proven > 0, queues,
    )  # fmt: skip


_ON_PROCESSOR, _ON_CARD = 128, 1 << 16
"""Networks that are solved together: the host of a card waits in every turn of a search."""


class OperatingPoints(NamedTuple):
    """Networks at equilibrium, first axis the networks (P,).

    Queues (P, links) [packet], whether all queues are empty, whether the equilibrium is smooth and
    the only one found, and the matrices of `Linear` with the lags [s] and the states held at a
    bound.
    """

    queues: Any
    empty: Any
    smooth: Any
    A: Any
    B: Any
    C: Any
    D: Any
    lag: Any
    frozen: Any


@compile_once
@jax.vmap
def _solve(net: Network) -> tuple[Network, Searches, Num]:
    """The fluid network, its operating points from all initial states of laws, and whether these
    are one.
    """
    net = steady(net)
    op, *others = searches = search(net)
    alone = (op.moved <= AGREE) & ~has_dead_zones(net, op)
    for other in others:
        alone = alone & agree(op, other)
    return net, searches, alone


def _hold_jumps(net: Network, op: OperatingPoint) -> tuple[OperatingPoint, Num]:
    """The operating point with memories of links held on a discontinuity; their mask (links,)."""
    laws, steady = list(op.laws), []
    for k, link in enumerate(net.links):
        below, now = op.signals_below[k], op.emitted[k].signal
        if not jax.tree.leaves(laws[k]):
            steady.append(jnp.asarray(False))
            continue
        memory = memory_with_signal(link, op.backlogs[k], now, op.lost[k])
        moves = (below.drop == now.drop) != (below.mark == now.mark)  # one of both
        moves = moves & (op.codes[k] == Regime.JUMP)
        steady.append(moves & memory.found & memory.smooth)
        laws[k] = jax.tree.map(functools.partial(jnp.where, steady[k]), memory.memory, laws[k])
    return op._replace(laws=tuple(laws)), jnp.stack(steady)


@compile_once(static_argnames="jumps")
def _linearise(net: Network, op: OperatingPoint, alone: Num, jumps: bool) -> OperatingPoints:
    """Linearise networks at equilibrium (P,); `jumps`: some links are on a discontinuity."""

    def linearise(net: Network, op: OperatingPoint, alone: Num) -> OperatingPoints:
        op, steady = _hold_jumps(net, op) if jumps else (op, False)
        smooth = alone & jnp.all(
            (op.codes == Regime.INTERIOR) | (op.codes == Regime.EMPTY) | steady
        )
        for flows, window in zip(net.flows, op.windows, strict=True):
            endless = jnp.isinf(jnp.asarray(flows.window.max_window, float))
            smooth = smooth & ~(endless & (jnp.max(window) >= LARGEST_WINDOW))
        for _, distance in kinks(net, steady_state(net, op)):
            smooth = smooth & (jnp.abs(jnp.asarray(distance, float)) >= NEAR)
        A, B, C, D, lag, frozen = jacobians(net, op, jnp.zeros(()))
        smooth = smooth & holds(net, op, (A, B, C, D)) & jnp.all(jnp.isfinite(lag))
        empty = jnp.all(op.codes == Regime.EMPTY)
        return OperatingPoints(op.queues, empty, smooth, A, B, C, D, lag, frozen)

    return jax.vmap(linearise)(net, op, alone)


def at_rest(stacked: Network) -> tuple[OperatingPoints, Searches]:
    """OperatingPoints of networks whose leaves have a first axis for them, and the searches of
    those whose equilibrium is not smooth.
    """
    count = len(jax.tree.leaves(stacked)[0])
    lanes = _ON_PROCESSOR if memory.place().platform == "cpu" else _ON_CARD

    def block(part: slice) -> tuple[OperatingPoints, Searches]:
        some = jax.tree.map(lambda x: filled(x[part], lanes), stacked)
        net, searches, alone = _solve(some)
        jumps = bool(np.any(np.asarray(searches[0].codes) == Regime.JUMP))
        found = _linearise(net, searches[0], alone, jumps), searches
        rests, searches = jax.tree.map(lambda x: np.asarray(x)[: count - part.start], found)
        return rests, jax.tree.map(lambda x: x[~rests.smooth], searches)

    parts = in_threads(block, count, lanes)
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _batchable(net: Network) -> bool:
    """Whether the network has equations of motion, and there is one link.

    Several links may have several equilibria, which `equilibrium` looks for from further starts.
    """
    return has_motion(as_fluid(net)) and len(net.by_group.links) == 1


def families(
    rests: OperatingPoints, chosen: Array, at: Callable[[int], Network]
) -> list[tuple[Array, Linear]]:
    """Linear systems of the equilibria `chosen` (indices), in groups of one structure each.

    `at` gives the network of an index.
    """
    free = (rests.frozen[chosen] == 0) & ~still(rests.A[chosen], rests.B[chosen])
    out = []
    while len(chosen):
        kept = free[0]
        alike = np.all(free == kept, axis=1)
        own, chosen, free = chosen[alike], chosen[~alike], free[~alike]
        square = np.ix_(own, kept.nonzero()[0], kept.nonzero()[0])
        structure = linearize(at(int(own[0])))
        out.append((own, dataclasses.replace(
            structure, A=rests.A[square], B=rests.B[own][:, kept], C=rests.C[own][:, :, kept],
            D=rests.D[own], lag=rests.lag[own],
        )))  # fmt: skip
    return out
