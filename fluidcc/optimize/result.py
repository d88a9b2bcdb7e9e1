"""An optimum as a result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.network import Network
from fluidcc.optimize.stationary import Active
from fluidcc.optimize.verify import Verification
from fluidcc.results import plain

if TYPE_CHECKING:
    import xarray

    from fluidcc.optimize.problem import Problem
    from fluidcc.optimize.solve import Effort
    from fluidcc.optimize.tradeoff import Tradeoff


@dataclasses.dataclass(frozen=True)
class Start:
    """A start of the search and where it ended: parameters by path, the goal there (NaN if it has
    no number), whether all constraints are met, and how many points were looked at.
    """

    begin: Mapping[str, float]
    end: Mapping[str, float]
    objective: float
    feasible: bool
    points: int


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The best parameters found, what holds them, and whether both engines agree.

    `status` is `ok`, `infeasible` (no point meets all constraints: the one that misses least is
    given), `unbounded` (the goal is infinite at the point given) or `unknown` (no point has all
    numbers); `message` says more. `values` are the parameters by path, `net` the network with them.
    `objective` is the goal in the worst scenario, `given` that of the network as it was (None where
    it has no number or lies outside the ranges) and `given_meets` whether that meets the
    constraints, `quantities` what the constraints are about, in
    their worst scenarios. `active` are constraints and ends of ranges that hold the optimum, with
    their multipliers; `worst` the scenarios that decide the objective. `residual` is what the
    multipliers leave of the slope, in units of the goal's spread over a range: near 0 at a smooth
    optimum, None without derivatives.
    """

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
    quantities: dict[str, float]
    constraints: tuple[str, ...]
    active: tuple[Active, ...]
    worst: tuple[dict[str, float], ...]
    residual: float | None
    starts: tuple[Start, ...]
    points: int
    net: Network = dataclasses.field(repr=False)
    verification: Verification | None
    problem: Problem = dataclasses.field(repr=False)
    effort: Effort = dataclasses.field(repr=False)
    curve: Tradeoff | None = None

    def tradeoff(self, quantity: str, points: int = 9) -> Tradeoff:
        """The best objective over the range of another quantity, other constraints kept.

        Parameters
        ----------
        quantity
            A quantity by name, as in `optimize`.
        points
            How many levels of it, from the least to the greatest that the constraints allow; each
            is an optimisation of its own.

        Raises
        ------
        ValueError
            If there is no optimum to trade from.
        """
        from fluidcc.optimize.tradeoff import tradeoff

        return tradeoff(self, quantity, points)

    def traded(self, quantity: str, points: int = 9) -> Optimum:
        """The same result with the curve of `tradeoff`; where there is no optimum without it."""
        if self.status != "ok":
            return self
        return dataclasses.replace(self, curve=self.tradeoff(quantity, points))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for what is not known."""
        names = (
            "status", "message", "goal", "sense", "objective", "unit", "given", "given_meets",
            "values", "units", "quantities", "constraints", "worst", "residual", "points",
        )  # fmt: skip
        out = {name: plain(getattr(self, name)) for name in names}
        out["active"] = plain([dataclasses.asdict(each) for each in self.active])
        out["starts"] = plain([dataclasses.asdict(each) for each in self.starts])
        out["verification"] = None if self.verification is None else self.verification.to_dict()
        out["tradeoff"] = None if self.curve is None else self.curve.to_dict()
        return out

    def to_dataset(self) -> xarray.Dataset:
        """Parameters, quantities and starts as labelled arrays; the trade-off curve with them."""
        import xarray as xr

        paths, names = list(self.values), list(self.quantities)
        ends = [[start.end[path] for path in paths] for start in self.starts]
        data: dict[str, Any] = {
            "objective": ((), self.objective, {"units": self.unit}),
            "value": ("parameter", [self.values[path] for path in paths]),
            "quantity_value": ("quantity", [self.quantities[name] for name in names]),
        }
        if ends:
            data["start_end"] = (("start", "parameter"), ends)
            data["start_objective"] = ("start", [s.objective for s in self.starts])
        coords = {
            "parameter": paths, "units": ("parameter", list(self.units.values())),
            "quantity": names,
        }  # fmt: skip
        attrs = {
            "status": self.status, "message": self.message, "goal": self.goal, "sense": self.sense
        }  # fmt: skip
        out = xr.Dataset(data, coords, attrs)
        return out if self.curve is None else out.merge(self.curve.to_dataset())

    def __repr__(self) -> str:
        unit = "" if self.unit in ("", "1") else f" {self.unit}"
        known = "none" if math.isnan(self.objective) else f"{self.objective:.8g}{unit}"
        lines = [f"Optimum: {self.sense} {self.goal}: {known}, {self.status}"]
        lines[0] += f" ({self.message})" if self.message else ""
        if self.given is not None:
            missed = "" if self.given_meets else ", which misses a constraint"
            lines.append(f"  as given: {self.given:.8g}{unit}{missed}")
        for path, value in self.values.items():
            unit = "" if self.units[path] in ("", "1") else f" {self.units[path]}"
            lines.append(f"  {path} = {value:.8g}{unit}")
        lines += [f"  {name}: {value:.6g}" for name, value in self.quantities.items()]
        for each in self.active:
            by = "" if each.multiplier is None else f", multiplier {each.multiplier:.4g}"
            lines.append(f"  held by {each.text}{by}{told(each.scenario)}")
        for check in self.verification.checks if self.verification else ():
            holds = {True: ", holds", False: ", MISSED", None: ""}[check.holds]
            lines.append(f"  packets: {check.text}: {check.value:.6g} +- {check.ci95:.2g}{holds}")
        return "\n".join(lines)


def told(scenario: Mapping[str, float]) -> str:
    """A scenario in words."""
    pairs = ", ".join(f"{path} = {value:g}" for path, value in scenario.items())
    return f" at {pairs}" if pairs else ""
