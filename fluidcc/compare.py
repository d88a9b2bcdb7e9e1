"""The fluid model beside the packet-level simulation of the very same rules."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.fairness import throughputs
from fluidcc.fluid.mean_traffic import as_fluid
from fluidcc.fluid.rates import link_signal
from fluidcc.fluid.simulate import Trajectory, simulate, uniform_mesh
from fluidcc.network import Network
from fluidcc.packets.accounts.series import affordable
from fluidcc.packets.layout.plan import plan
from fluidcc.packets.run import PacketRuns, simulate_packets

_POINTS = 4001
_SAMPLES = 1000  # of the packets over time


@dataclasses.dataclass(frozen=True)
class Row:
    """One quantity in both engines; None where an engine has no number for it."""

    name: str  # "links.bottleneck.queue", say
    unit: str
    equilibrium: float | None
    fluid: float | None  # mean of the trajectory after the warm-up
    packets: float | None  # mean over seeds
    ci95: float | None  # half width of its 95 % interval

    @property
    def difference(self) -> float | None:
        """Fluid less packets, relative to packets; None where that makes no sense."""
        if self.fluid is None or not self.packets:
            return None
        return self.fluid / self.packets - 1


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Fluid equilibrium, fluid trajectory and packet runs of one network."""

    rows: tuple[Row, ...]
    equilibrium: Equilibrium
    fluid: Trajectory
    packets: PacketRuns
    until: float
    warmup: float

    def to_dict(self) -> dict[str, Any]:
        """The rows with their differences, and both engines' own results."""
        rows = [dataclasses.asdict(r) | {"difference": r.difference} for r in self.rows]
        return {
            "rows": rows,
            "until": self.until,
            "warmup": self.warmup,
            "fluid_status": self.fluid.status.name,
            "equilibrium": self.equilibrium.to_dict(),
            "packets": self.packets.to_dict(),
        }

    def to_dataset(self) -> xr.Dataset:
        """One variable per engine along the dimension `quantity`."""
        columns = ("equilibrium", "fluid", "packets", "ci95", "difference")
        data: dict[str, Any] = {
            c: ("quantity", [np.nan if getattr(r, c) is None else getattr(r, c) for r in self.rows])
            for c in columns
        }
        coords = {
            "quantity": [r.name for r in self.rows],
            "unit": ("quantity", [r.unit for r in self.rows]),
        }
        return xr.Dataset(data, coords, {"until_s": self.until, "warmup_s": self.warmup})

    def __repr__(self) -> str:
        head = f"{'quantity':34s} {'unit':>8s} {'equilibrium':>12s} {'fluid':>12s} {'packets':>24s}"
        lines = [head]
        for r in self.rows:
            half = "" if r.ci95 is None else f" +- {r.ci95:.2g}"
            lines.append(
                f"{r.name:34s} {r.unit:>8s} {_short(r.equilibrium):>12s} {_short(r.fluid):>12s} "
                f"{_short(r.packets) + half:>24s}"
            )
        return "\n".join(lines)


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def compare(
    net: Network,
    *,
    until: float,
    warmup: float = 0.0,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run the fluid model and the packet simulator on one network and set them side by side.

    Parameters
    ----------
    net
        The network.
    until, warmup
        End of both runs, and start of the statistics [s].
    seeds
        One packet run for each.
    progress
        Called with the finished share of the packet runs.

    Raises
    ------
    ValueError
        If `warmup` is not below `until`, or as `simulate` and `simulate_packets` do.
    """
    if not 0 <= warmup < until:
        raise ValueError(f"warmup: expected a time in [0, {until!r}) s, got {warmup!r}")
    rest = equilibrium(net)
    points = np.linspace(0.0, until, _POINTS)
    fluid = simulate(net, until=until, points=points, mesh=uniform_mesh(net))
    sample = until / _SAMPLES
    if not affordable(plan(net), sample, until, len(seeds)):
        sample = None
    packets = simulate_packets(
        net, until=until, warmup=warmup, seeds=seeds, sample=sample, progress=progress
    )
    late = points >= warmup
    results = (rest, fluid, packets, late)
    rows = (*_link_rows(as_fluid(net), *results), *_flow_rows(net, *results))
    return Comparison(rows, rest, fluid, packets, until, warmup)


def _packets(runs: PacketRuns, kind: str, name: str, metric: str) -> tuple[Any, Any]:
    """Mean over seeds and half width of its interval, None where there are none."""
    table = runs.to_dict()
    mean, half = ((table[part] or {}).get(kind, {}).get(name, {}) for part in ("mean", "ci95"))
    return mean.get(metric), half.get(metric)


def _number(value: Any) -> float | None:
    """A plain number, None where an engine has none."""
    return float(value) if np.isfinite(value) else None


def _shares_at_rest(net: Network, rest: Equilibrium, k: int) -> tuple[float, float]:
    """Shares of the packets sent to link k that it marks and drops at rest."""
    sent = marked = dropped = 0.0
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if k in flows.route:
            own = link_signal(flows, rest.rest.signals[k])
            load = float(np.sum(np.asarray(flows.n) * rest.flows[name].rate))
            sent += load
            marked += load * float(own.either - own.drop)
            dropped += load * float(own.drop)
    return marked / sent, dropped / sent


def _link_rows(
    net: Network, rest: Equilibrium, fluid: Trajectory, runs: PacketRuns, late: Any
) -> list[Row]:
    rows = []
    for k, name in enumerate(net.link_names):
        run, still = fluid.links[name], rest.links[name]
        marked, dropped = _shares_at_rest(net, rest, k)
        offered = run.offered[late]
        used = "utilization_left" if net.links[k].voice is not None else "utilization"
        quantities = (
            ("utilization", "1", still.utilization, run.utilization, None, used),
            ("queue", "packet", still.queue, run.queue, None, "system_mean"),
            ("marked", "1", marked, run.marked, offered, "mark_fraction"),
            ("dropped", "1", dropped, run.dropped, offered, "drop_fraction"),
        )
        for quantity, unit, at_rest, moving, weights, metric in quantities:
            mean = np.average(moving[late], weights=weights)
            seen = _packets(runs, "links", name, metric)
            rows.append(
                Row(f"links.{name}.{quantity}", unit, _number(at_rest), _number(mean), *seen)
            )
    return rows


def _flow_rows(
    net: Network, rest: Equilibrium, fluid: Trajectory, runs: PacketRuns, late: Any
) -> list[Row]:
    rows, arriving = [], throughputs(rest)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if name not in fluid.flows:  # files that come by themselves
            continue
        run, bits = fluid.flows[name], 8.0 * float(net.links[flows.route[0]].packet_size)
        bits *= float(flows.traffic.sources())  # on/off flows for each source
        still = bits * arriving[name]
        moving = bits * np.average((run.rate * (1 - run.loss))[late], axis=1, weights=run.n).mean()
        seen = _packets(runs, "flows", name, "goodput")
        rows.append(Row(f"flows.{name}.goodput", "bit/s", _number(still), _number(moving), *seen))
    return rows
