"""A quantity with its derivatives, as a result."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, repr=False)
class Gradient(Result):
    """A quantity of a network and its derivatives by parameters, by path.

    `status` is `ok`, or the reason for NaN derivatives: `kink` (they differ on both sides of a kink
    or of the edge of a regime: `sides` has those towards smaller and towards larger values, NaN if
    unknown), `tie` (two roots or crossovers are equally near), `grazing` (a double crossover or
    root), `no_crossover` (an infinite margin), `singular`, or the status of an equilibrium without
    derivatives, or without a linearisation for a root or margin (`discontinuity`, `sliding`,
    `continuum`, `none`); `message` has details. `units` are those of the parameters.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> found = fc.gradient(net, "queue", ["flow.n"])
    >>> round(found.value, 3), round(found.derivatives["flow.n"], 3)
    (194.4, 1.353)
    """

    _view = "runs.GradientView"

    of: str
    value: float
    derivatives: dict[str, float]
    status: str
    message: str
    unit: str
    units: dict[str, str]
    sides: dict[str, tuple[float, float]]

    @property
    def failure(self) -> str:
        """Why derivatives are unknown; empty if all are known, or those of both sides."""
        each = [self.sides.get(path, (value,)) for path, value in self.derivatives.items()]
        known = all(math.isfinite(value) for values in each for value in values)
        return "" if known else f"{self.of}: {self.message or self.status}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for unknown values."""
        names = (
            "of", "value", "unit", "derivatives", "units", "status", "message", "sides"
        )  # fmt: skip
        return {name: plain(getattr(self, name)) for name in names}

    def to_dataset(self) -> xarray.Dataset:
        """The value and its derivatives as labelled arrays with units."""
        import xarray as xr

        paths = list(self.derivatives)
        variables = {
            "value": ((), self.value, {"units": self.unit}),
            "derivative": ("parameter", [self.derivatives[path] for path in paths]),
        }
        units = [f"({self.unit}) / ({self.units[path]})" for path in paths]
        coords = {"parameter": paths, "units": ("parameter", units)}
        attrs = {"of": self.of, "status": self.status, "message": self.message}
        return xr.Dataset(variables, coords=coords, attrs=attrs)
