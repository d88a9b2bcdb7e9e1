"""Laws whose links write numbers into packets: VCP, HPCC, RCP and XCP, through every engine."""

import cmath
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import ops
from fluidcc.laws import (
    HPCC,
    RCP,
    VCP,
    XCP,
    Ack,
    Arrival,
    Explicit,
    ExplicitControl,
    RateControl,
    Signal,
    Telemetry,
)
from fluidcc.laws.law import ALWAYS, SIGNALS, WRITTEN
from fluidcc.laws.own import loaded
from fluidcc.scenario.network import FlowsInitial

EXAMPLES = Path(__file__).parents[2] / "docs" / "own_laws"


def test_one_table_describes_the_fields_of_signals():
    assert tuple(SIGNALS) == Signal._fields
    assert [k for k in SIGNALS if k not in Ack._fields] == [*ALWAYS]
    assert set(WRITTEN) == {"load", "spacing", "positive", "negative"} == set(Explicit().written)
    # packets and trains take the largest of the links
    assert all(SIGNALS[k].combine is ops.maximum for k in WRITTEN)


# VCP


def vcp(**changes) -> fc.Network:
    return fc.replace(fc.load("xia2005/load"), changes)


@pytest.mark.parametrize("n", [2, 20])
def test_vcp_by_the_load_itself_rests_a_little_above_full_load(n: int):
    """w log(1 + kappa (1 - f)/f)/t_p + alpha R/t_p^2 = 0, kappa = xi rho/(1 - rho) = 1/4."""
    net = vcp(**{"flows.vcp.n": n})
    c, t_p, rtt, alpha, kappa = float(net.links[0].capacity), 0.2, 0.08, 1.0, 0.25
    eq = fc.equilibrium(net)
    w = float(eq.flows["vcp"].window[0])
    load = w * n / (rtt * 0.98 * c) + 0.5 * eq.links["bottleneck"].queue / (0.98 * c * t_p)
    if eq.status == "empty":
        gain = math.expm1(-alpha * rtt / (t_p * w))
        assert load == pytest.approx(kappa / (kappa + gain), rel=1e-6)
    else:
        assert n == 20 and eq.links["bottleneck"].queue > 0


@pytest.mark.parametrize(
    ("rtt", "kappa", "stable"),
    [(0.02, 0.5, True), (0.2, 0.5, True), (1.0, 0.1, True), (1.0, 0.25, False)],
)
def test_the_fluid_model_of_vcp_is_stable_up_to_a_gain_of_a_half(rtt, kappa, stable):
    """The theorem of Xia et al. (2005) has kappa <= 1/2 in a round trip: kappa R/t_p for flows
    longer than the period, whose growth is that of a period.
    """
    assert stable is (kappa * max(rtt / 0.2, 1.0) <= 0.5)
    net = vcp(**{"flows.vcp.rtt": rtt, "flows.vcp.window.xi": kappa / 4})
    assert fc.stability(net).stable is stable


def test_vcp_has_the_increases_and_the_decrease_of_the_paper():
    law, rtt = VCP(), 0.08
    s = law.start(100.0)
    ack = Ack(25.0, 0.2, 0.2, load=0.79)  # a round trip of a period
    assert law.on_ack(s, ack).window == pytest.approx(6.25, rel=1e-12)
    assert law.on_ack(s, ack._replace(load=0.81)).window == pytest.approx(1.0, rel=1e-12)
    assert law.on_ack(s, ack._replace(load=1.01)).window == 0
    short = Ack(1.0, rtt, rtt, load=0.9)  # equal growth of rates: alpha (R/t_p)^2 each round trip
    assert law.on_ack(s, short).window == pytest.approx((rtt / 0.2) ** 2, rel=1e-12)
    cut = law.on_tick(s, ack._replace(load=1.01))
    assert (cut.window, cut.wait) == (pytest.approx(-12.5), 1.0)
    after = type(s)(*(a + b for a, b in zip(s, cut, strict=True)))
    again = law.on_tick(after, ack._replace(load=1.01))
    assert (again.window, again.wait) == (0.0, -1.0)


