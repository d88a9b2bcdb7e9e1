"""Tables of derivatives, and of windows under random marks."""

import math
from collections.abc import Mapping
from typing import Any

from fluidcc.results.tables.blocks import (
    Block,
    Difference,
    Line,
    Number,
    Path,
    Quantity,
    number,
    quantity,
    table,
    verdict,
)


def gradient(result: Mapping[str, Any]) -> list[Block]:
    """A quantity and its derivatives."""
    told = f" ({result['message']})" if result["message"] else ""
    value = quantity(result["value"], result["unit"])
    head = verdict(result["status"] == "ok", f"{result['of']}: {value}, {result['status']}{told}")
    columns = ("towards smaller", "towards larger") if result["sides"] else ()
    out = table("Derivatives", "parameter", "derivative", *columns, "unit")
    for path, slope in result["derivatives"].items():
        sides = map(Number, result["sides"].get(path, (None,) * len(columns)))
        unit = f"({result['unit']}) / ({result['units'][path]})"
        out.add_row(Path(path), Number(slope), *sides, unit)
    return [head, out]


def sensitivity(result: Mapping[str, Any]) -> list[Block]:
    """Means over a trajectory and its end, with their derivatives."""
    good = result["status"] == "ok"
    head = verdict(good, f"Fluid run to {number(result['time'][-1])} s: {result['message']}")
    out: list[Block] = [head]
    for key, words in (
        ("means", f"Means from {number(result['after'])} s"),
        ("ends", "At the end"),
    ):
        found = table(words, "quantity", "value", *(f"by {path}" for path in result["slopes"]))
        for name, told in result[key].items():
            slopes = told["derivatives"].values()
            if told["value"] or any(slopes):
                value = Quantity(told["value"], told["unit"])
                found.add_row(name, value, *map(Number, slopes))
        out.append(found)
    return [*out, Line("Derivatives are per unit of each parameter, in packet, packet/s and s.")]


def windows(result: Mapping[str, Any]) -> list[Block]:
    """Moments of the stationary window of each group."""
    out = table(
        "Windows under independent marks", "group", "marks", ("mean over time", "packet"),
        ("over packets", "packet"), ("standard deviation", "packet"), ("fluid", "packet"),
        "fluid / mean - 1",
    )  # fmt: skip
    for name, found in result["groups"].items():
        deviation = math.sqrt(found["variance"])
        moments = (found["p"], found["time_mean"], found["mean"], deviation, found["fluid"])
        out.add_row(name, *map(Number, moments), Difference(found["bias"]))
    told = [f"flows.{n}: {f['message']}" for n, f in result["groups"].items() if f["message"]]
    lines = [Line(line) for line in (*told, result["message"]) if line]
    return [out, *lines] if result["groups"] else [verdict(None, result["message"])]


def window(result: Mapping[str, Any]) -> list[Block]:
    """Moments of one stationary window."""
    return windows({"groups": {"window": result}, "message": ""})
