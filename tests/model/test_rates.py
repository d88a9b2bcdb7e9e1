"""The right-hand side against equations written out by hand, at many states."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from rate_cases import HOLLOT, C, N, T, ack_clocked, fluxes, no_memory, seen, single, state

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Signal
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, PerMark, Refractory
from fluidcc.laws.symbolic import with_symbols
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno
from fluidcc.model.delays import State
from fluidcc.model.rates import (
    flux,
    heard,
    queue_law_rate,
    touched,
)
from fluidcc.model.senders import Sender
from fluidcc.scenario.network import Flows, Link, Network

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
    np.testing.assert_allclose(found.wire.rates[0], [w / r], rtol=1e-14)
    np.testing.assert_allclose(found.wire.signals[0].mark, 0.1 / 550 * (v - 150), rtol=1e-12)


def test_published_equilibrium_of_tcp_with_red_is_at_rest():
    # (q - 150)(C T + q)^2 = 2 N^2 550/0.1, a cubic
    q = real_root()
    assert q == pytest.approx(194.4000, abs=5e-5)
    p = 0.1 / 550 * (q - 150)
    w = np.sqrt(2 / p)
    assert (p, w) == (pytest.approx(0.00807273, abs=5e-9), pytest.approx(15.7400, abs=5e-5))
    net = single(rates="mgt")
    change = fluxes(net, state(w, q=q, v=q), seen(net, rate=w / (T + q / C), mark=p)).drift
    for part, size in zip(jax.tree.leaves(change), (w, C, q), strict=True):
        np.testing.assert_allclose(part, 0.0, atol=1e-12 * size)


def real_root() -> float:
    roots = np.roots(np.polysub(np.polymul([1, -150], np.polymul([1, C * T], [1, C * T])),
                                [2 * N**2 * 550 / 0.1]))  # fmt: skip
    (real,) = roots[np.isreal(roots)].real
    return float(real)


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
def test_equal_window_marks_by_eq7(u):
    w, x, p, law = 2 + 30 * u[0], 10 + 90 * u[1], u[2], ECNMod(c1=0.25)
    net = single(law, marking=EqualWindow())
    p_mod = 1 / (1 + law.c2 / law.c1 * np.sqrt(2 * (1 - p) / p))
    found = fluxes(net, state(w), seen(net, rate=x, mark=p)).drift.senders[0].law
    np.testing.assert_allclose(found, [ack_clocked(law, w, x, p_mod)], rtol=1e-11)


@pytest.mark.parametrize("u", DRAWS[:4])
def test_reactions_of_tcp(u):
    w, x, p = 2 + 30 * u[0], 10 + 90 * u[1], u[2]
    halving = {OncePerRTT(): w / 2 * (1 - (1 - p) ** w) / w, Refractory(): w / 2 * p / (1 + w * p)}
    for reaction, decrease in halving.items():
        net = single(reaction=reaction)
        found = fluxes(net, state(w), seen(net, rate=x, mark=p)).drift.senders[0].law
        np.testing.assert_allclose(found, [x * (1 / w - decrease)], rtol=1e-11)


@pytest.mark.parametrize("u", DRAWS[:4])
def test_backward_notification_grows_on_acks_and_halves_on_quenches(u):
    w, x, carried, p = 2 + 30 * u[0], 10 + 90 * u[1], 10 + 90 * u[3], u[2]
    net = single(reaction=PerMark(growth="all"), feedback=Backward())
    found = fluxes(net, state(w), seen(net, rate=x, mark=p, carried=carried)).drift.senders[0].law
    np.testing.assert_allclose(found, [x / w - w / 2 * carried * p], rtol=1e-12)


# -- clocks and groups ------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 1.0, 1.7])
def test_self_clocked_queue_is_a_function_of_the_window(load):
    # one class, f = 0, busy link: ACKs come at C/N, so q = N W - C T whatever was sent
    p, w, offered = 0.02, 12.0, load * C
    net = single(rates="self_clocked")
    past = seen(net, rate=offered / N, mark=p, pace=C / offered)
    found = fluxes(net, state(w), past)
    growth = ack_clocked(Polynomial(), w, C / N, p)
    np.testing.assert_allclose(found.drift.senders[0].law, [growth], rtol=1e-12)
    np.testing.assert_allclose(found.wire.rates[0], [C / N + growth], rtol=1e-12)
    np.testing.assert_allclose(found.drift.queues[0], N * growth, rtol=1e-10)


def test_pace_of_a_link():
    net = single(queue=Droptail())
    busy = fluxes(net, no_memory(20.0, q=100.0), seen(net, rate=0.0)).wire
    offered = N * 20.0 / (T + 100.0 / C)
    np.testing.assert_allclose(busy.paces[0], C / offered, rtol=1e-14)
    idle = fluxes(net, no_memory(4.0, q=0.0), seen(net, rate=0.0)).wire
    assert float(idle.paces[0]) == 1.0


def test_groups_with_their_own_round_trips():
    n, rtt, w = (10.0, 20.0, 30.0), np.array([0.05, 0.1, 0.4]), np.array([4.0, 8.0, 16.0])
    x, p, q = np.array([40.0, 60.0, 30.0]), 0.1, 190.0
    net = single(ECNMod(), n=n, rtt=tuple(rtt))
    found = fluxes(net, state(*w, q=q), seen(net, rate=x, mark=p))
    np.testing.assert_allclose(
        found.drift.senders[0].law, ack_clocked(ECNMod(), w, x, p), rtol=1e-12
    )
    rates = w / (rtt + q / C)
    np.testing.assert_allclose(found.wire.rates[0], rates, rtol=1e-14)
    np.testing.assert_allclose(found.drift.queues[0], np.dot(n, rates) - C, rtol=1e-12)


def test_sources_away_from_the_link_arrive_late():
    net = single(access=0.01)
    found = fluxes(net, state(12.0), seen(net, rate=70.0))
    np.testing.assert_allclose(found.drift.queues[0], N * 70.0 - C, rtol=1e-12)


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
    np.testing.assert_allclose(heard(flows, said)[:2], (mark, drop), rtol=1e-12)
    np.testing.assert_allclose(touched(flows, said), either, rtol=1e-12)


def test_marks_of_links_in_series_combine():
    net, w, x = two_links(), 12.0, 50.0
    past = seen(net, rate=x)
    both = tuple(Signal(jnp.array([p]), jnp.array([0.0])) for p in (0.1, 0.3))
    y = State((Sender(jnp.array([w])),), (jnp.asarray(20.0), jnp.asarray(30.0)),
              (jnp.asarray(200.0), jnp.asarray(300.0)))  # fmt: skip
    found = fluxes(net, y, past._replace(heard=(both,)))
    law = ECNMod()
    np.testing.assert_allclose(
        found.drift.senders[0].law, [ack_clocked(law, w, x, 1 - 0.9 * 0.7)], rtol=1e-12
    )
    rate = w / (T + 20.0 / C + 30.0 / (C / 2))
    np.testing.assert_allclose(found.wire.rates[0], [rate], rtol=1e-14)
    np.testing.assert_allclose(found.drift.queues[0], N * rate - C, rtol=1e-12)
    np.testing.assert_allclose(found.drift.queues[1], N * x - C / 2, rtol=1e-12)  # sent earlier
    marks = [s.mark for s in found.wire.signals]
    np.testing.assert_allclose(marks, 0.1 / 550 * np.array([50.0, 150.0]), rtol=1e-12)


def test_a_link_gets_what_those_before_it_let_through():
    net, x, pace = two_links(feedback=Loss()), 50.0, 0.8
    past = seen(net, rate=x, mark=0.05, drop=0.1, pace=pace)
    y = State((Sender(jnp.array([12.0])),), (jnp.asarray(20.0), jnp.asarray(30.0)),
              (jnp.asarray(200.0), jnp.asarray(150.0)))  # fmt: skip
    found = fluxes(net, y, past)
    np.testing.assert_allclose(found.queue_raw[1], N * x * 0.95 * 0.9 * pace - C / 2, rtol=1e-12)


def test_quenches_of_links_in_series_come_with_their_own_carriers():
    """Two routers quench packets sent at different times; each signal comes at its own rate."""
    flows = Flows(
        Reno(), n=jnp.array([N]), rtt=jnp.array([T]), route=(0, 1), feedback=Backward(),
        reaction=PerMark(growth="all"),
    )  # fmt: skip
    net = Network(two_links().links, (flows,), link_names=("near", "far"))
    w, x = 12.0, 50.0
    past = seen(net, rate=x)
    said = tuple(Signal(jnp.array([p]), jnp.array([0.0]), jnp.array([0.0])) for p in (0.01, 0.03))
    past = past._replace(heard=(said,), carried=((jnp.array([40.0]), jnp.array([60.0])),))
    y = State((Sender(jnp.array([w])),), (jnp.asarray(20.0), jnp.asarray(30.0)),
              (jnp.asarray(200.0), jnp.asarray(300.0)))  # fmt: skip
    found = fluxes(net, y, past).drift.senders[0].law
    either = 1 - 0.99 * 0.97
    quenches = (40.0 * 0.01 + 60.0 * 0.03) / 0.04 * either
    np.testing.assert_allclose(found, [x / w - w / 2 * quenches], rtol=1e-12)


def test_pole_of_red_by_algebra():
    q, v, c = sp.symbols("q v C", positive=True)
    law = with_symbols(RED())
    found = queue_law_rate(Link(law, capacity=c), v, q, 0)
    assert sp.simplify(found + c * sp.log(1 - law.w_q) * (q - v)) == 0


@pytest.mark.parametrize("rates", ["ack", "mgt", "self_clocked"])
def test_derivatives_are_finite_where_nothing_arrives(rates):
    net = single(ECNMod(), queue=Threshold(at=0.0), rates=rates, buffer=50.0)

    def both(y, past):
        now = flux(net, y, past)
        return now.drift, now.wire

    slope = eqx.filter_jit(jax.jacfwd(both, argnums=(0, 1)))
    for mark in (0.0, 1.0):
        for q in (0.0, 50.0):
            values = slope(no_memory(1.0, q=q), seen(net, rate=0.0, mark=mark, drop=mark))
            assert all(np.isfinite(v).all() for v in jax.tree.leaves(values))
