"""Trajectories that start beside an equilibrium, against the roots of its linearisation."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.rest import state_at_rest
from fluidcc.analysis.stability import stability
from fluidcc.fluid.integrate import integrate
from fluidcc.fluid.layout import initial_wire
from fluidcc.fluid.meshes import Uniform
from fluidcc.fluid.network_system import Numbers, network_system
from fluidcc.fluid.status import Status
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.network import Flows, Link, Network


def test_avq_comes_back_to_its_rest_at_the_rate_of_its_rightmost_root():
    """Kunniyur and Srikant (2001), their link and gains: the virtual rate is the slow number."""
    flows = Flows(
        Reno(), n=np.array([20.0]), rtt=np.array([0.08]), reaction=OncePerRTT(), access_delay=0.001
    )
    net = Network((Link(AVQ(), capacity=1250.0, buffer=100.0),), (flows,))
    eq, found = equilibrium(net), stability(net)
    assert found.unstable == 0 and found.rightmost is not None and found.rightmost.imag == 0
    system, _, numbers = network_system(net)
    rest = state_at_rest(numbers.net, eq.rest)
    flat = ravel_pytree(rest)[0]
    before = ravel_pytree(initial_wire(numbers.net, rest))[0]
    numbers = Numbers(numbers.own._replace(before=before))
    times = jnp.linspace(0.0, 16.0, 65)
    beside = flat.at[-1].multiply(1 - 1e-4)  # a slower virtual link
    run = integrate(system, beside, 0.0, 16.0, numbers, mesh=Uniform(0.0009), ts=times)
    assert int(run.status) == Status.ok
    away = np.abs(run.y[:, -1] - flat[-1])
    late = times >= 8.0
    rate = np.polyfit(np.asarray(times[late]), np.log(away[late]), 1)[0]
    assert rate == pytest.approx(found.rightmost.real, rel=1e-4)
