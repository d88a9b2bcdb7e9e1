"""Tables of verdicts on bounds."""

from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc.results.tables.blocks import Block, Line, Number, Table, Word, table


def bounds(result: Mapping[str, Any]) -> list[Block]:
    """Verdicts on bounds by their definitions, and what decides them."""
    out: list[Block] = []
    for name in dict.fromkeys(entry["id"] for entry in result["bounds"]):
        entries = [entry for entry in result["bounds"] if entry["id"] == name]
        out += [*_heads(entries), _lines(entries)]
    silent = [f"{entry['id']}: {entry['why']}" for entry in result["not_applicable"]]
    return [*out, *([Line("Not applicable", "bold"), *map(Line, silent)] if silent else [])]


def _heads(entries: Sequence[Mapping[str, Any]]) -> list[Line]:
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
    return [Line(f"\n{first['id']}", "bold"), *map(Line, lines)]


def _lines(entries: Sequence[Mapping[str, Any]]) -> Table:
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
        numbers = (Number(case["bound"]), Number(case["value"]), str(entry["searched"]))
        found.add_row(*words, Word(word, good), *numbers)
    return found
