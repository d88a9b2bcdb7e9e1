"""Tables of an optimum."""

from collections.abc import Mapping
from typing import Any

from fluidcc.results.tables.blocks import (
    Block,
    Line,
    Number,
    Path,
    Quantity,
    Table,
    number,
    parameter,
    quantity,
    table,
    verdict,
)

_SENSE = {"maximize": "largest", "minimize": "least"}
_HOLDS = {True: "holds", False: "missed", None: "undecided"}


def optimum(result: Mapping[str, Any]) -> list[Block]:
    """Parameters, what holds them, starts, the trade-off curve and the verification."""
    status, unit = result["status"], result["unit"]
    head = f"{_SENSE[result['sense']]} {result['goal']}: {quantity(result['objective'], unit)}"
    good = status == "ok"
    out: list[Block] = [verdict(good, head if good else f"{head}, {status}")]
    out += [Line(result["message"])] if result["message"] else []
    if result["given_meets"] is not None:
        given = "infinite" if result["given"] is None else quantity(result["given"], unit)
        missed = "" if result["given_meets"] else ", which misses a constraint"
        out.append(Line(f"as given: {given}{missed}"))
    found = table("Parameters", "path", "value", "unit")
    for path, value in result["values"].items():
        found.add_row(Path(path), Number(value, 8), result["units"][path])
    out.append(found)
    out += [Line(f"worst scenario: {_place(worst)}") for worst in result["worst"]]
    out += [_constraints(result["constraints"])] if result["constraints"] else []
    out += [_held(result["active"])] if result["active"] else []
    out += [_starts(result["starts"], list(result["values"]))] if result["starts"] else []
    out += tradeoff(result["tradeoff"]) if result["tradeoff"] else []
    return [*out, *(line for found in result["verification"] for line in _verification(found))]


def _constraints(rules: list[Mapping[str, Any]]) -> Table:
    """Each constraint with its value, over a box of scenarios with where it is worst."""
    somewhere = any(each["scenario"] for each in rules)
    out = table("Constraints", "constraint", "value", "", *(["worst at"] if somewhere else []))
    for each in rules:
        value = "infinite" if each["infinite"] else Number(each["value"], 6)
        place = [_place(each["scenario"])] if somewhere else []
        out.add_row(each["text"], value, "met" if each["met"] else "missed", *place)
    return out


def _held(active: list[Mapping[str, Any]]) -> Table:
    somewhere = any(each["scenario"] for each in active)
    out = table("Held by", "constraint", "multiplier", *(["scenario"] if somewhere else []))
    for each in active:
        place = [_place(each["scenario"])] if somewhere else []
        out.add_row(each["text"], Number(each["multiplier"]), *place)
    return out


def _place(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} = {number(value)}" for path, value in values.items())


def _starts(starts: list[Mapping[str, Any]], paths: list[str]) -> Table:
    out = table("Starts", "start", "points", *map(parameter, paths), "goal", "constraints")
    for k, start in enumerate(starts, start=1):
        ends = (Number(start["end"][path]) for path in paths)
        met = "met" if start["feasible"] else "missed"
        out.add_row(str(k), str(start["points"]), *ends, Number(start["objective"], 7), met)
    return out


def tradeoff(curve: Mapping[str, Any]) -> list[Block]:
    """The best goal for every level of another quantity."""
    paths = list(curve["levels"][0]["values"])
    names = ((curve["quantity"], curve["quantity_unit"]), (curve["goal"], curve["unit"]))
    out = table("Trade-off", *names, *map(parameter, paths), "status")
    for level in curve["levels"]:
        ends = (Number(level["values"][path]) for path in paths)
        numbers = (Number(level["quantity"]), Number(level["objective"]), *ends)
        out.add_row(*numbers, level["status"])
    return [out]


def _verification(found: Mapping[str, Any]) -> list[Block]:
    seeds = f"{len(found['seeds'])} seeds, {number(found['warmup'])} to {number(found['until'])} s"
    out: list[Block] = []
    if found["scenario"]:
        worst = f"the worst for {' and '.join(found['worst_for'])}"
        out.append(Line(f"Verified at {_place(found['scenario'])}, {worst}", "bold"))
    for link in found["settling"]:
        out.append(verdict(link["settles"], f"Trajectory: the queue of {_settled(link)}"))
    checks = table(f"Packets, {seeds}", "quantity or constraint", "fluid", "packets (95 %)", "")
    for check in found["checks"]:
        value = Quantity(check["value"], "1", check["ci95"])
        holds = "" if check["bound"] is None else _HOLDS[check["holds"]]
        checks.add_row(check["text"], Number(check["fluid"]), value, holds)
    out += [checks] if found["checks"] else []
    reasons = [Line(f"outside of the fluid model: {reason}") for reason in found["outside"]]
    return [*out, *reasons, *([Line(found["message"])] if found["message"] else [])]


def _settled(link: Mapping[str, Any]) -> str:
    ends = {
        True: f"settles after {quantity(link['time'], 's')}",
        False: "does not settle",
        None: "has no rest to settle at",
    }
    return f"{link['link']} {ends[link['settles']]}"
