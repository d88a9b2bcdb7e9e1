"""Fluid trajectories of many networks, as over a grid of parameters: those of one structure are
stepped together, in batches.
"""

import concurrent.futures
import functools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc import memory
from fluidcc.arrays import jax
from fluidcc.dde.integrate import devices_for, integrate, power_of_two
from fluidcc.dde.uniform import Uniform
from fluidcc.machine import threads
from fluidcc.model.fluid import as_fluid
from fluidcc.model.members import MemberGrid, Members
from fluidcc.model.network_mesh import shared_meshes
from fluidcc.model.network_system import prepared, starts, system_of
from fluidcc.model.simulate import (
    FLOW_KEYS,
    LINK_KEYS,
    Floats,
    Reports,
    Trajectory,
    check_network,
    checked_times,
    label,
    named,
    reached,
    report,
)
from fluidcc.ops import is_tracer
from fluidcc.programs import leaves, map_tree
from fluidcc.progress import Clock, Progress, reporting
from fluidcc.progress import report as report_share
from fluidcc.result import failure
from fluidcc.scenario.grid import Grid
from fluidcc.scenario.network import Network, to_arrays
from fluidcc.scenario.parsing import in_seconds
from fluidcc.sweep.result import Point, Points, Sweep

if TYPE_CHECKING:
    import xarray


