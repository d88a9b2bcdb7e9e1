"""An optimum as a result, with its trade-off curve and its verification in both engines."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.optimize.search import Active
from fluidcc.result import Result, plain
from fluidcc.results.compare import Comparison
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    import xarray

    from fluidcc.optimize.problem import Problem
    from fluidcc.optimize.solve import Effort


@dataclasses.dataclass(frozen=True)
class Start:
    """A start of the search and where it ended: parameters by path, the goal there (NaN if it has
    no number), whether all constraints are met, and how many points were evaluated.
    """

    begin: Mapping[str, float]
    end: Mapping[str, float]
    objective: float
    feasible: bool
    points: int


@dataclasses.dataclass(frozen=True)
class ConstraintValue:
    """A constraint at the optimum: the value of its quantity in the scenario worst for it.

    `met` allows 1e-8 of the bound (of one unit if that is 0).
    """

    text: str
    quantity: str
    value: float
    met: bool
    scenario: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite one is None, with `infinite` true."""
        own = {name: plain(value) for name, value in vars(self).items()}
        return {**own, "infinite": math.isinf(self.value)}


@dataclasses.dataclass(frozen=True)
class Settling:
    """How a link's queue settles along the trajectory from the scenario's own start.

    `time` [s] is as `settling_time` defines it, infinite if it does not settle, NaN if it has
    no equilibrium to settle at.
    """

    link: str
    time: float
    variation: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own = {name: plain(value) for name, value in vars(self).items()}
        return {**own, "settles": self.settles}

    @property
    def settles(self) -> bool | None:
        """Whether the queue comes to its equilibrium and stays there; None if it has none."""
        return None if math.isnan(self.time) else math.isfinite(self.time)


@dataclasses.dataclass(frozen=True)
class Check:
    """A quantity in packets: mean over seeds, half width of its 95 % interval, and the bound.

    `fluid` is the value at the equilibrium of the fluid model, None if it has no number. `bound` is
    None if there is none; `holds` is None then, and if the bound lies inside the interval.
    """

    text: str
    metric: str
    bound: float | None
    fluid: float | None
    value: float
    ci95: float
    holds: bool | None


@dataclasses.dataclass(frozen=True)
class Verification:
    """The network at the optimum in both engines; `message` has the reason of missing parts.

    `scenario` is the one of a box in which it was run, `worst_for` the goal and the constraints for
    which that one is the worst; both are empty without a box.
    """

    scenario: dict[str, float]
    worst_for: tuple[str, ...]
    settling: tuple[Settling, ...]
    checks: tuple[Check, ...]
    comparison: Comparison | None
    until: float
    warmup: float
    seeds: tuple[int, ...]
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        both = self.comparison
        names = "scenario", "worst_for", "settling", "checks", "until", "warmup", "seeds", "message"
        return {name: plain(getattr(self, name)) for name in names} | {
            "validity_warnings": list(both.validity_warnings) if both else [],
            "rows": both.to_dict()["rows"] if both else [],
        }


@dataclasses.dataclass(frozen=True)
class Level:
    """The best goal with a quantity at a level: `relation` is the side on which it was kept."""

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
        return {name: plain(value) for name, value in vars(self).items()}

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


@dataclasses.dataclass(frozen=True, repr=False)
class Optimum(Result):
    """The best parameters found, the constraints active there, and whether both engines agree.

    `status` is `ok`, `infeasible` (no point meets all constraints and has a finite goal: the one
    that misses least is given), `unbounded` (the goal is infinitely good at the point given) or
    `unknown` (no point has all numbers); `message` has details. `values` are the parameters,
    `net` the network with them. `objective` is the goal in the worst scenario, `given` that of the
    network as it was and `given_meets` whether that meets the constraints; both are None if it
    has no number or lies outside the ranges, and an infinite `given` is None in JSON.
    `constraints` are those asked for, and that the equilibrium is stable, each with its value.
    `active` are constraints and ends of ranges active there, with their multipliers; `worst` the
    scenarios that decide the objective. `residual` is the slope left by the multipliers, in units
    of the goal's spread over a range: near 0 at a smooth optimum, None without derivatives.
    `starts` and `points` (how many were evaluated) are those of all rounds. `verification` has a
    run for each scenario that decides the objective or an active constraint, a single one without a
    box of scenarios; it is empty if it was not asked for or there is no optimum.
    """

    _view = "verdicts.OptimumView"

    status: str
    message: str
    goal: str
    sense: str
    objective: float
    unit: str
    given: float | None
    given_meets: bool | None
    values: dict[str, float]
    units: dict[str, str]
    constraints: tuple[ConstraintValue, ...]
    active: tuple[Active, ...]
    worst: tuple[dict[str, float], ...]
    residual: float | None
    starts: tuple[Start, ...]
    points: int
    net: Network = dataclasses.field(repr=False)
    verification: tuple[Verification, ...]
    problem: Problem = dataclasses.field(repr=False)
    effort: Effort = dataclasses.field(repr=False)
    curve: Tradeoff | None = None

    def tradeoff(self, quantity: str, points: int = 9) -> Tradeoff:
        """The best objective over the range of another quantity, other constraints kept.

        With a box of scenarios, over those that were found to decide the optimum.

        Parameters
        ----------
        quantity
            A quantity by name, as in `optimize`.
        points
            How many levels of it, from the least to the greatest that the constraints allow; each
            is a separate optimisation.

        Raises
        ------
        ScenarioError
            If there is no such quantity.
        ValueError
            If there is no optimum to trade from, the range of the quantity is not known, or there
            are less than two points.
        """
        from fluidcc.optimize.solve import tradeoff

        return tradeoff(self, quantity, points)

    def traded(self, quantity: str, points: int = 9) -> Optimum:
        """The same result with the curve of `tradeoff`, or unchanged without an optimum.

        Raises the errors of `tradeoff`.
        """
        if self.status != "ok":
            return self
        return dataclasses.replace(self, curve=self.tradeoff(quantity, points))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for what is not known."""
        names = (
            "status", "message", "goal", "sense", "objective", "unit", "given", "given_meets",
            "values", "units", "worst", "residual", "points", "constraints", "active", "starts",
            "verification",
        )  # fmt: skip
        own = {name: plain(getattr(self, name)) for name in names}
        return {**own, "tradeoff": plain(self.curve)}

    def to_dataset(self) -> xarray.Dataset:
        """Parameters, constraints and starts as labelled arrays; the trade-off curve with them."""
        import xarray as xr

        paths, rules = list(self.values), self.constraints
        ends = [[start.end[path] for path in paths] for start in self.starts]
        data: dict[str, Any] = {
            "objective": ((), self.objective, {"units": self.unit}),
            "value": ("parameter", [self.values[path] for path in paths]),
            "constraint_value": ("constraint", [rule.value for rule in rules]),
            "constraint_met": ("constraint", [rule.met for rule in rules]),
        }
        if ends:
            data["start_end"] = (("start", "parameter"), ends)
            data["start_objective"] = ("start", [s.objective for s in self.starts])
        coords = {
            "parameter": paths, "units": ("parameter", list(self.units.values())),
            "constraint": [rule.text for rule in rules],
        }  # fmt: skip
        attrs = {
            "status": self.status, "message": self.message, "goal": self.goal, "sense": self.sense
        }  # fmt: skip
        out = xr.Dataset(data, coords, attrs)
        return out if self.curve is None else out.merge(self.curve.to_dataset())
