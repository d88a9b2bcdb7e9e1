"""Equilibria of many networks of populations that differ in numbers alone.

What all of them ask of the stationary law of a flow is asked at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium, Searches, conclude, search
from fluidcc.analysis.flow_response import Answering, answer
from fluidcc.analysis.operating_point import OperatingPoint, conditions
from fluidcc.analysis.population import why_no_population
from fluidcc.model.fluid import steady
from fluidcc.module import skeleton, structure
from fluidcc.programs import flatten, map_tree
from fluidcc.scenario.network import Flows, Network
from fluidcc.scenario.paths import replace

MOST_TOGETHER = 64
"""The most networks at a time."""

_OWN = "n", "rtt"  # numbers of a group that may differ
_OF_FLOWS = frozenset({"senders", "windows", "rates", "errors"})  # parts of an OperatingPoint


def equilibria_together(
    net: Network, changes: Sequence[Mapping[str, Any]]
) -> dict[int, Equilibrium]:
    """Equilibria of a network with each of these changes, by their number; none unless these
    networks are alike, see `are_alike`.

    Changes that make no network are left out.
    """
    nets: dict[int, Network] = {}
    for k, own in enumerate(changes):
        with contextlib.suppress(ValueError):
            nets[k] = replace(net, own)
    arrays = [steady(own) for own in nets.values()]
    if not arrays or not are_alike(arrays):
        return {}
    parts = zip(nets.items(), arrays, _search(arrays), strict=True)
    return {k: conclude(own, fluid, searches) for (k, own), fluid, searches in parts}


def answer_together(rests: Mapping[int, Equilibrium]) -> dict[int, list[list[Answering]]]:
    """The answers of the groups of each network at a regular equilibrium, of networks that are
    alike.
    """
    regular = {k: eq for k, eq in rests.items() if eq.status == "regular"}
    nets, ops = [steady(eq.net) for eq in regular.values()], [eq.op for eq in regular.values()]
    by_group = []
    for i, flows in enumerate(nets[0].flows if nets else ()):
        each = [conditions(net, op, net.flows[i]) for net, op in zip(nets, ops, strict=True)]
        found = iter(answer(flows, *map_tree(lambda *v: np.concatenate(v), *each)))
        by_group.append([list(itertools.islice(found, len(trips))) for _, trips in each])
    return dict(zip(regular, map(list, zip(*by_group, strict=True)), strict=True))


def are_alike(nets: Sequence[Network]) -> bool:
    """Whether fluid networks have one link and one structure, populations whose windows have no
    memory, and differ in nothing but the numbers of the link, of flows and in round trips.
    """

    def kind(net: Network) -> Any:
        names = [name for name in structure(Flows)[0] if name not in _OWN]
        rules = [[getattr(flows, name) for name in names] for flows in net.flows]
        return skeleton(net, np.shape), tuple(flatten(rules).tolist())

    first, one = nets[0], kind(nets[0])
    if first.closure != "population" or len(first.links) > 1:
        return False
    known = not any(why_no_population(flows) or flows.window.states for flows in first.flows)
    return known and all(kind(net) == one for net in nets)


def _search(nets: Sequence[Network]) -> list[Searches]:
    """The searches in fluid networks that are alike."""
    first, *others = nets
    links = map_tree(lambda *v: np.array(v)[:, None], first.links, *(net.links for net in others))
    flows = tuple(
        dataclasses.replace(own[0], **{k: np.stack([getattr(f, k) for f in own]) for k in _OWN})
        for own in zip(*(net.flows for net in nets), strict=True)
    )
    found = search(dataclasses.replace(first, links=links, flows=flows))
    return [tuple(_member(op, k) for op in found) for k in range(len(nets))]


def _member(op: OperatingPoint, k: int) -> OperatingPoint:
    """The operating point of one network of many."""

    def number(v: Any) -> Any:
        return v[..., k, 0] if np.ndim(v) else v

    def classes(v: Any) -> Any:
        return v[k] if np.ndim(v) else v

    parts = zip(op._fields, op, strict=True)
    return OperatingPoint(
        *(map_tree(classes if name in _OF_FLOWS else number, part) for name, part in parts)
    )
