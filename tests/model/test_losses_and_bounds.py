"""The right-hand side under losses and at the bounds of queues and windows, by hand."""

import numpy as np
import pytest
from rate_cases import C, N, T, ack_clocked, fluxes, no_memory, seen, single, state

from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.loss import HalveOnly, Recovery
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.reno import Reno


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
