"""An optimum for people."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from fluidcc.cli.report import number, quantity, table, verdict

_SENSE = {"maximize": "largest", "minimize": "least"}
_HOLDS = {True: "holds", False: "missed", None: "–"}  # noqa: RUF001


def optimum(result: Mapping[str, Any]) -> list[Any]:
    """Parameters, what holds them, starts, the trade-off curve and the verification."""
    status, unit = result["status"], result["unit"]
    head = f"{_SENSE[result['sense']]} {result['goal']}: {quantity(result['objective'], unit)}"
    good = status == "ok"
    out: list[Any] = [verdict(good, head if good else f"{head}, {status}")]
    out += [Text(result["message"])] if result["message"] else []
    if result["given"] is not None:
        missed = "" if result["given_meets"] else ", which misses a constraint"
        out.append(Text(f"as given: {quantity(result['given'], unit)}{missed}"))
    found = table("Parameters", "path", "value", "unit")
    for path, value in result["values"].items():
        found.add_row(path, number(value, 8), result["units"][path])
    out.append(found)
    if result["quantities"]:
        rules = table("Constraints", "constraint", "value")
        for text in result["constraints"]:
            rules.add_row(text, number(result["quantities"][text.split()[0]], 6))
        out.append(rules)
    if result["active"]:
        held = table("Held by", "constraint", "multiplier", "scenario")
        for each in result["active"]:
            held.add_row(each["text"], number(each["multiplier"]), _place(each["scenario"]))
        out.append(held)
    out += [Text(f"worst scenario: {_place(worst)}") for worst in result["worst"]]
    if result["starts"]:
        out.append(_starts(result["starts"], list(result["values"])))
    out += _curve(result["tradeoff"]) if result["tradeoff"] else []
    return [*out, *(_verification(result["verification"]) if result["verification"] else ())]


def _place(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} = {number(value)}" for path, value in values.items())


def _starts(starts: list[Mapping[str, Any]], paths: list[str]) -> Any:
    out = table("Starts", "start", "points", *paths, "goal", "constraints")
    for k, start in enumerate(starts, start=1):
        ends = (number(start["end"][path]) for path in paths)
        met = "met" if start["feasible"] else "missed"
        out.add_row(str(k), str(start["points"]), *ends, number(start["objective"], 7), met)
    return out


def _curve(curve: Mapping[str, Any]) -> list[Any]:
    paths = list(curve["levels"][0]["values"])
    names = (
        f"{curve['quantity']} [{curve['quantity_unit']}]",
        f"{curve['goal']} [{curve['unit']}]",
    )
    out = table("Trade-off", *names, *paths, "status")
    for level in curve["levels"]:
        ends = (number(level["values"][path]) for path in paths)
        out.add_row(number(level["quantity"]), number(level["objective"]), *ends, level["status"])
    return [out]


def _verification(found: Mapping[str, Any]) -> list[Any]:
    seeds = f"{len(found['seeds'])} seeds, {number(found['warmup'])} to {number(found['until'])} s"
    out: list[Any] = []
    for link in found["settling"]:
        word = f"settles after {quantity(link['time'], 's')}"
        text = word if link["settles"] else "does not settle"
        out.append(verdict(link["settles"], f"Trajectory: the queue of {link['link']} {text}"))
    checks = table(f"Packets, {seeds}", "quantity or constraint", "fluid", "packets (95 %)", "")
    for check in found["checks"]:
        value = quantity(check["value"], "1", check["ci95"])
        checks.add_row(check["text"], number(check["fluid"]), value, _HOLDS[check["holds"]])
    out += [checks] if found["checks"] else []
    reasons = [Text(f"outside of the fluid model: {reason}") for reason in found["outside"]]
    return [*out, *reasons, *([Text(found["message"])] if found["message"] else [])]