@pytest.mark.parametrize(("xi", "high", "lost"), [(0.0625, 0.8, 0.125), (1.0, 0.977, 0.5)])
def test_the_fluid_model_of_vcp_loses_half_of_a_window_at_most(xi: float, high: float, lost: float):
    """At a load of 2, by kappa (1 - f)/f; a larger share than all would have no power."""
    law, w = VCP(xi=xi, high=high, alpha=0.0, coded=False), 100.0
    change = law.on_ack(law.start(w), Ack(1.0, law.t_p, 1.0, load=2.0))
    assert law.window(change) == pytest.approx(-lost * w, rel=1e-12)


def test_vcp_swings_by_its_decrease_below_full_load():
    """Trains and packets: windows between beta and a little above 1 of full load, equal rates."""
    net = fc.load("xia2005/ten_flows")
    times = {"until": 60.0, "warmup": 20.0, "seeds": (1,)}
    for runs in (fc.simulate_trains(net, **times), fc.simulate_packets(net, **times)):
        used = float(runs.mean["links"]["bottleneck"]["utilization"])
        assert 0.875 * 0.98 < used < 0.98
        assert runs.mean["links"]["bottleneck"]["drops"] == 0


# HPCC

T, PIPE = 13e-6, 162.5  # s, packets


def hpcc(n: float, **changes) -> fc.Network:
    return fc.replace(fc.load("li2019/incast"), {"flows.hpcc.n": n, **changes})


@pytest.mark.parametrize(("n", "w_ai"), [(16, 0.3), (16, 0.1), (27, 0.3)])
def test_hpcc_keeps_the_queue_empty_up_to_the_additive_increase_of_the_paper(n: int, w_ai: float):
    """U = eta + N W_AI/(C T), without a queue while N W_AI <= (1 - eta) C T."""
    assert n * w_ai <= 0.05 * PIPE
    eq = fc.equilibrium(hpcc(n, **{"flows.hpcc.window.w_ai": w_ai}))
    link = eq.links["bottleneck"]
    assert link.utilization == pytest.approx(0.95 + n * w_ai / PIPE, rel=1e-9)
    assert link.queue == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n", [28, 60])
def test_beyond_it_hpcc_queues_what_is_too_much(n: int):
    """U = 1 + q/(C T): q = N W_AI - (1 - eta) C T."""
    eq = fc.equilibrium(hpcc(n))
    assert eq.links["bottleneck"].queue == pytest.approx(n * 0.3 - 0.05 * PIPE, rel=1e-6)


def test_trains_and_packets_of_hpcc_use_the_link_as_the_mean_does():
    net, times = hpcc(16), {"until": 4e-3, "warmup": 2e-3, "seeds": (1,)}
    for runs in (fc.simulate_trains(net, **times), fc.simulate_packets(net, **times)):
        used = float(runs.mean["links"]["bottleneck"]["utilization"])
        assert used == pytest.approx(0.95 + 16 * 0.3 / PIPE, rel=0.005)


def test_hpcc_takes_five_additive_increases_before_the_load():
    law = HPCC(base=T)
    s = law.start(10.0)._replace(used=0.5)
    ack = Ack(1.0, 0.0, T, load=0.5)
    for stage in range(5):
        assert s.stage == stage
        assert s.window + law.on_ack(s, ack).window == pytest.approx(10.1)
        s = s._replace(stage=s.stage + law.on_tick(s, ack).stage)
    assert s.window + law.on_ack(s, ack).window == pytest.approx(10 * 0.95 / 0.5 + 0.1)
    assert law.on_tick(s, ack).stage == -5


