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

TOGETHER = 64
"""The most networks at a time."""

_OWN = "n", "rtt"  # numbers of a group that may differ
_OF_FLOWS = frozenset({"senders", "windows", "rates", "errors"})  # parts of an OperatingPoint


def equilibria_together(
    net: Network, changes: Sequence[Mapping[str, Any]]
) -> dict[int, Equilibrium]:
    """Equilibria of a network with each of these changes, by their number, which know how their
    flows answer signals; none unless these networks are alike, see `_are_alike`.

    Changes that make no network are left out.
    """
    nets: dict[int, Network] = {}
    for k, own in enumerate(changes):
        with contextlib.suppress(ValueError):
            nets[k] = replace(net, own)
    arrays = [steady(own) for own in nets.values()]
    if not arrays or not _are_alike(arrays):
        return {}
    parts = zip(nets.values(), arrays, _search(arrays), strict=True)
    found = [conclude(own, fluid, searches) for own, fluid, searches in parts]
    regular = [k for k, eq in enumerate(found) if eq.status == "regular"]
    if regular:
        answers = _answer([arrays[k] for k in regular], [found[k].op for k in regular])
        for k, answering in zip(regular, answers, strict=True):
            found[k] = dataclasses.replace(found[k], answering=answering)
    return dict(zip(nets, found, strict=True))


def _are_alike(nets: Sequence[Network]) -> bool:
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


def _answer(nets: Sequence[Network], ops: Sequence[OperatingPoint]) -> list[list[list[Answering]]]:
    """The answers of the groups of each of some fluid networks at equilibrium that are alike."""
    by_group = []
    for i, flows in enumerate(nets[0].flows):
        each = [conditions(net, op, net.flows[i]) for net, op in zip(nets, ops, strict=True)]
        found = iter(answer(flows, *map_tree(lambda *v: np.concatenate(v), *each)))
        by_group.append([list(itertools.islice(found, len(trips))) for _, trips in each])
    return [list(groups) for groups in zip(*by_group, strict=True)]
