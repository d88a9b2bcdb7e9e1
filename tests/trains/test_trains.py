"""Trains of packets: bits, conservation, and their limits, beside packets and the population.

Thresholds are goals of the levels (5 % in a mean, 10 % to 20 % in a spread) beside the intervals
of the seeds, unless a test says where its own comes from.
"""

import dataclasses
import math

import numpy as np
import pytest
from constant import Constant

import fluidcc as fc
from fluidcc import memory
from fluidcc.laws import (
    AVQ,
    RED,
    Droptail,
    ECNMod,
    EqualWindow,
    File,
    Files,
    Loss,
    NewReno,
    OncePerRTT,
    PerMark,
    Reno,
    Web,
)
from fluidcc.packets.plan import PacketError
from fluidcc.programs import leaves, map_tree
from fluidcc.scenario.network import Start
from fluidcc.trains import engine
from fluidcc.trains.layout import chosen_step, lay_out
from fluidcc.trains.run import _Lane, begun, keys

SEEDS = (1, 2, 3, 4)
UNLIKE = ("hollot2001/pi", "akujobi2002/homogeneous_tcp", "govindaswamy2012/red_ecn")


def flows(count, **changes):
    given = {
        "window": NewReno(max_window=100.0),
        "n": np.array([float(count)]),
        "rtt": np.array([0.1]),
    }
    return fc.Flows(**(given | changes))


def dumbbell(queue, group, **changes):
    link = {"capacity": 1250.0, "packet_size": 1000.0, "buffer": 60.0} | changes
    return fc.Network(links=(fc.Link(queue=queue, **link),), flows=(group,))


def lossy(**changes):
    """Losses by RED and by the buffer."""
    red = RED(min_th=5.0, max_th=15.0, p_max=0.1, w_q=0.002)
    return dumbbell(red, flows(10, feedback=Loss()), **changes)


def metric(runs, place):
    """A metric of a run, and its interval."""
    kind, own, name = place
    return runs.mean[kind][own][name], runs.ci95[kind][own][name]


def queue(runs, name="queue_mean"):
    (own,) = runs.mean["links"]
    return metric(runs, ("links", own, name))


def spread(runs):
    """The standard deviation of the queue, and its interval, from those of the variance."""
    variance, half = queue(runs, "queue_var")
    return math.sqrt(variance), half / (2 * math.sqrt(variance))


def near(trains, packets, place, share):
    """Whether two kinds of runs agree, beside their intervals."""
    (a, one), (b, other) = metric(trains, place), metric(packets, place)
    return abs(a - b) <= share * abs(b) + one + other


# -- Bits
@pytest.mark.parametrize("name", UNLIKE)
def test_a_seed_has_the_same_bits_whatever_runs_beside_it(name, monkeypatch):
    span = {"until": 12.0, "warmup": 2.0, "sample": 0.5}
    found = {}
    for threads, seeds in (("1", (1, 2, 3)), ("2", (3, 1, 2)), ("2", (2,)), ("1", (3, 2))):
        monkeypatch.setenv("FLUIDCC_THREADS", threads)
        runs = fc.simulate_trains(fc.load(name), seeds=seeds, **span)
        assert runs.seeds == seeds
        for seed, run in zip(seeds, runs.to_dict()["runs"], strict=True):
            series = runs.series.sel(seed=seed)["link_number_in_system"].values.tolist()
            assert found.setdefault(seed, (run, series)) == (run, series)
    assert found[1] != found[2] and found[2] != found[3]


def test_samples_change_no_bit():
    plain, sampled = (
        fc.simulate_trains(fc.load(UNLIKE[0]), until=12.0, warmup=2.0, sample=s)
        for s in (None, 0.137)
    )
    assert plain.to_dict() == sampled.to_dict()
    assert plain.series is None and len(sampled.series.time) == 88


@pytest.mark.parametrize("name", UNLIKE)
def test_machine_code_does_what_the_program_of_jax_does(name):
    net = fc.load(name)
    layout = lay_out(net, chosen_step(net))
    lane = _Lane(layout, [5])
    lane.advance(400)
    numbers, first = begun(layout, [5])
    known = engine.advance(layout.shape, numbers, first, keys([5]), 400)
    for one, other in zip(leaves(lane.state()), leaves(known), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-9, atol=1e-9)
    assert sum(float(s.sent.sum()) for s in lane.state().senders) > 100


