"""A problem in numbers of order one: cost to be made small, slacks to be kept at zero or above."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fluidcc.analysis.linear import Array
from fluidcc.optimize.problem import Evaluator, Seen

ENOUGH = 1e3
"""Slack in its scale up to which it counts, on either side: solvers take no infinite margins, and
what lies so far from its bound plays no part."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """Costs (S,) of the scenarios and slacks (R,) of all constraints, and their slopes by K shares.

    `known` is false where the point has no numbers; `met` tells whether it meets all constraints.
    A cost of minus infinity is a goal without bound, as that of an infinite margin.
    """

    known: bool
    met: bool
    costs: Array
    slacks: Array
    cost_slopes: Array
    slack_slopes: Array

    @property
    def cost(self) -> float:
        """The cost in the worst scenario."""
        return float(np.max(self.costs))

    @property
    def violation(self) -> float:
        """By how much the worst constraint is missed; at most zero where all are met."""
        return float(-np.min(self.slacks, initial=math.inf)) if self.slacks.size else 0.0


class Scaled:
    """Costs and slacks of a problem over their scales, which a sample of its box sets.

    The cost is the goal, negative if maximised, over the spread of the goal in the sample; a slack
    is over the spread of its quantity, or over its constraint's scale where it does not vary.
    """

    def __init__(self, look: Evaluator, sample: Sequence[Array]) -> None:
        self.look, self.problem = look, look.problem
        values = np.array([look(point).values for point in sample])  # (points, S, M)
        self.scales = np.array([_spread(values[:, :, j]) for j in range(values.shape[2])])
        for j, each in enumerate(self.problem.constraints, start=1):
            if self.scales[j] == 0:
                self.scales[j] = each.scale
        self.scales[0] = self.scales[0] or 1.0

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.problem.ranges)

    def costs(self, seen: Seen) -> Array:
        """Costs (S,)."""
        return -self.problem.sign * seen.values[:, 0] / self.scales[0]

    def slacks(self, seen: Seen) -> Array:
        """Slacks (R,), constraint by constraint, each in all scenarios."""
        each = [
            c.sign * (seen.values[:, j] - c.bound) / self.scales[j]
            for j, c in enumerate(self.problem.constraints, start=1)
        ]
        return np.concatenate(each) if each else np.zeros(0)

    def rows(self, shares: Array, *, slopes: bool = True) -> Rows:
        """Costs and slacks at a point."""
        seen = self.look(shares)
        costs, slacks = self.costs(seen), self.slacks(seen)
        far = np.abs(slacks) > ENOUGH
        told = seen.known, self.problem.met(seen.values), costs, np.clip(slacks, -ENOUGH, ENOUGH)
        blank = np.zeros((len(costs), self.size)), np.zeros((len(slacks), self.size))
        if not slopes or not seen.known:
            return Rows(*told, *blank)
        found = self.look.slopes(shares)
        by_cost = -self.problem.sign * found[:, 0] / self.scales[0]
        each = [
            c.sign * found[:, j] / self.scales[j]
            for j, c in enumerate(self.problem.constraints, start=1)
        ]
        by_slack = np.concatenate(each) if each else blank[1]
        by_slack[far] = 0.0
        return Rows(*told, by_cost, by_slack)

    def merit(self, shares: Array) -> tuple[int, float]:
        """What a smaller pair of is better: met before missed before unknown, then by how much."""
        rows = self.rows(shares, slopes=False)
        if not rows.known:
            return 2, math.inf
        return (0, rows.cost) if rows.met else (1, rows.violation)


def _spread(values: Array) -> float:
    """Middle half of what is known of some values; 0 where they do not vary."""
    known = values[np.isfinite(values)]
    if known.size < 2:
        return 0.0
    low, high = np.percentile(known, (25, 75))
    return float(high - low) or float(np.ptp(known))
