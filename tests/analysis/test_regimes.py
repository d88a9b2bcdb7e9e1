"""Equilibria of queue laws and of links against closed forms or another solver."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc import laws
from fluidcc.analysis.equilibrium import sawtooth
from fluidcc.scenario.network import to_arrays


@pytest.mark.parametrize(
    ("law", "queue"), [(laws.PI(), 175.0), (laws.REM(), 20.0)], ids=["pi", "rem"]
)
def test_integrators_hold_their_reference(law, queue):
    """p is what the windows need there: W = C R/N = sqrt(2(1-p)/p)."""
    net = one_link(law)
    eq, link, group = found(net)
    window = C / N * (T + queue / C)
    assert (eq.status, eq.sliding, eq.smooth) == ("regular", (), True)
    assert link.queue == pytest.approx(queue, rel=1e-11)
    assert link.mark_probability == pytest.approx(2 / (2 + window**2), rel=1e-10)
    assert group.window[0] == pytest.approx(window, rel=1e-10)
    assert f"acts every {float(law.period()):.3g} s" in eq.message


def test_avq_uses_its_target_with_an_empty_queue():
    """Y = gamma C, and the virtual capacity that marks p of it."""
    net = one_link(laws.AVQ(gamma=0.9))
    eq, link, _ = found(net)
    p = 2 / (2 + (0.9 * C * T / N) ** 2)
    assert eq.status == "regular" and link.queue == 0.0
    assert link.utilization == pytest.approx(0.9, rel=1e-10)
    assert link.mark_probability == pytest.approx(p, rel=1e-9)
    assert float(eq.op.laws[0]) == pytest.approx(0.9 * (1 - p), rel=1e-9)


def adaptive(n):
    return one_link(laws.AdaptiveRED(min_th=100.0, max_th=300.0), flows(n=(n,)))


def test_adaptive_red_slides_at_its_target():
    """v = target and p_max = 2 p(target), within the limits of p_max."""
    eq, link, _ = found(adaptive(N))
    p = 2 / (2 + (C / N * (T + 200 / C)) ** 2)
    assert 0.009 <= 2 * p <= 0.51
    assert (eq.status, eq.sliding, eq.smooth) == ("regular", ("bottleneck",), False)
    assert link.average == pytest.approx(200.0, rel=1e-12)
    assert eq.op.laws[0].p == pytest.approx(2 * p, rel=1e-9)
    assert "adapts its marking every 0.5 s, up on one side" in eq.message


@pytest.mark.parametrize(("n", "low", "high"), [(2.0, 0.009, 0.01), (600.0, 0.5, 0.51)])
def test_adaptive_red_beyond_its_limits_is_red(n, low, high):
    """p_max ends past a limit by less than one step; the queue is RED's with that p_max."""
    eq, link, _ = found(adaptive(n))
    p_max = float(eq.op.laws[0].p)

    def excess(q):
        p = p_max * (q - 100) / 200
        return n * math.sqrt(2 * (1 - p) / p) / (T + q / C) - C

    assert low <= p_max <= high
    assert eq.status == "regular" and eq.smooth and "adapts no more" in eq.message
    assert link.queue == pytest.approx(brentq(excess, 100.001, 299.9, xtol=1e-12), rel=1e-10)


@pytest.mark.parametrize("increase", [0.01, 0.03, 0.1, 0.2])
def test_adaptive_red_climbs_by_whole_steps(increase):
    """Ever more of them are skipped at once, but never one at which the rule would stop."""
    law = laws.AdaptiveRED(min_th=100.0, max_th=300.0, increase=increase, p_max=0.1)
    eq, _, _ = found(one_link(law, flows(n=(600.0,))))
    p_max = 0.1
    while p_max < 0.5:
        p_max += min(increase, p_max / 4)
    assert eq.op.laws[0].p == pytest.approx(p_max, rel=1e-12)


