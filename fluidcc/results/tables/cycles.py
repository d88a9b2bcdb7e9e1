"""Tables of limit cycles."""

import math
from collections.abc import Mapping
from typing import Any

from fluidcc.results.tables.blocks import (
    Block,
    Line,
    Number,
    Table,
    number,
    parameter,
    quantity,
    span,
    table,
    verdict,
)

_MULTIPLIERS = 8  # that are shown


def cycle(result: Mapping[str, Any]) -> list[Block]:
    """Period, extremes and Floquet multipliers of a limit cycle."""
    period, message = result["period"], result["message"]
    if period is None:
        return [verdict(None, message)]
    word = {True: "stable", False: "unstable", None: "stability not known"}[result["stable"]]
    head = f"Cycle: {result['status']}, {word}, period {quantity(period, 's')}"
    ends = _extremes(result)
    for k, pair in enumerate(result.get("states", ())):
        ends.add_row(f"state {k}", *map(Number, pair))
    out: list[Block] = [verdict(result["stable"], head), *([Line(message)] if message else [])]
    if result["floquet"]:
        found = table("Floquet multipliers", "real", "imaginary", "modulus")
        for real, imaginary in result["floquet"][:_MULTIPLIERS]:
            parts = (real, imaginary, math.hypot(real, imaginary))
            found.add_row(*(Number(part, 8) for part in parts))
        return [*out, ends, found]
    return [*out, ends]


def relay_cycle(result: Mapping[str, Any]) -> list[Block]:
    """Period and extremes of the switching cycle of a relay."""
    model = "exact" if result["exact"] else f"formula of {result['basis']}"
    out: list[Block] = [verdict(result["valid"], f"Relay cycle ({model})")]
    out += [Line(result["message"])] if result["message"] else []
    times = table("Times", "quantity", ("value", "s"))
    times.add_row("period", Number(result["period"]))
    times.add_row("delay of the signal", Number(result["delay"]))
    used = [
        Line(f"{name}: utilization {number(link['utilization'])}")
        for name, link in result["links"].items()
        if link["utilization"] is not None
    ]
    return [*out, times, _extremes(result), *used]


def _extremes(result: Mapping[str, Any]) -> Table:
    """Least and greatest queues and windows."""
    out = table("Over a cycle", "quantity", "least", "greatest")
    for name, link in result["links"].items():
        for key in ("queue", "average"):
            out.add_row(f"{name}: {key} [packet]", *map(Number, link[key]))
    for name, group in result["flows"].items():
        for k, pair in enumerate(group["window"]):
            place = "" if len(group["window"]) == 1 else f" ({k + 1} of {len(group['window'])})"
            out.add_row(f"{name}: window{place} [packet]", *map(Number, pair))
    return out


def cycles(result: Mapping[str, Any], path: str, unit: str) -> list[Block]:
    """Cycles along one parameter, a table for each Hopf point."""
    out: list[Block] = [verdict(None, result["message"])] if result["message"] else []
    for branch in result["branches"]:
        points = branch["points"]
        links = list(points[0]["links"]) if points else []
        frequency = quantity(branch["frequency"], "rad/s")
        found = table(
            f"From the Hopf point at {number(branch['hopf'], 8)}, {frequency}",
            parameter(path, unit), ("period", "s"),
            *((f"{name}: queue", "packet") for name in links),
            "largest multiplier", "", "found as",
        )  # fmt: skip
        for point in points:
            sizes = [math.hypot(*pair) for pair in point["floquet"][1:]]
            ranges = (span(point["links"][name]["queue"]) for name in links)
            word = {True: "stable", False: "unstable", None: ""}[point["stable"]]
            line = (Number(point["value"], 8), Number(point["period"], 8), *ranges)
            found.add_row(*line, Number(max(sizes, default=None)), word, point["status"])
        out.append(found)
        ends = [f"fold at {number(value, 8)}" for value in branch["folds"]]
        ends += [f"ends: {branch['message']}"] if branch["message"] else []
        out += [Line("; ".join(ends))] if ends else []
    return out
