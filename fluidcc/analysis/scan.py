"""A model over its parameters, a network or a delay equation: equilibria, linear systems and roots,
and where they break off.

Every parameter is a number in [0, 1]. Along a smooth piece of a line the law's regime (status, side
of every kink, windows at their cap) is the same everywhere, so that roots move continuously; pieces
end where the regime changes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.roots import (
    first_approximations,
    located,
    polish,
    without_conserved,
)
from fluidcc.analysis.winding import Count, count_roots, counts
from fluidcc.errors import Fault, ScenarioError
from fluidcc.laws.parameters import Interval
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import (
    check_paths,
    full_path,
    info_at,
    number_at,
    replace,
    replace_unchecked,
    value_at,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from fluidcc.analysis.delay_equation import DelayEquation, EquationEquilibrium

    Model = Network | DelayEquation
    AnyEquilibrium = Equilibrium | EquationEquilibrium


def _is_equation(model: Any) -> TypeIs[DelayEquation]:
    """Whether a model is a delay equation; its class is not imported, as that imports JAX."""
    return hasattr(model, "number_at")


def equilibrium_of(model: Model) -> AnyEquilibrium:
    """The equilibrium of a model."""
    return model.equilibrium() if _is_equation(model) else equilibrium(model)


def family(model: Model, paths: Sequence[str], where: str) -> Callable[..., Model]:
    """The model as a function of parameters.

    The number of flows is any positive number here, in proportion over the round trips of a group.
    """
    if _is_equation(model):
        return lambda *values: model.replace(dict(zip(paths, values, strict=True)))
    flows = {p: full_path(model, p) for p in paths if p.endswith(".n")}

    def member(*values: float) -> Network:
        given = dict(zip(paths, values, strict=True))
        others = {path: value for path, value in given.items() if path not in flows}
        net = replace(model, others, where=where) if others else model
        return replace_unchecked(net, {full: float(given[p]) for p, full in flows.items()})

    return member


def unit_of(model: Model, path: str) -> str:
    """Unit of a parameter, `1` if it has none or none is known."""
    info = None if _is_equation(model) else info_at(model, path)
    return info.unit if info else "1"


def number_of(model: Model, path: str) -> float:
    """The model's value of a parameter; raises ScenarioError if it has none."""
    return model.number_at(path) if _is_equation(model) else number_at(model, path)


def within_of(model: Model, path: str) -> Interval | None:
    """The range of a parameter; None if any number is valid."""
    info = None if _is_equation(model) else info_at(model, path)
    return info.within if info else None


def ends_of(
    model: Model, path: str, low: float | str, high: float | str, where: str
) -> tuple[float, float]:
    """Both ends of a range as numbers; raises ScenarioError with all faults."""
    if _is_equation(model):
        model.number_at(path)
        ends, within = [float(low), float(high)], None
    else:
        check_paths(model, [path], where=where)
        info = info_at(model, path)
        if info is None or info.within is None:
            raise ScenarioError([Fault(where, path, "the path of a number", "another value")])
        ends = [value_at(model, path, end, where=where) for end in (low, high)]
        within = info.within
    faults = [
        Fault(where, path, f"a number in {within}", repr(end))
        for end in ends
        if not isinstance(end, int | float) or (within is not None and float(end) not in within)
    ]
    if not faults and not ends[0] < ends[1]:
        faults = [Fault(where, path, "low < high", f"{low!r} and {high!r}")]
    if faults:
        raise ScenarioError(faults)
    return float(ends[0]), float(ends[1])


_NEARBY = 1e-6  # of the range: step for derivatives along the parameter
_HALVINGS = 60
_MOST_BREAKS = 12  # changes of regime between two neighbours of the grid
_ORDERS = (12, 24, 48)
DECADE = 10.0  # ratio of the ends beyond which a scale is logarithmic
_KEEP = 6  # complex roots followed


@dataclasses.dataclass(frozen=True)
class Scale:
    """The parameter as a number t in [0, 1], linear or logarithmic between two values."""

    low: float
    high: float
    logarithmic: bool

    def value(self, t: float) -> float:
        """The parameter at t; exact at both ends."""
        if t in (0.0, 1.0):
            return self.high if t else self.low
        if self.logarithmic:
            return math.exp((1 - t) * math.log(self.low) + t * math.log(self.high))
        return (1 - t) * self.low + t * self.high

    def share(self, value: float) -> float:
        """The t of a value."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def scale_of(low: float, high: float) -> Scale:
    """The scale between two values: logarithmic over more than one decade."""
    return Scale(low, high, low > 0 and high / low > DECADE)


@dataclasses.dataclass(frozen=True)
class Spot:
    """The model at one point t (d,); what costs time is found when it is asked for."""

    t: Array
    equilibrium: AnyEquilibrium

    @functools.cached_property
    def regime(self) -> Hashable:
        """Labels that stay the same as long as the linearisation is smooth."""
        return self.equilibrium.regime

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation."""
        return self.equilibrium.smooth

    def change_to(self, other: Spot) -> str:
        """What differs between the regimes of two neighbouring spots; empty if it has no name."""
        from fluidcc.analysis.linearize import describe_change

        here, there = self.equilibrium, other.equilibrium
        if isinstance(here, Equilibrium) and isinstance(there, Equilibrium):
            return describe_change(here, there)
        return ""

    @functools.cached_property
    def linear(self) -> Linear:
        """The linear system."""
        return self.equilibrium.linear()

    @functools.cached_property
    def counted(self) -> Count:
        """Number of unstable roots by the argument principle."""
        return count_roots(Characteristic(self.linear))

    @property
    def certified(self) -> bool:
        """Whether the count is proven."""
        return self.counted.number is not None

    @functools.cached_property
    def roots(self) -> Array:
        """The rightmost roots of the upper half plane [1/s], conserved ones left out."""
        return self.approximated(_ORDERS[0])

    def approximated(self, order: int) -> Array:
        """Those roots that collocation of this order leads to."""
        characteristic = Characteristic(self.linear)
        seeds = first_approximations(characteristic, order, _KEEP)
        return without_conserved(polish(characteristic, seeds), self.linear.conserved)

    @property
    def unstable(self) -> int:
        """Number of unstable roots; of those located where the count is not known."""
        number = self.counted.number
        return located(self.roots) if number is None else number


