"""Where an equilibrium goes on either side of a parameter: by one smooth system, or two that meet.

At the edge of a regime several systems have the same solution: one with a queue at its end and one
with a queue that moves, those on both sides of a kink of the marking, on a jump and beside it. Each
is followed only where what it takes for granted stays so, as its own derivatives tell.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluidcc.analysis.contacts import (
    SIGNAL,
    Contact,
    NoDerivative,
    choices,
    contacts,
    sides,
)
from fluidcc.analysis.equilibrium import Equilibrium, without
from fluidcc.analysis.gradients.rest import Moving, moving
from fluidcc.analysis.linear import Array
from fluidcc.analysis.linearize import at_kink
from fluidcc.analysis.rest import FULL, INTERIOR, state_at_rest
from fluidcc.model.delays import kinks
from fluidcc.model.fluid import steady
from fluidcc.scenario.network import Network

_NEAR = 1e-6  # packets: a kink that is this near is the one that the rest is at
_EDGE = 1e-9  # up to this a queue is at its end, a loss or a share of the time none
_JUMP = 1e-6  # of a probability: far more than a marking without jump differs by from side to side
_LEVEL = 1e-9  # of the largest relative change: what moves less than this stays
_MOST_ENDS = 3
_JUST_EMPTY = -1e-300  # the place of an empty queue in front of a link that is all but full


class Branch(NamedTuple):
    """A motion, and whether the rest follows it towards smaller and larger parameters (K,)."""

    moving: Moving
    below: Array
    above: Array


class Branches(NamedTuple):
    """All motions of a rest, and the edge that it is at, if any."""

    each: tuple[Branch, ...]
    edge: str


def branches(eq: Equilibrium, along: Network) -> Branches:
    """How an equilibrium moves along directions of its network's numbers, to both sides.

    Raises NoDerivative where that is not known.
    """
    _check(eq)
    net = steady(eq.net)
    held = () if eq.smooth else contacts(net, eq.rest)
    ends, bends = _ends(eq), _kinks(eq)
    if eq.smooth and at_kink(eq.net, eq):
        near = [j for j, (_, distance) in enumerate(bends) if abs(distance) < _NEAR]
        if ends or len(near) != 1:
            raise NoDerivative("several edges of regimes meet here")
        return _beside_kink(eq, along, near[0])
    if len(ends) > _MOST_ENDS or any(_kink_elsewhere(held, k, d) for k, d in bends):
        raise NoDerivative("several edges of regimes meet here")
    found: list[Branch] = []
    for resting in itertools.product((True, False), repeat=len(ends)):
        here = _placed(eq, dict(zip(ends, resting, strict=True)))
        for each in moving(here, along, held=held, chosen=choices(held)):
            stays = [_stays(here, each, k, rests) for k, rests in zip(ends, resting, strict=True)]
            found.append(_followed(each, stays))
    edge = "at the end of a queue" if ends else ""
    if len(choices(held)) > 1:
        edge = edge or "at a jump where two thresholds meet"
    begun = [c for c in held if c.weighs and float(eq.rest.said[c.link].share) <= _EDGE]
    if begun:
        if ends or len(held) > 1 or begun[0].kind != SIGNAL or len(found) > 1:
            raise NoDerivative("several edges of regimes meet here")
        return _beside_jump(eq, along, begun[0])
    known = [b for b in found if not b.moving.message]
    return Branches(tuple(known or found), edge)


def _check(eq: Equilibrium) -> None:
    if eq.status == "none":
        raise NoDerivative("there is no equilibrium")
    if eq.status == "undetermined":
        raise NoDerivative(eq.message)
    if eq.status == "continuum":
        raise NoDerivative("many places rest, and which one is a matter of the start")
    if any(flows.loss.window(0.0, 1.0) is not None for flows in eq.net.flows):
        raise NoDerivative(without(eq))


def _followed(moved: Moving, rising: Sequence[Array]) -> Branch:
    """The branch of a motion on which none of some numbers may fall, of derivatives (K,) each."""
    least = _LEVEL * moved.pace
    every = np.array([np.zeros_like(least), *rising])
    return Branch(moved, np.all(every <= least, axis=0), np.all(every >= -least, axis=0))


def _ends(eq: Equilibrium) -> list[int]:
    """Links that are between a queue at its end and one that moves."""
    found = []
    for k, (link, code) in enumerate(zip(eq.net.links, eq.rest.codes, strict=True)):
        place, full = float(eq.rest.places[k]), float(link.buffer)
        lossless = int(code) == FULL and float(eq.rest.said[k].share) <= _EDGE
        filled = int(code) != FULL and place >= full * (1 - _EDGE)
        if abs(place) <= _EDGE or lossless or filled:
            found.append(k)
    return found


def _placed(eq: Equilibrium, resting: dict[int, bool]) -> Equilibrium:
    """The equilibrium with queues that rest at their end, or move from there."""
    codes, places = np.array(eq.rest.codes), np.array(eq.rest.places)
    for k, rests in resting.items():
        empty = abs(places[k]) <= _EDGE
        if empty:
            places[k] = _JUST_EMPTY if rests else 0.0
        else:
            codes[k] = FULL if rests else INTERIOR
    return dataclasses.replace(eq, rest=eq.rest._replace(codes=codes, places=places))


def _stays(eq: Equilibrium, moved: Moving, k: int, rests: bool) -> Array:
    """What may not fall (K,) for the queue of link k to rest at its end, or to move from there."""
    empty = abs(float(eq.rest.places[k])) <= _EDGE
    away = moved.slopes.links["queue"][:, k]
    away = away if empty else moved.room[:, k]
    pressed = moved.excess[:, k]
    return (-pressed if empty else pressed) if rests else away


def _kinks(eq: Equilibrium) -> list[tuple[int, float]]:
    """Links and distances of their kinks, in the order of `Moving.distances`."""
    return [(k, float(distance)) for k, distance in kinks(eq.net, state_at_rest(eq.net, eq.rest))]


def _kink_elsewhere(held: tuple[Contact, ...], k: int, distance: float) -> bool:
    """Whether a kink is met, by a link that is not on a jump of its signal."""
    jumps = any(c.link == k and c.kind == SIGNAL for c in held)
    return bool(held) and not jumps and abs(distance) < _NEAR


def _beside_kink(eq: Equilibrium, along: Network, j: int) -> Branches:
    """The branches on both sides of kink number j of the marking, or where it jumps there."""
    bends = _kinks(eq)
    k = bends[j][0]
    low, high = sides(eq.net.links[k], eq.rest.laws[k], eq.rest.queues[k])
    if abs(float(high.either) - float(low.either)) > _JUMP:
        own = [i for i, (link, _) in enumerate(bends) if link == k]
        return _beside_jump(eq, along, Contact(k, SIGNAL, (own.index(j),)))
    found = []
    for side in (-1, 1):
        moved = moving(eq, along, side=side)[0]
        found.append(_followed(moved, [side * moved.kinks[:, j]]))
    return Branches(tuple(found), "at a kink of the marking")


def _beside_jump(eq: Equilibrium, along: Network, contact: Contact) -> Branches:
    """The branches where a jump begins: on it, and below it, where its share of the time is 0."""
    own = [i for i, (link, _) in enumerate(_kinks(eq)) if link == contact.link]
    on, below = moving(eq, along, held=(contact,), chosen=[[0], [1]])
    distance = below.kinks[:, own[contact.surfaces[0]]]
    each = (_followed(below, [-distance]), _followed(on, [on.shares[:, 0]]))
    return Branches(each, "where the rest comes to a jump of the marking")
