"""One link, states and pasts, to ask the right-hand side about."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Signal
from fluidcc.laws.marking import Plain
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, PerMark, Refractory
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import DelayedInputs, State, make_outputs, output_indices
from fluidcc.model.rates import (
    Sender,
    flux,
    received,
    touched,
)
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


def seen(net: Network, *, rate, mark=0.0, drop=0.0, pace=1.0, carried=None) -> DelayedInputs:
    """A past in which every flow sent at `rate` and every link said `mark` and `drop`."""
    rates = tuple(jnp.broadcast_to(jnp.asarray(rate, float), np.shape(f.rtt)) for f in net.flows)
    signals = tuple(Signal(mark, drop) for _ in net.links)
    u = ravel_pytree(make_outputs(net, rates, signals, (pace,) * len(net.links)))[0]
    past = jax.tree.map(lambda index: u[index], output_indices(net))
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


# -- The right-hand side against equations written out by hand, at many states
DRAWS = np.random.default_rng(7).uniform(size=(12, 6))
"""Shares of the ranges of states for the tests below; any numbers do."""


@pytest.mark.parametrize("u", DRAWS)
def test_misra_gong_towsley(u):
    w, q, v = 2 + 30 * u[0], 600 * u[1], 150 + 500 * u[2]
    w_old, q_old, v_old = 2 + 30 * u[3], 600 * u[4], 150 + 500 * u[5]
    r, r_old = T + q / C, T + q_old / C
    p_old = 0.1 / 550 * (v_old - 150)
    net = single(rates="mgt")
    found = fluxes(net, state(w, q=q, v=v), seen(net, rate=w_old / r_old, mark=p_old))
    np.testing.assert_allclose(found.drift.senders[0].law, [1 / r - w / 2 * w_old / r_old * p_old])
    np.testing.assert_allclose(found.drift.queues[0], N * w / r - C, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.drift.laws[0], -C * np.log1p(-1.33e-6) * (q - v), rtol=1e-9)
    np.testing.assert_allclose(found.outputs.rates[0], [w / r], rtol=1e-14)
    np.testing.assert_allclose(found.outputs.signals[0].mark, 0.1 / 550 * (v - 150), rtol=1e-12)


@pytest.mark.parametrize("u", DRAWS[:4])
@pytest.mark.parametrize(
    "law", [ECNMod(), Polynomial(c1=0.5, alpha=-0.4, c2=0.3, beta=0.8)], ids=lambda k: k.name
)
def test_misra_ott_eq1(law, u):
    w, x, p = 2 + 30 * u[0], 10 + 90 * u[1], u[2]
    net = single(law)
    found = fluxes(net, state(w), seen(net, rate=x, mark=p)).drift.senders[0].law
    np.testing.assert_allclose(found, [ack_clocked(law, w, x, p)], rtol=1e-12)


@pytest.mark.parametrize("u", DRAWS[:4])
def test_reactions_of_tcp(u):
    w, x, p = 2 + 30 * u[0], 10 + 90 * u[1], u[2]
    halving = {OncePerRTT(): w / 2 * (1 - (1 - p) ** w) / w, Refractory(): w / 2 * p / (1 + w * p)}
    for reaction, decrease in halving.items():
        net = single(reaction=reaction)
        found = fluxes(net, state(w), seen(net, rate=x, mark=p)).drift.senders[0].law
        np.testing.assert_allclose(found, [x * (1 / w - decrease)], rtol=1e-11)


# -- clocks and groups
@pytest.mark.parametrize("load", [0.5, 1.0, 1.7])
def test_self_clocked_queue_is_a_function_of_the_window(load):
    # one class, f = 0, busy link: ACKs come at C/N, so q = N W - C T whatever was sent
    p, w, offered = 0.02, 12.0, load * C
    net = single(rates="self_clocked")
    past = seen(net, rate=offered / N, mark=p, pace=C / offered)
    found = fluxes(net, state(w), past)
    growth = ack_clocked(Polynomial(), w, C / N, p)
    np.testing.assert_allclose(found.drift.senders[0].law, [growth], rtol=1e-12)
    np.testing.assert_allclose(found.outputs.rates[0], [C / N + growth], rtol=1e-12)
    np.testing.assert_allclose(found.drift.queues[0], N * growth, rtol=1e-10)


def two_links(feedback=MarkTail(), queue=HOLLOT) -> Network:  # noqa: B008
    links = (Link(queue, capacity=C), Link(queue, capacity=C / 2))
    flows = Flows(ECNMod(), n=jnp.array([N]), rtt=jnp.array([T]), route=(0, 1), feedback=feedback)
    return Network(links, (flows,), link_names=("near", "far"))


@pytest.mark.parametrize(
    "feedback", [MarkTail(), MarkFront(), Backward(), ReceiverWindow(), Loss()]
)
def test_signals_are_heard_as_their_carriers_fare(feedback):
    """All outcomes of two links, each of which marks and loses packets independently."""
    said = (Signal(0.3, 0.2), Signal(0.1, 0.4))
    mark = drop = either = 0.0
    chances = [p for signal in said for p in (signal.mark, signal.drop)]
    for outcome in itertools.product((False, True), repeat=4):
        parts = [p if o else 1 - p for p, o in zip(chances, outcome, strict=True)]
        marked, lost = outcome[0] or outcome[2], outcome[1] or outcome[3]
        if feedback.name == "loss":
            marked, lost = False, marked or lost
        comes_back = marked and not (lost and feedback.name in ("mark_tail", "mark_front"))
        mark += comes_back * np.prod(parts)
        drop += lost * np.prod(parts)
        either += (marked or lost) * np.prod(parts)
    flows = two_links(feedback).flows[0]
    np.testing.assert_allclose(received(flows, said)[:2], (mark, drop), rtol=1e-12)
    np.testing.assert_allclose(touched(flows, said), either, rtol=1e-12)


@pytest.mark.parametrize("rates", ["ack", "mgt", "self_clocked"])
def test_derivatives_are_finite_where_nothing_arrives(rates):
    net = single(ECNMod(), queue=Threshold(at=0.0), rates=rates, buffer=50.0)

    def both(y, past):
        now = flux(net, y, past)
        return now.drift, now.outputs

    slope = eqx.filter_jit(jax.jacfwd(both, argnums=(0, 1)))
    for mark in (0.0, 1.0):
        for q in (0.0, 50.0):
            values = slope(no_memory(1.0, q=q), seen(net, rate=0.0, mark=mark, drop=mark))
            assert all(np.isfinite(v).all() for v in jax.tree.leaves(values))
