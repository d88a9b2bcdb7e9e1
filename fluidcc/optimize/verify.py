"""Whether an optimum holds: its trajectory, and packets with seeds that the search did not use."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc.analysis.measures import Measure, measure
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.runs import Runs, settling_time, variation
from fluidcc.packets.layout.plan import PacketError
from fluidcc.result import plain
from fluidcc.results.compare import Comparison, compare
from fluidcc.scenario.network import Network


@dataclasses.dataclass(frozen=True)
class Settling:
    """How a link's queue settles along the trajectory from the scenario's own start.

    `time` [s] is as `settling_time` defines it, infinite where it does not settle, NaN where it has
    no rest to settle at.
    """

    link: str
    time: float
    variation: float

    @property
    def settles(self) -> bool | None:
        """Whether the queue comes to its rest and stays there; None where it has none."""
        return None if math.isnan(self.time) else math.isfinite(self.time)


@dataclasses.dataclass(frozen=True)
class Check:
    """A quantity in packets: mean over seeds, half width of its 95 % interval, and the bound.

    `fluid` is what the fluid model says at rest, None where it has no number. `bound` is None where
    there is none; `holds` is None there, and where the interval has the bound inside.
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
    """The network at the optimum in both engines; `message` says why something is missing.

    `scenario` is the one of a box in which it was run, `worst_for` the goal and the constraints for
    which that one is the worst; both are empty where there is no box.
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
        return plain(
            {
                "scenario": self.scenario,
                "worst_for": self.worst_for,
                "settling": [
                    {**dataclasses.asdict(s), "settles": s.settles} for s in self.settling
                ],
                "checks": [dataclasses.asdict(check) for check in self.checks],
                "until": self.until,
                "warmup": self.warmup,
                "seeds": list(self.seeds),
                "message": self.message,
                "outside": list(self.comparison.outside) if self.comparison else [],
                "rows": self.comparison.to_dict()["rows"] if self.comparison else [],
            }
        )


def verify(
    net: Network,
    goal: Measure,
    constraints: Sequence[Constraint],
    runs: Runs,
    *,
    scenario: Mapping[str, float] | None = None,
    worst_for: Sequence[str] = (),
) -> Verification:
    """Run the network in both engines from the scenario's own start.

    Parameters
    ----------
    net
        The network at the optimum, in the scenario that is to be looked at.
    goal, constraints
        What is checked in packets, as far as they have it.
    runs
        Ends, warm-up and seeds of both runs.
    scenario, worst_for
        What the network was put into, and why it was.
    """
    settling, checks, both, message = [], [], None, ""
    try:
        both = compare(net, until=runs.until, warmup=runs.warmup, seeds=runs.seeds)
        both.packets.complete()
    except (PacketError, ValueError) as error:
        message = str(error)
    if both is not None and both.fluid is not None:
        time = both.fluid.time
        for name, run in both.fluid.links.items():
            settled = settling_time(time, run.queue, both.equilibrium.links[name].queue)
            settling.append(Settling(name, settled, variation(time, run.queue, runs.warmup)))
        message = both.fluid.message if both.fluid.status.value else ""
    if both is not None:
        wanted = [(goal, None), *((c.measure, c) for c in constraints)]
        known = {m.name for m, _ in wanted}
        always = [f"links.{n}.{key}" for n in net.link_names for key in ("queue", "utilization")]
        wanted += [(measure(net, name), None) for name in always if name not in known]
        checks = [c for c in (_check(net, both, m, bound) for m, bound in wanted) if c is not None]
    return Verification(
        dict(scenario or {}), tuple(worst_for), tuple(settling), tuple(checks), both, runs.until,
        runs.warmup, runs.seeds, message,
    )  # fmt: skip


def _check(net: Network, both: Comparison, each: Measure, bound: Constraint | None) -> Check | None:
    metric = each.in_packets(net)
    if metric is None:
        return None
    value, half = (
        float(seen[metric.kind][metric.owner].get(metric.key, math.nan))
        for seen in (both.packets.mean, both.packets.ci95)
    )
    holds = None
    if bound is not None and math.isfinite(value):
        wide = bound.sign * (half if math.isfinite(half) else math.inf)
        holds = True if bound.met(value - wide) else None if bound.met(value + wide) else False
    text = each.name if bound is None else bound.text
    name = f"packets.{metric.kind}.{metric.owner}.{metric.key}"
    most = None if bound is None else bound.bound
    rest = each.read(both.equilibrium)
    fluid = None if rest is None or not math.isfinite(rest) else float(rest)
    return Check(text, name, most, fluid, value, half, holds)
