"""The stationary law of flows and linear noise, against closed forms, packets and ns-2."""

import dataclasses
import importlib
import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from constant import Constant

import fluidcc as fc
from fluidcc import ops
from fluidcc.analysis import population_loop
from fluidcc.analysis.flow_response import answer
from fluidcc.analysis.margins import margins
from fluidcc.analysis.population import mean_window, moments
from fluidcc.laws import (
    CUBIC,
    RED,
    Droptail,
    ECNMod,
    Files,
    MarkTail,
    NewReno,
    OncePerRTT,
    PerMark,
    Reno,
    Wait,
)
from fluidcc.laws.law import AbstractQueueLaw, AbstractWindowLaw, Signal
from fluidcc.laws.parameters import param, state

VALIDATION = Path(__file__).parents[2] / "validation"
_UNHEARD = (0.0,) * (len(Signal._fields) - 2)  # fields that no law here reads
TRIP, CAPACITY = 0.1, 2000.0


def constant(p, *, drop=0.0, n=40, window=None, reaction=None, capacity=CAPACITY):
    """Flows at a link that marks with one probability, whatever its queue."""
    link = fc.Link(queue=Constant(p=p, d=drop), capacity=capacity)
    flows = fc.Flows(
        window=window or NewReno(), reaction=reaction or OncePerRTT(),
        n=np.array([float(n)]), rtt=np.array([TRIP]),
    )  # fmt: skip
    return fc.Network(links=(link,), flows=(flows,), flow_names=("tcp",), closure="population")


class Cubic(AbstractWindowLaw):
    """CUBIC without fast convergence and without a Reno-friendly region."""

    name: ClassVar[str] = "cubic_of_this_test"
    source: ClassVar[str] = "rfc9438, section 4.2"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "sack"
    top = state(0.0, "W_m", unit="packet", doc="window of the last reaction")
    since = state(0.0, "t_r", unit="s", doc="time since it")
    pace: float = param(0.4, "C", unit="packet/s^3", doc="pace", within="(0, inf)")
    kept: float = param(
        0.7, r"\beta", unit="1", doc="share that a reaction leaves", within="(0, 1)"
    )

    def on_ack(self, s, ack):
        """Grow as the cube of the time to the last window and beyond."""
        now = s.since - (s.top * (1 - self.kept) / self.pace) ** (1 / 3)
        grown = self.pace * ((now + ack.elapsed) ** 3 - now**3)
        return self.change(s, window=grown, since=ack.elapsed)

    def on_mark(self, s, ack):
        """Keep a share of the window, and remember it."""
        left = (self.kept - 1) * s.window
        return self.change(s, window=left, top=s.window - s.top, since=-s.since)


class FastConvergence(Cubic):
    """CUBIC that remembers less if its window did not come back to the last one."""

    name: ClassVar[str] = "fast_cubic_of_this_test"
    source: ClassVar[str] = "rfc9438, sections 4.2 and 4.7"
    begun = state(0.0, "W_e", unit="packet", doc="window that the last reaction left")

    def on_ack(self, s, ack):
        """Grow as the cube of the time to the window remembered and beyond."""
        now = s.since - (ops.maximum(s.top - s.begun, 0.0) / self.pace) ** (1 / 3)
        grown = self.pace * ((now + ack.elapsed) ** 3 - now**3)
        return self.change(s, window=grown, since=ack.elapsed)

    def remembered(self, s):
        """The window of the reaction, or less."""
        return ops.where(s.window < s.top, (1 + self.kept) / 2 * s.window, s.window)

    def on_mark(self, s, ack):
        """Keep a share of the window, and remember it, or less."""
        left = self.kept * s.window
        return self.change(
            s, window=left - s.window, top=self.remembered(s) - s.top, since=-s.since,
            begun=left - s.begun,
        )  # fmt: skip


class Averaging(FastConvergence):
    """CUBIC that remembers the mean of the window and of what it remembered."""

    name: ClassVar[str] = "averaging_cubic_of_this_test"

    def remembered(self, s):
        """A mean."""
        return 0.5 * (s.window + s.top)


class TwoNumbers(FastConvergence):
    """CUBIC that remembers two numbers that depend on what it remembered."""

    name: ClassVar[str] = "two_numbers_of_this_test"
    older = state(0.0, "W_o", unit="packet", doc="what it remembered before")

    def on_mark(self, s, ack):
        """Move what is remembered on."""
        return super().on_mark(s, ack)._replace(older=s.top - s.older)


class Remembering(AbstractWindowLaw):
    """One packet in a round trip, half at a reaction; what it remembers is of no use."""

    name: ClassVar[str] = "remembering_of_this_test"
    source: ClassVar[str] = "this test"
    reaction: ClassVar[str] = "once_per_rtt"
    recovery: ClassVar[str] = "newreno"
    last = state(0.0, "W_l", unit="packet", doc="window of the last reaction")

    def on_ack(self, s, ack):
        """One packet for each window of them."""
        return self.change(s, window=ack.count / s.window)

    def on_mark(self, s, ack):
        """Half of the window."""
        return self.change(s, window=-s.window / 2, last=s.window - s.last)


def flows_of(found):
    return next(iter(found.flows.values()))


def test_halving_at_every_mark_has_the_constant_of_small_probabilities():
    # mean over time of a window that grows by 1 in a round trip and is halved at rate p w: Ott,
    # Kemperman and Mathis (1996), Dumas, Guillemin and Robert (2002): 1.3098 / sqrt(p)
    net = constant(1e-6, window=Reno(), reaction=PerMark(), n=100)
    window = float(flows_of(fc.equilibrium(net)).window[0])
    assert window * 1e-3 == pytest.approx(1.3098, rel=2e-3)


