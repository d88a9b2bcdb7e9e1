"""How much one group of flows gains at the cost of another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.model.rates import received

if TYPE_CHECKING:
    from fluidcc.packets.accounts.results import PacketRuns


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
    for flows, (name, group) in zip(eq.net.flows, eq.flows.items(), strict=True):
        lost = float(received(flows, tuple(eq.op.signals[k] for k in flows.route)).drop)
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
    from fluidcc.packets.accounts.results import half_width

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
