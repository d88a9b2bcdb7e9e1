"""Sampled laws in the fluid model: jumps at their times, held values on the right side of edges."""

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import Located, Uniform
from fluidcc.dde.integrate import Status
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.traffic import Files, Sessions, Web
from fluidcc.laws.voice import Voice
from fluidcc.laws.window.reno import Reno
from fluidcc.model.fluid import as_fluid
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Flows, Link, LinkInitial, Network

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
    np.testing.assert_allclose(
        run.links["bottleneck"].mark_probability, expected[:-1], rtol=1e-6, atol=1e-9
    )
    assert 0.0 in expected and max(expected) > 1e-4


def test_adaptive_red_steps_up_above_its_target_and_down_below():
    law = AdaptiveRED(min_th=10.0, max_th=30.0, w_q=0.01, interval=0.5, p_max=0.1)
    for start, factor in ((25.0, 1.0), (15.0, 0.9)):
        run = simulate(steady(law, 1.0, start), until=2.0, points=[0.3, 0.8, 1.3], mesh=MESHES[0])
        top = run.links["bottleneck"].mark_probability / ((start - 10.0) / 20.0)
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


# -- Open sources in the fluid model: traffic at its mean rate, and on/off flows
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