@pytest.mark.parametrize(
    ("p", "drop", "n", "law", "reaction"),
    [
        (0.01, 0.0, 80, NewReno(), OncePerRTT()),
        (0.05, 0.0, 80, NewReno(), OncePerRTT()),
        (0.01, 0.0, 2000, NewReno(), OncePerRTT()),
        (0.0, 0.01, 80, NewReno(), OncePerRTT()),
        (0.02, 0.01, 80, NewReno(), OncePerRTT()),
        (0.05, 0.0, 80, Reno(), PerMark()),
        (0.05, 0.0, 80, ECNMod(), PerMark()),
    ],
)
def test_without_feedback_the_spectrum_has_the_variance_of_the_flights(p, drop, n, law, reaction):
    # responses to marks, summed over frequencies, against the stationary law: N var(F)
    found = fc.fluctuations(constant(p, drop=drop, n=n, window=law, reaction=reaction))
    trip = float(flows_of(found.equilibrium).rtt[0])
    expected = n * (flows_of(found).rate.std * trip) ** 2
    omega, density = found.omega, found.density["bottleneck"]
    variance = float(np.trapezoid(density, omega) + density[0] * omega[0]) / math.pi
    assert found.status == "regular" and found.margin == pytest.approx(1)
    # gaps between marks are whole packets, which is less random by p
    assert variance == pytest.approx(expected, rel=0.03 + p + drop)
    assert variance < found.links["bottleneck"].queue.std ** 2 < 1.25 * variance


@pytest.mark.parametrize(
    ("law", "reaction", "p", "drop"),
    [
        (NewReno(), OncePerRTT(), 0.01, 0.0),
        (NewReno(), OncePerRTT(), 0.03, 0.0),
        (NewReno(), OncePerRTT(), 0.0, 0.01),
        (Reno(), PerMark(), 0.01, 0.0),
        (ECNMod(), PerMark(), 0.05, 0.0),
    ],
)
def test_packets_of_the_same_rules_have_that_mean(law, reaction, p, drop):
    net = constant(p, drop=drop, window=law, reaction=reaction)
    expected = fc.equilibrium(net)
    assert expected.status == "regular"
    packets = fc.simulate_packets(net, until=320, warmup=20, seeds=(1, 2))
    window = float(packets.to_xarray()["group_window_mean"].mean())
    assert window == pytest.approx(float(flows_of(expected).window[0]), rel=0.03)
    queue = float(packets.to_xarray()["link_number_in_system_mean"].mean())
    in_flight = queue + CAPACITY * TRIP
    found = expected.links["bottleneck"].queue + CAPACITY * TRIP
    assert in_flight == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize(
    ("law", "reaction", "p"),
    [
        (NewReno(), OncePerRTT(), 0.01),
        (Reno(), PerMark(), 0.02),
        (Reno(), PerMark(), 0.05),
        (NewReno(), OncePerRTT(), 0.05),
        (ECNMod(), PerMark(), 0.05),
    ],
)
def test_packets_vary_as_the_spectrum_says(law, reaction, p):
    net = constant(p, window=law, reaction=reaction, n=60)
    found = fc.fluctuations(net).links["bottleneck"].queue
    data = fc.simulate_packets(net, until=620, warmup=20, seeds=(1, 2, 3)).to_xarray()
    std = math.sqrt(float(data["link_number_in_system_var"].mean()))
    assert std == pytest.approx(found.std, rel=0.1)


def test_compiled_and_plain_equilibria_agree():
    net = fc.replace(fc.load("hollot2001/slow"), {"model.closure": "population"})
    capacities = list(np.linspace(3000.0, 4500.0, 16))
    data = fc.sweep(net, {"link.capacity": capacities}, fc.equilibrium).to_xarray()
    for k in (0, 9):
        own = fc.equilibrium(fc.replace(net, {"link.capacity": capacities[k]}))
        swept = float(np.ravel(data["queue"].values)[k])
        assert swept == pytest.approx(own.links["bottleneck"].queue, rel=1e-9)


def test_the_boundary_of_a_population_is_where_its_count_changes():
    net = fc.replace(fc.load("hollot2001/slow"), {"model.closure": "population"})
    w_q, p_max = "link.queue.w_q", "link.queue.p_max"
    found = fc.boundary(net, p_max, w_q, (0.036, 0.47), (6e-5, 2.9e-4), points=4)
    (curve,) = found.curves
    assert (curve.kind, curve.below, curve.above, curve.ends) == ("hopf", 0, 2, ("edge", "edge"))
    k = len(curve.x) // 2
    for factor, unstable in ((0.999, 0), (1.001, 2)):
        beside = fc.replace(net, {p_max: curve.x[k], w_q: factor * curve.y[k]})
        assert fc.stability(beside).unstable == unstable
    along = fc.crossings(fc.replace(net, {p_max: curve.x[k]}), w_q, 6e-5, 2.9e-4, points=3)
    assert along.crossings[0].value == pytest.approx(curve.y[k], rel=1e-4)
    assert along.crossings[0].frequency == pytest.approx(curve.frequency[k], rel=1e-3)
    assert found.unstable[0, 0] == 0 and found.unstable[-1, -1] == 2


def record(monkeypatch, family, name):
    monkeypatch.syspath_prepend(str(VALIDATION))
    networks = importlib.import_module("ns2_networks")
    records = json.loads((VALIDATION / "ns2" / f"{family}.json").read_text())
    own = next(r for r in records if r["scenario"] == name)
    metrics = {key: own["metrics"][key]["mean"] for key in ("q_pkts_mean", "q_pkts_var")}
    return networks.scenario(family, own["params"]).net, metrics


# Mean queue within 10 %, standard deviation within 20 %: what the level is to reach where it does
# not refuse. ns-2.35, 500 s, 5 seeds.
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("f_fluid", "F_PI_ecn"),
        ("f_fluid", "F_RED_ecn_wait1"),
        ("a_homog", "A_homog_ecn_40ms_n25"),
        ("d_ecnmod", "D_fixedcap_pmax0.2_N10"),
        ("d_ecnmod", "D_fixedcap_markp_pmax0.2_N50"),
        ("a_homog", "A_homog_plain_40ms_n35"),
        ("a_homog", "A_variant_gentle1_plain_40ms_n45"),
    ],
)
def test_ns2_has_these_queues(monkeypatch, family, name):
    net, metrics = record(monkeypatch, family, name)
    queue = fc.fluctuations(net).links["bottleneck"].queue
    assert queue.mean == pytest.approx(metrics["q_pkts_mean"], rel=0.10)
    assert queue.std == pytest.approx(math.sqrt(metrics["q_pkts_var"]), rel=0.20)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "the loop is unstable"),
        ({"link.queue.w_q": 1e-6}, ""),
    ],
)
def test_the_loop_of_the_population_decides(change, reason):
    found = fc.fluctuations(fc.replace(fc.load("hollot2001/fast"), change))
    assert found.status == ("refused" if reason else "regular")
    assert found.message.partition(":")[0] == reason
    assert math.isnan(found.links["bottleneck"].queue.std) == bool(reason)


