"""Sampled laws in the fluid model: jumps at their times, held values on the right side of edges."""

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import Located, Uniform
from fluidcc.dde.status import Status
from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as Coded
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.traffic import Files, Sessions, Web
from fluidcc.laws.voice import Voice
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.reno import Reno
from fluidcc.model.fluid import as_fluid
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Flows, FlowsInitial, Link, LinkInitial, Network

C, T = 1000.0, 0.1  # packet/s, s

MESHES = [Located(step=0.02), Uniform(0.0025)]
NAMES = ["located", "uniform"]


def steady(queue, load: float, start: float, voice: Voice | None = None) -> Network:
    """A link at a constant load that no signal slows, with next to no flows."""
    flows = Flows(Reno(), n=np.array([1e-9]), rtt=np.array([T]))
    link = Link(
        queue, capacity=C, initial=LinkInitial(queue=start, average=start), cross=load * C,
        voice=voice,
    )  # fmt: skip
    return Network((link,), (flows,))


@pytest.mark.parametrize("mesh", MESHES, ids=NAMES)
def test_a_pi_controller_sums_a_queue_that_ramps(mesh):
    law = PI(q_ref=60.0, interval=0.05, k_pi=1e-3, z=5.0)
    net = steady(law, 1.01, 40.0)  # the queue grows by 10 packets a second
    ends = 0.05 * np.arange(1, 100)
    run = simulate(net, until=5.0, points=ends[:-1] + 0.025, mesh=mesh)
    assert run.status is Status.ok
    queue = run.links["bottleneck"].queue
    np.testing.assert_allclose(queue, 40.0 + 10.0 * run.time, rtol=1e-6)
    a, e = law.weights
    p, before, expected = 0.0, 40.0, []
    for now in 40.0 + 10.0 * ends:
        p, before = min(max(p + a * (now - 60.0) - e * (before - 60.0), 0.0), 1.0), now
        expected.append(p)
    np.testing.assert_allclose(run.links["bottleneck"].signal, expected[:-1], rtol=1e-6, atol=1e-9)
    assert 0.0 in expected and max(expected) > 1e-4


def mapped(until: float, *, rtt: float, way: float, w0: float, md: bool) -> tuple[list, list]:
    """BMCC alone on a link that never queues, period by period, from the paper's equations.

    Returns the load factors of the samples and the windows at the ticks, just after them. The
    window grows by eq. 3 or 4 with a load factor one round trip less the way there old.
    """
    t_p, steps = 0.2, 2000
    dt = t_p / steps
    age, late = round((rtt - way) / dt), round(way / dt)
    n = round(until / dt)
    w, load = np.full(n + 1, w0), np.zeros(n + 1)
    loads, ticks, f, arrived = [], [], 0.0, 0.0
    for k in range(n):
        seen = load[k - age] if k >= age else 0.0
        seen_clipped = min(max(seen, 0.15), 1.2)
        if seen_clipped < 0.75:
            w[k + 1] = w[k] * (1 + 0.05 * (1 - seen_clipped) / seen_clipped) ** (dt / t_p)
        else:
            w[k + 1] = w[k] + (dt * rtt / t_p**2 if seen_clipped < 1 else 0.0)
        ends = [max(w[max(k - late + j, 0)], 0.0) / rtt for j in (0, 1)]
        arrived += dt * sum(ends) / 2
        load[k + 1] = f
        if (k + 1) % steps == 0:
            f, arrived = arrived / (C * t_p), 0.0
            load[k + 1] = f
            loads.append(f)
            heard = load[k + 1 - age] if k + 1 >= age else 0.0
            if md and heard >= 1:
                w[k + 1] *= 0.875 - 0.225 * (min(heard, 1.2) - 1) / 0.2
            ticks.append(w[k + 1])
    return loads, ticks


