"""Trade-off curves: the best goal for every level of another quantity."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.measures import Measure, measure
from fluidcc.optimize.problem import Evaluator, Problem, worst
from fluidcc.optimize.search import Found
from fluidcc.optimize.solve import solve
from fluidcc.result import Result, plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.optimize.result import Optimum


@dataclasses.dataclass(frozen=True)
class Level:
    """The best goal with a quantity at a level: `relation` says on which side it was kept."""

    level: float
    relation: str
    objective: float
    quantity: float
    values: dict[str, float]
    status: str


@dataclasses.dataclass(frozen=True, repr=False)
class Tradeoff(Result):
    """The goal against another quantity: levels from the least to the greatest."""

    _view = "verdicts.TradeoffView"

    goal: str
    unit: str
    quantity: str
    quantity_unit: str
    levels: tuple[Level, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return plain(dataclasses.asdict(self))

    def to_dataset(self) -> xarray.Dataset:
        """Goal, quantity and parameters along the dimension `level`."""
        import xarray as xr

        paths = list(self.levels[0].values)
        data: dict[str, Any] = {
            "best": ("level", [p.objective for p in self.levels], {"units": self.unit}),
            "at": ("level", [p.quantity for p in self.levels], {"units": self.quantity_unit}),
            "best_value": (
                ("level", "parameter"), [[p.values[path] for path in paths] for p in self.levels]
            ),
            "level_status": ("level", [p.status for p in self.levels]),
        }  # fmt: skip
        coords = {
            "level": ("level", [p.level for p in self.levels], {"units": self.quantity_unit}),
            "parameter": paths,
        }
        return xr.Dataset(data, coords, {"traded": self.quantity})


def tradeoff(best: Optimum, quantity: str, points: int) -> Tradeoff:
    """The curve of an optimum, as `Optimum.tradeoff` says and raises.

    Below the quantity's value at the optimum it is kept at most at each level, above at least.
    """
    if best.status != "ok":
        raise ValueError(f"tradeoff: expected an optimum, got one that is {best.status}")
    if points < 2:
        raise ValueError(f"tradeoff: expected at least 2 points, got {points!r}")
    other = measure(best.problem.net, quantity, where="tradeoff")
    here = _shares(best)
    ends = [_extreme(best, other, sign, here) for sign in (-1, 1)]
    own = _own(_with(best.problem, other, -1, math.inf), here)
    levels = np.linspace(ends[0], ends[1], points)
    order = sorted(range(points), key=lambda k: abs(levels[k] - own))
    found: dict[int, Level] = {}
    starts = {-1: here, 1: here}  # the neighbour nearer to the optimum, on either side
    for k in order:
        sign = -1 if levels[k] <= own else 1
        found[k], starts[sign] = _level(best, other, sign, float(levels[k]), starts[sign])
    return Tradeoff(
        best.goal, best.unit, other.name, other.unit, tuple(found[k] for k in range(points))
    )


def _shares(best: Optimum) -> Array:
    pairs = zip(best.problem.ranges, best.values.values(), strict=True)
    return np.array([r.share(value) for r, value in pairs])


def _with(problem: Problem, other: Measure, sign: int, bound: float) -> Problem:
    """The problem with one more constraint."""
    extra = Constraint(other, sign, bound)
    return dataclasses.replace(problem, constraints=(*problem.constraints, extra))


def _extreme(best: Optimum, other: Measure, sign: int, here: Array) -> float:
    """The least (sign -1) or greatest value of a quantity that the constraints allow."""
    problem = dataclasses.replace(best.problem, goal=other, sign=sign)
    found = solve(problem, best.effort, given=() if not problem.smooth else (here,))
    if found.shares is None or found.status != "ok":
        raise ValueError(f"tradeoff: the range of {other.name} is not known: {found.message}")
    values = found.scaled.look(found.shares).values[:, 0] if found.scaled else np.zeros(0)
    return worst(sign, values)


def _own(problem: Problem, shares: Array) -> float:
    """The last constraint's quantity in its worst scenario."""
    return worst(problem.constraints[-1].sign, Evaluator(problem)(shares).values[:, -1])


def _level(
    best: Optimum, other: Measure, sign: int, level: float, start: Array
) -> tuple[Level, Array]:
    problem = _with(best.problem, other, sign, level)
    found: Found = solve(problem, best.effort, given=(start,) if problem.smooth else ())
    relation = ">=" if sign > 0 else "<="
    if found.shares is None or found.scaled is None:
        nothing = {path: math.nan for path in best.values}
        return Level(level, relation, math.nan, math.nan, nothing, found.status), start
    seen = found.scaled.look(found.shares)
    goal, reached = worst(problem.sign, seen.values[:, 0]), worst(sign, seen.values[:, -1])
    values = problem.values(found.shares)
    return Level(level, relation, goal, reached, values, found.status), found.shares