def test_refusals_have_their_reason_and_size():
    several = fc.fluctuations(fc.load("akujobi2002/web_ecn"))
    assert several.status == "refused" and "begins and ends" in several.message
    jump = fc.fluctuations(fc.load("durresi2001/two_tail_59ms"))
    assert "discontinuity" in jump.message
    short = fc.fluctuations(fc.load("athuraliya2001/rem"))
    assert "a queue of 20 +- " in short.message and "often empties" in short.message
    idle = dataclasses.replace(constant(0.01), links=(fc.Link(queue=Droptail(), capacity=1e9),))
    assert "none" in fc.fluctuations(idle).message
    voice = fc.fluctuations(fc.load("misra2003/fifo_mod"))
    assert "packets of voice, 160 B, count in the queue as much as those of flows" in voice.message
    steep = fc.fluctuations(fc.load("akujobi2002/homogeneous_becn"))
    assert "often passes the discontinuity of the signal at 45" in steep.message
    files = fc.fluctuations(fc.load("qazi2010/gain_short"))
    assert files.message == "flows.ahead: sizes with a shape of 1.2 have no variance"
    few = fc.fluctuations(constant(0.5, n=200))
    assert "timers decide below 2" in few.message


def test_the_order_of_round_trips_does_not_matter():
    trips = np.array([0.02, 0.05, 0.1, 0.2])
    spreads = []
    for order in (1, -1):
        link = fc.Link(queue=Constant(p=0.0, d=0.02), capacity=20000.0)
        flows = fc.Flows(window=NewReno(), n=np.full(4, 200.0), rtt=trips[::order])
        net = fc.Network(links=(link,), flows=(flows,))
        found = fc.fluctuations(net)
        own = next(iter(found.flows.values()))
        spreads.append((found.links["bottleneck"].queue.std, own.rate.mean, own.window.std))
    assert spreads[0] == pytest.approx(spreads[1], rel=1e-9)


def test_a_population_is_known_where_its_laws_allow_it():
    found = fc.equilibrium(fc.replace(fc.load("qazi2010/two_red"), {"model.closure": "population"}))
    assert found.status == "undetermined"
    assert "flows.bmcc: bmcc acts on the load factor" in found.message
    net = fc.replace(fc.load("hollot2001/slow"), {"model.closure": "population"})
    with pytest.raises(ValueError, match="trajectories are those of mean windows"):
        fc.simulate(net, until=1)
    stability = fc.stability(net)
    assert (stability.stable, stability.unstable) == (True, 0)


def test_even_marks_disturb_a_queue_less_than_independent_ones():
    from fluidcc.laws import Geometric, Wait

    stds = []
    for spreading in (Geometric(), Wait()):
        net = fc.load("hollot2001/slow")
        link = net.links[0]
        assert isinstance(link.queue, RED)
        law = dataclasses.replace(link.queue, spreading=spreading)
        even = dataclasses.replace(net, links=(dataclasses.replace(link, queue=law),))
        stds.append(fc.fluctuations(even).links["bottleneck"].queue.std)
    assert stds[1] < 0.8 * stds[0]


# Misra and Ott (2003): packets of 400 s, two seeds, from validation/compare_all.csv
@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("misra2003/besteffort_newreno", 60.44, 12.2),
        ("misra2003/persistent_mod", 61.10, 8.98),
        ("misra2003/persistent_mod_full", 36.01, 8.15),
        ("misra2003/persistent_newreno", 60.53, 13.9),
    ],
)
def test_bursts_of_different_round_trips_and_calls_move_the_queue(name, mean, std):
    queue = fc.fluctuations(fc.load(name)).links["bottleneck"].queue
    assert queue.mean == pytest.approx(mean, rel=0.10)
    assert queue.std == pytest.approx(std, rel=0.20)


def test_calls_vary_as_their_course_does():
    voice = fc.load("misra2003/persistent_mod").links[0].voice
    omega = np.geomspace(1e-6, 1e3, 4001)
    density = voice.spectrum(omega, 1000.0)
    variance = float(np.trapezoid(density, omega) + density[0] * omega[0]) / math.pi
    held = dataclasses.replace(voice, seed=3).path(40000.0, 1000.0)
    times = np.concatenate([[0.0], held.times, [40000.0]])
    share = np.diff(times) / 40000.0
    spread = float(share @ (held.rates - share @ held.rates) ** 2)
    assert variance == pytest.approx(spread, rel=0.08)


def test_poisson_traffic_moves_a_queue_as_packets_of_it_do():
    # 2 % of marks whatever the queue, so that nothing answers but the clock of the ACKs
    net = constant(0.02, n=40)
    link = dataclasses.replace(net.links[0], cross=0.4 * CAPACITY)
    net = dataclasses.replace(net, links=(link,))
    found = fc.fluctuations(net).links["bottleneck"].queue
    data = fc.simulate_packets(net, until=420, warmup=20, seeds=(1, 2, 3)).to_xarray()
    assert float(data["link_number_in_system_mean"].mean()) == pytest.approx(found.mean, rel=0.05)
    std = math.sqrt(float(data["link_number_in_system_var"].mean()))
    assert std == pytest.approx(found.std, rel=0.1)


def population(name, **changes):
    return fc.replace(fc.load(name), {"model.closure": "population", **changes})


def chain(*routes, w_q=2e-4, n=20.0):
    """Two links with RED, and groups of flows along routes."""
    links = tuple(red(capacity, w_q=w_q) for capacity in (1500.0, 2000.0))
    flows = tuple(
        fc.Flows(
            window=NewReno(), reaction=OncePerRTT(), n=np.array([n]),
            rtt=np.array([0.05 + 0.03 * k]), route=route,
        )
        for k, route in enumerate(routes)
    )  # fmt: skip
    names = tuple(f"flows{k}" for k in range(len(routes)))
    return fc.Network(
        links=links, flows=flows, link_names=("first", "second"), flow_names=names,
        closure="population",
    )  # fmt: skip


