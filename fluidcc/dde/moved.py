"""A located run that goes on from a state moved at its end."""

import jax.numpy as jnp
from jax import Array

from fluidcc.dde import track as tr
from fluidcc.dde.located import Machine
from fluidcc.dde.search import fresh
from fluidcc.dde.trial import Carry


def moved(machine: Machine, carry: Carry, by: Array) -> Carry:
    """The carry with its state moved by (n,), inside its bounds, to go on up to the machine's end.

    Whatever is read may jump there: a breaking point of order 0.
    """
    system, args, t = machine.system, machine.args, carry.t
    orders = jnp.zeros((carry.track.breaks.shape[1] - 2,), t.dtype)
    track = tr.add_break(carry.track, jnp.ones((), bool), t, carry.node, orders)
    reading = machine.read_on(track, carry.reading, jnp.zeros((machine.lags,), bool))
    y, mode, h = carry.y + by, carry.mode, machine.cap(t)
    y = y if system.limit is None else system.limit(y, mode, args)
    carry = carry._replace(y=y, reading=reading, track=track, h=h, done=machine.t1 <= t)
    z, lags, _ = machine.delayed(carry, t, y)
    if system.events is not None:
        mode = system.events.initial(t, y, z, args).astype(mode.dtype)
    k = machine.slope(t, y, z, mode, carry.signs)
    here = machine.remembered(carry, t, y, k, mode, 1.0)
    track = tr.write(track, carry.node, tr.begun(t, here, h))
    carry = carry._replace(mode=mode, k=k, here=here, track=track)
    return carry._replace(search=fresh(machine.guards(carry, t, y, z, t - lags)))