@pytest.mark.parametrize(("p_0", "rests"), [(0.005, 220.0), (0.016, None), (0.3, 180.0)])
def test_adaptive_red_rests_anywhere_in_its_band(p_0, rests):
    """p_max moves outside the band alone: from below it climbs to its top, from above falls."""
    law = laws.AdaptiveRED(min_th=100.0, max_th=300.0, target="band", p_max=p_0, lowest=0.001)
    net = one_link(law, flows(n=(N,)))
    eq, link, _ = found(net)

    def needed(q):
        return 2 / (2 + (C / N * (T + q / C)) ** 2)

    if rests is None:
        rests = brentq(lambda q: p_0 * (q - 100) / 200 - needed(q), 180, 220, xtol=1e-12)
        assert eq.op.laws[0].p == p_0
    assert (eq.status, eq.sliding, eq.smooth) == ("continuum", (), False)
    assert link.average == pytest.approx(rests, rel=1e-10)
    assert link.mark_probability == pytest.approx(needed(rests), rel=1e-9)
    assert "queues from 180 to 220 packets" in eq.message and "adapts its marking" not in eq.message
    assert f"mark probabilities from {needed(220.0):.6g} to {needed(180.0):.6g}" in eq.message


def test_blue_rests_anywhere_below_its_threshold():
    """Every p between those needed at q = L and at q = 0; from p = 0 it climbs to q = L."""
    eq, link, _ = found(one_link(laws.BLUE(threshold=50.0)))
    at = [2 / (2 + (C / N * (T + q / C)) ** 2) for q in (50.0, 0.0)]
    assert eq.status == "continuum" and not eq.smooth
    assert link.queue == pytest.approx(50.0, rel=1e-12)
    assert link.mark_probability == pytest.approx(at[0], rel=1e-9)
    assert f"mark probabilities from {at[0]:.6g} to {at[1]:.6g}" in eq.message
    assert "queues from 0 to 50 packets" in eq.message


def test_links_of_one_rate_behind_each_other_have_one_queue():
    """The first of them lets through what the second can carry; what it loses does not come."""
    red = laws.RED(min_th=10.0, max_th=60.0, p_max=0.5)
    links = (
        fc.Link(red, capacity=500.0, buffer=100.0),
        fc.Link(laws.Droptail(), capacity=500.0, buffer=40.0),
    )
    own = flows(
        n=(10.0,), rtt=(0.1,), route=(0, 1), feedback=laws.Loss(), reaction=laws.OncePerRTT()
    )
    eq = fc.equilibrium(
        fc.Network(links, (own,), link_names=("first", "second"), flow_names=("a",))
    )
    first, second = eq.links["first"], eq.links["second"]
    assert eq.status == "regular" and "not unique" not in eq.message
    assert first.queue > 10 and second.queue == 0.0
    assert 10 * eq.flows["a"].rate[0] * (1 - first.mark_probability) == pytest.approx(
        500.0, rel=1e-9
    )
    assert second.utilization == pytest.approx(1.0, rel=1e-9) and second.mark_probability == 0.0


def test_flows_share_what_calls_leave():
    """wfq: the mean of the calls is taken from the capacity, and from what the queue waits for."""
    voice = fc.Voice(calls=10.0, codec=64000.0)
    net = one_link(
        laws.RED(min_th=20.0, max_th=60.0), flows(n=(10.0,)), capacity=1000.0, voice=voice
    )
    eq, link, group = found(net)
    left = 1000.0 - float(voice.mean(1000.0))
    assert eq.status == "regular" and left < 1000.0
    assert 10 * group.rate[0] == pytest.approx(left, rel=1e-9)
    assert group.rtt[0] == pytest.approx(T + link.queue / left, rel=1e-12)


# -- Networks of one link, and what is left of their changes at rest
N, T, C = 60.0, 0.2, 3750.0
NAMES = ("a", "b")


def flows(window=None, *, n=(N,), rtt=(T,), **parts):
    parts = {"reaction": laws.PerMark(), **parts}
    return fc.Flows(
        laws.Reno() if window is None else window, n=np.array(n), rtt=np.array(rtt), **parts
    )


def one_link(queue, *groups, capacity=C, buffer=800.0, **parts):
    groups = groups or (flows(),)
    link = fc.Link(queue, capacity=capacity, buffer=buffer, **parts)
    return fc.Network((link,), groups, flow_names=NAMES[: len(groups)])


def found(net):
    """Equilibrium, its only link and its first group."""
    eq = fc.equilibrium(net)
    return eq, eq.links["bottleneck"], eq.flows["a"]