def test_links_that_no_flows_share_fluctuate_as_each_alone():
    both = chain((0,), (1,))
    together, loop = fc.fluctuations(both), fc.stability(both)
    assert together.status == "regular"
    alone = []
    for k, name in enumerate(both.link_names):
        net = dataclasses.replace(
            both, links=both.links[k : k + 1], link_names=(name,), flow_names=("flows",),
            flows=(dataclasses.replace(both.flows[k], route=(0,)),),
        )  # fmt: skip
        one = fc.fluctuations(net)
        spread = together.links[name]
        assert spread.queue.mean == pytest.approx(one.links[name].queue.mean, rel=1e-9)
        assert spread.queue.std == pytest.approx(one.links[name].queue.std, rel=1e-3)
        assert spread.average.std == pytest.approx(one.links[name].average.std, rel=1e-3)
        alone.append(fc.stability(net))
    assert loop.unstable == sum(one.unstable for one in alone) == 0
    least = min(one.gain_margin for one in alone)
    assert loop.gain_margin == pytest.approx(least, rel=1e-6)


def test_a_chain_fluctuates_as_its_packets_do():
    net = chain((0, 1), (0,), (1,))
    found = fc.fluctuations(net)
    assert found.status == "regular"
    packets = fc.simulate_packets(net, until=340, warmup=40, seeds=(1, 2)).complete().mean["links"]
    for name, link in found.links.items():
        assert link.queue.mean == pytest.approx(packets[name]["number_in_system_mean"], rel=0.05)
        std = math.sqrt(packets[name]["number_in_system_var"])
        assert link.queue.std == pytest.approx(std, rel=0.15)
    spectrum = found.spectrum()["queue_density"]
    assert spectrum.sizes == {"link": 2, "omega": len(found.omega)}


@pytest.mark.parametrize(
    ("trips", "cross", "within"),
    [([0.08], 0.0, 0.1), (np.linspace(0.05, 0.15, 5), 0.0, 0.2), ([0.08], 1500.0, 0.1)],
)
@pytest.mark.parametrize("first", [True, False])
def test_links_without_a_queue_have_packets_in_service_and_in_bunches(trips, cross, within, first):
    rules = {"window": NewReno(), "reaction": OncePerRTT(), "route": (0, 1)}
    narrow, wide = red(2000.0, w_q=1e-4), droptail(4000 + cross, cross=cross)
    n, trips = np.full(len(trips), 20 / len(trips)), np.asarray(trips, float)
    net = fc.Network(
        links=(wide, narrow) if first else (narrow, wide),
        flows=(fc.Flows(n=n, rtt=trips, **rules),),
        link_names=("wide", "red") if first else ("red", "wide"), flow_names=("tcp",),
    )  # fmt: skip
    found = fc.fluctuations(net).links["wide"]
    packets = fc.simulate_packets(net, until=150, warmup=30, seeds=(1, 2)).complete()
    link = packets.mean["links"]["wide"]
    assert found.queue.mean == pytest.approx(link["number_in_system_mean"], abs=within)
    std = math.sqrt(link["number_in_system_var"])
    assert found.queue.std == pytest.approx(std, abs=within)
    assert found.idle == pytest.approx(1 - link["utilization"], abs=0.01)
    passed = link["departures"] / 120  # Little's law
    late = within / passed
    assert found.queueing_delay.mean == pytest.approx(
        link["number_in_system_mean"] / passed, abs=late
    )


def in_a_row(first, second, *groups):
    """Two links, and groups of flows by number, round trip and route."""
    rules = {"window": NewReno(), "reaction": OncePerRTT()}
    flows = tuple(
        fc.Flows(n=np.array([float(n)]), rtt=np.array([trip]), route=route, **rules)
        for n, trip, route in groups
    )
    names = tuple(f"group{k}" for k in range(len(groups)))
    return fc.Network(
        links=(first, second), flows=flows, link_names=("first", "second"), flow_names=names
    )


def red(capacity, *, w_q=2e-4, **changes):
    """A link with RED."""
    queue = RED(min_th=30, max_th=150, p_max=0.1, w_q=w_q, gentle=True, spreading=Wait())
    return fc.Link(queue=queue, capacity=capacity, **{"buffer": 600, "delay": 0.005, **changes})


def droptail(capacity, **changes):
    """A link with a tail that drops."""
    return fc.Link(queue=Droptail(), capacity=capacity, delay=0.005, **{"buffer": 600, **changes})


def test_a_queue_without_a_signal_has_no_loop_of_its_own():
    net = in_a_row(red(2000.0), droptail(1100.0), (14, 0.05, (0, 1)), (15, 0.1, (0,)))
    found = fc.fluctuations(net)
    assert found.message.startswith("links.second: a queue of 20.35 +- 19.5 packets often empties")
    loop = fc.stability(fc.replace(net, {"model.closure": "population"}))
    assert loop.stable and loop.phase_margin > 0 and len(loop.curves()) == 1


def test_equal_flows_in_two_groups_are_one_stream():
    one, two = (
        fc.fluctuations(in_a_row(droptail(2400.0), red(2000.0), *groups)).links["first"].queue
        for groups in ([(20, 0.08, (0, 1))], [(10, 0.08, (0, 1))] * 2)
    )
    assert (one.mean, one.std) == pytest.approx((two.mean, two.std), rel=1e-9)


def test_links_that_bunches_would_fill_have_no_numbers():
    narrow = droptail(2505.0, buffer=20, cross=1000.0)
    full = droptail(2500.0, cross=1000.0)
    for link in (narrow, full):
        found = fc.fluctuations(in_a_row(red(1500.0), link, (20, 0.05, (0, 1))))
        assert found.status == "regular" and found.links["first"].queue.std > 0
        assert math.isnan(found.links["second"].queue.mean)


def test_a_part_of_what_a_faster_queue_lets_go_comes_in_bunches():
    net = in_a_row(red(2000.0), droptail(1500.0), (11, 0.05, (0, 1)), (11, 0.05, (0,)))
    packets = fc.simulate_packets(net, until=150, warmup=30, seeds=(1, 2)).complete()
    mean = packets.mean["links"]["second"]["number_in_system_mean"]
    assert fc.fluctuations(net).links["second"].queue.mean == pytest.approx(mean, abs=0.1)


def test_calls_at_a_link_without_a_queue_take_their_time():
    voice = fc.load("misra2003/persistent_newreno").links[0].voice
    calls = dataclasses.replace(voice, arrivals=0.4, most=80)
    net = in_a_row(red(1500.0), droptail(2500.0, voice=calls), (20, 0.05, (0, 1)))
    packets = fc.simulate_packets(net, until=230, warmup=30, seeds=(1, 2)).complete()
    used = packets.mean["links"]["second"]["utilization"]
    assert fc.fluctuations(net).links["second"].idle == pytest.approx(1 - used, abs=0.01)