# -- Conservation
def advanced(net, seconds):
    """A layout and its run of one seed after some seconds."""
    step = chosen_step(net)
    layout = lay_out(net, step)
    lane = _Lane(layout, [1])
    lane.advance(round(seconds / step))
    return layout, map_tree(np.copy, lane.state())


@pytest.mark.parametrize("net", [*map(fc.load, UNLIKE), lossy()], ids=[*UNLIKE, "lossy"])
def test_packets_are_acknowledged_lost_or_under_way(net):
    layout, run = advanced(net, 30.0)
    under_way = 0.0
    for kind, sender in zip(layout.shape.kinds, run.senders, strict=True):
        flight = sender.sent - sender.known
        assert (flight >= 0).all() and (sender.sent > 0).all()
        np.testing.assert_allclose(sender.sent, sender.acked + sender.lost + flight, atol=1e-6)
        assert kind.count == len(sender.sent)
        under_way += float(flight.sum())
    # what links dropped and senders do not know of yet is among what is under way
    dropped = sum(float(port.dropped[0]) for port in run.ports)
    known = sum(float(sender.lost.sum()) for sender in run.senders)
    assert 0 <= dropped - known <= under_way
    marked = sum(float(port.marked[0]) for port in run.ports)
    heard = sum(float(sender.marks.sum()) for sender in run.senders)
    assert 0 <= marked - heard <= under_way
    assert dropped + marked > 0


@pytest.mark.parametrize("net", [*map(fc.load, UNLIKE), lossy()], ids=[*UNLIKE, "lossy"])
def test_a_queue_is_what_came_less_what_left(net):
    layout, run = advanced(net, 30.0)
    for port, numbers, shape in zip(
        run.ports, layout.numbers.ports, layout.shape.ports, strict=True
    ):
        held = float((port.accepted - port.served)[0])
        assert (
            0 <= held <= float(numbers.buffer) + 1 + float(numbers.capacity * layout.numbers.step)
        )
        if not shape.counted and not shape.voice:
            assert port.accepted[0] + port.dropped[0] == pytest.approx(port.offered[0], rel=1e-12)
        assert port.served[0] <= float(numbers.capacity) * 30.0 * (1 + 1e-9)
    sent = sum(float(sender.sent.sum()) for sender in run.senders)
    assert sent >= max(float(port.offered[0]) for port in run.ports if port.offered[0]) * (1 - 1e-9)


