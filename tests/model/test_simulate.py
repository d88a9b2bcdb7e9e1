"""Fluid runs of networks against closed forms, reference values, and other meshes."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import laws
from fluidcc.model.rates import received, touched
from fluidcc.scenario.network import FlowsInitial, LinkInitial, Start

# A published value of the RED average's pole, 0.005 1/s, as a weight per arrival at 3750 packet/s.
SLOW = 1 - math.exp(-0.005 / 3750)


def hollot() -> fc.Network:
    red = laws.RED(min_th=150.0, max_th=700.0, p_max=0.1, w_q=SLOW)
    link = fc.Link(red, capacity=3750.0, initial=LinkInitial(queue=190.0, average=195.0))
    start = FlowsInitial(window=15.0)
    flows = fc.Flows(laws.Reno(), n=np.array([60.0]), rtt=np.array([0.2]), initial=start)
    return fc.Network((link,), (flows,), rates="mgt")


# Two independent solvers agree on these (validation/dde_problems.py, TCP_state_dependent).
REFERENCE = {
    1.0: (15.288674004, 164.707085366, 194.855395747),
    10.0: (15.717437595, 192.966264729, 194.471300594),
    100.0: (15.739972975, 194.398349485, 194.400155542),
}


@pytest.mark.parametrize(
    "mesh", [fc.Located(step=0.01), fc.Uniform(0.002)], ids=["located", "uniform"]
)
def test_the_network_is_the_published_model(mesh):
    run = fc.simulate(hollot(), until=100.0, points=list(REFERENCE), mesh=mesh)
    got = np.column_stack(
        [
            run.flows["flows"].window[:, 0],
            run.links["bottleneck"].queue,
            run.links["bottleneck"].average,
        ]
    )
    assert run.status is fc.Status.ok
    np.testing.assert_allclose(got, list(REFERENCE.values()), rtol=2e-8)


def test_relay_cycle_has_its_closed_form():
    """One class under step marking: theory of the relay cycle, exact when self-clocked."""
    capacity, rtt, n, at, c1, c2 = 1000.0, 0.1, 50.0, 100.0, 0.0625, 0.125
    start = (capacity * rtt + 80.0) / n
    link = fc.Link(laws.Threshold(at=at), capacity=capacity, initial=LinkInitial(queue=80.0))
    flows = fc.Flows(
        laws.ECNMod(c1=c1), n=np.array([n]), rtt=np.array([rtt]), initial=FlowsInitial(window=start)
    )
    net = fc.Network((link,), (flows,), rates="self_clocked", delay="fifo")
    k = capacity / n
    tau = rtt + at / capacity
    middle = (capacity * rtt + at) / n
    highest = middle + k * c1 * tau
    lowest = middle * math.exp(-k * c2 * tau)
    period = 2 * tau + math.log(highest / middle) / (k * c2) + (middle - lowest) / (k * c1)
    assert n * lowest > capacity * rtt  # the queue stays busy, where the closed form holds

    up = (middle - start) / (k * c1)  # first crossing of the threshold, where W = W*
    down = up + tau + math.log(highest / middle) / (k * c2)
    cycles = period * np.arange(4)[:, None]
    points = np.ravel(cycles + np.array([up, up + tau, down, down + tau]))
    run = fc.simulate(net, until=points[-1], points=points, mesh=fc.Located(step=0.01))
    assert run.status is fc.Status.ok
    expected = np.tile([middle, highest, middle, lowest], 4)
    window, queue = run.flows["flows"].window[:, 0], run.links["bottleneck"].queue
    np.testing.assert_allclose(window, expected, rtol=2e-6)
    np.testing.assert_allclose(queue, n * expected - capacity * rtt, rtol=2e-5)


def test_self_clocking_keeps_what_is_in_flight():
    """While the link is busy the queue is what the windows hold beyond the pipe, exactly."""
    red = laws.RED(min_th=20.0, max_th=120.0, p_max=0.4, w_q=0.01)
    link = fc.Link(red, capacity=1000.0, initial=LinkInitial(queue=60.0, average=60.0))
    flows = fc.Flows(
        laws.ECNMod(),
        n=np.array([20.0]),
        rtt=np.array([0.1]),
        access_delay=0.01,
        initial=FlowsInitial(window=8.0),
    )
    net = fc.Network((link,), (flows,), rates="self_clocked", delay="fifo")
    points = np.linspace(1.0, 6.0, 501)  # as far from each other as the way to the link takes
    run = fc.simulate(net, until=6.0, points=points, mesh=fc.Located(step=0.005))
    queue, window = run.links["bottleneck"].queue, run.flows["flows"].window[:, 0]
    assert queue.min() > 0
    np.testing.assert_allclose(queue[1:], 20.0 * window[:-1] - 100.0, atol=1e-5)


def mixed(rates: str = "ack") -> fc.Network:
    """The mix of ECN-mod and ECN-NewReno of Misra and Ott (2003), section 5, from a start."""
    red = laws.RED(min_th=20.0, max_th=60.0, p_max=0.2, w_q=0.002)
    link = fc.Link(red, capacity=1250.0, buffer=120.0, delay=0.04)
    common = {"n": np.array([10.0]), "rtt": np.array([0.088]), "access_delay": 0.002}
    mod = fc.Flows(laws.ECNMod(), marking=laws.EqualWindow(), reaction=laws.PerMark(), **common)
    newreno = fc.Flows(laws.NewReno(), reaction=laws.OncePerRTT(), **common)
    return fc.Network((link,), (mod, newreno), rates=rates, flow_names=("mod", "newreno"))


def test_marks_that_begin_as_a_root_come_back_with_the_clock():
    """Marks for equal windows begin with the root of RED's probability, whose slope has no bound;
    the rate has it too, and is read a round trip later.
    """
    red = laws.RED(min_th=25.0, max_th=75.0, p_max=0.2, w_q=0.002, gentle=True)
    link = fc.Link(red, capacity=1250.0, buffer=150.0, initial=LinkInitial(queue=20.0))
    flows = fc.Flows(
        laws.ECNMod(c1=0.0625, c2=0.125), n=np.array([60.0]), rtt=np.array([0.1]),
        reaction=laws.PerMark(), marking=laws.EqualWindow(), initial=FlowsInitial(window=4.0),
    )  # fmt: skip
    net = fc.Network((link,), (flows,), rates="self_clocked")
    located, uniform = (
        fc.simulate(net, until=0.8, points=[0.6, 0.7, 0.8], mesh=m).links["bottleneck"].queue
        for m in (fc.Located(0.1 / 32), fc.Uniform(0.1 / 2048))
    )
    np.testing.assert_allclose(located, uniform, rtol=1e-4)


def test_flows_that_start_late_send_nothing_before():
    net = mixed()
    late = dataclasses.replace(net.flows[1], start=Start(1.0, 1.0))
    net = dataclasses.replace(net, flows=(net.flows[0], late))
    run = fc.simulate(net, until=1.4, points=np.linspace(0.2, 1.4, 7), mesh=fc.Uniform(0.0005))
    before = run.time < 1.0 - 1e-9
    flow = run.flows["newreno"]
    assert (flow.rate[before] == 0.0).all() and (flow.window[before] == 2.0).all()
    assert (flow.rate[~before] > 0.0).all() and flow.window[-1, 0] > 2.0
    alone = fc.simulate(
        dataclasses.replace(mixed(), flows=(net.flows[0],), flow_names=("mod",)),
        until=1.4,
        points=np.linspace(0.2, 1.4, 7),
        mesh=fc.Uniform(0.0005),
    )
    np.testing.assert_allclose(
        run.flows["mod"].window[before], alone.flows["mod"].window[before], rtol=1e-12
    )


def test_a_self_clocked_fluid_cannot_start_late():
    net = mixed(rates="self_clocked")
    late = dataclasses.replace(net.flows[0], start=Start(1.0, 1.0))
    net = dataclasses.replace(net, flows=(late, net.flows[1]))
    with pytest.raises(ValueError, match=r"flows.mod.start: a self-clocked fluid"):
        fc.simulate(net, until=1.0)


def test_a_full_buffer_stays_full_and_says_what_it_drops():
    link = fc.Link(laws.Droptail(), capacity=1000.0, buffer=50.0, delay=0.01)
    flows = fc.Flows(
        laws.NewReno(),
        n=np.array([20.0]),
        rtt=np.array([0.1]),
        access_delay=0.005,
        reaction=laws.OncePerRTT(),
        feedback=laws.Loss(),
        initial=FlowsInitial(window=6.0),
    )
    run = fc.simulate(fc.Network((link,), (flows,)), until=20.0, mesh=fc.Located(step=0.005))
    seen = run.links["bottleneck"]
    assert run.status is fc.Status.ok
    assert seen.queue.max() == pytest.approx(50.0, rel=1e-12)
    assert seen.queue.min() >= 0.0
    dropping = seen.drop_fraction > 0
    assert dropping.any()
    np.testing.assert_allclose(seen.queue[dropping], 50.0, rtol=1e-12)


def test_averages_of_fast_links_are_followed_by_the_steps_of_their_own():
    """RED on 100 Gbit/s: its average takes in 25 times more in a 32nd of a round trip than RK4
    can follow.
    """
    net = fc.loads("""
