"""What is told of a result, whatever its kind; nothing is computed unless one asks for it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.core import Tracer

from fluidcc.results.summary import SUMMARIES
from fluidcc.results.tables import bounds, cycles, grids, laws, optimum, rest, runs, slopes
from fluidcc.results.tables.blocks import Block, Line, Number, table, verdict


def told(result: Any, *, rows: int | None = None, whole: bool = False) -> list[Block]:
    """Lines and tables; of a grid the first `rows` points, all for None.

    `whole` adds what a comparison has to compute first. Raises TypeError for something that has no
    table.
    """
    name = type(result).__name__
    if name in ("Sweep", "StabilityMap"):
        return [_sweep(result, rows)]
    if name == "SweepData":
        return [grids.dataset(result.to_dataset(), list(result.axes), rows)]
    if name == "Solution":
        return _solution(result)
    if name not in _VIEWS:
        raise TypeError(f"no table: expected a result or a sweep, got {name}")
    view, *words = _VIEWS[name]
    plain = result.to_dict() if whole else _known(result)
    return view(plain, *(getattr(result, word) for word in words))


def _sweep(result: Any, rows: int | None) -> Block:
    some = (getattr(point, "result", point) for point in result.points)
    kind = next((type(one).__name__ for one in some if one is not None), "")
    summary = SUMMARIES.get(kind, lambda _: {})
    points = [_point(point) for point in result.points[:rows]]
    return grids.sweep(points, result.units, summary, total=len(result.points))


def _point(point: Any) -> Mapping[str, Any]:
    result = getattr(point, "result", None)
    return point.to_dict() if result is None else {"set": point.set, **_known(result)}


def _known(result: Any) -> Mapping[str, Any]:
    """The dictionary of a result, without what it would have to compute first."""
    return getattr(result, "known", result.to_dict)()


def _solution(solution: Any) -> list[Block]:
    """How the runs of a delay equation ended."""
    from fluidcc.dde.status import Status

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


_VIEWS: Mapping[str, tuple[Any, ...]] = {
    "Equilibrium": (rest.equilibrium,),
    "EquationRest": (rest.equilibrium,),
    "Stability": (rest.stability,),
    "Crossings": (rest.crossings, "path", "unit"),
    "Boundary": (rest.boundary, "paths", "units"),
    "Cycle": (cycles.cycle,),
    "Cycles": (cycles.cycles, "path", "unit"),
    "RelayCycle": (cycles.relay_cycle,),
    "Gradient": (slopes.gradient,),
    "Sensitivity": (slopes.sensitivity,),
    "StationaryWindow": (slopes.window,),
    "StationaryWindows": (slopes.windows,),
    "Trajectory": (runs.simulation,),
    "PacketRuns": (runs.packets, "warmup"),
    "Comparison": (runs.comparison,),
    "BoundReport": (bounds.bounds,),
    "BoundReports": (bounds.bounds,),
    "LawReport": (laws.law,),
    "Optimum": (optimum.optimum,),
    "Tradeoff": (optimum.tradeoff,),
}
"""What tells of each class of results, by its name; and what that is told beside the numbers."""
