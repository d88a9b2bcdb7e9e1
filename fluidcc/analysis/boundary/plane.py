"""A model over two parameters, each as a number in [0, 1]."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable

import numpy as np

from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.model import AtRest, Model, linear_at, regime_at, rest_of
from fluidcc.analysis.roots import first_approximations, located, polish, without_conserved
from fluidcc.analysis.scan import Scale, Scan
from fluidcc.analysis.winding import Count, count_roots

_LINE = Scale(0.0, 1.0, False)
_KEEP = 6  # roots known at a spot


@dataclasses.dataclass(frozen=True)
class Spot:
    """The model at one point t (2,) of the plane; what costs time is found when it is asked for."""

    t: Array
    rest: AtRest

    @functools.cached_property
    def regime(self) -> Hashable:
        """What stays the same as long as the linearisation is smooth."""
        return regime_at(self.rest)

    @property
    def smooth(self) -> bool:
        """Whether there is a linearisation."""
        return self.rest.smooth

    @functools.cached_property
    def linear(self) -> Linear:
        """The linear system."""
        return linear_at(self.rest)

    @functools.cached_property
    def counted(self) -> Count:
        """Number of unstable roots by the argument principle."""
        return count_roots(Characteristic(self.linear))

    @functools.cached_property
    def roots(self) -> Array:
        """The rightmost roots of the upper half plane [1/s], conserved ones left out."""
        characteristic = Characteristic(self.linear)
        seeds = first_approximations(characteristic, 12, _KEEP)
        return without_conserved(polish(characteristic, seeds), self.linear.conserved)

    @property
    def unstable(self) -> int:
        """Number of unstable roots; of those located where the count is not known."""
        number = self.counted.number
        return located(self.roots) if number is None else number


class Plane:
    """A family of models over [0, 1] x [0, 1]."""

    def __init__(self, family: Callable[..., Model], scales: tuple[Scale, Scale]):
        self.family, self.scales = family, scales

    def values(self, t: Array) -> tuple[float, float]:
        """Both parameters at t."""
        x, y = (scale.value(float(a)) for scale, a in zip(self.scales, t, strict=True))
        return x, y

    def spot(self, t: Array) -> Spot:
        """The model at t, within [0, 1] x [0, 1]."""
        return Spot(np.asarray(t, float), rest_of(self.family(*self.values(t))))

    def along(self, a: Array, b: Array) -> Scan:
        """The models on the straight way from a to b."""
        return Scan(lambda part: self.family(*self.values((1 - part) * a + part * b)), _LINE)
