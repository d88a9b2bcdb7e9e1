"""A window law that reads the queueing delay, as Vegas and FAST do, through every engine.

Each flow keeps alpha packets of its own in the queues: W d/R = alpha, with d the queueing delay of
its path. Low, Peterson and Wang (2002) have the equilibrium: proportional fairness with prices d.
"""

import cmath

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.check.checks import RULES, Subject
from fluidcc.laws import AbstractWindowLaw, Droptail, OncePerRTT, param
from fluidcc.scenario.network import FlowsInitial

C, ALPHA = 1250.0, 10.0  # packet/s, packets


class Fast(AbstractWindowLaw):
    """Moves its window to alpha packets in the queues, by gain g per round trip."""

    name = "fast_like"
    source = "tests"
    reaction = "once_per_rtt"
    recovery = "newreno"
    reads = ("mark", "drop", "delay")
    alpha: float = param(ALPHA, r"\alpha", unit="packet", doc="packets kept", within="(0, inf)")
    g: float = param(0.5, "g", unit="1", doc="gain", within="(0, inf)")

    def on_ack(self, s, ack):
        return ack.count * self.g * (self.alpha / s - ack.delay / ack.rtt)

    def on_mark(self, s, ack):
        return -s / 2

    def slow_start(self, s):
        return 0  # the rule itself grows fast, and shrinks below any threshold


class Undeclared(Fast):
    name = "undeclared"
    reads = ("mark", "drop")


def group(n=4.0, rtt=(0.1,), route=(0,), window=50.0, g=0.5, **more) -> fc.Flows:
    return fc.Flows(
        Fast(g=g), n=np.full(len(rtt), n), rtt=np.array(rtt), route=route, reaction=OncePerRTT(),
        initial=FlowsInitial(window=window), **more,
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
    assert RULES["declarations"](Subject(Fast))[0] == []