@reporting
def simulate_map(
    net: Network,
    over: Mapping[str, Iterable[Any]],
    *,
    until: float | str,
    points: ArrayLike | None = None,
    mesh: Uniform | None = None,
    progress: Callable[[Progress], object] | None = None,
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
        End of the runs [s]; text is read with its unit.
    points
        Times to report [s], increasing, within [0, until]; 1001 evenly spaced by default.
    mesh
        Uniform steps, by default `Uniform()`: each network has the step of `simulate`, or up to
        16 % less: lengths are rounded down to four per octave, so that networks share them. Ticks
        and self-clocked flows need the exact step: then only equal steps are batched.
    progress
        Called with a `Progress`, the finished share, as batches of runs end; first for points that
        fail before their runs.

    Returns
    -------
    Sweep
        A `Trajectory` for each point, in the order of the grid, made when it is asked for.

    Raises
    ------
    ScenarioError
        If a path, a value's unit or a list of values is wrong. Errors at single points are in
        `failed`.
    ValueError
        If `until` is not positive, `points` lie outside the runs, `mesh` is not `Uniform`, or the
        trajectories together would not fit in memory.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.simulate_map(net, {"flow.n": [40, 60]}, until=5)
    >>> [round(float(p.result.links["bottleneck"].queue[-1]), 1) for p in found.points]
    [0.0, 188.1]
    """
    until, mesh = in_seconds("until", until), Uniform() if mesh is None else mesh
    if not isinstance(mesh, Uniform):
        raise ValueError(f"mesh: expected Uniform, whose steps many networks share, got {mesh!r}")
    times, grid = checked_times(until, points), Grid.of(net, over)
    members, messages = [], {}
    for part in MemberGrid(net, grid.axes, functools.partial(_prepare, until=until)).parts():
        if isinstance(part, Members):
            members.append(part)
        else:
            messages[part[0]] = part[1]
    clock = Clock(len(grid), len(messages), len(messages))
    if messages:
        report_share(clock.count(0, 0))
    runs = Runs(grid, times, members, messages)
    for launch, outcome in _run_all(list(_kinds(members)), until, times, mesh):
        failed = runs.add(launch, outcome)
        report_share(clock.count(len(launch.rows), failed))
    return Sweep(grid.axes, grid.units, runs, net)


_ON_PROCESSOR, _ON_CARD = 8, 1 << 16
"""Most networks in one launch: on a processor, where more are no faster, and on a card."""
_SHARE = 0.1  # of the memory of an accelerator, for the results of a launch

T = TypeVar("T")
_compiled: set[Hashable] = set()  # names of programs
_reports = jax.jit(jax.vmap(report))


def _prepare(given: Network, until: float) -> tuple[Network, tuple]:
    """A network in the form of its equation, and the courses of its calls, up to `until` [s].

    Raises ValueError if the fluid model cannot simulate it.
    """
    net = as_fluid(given)
    if not any(map(is_tracer, leaves(net))):
        check_network(net)
    return prepared(to_arrays(net), until)


class _Kind(NamedTuple):
    """Networks that can be stepped in one batch: their structure, their numbers (P,) in the grid,
    and what is prepared of them, with a first axis (P,).
    """

    key: Hashable
    numbers: NDArray[np.int64]
    stacked: tuple[Network, tuple]

    @property
    def columns(self) -> int:
        """Number of values reported at each time."""
        net = self.stacked[0]
        classes = sum(np.shape(flows.rtt)[-1] for flows in net.flows)
        return len(LINK_KEYS) * len(net.links) + len(FLOW_KEYS) * classes


def _kinds(members: Sequence[Members]) -> Iterator[_Kind]:
    """All members, those of one kind joined."""
    groups: dict[Hashable, list[Members]] = {}
    for own in members:
        found, structure = jax.tree.flatten(own.stacked)
        groups.setdefault((structure, *(v.shape[1:] for v in found)), []).append(own)
    for key, alike in groups.items():
        numbers, stacked = alike[0].numbers, alike[0].stacked
        if alike[1:]:
            numbers = np.concatenate([own.numbers for own in alike])
            stacked = map_tree(lambda *v: np.concatenate(v), *(own.stacked for own in alike))
        yield _Kind(key, numbers, stacked)


class _Launch(NamedTuple):
    """Some networks of one kind, by their rows (L,) there, on one mesh; filled up to a size."""

    kind: _Kind
    rows: NDArray[np.int64]
    size: int
    mesh: Uniform

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the networks in the grid."""
        return self.kind.numbers[self.rows]

    @property
    def program(self) -> Hashable:
        """Key shared by launches that use one compiled program, apart from the times to report."""
        return self.kind.key, self.size, self.mesh.slots, self.mesh.fused


class _Block(NamedTuple):
    """Runs of a launch, with a first axis for its networks: reports, statuses and when they ended
    [s].
    """

    launch: _Launch
    reports: Reports
    status: NDArray[np.int64]
    end: Floats


class Runs(Points):
    """Points of a map in the order of the grid, as arrays; each is made when it is asked for."""

    def __init__(
        self, grid: Grid, times: Floats, members: Sequence[Members], messages: dict[int, str]
    ) -> None:
        super().__init__(grid)
        self._times, self._members = times, members
        self._messages = messages
        self._blocks: list[_Block] = []
        self._member, self._block = (_places(len(grid)) for _ in range(2))  # [index, row] of each
        for index, own in enumerate(members):
            _put(self._member, own.numbers, index)

    def add(self, launch: _Launch, outcome: _Block | str) -> int:
        """Add the runs of a launch, or why there are none; the number of those that failed."""
        if isinstance(outcome, str):
            self._messages |= dict.fromkeys(launch.numbers.tolist(), outcome)
            return len(launch.rows)
        _put(self._block, launch.numbers, len(self._blocks))
        self._blocks.append(outcome)
        return int(np.count_nonzero(outcome.status))

    @property
    def failed(self) -> tuple[Point, ...]:
        """The points without a valid result."""
        stopped = [own.launch.numbers[own.status != 0] for own in self._blocks]
        numbers = np.unique(np.concatenate([[*self._messages], *stopped]).astype(int))
        return tuple(self[k] for k in numbers.tolist())

    def table(self, numbers: NDArray[np.int64]) -> "xarray.Dataset":
        """All points as one table; `numbers` (P,) are their indices in a grid."""
        from fluidcc.sweep.table import POINT, join, table_of, tabulate, with_outcome  # heavy

        blocks: dict[int, list[_Block]] = {}  # of each kind
        for block in self._blocks:
            blocks.setdefault(id(block.launch.kind), []).append(block)
        tables = []
        for own in blocks.values():
            kind, rows = own[0].launch.kind, np.concatenate([b.launch.rows for b in own])
            found = map_tree(lambda *v: np.concatenate(v), *(block[1:] for block in own))
            net = map_tree(lambda v, rows=rows: v[rows], kind.stacked[0])
            reports = reached(found[0], self._times, *found[1:])
            trips = {k: v.rtt for k, v in zip(net.flow_names, net.flows, strict=True)}
            data = label(self._times, *named(net, reports), trips, (POINT,))
            data.attrs = {"title": net.title, "source": net.source}
            places = kind.numbers[rows]
            points = (self[k] for k in places.tolist())
            outcomes = ((p.status, p.why, bool(p.message)) for p in points)
            table = table_of(data, numbers[places], (POINT,))
            tables.append(with_outcome(table, *zip(*outcomes, strict=True)))
        if lost := list(self._messages):
            tables.append(tabulate([self[k] for k in lost], numbers[lost]))
        return join(tables)

    def at(self, number: int) -> Point:
        """The point of this number."""
        changes = self.grid.point(number)
        if number in self._messages:
            return Point(changes, None, self._messages[number])
        run = self._trajectory(number)
        return Point(changes, run, failure(run))

    def _trajectory(self, number: int) -> Trajectory:
        (index, row), (member, own) = self._block[number].tolist(), self._member[number].tolist()
        block = self._blocks[index]
        stacked = block.launch.kind.stacked[0]
        net = map_tree(lambda v: v[block.launch.rows[row]], stacked)
        reports = map_tree(lambda v: v[row], block.reports)
        ended = (block.status[row], block.end[row])
        return Trajectory.of(self._members[member].network(own), net, self._times, ended, reports)


def _places(count: int) -> NDArray[np.int64]:
    return np.full((count, 2), -1)


def _put(places: NDArray[np.int64], numbers: NDArray[np.int64], index: int) -> None:
    """Put the index of a part, and the row there, in the places of some points."""
    places[numbers, 0], places[numbers, 1] = index, np.arange(len(numbers))


def _run_all(
    kinds: Sequence[_Kind], until: float, times: Floats, mesh: Uniform
) -> Iterator[tuple[_Launch, _Block | str]]:
    """Launches with the runs of their networks at `times` up to `until` [s], or why there are none.

    They are yielded as they end. Raises ValueError if they do not fit in memory together.
    """
    count = sum(len(kind.numbers) for kind in kinds)
    memory.require(
        8.0 * times.size * sum(kind.columns * len(kind.numbers) for kind in kinds),
        f"trajectories of {count} networks at {times.size} times",
        "take fewer times (points), or a sweep in a folder",
        most=memory.host(),
    )
    count = _threads()

    def run(launch: _Launch, threads: int = count) -> _Block:
        with memory.shared_by(threads):
            return _run_launch(launch, until, times)

    launches = [launch for kind in kinds for launch in _launches(kind, times, mesh)]
    programs = [(launch.program, times.size) for launch in launches]
    too_large: list[_Launch] = []
    for number, outcome in _compiling_once(programs, lambda k: run(launches[k]), count):
        launch = launches[number]
        if isinstance(outcome, memory.TooLittleMemory):
            too_large.append(launch)
        else:
            yield launch, str(outcome) if isinstance(outcome, ValueError) else outcome
    for launch in too_large:  # each network alone has the most memory
        for row in launch.rows:
            alone = launch._replace(rows=np.array([row]), size=1)
            try:
                yield alone, run(alone, 1)
            except ValueError as error:
                yield alone, str(error)


def _compiling_once(
    programs: Sequence[Hashable], call: Callable[[int], T], threads: int
) -> Iterator[tuple[int, T | ValueError]]:
    """Yield each number k and `call(k)` as calls in threads end: `programs[k]` names the program
    that the call compiles; calls that need the same one wait until the first has compiled it.

    A ValueError is yielded as a result; calls that need the same program share that of the first.
    """
    firsts = {program: k for k, program in reversed(list(enumerate(programs)))}
    locks = {program: threading.Lock() for program in firsts}
    failed: dict[Hashable, ValueError] = {}

    def run(k: int) -> T | ValueError:
        program = programs[k]
        try:
            with locks[program]:
                if program in failed:
                    return failed[program]
                if program not in _compiled:
                    result = call(k)
                    _compiled.add(program)
                    return result
            return call(k)
        except ValueError as error:
            if program not in _compiled:
                failed[program] = error
            return error

    pool = concurrent.futures.ThreadPoolExecutor(threads)
    try:
        order = sorted(range(len(programs)), key=lambda k: firsts[programs[k]] != k)
        run_in_place = memory.in_place(run)
        futures = {pool.submit(run_in_place, k): k for k in order}
        for future in concurrent.futures.as_completed(futures):
            yield futures.pop(future), future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _launches(kind: _Kind, times: Floats, mesh: Uniform) -> Iterator[_Launch]:
    """All networks of a kind in launches."""
    for own, rows in shared_meshes(kind.stacked[0], mesh):
        size = _at_once(len(rows), kind.columns * times.size)
        for first in range(0, len(rows), size):
            yield _Launch(kind, rows[first : first + size], size, own)


def _at_once(count: int, numbers: int) -> int:
    """Networks per launch, of `count` with `numbers` reported values each."""
    if memory.place().platform == "cpu":
        most = _ON_PROCESSOR * max(len(devices_for(())), 1)
    else:
        fit = _SHARE * memory.available() / (8 * numbers)
        most = min(max(power_of_two(fit) // 2, 1), _ON_CARD)
    return min(power_of_two(count), most)


def _threads() -> int:
    """Number of launches at a time: one if each is spread over all devices."""
    alone = devices_for(()) or memory.place().platform != "cpu"
    return 1 if alone else threads()


def _run_launch(launch: _Launch, until: float, times: Floats) -> _Block:
    """The runs of a launch, reported at these times [s]."""
    filled = np.resize(
        launch.rows, launch.size
    )  # repeats networks, so that few shapes are compiled
    nets, courses = map_tree(lambda v: v[filled], launch.kind.stacked)
    system = system_of(map_tree(lambda v: v[0], nets))
    y0, numbers = starts(nets, courses)
    run = integrate(system, y0, 0.0, until, numbers, mesh=launch.mesh, ts=times, batched=True)
    results = (_reports(numbers.net, run.y, run.record), run.status, run.status_time)
    return _Block(launch, *jax.tree.map(lambda v: np.asarray(v)[: len(launch.rows)], results))