# -- Laws under one probability
@pytest.mark.parametrize(
    ("law", "reaction", "key"),
    [
        (NewReno(), OncePerRTT(), "p"),
        (NewReno(), OncePerRTT(), "d"),
        (Reno(), PerMark(), "p"),
        (ECNMod(), PerMark(), "p"),
    ],
    ids=["NewReno, marks", "NewReno, losses", "Reno, every mark", "ECN-mod, every mark"],
)
@pytest.mark.parametrize("p", [0.01, 0.03])
def test_windows_under_one_probability_are_those_of_packets(law, reaction, key, p):
    """Behind a link that spaces packets, as windows of 5 to 50 packets fill it or nearly do."""
    group = fc.Flows(window=law, reaction=reaction, n=np.array([20.0]), rtt=np.array([0.1]))
    link = fc.Link(queue=Constant(**{key: p}), capacity=1500.0)
    net = fc.Network(links=(link,), flows=(group,))
    span = {"until": 120.0, "warmup": 20.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    for runs in (trains, packets):  # the intervals say something
        mean, half = metric(runs, ("flows", "flows", "window_mean"))
        assert half < 0.1 * mean
    assert near(trains, packets, ("flows", "flows", "window_mean"), 0.02)


@pytest.mark.parametrize(
    "link",
    [{"voice": fc.Voice(calls=30.0, holding=3.0, discipline="fifo")}, {"cross": 400.0}],
    ids=["voice", "cross traffic"],
)
def test_other_traffic_is_marked_with_the_probability_of_the_link(link):
    """Not with that of the flows, which `equal_window` makes 0.048 in place of 0.02."""
    group = flows(10, window=ECNMod(), reaction=PerMark(), marking=EqualWindow())
    net = dumbbell(Constant(p=0.02), group, capacity=1500.0, buffer=math.inf, **link)
    span = {"until": 60.0, "warmup": 10.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("links", "bottleneck", "mark_fraction"), 0.03)


@pytest.mark.parametrize(
    ("signal", "share"), [({"p": 0.1}, 0.02), ({"d": 0.02}, 0.025)], ids=["marks", "losses"]
)
def test_windows_in_bursts_are_those_of_packets(signal, share):
    """Whole windows come in one step: their signals are independent, and a recovery that ends
    lets them grow in it.
    """
    group = flows(20, window=NewReno(), reaction=OncePerRTT())
    net = dumbbell(Constant(**signal), group, capacity=1e5, buffer=math.inf)
    span = {"until": 320.0, "warmup": 20.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("flows", "flows", "window_mean"), share)


@pytest.mark.parametrize(("size", "share"), [(3.0, 0.1), (12.0, 0.25)])
def test_losses_in_short_files_wait_for_the_timer_as_by_packets(size, share):
    """No packet behind the lost one, and no data left to send: no duplicate ACK.

    Which packet is lost is drawn evenly in trains, so that timeouts are a quarter off in files of
    several windows; connections open without a packet, which trains would not lose.
    """
    options = (("syn", False), ("initial_rto", 0.2))
    traffic = Web(file=size, idle=0.5, sizes="constant")
    group = flows(20, window=NewReno(), feedback=Loss(), traffic=traffic, sender=options)
    net = dumbbell(Constant(d=0.03), group, capacity=1e5, buffer=math.inf)
    span = {"until": 120.0, "warmup": 20.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("flows", "flows", "fct_mean"), 0.05)
    assert near(trains, packets, ("flows", "flows", "timeouts"), share)


def test_a_syn_that_is_lost_waits_for_the_first_timeout_as_by_packets():
    traffic = Web(file=3.0, idle=0.5, sizes="constant")
    group = flows(40, window=NewReno(), feedback=Loss(), traffic=traffic)
    net = dumbbell(Constant(d=0.05), group, capacity=1e5, buffer=math.inf)
    span = {"until": 120.0, "warmup": 20.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    for name in ("fct_mean", "timeouts", "active"):
        assert near(trains, packets, ("flows", "flows", name), 0.05), name


def test_connections_bring_packets_of_their_own():
    """A SYN for each file of a packet."""
    traffic = Web(file=1.0, idle=0.5, sizes="constant")
    net = dumbbell(Droptail(), flows(40, traffic=traffic), capacity=1e5, buffer=math.inf)
    runs = fc.simulate_trains(net, until=60.0, warmup=10.0, seeds=SEEDS)
    (link,), (group,) = runs.mean["links"].values(), runs.mean["flows"].values()
    assert link["arrivals"] == pytest.approx(2 * group["transfers"], rel=0.01)


def test_a_window_of_losses_is_repaired_by_sack_as_by_packets():
    """BMCC fills a buffer within round trips, and loses a third of its window: recoveries last for
    several round trips, in which lost packets count as under way.
    """
    net = fc.load("qazi2010/two_droptail")
    alone = dataclasses.replace(net.flows[0], n=np.array([1.0]))
    net = dataclasses.replace(net, flows=(alone,), flow_names=("bmcc",))
    span = {"until": 60.0, "warmup": 20.0, "seeds": (1, 2)}
    trains, packets = (run(net, **span) for run in (fc.simulate_trains, fc.simulate_packets))
    for name in ("queue_mean", "queue_var", "drop_fraction"):
        assert near(trains, packets, ("links", "bottleneck", name), 0.02), name
    for name in ("goodput", "window_mean", "recoveries", "timeouts"):
        assert near(trains, packets, ("flows", "bmcc", name), 0.02), name


@pytest.mark.parametrize("p", [0.03, 0.08])
def test_reno_repairs_one_loss_in_a_window_as_by_packets(p):
    """The second waits for the timer, which begins when the recovery ends, and cuts once more."""
    group = flows(5, window=Reno(), feedback=Loss())
    net = dumbbell(Constant(d=p), group, capacity=12.0 / p, buffer=math.inf)
    span = {"until": 120.0, "warmup": 20.0, "seeds": range(16)}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("flows", "flows", "goodput"), 0.04)


def test_marks_at_a_window_of_one_back_the_timer_off_as_by_packets():
    """RFC 3168, 6.1.2: of ten packets four are marked, and timers grow."""
    net = dumbbell(Constant(p=0.4), flows(4, reaction=OncePerRTT()), buffer=math.inf)
    span = {"until": 120.0, "warmup": 20.0, "seeds": range(16)}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("flows", "flows", "goodput"), 0.03)


