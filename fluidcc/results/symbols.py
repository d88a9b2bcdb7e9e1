"""Symbols of parameters, by path."""

import functools
import re
from collections.abc import Mapping

_PATH = re.compile(r"(links?|flows?)\.([\w.]+)")


def symbol(path: str) -> tuple[str, str] | None:
    """LaTeX symbol of the parameter at a path and the name of its link or group, if it is told.

    None for text that is no path, and where laws differ in the symbol: a path alone does not tell
    which law a scenario has.
    """
    found = _PATH.fullmatch(path)
    if not found:
        return None
    kind, parts = found[1], found[2].split(".")
    owner = ".".join([kind, parts.pop(0)]) if kind.endswith("s") else ""
    known = _symbols().get((kind.rstrip("s"), ".".join(parts)), set())
    return (next(iter(known)), owner) if len(known) == 1 else None


@functools.cache
def _symbols() -> Mapping[tuple[str, str], set[str]]:
    """Symbols that laws, links and flows have for a path below a link or a group."""
    from fluidcc.laws.parameters import infos
    from fluidcc.laws.registry import LAWS
    from fluidcc.scenario.network import Flows, FlowsInitial, Link, LinkInitial
    from fluidcc.scenario.window import KINDS

    owners = [("link", "", Link), ("flow", "", Flows)]
    owners += [("link", "initial.", LinkInitial), ("flow", "initial.", FlowsInitial)]
    for kind, laws in LAWS.items():
        table = "window" if kind in KINDS else kind
        side = "link" if kind == "queue" else "flow"
        owners += [(side, f"{table}.", law) for law in laws.values()]
    out: dict[tuple[str, str], set[str]] = {}
    for side, prefix, thing in owners:
        for name, info in infos(thing).items():
            if info.symbol:
                out.setdefault((side, f"{prefix}{name}"), set()).add(info.symbol)
    return out
