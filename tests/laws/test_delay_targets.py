"""LEDBAT, LEDBAT++, Copa and Swift: window laws that aim at a queueing delay or a rate by it.

Their published numbers: a queue of RFC 6817's 100 ms; 1/delta packets of each flow of Copa and the
cycle of the queue about them (Arun and Balakrishnan, 2018, section 3); the target of Swift, which
grows as the square root of the number of flows (Kumar et al., 2020, section 3.5).
"""

import cmath
import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import LEDBAT, Ack, Copa, LEDBATPlusPlus, Swift


def round_trip(w: float, delay: float, base: float = 0.05) -> Ack:
    """All ACKs of a window."""
    return Ack(count=w, elapsed=base + delay, rtt=base + delay, delay=delay)


# -- LEDBAT
@pytest.mark.parametrize(("delay", "change"), [(0.0, 1.0), (0.05, 0.5), (0.1, 0.0), (0.2, -1.0)])
def test_ledbat_moves_by_its_distance_from_100_ms(delay: float, change: float):
    """RFC 6817, section 2.4.2: with no queue a packet in a round trip, as Reno."""
    assert LEDBAT().on_ack(20.0, round_trip(20.0, delay)) == pytest.approx(change, abs=1e-12)


def test_ledbat_keeps_two_packets_and_halves_at_a_loss():
    assert LEDBAT().min_window == 2.0
    assert LEDBAT().on_loss(20.0, round_trip(20.0, 0.0)) == -10.0


def test_one_flow_of_ledbat_rests_at_the_target():
    net = fc.load("rfc6817/alone")
    c = float(net.links[0].capacity)
    eq = fc.equilibrium(net)
    assert eq.links["bottleneck"].queue == pytest.approx(0.1 * c, rel=1e-9)
    assert eq.flows["ledbat"].window[0] == pytest.approx(0.15 * c, rel=1e-9)
    run = fc.simulate(net, until=150.0, points=[150.0])
    assert run.links["bottleneck"].queue[0] == pytest.approx(0.1 * c, rel=1e-4)
    runs = fc.simulate_packets(net, until=120.0, warmup=80.0, seeds=(1,))
    delay = runs.mean["links"]["bottleneck"]["queueing_delay_mean"]
    assert delay == pytest.approx(0.1, rel=1e-3)


def sharing(law: str) -> fc.Network:
    """Two early and two late flows of a law at one round trip, with windows of 30 and 2."""
    window = {"law": law} | ({"gain": 1 / 3} if law == "ledbat_plus_plus" else {})
    both = {f"flows.{name}.window": window for name in ("first", "late")}
    return fc.replace(fc.load("rfc6817/plus_plus"), both)


def test_shares_of_ledbat_stay_as_they_began():
    """Windows of one round trip change alike, so that their difference does not: a continuum."""
    run = fc.simulate(sharing("ledbat"), until=60.0, points=[20.0, 60.0])
    gap = np.ravel(run.flows["first"].window) - np.ravel(run.flows["late"].window)
    np.testing.assert_allclose(gap, 28.0, rtol=0.05)
    assert gap[1] == pytest.approx(gap[0], rel=1e-6)


def test_windows_of_ledbat_plus_plus_become_equal():
    run = fc.simulate(sharing("ledbat_plus_plus"), until=60.0, points=[60.0])
    first, late = (float(run.flows[k].window[0, 0]) for k in ("first", "late"))
    assert first == pytest.approx(late, rel=0.01)
    runs = fc.simulate_packets(sharing("ledbat_plus_plus"), until=200.0, warmup=100.0, seeds=(1, 2))
    goodput = [v for k in ("first", "late") for v in runs.mean["flows"][k]["flow_goodput"]]
    np.testing.assert_allclose(goodput, 2.5e6, rtol=0.1)


