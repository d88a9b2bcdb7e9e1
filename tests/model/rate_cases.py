"""One link, states and pasts, to ask the right-hand side about."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Signal
from fluidcc.laws.marking import Plain
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import Past, State, make_wire, picks
from fluidcc.model.rates import (
    flux,
)
from fluidcc.model.senders import Sender
from fluidcc.scenario.network import Flows, Link, Network

C, N, T = 3750.0, 60.0, 0.2  # packet/s, flows, s
HOLLOT = RED(min_th=150.0, max_th=700.0, p_max=0.1, w_q=1.33e-6)

fluxes = eqx.filter_jit(flux)


def single(
    window=Reno(), queue=HOLLOT, *, reaction=PerMark(), feedback=MarkTail(), marking=Plain(),  # noqa: B008
    rates="ack", buffer=np.inf, n=(N,), rtt=(T,), access=None, **more,
) -> Network:  # fmt: skip
    """One group of flows over one link; numbers are arrays, so that equal structures share code."""
    flows = Flows(
        window, n=jnp.array(n), rtt=jnp.array(rtt), reaction=reaction, feedback=feedback,
        marking=marking, access_delay=access, **more,
    )  # fmt: skip
    return Network((Link(queue, capacity=C, buffer=buffer),), (flows,), rates=rates)


def seen(net: Network, *, rate, mark=0.0, drop=0.0, pace=1.0, carried=None) -> Past:
    """A past in which every flow sent at `rate` and every link said `mark` and `drop`."""
    rates = tuple(jnp.broadcast_to(jnp.asarray(rate, float), np.shape(f.rtt)) for f in net.flows)
    signals = tuple(Signal(mark, drop) for _ in net.links)
    u = ravel_pytree(make_wire(net, rates, signals, (pace,) * len(net.links)))[0]
    past = jax.tree.map(lambda index: u[index], picks(net))
    if carried is None:
        return past
    return past._replace(carried=jax.tree.map(lambda r: 0.0 * r + carried, past.carried))


def state(*windows, q=190.0, v=195.0) -> State:
    return State(
        (Sender(jnp.array(windows, float)),), (jnp.asarray(q, float),), (jnp.asarray(v, float),)
    )


def no_memory(*windows, q) -> State:
    return state(*windows, q=q)._replace(laws=((),))


def ack_clocked(law, w, x, p):
    return x * ((1 - p) * law.c1 * w**law.alpha - p * law.c2 * w**law.beta)
