"""What the page draws, as plain numbers: results of the library's own verbs, nothing else."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.batch import stability_map
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.nyquist import loop_curves
from fluidcc.analysis.stability import Stability, stability
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.explore.controls import Control, numbers
from fluidcc.fluid.simulate import simulate
from fluidcc.fluid.status import Status
from fluidcc.network import Network
from fluidcc.packets.run import simulate_packets

Progress = Callable[[float], None]

_GRID = 32
_SAMPLES = 600
_DRAWN = 1500
"""Most points of a Nyquist curve that are drawn."""


def present(net: Network) -> dict[str, Any]:
    """Equilibrium, roots, margins and Nyquist curves of a network.

    Where one of them has no answer, `message` under its name says why.
    """
    try:
        found = stability(net)
    except (ValueError, ArithmeticError) as fault:
        return {"equilibrium": _rest(net), "stability": {"message": str(fault)}, "loops": []}
    out = found.to_dict()
    rest = out.pop("equilibrium")
    loops, crossovers = _loops(net, found), _crossovers(found)
    return {"equilibrium": rest, "stability": out, "loops": loops, "crossovers": crossovers}


def _rest(net: Network) -> dict[str, Any]:
    """The equilibrium alone."""
    try:
        return equilibrium(net).to_dict()
    except (ValueError, ArithmeticError) as fault:
        return {"status": "failed", "message": str(fault), "links": {}, "flows": {}}


def _loops(net: Network, found: Stability) -> list[dict[str, Any]]:
    if found.linear is None or found.margins is None:
        return []
    curves = []
    for curve in loop_curves(found.linear):
        kept = np.unique(np.linspace(0, len(curve.frequency) - 1, _DRAWN).astype(int))
        response = curve.response[kept]
        curves.append(
            {
                "link": net.link_names[curve.link],
                "frequency": curve.frequency[kept],
                "real": response.real,
                "imag": response.imag,
            }
        )
    return curves


def _crossovers(found: Stability) -> dict[str, Any]:
    """Where the margins are read: on the unit circle, and on the negative real axis."""
    if found.margins is None:
        return {"gain": [], "phase": []}
    angles = [(c, math.radians(c.phase_margin - 180)) for c in found.margins.gain_crossovers]
    return {
        "gain": [
            {"real": math.cos(a), "imag": math.sin(a), "frequency": c.frequency,
             "phase_margin": c.phase_margin, "delay_margin": c.delay_margin}
            for c, a in angles
        ],
        "phase": [
            {"real": -1 / c.gain_margin, "frequency": c.frequency, "gain_margin": c.gain_margin}
            for c in found.margins.phase_crossovers
        ],
    }  # fmt: skip


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


def values(control: Control) -> np.ndarray:
    """The values of a map's axis: evenly over the slider, in its scale."""
    span = control.span
    assert span is not None
    spread = np.geomspace if span.log else np.linspace
    return spread(span.low, span.high, _GRID)


def stability_grid(
    base: Network, net: Network, x: str | None, y: str | None, progress: Progress
) -> dict[str, Any]:
    """The map over two parameters, `x` and `y` by path, or the first two of `axes`.

    Raises ScenarioError for parameters that no map can run over.
    """
    choices = axes(base, net)
    across, up = _axis(choices, x, 0, "map.x"), _axis(choices, y, 1, "map.y")
    if across.path == up.path:
        raise ScenarioError([Fault("", "map.y", "another parameter than map.x", up.path)])
    found = stability_map(
        net, {up.path: values(up), across.path: values(across)}, progress=progress
    )
    roots = found.grid("rightmost")
    texts = list(dict.fromkeys(p.message for p in found.points))
    places = {text: k for k, text in enumerate(texts)}
    return {
        "x": _described(across), "y": _described(up),
        "stable": found.grid("stable"), "unstable": found.grid("unstable"),
        "real": roots.real, "imag": roots.imag, "status": found.grid("status"),
        "messages": texts,
        "message": np.reshape([places[p.message] for p in found.points], found.shape),
        "certified": int(np.sum(found.grid("certified"))),
    }  # fmt: skip


def _described(control: Control) -> dict[str, Any]:
    assert control.span is not None
    return {
        "path": control.path, "name": control.name, "unit": control.unit, "log": control.span.log,
        "values": values(control),
    }  # fmt: skip


def duration(net: Network) -> float:
    """How long a run is unless told [s]: some 300 of the longest round trips, as 1, 2 or 5."""
    wanted = 300 * max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
    unit = 10.0 ** math.floor(math.log10(wanted))
    return min((k * unit for k in (1, 2, 5, 10)), key=lambda t: abs(math.log(t / wanted)))


def trajectory(net: Network, until: float) -> dict[str, Any]:
    """A fluid run: queues, windows and marks over time.

    Raises ValueError where there is none.
    """
    run = simulate(net, until=until, points=np.linspace(0.0, until, _SAMPLES + 1))
    links = {
        name: {"queue": link.queue, "utilization": link.utilization, "mark": link.signal}
        for name, link in run.links.items()
    }
    groups = {name: {"window": _mean(own.window, own.n)} for name, own in run.flows.items()}
    ended = "" if run.status is Status.ok else run.status.advice
    return {"time": run.time, "links": links, "flows": groups, "ended": ended,
            "message": run.message, "until": until}  # fmt: skip


def _mean(each: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Mean over the flows of a group, whose round trips differ."""
    return each @ (n / np.sum(n))


def packets(net: Network, until: float, seed: int, progress: Progress) -> dict[str, Any]:
    """One packet run with a seed: queues with the packet in service, and mean windows.

    Raises PacketError where the network cannot be simulated.
    """
    run = simulate_packets(
        net, until=until, seeds=(seed,), threads=1, sample=until / _SAMPLES, progress=progress
    )
    series = run.series
    assert series is not None  # samples were asked for
    one = series.isel(seed=0)
    links = {str(n): {"queue": one["link_system"].sel(link=n).values} for n in one["link"].values}
    groups = {str(n): {"window": one["group_window"].sel(group=n).values}
              for n in one["group"].values}  # fmt: skip
    return {"time": one["time"].values, "links": links, "flows": groups, "seed": seed,
            "until": until}  # fmt: skip


def numbers_at(net: Network, changed: Mapping[str, str]) -> dict[str, float]:
    """What the changed numbers are in SI with packets, by path."""
    return {c.path: c.value for c in numbers(net, net)
            if c.path in changed and isinstance(c.value, float | int)}  # fmt: skip
