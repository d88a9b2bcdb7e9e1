"""Tables of the rest, its stability, and where that changes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc.results.tables.blocks import (
    DASH,
    Block,
    Line,
    Number,
    Table,
    number,
    parameter,
    span,
    table,
    verdict,
)

_MANY = 6  # round trips of a group up to which each has a line of its own
_ROOTS = 8  # that are shown


def equilibrium(result: Mapping[str, Any]) -> list[Block]:
    """Links and groups of flows at rest."""
    status, message = result["status"], result["message"]
    settled = {"interior": True, "empty": True, "none": False}.get(status)
    head = verdict(settled, f"Equilibrium: {status}" + (f" ({message})" if message else ""))
    if "links" not in result:
        return [head, *_states(result)]
    links = table(
        "Links", "link", ("queue", "packet"), ("average", "packet"), "signal", "utilization"
    )
    for name, link in result["links"].items():
        keys = ("queue", "average", "signal", "utilization")
        links.add_row(name, *(Number(link[k]) for k in keys))
    flows = table(
        "Flows", "group", "round trips", ("window", "packet"), ("rtt", "ms"), ("rate", "packet/s"),
        "signal",
    )  # fmt: skip
    for name, group in result["flows"].items():
        _flow_lines(flows, name, group)
    return [head, links, flows]


def _flow_lines(out: Table, name: str, group: Mapping[str, Any]) -> None:
    keys = (("window", 1.0), ("rtt", 1e-3), ("rate", 1.0), ("signal", 1.0))
    size = len(group["window"])
    if any(v is None for v in group["window"]):
        out.add_row(name, str(size), *(DASH for _ in keys))
    elif size > _MANY:
        out.add_row(name, str(size), *(span(group[key], scale) for key, scale in keys))
    else:
        for k in range(size):
            line = (Number(group[key][k] / scale) for key, scale in keys)
            out.add_row(name, "1" if size == 1 else f"{k + 1} of {size}", *line)


def _states(result: Mapping[str, Any]) -> list[Block]:
    """State and lags of a delay equation at rest."""
    states, lags = table("States", "state", "at rest"), table("Lags", "lag", ("value", "s"))
    for name, value in _named("y", result["y"]):
        states.add_row(name, Number(value, 8))
    for k, lag in enumerate(result["lags"]):
        lags.add_row(str(k), Number(lag, 8))
    return [states, lags]


def _named(name: str, value: Any) -> list[tuple[str, Any]]:
    """The numbers of a state with the names of their places."""
    if isinstance(value, Mapping):
        return [pair for key, own in value.items() for pair in _named(f"{name}.{key}", own)]
    if isinstance(value, list):
        return [pair for k, own in enumerate(value) for pair in _named(f"{name}[{k}]", own)]
    return [(name, value)]


def stability(result: Mapping[str, Any]) -> list[Block]:
    """The verdict, margins and rightmost roots."""
    count, rest = result["unstable"], equilibrium(result["equilibrium"])
    if count is None:
        told = result["equilibrium"]["message"]  # is in its own line already
        why = result["message"].removeprefix(told).removeprefix("; ")
        head = verdict(None, f"Stability: unknown ({result['status']})")
        return [*rest, head, *([Line(why, "bold")] if why else [])]
    known = f"certified by the argument principle in {result['proof']}"
    proof = known if result["certified"] else "not certified"
    unstable = f"unstable, {count} roots in the right half plane"
    text = {True: "stable", False: unstable, None: "no verdict"}[result["stable"]]
    verdicts = [verdict(result["stable"], f"Stability: {text} ({proof})")]
    verdicts += [Line(result["message"], "bold")] if result["message"] else []
    margins = table("Margins", "margin", "value", ("at", "rad/s"))
    crossover = Number(result["gain_crossover"])
    margins.add_row("gain", Number(result["gain_margin"]), Number(result["phase_crossover"]))
    margins.add_row("phase [deg]", Number(result["phase_margin"]), crossover)
    margins.add_row("delay [s]", Number(result["delay_margin"]), crossover)
    roots = table("Rightmost roots", ("real", "1/s"), ("imaginary", "rad/s"), ("period", "s"))
    for real, imaginary in (result["roots"] or [])[:_ROOTS]:
        period = 2 * math.pi / abs(imaginary) if imaginary else None
        roots.add_row(Number(real, 8), Number(imaginary, 8), Number(period))
    return [*rest, *verdicts, margins, roots]


def crossings(result: Mapping[str, Any], path: str, unit: str) -> list[Block]:
    """Every change of stability along one parameter."""
    stable, gaps = result["stable_at_low"], result["gaps"]
    known = {True: "stable", False: "unstable", None: "no verdict"}[stable]
    proof = "certified" if result["certified"] else "not certified: crossings may be missing"
    head = verdict(stable if result["certified"] else None, f"At the low end: {known} ({proof})")
    found = table(
        "Changes of stability", parameter(path, unit), ("frequency", "rad/s"), ("period", "s"),
        "becomes", "Hopf point",
    )  # fmt: skip
    for crossing in result["crossings"]:
        frequency = crossing["frequency"]
        period = 2 * math.pi / frequency if frequency else None
        line = (Number(crossing["value"], 10), Number(frequency, 8), Number(period))
        found.add_row(*line, crossing["becomes"], crossing["criticality"] or DASH)
    out: list[Block] = [head]
    if result["crossings"]:
        out.append(found)
    elif not gaps and result["certified"]:
        out.append(Line("No change of stability in this range."))
    else:
        where = "in the rest of the range" if gaps else "by a search that is not certified"
        out.append(verdict(None, f"Changes of stability: none found {where}."))
    if gaps:
        start = f"{found.columns[0].heading} from"
        parts = table("Parts without a verdict", start, "to", "equilibrium")
        for gap in gaps:
            parts.add_row(Number(gap["low"], 6), Number(gap["high"], 6), gap["status"])
        out.append(parts)
    return out


def boundary(result: Mapping[str, Any], paths: Sequence[str], units: Sequence[str]) -> list[Block]:
    """Curves on which stability changes: their ends, frequencies and how many roots cross."""
    proof = "certified" if result["certified"] else "not certified"
    good = None if not result["certified"] else result["status"] == "ok"
    out: list[Block] = [verdict(good, f"Boundary: {len(result['curves'])} curves ({proof})")]
    out += [Line(result["message"], "bold")] if result["message"] else []
    found = table(
        "Curves on which stability changes", "kind", "points", *map(parameter, paths, units),
        ("frequency", "rad/s"), "unstable roots", "ends",
    )  # fmt: skip
    for curve in result["curves"]:
        known = [f for f in curve["frequency"] if f is not None]
        found.add_row(
            curve["kind"], str(len(curve["x"])), span(curve["x"]), span(curve["y"]),
            span(known) if known else number(None), f"{curve['below']} | {curve['above']}",
            "closed" if curve["closed"] else ", ".join(curve["ends"]),
        )  # fmt: skip
    return [*out, found] if result["curves"] else out