# -- Equilibria of senders of every kind against closed forms
def bmcc(*, gamma=1.0, md="per_tp", rtt=(0.04, 0.2)):
    group = flows(laws.BMCC(md=md), n=(1.0, 2.0), rtt=rtt, feedback=laws.LoadFactorFeedback())
    return one_link(laws.LoadFactor(gamma=gamma), group)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_bmcc_shares_equally(gamma):
    """Decreases once per t_p: AI gives dx/dt = 1/t_p^2 to all, so gamma C/n each."""
    eq, link, group = found(bmcc(gamma=gamma))
    assert eq.sliding == ("bottleneck",) and eq.status == "regular" and not eq.smooth
    assert link.queue == 0.0 and link.load_factor == pytest.approx(1.0, rel=1e-9)
    assert link.utilization == pytest.approx(gamma, rel=1e-7)
    np.testing.assert_allclose(group.rate, gamma * C / 3, rtol=1e-7)
    turn = sawtooth(to_arrays(bmcc(gamma=gamma)), eq.op)
    assert turn is not None and turn.low == pytest.approx(0.875, rel=1e-9)
    assert turn.time == pytest.approx(gamma * C * 0.125 * 0.2**2 / 3, rel=1e-6)
    assert f"1 again after {turn.time:.4g} s" in eq.message


def test_bmcc_by_the_letter_favours_long_round_trips():
    """One decrease per round trip: rates in proportion to R."""
    _, _, group = found(bmcc(md="per_rtt"))
    np.testing.assert_allclose(group.rate, C * np.array([0.04, 0.2]) / 0.44, rtol=1e-7)


def test_bmcc_starves_beside_flows_that_fill_the_queue():
    """A standing queue keeps the load above 1: the BMCC flow has its smallest window."""
    other = flows(
        laws.SACK(), n=(1.0,), rtt=(0.04,), reaction=laws.OncePerRTT(), feedback=laws.Loss()
    )
    own = flows(laws.BMCC(), n=(1.0,), rtt=(0.04,), feedback=laws.LoadFactorFeedback())
    eq, link, group = found(one_link(laws.LoadFactor(), own, other, buffer=150.0))
    assert eq.status == "discontinuity" and link.queue == 150.0
    lost = link.mark_probability
    assert link.load_factor == pytest.approx(1 / (1 - lost) + 0.75 * 150 / (C * 0.2), rel=1e-12)
    assert group.window[0] == 1.0
    assert (group.rate[0] + eq.flows["b"].rate[0]) * (1 - lost) == pytest.approx(C, rel=1e-9)


def test_a_load_factor_counts_what_a_full_buffer_loses():
    """Cross traffic beyond the capacity, one capped window: the trajectory comes to rest there."""
    own = flows(laws.Reno(max_window=8.0), n=(1.0,), rtt=(T,), feedback=laws.Loss())
    net = one_link(laws.LoadFactor(), own, buffer=150.0, cross=1.001 * C)
    eq, link, group = found(net)
    offered = 1.001 * C + group.rate[0]
    assert eq.status == "discontinuity" and group.window[0] == 8.0
    assert link.mark_probability == pytest.approx(1 - C / offered, rel=1e-9)
    assert link.load_factor == pytest.approx(offered / C + 0.75 * 150 / (C * 0.2), rel=1e-12)
    begun = fc.replace(net, {"flows.a.initial.window": 8.0, "link.initial.queue": 150.0})
    end = fc.simulate(begun, until=60.0, points=[60.0]).links["bottleneck"]
    assert end.queue[0] == 150.0
    assert end.drop_fraction[0] == pytest.approx(link.mark_probability, rel=1e-9)
    assert end.load_factor[0] == pytest.approx(link.load_factor, rel=1e-9)


def test_modified_bmcc_has_no_window_of_its_own():
    """Without marks nobody decreases at full load, and below it everybody grows."""
    router = laws.ModifiedLoadFactor(min_th=20.0, max_th=60.0)
    window = laws.BMCC(needs_mark=True)
    own = flows(
        window,
        n=(2.0,),
        rtt=(0.04,),
        reaction=laws.OncePerRTT(),
        feedback=laws.LoadFactorFeedback(),
    )
    eq, link, group = found(one_link(router, own))
    assert (
        eq.status == "continuum" and "every window vector that fills links.bottleneck" in eq.message
    )
    assert link.queue == 0.0 and np.isnan(group.window).all()


def receiver_window(**parts):
    red = laws.RED(min_th=50.0, max_th=150.0, p_max=parts.pop("p_max", 1.0))
    window = laws.Reno(**parts)
    return one_link(
        red, flows(window, n=(10.0,), reaction=laws.OncePerRTT(), feedback=laws.ReceiverWindow())
    )