def test_losses_behind_a_quench_wait_for_duplicates_as_by_packets():
    """Windows of three packets, which the quench cuts before their duplicate ACKs come."""
    net = fc.load("akujobi2002/homogeneous_becn")
    span = {"until": 55.0, "warmup": 15.0, "seeds": range(16)}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    assert near(trains, packets, ("links", "bottleneck", "mark_fraction"), 0.02)
    assert near(trains, packets, ("links", "bottleneck", "queue_var"), 0.1)


def test_a_law_that_waits_for_a_long_queue_steps_as_by_packets():
    """BLUE steps up if a packet finds more than 15, which half a packet less does not."""
    net = fc.load("govindaswamy2012/blue_ecn")
    span = {"until": 150.0, "warmup": 10.0, "seeds": range(8)}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    for name in ("queue_mean", "queue_var", "mark_fraction"):
        assert near(trains, packets, ("links", "ingress", name), 0.05), name


@pytest.mark.parametrize("name", ["misra2003/mixed", "govindaswamy2012/red_ecn"])
def test_packets_that_arrive_find_half_a_packet_less_than_there_is_on_average(name):
    """The law sees what they find; that is 2 % and 6 % of these queues."""
    net, span = fc.load(name), {"until": 100.0, "warmup": 20.0, "seeds": range(8)}
    place = ("links", net.link_names[0], "queue_mean")
    assert near(fc.simulate_trains(net, **span), fc.simulate_packets(net, **span), place, 0.01)


# -- Limits
def test_trains_come_to_packets_as_the_step_falls():
    """Voice in the queue of data leaves bursts of few flows, which a long step spreads."""
    net = fc.load("misra2003/fifo_newreno")
    trip = min(float(np.min(group.rtt)) for group in net.flows)
    span = {"until": 150.0, "warmup": 30.0, "seeds": range(24)}
    packets, wide = queue(fc.simulate_packets(net, **span))
    errors = []
    for parts in (8, 16, 32):
        mean, half = queue(fc.simulate_trains(net, step=trip / parts, **span))
        errors.append(abs(mean - packets))
        assert half + wide < 0.03 * packets
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02 * packets + half + wide


def grown(n):
    """Flows with 62.5 packet/s each, under RED whose packets per flow and time constant stay."""
    red = RED(min_th=1.0 * n, max_th=13.0 * n, p_max=0.1, w_q=0.002 / n)
    link = fc.Link(queue=red, capacity=62.5 * n, buffer=20.0 * n)
    group = fc.Flows(window=NewReno(), n=np.array([float(n)]), rtt=np.array([0.15]))
    return fc.Network(links=(link,), flows=(group,))


@pytest.mark.parametrize(("count", "capacity"), [(10, 1250.0), (40, 5000.0)])
def test_a_law_that_decides_on_each_packet_meets_them_one_by_one(count, capacity):
    """The virtual queue is full: it marks the packet by which a window has just grown, and seldom
    two of a flow. With marks by lot the queue is a fifth to a third too short.
    """
    group = flows(count, rtt=np.array([0.08]))
    net = dumbbell(AVQ(), group, capacity=capacity, buffer=400.0)
    trains, packets = (
        run(net, until=65.0, warmup=25.0, seeds=SEEDS)
        for run in (fc.simulate_trains, fc.simulate_packets)
    )
    (link,), (own,) = trains.mean["links"], trains.mean["flows"]
    assert near(trains, packets, ("links", link, "queue_mean"), 0.05)
    assert near(trains, packets, ("links", link, "mark_fraction"), 0.05)
    assert near(trains, packets, ("flows", own, "window_reductions"), 0.05)
    assert near(trains, packets, ("links", link, "utilization"), 0.002)


