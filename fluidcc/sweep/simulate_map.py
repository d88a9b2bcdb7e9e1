"""Fluid trajectories of many networks, as over a grid of parameters: those of one structure are
stepped together, in batches.
"""

import concurrent.futures
import dataclasses
import functools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fluidcc import memory
from fluidcc.arrays import jax
from fluidcc.dde.integrate import devices_for, integrate, power_of_two
from fluidcc.dde.uniform import Uniform
from fluidcc.machine import threads
from fluidcc.model.fluid import as_fluid
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
    report,
)
from fluidcc.progress import Clock, Progress, reporting
from fluidcc.progress import report as report_share
from fluidcc.result import failure
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import in_seconds
from fluidcc.sweep.grid import Grid
from fluidcc.sweep.points import evaluate_point
from fluidcc.sweep.result import Sweep


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
    begin = functools.partial(Member.of, until=until)
    swept = [evaluate_point(net, changes, begin) for changes in grid.points()]
    runnable = [k for k, point in enumerate(swept) if point.result is not None]
    clock = Clock(len(grid), failed := len(grid) - len(runnable), failed)
    if failed:
        report_share(clock.count(0, 0))
    for j, run in simulate_batch([swept[k].result for k in runnable], until, times, mesh):
        k = runnable[j]
        result, message = (None, run) if isinstance(run, str) else (run, failure(run))
        swept[k] = dataclasses.replace(swept[k], result=result, message=message)
        report_share(clock.count(1, int(bool(message))))
    return Sweep(grid.axes, grid.units, tuple(swept), net)


_ON_PROCESSOR, _ON_CARD = 8, 1 << 16
"""Most networks in one launch: on a processor, where more are no faster, and on a card."""
_SHARE = 0.1  # of the memory of an accelerator, for the results of a launch

T = TypeVar("T")
_compiled: set[Hashable] = set()  # names of programs
_reports = jax.jit(jax.vmap(report))


class Member(NamedTuple):
    """A network: as given, in the fluid model, and the leaves and structure of the arguments of its
    equation.
    """

    given: Network
    net: Network
    leaves: list[Any]
    structure: Any

    @classmethod
    def of(cls, given: Network, until: float) -> "Member":
        """A network to simulate up to `until` [s].

        Raises ValueError if the fluid model cannot.
        """
        net = as_fluid(given)
        check_network(net)
        numbers = jax.tree.map(lambda leaf: np.asarray(leaf, float), net)
        leaves, structure = jax.tree.flatten(prepared(numbers, until))
        return cls(given, net, leaves, structure)

    @property
    def kind(self) -> Any:
        """Key shared by members that can be stepped in one batch."""
        return self.structure, tuple(np.shape(leaf) for leaf in self.leaves)

    @property
    def columns(self) -> int:
        """Number of values reported at each time."""
        classes = sum(np.size(flows.rtt) for flows in self.net.flows)
        return len(LINK_KEYS) * len(self.net.links) + len(FLOW_KEYS) * classes


class _Launch(NamedTuple):
    """Some networks of one kind and one mesh: their numbers, and the stack that contains them."""

    kind: Hashable
    part: list[int]
    numbers: list[int]
    size: int
    stacked: tuple[Network, tuple]
    mesh: Uniform

    @property
    def program(self) -> Hashable:
        """Key shared by launches that use one compiled program, apart from the times to report."""
        return self.kind, self.size, self.mesh.slots, self.mesh.fused


def simulate_batch(
    members: Sequence[Member], until: float, times: Floats, mesh: Uniform
) -> Iterator[tuple[int, Trajectory | str]]:
    """The number of each member and its run at `times` up to `until` [s], or why there is none.

    They are yielded as runs end. Raises ValueError if they do not fit in memory together.
    """
    memory.require(
        8.0 * times.size * sum(member.columns for member in members),
        f"trajectories of {len(members)} networks at {times.size} times",
        "take fewer times (points), or a sweep in a folder",
        most=memory.host(),
    )
    count = _threads()

    def run(launch: _Launch, threads: int = count) -> list[Trajectory]:
        with memory.shared_by(threads):
            runs = _run_launch(launch, until, times)
        return [
            Trajectory.of(members[k].given, members[k].net, times, (status, end), reports)
            for k, (reports, status, end) in zip(launch.numbers, runs, strict=True)
        ]

    too_large: list[_Launch] = []
    launches = list(_launches(members, times, mesh))
    programs = [(launch.program, times.size) for launch in launches]
    for number, outcome in _compiling_once(programs, lambda k: run(launches[k]), count):
        launch = launches[number]
        if isinstance(outcome, memory.TooLittleMemory):
            too_large.append(launch)
        elif isinstance(outcome, ValueError):
            yield from ((k, str(outcome)) for k in launch.numbers)
        else:
            yield from zip(launch.numbers, outcome, strict=True)
    for launch in too_large:  # each network alone has the most memory
        for place, k in zip(launch.part, launch.numbers, strict=True):
            alone = launch._replace(part=[place], numbers=[k], size=1)
            try:
                yield k, run(alone, 1)[0]
            except ValueError as error:
                yield k, str(error)


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


def _launches(members: Sequence[Member], times: Floats, mesh: Uniform) -> Iterator[_Launch]:
    """All networks in launches."""
    for kind in _group_equal([member.kind for member in members]):
        alike = [members[k] for k in kind]
        stacked = _stack(alike)
        meshes = shared_meshes([member.net for member in alike], stacked[0], mesh)
        for some in _group_equal(meshes):
            size = _at_once(len(some), alike[0].columns * times.size)
            for first in range(0, len(some), size):
                part = some[first : first + size]
                numbers = [kind[k] for k in part]
                yield _Launch(alike[0].kind, part, numbers, size, stacked, meshes[part[0]])


def _group_equal(keys: Sequence[Hashable]) -> list[list[int]]:
    """Indices of the keys, in groups of equal ones."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _stack(members: Sequence[Member]) -> tuple[Network, tuple]:
    """Networks of one kind and the courses of their calls, with a first axis for them."""
    leaves = zip(*(member.leaves for member in members), strict=True)
    return jax.tree.unflatten(members[0].structure, [np.stack(each) for each in leaves])


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


def _run_launch(launch: _Launch, until: float, times: Floats) -> list[tuple[Reports, Any, Any]]:
    """Reports of the networks of a launch, their statuses and the times of these [s]."""
    filled = np.resize(launch.part, launch.size)  # repeats members, so that few shapes are compiled
    nets, courses = jax.tree.map(lambda leaf: leaf[filled], launch.stacked)
    system = system_of(jax.tree.map(lambda leaf: leaf[0], nets))
    y0, numbers = starts(nets, courses)
    run = integrate(system, y0, 0.0, until, numbers, mesh=launch.mesh, ts=times, batched=True)
    results = (_reports(numbers.net, run.y, run.record), run.status, run.status_time)
    results = jax.tree.map(np.asarray, results)
    return [jax.tree.map(lambda v, k=k: v[k], results) for k in range(len(launch.part))]
