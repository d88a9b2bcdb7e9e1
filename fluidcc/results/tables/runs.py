"""Tables of trajectories and of packet runs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc.results.tables.blocks import (
    Block,
    Difference,
    Line,
    Number,
    Quantity,
    Table,
    number,
    span,
    table,
    verdict,
)
from fluidcc.results.tables.rest import equilibrium

_LISTS = ("goodput_flows",)  # metrics of single flows


def simulation(result: Mapping[str, Any]) -> list[Block]:
    """Means and extremes over a trajectory."""
    good = result["status"] == "ok"
    head = verdict(good, f"Fluid run to {number(result['time'][-1])} s: {result['message']}")
    out = table("Over the whole run", "quantity", "at the end", "mean", "least", "greatest")
    for name, link in result["links"].items():
        _series_line(out, f"{name}: queue [packet]", [link["queue"]])
        _series_line(out, f"{name}: signal", [link["signal"]])
    for name, group in result["flows"].items():
        _series_line(out, f"{name}: window [packet]", group["window"])
    return [head, out]


def _series_line(out: Table, name: str, series: Sequence[Sequence[float]]) -> None:
    values = [v for one in series for v in one if v is not None and math.isfinite(v)]
    ends = [one[-1] for one in series if one[-1] is not None]
    if not values or not ends:
        return
    mean = sum(values) / len(values)
    out.add_row(name, span(ends), *(Number(v) for v in (mean, min(values), max(values))))


def packets(result: Mapping[str, Any], warmup: float) -> list[Block]:
    """Means over seeds with 95 % intervals; `warmup` is where the statistics start [s]."""
    from fluidcc.packets.accounts.measure import FLOW_UNITS, LINK_UNITS

    head = f"{result['message']}, statistics from {number(warmup)} s"
    out: list[Block] = [Line(f"{head}: mean ± half width of the 95 % interval")]
    for kind, title, units in (("links", "Links", LINK_UNITS), ("flows", "Flows", FLOW_UNITS)):
        means, halves = result["mean"][kind], result["ci95"][kind]
        found = table(title, "metric", *means)
        for metric, unit in units.items():
            if metric in _LISTS:
                continue
            if any(metric in values for values in means.values()):
                pairs = ((means[name].get(metric), halves[name].get(metric)) for name in means)
                found.add_row(metric, *(Quantity(value, unit, half) for value, half in pairs))
        out.append(found)
    return out


def comparison(result: Mapping[str, Any]) -> list[Block]:
    """The fluid model beside the packets, and what the fluid model says of itself."""
    seeds = f"{len(result['packets']['runs'])} seeds"
    out = table(
        f"Fluid beside packets, {number(result['warmup'])} to {number(result['until'])} s, {seeds}",
        "quantity", "equilibrium", "fluid", "packets (95 %)", "fluid / packets - 1",
    )  # fmt: skip
    for row in result["rows"]:
        unit = row["unit"]
        out.add_row(
            row["name"],
            Quantity(row["equilibrium"], unit),
            Quantity(row["fluid"], unit),
            Quantity(row["packets"], unit, row["ci95"]),
            Difference(row["difference"]),
        )
    biases = (f"flows.{name}: {found['told']}" for name, found in result["windows"].items())
    return [equilibrium(result["equilibrium"])[0], *_fluid_lines(result), out, *map(Line, biases)]


def _fluid_lines(result: Mapping[str, Any]) -> list[Line]:
    """How the trajectory ended, unless there is nothing to say, and where the model fails."""
    lines = []
    if result["fluid_status"] not in (None, "ok") or "not to be trusted" in result["fluid_message"]:
        lines.append(verdict(False, f"Fluid run: {result['fluid_message']}"))
    if result["message"]:
        lines.append(verdict(None, result["message"]))
    if result["outside"]:
        lines.append(verdict(None, "Outside of what the fluid model holds for:"))
        lines += [Line(f"  {reason}") for reason in result["outside"]]
    return lines
