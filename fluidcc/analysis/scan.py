"""A model along one parameter: equilibria, linear systems and roots, and where they break off.

Along a smooth piece the law's regime (status, side of every kink, windows at their cap) is the
same everywhere, so that roots move continuously; pieces end where the regime changes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.model import AtRest, Model, linear_at, regime_at, rest_of
from fluidcc.analysis.roots import first_approximations, located, polish, without_conserved
from fluidcc.analysis.winding import count_roots

_NEARBY = 1e-6  # of the range: step for derivatives along the parameter
_HALVINGS = 60
_MOST_BREAKS = 12  # changes of regime between two neighbours of the grid
_ORDERS = (12, 24, 48)
_DECADE = 10.0  # ratio of the ends beyond which a scale is logarithmic


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
    return Scale(low, high, low > 0 and high / low > _DECADE)


@dataclasses.dataclass(frozen=True)
class Place:
    """The model at one value of the parameter, so far as it is cheap to know."""

    t: float
    regime: Hashable
    rest: AtRest

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation."""
        return self.rest.smooth


@dataclasses.dataclass(frozen=True)
class Sample:
    """Roots at one value of the parameter.

    `roots` (upper half plane, the complex and the real ones nearest to the imaginary axis) have
    velocities ds/dt; `unstable` is the number of roots with positive real part, `certified` if the
    argument principle proves it.
    """

    t: float
    roots: Array
    velocity: Array
    unstable: int
    certified: bool


class Scan:
    """Evaluates a family of models along t in [0, 1]."""

    keep = 6  # complex roots followed

    def __init__(self, family: Callable[[float], Model], scale: Scale):
        self.family, self.scale = family, scale

    def place(self, t: float) -> Place:
        """Equilibrium and regime at t."""
        rest = rest_of(self.family(self.scale.value(t)))
        return Place(t, regime_at(rest), rest)

    def system(self, t: float) -> Linear:
        """The linear system at t."""
        return linear_at(rest_of(self.family(self.scale.value(t))))

    def sample(self, place: Place, towards: float) -> Sample:
        """Roots at a place; velocities come from a step towards another t of the same regime."""
        system = linear_at(place.rest)
        characteristic = Characteristic(system)
        count = count_roots(characteristic).number
        for order in _ORDERS:
            seeds = first_approximations(characteristic, order, self.keep)
            found = without_conserved(polish(characteristic, seeds), system.conserved)
            if count is None or (count == located(found) and _resolved(found, system, order)):
                break
        near = found[np.argsort(np.abs(np.real(found)))]
        waves, real = near[np.imag(near) > 0][: self.keep], near[np.imag(near) == 0][:2]
        roots = np.concatenate([waves, real])
        step = math.copysign(min(_NEARBY, abs(towards - place.t) / 2), towards - place.t)
        ahead = Characteristic(self.system(place.t + step))
        moved = np.array([nearby_root(ahead, s) for s in roots], complex)
        unstable = located(found) if count is None else count
        return Sample(place.t, roots, (moved - roots) / step, unstable, count is not None)

    def breaks(self, a: Place, b: Place) -> list[tuple[Place, Place]]:
        """Changes of regime between two places, each as the two places on its sides."""
        out: list[tuple[Place, Place]] = []
        while a.regime != b.regime and len(out) < _MOST_BREAKS:
            before, after = a, b
            for _ in range(_HALVINGS):
                middle = (before.t + after.t) / 2
                if not before.t < middle < after.t or after.t - before.t < 1e-12:
                    break
                here = self.place(middle)
                before, after = (here, after) if here.regime == a.regime else (before, here)
            out.append((before, after))
            a = after
        return out


def _resolved(roots: Array, system: Linear, order: int) -> bool:
    """Whether approximations of this order also see the next roots beyond the unstable ones."""
    fastest = np.max(np.imag(roots[np.real(roots) > 0]), initial=0.0)
    return order >= _ORDERS[0] / 2 + 1.5 * fastest * float(system.lag.max(initial=0.0))


def nearby_root(characteristic: Characteristic, seed: complex) -> complex:
    """The characteristic root that Newton's method reaches from a seed; NaN if it does not.

    From a complex seed it is tried on the loop through the links first, which has no roots and no
    poles of the classes nearby.
    """
    slopes = [characteristic.log_slope]
    if seed.imag and characteristic.layout.classes:
        slopes.insert(0, characteristic.loop_slope)
    reached = (_newton(slope, seed) for slope in slopes)
    return next((s for s in reached if np.isfinite(s)), complex("nan"))


def _newton(log_slope: Callable[[Array], Array], seed: complex) -> complex:
    """Where Newton's method takes a seed; NaN if it does not end."""
    s, scale = np.array([seed], complex), abs(seed) + 1e-12
    for _ in range(30):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = 1 / log_slope(s)
        step = np.where(np.isfinite(step), step, 0.0)
        s = s - step / max(1.0, abs(step[0]) / (0.2 * scale))
        if abs(step[0]) <= 1e-14 * scale:
            return complex(s[0])
    return complex(s[0]) if abs(step[0]) <= 1e-9 * scale else complex("nan")
