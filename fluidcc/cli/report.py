"""Results for people: tables with units."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fluidcc.results import scaled

_LISTS = ("goodput_flows",)  # metrics of single flows
_MANY = 6  # round trips of a group up to which each has a line of its own


def number(value: Any, digits: int = 5) -> str:
    """A number for a table; a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"  # noqa: RUF001
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def quantity(value: float | None, unit: str = "1", half: float | None = None) -> str:
    """A number with its unit, and the half width of its interval."""
    scale, unit = scaled([value], unit)
    shown = number(None if value is None else value / scale)
    if half is not None and math.isfinite(half):
        shown += f" ± {float(f'{half / scale:.2g}'):g}"
    return shown if value is None or unit in ("", "1") else f"{shown} {unit}"


def span(values: Sequence[float], scale: float = 1.0) -> str:
    """The range of some numbers, or the one number that they all are."""
    low, high = min(values) / scale, max(values) / scale
    return number(low) if number(low) == number(high) else f"{number(low)} … {number(high)}"


def table(title: str, *columns: str) -> Table:
    """An empty table; all columns but the first are aligned to the right."""
    out = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for k, column in enumerate(columns):
        out.add_column(column, justify="left" if k == 0 else "right", overflow="fold")
    return out


def console() -> Console:
    """Where results are printed; wide where it is no terminal."""
    out = Console(highlight=False, markup=False)
    if not out.is_terminal:
        out.width = 400  # nothing is cut in a file or a pipe
    return out


def verdict(good: bool | None, text: str) -> Text:
    """A line in green, red, or neither."""
    return Text(text, style={True: "bold green", False: "bold red", None: "bold yellow"}[good])


def equilibrium(result: Mapping[str, Any]) -> list[Any]:
    """Links and groups of flows at rest."""
    status, message = result["status"], result["message"]
    settled = {"interior": True, "empty": True, "none": False}.get(status)
    head = verdict(settled, f"Equilibrium: {status}" + (f" ({message})" if message else ""))
    links = table("Links", "link", "queue [packet]", "average [packet]", "signal", "utilization")
    for name, link in result["links"].items():
        keys = ("queue", "average", "signal", "utilization")
        links.add_row(name, *(number(link[k]) for k in keys))
    flows = table(
        "Flows", "group", "round trips", "window [packet]", "rtt [ms]", "rate [packet/s]", "signal"
    )
    for name, group in result["flows"].items():
        _flow_lines(flows, name, group)
    return [head, links, flows]


def _flow_lines(out: Table, name: str, group: Mapping[str, Any]) -> None:
    keys = (("window", 1.0), ("rtt", 1e-3), ("rate", 1.0), ("signal", 1.0))
    size = len(group["window"])
    if any(v is None for v in group["window"]):
        out.add_row(name, str(size), *("–" for _ in keys))  # noqa: RUF001
    elif size > _MANY:
        out.add_row(name, str(size), *(span(group[key], scale) for key, scale in keys))
    else:
        for k in range(size):
            line = (number(group[key][k] / scale) for key, scale in keys)
            out.add_row(name, "1" if size == 1 else f"{k + 1} of {size}", *line)


def stability(result: Mapping[str, Any]) -> list[Any]:
    """The verdict, margins and rightmost roots."""
    count, rest = result["unstable"], equilibrium(result["equilibrium"])
    if count is None:
        head = verdict(None, f"Stability: unknown ({result['status']})")
        told = result["equilibrium"]["message"]  # is in its own line already
        why = result["message"].removeprefix(told).removeprefix("; ")
        return [*rest, head.append(f"\n{why}", style="default") if why else head]
    known = f"certified by the argument principle in {result['proof']}"
    proof = known if result["certified"] else "not certified"
    text = "stable" if result["stable"] else f"unstable, {count} roots in the right half plane"
    head = verdict(result["stable"], f"Stability: {text} ({proof})")
    if result["message"]:
        head.append(f"\n{result['message']}", style="default")
    margins = table("Margins", "margin", "value", "at [rad/s]")
    gain, crossover = result["gain_margin"], result["phase_crossover"]
    margins.add_row("gain", number(gain), number(crossover))
    phase = result["phase_margin"]
    margins.add_row("phase [deg]", number(phase), number(result["gain_crossover"]))
    margins.add_row("delay [s]", number(result["delay_margin"]), number(result["gain_crossover"]))
    roots = table("Rightmost roots", "real [1/s]", "imaginary [rad/s]", "period [s]")
    for real, imaginary in (result["roots"] or [])[:8]:
        period = 2 * math.pi / abs(imaginary) if imaginary else None
        roots.add_row(number(real, 8), number(imaginary, 8), number(period))
    return [*rest, head, margins, roots]