@pytest.mark.parametrize("cap", [5.0, 6.3])
def test_windows_at_a_cap_are_whole(cap):
    law = NewReno(max_window=cap)
    link = red(1500.0, delay=0.0)
    flows = fc.Flows(
        window=law, reaction=OncePerRTT(), n=np.array([20.0]), rtt=np.array([0.05])
    )  # fmt: skip
    net = fc.Network(
        links=(link,), flows=(flows,), flow_names=("tcp",), closure="population"
    )  # fmt: skip
    queue = fc.equilibrium(net).links["bottleneck"].queue
    packets = fc.simulate_packets(net, until=150, warmup=30, seeds=(1, 2)).complete()
    mean = packets.mean["links"]["bottleneck"]["number_in_system_mean"]
    assert queue == pytest.approx(mean, rel=0.03)
    if cap % 1:
        by_cap = fc.gradient(net, "queue", ["flow.window.max_window"])
        low, high = (
            fc.equilibrium(fc.replace(net, {"flow.window.max_window": cap + d}))
            for d in (-0.1, 0.1)
        )
        rise = (high.links["bottleneck"].queue - low.links["bottleneck"].queue) / 0.2
        assert by_cap.derivatives["flow.window.max_window"] == pytest.approx(rise, rel=0.15)


def mice(share, size):
    """Flows that last, and a share of the link that is files of one size."""
    rules = {"window": NewReno(), "reaction": OncePerRTT()}
    files = Files(file=size, sizes="constant", arrivals=share * CAPACITY / size)
    return fc.Network(
        links=(red(CAPACITY, buffer=800, delay=0.0),),
        flows=(
            fc.Flows(n=np.array([20.0]), rtt=np.array([0.08]), **rules),
            fc.Flows(n=np.array([1.0]), rtt=np.array([TRIP]), traffic=files, **rules),
        ),
        flow_names=("elephants", "mice"),
    )


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_files_that_come_by_themselves_move_the_queue_as_packets_do(share):
    net = mice(share, 10.0)
    found = fc.fluctuations(net)
    packets = fc.simulate_packets(net, until=460, warmup=60, seeds=(1, 2)).complete()
    link, queue = packets.mean["links"]["bottleneck"], found.links["bottleneck"].queue
    assert queue.mean == pytest.approx(link["number_in_system_mean"], rel=0.05)
    assert queue.std == pytest.approx(math.sqrt(link["number_in_system_var"]), rel=0.15)
    margin = fc.stability(fc.replace(net, {"model.closure": "population"})).phase_margin
    assert found.margin <= 2 * math.sin(math.radians(min(margin, 180)) / 2) + 1e-9


def test_files_that_come_by_themselves_count_in_derivatives():
    net = fc.replace(mice(0.2, 10.0), {"model.closure": "population"})
    arrivals = 0.2 * CAPACITY / 10.0
    low, high = (
        fc.equilibrium(fc.replace(net, {"flows.mice.traffic.arrivals": at}))
        for at in (0.98 * arrivals, 1.02 * arrivals)
    )
    found = fc.gradient(net, "queue", ["flows.mice.traffic.arrivals", "flows.mice.rtt"])
    rise = high.links["bottleneck"].queue - low.links["bottleneck"].queue
    slope = found.derivatives["flows.mice.traffic.arrivals"]
    assert slope == pytest.approx(rise / (0.04 * arrivals), rel=0.03)
    assert found.derivatives["flows.mice.rtt"] == 0  # the fluid has the files' mean rate alone


def test_files_that_answer_the_queue_are_refused():
    found = fc.fluctuations(mice(0.2, 60.0))
    assert found.status == "refused"
    assert "flows.mice: packets are of files that meet" in found.message


@pytest.mark.parametrize(("n", "w_q", "unstable"), [(12.0, 2e-3, 2), (14.0, 4e-3, 0)])
def test_roots_and_margins_of_a_chain_agree_with_its_count(n, w_q, unstable):
    # the count is by turns of a determinant, roots are sought off the axis, margins link by link
    found = fc.stability(chain((0, 1), (0,), (1,), n=n, w_q=w_q))
    assert found.unstable == unstable
    assert sum(root.real > 0 for root in found.roots) == unstable
    assert (found.gain_margin < 1) == (unstable > 0)
    near = min(found.roots, key=lambda root: abs(root.real)).imag
    assert abs(near) == pytest.approx(found.phase_crossover, rel=0.05)
    assert len(found.curves()) == 2


@pytest.mark.parametrize("name", ["hollot2001/slow", "hollot2001/fast", "misra2003/mixed"])
def test_roots_of_a_population_are_as_many_as_its_loop_turns(name):
    # the count is by the frequency response, roots are sought off the axis
    found = fc.stability(population(name))
    right = [s for s in found.roots if s.real > 0]
    assert found.unstable == len(right) and found.stable == (not right)
    assert (found.gain_margin > 1) == found.stable


@pytest.mark.parametrize(("factor", "unstable"), [(1, 0), (7, 0), (9, 2), (30, 2), (100, 4)])
def test_an_integrator_does_not_count_as_a_root(factor, unstable):
    # the loop of PI turns from a quarter of a turn on
    gain = factor * 9.64e-6
    found = fc.stability(population("hollot2001/pi", **{"link.queue.k_pi": gain}))
    assert (found.unstable, found.stable) == (unstable, unstable == 0)
    right = [s for s in found.roots if s.real > 0]
    assert len(right) == unstable or not len(found.roots)
    noise = fc.fluctuations(fc.replace(fc.load("hollot2001/pi"), {"link.queue.k_pi": gain}))
    assert ("the loop is unstable" in noise.message) == (unstable > 0)


@pytest.mark.parametrize("points", [2, 5])
def test_a_crossing_is_where_both_sides_have_their_counts(points):
    net, k = population("hollot2001/pi"), 9.64e-6
    first = fc.crossings(net, "link.queue.k_pi", k, 30 * k, points=points).crossings[0]
    assert first.value == pytest.approx(7.9177e-5, rel=1e-4)
    assert (first.below, first.above, first.becomes) == (0, 2, "unstable")


