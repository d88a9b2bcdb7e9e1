"""The page's results as plain numbers: equilibrium, roots, margins and Nyquist curves, runs and
maps; and checks of their cost before they begin.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.fluctuations import fluctuations
from fluidcc.analysis.margins import Margins
from fluidcc.analysis.measures import mean_over_flows
from fluidcc.analysis.stability import Stability, stability
from fluidcc.analysis.stability_map import stability_map
from fluidcc.arrays import jax
from fluidcc.dde.integrate import Status
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.explore.controls import Control, numbers
from fluidcc.model.fluid import as_fluid
from fluidcc.model.network_mesh import periods, uniform_mesh
from fluidcc.model.simulate import simulate
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Network
from fluidcc.sweep.run import sweep

_CURVE_POINTS = 800
"""Most points of a Nyquist curve on the page."""


_SAMPLES = 600
_GRID, _COARSE = 32, 16
_FEW_CLASSES = 4
_MOST_SHOWN = 200
"""Most links and distinct round trips for equilibrium and roots: some seconds, and 1 GB."""

_MOST_MAP = 60
"""Most links and distinct round trips of a map: some minutes for its points."""

_MOST_STEPS = 3e7
"""Most steps of a trajectory, times links and distinct round trips: some minutes."""

_MOST_EVENTS = 3e8
"""Most packets at links plus ticks of laws in a packet run: some minutes."""


def present(net: Network, changed: Mapping[str, str], _: object = None) -> dict[str, Any]:
    """Equilibrium, roots, margins and Nyquist curves of a network, and its changed numbers.

    If one of them has no answer, its `message` has the reason.
    """
    try:
        verdict = stability(net)
    except (ValueError, ArithmeticError) as fault:
        point, out, loops, margins = _equilibrium_alone(net), {"message": str(fault)}, [], None
    else:
        out, loops, margins = verdict.to_dict(), _loops(net, verdict), verdict.margins
        point = out.pop("equilibrium")
    return {"equilibrium": point, "window_mean": _mean_windows(net, point), "stability": out,
            "loops": loops, "crossovers": _crossovers(margins),
            "numbers": changed_numbers(net, changed)}  # fmt: skip


def _equilibrium_alone(net: Network) -> dict[str, Any]:
    """The equilibrium without stability; status `failed` if the solver fails."""
    try:
        return equilibrium(net).to_dict()
    except (ValueError, ArithmeticError) as fault:
        return {"status": "failed", "message": str(fault), "links": {}, "flows": {}}


def _mean_windows(net: Network, point: dict[str, Any]) -> dict[str, Any]:
    """The mean window of each group at equilibrium [packet]."""
    return {
        name: mean_over_flows(flows.n, np.array(point["flows"][name]["window"], float))
        for name, flows in zip(net.flow_names, net.flows, strict=True)
        if name in point["flows"]
    }


def _loops(net: Network, verdict: Stability) -> list[dict[str, Any]]:
    """The Nyquist curve of each link's loop gain, thinned out."""
    names, curves = as_fluid(net).link_names, []
    for curve in verdict.curves():
        indices = np.unique(np.linspace(0, len(curve.frequency) - 1, _CURVE_POINTS).astype(int))
        response = curve.response[indices]
        curves.append(
            {
                "link": names[curve.link],
                "frequency": curve.frequency[indices],
                "real": np.real(response),
                "imag": np.imag(response),
            }
        )
    return curves


def _crossovers(margins: Margins | None) -> dict[str, Any]:
    """Crossovers as points of the Nyquist plane: on the unit circle and the negative real axis."""
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


def changed_numbers(net: Network, changed: Mapping[str, str]) -> dict[str, float]:
    """Values of the changed numbers by path, in SI units with packets."""
    return {c.path: c.value for c in numbers(net, net)
            if c.path in changed and isinstance(c.value, float | int)}  # fmt: skip