# -- LEDBAT++
@pytest.mark.parametrize(
    ("delay", "change"), [(0.0, 0.25), (0.06, 0.25), (0.075, 0.25 - 5.0), (0.2, -10.0)]
)
def test_ledbat_plus_plus_adds_a_constant_and_takes_a_share(delay: float, change: float):
    """max(gain - W (d/60 ms - 1), -W/2) in a round trip beyond the target: sections 4.3, 4.5."""
    moved = LEDBATPlusPlus(gain=0.25).on_ack(20.0, round_trip(20.0, delay))
    assert moved == pytest.approx(change, rel=1e-12)


def test_ledbat_plus_plus_begins_with_the_least_gain_of_the_draft():
    """min(16, ceil(2 target / base)) is 16 at most."""
    assert LEDBATPlusPlus().on_ack(20.0, round_trip(20.0, 0.0)) == pytest.approx(1 / 16)


GAIN, TARGET, BASE, FLOWS = 1 / 3, 0.06, 0.05, 4.0


def test_rest_and_roots_of_ledbat_plus_plus_in_closed_form():
    """gain = W (d/target - 1) and N W = C (base + d); windows approach each other by gain/(W R)."""
    net = fc.load("rfc6817/plus_plus")
    c = float(net.links[0].capacity)
    # W (d - T) = gain T with W = c (base + d)/N: a quadratic in d
    half = (BASE - TARGET) / 2
    delay = -half + math.sqrt(half**2 + BASE * TARGET + FLOWS * GAIN * TARGET / c)
    eq = fc.equilibrium(net)
    assert eq.status == "regular"
    assert eq.links["bottleneck"].queue == pytest.approx(c * delay, rel=1e-9)
    trip = BASE + delay
    window = c * trip / FLOWS
    for name in ("first", "late"):
        assert eq.flows[name].window[0] == pytest.approx(window, rel=1e-9)
    back = GAIN / (window * trip)

    def residual(root: complex) -> complex:
        queue = root + FLOWS * window / (trip**2 * c)
        heard = window / (TARGET * c * trip) * cmath.exp(-root * trip)
        alike = (root + back) * queue + FLOWS / trip * heard
        return alike * (root + back)

    found = fc.stability(net)
    for root in found.roots[:4]:
        assert abs(residual(complex(root))) < 1e-6 * (1 + abs(root)) ** 3
    assert any(abs(complex(root) + back) < 1e-8 for root in found.roots)


# -- Copa
def test_velocity_of_copa_doubles_after_three_round_trips_in_one_direction():
    s, found = Copa().start(10.0), []
    for step in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0):
        s = s._replace(window=s.window + step)
        change = Copa().on_tick(s, round_trip(0.0, 0.0))
        s = type(s)(*(a + b for a, b in zip(s, change, strict=True)))
        found.append(s.velocity)
    assert found == [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0]


@pytest.mark.parametrize(("queued", "sign"), [(1.9, 1.0), (2.1, -1.0)])
def test_a_round_trip_of_copa_is_two_packets_towards_two_in_the_queue(queued: float, sign: float):
    """delta is 0.5: v/delta packets in a round trip, and 1/delta of them queued at the target."""
    w, base = 40.0, 0.1
    delay = base * queued / (w - queued)  # W d/R is the number queued
    law = Copa()
    change = law.on_ack(law.start(w), round_trip(w, delay, base))
    assert change.window == pytest.approx(2.0 * sign, rel=1e-12)


def test_flows_of_copa_keep_two_packets_each_at_equal_rates():
    net = fc.load("arun2018/round_trips")
    eq, each = fc.equilibrium(net), 50e6 / 12000 / 6
    assert eq.status == "discontinuity"
    assert eq.links["bottleneck"].queue == pytest.approx(12.0, rel=1e-9)
    np.testing.assert_allclose(eq.flows["copa"].rate, each, rtol=1e-9)
    growth = each / 0.5 / eq.flows["copa"].window[0]  # 1/(delta W) of each packet
    assert f"from {growth:.3g} packet/s at shorter windows to -{growth:.3g} at" in eq.message
    times = {"until": 60.0, "warmup": 20.0, "seeds": (1, 2)}
    for runs in (fc.simulate_trains(net, **times), fc.simulate_packets(net, **times)):
        inside = runs.mean["links"]["bottleneck"]["number_in_system_mean"]
        assert inside == pytest.approx(12.0, rel=0.05)
        goodput = np.asarray(runs.mean["flows"]["copa"]["flow_goodput"])
        np.testing.assert_allclose(goodput, goodput.mean(), rtol=0.08)


