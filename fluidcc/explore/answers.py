"""What the page shows, as plain numbers: equilibrium, roots, margins and Nyquist curves, runs and
maps; and what each costs, reckoned before it begins.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from fluidcc.analysis.batch import stability_map
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.margins import Margins, loop_curves
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.stability import Stability, stability
from fluidcc.dde.status import Status
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.explore.controls import Control, numbers
from fluidcc.model.fluid import as_fluid
from fluidcc.model.network_mesh import periods, uniform_mesh
from fluidcc.model.simulate import simulate
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Network
from fluidcc.sweep.run import sweep

_DRAWN = 800
"""Most points of a Nyquist curve that are drawn."""


_SAMPLES = 600
_GRID, _COARSE = 32, 16
_FEW_CLASSES = 4
_AT_ONCE = 200
"""Links and distinct round trips of what is shown at once: some seconds, and 1 GB."""

_IN_A_MAP = 60
"""Links and distinct round trips of a map: some minutes for its points."""

_STEPS = 3e7
"""Steps of a trajectory, times links and distinct round trips: some minutes."""

_EVENTS = 3e8
"""Packets at links, and ticks of laws, of a packet run: some minutes."""


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


def duration(net: Network) -> float:
    """How long a run is unless told [s]: some 300 of the longest round trips, as 1, 2 or 5."""
    wanted = 300 * max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
    if wanted <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(wanted))
    return min((k * unit for k in (1, 2, 5, 10)), key=lambda t: abs(math.log(t / wanted)))


def trajectory(net: Network, until: float) -> dict[str, Any]:
    """A fluid run: queues, windows and marks over time; None where a run did not get to.

    Raises ValueError where there is none.
    """
    run = simulate(net, until=until, points=np.linspace(0.0, until, _SAMPLES + 1))
    links = {
        name: {"queue": link.queue, "utilization": link.utilization, "mark": link.mark_probability}
        for name, link in run.links.items()
    }
    groups = {
        name: {"window": mean_over_flows(own.n, own.window)} for name, own in run.flows.items()
    }
    message = run.message.removeprefix(Status.ok.advice).removeprefix("; ")
    return {"time": run.time, "links": links, "flows": groups, "message": message,
            "until": until}  # fmt: skip


def packets(
    net: Network, until: float, seed: int, progress: Callable[[float], None]
) -> dict[str, Any]:
    """One packet run with a seed: queues with the packet in service, and mean windows.

    Raises PacketError where the network cannot be simulated.
    """
    run = simulate_packets(
        net, until=until, seeds=(seed,), threads=1, sample=until / _SAMPLES, progress=progress
    )
    series = run.series
    assert series is not None  # samples were asked for
    one = series.isel(seed=0)
    links = {
        str(n): {"queue": one["link_number_in_system"].sel(link=n).values}
        for n in one["link"].values
    }
    groups = {str(n): {"window": one["group_window"].sel(group=n).values}
              for n in one["group"].values}  # fmt: skip
    return {"time": one["time"].values, "links": links, "flows": groups, "seed": seed,
            "until": until}  # fmt: skip


def heavy(net: Network) -> bool:
    """Whether a map takes long: many distinct round trips take as many delays and states each.

    Then it is coarser and done point by point, which tells how far it is.
    """
    return sum(np.size(flows.rtt) for flows in net.flows) > _FEW_CLASSES


def axes(base: Network, net: Network) -> list[Control]:
    """The numbers that a map can run over; the first two are what it runs over unless told.

    These are the parameter of a queue law whose slider is the widest, as it is the least certain,
    and the number of flows, a round trip where that cannot move, or whatever comes first.
    """
    movable = [c for c in numbers(base, net) if c.span is not None]
    movable.sort(key=lambda c: (not _of_queue(c), -_decades(c) if _of_queue(c) else 0.0))
    loads = [c for c in movable if c.whole] or [c for c in movable if ".rtt" in c.path]
    second = loads[0] if loads else None
    first = [c for c in movable if c is not second][:1]
    chosen = [*first, *loads[:1]]
    return [*chosen, *(c for c in movable if c not in chosen)]


def _of_queue(control: Control) -> bool:
    return control.path.startswith("links.") and ".queue." in control.path


def _decades(control: Control) -> float:
    """How wide a slider is."""
    span = control.span
    return math.log10(span.high / span.low) if span is not None and span.log else 0.0


def _axis(choices: Sequence[Control], wanted: str | None, place: int, key: str) -> Control:
    if wanted is None and len(choices) > place:
        return choices[place]
    by_path = {c.path: c for c in choices}
    if wanted is None or wanted not in by_path:
        close = nearest(wanted or "", list(by_path))
        expected = "the path of a number with a slider"
        raise ScenarioError([Fault("", key, expected, repr(wanted), close)])
    return by_path[wanted]


def _values(control: Control, count: int) -> np.ndarray:
    """The values of an axis: evenly over the slider, in its scale."""
    span = control.span
    assert span is not None
    spread = np.geomspace if span.log else np.linspace
    return spread(span.low, span.high, count)


def stability_grid(
    base: Network, net: Network, x: str | None, y: str | None, progress: Callable[[float], None]
) -> dict[str, Any]:
    """The map over two parameters, `x` and `y` by path, or the first two of `axes`.

    Raises ScenarioError for parameters that no map can run over.
    """
    choices = axes(base, net)
    across, up = _axis(choices, x, 0, "map.x"), _axis(choices, y, 1, "map.y")
    if across.path == up.path:
        raise ScenarioError([Fault("", "map.y", "another parameter than map.x", up.path)])
    count = _COARSE if heavy(net) else _GRID
    over = {up.path: _values(up, count), across.path: _values(across, count)}
    if heavy(net):
        cells = [_cell(p, p.result) for p in sweep(net, over, stability, progress=progress).points]
    else:
        cells = [_cell(p, p) for p in stability_map(net, over, progress=progress).points]
    shape = (count, count)
    return {
        "x": _described(across, over[across.path]), "y": _described(up, over[up.path]),
        **{key: np.reshape([cell[key] for cell in cells], shape) for key in cells[0]},
    }  # fmt: skip


def _cell(point: Any, found: Any) -> dict[str, Any]:
    """One point; -1 and NaN for what is not known, a message only where there is undetermined."""
    stable, root = getattr(found, "stable", None), getattr(found, "rightmost", None)
    unstable = getattr(found, "unstable", None)
    return {
        "status": point.status,
        "message": "" if stable is not None else getattr(point, "why", point.message),
        "stable": -1 if stable is None else int(stable),
        "unstable": -1 if unstable is None else unstable,
        "real": math.nan if root is None else root.real,
        "imag": math.nan if root is None else root.imag,
    }


def _described(control: Control, values: np.ndarray) -> dict[str, Any]:
    assert control.span is not None
    return {
        "path": control.path, "name": control.name, "unit": control.unit, "log": control.span.log,
        "values": values,
    }  # fmt: skip


def check_present(net: Network) -> None:
    """Raise ScenarioError for a network whose equilibrium and roots take too long."""
    _require(_size(net), _AT_ONCE, "scenario", "links and distinct round trips to show at once")


def check_map(net: Network) -> None:
    """Raise ScenarioError for a network whose stability map takes too long."""
    _require(_size(net), _IN_A_MAP, "scenario", "links and distinct round trips to map")


def check_trajectory(net: Network, until: float) -> None:
    """Raise ScenarioError for a fluid run that takes too long."""
    step = float(uniform_mesh(net).step)
    size = _size(net)
    what = f"steps of {step:.3g} s, times {size} links and distinct round trips"
    _require(until / step * size, _STEPS, "until", what)


def check_packets(net: Network, until: float) -> None:
    """Raise ScenarioError for a packet run that takes too long."""
    rates = [float(link.capacity) + float(link.cross) for link in net.links]
    rates += [1.0 / period for period in periods(net)]
    _require(until * sum(rates), _EVENTS, "until", "packets at links and ticks of laws")


def structure(net: Network) -> tuple[object, ...]:
    """What programs are compiled for: all of a network but its numbers."""
    leaves, kind = jax.tree.flatten(net)
    return kind, *map(np.shape, leaves)


def _size(net: Network) -> int:
    return len(net.links) + sum(np.size(flows.rtt) for flows in net.flows)


def _require(cost: float, most: float, key: str, what: str) -> None:
    if not cost <= most:
        raise ScenarioError([Fault("", key, f"at most {most:g} {what}", f"{cost:.4g}")])
