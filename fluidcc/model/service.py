"""The rate at which links serve best-effort traffic beside voice calls."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.ops import Num
from fluidcc.scenario.network import Link, Network

NEVER = 1e30
"""A time [s] that no run reaches, and that arithmetic survives."""


def varies(link: Link) -> bool:
    """Whether the rate of the link's calls changes at random in simulations."""
    return link.voice is not None and link.voice.process == "modulated"


def _beside(link: Link, calls: Num) -> Link:
    """The link as its flows see it while the calls send `calls` packets per second."""
    assert link.voice is not None
    left, mixed = link.voice.left(link.capacity, calls), link.voice.mixed(calls)
    return dataclasses.replace(link, capacity=left, cross=link.cross + mixed, voice=None)


def with_mean_calls(net: Network, *, varying: bool = True) -> Network:
    """The network with calls at their mean rate: what flows see of its links.

    Without `varying`, links whose calls change at random stay as they are.
    """
    links = tuple(
        link if link.voice is None or (varies(link) and not varying)
        else _beside(link, link.voice.mean(link.packet_size))
        for link in net.links
    )  # fmt: skip
    return dataclasses.replace(net, links=links)


def with_service(net: Network, services: tuple) -> Network:
    """The network as its flows see it now.

    `services` has the present rate of the calls [packet/s] for links where it varies, `()` for
    others; or no entries at all.
    """
    if not services:
        return net
    links = tuple(
        link if isinstance(calls, tuple) else _beside(link, calls)
        for link, calls in zip(net.links, services, strict=True)
    )
    return dataclasses.replace(net, links=links)


def course(link: Link, until: float) -> Any:
    """Times (E,) [s] at which the rate of the calls changes and rates (E + 1,) [packet/s]; `()`
    where it does not vary. Padded, so that courses of about one length share compiled code.
    """
    if not varies(link):
        return ()
    assert link.voice is not None
    held = link.voice.path(until, float(link.packet_size))
    more = (1 << len(held.times).bit_length()) - len(held.times)
    times = np.concatenate([held.times, np.full(more, NEVER)])
    rates = np.concatenate([held.rates, np.full(more, held.rates[-1])])
    return jnp.asarray(times), jnp.asarray(rates)