def test_receiver_windows_hold_a_capped_flight():
    """N E[W_eff] = C R with the flight of theory, exact for a whole window."""
    net = receiver_window(max_window=100.0)
    eq, link, group = found(net)

    def excess(q):
        p = (q - 50) / 100
        return 10 * (100 - p * (1 - p**99) / (1 - p)) / (T + q / C) - C

    assert eq.status == "regular" and group.window[0] == 100.0
    assert link.queue == pytest.approx(brentq(excess, 50.01, 149.9, xtol=1e-12), rel=1e-10)
    assert 10 * group.rate[0] == pytest.approx(C, rel=1e-10)


def test_without_a_cap_losses_hold_the_window_of_rwm():
    """No modified ACK lowers cwnd, so the queue slides where RED begins to drop.

    For a share of the time RED drops all packets, and modifies all ACKs; else p_max of them.
    """
    eq, link, group = found(receiver_window(p_max=0.5))
    assert eq.status == "discontinuity" and eq.sliding == ("bottleneck",)
    assert link.average == pytest.approx(150.0, rel=1e-12)
    w, lost = group.window[0], float(eq.op.signals[0].drop)
    p = 0.5 + lost * (1 - 0.5)
    some, timeout = 1 - (1 - lost) ** w, min(1.0, 3 / w)
    assert some * ((1 - timeout) * w / 2 + timeout * (w - 1)) == pytest.approx(1.0, rel=1e-7)
    flight, rtt = w - p * (1 - p ** (w - 1)) / (1 - p), T + 150 / C
    backed_off = (1 + lost + 2 * lost**2 + 4 * lost**3 + 8 * lost**4) / (1 - lost)  # and so on
    repair = (1 - timeout) * rtt + timeout * max(0.2, 2 * rtt) * backed_off
    rate = flight / rtt / (1 + flight / rtt * some / w * repair)
    assert 10 * rate * (1 - lost) == pytest.approx(C, rel=1e-6)


def test_growth_by_time_wins_over_any_marking_at_long_round_trips():
    """BMCC without its router grows by ln(1 + xi(0.15))/t_p, and a mark keeps 0.65 of the window
    once per round trip: no marking holds it where R > 0.35 t_p/ln(1 + xi).
    """
    own = flows(
        laws.BMCC(),
        n=(2.0,),
        rtt=(0.04,),
        reaction=laws.OncePerRTT(),
        feedback=laws.LoadFactorFeedback(),
    )
    red = laws.RED(min_th=37.5, max_th=112.5, p_max=0.1, gentle=True)
    eq, link, group = found(one_link(red, own, capacity=5625.0, buffer=225.0))
    pace, rtt = math.log(1 + 0.35 * 0.85 / 0.15) / 0.2, 0.04 + link.queue / 5625
    p, w = link.mark_probability, group.window[0]
    assert eq.status == "regular"
    assert 0.35 * (1 - (1 - p) ** w) == pytest.approx(pace * rtt, rel=1e-8)
    assert float(eq.op.escapes[0]) > 5625 * (0.35 / pace - 0.04)
    assert "longer queues do not come back" in eq.message


def test_web_sources_at_rest():
    """File S at rate x, then idle: active x/(S...) of the time; slow start and renewals balance."""
    net = one_link(
        laws.RED(min_th=20.0, max_th=60.0),
        flows(laws.SACK(), n=(115.0,), rtt=(0.1,), reaction=laws.OncePerRTT(), traffic=laws.Web()),
        capacity=400.0,
    )
    eq, _, group = found(net)
    rate = group.window[0] / group.rtt[0]
    assert eq.status == "regular"
    assert group.active[0] == pytest.approx((12 / rate) / (3 + 12 / rate), rel=1e-10)
    assert group.rate[0] == pytest.approx(group.active[0] * rate, rel=1e-12)
    assert 115 * group.rate[0] == pytest.approx(400.0, rel=1e-9)