class Reacting(AbstractQueueLaw):
    """Marks by the queue and, if it is told to, by the rate at which packets come."""

    name: ClassVar[str] = "reacting_to_arrivals"
    source: ClassVar[str] = "this test"
    slope: float = param(1e-4, "s", unit="1/packet", doc="of the marks", within="(0, 1)")
    rate: float = param(0.0, "g", unit="packet", doc="weight of arrivals", within="[0, inf)")

    def signal(self, x, seen):
        """Marks in proportion."""
        beyond = 1 / (seen.elapsed * seen.capacity) - 1
        return Signal(ops.clip(self.slope * (seen.queue + self.rate * beyond), 0.0, 1.0))


def test_a_loop_has_what_a_law_does_with_arrivals():
    gains = []
    for rate in (0.0, 50.0):
        link = fc.Link(queue=Reacting(rate=rate), capacity=CAPACITY)
        flows = fc.Flows(
            window=NewReno(), reaction=OncePerRTT(), n=np.array([40.0]), rtt=np.array([TRIP])
        )
        net = fc.Network(links=(link,), flows=(flows,), closure="population")
        gains.append(fc.stability(net))
    # a change of the queue in one direction comes with more arrivals: lead, hence phase
    assert gains[1].phase_margin > gains[0].phase_margin + 1


def test_a_population_is_critical_where_its_stability_changes():
    net = population("hollot2001/slow")
    (edge,) = fc.crossings(net, "link.queue.w_q", 1e-5, 1e-3, points=5).crossings
    assert edge.becomes == "unstable"
    found = fc.stability(fc.replace(net, {"link.queue.w_q": edge.value}))
    assert found.gain_margin == pytest.approx(1, abs=1e-6)
    assert abs(found.rightmost.imag) == pytest.approx(edge.frequency, rel=1e-3)
    assert abs(found.rightmost.real) < 1e-3 * edge.frequency
    points = fc.stability_map(
        net, {"link.queue.w_q": [0.99 * edge.value, 1.01 * edge.value]}
    ).points
    assert [point.unstable for point in points] == [0, 2]


@pytest.mark.parametrize(
    ("name", "path", "at", "step", "rough"),
    [
        ("hollot2001/slow", "flow.n", 60.0, 3.0, 0.02),
        ("hollot2001/slow", "link.queue.p_max", 0.1, 0.005, 0.02),
        ("hollot2001/pi", "link.queue.q_ref", 200.0, 2.0, 0.02),
        # cuts to whole packets: equilibria, each on a grid of its own, differ by up to 0.5 %
        ("akujobi2002/competing_becn", "link.capacity", 1250.0, 125.0, 0.06),
        ("akujobi2002/competing_becn", "link.queue.p_max", 0.1, 0.015, 0.06),
    ],
)
def test_derivatives_of_a_population_are_those_of_its_equilibria(name, path, at, step, rough):
    net = population(name, **{path: at})
    low, high = (fc.equilibrium(fc.replace(net, {path: at + side * step})) for side in (-1, 1))
    group = net.flow_names[0]
    for of, value in (
        ("queue", lambda eq: eq.links["bottleneck"].queue),
        (f"flows.{group}.window", lambda eq: eq.flows[group].window[0]),
        (f"flows.{group}.rate", lambda eq: eq.flows[group].rate[0]),
    ):
        found = fc.gradient(net, of, [path])
        assert found.status == "ok"
        slope = (value(high) - value(low)) / (2 * step)
        assert found.derivatives[path] == pytest.approx(slope, rel=rough, abs=1e-9)


def test_the_delay_that_is_not_exceeded_is_optimised():
    best = fc.optimize(
        fc.load("hollot2001/pi"), {"link.queue.k_pi": (1e-6, 1e-4)},
        minimize="noise.queueing_delay_95", trials=12, verification=False,
    )  # fmt: skip
    at = fc.fluctuations(fc.replace(fc.load("hollot2001/pi"), best.values))
    delay = at.links["bottleneck"].queueing_delay
    assert best.objective == pytest.approx(delay.quantiles[0.95], rel=1e-9)
    usual = fc.fluctuations(fc.load("hollot2001/pi")).links["bottleneck"]
    assert best.objective < usual.queueing_delay.quantiles[0.95]
    assert usual.queueing_delay.quantiles[0.95] == pytest.approx(
        usual.queue.quantiles[0.95] / 3750.0, rel=1e-12
    )


PUBLISHED = ((Cubic(), 1.3003), (FastConvergence(), 1.1962))
"""Mean window over (R/p)^(3/4) for a pace of 0.4, if losses are random and few."""


@pytest.mark.parametrize(("law", "constant_of"), PUBLISHED)
@pytest.mark.parametrize(("p", "drop"), [(1e-4, 0.0), (1e-6, 0.0), (0.0, 1e-5)])
def test_cubic_has_the_constant_of_random_losses(law, constant_of, p, drop):
    net = constant(p, drop=drop, window=law, n=1, capacity=1e9)
    found = flows_of(fc.equilibrium(net))
    flight = float(found.rate[0]) * float(found.rtt[0])
    assert flight / (TRIP / (p + drop)) ** 0.75 == pytest.approx(constant_of, rel=3e-3)


@pytest.mark.parametrize(("fast", "constant_of"), [(False, 1.3004), (True, 1.1962)])
def test_cubic_of_the_rfc_has_the_published_constant(fast, constant_of):
    """1.3004: Poojary and Sharma (2016); the other by one flow's equations, drawn at random."""
    net = constant(1e-6, window=CUBIC(fast_convergence=fast), n=1, capacity=1e9)
    found = flows_of(fc.equilibrium(net))
    flight = float(found.rate[0]) * float(found.rtt[0])
    assert flight / (TRIP / 1e-6) ** 0.75 == pytest.approx(constant_of, rel=3e-3)


def test_mean_windows_of_cubic_rest_beyond_the_top_of_the_cube():
    """Growth 3 c (t - K)^2 balances (1 - beta) W/t: t = R/(p W), c K^3 = (1 - beta) W."""
    net = constant(1e-7, window=CUBIC(fast_convergence=False), n=1, capacity=1e9)
    (window,) = flows_of(fc.equilibrium(fc.replace(net, {"model.closure": "mean"}))).window
    (beyond,) = (u.real for u in np.roots([3.0, -6.0, 3.0, -1.0]) if abs(u.imag) < 1e-9)
    expected = (0.4 / 0.3) ** 0.25 * (TRIP / 1e-7 / beyond) ** 0.75
    assert window == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("law", [Cubic(), FastConvergence(), CUBIC()])