def crossings(result: Mapping[str, Any], path: str, unit: str) -> list[Any]:
    """Every change of stability along one parameter."""
    stable, gaps = result["stable_at_low"], result["gaps"]
    known = {True: "stable", False: "unstable", None: "no verdict"}[stable]
    proof = "certified" if result["certified"] else "not certified: crossings may be missing"
    head = verdict(stable if result["certified"] else None, f"At the low end: {known} ({proof})")
    heading = path if unit in ("", "1") else f"{path} [{unit}]"
    found = table(
        "Changes of stability", heading, "frequency [rad/s]", "period [s]", "becomes", "Hopf point"
    )
    for crossing in result["crossings"]:
        frequency = crossing["frequency"]
        period = 2 * math.pi / frequency if frequency else None
        line = (number(crossing["value"], 10), number(frequency, 8), number(period))
        found.add_row(*line, crossing["becomes"], crossing["criticality"] or number(None))
    out: list[Any] = [head]
    if result["crossings"]:
        out.append(found)
    elif not gaps and result["certified"]:
        out.append(Text("No change of stability in this range."))
    else:
        where = "in the rest of the range" if gaps else "by a search that is not certified"
        out.append(verdict(None, f"Changes of stability: none found {where}."))
    if gaps:
        parts = table("Parts without a verdict", f"{heading} from", "to", "equilibrium")
        for gap in gaps:
            parts.add_row(number(gap["low"], 6), number(gap["high"], 6), gap["status"])
        out.append(parts)
    return out


def cycle(result: Mapping[str, Any]) -> list[Any]:
    """Period, extremes and Floquet multipliers of a limit cycle."""
    period, message = result["period"], result["message"]
    if period is None:
        return [verdict(None, message)]
    word = {True: "stable", False: "unstable", None: "stability not known"}[result["stable"]]
    head = f"Cycle: {result['status']}, {word}, period {quantity(period, 's')}"
    ends = table("Over a cycle", "quantity", "least", "greatest")
    for name, link in result["links"].items():
        for key in ("queue", "average"):
            ends.add_row(f"{name}: {key} [packet]", *(number(v) for v in link[key]))
    for name, group in result["flows"].items():
        for k, pair in enumerate(group["window"]):
            place = "" if len(group["window"]) == 1 else f" ({k + 1} of {len(group['window'])})"
            ends.add_row(f"{name}: window{place} [packet]", *(number(v) for v in pair))
    out: list[Any] = [verdict(result["stable"], head)]
    if message:
        out.append(Text(message))
    if result["floquet"]:
        found = table("Floquet multipliers", "real", "imaginary", "modulus")
        for real, imaginary in result["floquet"][:8]:
            line = (number(real, 8), number(imaginary, 8), number(math.hypot(real, imaginary)))
            found.add_row(*line)
        return [*out, ends, found]
    return [*out, ends]


def cycles(result: Mapping[str, Any], path: str, unit: str) -> list[Any]:
    """Cycles along one parameter, a table for each Hopf point."""
    out: list[Any] = [verdict(None, result["message"])] if result["message"] else []
    heading = path if unit in ("", "1") else f"{path} [{unit}]"
    for branch in result["branches"]:
        points = branch["points"]
        links = list(points[0]["links"]) if points else []
        frequency = quantity(branch["frequency"], "rad/s")
        found = table(
            f"From the Hopf point at {number(branch['hopf'], 8)}, {frequency}",
            heading, "period [s]", *(f"{name}: queue [packet]" for name in links),
            "largest multiplier", "", "found as",
        )  # fmt: skip
        for point in points:
            sizes = [math.hypot(*pair) for pair in point["floquet"][1:]]
            ranges = (span(point["links"][name]["queue"]) for name in links)
            word = {True: "stable", False: "unstable", None: ""}[point["stable"]]
            line = (number(point["value"], 8), number(point["period"], 8), *ranges)
            found.add_row(*line, number(max(sizes, default=None)), word, point["status"])
        out.append(found)
        ends = [f"fold at {number(value, 8)}" for value in branch["folds"]]
        ends += [f"ends: {branch['message']}"] if branch["message"] else []
        out += [Text("; ".join(ends))] if ends else []
    return out