def default_duration(net: Network) -> float:
    """Default length of a run [s]: some 300 of the longest round trips, rounded to 1, 2 or 5."""
    wanted = 300 * max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
    if wanted <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(wanted))
    return min((k * unit for k in (1, 2, 5, 10)), key=lambda t: abs(math.log(t / wanted)))


def trajectory(net: Network, until: float, _: object = None) -> dict[str, Any]:
    """A fluid run: queues, windows and marks over time; NaN after a run that ended early.

    Raises ValueError if the run cannot begin.
    """
    run = simulate(net, until=until, points=np.linspace(0.0, until, _SAMPLES + 1))
    links = {
        name: {"queue": link.queue, "utilization": link.utilization, "mark": link.mark_probability}
        for name, link in run.links.items()
    }
    groups = {
        name: {"window": mean_over_flows(group.n, group.window)}
        for name, group in run.flows.items()
    }
    message = run.message.removeprefix(Status.ok.advice).removeprefix("; ")
    return {"time": run.time, "links": links, "flows": groups, "message": message,
            "until": until}  # fmt: skip


def packets(
    net: Network, until: float, seed: int, progress: Callable[[float], None]
) -> dict[str, Any]:
    """One packet run with a seed: queues with the packet in service, and mean windows; and the
    fluctuations of queues that the population predicts.

    Raises PacketError if the network cannot be simulated.
    """
    run = simulate_packets(
        net, until=until, seeds=(seed,), threads=1, sample=until / _SAMPLES, progress=progress
    )
    series = run.series
    assert series is not None  # samples were requested
    first = series.isel(seed=0)
    links = {
        str(n): {"queue": first["link_number_in_system"].sel(link=n).values}
        for n in first["link"].values
    }
    groups = {str(n): {"window": first["group_window"].sel(group=n).values}
              for n in first["group"].values}  # fmt: skip
    return {"time": first["time"].values, "links": links, "flows": groups, "seed": seed,
            "until": until, "noise": _noise(net)}  # fmt: skip


def _noise(net: Network) -> dict[str, Any]:
    """Mean and standard deviation of each queue; if there are none, `message` has the reason."""
    try:
        found = fluctuations(net)
    except (ValueError, ArithmeticError) as fault:
        return {"links": {}, "message": str(fault)}
    if found.status != "regular":
        return {"links": {}, "message": f"no fluctuations of the population: {found.message}"}
    queues = {name: link.queue for name, link in found.links.items()}
    links = {name: {"mean": q.mean, "std": q.std} for name, q in queues.items()}
    return {"links": links, "message": ""}


def is_heavy(net: Network) -> bool:
    """Whether a map takes long: each distinct round trip adds delays and states.

    A heavy map is coarser and computed point by point, with progress.
    """
    return sum(np.size(flows.rtt) for flows in net.flows) > _FEW_CLASSES


def map_axes(base: Network, net: Network) -> list[Control]:
    """The numbers that a map can run over; the first two are its default axes.

    The first is the parameter of a queue law with the widest slider, as it is the least certain;
    the second is the number of flows, or a round trip if that is fixed, or the first number left.
    """
    movable = [c for c in numbers(base, net) if c.span is not None]
    movable.sort(key=lambda c: -_decades(c))
    loads = [c for c in movable if c.whole] or [c for c in movable if ".rtt" in c.path]
    second = loads[0] if loads else None
    first = [c for c in movable if c is not second][:1]
    chosen = [*first, *loads[:1]]
    return [*chosen, *(c for c in movable if c not in chosen)]


def _decades(control: Control) -> float:
    """Width of the slider of a queue law's parameter with a logarithmic scale, in decades; 0 for a
    linear one, -1 for other parameters.
    """
    span = control.span
    if span is None or not (control.path.startswith("links.") and ".queue." in control.path):
        return -1.0
    return math.log10(span.high / span.low) if span.log else 0.0