@pytest.mark.parametrize(("p", "drop"), [(1e-3, 0.0), (1e-2, 0.0), (0.0, 1e-3)])
def test_packets_of_laws_that_remember_have_that_mean(law, p, drop):
    net = constant(p, drop=drop, window=law, n=20, capacity=1e6)
    expected = fc.equilibrium(net)
    packets = fc.simulate_packets(net, until=1220, warmup=20, seeds=(1, 2))
    window = float(packets.to_xarray()["group_window_mean"].mean())
    assert float(flows_of(expected).window[0]) == pytest.approx(window, rel=0.03)


def answering(law, p, drop=0.0, trip=TRIP):
    flows = constant(p, drop=drop, window=law, n=1).flows[0]
    signal = Signal(*(np.array([v]) for v in (p, drop, *_UNHEARD)))
    return answer(flows, signal, np.array([trip]))[0]


def at_rest(law, p, drop=0.0, trip=TRIP):
    """Mean flight of one flow."""
    flows = constant(p, drop=drop, window=law, n=1).flows[0]
    signal = Signal(*(np.array([v]) for v in (p, drop, *_UNHEARD)))
    return float(mean_window(flows, signal, np.array([trip]))[1][0])


def test_windows_at_their_cap_answer_signals_however_rare():
    often, rarely = (
        answering(Reno(max_window=64.0), p).at(np.array([1e-3j])).by_mark for p in (1e-10, 1e-14)
    )
    assert rarely == pytest.approx(often, rel=0.01)


@pytest.mark.parametrize("law", [Cubic(), FastConvergence(), Remembering()])
@pytest.mark.parametrize(("p", "drop"), [(1e-2, 0.0), (1e-3, 0.0), (0.0, 1e-2), (5e-3, 5e-3)])
def test_orbits_answer_slowly_as_their_means_do(law, p, drop):
    # reactions alone, against the difference of two stationary laws
    flow, beside = answering(law, p, drop), 0.03
    _, (by_mark, by_loss), by_trip = flow._sums(np.array([1e-6j]))

    def slope(**change):
        low, high = (
            at_rest(law, *(v * (1 + side * beside * change.get(k, 0.0)) for k, v in at.items()))
            for side in (-1, 1)
        )
        return (high - low) / (2 * beside)

    at = {"p": p, "drop": drop, "trip": TRIP}
    if p:
        assert by_mark[0].real == pytest.approx(slope(p=1.0), rel=0.05)
    if drop:
        assert by_loss[0].real == pytest.approx(slope(drop=1.0), rel=0.05)
    if isinstance(law, Cubic):
        assert by_trip[0].real == pytest.approx(slope(trip=1.0), rel=0.05)
    else:
        assert abs(by_trip[0]) < 1e-9


@pytest.mark.parametrize("law", [Cubic(), FastConvergence(), Remembering()])
@pytest.mark.parametrize(("p", "drop"), [(1e-2, 0.0), (1e-3, 0.0), (0.0, 1e-2)])
def test_the_spectrum_of_orbits_has_the_variance_of_the_flight(law, p, drop):
    flow, omega = answering(law, p, drop), np.geomspace(1e-4, 100.0, 1200)
    power = flow.at(1j * omega).power
    variance = float(np.trapezoid(power, omega) + power[0] * omega[0]) / math.pi
    assert variance == pytest.approx(moments(flow.law).flight_std ** 2, rel=0.01)


@pytest.mark.parametrize(("p", "drop"), [(1e-2, 0.0), (1e-3, 0.0), (0.0, 1e-2)])
def test_orbits_answer_as_the_grid_of_windows_does(p, drop):
    # the same rules with and without a number to remember; above 4 answers vanish
    z = 1j * np.geomspace(1e-3, 4.0, 40)
    orbits, grid = (answering(law, p, drop).at(z) for law in (Remembering(), NewReno()))
    for name in ("by_mark", "by_loss", "power", "mean"):
        expected = getattr(grid, name)
        assert np.all(abs(getattr(orbits, name) - expected) <= 0.03 * abs(expected))


@pytest.mark.parametrize("law", [Cubic(max_window=400.0), FastConvergence(max_window=400.0)])
def test_queues_of_cubic_vary_as_its_orbits_say(law):
    net = fc.load("hollot2001/pi")
    flows = dataclasses.replace(net.flows[0], window=law)
    net = dataclasses.replace(net, flows=(flows,))
    found = fc.fluctuations(net)
    assert found.status == "regular"
    packets = fc.simulate_packets(net, until=860, warmup=160, seeds=(1, 2, 3)).to_xarray()
    std = math.sqrt(float(packets["link_queue_var"].mean()))
    assert found.links["bottleneck"].queue.std == pytest.approx(std, rel=0.15)
    stability = fc.stability(fc.replace(net, {"model.closure": "population"}))
    assert (stability.stable, stability.unstable) == (True, 0)


@pytest.mark.parametrize(("p", "capacity"), [(0.03, 1600.0), (0.003, 9700.0)])
def test_windows_that_grow_by_time_answer_the_round_trip(p, capacity):
    # nothing answers but the queue itself: windows go as R^(3/4), and R is most of it the queue's
    net = constant(p, window=Cubic(max_window=400.0), n=60, capacity=capacity)
    found = fc.fluctuations(net)
    assert found.margin == pytest.approx(0.25, abs=0.03)
    packets = fc.simulate_packets(net, until=1220, warmup=60, seeds=(1, 2, 3)).to_xarray()
    std = math.sqrt(float(packets["link_number_in_system_var"].mean()))
    assert found.links["bottleneck"].queue.std == pytest.approx(std, rel=0.12)


def test_compiled_orbits_are_those_of_numpy():
    jax = pytest.importorskip("jax")
    flows = constant(1e-2, window=FastConvergence(), n=1).flows[0]
    signal = Signal(*(np.array([v]) for v in (1e-2, 0.0, *_UNHEARD)))
    plain = mean_window(flows, signal, np.array([TRIP]))
    compiled = jax.jit(lambda s, trip: mean_window(flows, s, trip))(signal, np.array([TRIP]))
    assert np.allclose(plain, compiled, rtol=1e-9)