@pytest.mark.parametrize(("standing", "highest", "period"), [(False, 2.0, 4.0), (True, 2.5, 5.0)])
def test_the_queue_of_copa_cycles(standing: bool, highest: float, period: float):
    """Section 3: from 0 to 2.5/delta packets of each flow in 5 round trips.

    The least delay of half a round trip delays the end of growth by as much: without it growth and
    shrinking each end a round trip late, and the cycle is from 0 to 2/delta in 4.
    """
    n, rtt, apart = 10.0, 0.05, 0.002
    changes = {"flow.n": [n], "flow.rtt": [rtt], "flow.window.standing": standing}
    net = fc.replace(fc.load("arun2018/round_trips"), changes)
    runs = fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=(1,), sample=apart)
    series = runs.to_xarray()["link_queue"].squeeze()
    queue = series.sel(time=slice(20.0, None)).to_numpy()
    low, high = np.percentile(queue, [2, 98]) * 0.5 / n
    assert low < 0.2
    assert high == pytest.approx(highest, rel=0.1)
    spread = queue - queue.mean()
    alike = np.correlate(spread, spread, "full")[len(spread) - 1 :]
    begins = int(np.argmax(alike < 0))
    found = apart * (begins + int(np.argmax(alike[begins : begins + 300])))
    trip = rtt + runs.mean["links"]["bottleneck"]["queueing_delay_mean"]
    assert found / trip == pytest.approx(period, rel=0.1)


@pytest.mark.parametrize("scenario", ["arun2018/beside_cubic", "brakmo1995/beside_cubic"])
def test_laws_of_the_delay_lose_to_cubic(scenario: str):
    """Each flow keeps some packets of a queue that CUBIC fills."""
    net = fc.load(scenario)
    runs = fc.simulate_packets(net, until=80.0, warmup=20.0, seeds=(1, 2))
    goodput = {k: v["goodput"] for k, v in runs.mean["flows"].items()}
    cubic = goodput.pop("cubic")
    (other,) = goodput.values()
    assert 0.01 < other / (other + cubic) < 0.08


def test_a_law_that_heeds_no_mark_grows_on_after_one():
    """Receivers repeat a mark until the sender answers, and windows do not grow on the echo."""
    red = {"law": "red", "min_th": 5.0, "max_th": 25.0}
    changes = {"link.queue": red, "flow.feedback": "mark_tail"}
    net = fc.replace(fc.load("arun2018/round_trips"), changes)
    runs = fc.simulate_packets(net, until=20.0, warmup=10.0, seeds=(1,))
    assert runs.mean["links"]["bottleneck"]["marks"] > 0
    assert runs.mean["links"]["bottleneck"]["utilization"] > 0.98


# -- Swift
@pytest.mark.parametrize(
    ("window", "target"),
    [(1e-3, 120e-6), (0.1, 120e-6), (1.0, 49.38989e-6), (25.0, 23.265543e-6), (100.0, 20e-6),
     (1e4, 20e-6)],
)  # fmt: skip
def test_target_of_swift_between_its_ends(window: float, target: float):
    """20 us, and 100 us more at a tenth of a packet, as csg-htsim has them."""
    assert Swift().target(window) == pytest.approx(target, rel=1e-6)