def test_telemetry_has_the_rate_of_packets_in_step_exactly():
    law, gap, x = Telemetry(base=T, interval=1e-6), 0.4e-6, 0.0
    for _ in range(100):
        x += law.on_departure(x, Arrival(1.0, gap, 0.0, 12.5e6))
    assert x == pytest.approx(1 / gap, rel=1e-9)
    assert law.signal(x, Arrival(1.0, gap, 5.0, 12.5e6)).load == pytest.approx(0.2 + 5 / PIPE)


# RCP

ALPHA = math.pi / (4 * math.sqrt(2))  # of Katabi, Handley and Rohrs (2002), with beta below


def rcp(alpha: float, beta: float, rtt: float, gamma: float = 1.01) -> fc.Network:
    """Two flows that keep a short queue, whose round trip with it is the link's `base`."""
    c = 2e4 / rtt  # windows of some ten thousand packets: a packet is no lag
    queue = alpha * (gamma - 1) * c * rtt / beta
    law = RateControl(alpha=alpha, beta=beta, gamma=gamma, base=rtt)
    flows = fc.Flows(
        RCP(), n=np.array([2.0]), rtt=np.array([rtt - queue / c]), feedback=Explicit(),
        initial=FlowsInitial(window=1e4),
    )  # fmt: skip
    return fc.Network((fc.Link(law, capacity=c, buffer=1e5),), (flows,))


@pytest.mark.parametrize("rtt", [0.01, 0.1, 2.0])
def test_rcp_is_stable_up_to_the_gain_of_the_paper_whatever_the_delay(rtt: float):
    """theta^2 + (alpha theta + beta) e^-theta = 0, theta = s d, of RCP and of the aggregate of XCP:
    with beta = sqrt(2) alpha^2 stable for alpha < pi/(4 sqrt 2) (Katabi, Handley and Rohrs).
    """
    for factor, stable in ((0.98, True), (1.02, False)):
        alpha, gamma = factor * ALPHA, 1.01
        net = rcp(gamma * alpha, gamma * math.sqrt(2) * alpha**2, rtt, gamma)
        assert fc.stability(net).stable is stable, factor


def boundary(alpha: float) -> float:
    """The beta at which theta = i omega is a root: omega^2 = |alpha i omega + beta|, and the phase
    omega = atan(alpha omega / beta).
    """
    low, high = 1e-9, math.pi / 2 - 1e-9

    def misfit(omega: float) -> float:
        return omega**2 * math.sin(omega) - alpha * omega

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if misfit(middle) < 0 else (low, middle)
    return low**2 * math.cos(low)


@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.8, 1.2])
def test_the_stability_region_of_rcp_is_that_of_its_characteristic_equation(alpha: float):
    beta, gamma = boundary(alpha), 1.01
    for factor, stable in ((0.97, True), (1.03, False)):
        found = fc.stability(rcp(gamma * alpha, gamma * factor * beta, 0.1, gamma))
        assert found.stable is stable, (factor, beta)
        theta = complex(found.roots[0]) * 0.1
        residual = theta**2 + (alpha * theta + factor * beta) * cmath.exp(-theta)
        assert abs(residual) < 2e-3 * abs(theta) ** 2


def test_the_boundary_of_beta_passes_the_gain_of_xcp():
    assert boundary(ALPHA) == pytest.approx(math.sqrt(2) * ALPHA**2, rel=1e-9)


def goodputs(net: fc.Network, **times: float) -> Iterator[np.ndarray]:
    """Of each flow of the first group, in trains and in packets [bit/s]."""
    for verb in (fc.simulate_trains, fc.simulate_packets):
        runs = verb(net, **times, seeds=(1,))
        yield np.array(runs.mean["flows"][net.flow_names[0]]["flow_goodput"])


def test_rcp_shares_a_link_equally_at_all_levels():
    """The rate of a flow does not depend on its round trip; trains and packets carry the rate."""
    net = fc.load("dukkipati2005/round_trips")
    c = float(net.links[0].capacity)
    eq = fc.equilibrium(net)
    np.testing.assert_allclose(eq.flows["rcp"].rate, 0.95 * c / 6, rtol=1e-9)
    for goodput in goodputs(net, until=20.0, warmup=10.0):
        np.testing.assert_allclose(goodput, 0.95 * 12000 * c / 6, rtol=0.01)