@pytest.mark.parametrize(
    ("mesh", "delay"),
    [
        pytest.param(MESHES[0], "explicit", marks=pytest.mark.slow),
        (MESHES[1], "explicit"),
        (MESHES[1], "fifo"),
    ],
)
def test_bmcc_alone_follows_its_load_factors(mesh, delay):
    """Qazi et al., eqs 1 to 6: delayed held values must switch at their own delayed edges."""
    flows = Flows(
        BMCC(kappa_2=0.05), n=np.array([1.0]), rtt=np.array([T]), access_delay=0.03,
        feedback=Coded(), initial=FlowsInitial(window=20.0),
    )  # fmt: skip
    net = Network((Link(LoadFactor(), capacity=C),), (flows,), delay=delay)
    loads, windows = mapped(6.0, rtt=T, way=0.03, w0=20.0, md=True)
    ends = 0.2 * np.arange(1, 30)
    run = simulate(net, until=6.0, points=ends + 1e-6, mesh=mesh)
    assert run.status is Status.ok
    assert 0.75 < max(loads) < 1.0  # from multiplicative to additive increase, without a queue
    np.testing.assert_allclose(run.links["bottleneck"].load, loads[:29], rtol=2e-3)
    np.testing.assert_allclose(run.flows["flows"].window[:, 0], windows[:29], rtol=2e-3)


def test_multiplicative_increase_starts_with_the_published_factor():
    """A router that has told nothing yet counts as 15 %: 2.98333 a period (the paper says 3)."""
    flows = Flows(
        BMCC(), n=np.array([1.0]), rtt=np.array([T]), feedback=Coded(),
        initial=FlowsInitial(window=1.0),
    )  # fmt: skip
    net = Network((Link(LoadFactor(t_p=10.0), capacity=C),), (flows,))
    run = simulate(net, until=0.6, points=[0.2, 0.4, 0.6], mesh=Uniform(0.0025))
    growth = 1 + 0.35 * 0.85 / 0.15
    assert round(growth, 5) == 2.98333
    np.testing.assert_allclose(run.flows["flows"].window[:, 0], growth ** np.arange(1, 4.0))


def test_adaptive_red_steps_up_above_its_target_and_down_below():
    law = AdaptiveRED(min_th=10.0, max_th=30.0, w_q=0.01, interval=0.5, p_max=0.1)
    for start, factor in ((25.0, 1.0), (15.0, 0.9)):
        run = simulate(steady(law, 1.0, start), until=2.0, points=[0.3, 0.8, 1.3], mesh=MESHES[0])
        top = run.links["bottleneck"].signal / ((start - 10.0) / 20.0)
        steps = np.arange(3)
        expected = 0.1 + 0.01 * steps if factor == 1.0 else 0.1 * factor**steps
        np.testing.assert_allclose(top, expected, rtol=1e-6)


def test_calls_take_their_share_of_the_link_step_by_step():
    """Between changes of the calls the queue moves by arrivals less what they leave."""
    voice = Voice(calls=5.0, holding=20.0, process="modulated", seed=3)
    net = steady(PI(q_ref=1e6), 0.9, 500.0, voice)
    run = simulate(net, until=4.0, points=[1.0, 2.0, 3.0, 4.0], mesh=Located(step=0.05))
    times, rates = voice.path(4.0, 1000.0)
    edges = np.concatenate([[0.0], times, [4.0]])
    left = C - rates
    assert (left > 0.2 * C).all() and len(times) > 5
    served = [np.sum(left * np.clip(t - edges[:-1], 0.0, np.diff(edges))) for t in run.time]
    expected = 500.0 + 0.9 * C * run.time - served
    np.testing.assert_allclose(run.links["bottleneck"].queue, expected, rtol=1e-6)


def test_calls_in_one_queue_arrive_step_by_step():
    """Between changes of the calls, here at the nodes after them, their packets join the others."""
    voice = Voice(calls=5.0, holding=20.0, process="modulated", discipline="fifo", seed=3)
    net, step = steady(PI(q_ref=1e6), 0.9, 500.0, voice), 0.0025
    run = simulate(net, until=4.0, points=[1.0, 2.0, 3.0, 4.0], mesh=Uniform(step))
    times, rates = voice.path(4.0, 1000.0)
    edges = np.concatenate([[0.0], np.ceil(times / step) * step, [4.0]])
    came = [np.sum(rates * np.clip(t - edges[:-1], 0.0, np.diff(edges))) for t in run.time]
    expected = 500.0 - 0.1 * C * run.time + came
    np.testing.assert_allclose(run.links["bottleneck"].queue, expected, rtol=1e-9)
    now = rates[np.searchsorted(times, run.time)]
    np.testing.assert_allclose(run.links["bottleneck"].offered, 0.9 * C + now, rtol=1e-9)
    assert min(came) > 5.0 and np.ptp(now) > 0