[links.b]
capacity = "100 Gbit/s"
packet_size = "1500 B"
delay = "5 ms"
buffer = "100000 packet"
queue = { law = "red", min_th = 500, max_th = 20000, p_max = 0.1, w_q = 0.002, gentle = false }

[flows.f]
n = 100
rtt = "50 ms"
window = { law = "newreno" }
feedback = "mark_tail"
initial = { window = 4900 }
""")
    run = fc.simulate(net, until=0.5, points=[0.02, 0.03, 0.05])
    link = run.links["b"]
    assert run.status is fc.Status.ok
    assert np.max(link.queue) > 1000
    np.testing.assert_allclose(link.average, link.queue, rtol=0.02)


# -- What flows have in flight against what their windows hold
@pytest.mark.parametrize(("delay", "kept"), [("explicit", False), ("fifo", True)])
def test_self_clocked_flights_are_kept_by_the_fifo_clock(delay, kept):
    """The pace of the ACKs is the derivative of the round trip under `fifo` alone."""
    flows = fc.Flows(
        laws.Reno(), n=np.array([10.0, 10.0]), rtt=np.array([0.05, 0.11]),
        reaction=laws.OncePerRTT(), access_delay=0.001,
    )  # fmt: skip
    link = fc.Link(laws.AVQ(), capacity=1250.0, buffer=100.0)
    run = fc.simulate(fc.Network((link,), (flows,), rates="self_clocked", delay=delay), until=12.0)
    assert ("more in flight than their windows; use model.delay" in run.message) == (not kept)
    flow, late = run.flows["flows"], run.time > 6
    excess = np.mean((flow.rate * flow.rtt)[late], axis=0) / np.mean(flow.window[late], axis=0) - 1
    assert np.max(np.abs(excess)) < 0.05 if kept else np.min(excess) > 0.5


# -- Senders that estimate the load factor, in the fluid model
def test_an_estimate_that_forgets_within_microseconds_needs_no_such_steps():
    """10^4 packets/s bring bits of a load factor; BMCC overshoots, comes down, and probes.

    Eq. 4: the window grows by T / t_p^2 a second, here by 0.15 s / (0.2 s)^2.
    """
    net = fc.load("qazi2010/three_flows")
    net = dataclasses.replace(net, flows=net.flows[:1], flow_names=net.flow_names[:1])
    run = fc.simulate(fc.replace(net, {"flows.first.estimator": "adpm"}), until=8.0)
    assert run.status == fc.Status.ok
    window, queue = run.flows["first"].window.ravel(), run.links["bottleneck"].queue
    assert queue.max() > 2000 and queue[run.time >= 5].max() == 0
    assert 0.75 < window[-1] / (0.15 * 12500) < 1  # between the growths by eqs 3 and 4, and full
    slope = np.polyfit(run.time[run.time >= 5], window[run.time >= 5], 1)[0]
    assert slope == pytest.approx(0.15 / 0.2**2, rel=1e-9)


# -- Slow start in the fluid model: the peak of the queue and its published bounds
C, T = 187.5, 0.248  # packet/s, s: a link of 1.5 Mbit/s with packets of 1000 B, TS = 59 ms
PIPE = C * T


def peak(feedback, at: float) -> float:
    """Largest queue of one flow that starts with one packet."""
    flows = fc.Flows(
        laws.Reno(), n=np.ones(1), rtt=np.array([T]), reaction=laws.OncePerRTT(), feedback=feedback,
        initial=FlowsInitial(window=1.0, slow_start=True),
    )  # fmt: skip
    net = fc.Network(
        (fc.Link(laws.Threshold(at=at), capacity=C),), (flows,), rates="self_clocked", delay="fifo"
    )
    points = np.linspace(1.2, 3.6, 30001)  # the peak is a corner
    run = fc.simulate(net, until=3.6, points=points, mesh=fc.Located(step=0.02))
    assert run.status is fc.Status.ok
    assert run.flows["flows"].slow_start[-1, 0] < 1e-3
    return float(run.links["bottleneck"].queue.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feedback", "times"), [(laws.MarkTail(), 2.0), (laws.MarkFront(), 1.0)], ids=["tail", "front"]
)
def test_slow_start_peaks_at_the_published_bounds(feedback, times):
    """Durresi et al. (2001), section 4: 2 T + r d - 1 for tail and T + r d for front marking.

    The fluid bounds are 2 T + r d and T + r d; they are met once the link has been busy for a
    round trip when the queue crosses the threshold, and not below.
    """
    for at in (40.0, 60.0):
        bound = times * at + PIPE
        found = peak(feedback, at)
        assert found <= bound * (1 + 1e-9)
        assert found == pytest.approx(bound, rel=1e-3)
    assert peak(feedback, 5.0) < 0.9 * (times * 5.0 + PIPE)


# -- What is heard of two links
@pytest.mark.parametrize(
    "feedback",
    [laws.MarkTail(), laws.MarkFront(), laws.Backward(), laws.ReceiverWindow(), laws.Loss()],
)
def test_signals_are_heard_as_their_carriers_fare(feedback):
    """All outcomes of two links, each of which marks and loses packets independently."""
    said = (laws.Signal(0.3, 0.2), laws.Signal(0.1, 0.4))
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
    flows = fc.Flows(laws.ECNMod(), n=np.ones(1), rtt=np.ones(1), route=(0, 1), feedback=feedback)
    np.testing.assert_allclose(received(flows, said)[:2], (mark, drop), rtol=1e-12)
    np.testing.assert_allclose(touched(flows, said), either, rtol=1e-12)


def _two_of_each(name: str, *, alike: bool, **choices: str) -> fc.Network:
    """A network with two groups in the place of each that differ in numbers alone if they are
    `alike`, else also in a rule for packets.
    """
    net, groups = fc.load(name), []
    for k, flows in itertools.product(range(2), fc.load(name).flows):
        links = len(flows.route)
        back = np.linspace(0.02, 0.03, links) if links > 1 else 0.002
        changes = {
            "n": flows.n * (0.3 + 0.1 * k),
            "rtt": flows.rtt * (1 + 0.1 * k),
            "access_delay": 0.002 * (1 + k),
            "reverse_delay": back * (1 + 0.1 * k),
            "initial": FlowsInitial(window=3.0 + k),
            "start": Start.at(0.05 * k),
            "sender": () if alike else (("min_rto", 1.0 + k),),
        }
        groups.append(dataclasses.replace(flows, **changes))
    names = tuple(f"group{k}" for k in range(len(groups)))
    return dataclasses.replace(net, flows=tuple(groups), flow_names=names, **choices)


@pytest.mark.parametrize(
    ("name", "delay"),
    [
        ("misra2003/mixed", "fifo"),
        ("akujobi2002/homogeneous_becn", "explicit"),
        ("govindaswamy2012/red_rwm", "explicit"),
    ],
)
def test_groups_that_differ_in_numbers_alone_run_as_others_do(name, delay):
    runs = [
        fc.simulate(
            _two_of_each(name, alike=alike, delay=delay), until=3.0, points=range(4),
            mesh=fc.Uniform(),
        )
        for alike in (True, False)
    ]  # fmt: skip
    for own, other in zip(*(run.flows.values() for run in runs), strict=True):
        np.testing.assert_allclose(own.window, other.window, rtol=1e-9)
        np.testing.assert_allclose(own.rate, other.rate, rtol=1e-9, atol=1e-9)
    links = [[link.queue for link in run.links.values()] for run in runs]
    np.testing.assert_allclose(*links, rtol=1e-9, atol=1e-9)


def test_a_failed_run_says_when():
    run = fc.simulate(
        fc.load("hollot2001/slow"), until=100.0, mesh=fc.Located(step=0.05, max_steps=400)
    )
    assert run.status is fc.Status.step_limit and 0 < run.status_time < 100
    said = f"after {run.status_time:.6g} s: the step limit was reached"
    assert said in run.message and said in run.to_dict()["message"] and said in repr(run)
    short = fc.simulate(fc.load("hollot2001/slow"), until=100.0, mesh=fc.Located(max_steps=200))
    assert short.message.startswith("after 0 s: the error estimate")
