"""Trade-off curves: the best goal for every level of another quantity."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.analysis.measures import measure
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.problem import Evaluator, worst
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
    problem, other = best.problem, measure(best.problem.net, quantity, where="tradeoff")
    pairs = zip(problem.ranges, best.values.values(), strict=True)
    here = np.array([r.coordinate(value) for r, value in pairs])
    ends = []
    for sign in (-1, 1):  # the least and the greatest that the constraints allow
        end = _solve(best, here, goal=other, sign=sign)
        if end.x is None or end.status != "ok":
            raise ValueError(f"tradeoff: the range of {other.name} is not known: {end.message}")
        ends.append(worst(sign, end.look(end.x).values[:, 0]))
    own = worst(-1, Evaluator(dataclasses.replace(problem, goal=other))(here).values[:, 0])
    levels = np.linspace(ends[0], ends[1], points)
    found: dict[int, Level] = {}
    starts = {-1: here, 1: here}  # the neighbour nearer to the optimum, on either side
    for k in sorted(range(points), key=lambda k: abs(levels[k] - own)):
        sign = -1 if levels[k] <= own else 1
        rule = Constraint(other, sign, float(levels[k]))
        each = _solve(best, starts[sign], constraints=(*problem.constraints, rule))
        starts[sign] = starts[sign] if each.x is None else each.x
        found[k] = _level(best, rule, each)
    return Tradeoff(
        best.goal, best.unit, other.name, other.unit, tuple(found[k] for k in range(points))
    )


def _solve(best: Optimum, start: Array, **changes: Any) -> Found:
    """The optimum of the same problem with changes, near a start."""
    problem = dataclasses.replace(best.problem, **changes)
    return solve(problem, best.effort, given=(start,) if problem.smooth else ())


def _level(best: Optimum, rule: Constraint, found: Found) -> Level:
    relation = ">=" if rule.sign > 0 else "<="
    if found.x is None:
        nothing = dict.fromkeys(best.values, math.nan)
        return Level(rule.bound, relation, math.nan, math.nan, nothing, found.status)
    problem, values = best.problem, found.look(found.x).values
    goal, reached = worst(problem.sign, values[:, 0]), worst(rule.sign, values[:, -1])
    return Level(rule.bound, relation, goal, reached, problem.values(found.x), found.status)