def test_flows_that_are_quenched_at_once_swing_as_by_packets():
    """What a flow has sent in a burst is not cut: its next burst is, a round trip later."""
    net = fc.load("akujobi2002/homogeneous_becn_250ms")
    span = {"until": 160.0, "warmup": 60.0, "seeds": range(1, 5)}
    trains, packets = (run(net, **span) for run in (fc.simulate_trains, fc.simulate_packets))
    of, ref = (runs.mean["links"]["bottleneck"] for runs in (trains, packets))
    assert of["queue_mean"] == pytest.approx(ref["queue_mean"], rel=0.17)
    assert math.sqrt(of["queue_var"]) == pytest.approx(math.sqrt(ref["queue_var"]), rel=0.2)


def test_trains_come_to_the_population_as_flows_are_more():
    """To 2 % of it, as far from it as packets are (docs/theory/population.md)."""
    span = {"until": 260.0, "warmup": 60.0, "seeds": range(6)}
    limit = fc.fluctuations(fc.replace(grown(160), {"model.closure": "population"}))
    (own,) = limit.links.values()
    mean, noise = own.queue.mean / 160, own.queue.std / math.sqrt(160)
    errors, spreads = [], []
    for n in (2, 4, 16, 160):
        runs = fc.simulate_trains(grown(n), **span)
        found, half = queue(runs)
        errors.append(abs(found / n - mean))
        std, wide = spread(runs)
        spreads.append(abs(std / math.sqrt(n) - noise))
        assert half < 0.05 * found
    assert errors[0] > errors[1] > errors[2]
    assert errors[3] < 0.02 * mean + half / 160
    assert spreads[0] > spreads[1] > spreads[2]
    assert spreads[3] < 0.1 * noise + wide / math.sqrt(160)


def test_small_noise_is_that_of_the_linear_model():
    net = fc.load("hollot2001/pi")
    runs = fc.simulate_trains(net, until=160.0, warmup=40.0, seeds=range(6))
    std, half = spread(runs)
    assert half < 0.15 * std
    noise = fc.fluctuations(net).links["bottleneck"].queue
    assert std == pytest.approx(noise.std, rel=0.15)
    mean, wide = queue(runs)
    assert abs(mean - noise.mean) < 0.01 * noise.mean + wide


# -- Queueing delays
@pytest.mark.parametrize(("count", "window", "delay"), [(10, 20.0, 0.06), (1, 1.0, 1 / 1250.0)])
def test_queueing_delays_are_what_windows_leave_of_the_round_trip(count, window, delay):
    """Windows over capacity less propagation; a packet alone has its own transmission."""
    group = flows(count, window=NewReno(max_window=window))
    net = dumbbell(Droptail(), group, buffer=math.inf)
    runs = fc.simulate_trains(net, until=40.0, warmup=20.0, seeds=(1, 2))
    link, own = runs.mean["links"]["bottleneck"], runs.mean["flows"]["flows"]
    assert link["queueing_delay_mean"] == pytest.approx(delay, rel=0.01)
    assert own["queueing_delay_mean"] == link["queueing_delay_mean"]
    assert own["rtt_mean"] == pytest.approx(0.1 + delay, rel=0.01)


