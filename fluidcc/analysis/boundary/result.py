"""Boundaries of stability over two parameters, and how much of them is proven."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class BoundaryCurve:
    """Roots on the imaginary axis along a curve: both parameters and the frequency [rad/s], (k,).

    `kind` is `hopf`, `fold` (a root at zero, frequency 0) or `jump` (roots jump across the axis at
    a change of regime; the frequency is that of the unstable side, NaN where not located).
    `below` and `above` are the numbers of unstable roots on the two sides, `certified` if proven on
    both at the checked points. `ends` is why the curve ends: `closed`, `edge` of the range,
    `regime`, `zero frequency`, `meets` another curve, `one verdict` (both sides of a kink are alike
    from there on), or `lost`.
    """

    x: Array
    y: Array
    frequency: Array
    kind: str
    below: int
    above: int
    certified: bool
    ends: tuple[str, str]

    @property
    def closed(self) -> bool:
        """Whether the curve comes back to its start."""
        return self.ends[0] == "closed"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return {**plain(dataclasses.asdict(self)), "closed": self.closed}


@dataclasses.dataclass(frozen=True, repr=False)
class Boundary(Result):
    """Curves over two parameters on which stability changes.

    `secondary` are curves on which more roots cross while others are unstable. `grid` (k,) of each
    parameter and `unstable` (k, k) are the counts that the curves were checked with, NaN where
    there is no smooth equilibrium. `status` is `ok`, or `incomplete` if counts and curves do not
    agree everywhere, or a curve was lost; `message` has the place and a remedy. `certified`:
    every count was proven, and the curves account for all of them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scalar = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["a"] * y - p["b"] * z[0], [lambda t, y, p: 1.0],
    ...     {"a": 0.5, "b": 1.0}, 0.0,
    ... )
    >>> found = fc.boundary(scalar, "a", "b", (0.1, 1.0), (0.5, 3.0), points=5)
    >>> found.certified, len(found.curves), found.paths
    (True, 1, ('a', 'b'))
    """

    _view = "equilibria.BoundaryView"

    paths: tuple[str, str]
    units: tuple[str, str]
    ranges: tuple[tuple[float, float], tuple[float, float]]
    curves: tuple[BoundaryCurve, ...]
    secondary: tuple[BoundaryCurve, ...]
    grid: tuple[Array, Array]
    unstable: Array
    status: str
    message: str
    certified: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, None for unknown values."""
        return {
            "curves": [curve.to_dict() for curve in self.curves],
            "secondary": [curve.to_dict() for curve in self.secondary],
            "status": self.status, "message": self.message, "certified": self.certified,
            "grid": {"x": plain(self.grid[0]), "y": plain(self.grid[1]),
                     "unstable": plain(self.unstable)},
        }  # fmt: skip

    def to_dataset(self) -> xarray.Dataset:
        """All points of the curves in one row with the number of their curve, and the grid."""
        import xarray as xr

        x, y = self.paths
        number = [np.full(len(c.x), k) for k, c in enumerate(self.curves)]
        kind = [np.full(len(c.x), c.kind) for c in self.curves]
        columns = {
            "curve": (np.concatenate([np.zeros(0, int), *number]), "1"),
            x: (np.concatenate([np.zeros(0), *(c.x for c in self.curves)]), self.units[0]),
            y: (np.concatenate([np.zeros(0), *(c.y for c in self.curves)]), self.units[1]),
            "frequency": (
                np.concatenate([np.zeros(0), *(c.frequency for c in self.curves)]), "rad/s"
            ),
            "kind": (np.concatenate([np.zeros(0, "U4"), *kind]), "1"),
        }  # fmt: skip
        variables: dict[str, Any] = {
            name: ("vertex", values, {"units": unit}) for name, (values, unit) in columns.items()
        }
        attrs = {"status": self.status, "message": self.message, "certified": int(self.certified)}
        return xr.Dataset(variables, attrs=attrs)
