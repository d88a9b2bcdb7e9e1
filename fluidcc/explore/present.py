"""What the page shows at once: equilibrium, roots, margins and Nyquist curves, as plain numbers."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.margins import Margins
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.nyquist import loop_curves
from fluidcc.analysis.stability import Stability, stability
from fluidcc.explore.controls import numbers
from fluidcc.model.fluid import as_fluid
from fluidcc.scenario.network import Network

_DRAWN = 800
"""Most points of a Nyquist curve that are drawn."""


def present(net: Network) -> dict[str, Any]:
    """Equilibrium, roots, margins and Nyquist curves of a network.

    Where one of them has no answer, its `message` says why.
    """
    try:
        found = stability(net)
    except (ValueError, ArithmeticError) as fault:
        rest, out, loops, margins = _rest(net), {"message": str(fault)}, [], None
    else:
        out, loops, margins = found.to_dict(), _loops(net, found), found.margins
        rest = out.pop("equilibrium")
    return {"equilibrium": rest, "window_mean": _windows(net, rest), "stability": out,
            "loops": loops, "crossovers": _crossovers(margins)}  # fmt: skip


def _rest(net: Network) -> dict[str, Any]:
    """The equilibrium alone."""
    try:
        return equilibrium(net).to_dict()
    except (ValueError, ArithmeticError) as fault:
        return {"status": "failed", "message": str(fault), "links": {}, "flows": {}}


def _windows(net: Network, rest: dict[str, Any]) -> dict[str, Any]:
    """The mean window of each group at rest [packet]."""
    return {
        name: mean_over_flows(flows.n, np.array(rest["flows"][name]["window"], float))
        for name, flows in zip(net.flow_names, net.flows, strict=True)
        if name in rest["flows"]
    }


def _loops(net: Network, found: Stability) -> list[dict[str, Any]]:
    if found.linear is None or found.margins is None:
        return []
    names, curves = as_fluid(net).link_names, []
    for curve in loop_curves(found.linear):
        kept = np.unique(np.linspace(0, len(curve.frequency) - 1, _DRAWN).astype(int))
        response = curve.response[kept]
        curves.append(
            {
                "link": names[curve.link],
                "frequency": curve.frequency[kept],
                "real": np.real(response),
                "imag": np.imag(response),
            }
        )
    return curves


def _crossovers(margins: Margins | None) -> dict[str, Any]:
    """Where the margins are read: on the unit circle, and on the negative real axis."""
    if margins is None:
        return {"gain": [], "phase": []}
    angles = [(c, math.radians(c.phase_margin - 180)) for c in margins.gain_crossovers]
    return {
        "gain": [
            {"real": math.cos(a), "imag": math.sin(a), "frequency": c.frequency,
             "phase_margin": c.phase_margin, "delay_margin": c.delay_margin}
            for c, a in angles
        ],
        "phase": [
            {"real": -1 / c.gain_margin, "frequency": c.frequency, "gain_margin": c.gain_margin}
            for c in margins.phase_crossovers
        ],
    }  # fmt: skip


def numbers_at(net: Network, changed: Mapping[str, str]) -> dict[str, float]:
    """What the changed numbers are in SI with packets, by path."""
    return {c.path: c.value for c in numbers(net, net)
            if c.path in changed and isinstance(c.value, float | int)}  # fmt: skip
