"""What is told of a law that was examined."""

from collections.abc import Mapping
from typing import Any

from fluidcc.results.tables.blocks import Block, Word, table, verdict

_GOOD = {"ok": True, "failed": False}


def law(result: Mapping[str, Any]) -> list[Block]:
    """Every check with its verdict and why, and the counts."""
    found = table(f"{result['law']}, a {result['kind']} law", "check", "verdict", "why")
    for check in result["checks"]:
        known = check["verdict"]
        found.add_row(check["check"], Word(known, _GOOD.get(known)), check["why"])
    return [found, verdict(result["sound"], result["summary"])]