def test_the_slowest_link_of_a_path_has_the_rate():
    """Long flows over two links get what the link with more flows allows."""
    law = RateControl(gamma=0.95)
    links = tuple(fc.Link(law, capacity=c, delay=0.01, buffer=1000.0) for c in (1250.0, 2500.0))
    groups = tuple(
        fc.Flows(RCP(), n=np.array([float(n)]), rtt=np.array([0.1]), route=route,
                 feedback=Explicit(), initial=FlowsInitial(window=10.0))
        for n, route in ((2, (0, 1)), (3, (0,)), (2, (1,)))
    )  # fmt: skip
    net = fc.Network(links, groups, link_names=("a", "b"), flow_names=("long", "one", "two"))
    narrow = 0.95 * 1250 / 5
    wide = (0.95 * 2500 - 2 * narrow) / 2
    eq = fc.equilibrium(net)
    rates = [float(eq.flows[k].rate[0]) for k in ("long", "one", "two")]
    np.testing.assert_allclose(rates, [narrow, narrow, wide], rtol=1e-6)
    times = {"until": 20.0, "warmup": 10.0, "seeds": (1,)}
    for runs in (fc.simulate_trains(net, **times), fc.simulate_packets(net, **times)):
        found = [runs.mean["flows"][k]["goodput"] for k in ("long", "one", "two")]
        size = float(net.links[0].packet_size) * 8
        np.testing.assert_allclose(np.ravel(found) / size, rates, rtol=0.02)


# XCP

GAIN, WEIGHT, GAMMA = 0.4, 0.226, 0.1  # of the spare rate, the queue, the traffic shuffled


def test_a_link_of_xcp_shares_out_the_aggregate_of_the_paper():
    """Sums of the feedback over the packets of a round trip are alpha d (C - y) - beta q, the flow
    with the longer spacing gets more of what is spare and gives less of what is shuffled.
    """
    law, d, queue = ExplicitControl(target=1.0), 0.1, 5.0
    rates = np.array([300.0, 600.0])
    for c in (1000.0, 850.0):
        x = law.state_of(rates.sum(), 2.0, 1.0)
        met = law.signal(x, Arrival(1.0, 1e-3, queue, c))
        each = met.positive / rates - met.negative  # of the rate, with each packet
        aggregate = 0.4 * d * (c - rates.sum()) - 0.226 * queue
        assert (each * rates * d).sum() * d == pytest.approx(aggregate, rel=1e-7)
        taken = max(GAMMA * rates.sum() * d - abs(aggregate), 0.0) + max(-aggregate, 0.0)
        assert met.negative * rates.sum() * d * d == pytest.approx(taken, rel=1e-7)


def test_sums_of_xcp_are_those_of_the_packets_of_an_interval():
    law, time = ExplicitControl(), 0.0
    x = law.start(0.0)
    for k in range(4000):  # two flows, one of them twice as fast
        step, spacing = (0.002, 0.006) if k % 3 == 0 else (0.001, 0.003)
        seen = Arrival(1.0, step, 0.0, 1000.0, spacing=spacing)
        x = law.state_of(*(a + b for a, b in zip(x, law.on_arrival(x, seen), strict=True)))
        time += step
    assert x.part == pytest.approx(1, rel=1e-9)
    assert x.rate == pytest.approx(750, rel=0.02) and x.number == pytest.approx(3, rel=0.02)


def characteristic_of_xcp(
    theta: complex, alpha: float, beta: float, averaged: float = 1.0, gamma: float = GAMMA
) -> complex:
    """Of equal windows with a queue, theta = s d: the rate W/R answers to the queue at once, what
    a packet brings back is as old as a round trip; sums are `averaged` over so much of one.
    """
    kept, late = 1 / (1 + theta * averaged), cmath.exp(-theta)
    own = theta**2 + theta + gamma * theta * (1 - kept * late)
    return own + (alpha * theta * kept + beta) * late


