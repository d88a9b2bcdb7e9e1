"""Values that a change of others sets back to their defaults."""

from collections.abc import Iterable
from typing import Any

from fluidcc.laws.parameters import infos
from fluidcc.scenario.laws import Laws
from fluidcc.scenario.network import Flows, Network
from fluidcc.scenario.tables import Tables, reaction_table
from fluidcc.scenario.window import NAMED, default_reaction

_INSTEAD = {"calls": ("arrivals", "most"), "arrivals": ("calls",)}
"""Values of voice calls that each of two takes the place of."""


def _drop(table: Tables, names: Iterable[str]) -> None:
    for name in names:
        table.pop(name, None)


def _emptied(values: Tables, parts: list[str]) -> None:
    """Begin a law's table anew; a law given by its name alone has none yet."""
    *outer, last = parts
    here: Any = values
    for part in outer:
        here = here.setdefault(part, {})
    here[last] = {}


def reset_dependants(net: Network, values: Tables, changed: Iterable[str], laws: Laws) -> None:
    """Take out of a network's tables what follows from the values that are about to change.

    A new law starts from its own defaults. A reaction that is the default of window law and
    feedback law stays so when these change. Calls replace arrivals, and arrivals calls.

    Parameters
    ----------
    net, values
        The network, and its tables, which are changed.
    changed
        Full paths of the values that will be set.
    laws
        The laws by kind and name.
    """
    for path in changed:
        kind, name, *inner = path.split(".")
        if kind == "flows" and name in net.flow_names and inner:
            _reset_group(net.flows[net.flow_names.index(name)], values[kind][name], inner, laws)
        if inner[:1] == ["voice"] and len(inner) == 2 and name in net.link_names:
            _drop(values[kind][name].get("voice", {}), _INSTEAD.get(inner[1], ()))
        if inner[-1:] == ["law"] and inner != ["window", "law"]:
            _emptied(values, [kind, name, *inner[:-1]])


def _reset_group(flows: Flows, table: Tables, inner: list[str], laws: Laws) -> None:
    window = table["window"]
    if inner == ["window", "law"]:
        _drop(window, (*infos(flows.window), *reaction_table(flows.reaction)))
    for kind in NAMED:
        if inner == ["window", kind]:
            _drop(window, infos(getattr(flows, kind)))
    if inner[0] == "feedback":
        _drop(window, infos(flows.feedback))
    if inner[0] in ("window", "feedback"):
        own = reaction_table(default_reaction(flows.window, flows.feedback, laws))
        if own == reaction_table(flows.reaction):
            _drop(window, own)
