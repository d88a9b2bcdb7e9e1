"""The levels of description of one network side by side, from mean windows to single packets, and
how much one group of flows gains at the cost of another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.fluctuations import Fluctuations, fluctuations
from fluidcc.analysis.oscillation import repeating_period
from fluidcc.analysis.validity import validity_warnings
from fluidcc.dde.uniform import Uniform
from fluidcc.model.fluid import as_fluid
from fluidcc.model.rates import link_signal
from fluidcc.model.simulate import (
    FLOW_KEYS,
    LINK_KEYS,
    Trajectory,
    listed_starts,
    simulate,
    trajectory_time,
)
from fluidcc.packets.accounts import half_width, shortest
from fluidcc.packets.budget import packet_time
from fluidcc.packets.hooks import compile_ahead
from fluidcc.packets.plan import PacketError, plan
from fluidcc.packets.run import PacketRuns, simulate_packets
from fluidcc.progress import part, reporting
from fluidcc.quantities import BY_UNIT, about, in_packets, labels
from fluidcc.result import Result, plain
from fluidcc.results.levels import (
    LEVELS,
    Choice,
    choose_level,
    depends_on_step,
    known_levels,
    loses_most,
)
from fluidcc.scenario.network import Network, why_packets
from fluidcc.scenario.parsing import in_seconds
from fluidcc.trains.layout import train_time
from fluidcc.trains.run import TWICE_THE_STEP, TrainRuns, simulate_trains

if TYPE_CHECKING:
    import xarray


POINTS = 4001  # of every trajectory, so that one program is compiled
_PER_TRIP = 2  # samples per round trip: a delayed loop has a period of two round trips or more
_MAX_NUMBERS = 40_000_000  # in a trajectory: 320 MB


def _relative(name: str, meaning: str) -> Any:
    """A property of a row: a number less that of packets, relative to it; None without either."""

    def found(row: Row) -> float | None:
        value = getattr(row, name)
        return None if value is None or not row.packets else value / row.packets - 1

    return property(found, doc=meaning)


@dataclasses.dataclass(frozen=True)
class Row:
    """One quantity at every level; None if a level has no number for it."""

    name: str  # for example "links.bottleneck.queue"
    unit: str
    mean: float | None  # equilibrium of mean windows
    population: float | None  # equilibrium of all windows, and the queue's standard deviation
    trains: float | None  # mean over seeds
    trains_ci95: float | None  # half width of its 95 % interval
    fluid: float | None  # of the trajectory of mean windows after the warm-up
    packets: float | None  # mean over seeds
    ci95: float | None  # half width of its 95 % interval
    recommended: float | None  # at the level to trust, if that is below packets

    @property
    def model(self) -> float | None:
        """The fluid model's value: the trajectory's, or the equilibrium's without a trajectory."""
        return self.mean if self.fluid is None else self.fluid

    difference = _relative("model", "Fluid model less packets, relative to packets, or None.")
    population_difference = _relative("population", "The same of the population.")
    trains_difference = _relative("trains", "The same of trains.")
    recommended_difference = _relative("recommended", "The same of the level to trust.")

    def to_dict(self) -> dict[str, Any]:
        """The numbers, with their differences."""
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in _DIFFERENCES}