def test_dctcp_at_rest():
    """alpha = p, and one cut by alpha/2 per marked window: W p (1 - (1-p)^W) = 2."""
    net = one_link(
        laws.RED(min_th=20.0, max_th=60.0, p_max=1.0),
        flows(laws.DCTCP(), n=(10.0,), rtt=(0.1,), reaction=laws.OncePerRTT()),
    )
    eq, link, group = found(net)
    p, w = link.mark_probability, group.window[0]
    assert eq.status == "regular"
    assert w * p * (1 - (1 - p) ** w) == pytest.approx(2.0, rel=1e-9)
    assert float(eq.op.senders[0].law.alpha[0]) == pytest.approx(p, rel=1e-12)


def test_padhyes_formula_at_rest():
    group = flows(n=(10.0,), rtt=(0.1,), feedback=laws.Loss(), loss=laws.PFTK())
    eq, link, group = found(one_link(laws.RED(min_th=20.0, max_th=60.0), group, capacity=1000.0))
    p, r = link.mark_probability, 0.1 + link.queue / 1000
    timeout = max(0.2, 2 * r) * min(1, 3 * math.sqrt(3 * p / 8)) * p * (1 + 32 * p**2)
    assert group.rate[0] == pytest.approx(1 / (r * math.sqrt(2 * p / 3) + timeout), rel=1e-10)
    assert 10 * group.rate[0] * (1 - p) == pytest.approx(1000.0, rel=1e-9)
    assert not eq.smooth


def test_quenches_of_two_links():
    """Every ACK grows, every quench halves: W = sqrt(2/p) for the p of both links together."""
    links = tuple(
        fc.Link(
            laws.RED(min_th=10.0, max_th=200.0, p_max=0.5), capacity=c, buffer=400.0, delay=0.01
        )
        for c in (1250.0, 500.0)
    )
    parts = {"reaction": laws.PerMark(growth="all"), "feedback": laws.Backward(), "rtt": (0.1,)}
    both = flows(n=(20.0,), route=(0, 1), **parts)
    first = flows(n=(15.0,), route=(0,), **parts)
    net = fc.Network(links, (both, first), link_names=("west", "east"), flow_names=NAMES)
    eq = fc.equilibrium(net)
    p = [eq.links[name].mark_probability for name in ("west", "east")]
    assert eq.status == "regular"
    assert 20 * eq.flows["a"].rate[0] == pytest.approx(500.0, rel=1e-9)
    assert 15 * eq.flows["b"].rate[0] == pytest.approx(750.0, rel=1e-9)
    assert eq.flows["b"].window[0] == pytest.approx(math.sqrt(2 / p[0]), rel=1e-9)
    together = 1 - (1 - p[0]) * (1 - p[1])
    assert eq.flows["a"].window[0] == pytest.approx(math.sqrt(2 / together), rel=1e-9)
    assert eq.links["west"].quench_fraction == pytest.approx(p[0] / (1 + p[0]), rel=1e-12)


@pytest.mark.parametrize("loss", ["recovery", "halve_only"])
def test_rates_by_acks_and_by_the_window_rest_at_one_point(loss):
    """Misra, Gong and Towsley (2000): growth is the rate sent, which knows of time in recovery."""
    text = """
[model]
rates = "{rates}"
[links.l]
capacity = 1250
buffer = 200
queue = {{ law = "red", min_th = 10, max_th = 150, p_max = 0.2, w_q = 0.002 }}
[flows.f]
n = 20
rtt = "80 ms"
window = {{ law = "reno", reaction = "once_per_rtt", growth = "all", loss = "{loss}" }}
feedback = "loss"
"""
    found = [fc.equilibrium(fc.loads(text.format(rates=r, loss=loss))) for r in ("ack", "mgt")]
    queues = [eq.links["l"].queue for eq in found]
    assert found[0].status == "regular"
    assert queues[0] == pytest.approx(queues[1], rel=1e-9)


def test_a_raised_floor_holds_the_windows():
    """Forty windows of 10 packets over 100 ms leave q = N W - C T in the queue, marked or not."""
    text = """
[links.l]
capacity = 1250
queue = { law = "red", min_th = 25, max_th = 1000, p_max = 0.1, w_q = 0.002, gentle = true }
[flows.f]
n = 40
rtt = "100 ms"
window = { law = "reno", min_window = 10 }
"""
    eq = fc.equilibrium(fc.replace(fc.loads(text), {"link.queue.p_max": 1.0}))
    assert eq.flows["f"].window[0] == pytest.approx(10.0)
    assert eq.links["l"].queue == pytest.approx(400.0 - 125.0)
    assert "at its lower bound" in eq.message