def xcp(alpha: float, beta: float, trip: float = 0.1, n: float = 20.0, **queue) -> fc.Network:
    """Flows whose round trip with the queue at rest is the link's."""
    net = fc.load("katabi2002/queue")
    c = float(net.links[0].capacity) * 0.1 / trip  # the same packets under way
    held = alpha * (1.05 - 1) * c * trip / beta
    laws = {"alpha": alpha, "beta": beta, "base": trip, "interval": trip} | queue
    return fc.replace(
        net,
        {"link.capacity": c, "flow.n": n, "flow.rtt": trip - held / c,
         **{f"link.queue.{k}": v for k, v in laws.items()}},
    )  # fmt: skip


@pytest.mark.parametrize("averaged", [1.0, 0.02])
@pytest.mark.parametrize("trip", [0.01, 0.1, 2.0])
def test_the_roots_of_xcp_are_those_of_the_linear_equations(trip: float, averaged: float):
    net = xcp(GAIN, WEIGHT, trip, interval=averaged * trip)
    default = ExplicitControl()
    assert (default.alpha, default.beta, default.gamma) == (GAIN, WEIGHT, GAMMA)
    found = fc.stability(net)
    assert found.stable
    for root in [complex(r) * trip for r in found.roots if complex(r).real * trip > -0.9]:
        assert abs(characteristic_of_xcp(root, GAIN, WEIGHT, averaged)) < 1e-6
    assert any(abs(complex(r) * trip + 0.2) < 0.05 for r in found.roots)


def edge_of_xcp(averaged: float) -> float:
    """The alpha at which the roots of xcp cross, with beta = sqrt(2) alpha^2."""

    def crossing(alpha: float) -> complex:
        return min(
            (characteristic_of_xcp(1j * w, alpha, math.sqrt(2) * alpha**2, averaged)
             for w in np.linspace(0.5, 2.5, 20001)), key=abs,
        )  # fmt: skip

    return min(np.linspace(0.7, 1.3, 601), key=lambda a: abs(crossing(a)))


def test_xcp_is_stable_below_the_published_bound_and_windows_up_to_a_larger_one():
    """Theorem 1 of Katabi et al. has rates of constant round trips. ACKs that come late as the
    queue grows hold windows back, so that the bound suffices; packets swing from ours on.
    """
    for trip in (0.01, 0.1, 2.0):
        assert fc.stability(xcp(0.98 * ALPHA, math.sqrt(2) * (0.98 * ALPHA) ** 2, trip)).stable
    edge = edge_of_xcp(1.0)
    assert edge == pytest.approx(0.898, abs=0.002) and edge > 1.5 * ALPHA
    for factor, stable in ((0.99, True), (1.01, False)):
        alpha = factor * edge
        assert fc.stability(xcp(alpha, math.sqrt(2) * alpha**2)).stable is stable
    deviation = {}
    for alpha in (0.8, 1.0):
        net = xcp(alpha, math.sqrt(2) * alpha**2)
        runs = fc.simulate_packets(net, until=60.0, warmup=30.0, seeds=(1,))
        deviation[alpha] = math.sqrt(runs.mean["links"]["bottleneck"]["queue_var"])
    assert deviation[0.8] < 10 < 2 * 10 < deviation[1.0]


def test_xcp_shares_a_link_equally_at_all_levels():
    net = fc.load("katabi2002/round_trips")
    c = float(net.links[0].capacity)
    eq = fc.equilibrium(net)
    np.testing.assert_allclose(eq.flows["xcp"].rate, 0.95 * c / 6, rtol=1e-9)
    for goodput in goodputs(net, until=30.0, warmup=15.0):
        goodput = goodput.reshape(3, 2)
        np.testing.assert_allclose(goodput.mean(axis=1), 0.95 * 12000 * c / 6, rtol=0.01)
        np.testing.assert_allclose(goodput, 0.95 * 12000 * c / 6, rtol=0.05)  # in bunches