def test_queueing_delays_of_a_route_are_those_of_packets():
    """A chain whose last three links are idle most of the time: a transmission of 0.8 ms each."""
    net = fc.load("govindaswamy2012/red_ecn")
    span = {"until": 60.0, "warmup": 20.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    for place in (("links", "ingress"), ("flows", "tcp")):
        assert near(trains, packets, (*place, "queueing_delay_mean"), 0.02), place
    for runs in (trains, packets):
        links = runs.mean["links"]
        for name in ("second", "third", "egress"):
            assert links[name]["queueing_delay_mean"] == pytest.approx(8e-4, rel=1e-6)
        total = sum(link["queueing_delay_mean"] for link in links.values())
        assert runs.mean["flows"]["tcp"]["queueing_delay_mean"] == pytest.approx(total)


# -- What else is on links
@pytest.mark.parametrize(
    "link",
    [
        {"voice": fc.Voice(calls=30.0, holding=3.0)},
        {"voice": fc.Voice(calls=30.0, holding=3.0, discipline="fifo")},
        {"cross": 400.0},
    ],
    ids=["voice", "voice among others", "cross traffic"],
)
def test_flows_get_what_other_traffic_leaves(link):
    span = {"until": 40.0, "warmup": 10.0, "seeds": SEEDS}
    alone = fc.simulate_trains(lossy(), **span)
    trains, packets = (f(lossy(**link), **span) for f in (fc.simulate_trains, fc.simulate_packets))
    own = (("links", "bottleneck", name) for name in ("utilization", "queueing_delay_mean"))
    for place in (*own, ("flows", "flows", "goodput")):
        assert near(trains, packets, place, 0.05), place
    goodput = ("flows", "flows", "goodput")
    assert metric(trains, goodput)[0] < 0.95 * metric(alone, goodput)[0]


def test_poisson_packets_alone_use_their_share():
    group = flows(1, start=Start(1e9, 1e9))
    net = dumbbell(Droptail(), group, cross=1000.0, buffer=math.inf)
    runs = fc.simulate_trains(net, until=110.0, warmup=10.0, seeds=SEEDS)
    share, half = queue(runs, "utilization")
    assert abs(share - 0.8) < 2 * half and half < 0.02


FAST = {"capacity": 1e5, "buffer": math.inf}
TRAFFIC = {
    "closed": (10, Web(file=14.0, idle=0.5, sizes="constant")),
    "open": (1, Files(arrivals=20.0, file=14.0, sizes="constant")),
    "one file each": (5, File(file=30.0)),
}


@pytest.mark.parametrize("name", TRAFFIC)
def test_files_without_congestion_take_as_long_as_by_packets(name):
    count, traffic = TRAFFIC[name]
    group = flows(count, traffic=traffic, feedback=Loss(), start=Start(0.0, 2.0))
    net = dumbbell(Droptail(), group, **FAST)
    span = {"until": 60.0, "warmup": 0.0 if name == "one file each" else 10.0, "seeds": SEEDS}
    trains, packets = fc.simulate_trains(net, **span), fc.simulate_packets(net, **span)
    for key in ("transfers", "fct_mean", "goodput"):
        assert near(trains, packets, ("flows", "flows", key), 0.05), key
    if name == "one file each":
        assert [run["flows"]["flows"]["transfers"] for run in trains.runs] == [5, 5, 5, 5]


def test_active_flows_obey_littles_law():
    group = flows(10, traffic=TRAFFIC["closed"][1], feedback=Loss(), start=Start(0.0, 2.0))
    net = dumbbell(Droptail(), group, **FAST)
    own = fc.simulate_trains(net, until=60.0, warmup=10.0).runs[0]["flows"]["flows"]
    assert own["active"] * 10 == pytest.approx(own["transfers"] / 50.0 * own["fct_mean"], rel=0.05)


# -- Faults


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"until": 0.0}, "warmup < until"),
        ({"until": -1.0}, "warmup < until"),
        ({"until": math.nan}, "warmup < until"),
        ({"until": "long"}, "until: expected a number in s"),
        ({"until": 1.0, "warmup": 1.0}, "warmup < until"),
        ({"seeds": ()}, "seeds: expected different"),
        ({"seeds": (1, 1)}, "seeds: expected different"),
        ({"seeds": (-1,)}, "seeds: expected different"),
        ({"seeds": (0.5,)}, "seeds: expected different"),
        ({"seeds": 3}, "seeds: expected a list"),
        ({"step": 0.0}, "step"),
        ({"step": -0.01}, "step"),
        ({"step": math.nan}, "step"),
        ({"step": math.inf}, "step"),
        ({"step": 5.0}, "step"),
        ({"step": 1e-9}, "step"),
        ({"step": "short"}, "step: expected a number in s"),
        ({"sample": 0.0}, "sample"),
        ({"sample": -1.0}, "sample"),
        ({"sample": math.nan}, "sample"),
        ({"sample": 1e-9}, "sample"),
        ({"sample": "often"}, "sample: expected a number in s"),
    ],
)
def test_wrong_arguments_are_named(given, says):
    with pytest.raises((PacketError, fc.ScenarioError), match=says):
        fc.simulate_trains(fc.load("hollot2001/pi"), **({"until": 1.0} | given))


def test_runs_that_do_not_fit_in_memory_are_refused_before_they_start(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("100000")
    monkeypatch.setattr(memory, "LIMITS", (limit,))
    with pytest.raises(memory.TooLittleMemory, match=r"1 runs of trains at a time, of 60 flows"):
        fc.simulate_trains(fc.load("hollot2001/slow"), until=3.0)
