"""FAST TCP and Vegas, window laws that read the queueing delay, through every engine.

Each flow of FAST keeps alpha packets of its own in the queues: W d/R = alpha, with d the queueing
delay of its path (Wei, Jin, Low and Hegde, 2006), and each of Vegas alpha to beta of them. Low,
Peterson and Wang (2002) have the equilibrium: proportional fairness with prices d.
"""

import cmath

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.check.checks import RULES, Subject
from fluidcc.laws import FAST, Ack, Droptail, OncePerRTT, Vegas
from fluidcc.scenario.network import FlowsInitial

C, ALPHA = 1250.0, 10.0  # packet/s, packets


class Undeclared(FAST):
    name = "undeclared"
    reads = ("mark", "drop")


def group(n=4.0, rtt=(0.1,), route=(0,), window=50.0, g=0.5, **more) -> fc.Flows:
    return fc.Flows(
        FAST(alpha=ALPHA, gamma=g), n=np.full(len(rtt), n), rtt=np.array(rtt), route=route,
        reaction=OncePerRTT(), initial=FlowsInitial(window=window), **more,
    )  # fmt: skip


def single(**more) -> fc.Network:
    return fc.Network((fc.Link(Droptail(), capacity=C, buffer=1000.0),), (group(**more),))


def test_every_flow_keeps_its_packets_in_the_queue():
    eq = fc.equilibrium(single(n=3.0, rtt=(0.05, 0.2)))
    queue, rtt = 6 * ALPHA, np.array([0.05, 0.2]) + 6 * ALPHA / C
    assert eq.status == "regular"
    assert eq.links["bottleneck"].queue == pytest.approx(queue, rel=1e-9)
    np.testing.assert_allclose(eq.flows["flows"].window, ALPHA * rtt * C / queue, rtol=1e-9)


def parking_lot() -> fc.Network:
    """One group over two links, beside one on each."""
    links = tuple(fc.Link(Droptail(), capacity=C, delay=0.01, buffer=1000.0) for _ in range(2))
    routes = ((2.0, (0, 1)), (4.0, (0,)), (4.0, (1,)))
    groups = tuple(group(n, (0.1,), route) for n, route in routes)
    return fc.Network(links, groups, link_names=("a", "b"), flow_names=("long", "one", "two"))


def test_delays_add_up_along_a_path():
    """Long flows see twice the price: alpha/(2 d) of theirs and alpha/d of the others fill C."""
    eq = fc.equilibrium(parking_lot())
    delay = ALPHA * (2 / 2 + 4) / C
    queues = [link.queue for link in eq.links.values()]
    np.testing.assert_allclose(queues, delay * C, rtol=1e-9)
    assert eq.flows["long"].rate[0] == pytest.approx(ALPHA / (2 * delay), rel=1e-9)


def residual(root: complex, *, n: float, rtt: float, g: float) -> complex:
    """The characteristic determinant of windows and queue, one distinct flow, `rates = "ack"`."""
    queue = n * ALPHA
    delay, trip = queue / C, rtt + queue / C
    rate = C / n
    window = rate * trip
    late = cmath.exp(-root * trip)  # the delay was met as the acknowledged packet entered
    by_window = -g * rate * delay / (trip * window)
    by_queue = g * rate * (delay / trip - late) / (trip * C)
    # the queue is fed at once by n W/R
    return (root - by_window) * (root + n * window / (trip**2 * C)) - by_queue * n / trip


@pytest.mark.parametrize(("g", "stable"), [(0.5, True), (8.0, False)])
def test_roots_solve_the_equation_derived_by_hand(g: float, stable: bool):
    found = fc.stability(single(g=g))
    assert found.stable is stable
    for root in found.roots[:5]:
        assert abs(residual(complex(root), n=4.0, rtt=0.1, g=g)) < 1e-8 * (1 + abs(root)) ** 2


@pytest.mark.parametrize("delay", ["explicit", "fifo"])
def test_the_fluid_settles_there(delay: str):
    net = fc.replace(single(), {"model.delay": delay})
    run = fc.simulate(net, until=40.0, points=[40.0], mesh=fc.Uniform())
    assert run.links["bottleneck"].queue[0] == pytest.approx(4 * ALPHA, rel=1e-3)


@pytest.mark.parametrize(("n", "within"), [(1.0, 1e-3), (4.0, 0.03)])
def test_packets_keep_as_many(n: float, within: float):
    """By Little's law, with the packet in service: the delay beyond propagation holds both. Several
    flows have parts of packets in their windows that are not sent.
    """
    runs = fc.simulate_packets(single(n=n), until=100.0, warmup=40.0, seeds=(1,))
    kept = float(runs.to_xarray()["link_number_in_system_mean"].mean())
    assert kept == pytest.approx(n * ALPHA, rel=within)


def test_what_a_law_reads_it_must_declare():
    (fault,), _ = RULES["declarations"](Subject(Undeclared))
    assert "a line `reads = ('mark', 'drop', 'delay')` in the class" in fault
    assert RULES["declarations"](Subject(FAST))[0] == []


