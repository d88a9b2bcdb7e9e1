"""Networks of one link, and what is left of their changes at rest."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.rest import state_at_rest
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import make_wire, picks
from fluidcc.model.fluid import with_mean_calls
from fluidcc.model.rates import flux
from fluidcc.scenario.network import Flows, Link, Network, numeric

N, T, C = 60.0, 0.2, 3750.0
NAMES = ("a", "b")


def flows(window=None, *, n=(N,), rtt=(T,), **parts):
    parts = {"reaction": PerMark(), **parts}
    return Flows(Reno() if window is None else window, n=np.array(n), rtt=np.array(rtt), **parts)


def one_link(queue, *groups, capacity=C, buffer=800.0, **parts):
    groups = groups or (flows(),)
    link = Link(queue, capacity=capacity, buffer=buffer, **parts)
    return Network((link,), groups, flow_names=NAMES[: len(groups)])


def found(net):
    """Equilibrium, its only link and its first group."""
    eq = equilibrium(net)
    return eq, eq.links["bottleneck"], eq.flows["a"]


def drift(net, eq):
    """All changes per second of the fluid model at the equilibrium, over the rates of packets."""
    arrays = with_mean_calls(numeric(net))
    paces = tuple(jnp.ones(()) for _ in net.links)
    u = ravel_pytree(make_wire(net, eq.rest.rates, eq.rest.signals, paces))
    past = jax.tree.map(lambda index: u[0][index], picks(net))
    change = flux(arrays, state_at_rest(arrays, eq.rest), past, ticks=True).drift
    return np.concatenate([np.ravel(v) for v in jax.tree.leaves(change.senders + change.laws)])