def test_flows_have_their_share_of_one_queue_with_calls():
    """A full window is in flight at all times, whatever the calls do to the queue."""
    voice = Voice(calls=60.0, holding=20.0, process="modulated", discipline="fifo", seed=3)
    rtt = 6 * 50 / (C - voice.path(2.0, 1000.0).rates[0])  # at which the queue stands still
    flows = Flows(
        Reno(max_window=50.0), n=np.array([6.0]), rtt=np.array([T]),
        initial=FlowsInitial(window=50.0),
    )  # fmt: skip
    link = Link(Droptail(), capacity=C, voice=voice, initial=LinkInitial(queue=C * (rtt - T)))
    net = Network((link,), (flows,), rates="self_clocked", delay="fifo")
    step = 0.001
    time = np.arange(0.0, 2.0 + step / 2, step)
    run = simulate(net, until=2.0, points=time, mesh=Uniform(step))
    assert run.status is Status.ok
    queue, rate = run.links["bottleneck"].queue, run.flows["flows"].rate[:, 0]
    assert queue.min() > 10.0 and np.ptp(queue) > 10.0 and np.ptp(rate) > 10.0
    sent = np.concatenate([[0.0], np.cumsum(0.5 * step * (rate[1:] + rate[:-1]))])
    acked = time + queue / C + T
    ends = np.linspace(acked[0] + 0.1, 2.0, 20)
    begins = np.interp(ends, acked, time)
    flight = np.interp(ends, time, sent) - np.interp(begins, time, sent)
    np.testing.assert_allclose(flight, 50.0, rtol=1e-3)


# -- Open sources in the fluid model: traffic at its mean rate, and on/off flows -------------------


LINK = Link(queue=PI(q_ref=30.0), capacity=1250.0, delay=0.02, buffer=100.0, cross=10.0)
BULK = Flows(
    window=Reno(), n=np.array([10.0]), rtt=np.array([0.1]), feedback=MarkTail(), reverse_route=(1,)
)


def _net(**groups):
    back = dataclasses.replace(LINK, queue=Droptail(), cross=0.0)
    return Network(
        links=(LINK, back), flows=tuple(groups.values()), link_names=("ahead", "back"),
        flow_names=tuple(groups),
    )  # fmt: skip


def _source(traffic, count=1.0, **changes):
    return dataclasses.replace(BULK, traffic=traffic, n=np.array([count]), **changes)


def test_results_are_those_of_cross_traffic_and_say_so():
    files = _source(Files(arrivals=8.0, file=25.0))
    plain = dataclasses.replace(LINK, cross=210.0)
    twin = Network(
        links=(plain,), flows=(dataclasses.replace(BULK, reverse_route=()),),
        link_names=("ahead",), flow_names=("bulk",),
    )  # fmt: skip
    net = _net(bulk=BULK, files=files)
    one, other = fc.equilibrium(net), fc.equilibrium(twin)
    assert one.links == other.links
    assert set(one.flows) == {"bulk"}
    assert one.flows["bulk"].rate == pytest.approx(other.flows["bulk"].rate)
    assert "flows.files: its files are traffic of 200 packet/s" in one.message
    assert fc.stability(net).rightmost == fc.stability(twin).rightmost
    assert np.array_equal(
        fc.simulate(net, until=1.0).links["ahead"].queue,
        fc.simulate(twin, until=1.0).links["ahead"].queue,
    )


def test_sessions_are_on_off_flows_of_the_same_rate():
    law = Sessions()
    seen = as_fluid(_net(bulk=BULK, web=_source(law)))
    assert seen.flows[1].traffic == Web(file=12.0, idle=9.0)
    assert float(seen.flows[1].n[0]) == 540.0
    offered = law.arrivals * law.page_count * law.object_count * law.file
    assert 540.0 / 9.0 * 12.0 == pytest.approx(offered)


def test_files_alone_are_no_fluid_model():
    with pytest.raises(ValueError, match="has no flows: all files come by themselves"):
        fc.equilibrium(_net(files=_source(Files())))
