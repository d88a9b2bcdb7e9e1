"""The few numbers of a result that stand for it in the table or the picture of a sweep."""

from collections.abc import Callable, Mapping
from typing import Any

from fluidcc.results.tables.blocks import Quantity

Result = Mapping[str, Any]
"""A result as its `to_dict` gives it."""


def _mean(values: Any) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def equilibrium(result: Result) -> dict[str, Quantity]:
    """Queue, signal and utilization of each link, mean window of each group."""
    out = {}
    for name, link in result["links"].items():
        out[f"{name}: queue"] = Quantity(link["queue"], "packet")
        out[f"{name}: signal"] = Quantity(link["signal"])
        out[f"{name}: utilization"] = Quantity(link["utilization"])
    for name, group in result["flows"].items():
        out[f"{name}: window"] = Quantity(_mean(group["window"]), "packet")
    return out


def stability(result: Result) -> dict[str, Quantity]:
    """Count of unstable roots, the rightmost root, and margins."""
    real, imaginary = result["rightmost"] or (None, None)
    return {
        "unstable roots": Quantity(result["unstable"]),
        "growth rate": Quantity(real, "1/s"),
        "frequency": Quantity(None if imaginary is None else abs(imaginary), "rad/s"),
        "gain margin": Quantity(result["gain_margin"]),
        "phase margin": Quantity(result["phase_margin"], "deg"),
        "delay margin": Quantity(result["delay_margin"], "s"),
    }


def stability_map(result: Result) -> dict[str, Quantity]:
    """Count of unstable roots and the rightmost root at one point."""
    real, imaginary = result["rightmost"] or (None, None)
    return {
        "unstable roots": Quantity(result["unstable"]),
        "growth rate": Quantity(real, "1/s"),
        "frequency": Quantity(None if imaginary is None else abs(imaginary), "rad/s"),
    }


def crossings(result: Result) -> dict[str, Quantity]:
    """How often stability changes, the first change, and how many parts have no verdict."""
    found = result["crossings"]
    first = found[0] if found else {"value": None, "frequency": None}
    return {
        "changes": Quantity(len(found)),
        "first at": Quantity(first["value"]),
        "frequency": Quantity(first["frequency"], "rad/s"),
        "parts without a verdict": Quantity(len(result["gaps"])),
    }


def cycle(result: Result) -> dict[str, Quantity]:
    """Period, size of the leading multiplier, and least and greatest queue of each link."""
    others = [abs(complex(*mu)) for mu in result["floquet"][1:]]
    out = {
        "period": Quantity(result["period"], "s"),
        "leading multiplier": Quantity(max(others, default=None)),
    }
    for name, link in result["links"].items():
        out[f"{name}: least queue"] = Quantity(link["queue"][0], "packet")
        out[f"{name}: greatest queue"] = Quantity(link["queue"][1], "packet")
    return out


def cycles(result: Result) -> dict[str, Quantity]:
    """How many branches and cycles there are, the first Hopf point and fold."""
    branches = result["branches"]
    folds = [value for branch in branches for value in branch["folds"]]
    return {
        "branches": Quantity(len(branches)),
        "cycles": Quantity(sum(len(branch["points"]) for branch in branches)),
        "first Hopf point": Quantity(branches[0]["hopf"] if branches else None),
        "first fold": Quantity(folds[0] if folds else None),
    }


def boundary(result: Result) -> dict[str, Quantity]:
    """How many curves there are, and the range of their frequencies."""
    found = [f for curve in result["curves"] for f in curve["frequency"] if f is not None]
    return {
        "curves": Quantity(len(result["curves"])),
        "least frequency": Quantity(min(found, default=None), "rad/s"),
        "greatest frequency": Quantity(max(found, default=None), "rad/s"),
    }


def gradient(result: Result) -> dict[str, Quantity]:
    """The quantity and its derivatives."""
    slopes = {f"by {path}": Quantity(slope) for path, slope in result["derivatives"].items()}
    return {result["of"]: Quantity(result["value"], result["unit"]), **slopes}


def sensitivity(result: Result) -> dict[str, Quantity]:
    """Mean queue of each link over the run, and its derivatives."""
    out = {}
    for name in result["links"]:
        told = result["means"][f"links.{name}.queue"]
        out[f"{name}: mean queue"] = Quantity(told["value"], told["unit"])
        for path, slope in told["derivatives"].items():
            out[f"{name}: mean queue by {path}"] = Quantity(slope)
    return out


def windows(result: Result) -> dict[str, Quantity]:
    """Marks, mean window and the fluid model's bias of each group."""
    out = {}
    for name, found in result["groups"].items():
        out[f"{name}: marks"] = Quantity(found["p"])
        out[f"{name}: mean window"] = Quantity(found["time_mean"], "packet")
        out[f"{name}: fluid's bias"] = Quantity(found["bias"])
    return out


def simulation(result: Result) -> dict[str, Quantity]:
    """Mean, least and greatest queue of each link over the run."""
    out = {}
    for name, link in result["links"].items():
        known = [v for v in link["queue"] if v is not None and v == v]
        for what, value in (("mean", _mean), ("least", min), ("greatest", max)):
            out[f"{name}: {what} queue"] = Quantity(value(known) if known else None, "packet")
    return out


def packets(result: Result) -> dict[str, Quantity]:
    """Utilization and queue of each link, goodput of each group, with intervals."""
    out = {}
    wanted = (
        ("links", "utilization", "1"),
        ("links", "queue_mean", "packet"),
        ("flows", "goodput", "bit/s"),
    )
    for kind, metric, unit in wanted:
        for name, values in result["mean"][kind].items():
            half = result["ci95"][kind][name][metric]
            out[f"{name}: {metric}"] = Quantity(values[metric], unit, half)
    return out


def comparison(result: Result) -> dict[str, Quantity]:
    """Each quantity in the fluid model and in packets."""
    out = {}
    for row in result["rows"]:
        out[f"{row['name']} (fluid)"] = Quantity(row["fluid"], row["unit"])
        out[f"{row['name']} (packets)"] = Quantity(row["packets"], row["unit"], row["ci95"])
    return out


SUMMARIES: Mapping[str, Callable[[Result], dict[str, Quantity]]] = {
    "Equilibrium": equilibrium,
    "Stability": stability,
    "MapPoint": stability_map,
    "Boundary": boundary,
    "Crossings": crossings,
    "Cycle": cycle,
    "Cycles": cycles,
    "Gradient": gradient,
    "Sensitivity": sensitivity,
    "StationaryWindows": windows,
    "Trajectory": simulation,
    "PacketRuns": packets,
    "Comparison": comparison,
}
"""The summary for each class of results, by its name."""