_DIFFERENCES = (
    "difference", "population_difference", "trains_difference", "recommended_difference",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Equilibria by means and by the population with its fluctuations, the trajectory of the fluid
    model, runs of trains and packet runs of a network; the last three are None if not asked for.

    `level` is the level to trust, and `level_reason` says why; `trains_message` says why trains do
    not take the network.

    `rows` has the quantities at all `levels` asked for. `equilibrium`, `population`, `fluid`,
    `trains` and `packets` are the results, `until` and `warmup` [s] their times;
    `validity_warnings` and `message` have what speaks against the fluid model or is missing.

    Examples
    --------
    >>> import fluidcc as fc
    >>> both = fc.compare(
    ...     fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2), trajectory=False,
    ...     levels=("mean", "population", "packets"),
    ... )
    >>> both.equilibrium.status, both.fluid, both.until
    ('regular', None, 3)
    >>> both.level
    'population'
    """

    _view = "runs.ComparisonView"

    rows: tuple[Row, ...]
    levels: tuple[str, ...]
    level: str
    level_reason: str
    equilibrium: Equilibrium
    population: Fluctuations
    fluid: Trajectory | None
    trains: TrainRuns | None
    packets: PacketRuns | None
    until: float
    warmup: float
    validity_warnings: tuple[str, ...]
    """Assumptions of the fluid model that do not hold here: why packets will differ."""
    trains_message: str = ""
    message: str = ""  # what the fluid makes of listed starts, and why periods are unknown

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the runs of packets or trains."""
        runs = self.packets or self.trains
        return () if runs is None else runs.seeds

    def to_dict(self) -> dict[str, Any]:
        """The rows with their differences, and the levels' own results."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "levels": list(self.levels),
            "level": self.level,
            "level_reason": self.level_reason,
            "until": self.until,
            "warmup": self.warmup,
            "message": self.message,
            "validity_warnings": list(self.validity_warnings),
            "population": self.population.to_dict(),
            "fluid_status": None if self.fluid is None else self.fluid.status.name,
            "fluid_message": "" if self.fluid is None else self.fluid.message,
            "equilibrium": self.equilibrium.to_dict(),
            "trains": plain(self.trains),
            "trains_message": self.trains_message,
            "packets": plain(self.packets),
        }

    def to_xarray(self) -> xarray.Dataset:
        """One variable per level along the dimension `quantity`."""
        columns = (
            "mean", "population", "trains", "trains_ci95", "fluid", "packets", "ci95",
            "recommended", *_DIFFERENCES,
        )  # fmt: skip
        data: dict[str, Any] = {
            c: (
                "quantity", np.array([getattr(r, c) for r in self.rows], float),
                about(c, "" if c in _DIFFERENCES else BY_UNIT),
            )
            for c in columns
        }  # fmt: skip
        coords = labels(quantity=[r.name for r in self.rows])
        coords["unit"] = ("quantity", [r.unit for r in self.rows], about("unit"))
        data["to_trust"] = ((), self.level, about("to_trust"))
        attrs = {
            "until_s": self.until, "warmup_s": self.warmup, "status": self.equilibrium.status,
            "message": self.equilibrium.message,
            "level_reason": self.level_reason, "trains_message": self.trains_message,
            "validity_warnings": "; ".join(self.validity_warnings),
            "notes": self.message,
        }  # fmt: skip
        import xarray  # heavy

        return xarray.Dataset(data, coords, attrs)


def compare_time(
    net: Network,
    *,
    until: float,
    seeds: Sequence[int],
    levels: Sequence[str] = LEVELS,
    trajectory: bool = True,
    **_: Any,
) -> float:
    """About how long `compare` takes on the processors of this machine [s], without compilation."""
    runs, total = len(seeds), 0.0
    if "trains" in levels:
        total += TWICE_THE_STEP * train_time(net, until, runs)
    if "packets" in levels:
        total += packet_time(net, until, runs)
    if trajectory and "mean" in levels and not why_packets(net):
        total += trajectory_time(net, until, Uniform())
    return total


@reporting
def compare(
    net: Network,
    *,
    until: float | str,
    warmup: float | str = 0.0,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    levels: Sequence[str] = LEVELS,
    trajectory: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Comparison:
    """Set the levels of description of one network side by side, and name the one to trust.

    The first equilibrium and the trajectory are those of mean windows, whatever the closure.
    Means count from `warmup` on. `queue_std` is the standard deviation of a queue over time, and
    `period` that of its oscillation, by one rule at all levels (`repeating_period`). It needs two
    samples in the shortest round trip; where these are more numbers than are kept, 40 million of
    the fluid or 20 million of the packets, there is no period, and `message` says so.
    The level to trust is chosen by what the levels below packets say of themselves.

    Parameters
    ----------
    net
        The network.
    until, warmup
        End of all runs, and start of the statistics [s]; text is read with its unit.
    seeds
        One run of trains and one of packets for each.
    levels
        Those whose numbers are asked for: mean, population, trains, packets. Both equilibria are
        found in any case. Networks that trains refuse have no numbers of theirs.
    trajectory
        Whether to integrate the fluid model; the equilibrium alone stands for it otherwise.
    progress
        Called with the finished share, in [0, 1], of the runs of trains and packets.

    Returns
    -------
    Comparison
        `rows`, a quantity each with its value at every level and the half width of the 95 %
        interval in packets, in the unit of the row; the results that they are from; `level`, the
        level to trust, and why.

    Raises
    ------
    ValueError
        If `warmup` is not below `until`, a level is not known, or as `simulate` and
        `simulate_packets` do.

    Examples
    --------
    >>> import fluidcc as fc
    >>> both = fc.compare(
    ...     fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2), trajectory=False,
    ...     levels=("mean", "packets"),
    ... )
    >>> [row.name for row in both.rows[:2]]
    ['links.bottleneck.utilization', 'links.bottleneck.queue']
    """
    until, warmup = in_seconds("until", until), in_seconds("warmup", warmup)
    if not isinstance(until, Real):
        raise ValueError(f"until: expected a time in s, got {until!r}")
    if not 0 <= warmup < until:
        raise ValueError(f"warmup: expected a time in [0, {until!r}) s, got {warmup!r}")
    asked = known_levels(levels)
    engines = [level for level in ("trains", "packets") if level in asked]
    if "packets" in engines:
        compile_ahead()
    means = dataclasses.replace(net, closure="mean")
    eq, noise = equilibrium(means), fluctuations(net)
    try:
        least = shortest(plan(net), until, len(seeds))  # time between samples of packets
    except PacketError:
        least = math.inf
    trip = min(float(np.min(np.asarray(flows.rtt))) for flows in as_fluid(net).flows)
    wanted = math.ceil(_PER_TRIP * until / trip) + 1  # fewer would alias the period
    classes = sum(np.size(flows.rtt) for flows in net.flows)
    width = len(LINK_KEYS) * len(net.links) + len(FLOW_KEYS) * classes
    fine = wanted <= max(POINTS, _MAX_NUMBERS // width)
    fine = fine and (math.isinf(least) or least <= until / (wanted - 1))
    points = np.linspace(0.0, until, max(POINTS, wanted) if fine else POINTS)
    sample = None if math.isinf(least) else max(least, until / (len(points) - 1))
    fluid = None
    changes = why_packets(net)
    if trajectory and "mean" in asked and not changes:
        fluid = simulate(means, until=until, points=points, mesh=Uniform())
    runs: dict[str, Any] = {"until": until, "warmup": warmup, "seeds": seeds, "sample": sample}
    trains, refused, packets = None, "", None
    if "trains" in engines:
        try:
            with _part_of("trains", engines):
                trains = simulate_trains(net, estimate_error=True, **runs)
        except PacketError as why:
            refused = str(why)
    if "packets" in engines:
        with _part_of("packets", engines):
            packets = simulate_packets(net, **runs)
    warnings = validity_warnings(eq, fluid, noise)
    against = refused
    if trains is not None:
        against = loses_most(trains) or depends_on_step(trains)
    choice = choose_level(
        asked, equilibrium=eq, population=noise, warnings=warnings, against=against,
        changes=changes,
    )  # fmt: skip
    late = points >= warmup
    sides = _Sides(as_fluid(net), asked, choice, eq, noise, fluid, trains, packets, late, fine)
    links = _link_rows(sides)
    rows = (*links, *_flow_rows(net, sides, {row.name: row for row in links}))
    notes = listed_starts(net) if fluid else []
    if not fine and (fluid or trains or packets):
        notes.append(
            f"no period is given: that needs a sample every {until / (wanted - 1):.3g} s, half of "
            "the shortest round trip, which are too many numbers; expected a shorter run or fewer "
            "seeds"
        )
    return Comparison(
        rows, asked, *choice, eq, noise, fluid, trains, packets, until, warmup, warnings, refused,
        "; ".join(notes),
    )  # fmt: skip


def _part_of(engine: str, engines: Sequence[str]) -> AbstractContextManager[None]:
    """Report the runs of one engine as a part of all."""
    number = engines.index(engine)
    return part(number / len(engines), (number + 1) / len(engines), verb=True)


_Seen = tuple[float | None, float | None]
"""Mean over seeds and half width of its interval, None if there are none."""
_UNSEEN: _Seen = (None, None)


class _Sides(NamedTuple):
    """What stands side by side: points `late` of the trajectory count, and samples are `fine`
    enough for periods.
    """

    net: Network
    asked: tuple[str, ...]
    choice: Choice
    eq: Equilibrium
    noise: Fluctuations
    fluid: Trajectory | None
    trains: TrainRuns | None
    packets: PacketRuns | None
    late: Any
    fine: bool

    def row(
        self, name: str, unit: str, mean: float | None, population: float | None,
        fluid: float | None, trains: _Seen, packets: _Seen,
    ) -> Row:  # fmt: skip
        """A quantity with the numbers of the levels that were asked for."""
        mean = mean if "mean" in self.asked else None
        population = population if "population" in self.asked else None
        known = {"mean": mean, "population": population, "trains": trains[0]}
        recommended = known.get(self.choice.level)
        return Row(name, unit, mean, population, *trains, fluid, *packets, recommended)

    def seen(self, kind: str, name: str, quantity: str) -> tuple[_Seen, _Seen]:
        """A quantity in trains and in packets."""
        trains, packets = (
            _UNSEEN if runs is None else _seen(self.net, runs, kind, name, quantity)
            for runs in (self.trains, self.packets)
        )
        return trains, packets


def _seen(net: Network, runs: PacketRuns, kind: str, name: str, quantity: str) -> _Seen:
    metric = in_packets(net, kind, name, quantity)
    parts = (runs.mean[kind].get(name, {}), runs.ci95[kind].get(name, {}))
    mean, half = (None if metric is None else plain(part.get(metric)) for part in parts)
    return mean, half


def _number(value: Any) -> float | None:
    """A plain number, None if an engine has none."""
    return float(value) if np.isfinite(value) else None


def _over(values: Sequence[float]) -> _Seen:
    seen = np.asarray(values, float)
    return _number(seen.mean()), _number(half_width(seen))


def _signal_shares(net: Network, eq: Equilibrium, k: int) -> tuple[float, float]:
    """Shares of the packets sent to link k that it marks and drops at equilibrium."""
    signal, sent = eq.op.signals[k], float(net.links[k].cross)
    marked, dropped = 0.0, sent * float(signal.drop)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if k in flows.route and k not in flows.passes:
            received = link_signal(net, flows, eq.op.signals, k)
            load = float(np.sum(np.asarray(flows.n) * eq.flows[name].rate))
            sent += load
            marked += load * float(received.either - received.drop)
            dropped += load * float(received.drop)
    return (marked / sent, dropped / sent) if sent > 0 else (math.nan, math.nan)


def _at_equilibrium(net: Network, eq: Equilibrium, k: int) -> dict[str, float]:
    """Quantities of link k at an equilibrium."""
    link, (marked, dropped) = eq.links[net.link_names[k]], _signal_shares(net, eq, k)
    return {
        "utilization": link.utilization, "queue": link.queue,
        "queueing_delay": link.queueing_delay, "mark_fraction": marked, "drop_fraction": dropped,
    }  # fmt: skip


def _mean(values: Any, late: Any, weights: Any = None) -> float | None:
    """Mean after the warm-up (`late`), weighted by `weights`; None if all weights are 0."""
    if weights is None:
        return _number(values[late].mean())
    total = weights[late].sum()
    return _number(np.sum(values[late] * weights[late]) / total) if total > 0 else None


_OF_LINKS = {
    "utilization": ("1", None), "queue": ("packet", None), "queueing_delay": ("s", "offered"),
    "mark_fraction": ("1", "offered"), "drop_fraction": ("1", "offered"),
}  # fmt: skip
"""Quantities of a link, their units, and the weights of their means over a trajectory."""


def compared(net: Network) -> list[str]:
    """Names of the quantities that `compare` sets side by side."""
    names = net.by_group.link_names
    links = (f"links.{n}.{q}" for n in names for q in (*_OF_LINKS, "queue_std", "period"))
    groups = zip(net.flow_names, net.flows, strict=True)
    several = ((name, len(flows.route) > 1) for name, flows in groups)
    flows = (
        f"flows.{name}.{quantity}" for name, more in several
        for quantity in ("goodput", *["queueing_delay"] * more)
    )  # fmt: skip
    return [*links, *flows]


def _link_rows(sides: _Sides) -> list[Row]:
    rows, fluid = [], sides.fluid
    for k, name in enumerate(sides.net.link_names):
        run = None if fluid is None else fluid.links[name]
        noise = sides.noise.links[name]
        both = [_at_equilibrium(sides.net, own, k) for own in (sides.eq, sides.noise.equilibrium)]
        for quantity in ("queue", "queueing_delay"):
            varying = getattr(noise, quantity).mean  # with bunches, if the queue is empty
            if math.isfinite(varying):
                both[1][quantity] = varying
        for quantity, (unit, weights) in _OF_LINKS.items():
            moving = None
            if run is not None:
                weighted = weights and getattr(run, weights)
                moving = _mean(getattr(run, quantity), sides.late, weighted)
            mean, population = (_number(own[quantity]) for own in both)
            seen = sides.seen("links", name, quantity)
            label = f"links.{name}.{quantity}"
            rows.append(sides.row(label, unit, mean, population, moving, *seen))
        rows += _oscillation_rows(sides, name)
    return rows


def _oscillation_rows(sides: _Sides, name: str) -> list[Row]:
    """Standard deviation and period of a queue.

    Queues that vary by less than a packet have a rhythm of packets, which is no oscillation.
    """
    moved, period = None, None
    if sides.fluid is not None:
        queue = sides.fluid.links[name].queue[sides.late]
        moved = _number(queue.std())
        if sides.fine and moved and moved > 1:
            period = repeating_period(sides.fluid.time[sides.late], queue)
    seen = [
        (_UNSEEN, _UNSEEN) if runs is None else _oscillation(runs, name, sides.fine)
        for runs in (sides.trains, sides.packets)
    ]
    spreads, periods = zip(*seen, strict=True)
    noise = _number(sides.noise.links[name].queue.std)
    return [
        sides.row(f"links.{name}.queue_std", "packet", None, noise, moved, *spreads),
        sides.row(f"links.{name}.period", "s", None, None, period, *periods),
    ]


def _oscillation(runs: PacketRuns, name: str, fine: bool) -> tuple[_Seen, _Seen]:
    """Standard deviation and period of a queue in runs; a period needs half of them."""
    spread = [math.sqrt(max(run["links"][name]["number_in_system_var"], 0.0)) for run in runs.runs]
    seen: list[float] = []
    if fine and runs.series is not None and np.mean(spread) > 1:
        series = runs.series["link_number_in_system"].sel(link=name)
        times = series["time"].to_numpy()
        after = times >= runs.warmup
        periods = (repeating_period(times[after], run[after]) for run in series.to_numpy())
        seen = [value for value in periods if value is not None]
    return _over(spread), _over(seen) if 2 * len(seen) > len(runs.runs) else _UNSEEN


def _over_route(net: Network, sides: _Sides, name: str, links: Mapping[str, Row]) -> list[Row]:
    """The queueing delay of a group over the links of its route, if these are several."""
    route = [net.link_names[k] for k in net.flows[net.flow_names.index(name)].route]
    if len(route) < 2:
        return []
    own = [links[f"links.{link}.queueing_delay"] for link in route]
    each = ([getattr(r, level) for r in own] for level in ("mean", "population", "fluid"))
    mean, population, fluid = (None if None in values else sum(values) for values in each)
    seen = sides.seen("flows", name, "queueing_delay")
    return [sides.row(f"flows.{name}.queueing_delay", "s", mean, population, fluid, *seen)]


def _flow_rows(net: Network, sides: _Sides, links: Mapping[str, Row]) -> list[Row]:
    rows, fluid = [], sides.fluid
    both = [throughputs(own) for own in (sides.eq, sides.noise.equilibrium)]
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        if name not in sides.eq.flows:  # files that come by themselves
            continue
        bits = 8.0 * float(net.links[flows.route[0]].packet_size)
        bits *= float(flows.traffic.sources())  # on/off flows for each source
        moving = None
        if fluid is not None:
            run = fluid.flows[name]
            arriving = (run.rate * (1 - run.loss_fraction))[sides.late]
            moving = _number(bits * np.average(arriving, axis=1, weights=run.n).mean())
        mean, population = (_number(bits * own[name]) for own in both)
        seen = sides.seen("flows", name, "goodput")
        label = f"flows.{name}.goodput"
        rows.append(sides.row(label, "bit/s", mean, population, moving, *seen))
        rows += _over_route(net, sides, name, links)
    return rows


class GainAndLoss(NamedTuple):
    """Throughput in a mix over that in a baseline: of the aggressive group, and of the other.

    From packet runs with several seeds: means of the ratios, and half widths of their 95%
    intervals, which are not numbers otherwise.
    """

    gain: float
    loss: float
    gain_ci95: float = math.nan
    loss_ci95: float = math.nan


def throughputs(eq: Equilibrium) -> dict[str, float]:
    """Mean rate of a flow that arrives, by group [packet/s]."""
    out = {}
    for k, (flows, (name, group)) in enumerate(zip(eq.net.flows, eq.flows.items(), strict=True)):
        lost = float(eq.received(k).drop)
        out[name] = float(np.average(group.rate, weights=np.asarray(flows.n, float))) * (1 - lost)
    return out


def _by_seed(result: Equilibrium | PacketRuns | Mapping[str, float]) -> dict[Any, Any]:
    """Throughputs by group, for each seed of packet runs; for None if there are no seeds."""
    if isinstance(result, Mapping):
        return {None: result}
    if isinstance(result, Equilibrium):
        return {None: throughputs(result)}
    rates = [{k: g["goodput"] for k, g in run["flows"].items()} for run in result.runs]
    return dict(zip(result.seeds, rates, strict=True))


def gain_and_loss(
    mix: Equilibrium | PacketRuns | Mapping[str, float],
    baseline: Equilibrium | PacketRuns | Mapping[str, float],
    *,
    aggressive: str,
    other: str,
) -> GainAndLoss:
    """Gain of an aggressive group over a baseline, and the share that the other group keeps.

    Qazi, Znati and Andrew (2010), section 5.2.

    Parameters
    ----------
    mix, baseline
        Equilibria, or packet runs of the same seeds, or throughputs by group in any unit.
    aggressive, other
        Names of the two groups, in both.

    Returns
    -------
    GainAndLoss
        `gain` and `loss`, ratios of throughputs, and the half widths of their 95 % intervals, NaN
        without runs of several seeds.

    Raises
    ------
    ValueError
        If a group is not in both, or has no throughput in the baseline, or no seed is in both.

    Examples
    --------
    >>> import fluidcc as fc
    >>> before, after = {"bmcc": 50.0, "sack": 50.0}, {"bmcc": 60.0, "sack": 45.0}
    >>> fc.gain_and_loss(after, before, aggressive="bmcc", other="sack")
    GainAndLoss(gain=1.2, loss=0.9, gain_ci95=nan, loss_ci95=nan)
    """
    mixed, alone = _by_seed(mix), _by_seed(baseline)
    if None in mixed:
        mixed = {seed: mixed[None] for seed in alone}
    if None in alone:
        alone = {seed: alone[None] for seed in mixed}
    common = [seed for seed in mixed if seed in alone]
    if not common:
        raise ValueError(f"expected runs of the same seeds, got {(*mixed,)} and {(*alone,)}")
    ratios = [
        [_ratio(mixed[seed], alone[seed], name) for name in (aggressive, other)] for seed in common
    ]
    if len(ratios) == 1:
        return GainAndLoss(*ratios[0])
    from fluidcc.packets.accounts import half_width

    rows = np.array(ratios)
    return GainAndLoss(*map(float, [*rows.mean(axis=0), *half_width(rows)]))


def _ratio(mixed: Mapping[str, float], alone: Mapping[str, float], name: str) -> float:
    """Throughput of a group in a mix over that in a baseline."""
    if name not in mixed or name not in alone:
        known = ", ".join(sorted(set(mixed) & set(alone))) or "none"
        raise ValueError(f"no group of flows {name!r} in both results; in both are: {known}")
    if not alone[name] > 0:
        raise ValueError(f"flows.{name} have no throughput in the baseline: {alone[name]!r}")
    return mixed[name] / alone[name]
