"""Fluid runs of many networks: those of one structure are stepped side by side."""

import concurrent.futures
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fluidcc.fluid import room
from fluidcc.fluid.integrate import integrate
from fluidcc.fluid.mean_traffic import as_fluid
from fluidcc.fluid.meshes import Uniform
from fluidcc.fluid.network_mesh import shared_meshes
from fluidcc.fluid.network_system import prepared, starts, system_of
from fluidcc.fluid.on_uniform import MOST_LANES
from fluidcc.fluid.runs import FLOW_UNITS, LINK_UNITS, Floats, Reports, Trajectory, report
from fluidcc.fluid.simulate import check_network
from fluidcc.fluid.trajectory import power_of_two
from fluidcc.machine import threads
from fluidcc.network import Network

_AT_ONCE = 1 << 16
"""Most networks in one launch on an accelerator; on a processor they are few."""
_SHARE = 0.1  # of the memory of an accelerator, for what a launch leaves

_reports = jax.jit(jax.vmap(report))


class Member(NamedTuple):
    """A network: as given, what the fluid model has of it, and the leaves of what its equation is
    given, with their structure.
    """

    given: Network
    net: Network
    leaves: list[Any]
    structure: Any

    @classmethod
    def of(cls, given: Network, until: float) -> "Member":
        """A network that is followed up to `until` [s].

        Raises ValueError where the fluid model cannot.
        """
        net = as_fluid(given)
        check_network(net)
        numbers = jax.tree.map(lambda leaf: np.asarray(leaf, float), net)
        leaves, structure = jax.tree.flatten(prepared(numbers, until))
        return cls(given, net, leaves, structure)

    @property
    def kind(self) -> Any:
        """What members that are stepped side by side have in common."""
        return self.structure, tuple(np.shape(leaf) for leaf in self.leaves)

    @property
    def columns(self) -> int:
        """How many numbers are reported at each time."""
        classes = sum(np.size(flows.rtt) for flows in self.net.flows)
        return len(LINK_UNITS) * len(self.net.links) + len(FLOW_UNITS) * classes


def together(
    members: Sequence[Member], until: float, times: Floats, mesh: Uniform
) -> Iterator[tuple[int, Trajectory]]:
    """The number of each member and its run at `times` up to `until` [s], as runs end.

    Raises ValueError for what the mesh cannot do, or where there is no room.
    """
    room.require(
        8.0 * times.size * sum(member.columns for member in members),
        f"trajectories of {len(members)} networks at {times.size} times",
        "take fewer times (points), or a sweep in a folder",
        most=room.host(),
    )
    for kind in _alike([member.kind for member in members]):
        own = [members[k] for k in kind]
        stacked = _stacked(own)
        meshes = shared_meshes([member.net for member in own], stacked[0], mesh)
        for some in _alike(meshes):
            size = _at_once(len(some), own[0].columns * times.size)
            parts = [some[first : first + size] for first in range(0, len(some), size)]
            launch = functools.partial(_launched, stacked, size, until, times, meshes[some[0]])
            for part, found in zip(parts, _side_by_side(launch, parts), strict=True):
                for k, (reports, status, end) in zip(part, found, strict=True):
                    ended = (status, end)
                    run = Trajectory.of(own[k].given, own[k].net, times, ended, reports)
                    yield kind[k], run


def _alike(keys: Sequence[Hashable]) -> list[list[int]]:
    """Places of equal keys."""
    found: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)
    return list(found.values())


def _stacked(members: Sequence[Member]) -> tuple[Network, tuple]:
    """Networks of one kind and the courses of their calls, with a first axis for them."""
    leaves = zip(*(member.leaves for member in members), strict=True)
    return jax.tree.unflatten(members[0].structure, [np.stack(each) for each in leaves])


def _at_once(count: int, numbers: int) -> int:
    """How many of so many networks are in a launch, each leaving so many numbers."""
    if jax.devices()[0].platform == "cpu":
        most = MOST_LANES * len(jax.local_devices())
    else:
        fit = _SHARE * room.memory() / (8 * numbers)
        most = min(max(power_of_two(fit) // 2, 1), _AT_ONCE)
    return min(power_of_two(count), most)


def _side_by_side(launch: Callable[[list[int]], Any], parts: Sequence[list[int]]) -> Iterator[Any]:
    """What a launch leaves of each part, in their order; processors take them in turns."""
    yield launch(parts[0])  # alone, as it compiles what the others share
    with concurrent.futures.ThreadPoolExecutor(_threads()) as pool:
        try:
            yield from pool.map(launch, parts[1:])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _threads() -> int:
    """How many launches go on at a time."""
    devices = jax.local_devices()
    return threads() if len(devices) == 1 and devices[0].platform == "cpu" else 1


def _launched(
    stacked: tuple[Network, tuple], size: int, until: float, times: Floats, mesh: Uniform,
    part: list[int],
) -> list[tuple[Reports, Any, Any]]:  # fmt: skip
    """Reports of some of the stacked networks, their statuses and the times of these [s]."""
    filled = np.resize(part, size)  # by members of it, so that few shapes are compiled
    nets, courses = jax.tree.map(lambda leaf: leaf[filled], stacked)
    system = system_of(jax.tree.map(lambda leaf: leaf[0], nets))
    y0, numbers = starts(nets, courses)
    run = integrate(system, y0, 0.0, until, numbers, mesh=mesh, ts=times, batched=True)
    found = (_reports(numbers.net, run.y, run.record), run.status, run.status_time)
    found = jax.tree.map(np.asarray, found)
    return [jax.tree.map(lambda v, k=k: v[k], found) for k in range(len(part))]