def bounds(result: Mapping[str, Any]) -> list[Any]:
    """Verdicts on bounds by their definitions, and what decides them."""
    out: list[Any] = []
    for name in dict.fromkeys(entry["id"] for entry in result["bounds"]):
        entries = [entry for entry in result["bounds"] if entry["id"] == name]
        out += [*_bound_heads(entries), _bound_lines(entries)]
    silent = [f"{entry['id']}: {entry['why']}" for entry in result["not_applicable"]]
    return [*out, *([Text("Not applicable", style="bold"), *map(Text, silent)] if silent else [])]


def _bound_heads(entries: Sequence[Mapping[str, Any]]) -> list[Text]:
    """What a bound says, and the definitions that all its readings share."""
    first = entries[0]
    same = {
        axis: value
        for axis, value in first["definitions"].items()
        if all(entry["definitions"][axis] == value for entry in entries)
    }
    lines = [f"{first['statement']} ({first['source']}; {first['engine']})"]
    if same:
        lines.append("throughout: " + "; ".join(f"{axis}: {v}" for axis, v in same.items()))
    lines += [f"by algebra, {step}" for step in first["derivation"]]
    return [Text(f"\n{first['id']}", style="bold"), *map(Text, lines)]


def _bound_lines(entries: Sequence[Mapping[str, Any]]) -> Table:
    """One line for each reading."""
    varied = [
        axis for axis in entries[0]["definitions"]
        if len({entry["definitions"][axis] for entry in entries}) > 1
    ]  # fmt: skip
    found = table("", *varied, "verdict", "bound", "value", "searched")
    for entry in entries:
        case, good = entry["worst"] or {"bound": None, "value": None}, entry["verdict"] == "holds"
        word = f"{entry['verdict']}, tight" if entry["tight"] else entry["verdict"]
        words = [entry["definitions"][axis] for axis in varied]
        numbers = (number(case["bound"]), number(case["value"]), str(entry["searched"]))
        found.add_row(*words, verdict(good, word), *numbers)
    return found


def boundary(result: Mapping[str, Any], paths: Sequence[str], units: Sequence[str]) -> list[Any]:
    """Curves on which stability changes: their ends, frequencies and how many roots cross."""
    proof = "certified" if result["certified"] else "not certified"
    told = f"\n{result['message']}" if result["message"] else ""
    good = None if not result["certified"] else result["status"] == "ok"
    head = verdict(good, f"Boundary: {len(result['curves'])} curves ({proof})")
    out: list[Any] = [head.append(told, style="default") if told else head]
    x, y = (p if u in ("", "1") else f"{p} [{u}]" for p, u in zip(paths, units, strict=True))
    found = table(
        "Curves on which stability changes", "kind", "points", x, y, "frequency [rad/s]",
        "unstable roots", "ends",
    )  # fmt: skip
    for curve in result["curves"]:
        known = [f for f in curve["frequency"] if f is not None]
        found.add_row(
            curve["kind"], str(len(curve["x"])), span(curve["x"]), span(curve["y"]),
            span(known) if known else number(None), f"{curve['below']} | {curve['above']}",
            "closed" if curve["closed"] else ", ".join(curve["ends"]),
        )  # fmt: skip
    return [*out, found] if result["curves"] else out


def gradient(result: Mapping[str, Any]) -> list[Any]:
    """A quantity and its derivatives."""
    told = f" ({result['message']})" if result["message"] else ""
    value = quantity(result["value"], result["unit"])
    head = verdict(result["status"] == "ok", f"{result['of']}: {value}, {result['status']}{told}")
    columns = ("towards smaller", "towards larger") if result["sides"] else ()
    out = table("Derivatives", "parameter", "derivative", *columns, "unit")
    for path, slope in result["derivatives"].items():
        sides = map(number, result["sides"].get(path, ()))
        out.add_row(path, number(slope), *sides, f"({result['unit']}) / ({result['units'][path]})")
    return [head, out]