def test_a_law_that_remembers_more_than_a_reaction_is_refused():
    for law in (TwoNumbers(), Averaging()):
        found = fc.equilibrium(constant(0.01, window=law))
        assert found.status == "undetermined"
        assert f"{law.name} remembers more than its last reaction" in found.message
    found = fc.equilibrium(population("alizadeh2010/dctcp"))
    assert found.status == "undetermined"
    assert "dctcp remembers more than its last reaction" in found.message


@pytest.mark.parametrize(
    ("name", "over", "together", "counts"),
    [
        (
            "hollot2001/slow",
            {"link.queue.w_q": [1e-5, 1.4e-4, 1e-3], "link.queue.p_max": [0.1, 0.3]},
            True, {0, 2},
        ),
        ("hollot2001/slow", {"flow.n": [7, 60, 1000]}, True, {0, 2, None}),  # the last at a jump
        (
            "hollot2001/pi", {"link.queue.k_pi": [1e-6, 1e-4], "link.delay": [0.01, 0.1]},
            True, {0, 2},
        ),
        ("misra2003/mixed", {"link.capacity": [1000.0, 1400.0]}, True, {0}),
        ("misra2003/mixed", {"flows.mod.window.c1": [0.05, 0.0625]}, False, {0}),  # one by one
    ],
)  # fmt: skip
def test_a_map_of_a_population_agrees_with_stability(name, over, together, counts):
    net = population(name)
    found = fc.stability_map(net, over)
    assert found.batched == (len(found.points) if together else 0)
    assert {point.unstable for point in found.points} == counts
    for point in found.points:
        own = fc.stability(fc.replace(net, dict(point.set)))
        assert (point.unstable, point.stable) == (own.unstable, own.stable)
        assert point.status == own.equilibrium.status
        queue = own.equilibrium.links["bottleneck"].queue
        assert point.queues["bottleneck"] == pytest.approx(queue, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "over"),
    [
        ("hollot2001/slow", {"flow.n": [7, 40, 60, 1000]}),  # the last at a jump
        ("misra2003/mixed", {"link.capacity": [1000.0, 1400.0]}),
        ("hollot2001/slow", {"flow.window.min_window": [1.0, 2.0]}),  # one by one
        ("hollot2001/pi", {"link.queue.q_ref": [100.0, -1.0, 200.0]}),  # one is no network
    ],
)
@pytest.mark.parametrize("verb", [fc.equilibrium, fc.stability, fc.fluctuations])
def test_points_of_a_sweep_of_populations_are_those_one_by_one(name, over, verb):
    net = fc.load(name) if verb is fc.fluctuations else population(name)
    found = fc.sweep(net, over, verb)
    table = fc.sweep(net, over, verb, workers=0).to_xarray()
    assert len(found.points) == table["failed"].size == sum(map(len, over.values()))
    for k, point in enumerate(found.points):
        failed = bool(table["failed"].values[k])
        try:
            own = verb(fc.replace(net, dict(point.set)))
        except ValueError as fault:
            assert (point.result, point.message, failed) == (None, str(fault), True)
            continue
        assert failed == bool(point.message)
        assert_same(point.result.to_dict(), own.to_dict())
        queue = own.to_xarray()["queue"].values
        np.testing.assert_allclose(table["queue"].values[k], queue, rtol=1e-8)


def assert_same(found, own):
    """Two trees of plain values agree to eight digits; roots beyond the first are searched for from
    many starts, and may be others.
    """
    if isinstance(own, dict):
        assert found.keys() == own.keys()
        for name in own.keys() - {"roots"}:
            assert_same(found[name], own[name])
    elif isinstance(own, list):
        assert len(found) == len(own)
        for pair in zip(found, own, strict=True):
            assert_same(*pair)
    elif isinstance(own, float):
        assert found == pytest.approx(own, rel=1e-8, abs=1e-12, nan_ok=True)
    else:
        assert found == own


def test_small_sweeps_of_populations_leave_blocks_to_all_workers():
    shares = []
    over = {"flow.n": np.linspace(40, 70, 20)}
    fc.sweep(population("hollot2001/slow"), over, fc.equilibrium, progress=shares.append)
    assert len(shares) > 2
    assert (shares[-1].done, shares[-1].total) == (20, 20)


@pytest.mark.parametrize(
    "name", ["hollot2001/slow", "hollot2001/fast", "misra2003/fifo_mixed", "qazi2010/gain_baseline"]
)
@pytest.mark.parametrize("factor", [0.7, 1.0, 1.6])
def test_crossovers_are_those_of_the_whole_curve(name, factor):
    net = population(name)
    path = f"links.{net.link_names[0]}.capacity"
    found = fc.stability(fc.replace(net, {path: factor * float(net.links[0].capacity)}), roots=0)
    loop = found.population
    whole = margins(loop.gain, scale=1 / loop.trip)
    assert whole.gain_crossovers
    for kind in ("gain_crossovers", "phase_crossovers"):
        each, own = (getattr(m, kind) for m in (found.margins, whole))
        assert len(each) == len(own)
        for a, b in zip(each, own, strict=True):
            assert dataclasses.astuple(a) == pytest.approx(dataclasses.astuple(b), rel=1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.99, 1.01, 1.1])
def test_few_frequencies_count_as_many_roots_as_all(monkeypatch, factor):
    net = population("hollot2001/slow")
    edge = fc.crossings(net, "link.queue.w_q", 1e-5, 1e-3, points=3).crossings[0].value
    changed = fc.replace(net, {"link.queue.w_q": factor * edge})
    few = fc.stability(changed).unstable
    monkeypatch.setattr(population_loop, "_SPARSE", ())
    assert few == fc.stability(changed).unstable == (0 if factor < 1 else 2)


def test_searches_for_roots_pass_poles_of_the_response():
    """Newton's method meets a number at which the flows have no response: RED with 25 flows."""
    queue = RED(min_th=20.0, max_th=80.0, p_max=0.1, w_q=0.002, gentle=True)
    link = fc.Link(queue, capacity=25000 / 3, delay=0.005, buffer=500.0)
    flows = fc.Flows(
        FastConvergence(), n=np.array([25.0]), rtt=np.array([0.05]), feedback=MarkTail(),
        reaction=OncePerRTT(),
    )  # fmt: skip
    found = fc.stability(fc.Network((link,), (flows,), closure="population"))
    assert found.unstable == sum(root.real > 0 for root in found.roots) == 2