def _axis(choices: Sequence[Control], wanted: str | None, default: int, key: str) -> Control:
    """The number at the path `wanted`, or the one with the index `default`."""
    if wanted is None and len(choices) > default:
        return choices[default]
    by_path = {c.path: c for c in choices}
    if wanted is None or wanted not in by_path:
        close = nearest(wanted or "", list(by_path))
        expected = "the path of a number with a slider"
        raise ScenarioError([Fault("", key, expected, repr(wanted), close)])
    return by_path[wanted]


def stability_grid(
    base: Network, net: Network, x: str | None, y: str | None, progress: Callable[[float], None]
) -> dict[str, Any]:
    """The map over two parameters, `x` and `y` by path, or the first two of `map_axes`.

    Raises ScenarioError for parameters that no map can run over.
    """
    choices = map_axes(base, net)
    across, up = _axis(choices, x, 0, "map.x"), _axis(choices, y, 1, "map.y")
    if across.path == up.path:
        raise ScenarioError([Fault("", "map.y", "another parameter than map.x", up.path)])
    count = _COARSE if is_heavy(net) else _GRID
    spans = {c.path: c.span for c in (up, across) if c.span is not None}
    over = {
        path: (np.geomspace if span.log else np.linspace)(span.low, span.high, count)
        for path, span in spans.items()
    }
    if is_heavy(net):
        cells = [_cell(p, p.result) for p in sweep(net, over, stability, progress=progress).points]
    else:
        cells = [_cell(p, p) for p in stability_map(net, over, progress=progress).points]
    shape = (count, count)
    return {
        **{
            side: {
                "path": c.path, "name": c.name, "unit": c.unit, "log": spans[c.path].log,
                "values": over[c.path],
            }
            for side, c in (("x", across), ("y", up))
        },
        **{key: np.reshape([cell[key] for cell in cells], shape) for key in cells[0]},
    }  # fmt: skip


def _cell(point: Any, verdict: Any) -> dict[str, Any]:
    """One point; -1 and NaN for unknown values, a message only if stability is undetermined."""
    stable, root = getattr(verdict, "stable", None), getattr(verdict, "rightmost", None)
    unstable = getattr(verdict, "unstable", None)
    return {
        "status": point.status,
        "message": "" if stable is not None else getattr(point, "why", point.message),
        "stable": -1 if stable is None else int(stable),
        "unstable": -1 if unstable is None else unstable,
        "real": math.nan if root is None else root.real,
        "imag": math.nan if root is None else root.imag,
    }


def check_present(net: Network) -> None:
    """Raise ScenarioError for a network whose equilibrium and roots take too long."""
    _require(_size(net), _MOST_SHOWN, "scenario", "links and distinct round trips to show at once")


def check_map(net: Network) -> None:
    """Raise ScenarioError for a network whose stability map takes too long."""
    _require(_size(net), _MOST_MAP, "scenario", "links and distinct round trips to map")


def check_trajectory(net: Network, until: float) -> None:
    """Raise ScenarioError for a fluid run that takes too long."""
    step = float(uniform_mesh(net).step)
    size = _size(net)
    unit = f"steps of {step:.3g} s, times {size} links and distinct round trips"
    _require(until / step * size, _MOST_STEPS, "until", unit)


def check_packets(net: Network, until: float) -> None:
    """Raise ScenarioError for a packet run that takes too long."""
    rates = [float(link.capacity) + float(link.cross) for link in net.links]
    rates += [1.0 / period for period in periods(net)]
    _require(until * sum(rates), _MOST_EVENTS, "until", "packets at links and ticks of laws")


def structure(net: Network) -> tuple[object, ...]:
    """The part of a network that compiled programs depend on: everything but its numbers."""
    leaves, treedef = jax.tree.flatten(net)
    return treedef, *map(np.shape, leaves)


def _size(net: Network) -> int:
    return len(net.links) + sum(np.size(flows.rtt) for flows in net.flows)


def _require(cost: float, most: float, key: str, unit: str) -> None:
    if not cost <= most:
        raise ScenarioError([Fault("", key, f"at most {most:g} {unit}", f"{cost:.4g}")])
