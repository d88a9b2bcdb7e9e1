"""What is told of a result, whatever its kind; nothing is computed for it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jax.core import Tracer

from fluidcc.summary import SUMMARIES
from fluidcc.tables import grids, views
from fluidcc.tables.blocks import Block, Line, Number, table, verdict


def told(result: Any, *, rows: int | None = None) -> list[Block]:
    """Lines and tables; of a grid the first `rows` points, all for None.

    Raises TypeError for something that has no table.
    """
    name = type(result).__name__
    if name in ("Sweep", "StabilityMap"):
        return [_sweep(result, rows)]
    if name == "SweepData":
        return [grids.dataset(result.to_dataset(), list(result.axes), rows)]
    if name not in _VIEWS:
        raise TypeError(f"no table: expected a result or a sweep, got {name}")
    return _VIEWS[name](result)


def _sweep(result: Any, rows: int | None) -> Block:
    some = (getattr(point, "result", point) for point in result.points)
    kind = next((type(one).__name__ for one in some if one is not None), "")
    summary = SUMMARIES.get(kind, lambda _: {})
    points = [_point(point) for point in result.points[:rows]]
    return grids.sweep(points, result.units, summary, total=len(result.points))


def _point(point: Any) -> Mapping[str, Any]:
    result = getattr(point, "result", None)
    return point.to_dict() if result is None else {"set": point.set, **_plain(result)}


def _plain(result: Any) -> Mapping[str, Any]:
    """The dictionary of a result, without what it would have to compute first."""
    return result.known() if type(result).__name__ == "Comparison" else result.to_dict()


def _simply(view: Callable[..., list[Block]]) -> Callable[[Any], list[Block]]:
    return lambda result: view(_plain(result))


def _along(view: Callable[..., list[Block]]) -> Callable[[Any], list[Block]]:
    return lambda result: view(result.to_dict(), result.path, result.unit)


def _solution(solution: Any) -> list[Block]:
    """How the runs of a delay equation ended."""
    from fluidcc.fluid.status import Status

    if isinstance(solution.status, Tracer):
        return [Line("Solution that JAX traces")]
    codes, ends = np.ravel(solution.status), np.ravel(solution.status_time)
    steps = np.ravel(solution.steps)
    runs = table("Runs", "status", "runs", ("earliest end", "s"), ("latest end", "s"), "most steps")
    for code in np.unique(codes):
        some = codes == code
        times = (Number(float(pick(ends[some]))) for pick in (np.min, np.max))
        runs.add_row(Status(int(code)).name, str(some.sum()), *times, str(steps[some].max()))
    good = bool((codes == Status.ok).all())
    head = f"Solution: {solution.message}" if codes.size == 1 else f"{codes.size} solutions"
    return [verdict(good, head), runs]


_VIEWS: Mapping[str, Callable[[Any], list[Block]]] = {
    "Equilibrium": _simply(views.equilibrium),
    "EquationRest": _simply(views.equilibrium),
    "Stability": _simply(views.stability),
    "Crossings": _along(views.crossings),
    "Boundary": lambda found: views.boundary(found.to_dict(), found.paths, found.units),
    "Cycle": _simply(views.cycle),
    "Cycles": _along(views.cycles),
    "RelayCycle": _simply(views.relay_cycle),
    "Gradient": _simply(views.gradient),
    "Sensitivity": _simply(views.sensitivity),
    "StationaryWindow": _simply(views.window),
    "StationaryWindows": _simply(views.windows),
    "Trajectory": _simply(views.simulation),
    "Solution": _solution,
    "PacketRuns": lambda runs: views.packets(runs.to_dict(), runs.warmup),
    "Comparison": _simply(views.comparison),
    "BoundReport": _simply(views.bounds),
    "BoundReports": _simply(views.bounds),
    "LawReport": _simply(views.law),
    "Optimum": _simply(views.optimum),
    "Tradeoff": _simply(views.tradeoff),
}
"""The tables of each class of results, by its name."""
