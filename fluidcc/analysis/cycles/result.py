"""A limit cycle as a result: period, extremes, Floquet multipliers, and how it was found."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.cycles.orbit import Array, Orbit
from fluidcc.quantities import about, attributes, full_name, labels
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.analysis.delay_equation import DelayEquation
    from fluidcc.scenario.network import Network

Range = tuple[float, float]


class Label(NamedTuple):
    """One reported value: kind (`links`, `flows` or `states`), owner, key, and number."""

    kind: str
    owner: str
    key: str = ""
    number: int = 0

    @property
    def path(self) -> str:
        """The name of the value, such as `links.bottleneck.queue`."""
        return full_name(*self[:3]).removesuffix(".")

    @property
    def unit(self) -> str:
        """Its unit."""
        return "1" if self.kind == "states" else "packet"

    @property
    def title(self) -> str:
        """The name of its time series."""
        if self.kind == "states":
            return f"state {self.owner}"
        return self.path + (f"[{self.number}]" if self.number else "")


@dataclasses.dataclass(frozen=True)
class LinkCycle:
    """Least and greatest queue and average queue [packet] over a cycle."""

    queue: Range
    average: Range


@dataclasses.dataclass(frozen=True)
class FlowsCycle:
    """Least and greatest window of one flow [packet] over a cycle, per distinct round trip."""

    window: tuple[Range, ...]


@dataclasses.dataclass(frozen=True)
class Course:
    """A period of a cycle: times (T,) [s] and values by name, shape (T,) each."""

    time: Array
    values: dict[str, Array]


@dataclasses.dataclass(frozen=True, repr=False)
class Cycle(Result):
    """A limit cycle: `period` [s], extremes of links and flows, Floquet multipliers.

    `status` is `smooth` or `nonsmooth` (collocation, the second with switches in the
    cycle) or `simulated` (the settled end of a simulation: period and extremes to a few digits, and
    the leading multipliers from perturbed states, or the reason why there are none). With `period`
    None it is `none` if the model settles at an equilibrium, `incomplete` if the search failed.
    `floquet` begins with the trivial multiplier 1, whose distance from 1 shows the accuracy; those
    below 1e-6, of simulations below 1e-3, are left out. `stable` is whether all others are inside
    the unit circle, None if unknown. `error` is the largest relative change of period and extremes
    from mesh to mesh; the last mesh is better than that. `spread` is the range of the periods in a
    simulation, relative to their mean, so a measure of repetition; None if it repeats only in part.
    A delay equation has `states`, the extremes of each component, in place of links and flows.

    `links` and `flows` have extremes of queues, averages and windows [packet]; `course` is one
    period over time, `orbit` the mesh of it, `net` the model; `message` has the reason of a status.

    Examples
    --------
    >>> import fluidcc as fc
    >>> delayed = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 1.7}, 0.1
    ... )
    >>> found = fc.cycle(delayed)
    >>> abs(found.floquet[0] - 1) < 1e-6, [round(end, 4) for end in found.states[0]]
    (True, [-0.6658, 0.9431])
    """

    _view = "cycles.CycleView"
    _in_dict = (
        "period", "links", "flows", "floquet", "stable", "status", "message", "error", "spread",
    )  # fmt: skip

    period: float | None
    links: dict[str, LinkCycle]
    flows: dict[str, FlowsCycle]
    floquet: tuple[complex, ...]
    status: str
    message: str
    stable: bool | None = None
    error: float | None = None
    spread: float | None = None
    states: tuple[Range, ...] = ()
    course: Course | None = dataclasses.field(default=None, repr=False)
    orbit: Orbit | None = dataclasses.field(default=None, repr=False, compare=False)
    net: Network | DelayEquation | None = dataclasses.field(default=None, repr=False, compare=False)

    def extremes(self, label: Label) -> Range:
        """Least and greatest of one reported value."""
        if label.kind == "states":
            return self.states[int(label.owner)]
        found = getattr(getattr(self, label.kind)[label.owner], label.key)
        return found[label.number] if label.key == "window" else found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for unknown values; `states` of delay equations."""
        return super().to_dict() | ({"states": plain(self.states)} if self.states else {})

    def to_xarray(self) -> xarray.Dataset:
        """One period as a labelled dataset with units, period and multipliers."""
        import xarray as xr

        data: dict[str, Any] = {
            "period": ((), np.nan if self.period is None else self.period, about("period")),
            "floquet_real": ("multiplier", [mu.real for mu in self.floquet], about("floquet_real")),
            "floquet_imag": ("multiplier", [mu.imag for mu in self.floquet], about("floquet_imag")),
        }
        for name, link in self.links.items():
            for key in ("queue", "average"):
                values = list(getattr(link, key))
                full = full_name("links", name, key)
                data[full] = ("extreme", values, attributes("links", key))
        for name, group in self.flows.items():
            dims = (full_name("flows", name, "class"), "extreme")
            full = full_name("flows", name, "window")
            data[full] = (dims, np.array(group.window), attributes("flows", "window"))
        if self.states:
            data["y"] = (("state", "extreme"), np.array(self.states), about("y"))
        coords = labels(extreme=["least", "greatest"])
        if self.course is not None:
            coords |= labels(phase=np.linspace(0.0, 1.0, len(self.course.time)))
            data["time"] = ("phase", self.course.time, about("time"))
            for name, values in self.course.values.items():
                unit = data[name][-1] if name in data else about("y")
                data[f"{name}.course"] = ("phase", values, unit)
        return xr.Dataset(data, coords, {"status": self.status, "message": self.message})


def with_turns(found: Cycle, turns: int) -> Cycle:
    """The cycle with a note on the number of rises of its leading state, if more than one."""
    if turns < 2:
        return found
    note = f"it closes after {turns} rises, as after a period doubling"
    return dataclasses.replace(found, message="; ".join(filter(None, [found.message, note])))


def none_found(message: str) -> Cycle:
    """No cycle, and why."""
    return Cycle(None, {}, {}, (), "none", message)


def not_known(message: str) -> Cycle:
    """Neither a cycle nor an equilibrium, and why."""
    return Cycle(None, {}, {}, (), "incomplete", message)


def by_name(labels: Sequence[Label], ends: Sequence[Range]) -> dict[str, Any]:
    """The `links`, `flows` and `states` of a cycle with extremes (R,) of its reported values."""
    links: dict[str, dict[str, Range]] = {}
    flows: dict[str, list[Range]] = {}
    states = []
    for label, pair in zip(labels, ends, strict=True):
        if label.kind == "links":
            links.setdefault(label.owner, {})[label.key] = pair
        elif label.kind == "flows":
            flows.setdefault(label.owner, []).append(pair)
        else:
            states.append(pair)
    return {
        "links": {name: LinkCycle(**pairs) for name, pairs in links.items()},
        "flows": {name: FlowsCycle(tuple(pairs)) for name, pairs in flows.items()},
        "states": tuple(states),
    }