def test_flows_of_xcp_fill_an_empty_link_and_no_buffer():
    """Links without an average write no feedback, as nobody is there to share it."""
    net = fc.load("katabi2002/round_trips")
    found = fc.simulate(net, until=15.0)
    assert found.links["bottleneck"].queue.max() < 0.05 * float(net.links[0].buffer)
    rest = fc.equilibrium(net).flows["xcp"].window
    window = found.flows["xcp"].window
    assert np.all(window.max(axis=0) < 1.5 * rest)
    np.testing.assert_allclose(window[-1], rest, rtol=0.01)


def test_the_queue_of_xcp_above_full_load_is_its_closed_form():
    net = fc.load("katabi2002/queue")
    queue = 0.4 * 0.05 * float(net.links[0].capacity) * 0.1 / 0.226
    assert fc.equilibrium(net).links["bottleneck"].queue == pytest.approx(queue, rel=1e-9)
    times = {"until": 30.0, "warmup": 15.0, "seeds": (1,)}
    # windows of whole packets send 1.2 % less than W/R: packets count flows by R/W, trains as such,
    # and 1.2 % of what is shuffled is 4.4 packets of queue
    for verb, off in ((fc.simulate_packets, 0.03), (fc.simulate_trains, 0.08)):
        found = verb(net, **times).mean["links"]["bottleneck"]
        assert found["queue_mean"] == pytest.approx(queue, rel=off) and found["drops"] == 0


def test_windows_of_xcp_become_equal_by_the_traffic_that_is_shuffled():
    """At equal round trips the difference falls as exp(-gamma t/d)."""
    net = fc.load("katabi2002/queue")
    own = net.flows[0]
    pair = fc.Network(net.links, (own, own), flow_names=("one", "two"))
    roots = [complex(r) for r in fc.stability(pair).roots]
    assert min(abs(r + GAMMA / 0.1) for r in roots) < 1e-9


def test_what_links_of_xcp_cannot_do_is_refused(tmp_path: Path):
    net = fc.load("katabi2002/round_trips")
    one, own = net.links[0], net.flows[0]
    deaf = fc.Flows(XCP(), n=own.n, rtt=own.rtt, feedback=Explicit(), route=(0, 1))
    with pytest.raises(ValueError, match="one such link, as xcp acts on the positive feedback"):
        fc.Network((one, one), (deaf,), link_names=("a", "b"))
    with pytest.raises(fc.ScenarioError, match=r"route: expected a link with another queue law"):
        fc.replace(net, {"link.queue.law": "droptail"})
    files = fc.replace(net, {"flow.traffic.law": "web"})
    for verb in (fc.simulate_trains, fc.simulate):
        with pytest.raises(Exception, match="at a link that counts flows"):
            verb(files, until=1.0)


# Two numbers at a time


def test_the_example_of_two_numbers_rests_at_its_closed_form():
    """alpha (gamma - 1) C d/beta packets of queue, whatever share senders leave; nearly so in
    packets, which come one by one.
    """
    with loaded([EXAMPLES / "two_numbers.py"]):
        net = fc.load(EXAMPLES / "two_numbers.toml")
        for k in (0.5, 1.0):
            eq = fc.equilibrium(fc.replace(net, {"flow.window.k": k}))
            queue = 0.4 * 0.1 * 1250 * 0.1 / 0.226
            assert eq.links["bottleneck"].queue == pytest.approx(queue, rel=1e-9)
        met = eq.received(0)
        left = 1 - queue / (1250 * 0.1)
        assert float(met.load) == pytest.approx(1 - left, rel=1e-9)
        assert float(met.spacing) == pytest.approx(left / 125, rel=1e-9)
        runs = fc.simulate_packets(net, until=20.0, warmup=10.0, seeds=(1,))
        found = runs.mean["links"]["bottleneck"]["queue_mean"]
        assert found == pytest.approx(queue, rel=0.1)
