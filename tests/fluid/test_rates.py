"""The right-hand side against equations written out by hand, at many states."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from jax.flatten_util import ravel_pytree

from fluidcc.fluid.delays import Past, State, Wire, picks
from fluidcc.fluid.rates import (
    FREE,
    HIGH,
    LOW,
    Modes,
    drift,
    flux,
    heard,
    queue_law_rate,
    touched,
    wire,
)
from fluidcc.fluid.senders import Sender
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Signal
from fluidcc.laws.loss import HalveOnly, Recovery
from fluidcc.laws.marking import EqualWindow, Plain
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, PerMark, Refractory
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno
from fluidcc.network import Flows, Link, Network
from fluidcc.symbolic import with_symbols

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
    u = ravel_pytree(Wire(rates, signals, (pace,) * len(net.links)))[0]
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


DRAWS = np.random.default_rng(7).uniform(size=(12, 6))
"""Shares of the ranges of states for the tests below; any numbers do."""


# -- published equations ----------------------------------------------------------------------


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


def ack_clocked(law, w, x, p):
    return x * ((1 - p) * law.c1 * w**law.alpha - p * law.c2 * w**law.beta)


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
    np.testing.assert_allclose(heard(flows, said), (mark, drop, 0.0), rtol=1e-12)
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


# -- loss -------------------------------------------------------------------------------------


def test_early_drops_thin_the_arrivals():
    net, w, q, v = single(feedback=Loss()), 14.0, 190.0, 425.0  # p = 0.05
    found = fluxes(net, state(w, q=q, v=v), seen(net, rate=50.0))
    offered = N * w / (T + q / C)
    np.testing.assert_allclose(found.drift.queues[0], offered * 0.95 - C, rtol=1e-12)
    ecn = fluxes(single(), state(w, q=q, v=v), seen(single(), rate=50.0))
    np.testing.assert_allclose(ecn.drift.queues[0], offered - C, rtol=1e-12)


@pytest.mark.parametrize("reaction", [PerMark(), OncePerRTT(growth="clean")], ids=lambda r: r.name)
def test_losses_halve_the_window_once_per_round_trip(reaction):
    w, x, p = 14.0, 50.0, 0.05
    net = single(feedback=Loss(), reaction=reaction, loss=HalveOnly())
    found = fluxes(net, state(w), seen(net, rate=x, mark=p)).drift.senders[0].law
    np.testing.assert_allclose(found, [x / w - x * (1 - (1 - p) ** w) / w * w / 2], rtol=1e-12)


@pytest.mark.parametrize("w", [2.0, 14.0])
@pytest.mark.parametrize("law", [Reno(), NewReno()], ids=lambda k: k.name)
def test_recovery_and_timeouts_after_losses(law, w):
    x, lost, q = 50.0, 0.05, 190.0
    net = single(law, feedback=Loss(), loss=Recovery(min_rto=0.3))
    found = fluxes(net, state(w, q=q), seen(net, rate=x, mark=lost))
    r, out = T + q / C, min(1.0, 3 / w)
    share = (1 - (1 - lost) ** w) / w  # indications per ACK
    trips = lost / share if law.name == "newreno" else 1.0
    series = 1 + sum(2**k * lost ** (k + 1) for k in range(6))
    rto = max(0.3, 2 * r) * series / (1 - lost)
    change = x * (1 / w - share * ((1 - out) * w / 2 + out * (w - 1)))
    np.testing.assert_allclose(found.drift.senders[0].law, [change], rtol=1e-12)
    busy = w / r * share * ((1 - out) * trips * r + out * rto)  # per second of sending
    np.testing.assert_allclose(found.wire.rates[0], [w / r / (1 + busy)], rtol=1e-12)


@pytest.mark.parametrize(("q", "over"), [(199.0, False), (200.0, True)])
def test_overflow_loses_the_excess(q, over):
    net, w = single(queue=Droptail(), buffer=200.0), 20.0
    found = fluxes(net, no_memory(w, q=q), seen(net, rate=50.0))
    offered = N * w / (T + q / C)
    assert offered > C
    expected = 1 - C / offered if over else 0.0
    np.testing.assert_allclose(found.wire.signals[0].drop, expected, rtol=1e-12)
    np.testing.assert_allclose(found.drift.queues[0], 0.0 if over else offered - C, rtol=1e-12)


def test_red_drops_everything_above_its_last_threshold():
    net = single()
    found = fluxes(net, state(14.0, v=701.0), seen(net, rate=50.0))
    np.testing.assert_allclose(found.wire.signals[0], (1.0, 1.0, 0.0), rtol=1e-14)
    np.testing.assert_allclose(found.drift.queues[0], -C, rtol=1e-14)


# -- bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "q", "moves"),
    [(5.0, 0.0, False), (20.0, 0.0, True), (5.0, 200.0, True), (20.0, 200.0, False)],
)
def test_queue_stays_within_its_buffer(w, q, moves):
    net = single(queue=Droptail(), buffer=200.0)
    found = fluxes(net, no_memory(w, q=q), seen(net, rate=50.0))
    raw = N * w / (T + q / C) - C
    np.testing.assert_allclose(found.queue_raw[0], raw, rtol=1e-12)
    np.testing.assert_allclose(found.drift.queues[0], raw if moves else 0.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("w", "p", "moves"),
    [(1.0, 1.0, False), (1.0, 0.0, True), (32.0, 0.0, False), (32.0, 1.0, True)],
)
def test_window_stays_within_its_bounds(w, p, moves):
    law = Reno(max_window=32.0)
    net = single(law)
    found = fluxes(net, state(w), seen(net, rate=50.0, mark=p))
    raw = ack_clocked(law, w, 50.0, p)
    np.testing.assert_allclose(found.window_raw[0], [raw], rtol=1e-12)
    np.testing.assert_allclose(found.drift.senders[0].law, [raw if moves else 0.0], rtol=1e-12)


MODES = [
    (14.0, 100.0, FREE, FREE),
    (1.0, 0.0, LOW, LOW),
    (32.0, 200.0, HIGH, HIGH),
]


@pytest.mark.parametrize(("w", "q", "window_mode", "queue_mode"), MODES)
def test_given_modes_agree_with_those_that_the_state_decides(w, q, window_mode, queue_mode):
    net = single(Reno(max_window=32.0), queue=Droptail(), buffer=200.0)
    past = seen(net, rate=50.0, mark=1.0 if window_mode == LOW else 0.0)
    modes = Modes((jnp.asarray(queue_mode),), (jnp.array([window_mode]),))
    y = no_memory(w, q=q)
    for given, decided in zip(
        jax.tree.leaves(fluxes(net, y, past, modes)), jax.tree.leaves(fluxes(net, y, past)),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(given, decided)


def test_free_modes_let_the_raw_change_through():
    net = single(queue=Droptail(), buffer=200.0)
    free = Modes((jnp.asarray(FREE),), (jnp.array([FREE]),))
    found = fluxes(net, no_memory(1.0, q=200.0), seen(net, rate=50.0, mark=1.0), free)
    np.testing.assert_array_equal(found.drift.queues[0], found.queue_raw[0])
    np.testing.assert_array_equal(found.drift.senders[0].law, found.window_raw[0])
    assert float(found.drift.senders[0].law[0]) < 0


# -- slopes -----------------------------------------------------------------------------------


def test_pole_of_red_by_algebra():
    q, v, c = sp.symbols("q v C", positive=True)
    law = with_symbols(RED())
    found = queue_law_rate(Link(law, capacity=c), v, q, 0)
    assert sp.simplify(found + c * sp.log(1 - law.w_q) * (q - v)) == 0


@pytest.mark.parametrize("rates", ["ack", "mgt", "self_clocked"])
def test_derivatives_are_finite_where_nothing_arrives(rates):
    net = single(ECNMod(), queue=Threshold(at=0.0), rates=rates, buffer=50.0)

    def both(y, past):
        return drift(net, y, past), wire(net, y, past)

    slope = eqx.filter_jit(jax.jacfwd(both, argnums=(0, 1)))
    for mark in (0.0, 1.0):
        for q in (0.0, 50.0):
            values = slope(no_memory(1.0, q=q), seen(net, rate=0.0, mark=mark, drop=mark))
            assert all(np.isfinite(v).all() for v in jax.tree.leaves(values))


def test_drift_and_wire_are_those_of_the_flux():
    net = single()
    y, past = state(14.0), seen(net, rate=50.0, mark=0.1)
    both = flux(net, y, past)
    jax.tree.map(np.testing.assert_array_equal, drift(net, y, past), both.drift)
    jax.tree.map(np.testing.assert_array_equal, wire(net, y, past), both.wire)


@pytest.mark.parametrize("w", [2.0, 14.0])
def test_a_router_that_quenches_tells_of_drops_at_once(w):
    """Half of the window, at most once per round trip, without a timeout whatever the window."""
    x, carried, lost = 50.0, 40.0, 0.1
    net = single(reaction=PerMark(growth="all"), feedback=Backward())
    found = fluxes(net, state(w), seen(net, rate=x, drop=lost, carried=carried))
    share = (1 - (1 - lost) ** w) / w
    change = x / w - carried * share * w / 2
    np.testing.assert_allclose(found.drift.senders[0].law, [change], rtol=1e-12)
    np.testing.assert_allclose(found.wire.rates[0], [w / (T + 190.0 / C)], rtol=1e-12)