def sensitivity(result: Mapping[str, Any]) -> list[Any]:
    """Means over a trajectory and its end, with their derivatives."""
    good = result["status"] == "ok"
    head = verdict(good, f"Fluid run to {number(result['time'][-1])} s: {result['message']}")
    out: list[Any] = [head]
    for key, words in (
        ("means", f"Means from {number(result['after'])} s"),
        ("ends", "At the end"),
    ):
        found = table(words, "quantity", "value", *(f"by {path}" for path in result["slopes"]))
        for name, told in result[key].items():
            slopes = told["derivatives"].values()
            if told["value"] or any(slopes):
                found.add_row(name, quantity(told["value"], told["unit"]), *map(number, slopes))
        out.append(found)
    return [*out, Text("Derivatives are per unit of each parameter, in packet, packet/s and s.")]


def windows(result: Mapping[str, Any]) -> list[Any]:
    """Moments of the stationary window of each group."""
    out = table(
        "Windows under independent marks [packet]", "group", "marks", "mean over time",
        "over packets", "standard deviation", "fluid", "fluid / mean - 1",
    )  # fmt: skip
    for name, found in result["groups"].items():
        bias = found["bias"]
        out.add_row(
            name, number(found["p"]), number(found["time_mean"]), number(found["mean"]),
            number(math.sqrt(found["variance"])), number(found["fluid"]),
            "–" if bias is None else f"{100 * bias:+.2f} %",  # noqa: RUF001
        )  # fmt: skip
    told = [f"flows.{n}: {f['message']}" for n, f in result["groups"].items() if f["message"]]
    lines = [Text(line) for line in (*told, result["message"]) if line]
    return [out, *lines] if result["groups"] else [verdict(None, result["message"])]


def simulation(result: Mapping[str, Any]) -> list[Any]:
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
    out.add_row(name, span(ends), *(number(v) for v in (mean, min(values), max(values))))


def packets(result: Mapping[str, Any], warmup: float) -> list[Any]:
    """Means over seeds with 95 % intervals; `warmup` is where the statistics start [s]."""
    from fluidcc.packets.accounts.measure import FLOW_UNITS, LINK_UNITS

    head = f"{result['message']}, statistics from {number(warmup)} s"
    out: list[Any] = [Text(f"{head}: mean ± half width of the 95 % interval")]
    for kind, title, units in (("links", "Links", LINK_UNITS), ("flows", "Flows", FLOW_UNITS)):
        means, halves = result["mean"][kind], result["ci95"][kind]
        found = table(title, "metric", *means)
        for metric, unit in units.items():
            if metric in _LISTS:
                continue
            if any(metric in values for values in means.values()):
                line = (
                    quantity(means[name].get(metric), unit, halves[name].get(metric))
                    for name in means
                )
                found.add_row(metric, *line)
        out.append(found)
    return out


def optimum(result: Mapping[str, Any]) -> list[Any]:
    """Parameters, what holds them, the trade-off curve and the verification of an optimum."""
    from fluidcc.cli import optimum as parts

    return parts.optimum(result)


def comparison(result: Mapping[str, Any]) -> list[Any]:
    """The fluid model beside the packets, and what the fluid model says of itself."""
    seeds = f"{len(result['packets']['runs'])} seeds"
    out = table(
        f"Fluid beside packets, {number(result['warmup'])} to {number(result['until'])} s, {seeds}",
        "quantity", "equilibrium", "fluid", "packets (95 %)", "fluid / packets - 1",
    )  # fmt: skip
    for row in result["rows"]:
        unit, difference = row["unit"], row["difference"]
        out.add_row(
            row["name"],
            quantity(row["equilibrium"], unit),
            quantity(row["fluid"], unit),
            quantity(row["packets"], unit, row["ci95"]),
            "–" if difference is None else f"{100 * difference:+.2f} %",  # noqa: RUF001
        )
    biases = (f"flows.{name}: {found['told']}" for name, found in result["windows"].items())
    return [equilibrium(result["equilibrium"])[0], *_fluid_lines(result), out, *map(Text, biases)]


def _fluid_lines(result: Mapping[str, Any]) -> list[Text]:
    """How the trajectory ended, unless there is nothing to say, and where the model fails."""
    lines = []
    if result["fluid_status"] not in (None, "ok") or "not to be trusted" in result["fluid_message"]:
        lines.append(verdict(False, f"Fluid run: {result['fluid_message']}"))
    if result["message"]:
        lines.append(verdict(None, result["message"]))
    if result["outside"]:
        lines.append(verdict(None, "Outside of what the fluid model holds for:"))
        lines += [Text(f"  {reason}") for reason in result["outside"]]
    return lines
