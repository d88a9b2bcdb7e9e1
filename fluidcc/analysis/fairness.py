"""How much one group of flows gains at the cost of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.fluid.rates import heard


class GainAndLoss(NamedTuple):
    """Throughput in a mix over that in a baseline: of the aggressive group, and of the other."""

    gain: float
    loss: float


def throughputs(eq: Equilibrium) -> dict[str, float]:
    """Mean rate of a flow that arrives, by group [packet/s]."""
    out = {}
    for flows, (name, group) in zip(eq.net.flows, eq.flows.items(), strict=True):
        lost = float(heard(flows, tuple(eq.rest.signals[k] for k in flows.route)).drop)
        out[name] = float(np.average(group.rate, weights=np.asarray(flows.n, float))) * (1 - lost)
    return out


def gain_and_loss(
    mix: Equilibrium | Mapping[str, float],
    baseline: Equilibrium | Mapping[str, float],
    *,
    aggressive: str,
    other: str,
) -> GainAndLoss:
    """What an aggressive group gains over a baseline, and what it leaves the other group.

    Qazi, Znati and Andrew (2010), section 5.2.

    Parameters
    ----------
    mix, baseline
        Equilibria, or throughputs by group in any unit, as measured in runs.
    aggressive, other
        Names of the two groups, in both.

    Raises
    ------
    ValueError
        If a group is not in both, or has no throughput in the baseline.
    """
    mixed, alone = (throughputs(r) if isinstance(r, Equilibrium) else r for r in (mix, baseline))
    ratios = []
    for name in (aggressive, other):
        if name not in mixed or name not in alone:
            known = ", ".join(sorted(set(mixed) & set(alone))) or "none"
            raise ValueError(f"no group of flows {name!r} in both results; in both are: {known}")
        if not alone[name] > 0:
            raise ValueError(f"flows.{name} have no throughput in the baseline: {alone[name]!r}")
        ratios.append(mixed[name] / alone[name])
    return GainAndLoss(*ratios)
