"""The stability map that the page draws, over two of the numbers that have sliders."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.batch import StabilityMap, stability_map
from fluidcc.analysis.stability import stability
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.explore.controls import Control, numbers
from fluidcc.scenario.network import Network
from fluidcc.sweep.result import Sweep
from fluidcc.sweep.run import sweep

_GRID, _COARSE = 32, 16
_FEW_CLASSES = 4


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
        cells = _of_sweep(sweep(net, over, stability, progress=progress))
    else:
        cells = _of_map(stability_map(net, over, progress=progress))
    shape = (count, count)
    return {
        "x": _described(across, over[across.path]), "y": _described(up, over[up.path]),
        **{key: np.reshape([cell[key] for cell in cells], shape) for key in cells[0]},
    }  # fmt: skip


def _cell(
    status: str, message: str, stable: bool | None, unstable: int | None, root: complex | None
) -> dict[str, Any]:
    """One point; -1 and NaN for what is not known, a message only where there is no verdict."""
    known = stable is not None
    return {
        "status": status, "message": "" if known else message, "stable": int(stable) if known else
        -1, "unstable": -1 if unstable is None else unstable,
        "real": math.nan if root is None else root.real,
        "imag": math.nan if root is None else root.imag,
    }  # fmt: skip


def _of_map(found: StabilityMap) -> list[dict[str, Any]]:
    return [_cell(p.status, p.message, p.stable, p.unstable, p.rightmost) for p in found.points]


def _of_sweep(found: Sweep) -> list[dict[str, Any]]:
    return [
        _cell("failed", p.message, None, None, None) if p.result is None else
        _cell(p.status, p.why, p.result.stable, p.result.unstable, p.result.rightmost)
        for p in found.points
    ]  # fmt: skip


def _described(control: Control, values: np.ndarray) -> dict[str, Any]:
    assert control.span is not None
    return {
        "path": control.path, "name": control.name, "unit": control.unit, "log": control.span.log,
        "values": values,
    }  # fmt: skip