def test_target_of_swift_grows_as_the_square_root_of_the_flows():
    """At a window of C T/N, flow scaling is fs_alpha sqrt(N/(C T)) and a constant."""
    law, whole = Swift(), 100.0
    found = [law.target(whole / n) for n in (1.0, 4.0, 16.0, 64.0)]
    steps = np.diff(found)
    np.testing.assert_allclose(steps[1:] / steps[:-1], 2.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("beyond", "lost"), [(-1e-6, 0.0), (10e-6, 0.1), (25e-6, 0.25), (75e-6, 0.5)]
)
def test_swift_shrinks_by_its_share_beyond_the_target(beyond: float, lost: float):
    """0.8 of the share of the round trip that is beyond it, and half at most: algorithm 1."""
    law, w, trip = Swift(), 100.0, 80e-6
    ack = Ack(0.0, 0.0, rtt=trip, delay=20e-6 + beyond)
    assert law.on_tick(w, ack) == pytest.approx(-lost * w, abs=1e-9)
    assert law.period(ack) == trip


@pytest.mark.parametrize(("delay", "grown"), [(19e-6, 1.0), (21e-6, 0.0)])
def test_swift_grows_by_a_packet_below_the_target_and_not_above(delay: float, grown: float):
    w = 100.0
    assert Swift().on_ack(w, round_trip(w, delay, 20e-6)) == pytest.approx(grown)


def test_a_loss_takes_half_of_the_window_of_swift():
    assert Swift().on_loss(10.0, round_trip(10.0, 0.0)) == -5.0


def resting(n: float, rtt: float, c: float) -> float:
    """Queueing delay with n flows: that which is the target of a window of c (rtt + d)/n."""
    low, high = 0.0, 1e-3
    law = Swift()
    for _ in range(60):
        middle = (low + high) / 2
        beyond = middle > law.target(c * (rtt + middle) / n)
        low, high = (low, middle) if beyond else (middle, high)
    return low


@pytest.mark.parametrize(("n", "within"), [(4.0, 0.05), (8.0, 0.05), (16.0, 0.1)])
def test_packets_of_swift_queue_for_the_target_at_equal_rates(n: float, within: float):
    net = fc.replace(fc.load("kumar2020/incast"), {"flow.n": n})
    delay = resting(n, 20e-6, float(net.links[0].capacity))
    queue = delay * float(net.links[0].capacity)
    eq = fc.equilibrium(net)
    assert eq.status == "discontinuity"
    assert eq.links["bottleneck"].queue == pytest.approx(queue, rel=1e-9)
    assert "packet/s at shorter windows to 0 at longer ones" in eq.message  # by ticks beyond it
    runs = fc.simulate_packets(net, until=0.06, warmup=0.02, seeds=(1, 2))
    found = runs.mean["links"]["bottleneck"]["queueing_delay_mean"]
    assert found == pytest.approx(delay, rel=within)
    assert runs.mean["flows"]["swift"]["jain"] > 0.999


@pytest.mark.parametrize(("n", "within"), [(128.0, 0.3), (256.0, 0.15)])
def test_an_incast_of_more_flows_than_packets_on_the_path_is_paced(n: float, within: float):
    """Windows below a packet: without a pace one packet of each would wait, N - 24."""
    net = fc.replace(fc.load("kumar2020/incast"), {"flow.n": n})
    capacity = float(net.links[0].capacity)
    runs = fc.simulate_packets(net, until=0.1, warmup=0.05, seeds=(1, 2))
    queue = runs.mean["links"]["bottleneck"]["queue_mean"]
    assert queue == pytest.approx(resting(n, 20e-6, capacity) * capacity, rel=within)
    assert runs.mean["links"]["bottleneck"]["utilization"] > 0.95
    assert runs.mean["flows"]["swift"]["jain"] > 0.85


def test_ends_of_flow_scaling_are_in_order():
    with pytest.raises(ValueError, match=r"needs fs_min < fs_max, got 100\.0 and 100\.0"):
        Swift(fs_min=100.0)
