"""Where each number of a network's state, wire and past stands on flat vectors."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from fluidcc.fluid.delays import Past, State, Wire, picks, round_trip
from fluidcc.fluid.rates import flux
from fluidcc.laws.law import Signal
from fluidcc.network import Flows, Network
from fluidcc.ops import Num

_SETTLING = 4  # passes; the wire of a constant history depends on itself through few links


def initial_state(net: Network) -> State:
    """The state before the start: the scenario's constant history."""
    shapes = (jnp.shape(f.rtt) for f in net.flows)
    senders = tuple(
        f.window.start(jnp.broadcast_to(jnp.asarray(f.initial.window, float), shape))
        for f, shape in zip(net.flows, shapes, strict=True)
    )
    queues = tuple(jnp.asarray(link.initial.queue, float) for link in net.links)
    laws = tuple(link.queue.start(jnp.asarray(link.initial.average, float)) for link in net.links)
    return State(senders, queues, laws)


def starts_late(flows: Flows) -> Num:
    """Whether flows start at one time after 0. Starts drawn from a range are for packets alone."""
    return (flows.start.low == flows.start.high) & (flows.start.low > 0)


def initial_wire(net: Network, y: State) -> Wire:
    """What travels before the start, when state `y` has lasted for ever: windows over round trips,
    and the signals that follow.
    """
    rates = tuple(
        jnp.where(starts_late(f), 0.0, f.window.window(s) / round_trip(net, f, y.queues))
        for f, s in zip(net.flows, y.senders, strict=True)
    )
    nothing, one = jnp.asarray(0.0), jnp.asarray(1.0)
    signals = tuple(Signal(*(nothing for _ in Signal._fields)) for _ in net.links)
    wire = Wire(rates, signals, tuple(one for _ in net.links))
    index = picks(net)
    for _ in range(_SETTLING):
        flat = ravel_pytree(wire)[0]
        past = jax.tree.map(lambda i, flat=flat: flat[i], index)
        wire = flux(net, y, past).wire._replace(rates=rates)
    return wire


class Layout:
    """The places on flat vectors, from a network of the right structure.

    Numbers of the past that no law can see are not looked up: arrivals from a source at its link,
    paces unless they clock the senders, and carriers that are the acknowledged packets.
    """

    def __init__(self, net: Network) -> None:
        y = initial_state(net)
        self.unflatten_state = ravel_pytree(y)[1]
        wire = ravel_pytree(initial_wire(net, y))[0]
        self.queue_columns = tuple(range(wire.size, wire.size + len(net.links)))
        index, treedef = jax.tree.flatten(self._seen(net, picks(net)), is_leaf=lambda x: x is None)
        self.treedef = treedef
        self.shapes = [None if i is None else np.shape(i) for i in index]
        flat = [np.ravel(i) for i in index if i is not None]
        self.columns = tuple((int(c),) for c in np.concatenate(flat))

    @staticmethod
    def _seen(net: Network, past: Past) -> Past:
        """The past with None in place of what nobody sees."""
        quench = [f.feedback.quench for f in net.flows]
        direct = [f.access_delay is None for f in net.flows]
        paced = net.rates == "self_clocked"
        return past._replace(
            carried=tuple(
                v if q else (None,) * len(v) for v, q in zip(past.carried, quench, strict=True)
            ),
            arriving=tuple(
                (None, *v[1:]) if d else v for v, d in zip(past.arriving, direct, strict=True)
            ),
            paces=past.paces if paced else tuple((None,) * len(v) for v in past.paces),
        )

    def flatten_past(self, net: Network, past: Past) -> Array:
        """The numbers of the past that are looked up, (P,)."""
        leaves = jax.tree.leaves(self._seen(net, past))
        return jnp.concatenate([jnp.ravel(v) for v in leaves])

    def past(self, net: Network, z: Array) -> Past:
        """The past from its looked-up numbers `z` (P,)."""
        leaves, at = [], 0
        for shape in self.shapes:
            size = 0 if shape is None else int(np.prod(shape))
            leaves.append(None if shape is None else z[at : at + size].reshape(shape))
            at += size
        past: Past = jax.tree.unflatten(self.treedef, leaves)
        none, one = jnp.asarray(0.0), jnp.asarray(1.0)

        def filled(value: Any, default: Any) -> Any:
            return default if value is None else value

        return past._replace(
            carried=tuple(
                tuple(filled(v, acked) for v in own)
                for own, acked in zip(past.carried, past.acked, strict=True)
            ),
            arriving=tuple(tuple(filled(v, none) for v in own) for own in past.arriving),
            paces=tuple(tuple(filled(v, one) for v in own) for own in past.paces),
        )