def turns(below: int | None, above: int | None) -> bool:
    """Whether stability changes between two places with these numbers of unstable roots; an unknown
    number is not 0.
    """
    return (below == 0) != (above == 0)


def count_together(spots: Sequence[Spot]) -> None:
    """Count the unstable roots of spots at once, which costs little more than of one.

    Those of one structure: within a regime, states come to rest and are left out at some spots.
    """
    alike: dict[tuple, list[Spot]] = {}
    for spot in spots:
        alike.setdefault(spot.linear.structure, []).append(spot)
    for own in alike.values():
        characteristic = Characteristic(Linear.stack([spot.linear for spot in own]))
        found = counts(characteristic, np.arange(len(own)), np.zeros(len(own)))
        for k, spot in enumerate(own):
            vars(spot)["counted"] = found.at(k)


@dataclasses.dataclass(frozen=True)
class Plane:
    """A family of models over one or two parameters with these paths, each a number in [0, 1]."""

    family: Callable[..., Model]
    scales: tuple[Scale, ...]
    paths: tuple[str, ...]

    def values(self, t: Array) -> tuple[float, ...]:
        """The parameters at t."""
        return tuple(s.value(float(a)) for s, a in zip(self.scales, t, strict=True))

    def columns(self, places: Array) -> tuple[Array, Array]:
        """Both parameters (k,) at places (k, 2)."""
        x, y = zip(*(self.values(t) for t in places), strict=True)
        return np.array(x), np.array(y)

    def side(self, way: Array) -> str:
        """Where a direction (2,) points, such as ``lower flow.n``, by what changes more."""
        axis = int(np.argmax(np.abs(way)))
        return f"{'higher' if way[axis] > 0 else 'lower'} {self.paths[axis]}"

    def spot(self, t: Array) -> Spot:
        """The model at t."""
        return Spot(np.asarray(t, float), equilibrium_of(self.family(*self.values(t))))


class Place(NamedTuple):
    """The model at a share t of a line."""

    t: float
    spot: Spot


@dataclasses.dataclass(frozen=True)
class Sample:
    """Roots at a share t of a line.

    `roots` (upper half plane, the complex and the real ones nearest to the imaginary axis) have
    velocities ds/dt; `unstable` is the number of roots with positive real part, `certified` if the
    argument principle proves it.
    """

    t: float
    roots: Array
    velocity: Array
    unstable: int
    certified: bool


@dataclasses.dataclass(frozen=True)
class Scan:
    """The models on the straight line from a to b."""

    plane: Plane
    a: Array
    b: Array

    def place(self, t: float) -> Place:
        """The model at a share of the line."""
        return Place(t, self.plane.spot((1 - t) * self.a + t * self.b))

    def sample(self, place: Place, towards: float) -> Sample:
        """Roots at a place; velocities come from a step towards another t of the same regime."""
        spot = place.spot
        system, count = spot.linear, spot.counted.number
        for order in _ORDERS:
            found = spot.roots if order == _ORDERS[0] else spot.approximated(order)
            if count is None or (count == located(found) and _resolved(found, system, order)):
                break
        near = found[np.argsort(np.abs(np.real(found)))]
        waves, real = near[np.imag(near) > 0][:_KEEP], near[np.imag(near) == 0][:2]
        roots = np.concatenate([waves, real])
        step = math.copysign(min(_NEARBY, abs(towards - place.t) / 2), towards - place.t)
        ahead = Characteristic(self.place(place.t + step).spot.linear)
        # one step of Newton's method; waves on the loop, which has no poles of the classes nearby
        whole = (np.imag(roots) == 0) | (not ahead.layout.classes)
        slope = ahead.log_slope(roots, np.zeros(len(roots), int), whole)
        known = np.isfinite(slope)  # else the root has stayed where it was
        with np.errstate(divide="ignore", invalid="ignore"):
            velocity = np.where(known, -1 / np.where(known, slope * step, 1.0), 0.0)
        unstable = located(found) if count is None else count
        return Sample(place.t, roots, velocity, unstable, count is not None)

    def breaks(self, a: Place, b: Place) -> list[tuple[Place, Place]]:
        """Changes of regime between two places, each as the two places on its sides."""
        out: list[tuple[Place, Place]] = []
        while a.spot.regime != b.spot.regime and len(out) < _MOST_BREAKS:
            before, after = a, b
            for _ in range(_HALVINGS):
                middle = (before.t + after.t) / 2
                if not before.t < middle < after.t or after.t - before.t < 1e-12:
                    break
                here = self.place(middle)
                same = here.spot.regime == a.spot.regime
                before, after = (here, after) if same else (before, here)
            out.append((before, after))
            a = after
        return out


def _resolved(roots: Array, system: Linear, order: int) -> bool:
    """Whether approximations of this order also see the next roots beyond the unstable ones."""
    fastest = np.max(np.imag(roots[np.real(roots) > 0]), initial=0.0)
    return order >= _ORDERS[0] / 2 + 1.5 * fastest * float(system.lag.max(initial=0.0))