@pytest.mark.parametrize(("w", "delay"), [(300.0, 0.05), (300.0, 0.0), (4.0, 0.0)])
def test_a_round_trip_of_fast_is_the_update_of_the_paper(w: float, delay: float):
    """min(2 W, (1 - gamma) W + gamma (W base/R + alpha)); small windows double."""
    base = 0.1
    rtt = base + delay
    ack = Ack(count=w, elapsed=rtt, rtt=rtt, load=0.0, marked=0.0, delay=delay)
    after = min(2 * w, (1 - 0.5) * w + 0.5 * (base / rtt * w + 50.0))
    assert w + FAST(alpha=50.0).on_ack(w, ack) == pytest.approx(after, rel=1e-12)


@pytest.mark.parametrize(("queued", "change"), [(1.9, 1.0), (3.0, 0.0), (4.1, -1.0)])
def test_a_round_trip_of_vegas_is_a_packet_at_most(queued: float, change: float):
    w, rtt = 20.0, 0.1
    ack = Ack(count=w, elapsed=rtt, rtt=rtt, delay=queued * rtt / w)
    assert Vegas().on_ack(w, ack) == pytest.approx(change, abs=1e-12)


def test_fast_has_the_rates_of_the_paper_at_all_levels():
    """x = alpha/q whatever the round trip: six flows with 50 packets each queue 300."""
    net = fc.load("wei2006/round_trips")
    c = float(net.links[0].capacity)
    eq = fc.equilibrium(net)
    assert eq.links["bottleneck"].queue == pytest.approx(300.0, rel=1e-9)
    np.testing.assert_allclose(eq.flows["fast"].rate, 50.0 / (300.0 / c), rtol=1e-9)
    assert fc.stability(net).stable
    times = {"until": 30.0, "warmup": 20.0, "seeds": (1,)}
    for runs in (fc.simulate_trains(net, **times), fc.simulate_packets(net, **times)):
        assert runs.mean["links"]["bottleneck"]["queue_mean"] == pytest.approx(300.0, rel=0.01)
        goodput = runs.mean["flows"]["fast"]["flow_goodput"]  # bit/s of each flow
        np.testing.assert_allclose(goodput, 12000 * c / 6, rtol=0.02)


@pytest.mark.parametrize("rtt", [0.21, 0.8, 6.0])
@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_fast_at_equal_round_trips_is_stable_however_long(rtt: float, gamma: float):
    """Wang, Wei and Low (2005): self-clocked, with gamma of (0, 1]."""
    changes = {"flow.rtt": rtt, "flow.window.gamma": gamma}
    assert fc.stability(fc.replace(fc.load("wei2006/long"), changes)).stable


@pytest.mark.parametrize(("gamma", "ack", "clocked"), [(1.5, False, True), (2.0, False, False)])
def test_packets_of_fast_are_as_stable_as_the_self_clocked_model(gamma, ack, clocked):
    """Wang, Wei and Low (2005): without self-clocking a model is unstable where packets are not."""
    net = fc.replace(fc.load("wei2006/long"), {"flow.window.gamma": gamma})
    assert fc.stability(net).stable is clocked
    assert fc.stability(fc.replace(net, {"model.rates": "ack"})).stable is ack
    runs = fc.simulate_packets(net, until=70.0, warmup=50.0, seeds=(1,))
    assert (runs.mean["links"]["bottleneck"]["queue_var"] < 1.0) is clocked


def test_vegas_rests_at_any_queue_between_its_thresholds():
    """Eight flows with 2 to 4 packets each; where they began decides where they stay."""
    net = fc.load("brakmo1995/round_trips")
    eq = fc.equilibrium(net)
    assert eq.status == "continuum"
    assert "queues from 16 to 32 packets" in eq.message
    ends = []
    for window in (2.0, 25.0):
        begun = fc.replace(net, {"flow.initial.window": window})
        run = fc.simulate(begun, until=60.0, points=[50.0, 60.0])
        queue = run.links["bottleneck"].queue
        assert queue[0] == pytest.approx(queue[1], rel=1e-4)
        ends.append(float(queue[1]))
    assert all(16.0 <= queue <= 32.0 for queue in ends)
    assert abs(ends[0] - ends[1]) > 2.0


def test_packets_of_vegas_keep_as_many_whatever_their_round_trips():
    net = fc.load("brakmo1995/round_trips")
    runs = fc.simulate_packets(net, until=60.0, warmup=30.0, seeds=(1, 2))
    delay = runs.mean["links"]["bottleneck"]["queueing_delay_mean"]
    kept = np.asarray(runs.mean["flows"]["vegas"]["flow_goodput"]) / 12000 * delay
    assert kept.shape == (8,)
    assert np.all((kept > 2.0) & (kept < 4.0))


def test_thresholds_of_vegas_are_in_order():
    with pytest.raises(ValueError, match=r"needs alpha <= beta, got 4\.0 and 2\.0"):
        Vegas(alpha=4.0, beta=2.0)


def test_equations_have_the_delay_that_a_law_reads():
    assert r"\gamma \left(\alpha - \frac{W \delta_{d}}{R}\right)" in fc.latex(
        fc.load("wei2006/round_trips")
    )
