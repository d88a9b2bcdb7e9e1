"""`boundary`: where stability changes over two parameters."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.boundary.curves import kink_lines, pieces
from fluidcc.analysis.boundary.result import Boundary, BoundaryCurve
from fluidcc.analysis.boundary.search import Grid, grid, lines, search
from fluidcc.analysis.model import ends_of, family, number_of, unit_of, within_of
from fluidcc.analysis.scan import Plane, scale_of
from fluidcc.errors import Fault, ScenarioError
from fluidcc.programs import compiling
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import full_path

if TYPE_CHECKING:
    from fluidcc.analysis.model import Model

Range = Sequence[float | str]


@compiling()
def boundary(
    net: Model, x: str, y: str, x_range: Range | None = None, y_range: Range | None = None,
    *, points: int = 9,
) -> Boundary:  # fmt: skip
    """Every curve over two parameters on which the stability of the equilibrium changes.

    Parameters
    ----------
    net
        A network or a delay equation; its values of the two parameters do not matter.
    x, y
        Paths of the parameters, such as ``link.queue.w_q``.
    x_range, y_range
        Low and high end of each; text is read with its unit. Searched logarithmically over more
        than one decade. Default: from a tenth of the model's value to ten times it, within the
        bounds of the parameter.
    points
        Lines each way of the grid on which the number of unstable roots is certified.

    Raises
    ------
    ScenarioError
        For a path that does not exist or has no number, for ends out of range, and for one
        parameter twice.

    Examples
    --------
    >>> import fluidcc as fc
    >>> scalar = fc.DelayEquation(
    ...     lambda t, y, z, p: -p["a"] * y - p["b"] * z[0], [lambda t, y, p: 1.0],
    ...     {"a": 0.5, "b": 1.0}, 0.0,
    ... )
    >>> found = fc.boundary(scalar, "a", "b", (0.1, 1.0), (0.5, 3.0), points=5)
    >>> found.status, found.curves[0].kind
    ('ok', 'hopf')
    """
    ranges = [_range(net, path, given) for path, given in ((x, x_range), (y, y_range))]
    network = isinstance(net, Network)
    if x == y or (network and full_path(net, x) == full_path(net, y)):
        raise ScenarioError([Fault("boundary", x, "two different parameters", "one twice")])
    plane = Plane(family(net, [x, y], "boundary"), (scale_of(*ranges[0]), scale_of(*ranges[1])))
    cells, at = grid(plane, points), lines(points)
    found, unexplained = search(plane, cells)
    cut = [piece for curve in found for piece in pieces(plane, curve, found)]
    curves = [c for c in cut if c.below == 0] + kink_lines(plane, cells.breaks)
    further = [c for c in cut if c.below]
    faults = _faults(len(unexplained), [*curves, *further])
    counts = [float(s.unstable) if s.smooth else np.nan for s in cells.all_nodes()]
    message = "; ".join([*faults, *_undetermined(cells)])
    certified = not faults and cells.certified and all(c.certified for c in (*curves, *further))
    return Boundary(
        (x, y), (unit_of(net, x), unit_of(net, y)), (ranges[0], ranges[1]),
        tuple(curves), tuple(further), plane.columns(np.stack([at, at], axis=1)),
        np.array(counts).reshape(points, points), "incomplete" if faults else "ok", message,
        certified,
    )  # fmt: skip


def _range(net: Model, path: str, given: Range | None) -> tuple[float, float]:
    given = _around(net, path) if given is None else given
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ScenarioError(
            [Fault("boundary", path, "a range (low, high)", f"{given!r}")]
        ) from None
    return ends_of(net, path, low, high, "boundary")


def _around(net: Model, path: str) -> tuple[float, float]:
    """A range about the model's own value."""
    value, within = number_of(net, path), within_of(net, path)
    low, high = sorted((value / 10, value * 10)) if value else (-1.0, 1.0)
    if within is not None:
        least, most = within.ends
        high = high if high in within else least + 0.999 * (most - least)
        low = low if low in within else (least + 1e-6 * (high - least))
    return low, high


def _faults(unexplained: int, curves: list[BoundaryCurve]) -> list[str]:
    """Messages on unfinished parts of the search, with advice."""
    out = []
    if unexplained:
        out.append(
            f"the curves do not explain the counts on {unexplained} parts of the grid: "
            "take more points, or a smaller range"
        )
    lost = [c for c in curves if "lost" in c.ends]
    if lost:
        last = lost[0]
        x, y = (last.x[-1], last.y[-1]) if last.ends[1] == "lost" else (last.x[0], last.y[0])
        out.append(
            f"{len(lost)} curves were lost, the first at ({x:.6g}, {y:.6g}): "
            "take a smaller range about it"
        )
    return out


def _undetermined(cells: Grid) -> list[str]:
    """The share of the grid without a verdict, by status."""
    nodes = cells.all_nodes()
    missing = collections.Counter(
        s.equilibrium.status if s.equilibrium.status not in ("regular", "empty") else "switching"
        for s in nodes
        if not s.smooth
    )
    return [
        f"undetermined at {n} of {len(nodes)} grid points: {status}"
        for status, n in missing.items()
    ]
