"""The sawtooth of senders that increase below full load and decrease at it, by their own rules."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fluidcc.analysis.rest import Rest
from fluidcc.analysis.sender_rest import like
from fluidcc.laws.law import Ack, Signal
from fluidcc.model.delays import round_trip
from fluidcc.model.senders import sender_change
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

_BELOW = math.nextafter(1.0, 0.0)


class Sawtooth(NamedTuple):
    """One common decrease from full load and the way back."""

    low: float  # share of the load that is left
    time: float  # s until full load is back


@jax.jit
def _turns(net: Network, rest: Rest) -> tuple[Num, Num, Num]:
    """Total rate of the flows, its change by one decrease, and its growth per second."""
    total, fall, growth = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
    for flows, s, rate in zip(net.flows, rest.senders, rest.rates, strict=True):
        rtt, law = round_trip(net, flows, tuple(rest.queues)), flows.window
        share = flows.n / rtt
        change = sender_change(
            flows, s, growth=rate, acks=rate, carried=rate, signal=like(Signal(load=_BELOW), rtt),
            rtt=rtt,
        )  # fmt: skip
        tick = law.on_tick(s.law, Ack(1.0, 0.0, rtt, 1.0))
        total = total + jnp.sum(flows.n * rate)
        fall = fall + jnp.sum(share * law.window(tick))
        growth = growth + jnp.sum(share * law.window(change.law))
    return total, fall, growth


def sawtooth(net: Network, rest: Rest) -> Sawtooth | None:
    """The sawtooth at full load of one link; None where nothing decreases at once.

    For BMCC (Qazi et al., 2010, eqs 4 and 5) the time is gamma C (1 - beta) t_p^2/n.
    """
    total, fall, growth = (float(v) for v in _turns(net, rest))
    if fall >= 0 or growth <= 0:
        return None
    return Sawtooth(1 + fall / total, -fall / growth)
