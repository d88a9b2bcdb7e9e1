"""BBR: rules of the drafts one by one, and in packets the published equilibria and shares."""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.bundled.validation import bbr_fluid as fluid
from fluidcc.bundled.validation import bbr_mixes as mixes
from fluidcc.laws import BBR, BBR3, Ack

TRIP, BDP = 0.04, 400 / 3  # s, packets: 40 Mbit/s
RATE = BDP / TRIP
STARTUP, DRAIN, CYCLE, PROBE_RTT = range(4)
DOWN, CRUISE, REFILL, UP, PROBE_RTT3 = range(2, 7)
VERSION_2 = {"down_gain": 0.75, "up_window_gain": 2.0, "up_limit": 1.25, "startup_gain": 2.89,
             "margin": 1.0}  # fmt: skip


def after(law: Any, s: Any, count: float = BDP, rtt: float = TRIP, **seen: Any) -> Any:
    """The state after a round trip, as one ACK of all its packets."""
    seen = {"acked": count, "rate": count / rtt, "flight": count, "random": 0.5} | seen
    change = law.observe(s, Ack(count, seen.pop("elapsed", rtt), rtt, **seen))
    return type(s)(*map(sum, zip(s, change, strict=True)))


def known(law: Any, mode: float, **changes: Any) -> Any:
    """A state that knows the path, in a phase."""
    s = law.start(2 * BDP)._replace(
        mode=mode, trip=TRIP, delivered=1e5, round_end=1e5, full=RATE, flat=3.0
    )
    if isinstance(law, BBR):
        return s._replace(first=RATE, second=RATE, third=RATE)._replace(**changes)
    known = {"newest": RATE, "oldest": RATE, "least": TRIP, "alpha": 0.0}
    return s._replace(**(known | changes))


def pace(law: Any, s: Any) -> float:
    """Pace over the rate of the path."""
    return float(law.pacing(s, Ack(1.0, 0.0, TRIP))) / RATE


# -- the rules
@pytest.mark.parametrize("law", [BBR(), BBR3()])
@pytest.mark.parametrize(("growth", "ends"), [(1.3, False), (1.2, True)])
def test_start_up_ends_after_three_round_trips_without_a_quarter_more(law, growth, ends):
    s, count = law.start(10.0), 10.0
    for _ in range(3):
        s, count = after(law, s, count), 2 * count
    assert s.mode == STARTUP and s.flat == 0
    for k in range(3):
        assert s.mode == STARTUP and s.flat == (k if ends else 0)
        s = after(law, s, 40.0 * growth ** (1 if ends else k + 1))
    assert s.mode == (DRAIN if ends else STARTUP)


def test_gains_of_the_start_are_the_least_that_double_the_rate():
    """2/ln 2 over a rate that lags by a round trip, and 4 ln 2 (Cardwell et al.)."""
    start = known(BBR(), STARTUP)
    assert pace(BBR(), start) == pytest.approx(2 / math.log(2), rel=1e-3)
    assert pace(BBR(), start._replace(mode=1.0)) == pytest.approx(math.log(2) / 2, rel=1e-3)
    assert pace(BBR3(margin=1.0), known(BBR3(), STARTUP)) == pytest.approx(
        4 * math.log(2), rel=2e-3
    )


def test_the_cycle_of_version_1():
    """5/4, then 3/4, and six least round trips at the rate."""
    law, paces = BBR(), []
    s = known(law, CYCLE)
    for _ in range(16):
        paces.append(pace(law, s))
        s = after(law, s, flight=1.3 * BDP, elapsed=1.001 * TRIP)
    assert paces == 2 * [1.25, 0.75, *[1.0] * 6]
    assert s.window == pytest.approx(2 * BDP)


@pytest.mark.parametrize(
    ("phase", "flight", "lost", "moves"),
    [(8.0, 1.2, 0, False), (8.0, 1.3, 0, True), (8.0, 1.1, 1, True), (1.0, 1.1, 0, False),
     (1.0, 0.99, 0, True)],
)  # fmt: skip
def test_probes_end_at_their_flight_or_at_a_loss_and_drains_at_the_product(
    phase, flight, lost, moves
):
    """A probe lasts a least round trip, too; a drain no longer than that."""
    law = BBR()
    s = known(law, CYCLE, phase=phase)
    span = (1.001 if phase > 7.5 else 0.5) * TRIP
    s = after(law, s, flight=flight * BDP, lost=lost, elapsed=span)
    assert (s.phase != phase) == moves
    early = after(law, known(law, CYCLE), flight=2 * BDP, lost=5, elapsed=0.9 * TRIP)
    assert early.phase == 8.0


@pytest.mark.parametrize(("turn", "more"), [(0.0, 11), (3.0, 8)])
def test_version_1_forgets_a_rate_after_9_to_12_round_trips(turn, more):
    law, rates = BBR(), dict.fromkeys(("first", "second", "third"), 0.0)
    s = after(law, known(law, CYCLE, **rates, turn=turn), rate=2 * RATE)
    ages = [k for k in range(16) if (s := after(law, s)).window > 2.1 * BDP]
    assert len(ages) == more


@pytest.mark.parametrize(("law", "interval"), [(BBR(), 10.0), (BBR3(), 5.0)])
def test_an_old_round_trip_is_probed(law, interval):
    probing = PROBE_RTT if isinstance(law, BBR) else PROBE_RTT3
    few = 4.0 if isinstance(law, BBR) else 0.5 * BDP
    s = known(law, 2.0, age=interval - 0.05)
    s = after(law, s, rtt=1.1 * TRIP, rate=RATE)
    assert s.mode != probing
    s = after(law, s._replace(age=interval), rtt=1.1 * TRIP, rate=RATE)
    assert s.mode == probing and s.window == pytest.approx(few)
    s = after(law, s, few, rate=RATE, flight=few)  # down to it
    for _ in range(4):
        s = after(law, s, few, rate=RATE, flight=few, elapsed=0.041)
    assert s.mode == probing and s.low == 1
    s = after(law, s, few, rate=RATE, flight=few, elapsed=0.041)
    assert s.mode != probing and s.window == pytest.approx(2 * BDP)
    assert s.trip == pytest.approx(TRIP) and s.age == 0


def test_paces_and_windows_of_version_3():
    """The draft's summary of its state machine; version 2: draft-cardwell-iccrg-02."""
    law = BBR3()
    paces = {STARTUP: 2.77, DRAIN: 0.5, DOWN: 0.9, CRUISE: 1, REFILL: 1, UP: 1.25, PROBE_RTT3: 1}
    for mode, gain in paces.items():
        assert pace(law, known(law, mode)) == pytest.approx(0.99 * gain)
    gains = {DOWN: 2.0, CRUISE: 2.0, REFILL: 2.0, UP: 2.25, PROBE_RTT3: 0.5}
    for mode, gain in gains.items():
        s = known(law, mode, window=3 * BDP, flat=0.0, round_end=2e5)
        assert after(law, s, flight=1.1 * BDP).window == pytest.approx(gain * BDP)
    low = known(law, CRUISE, most_rate=0.5 * RATE)
    assert pace(law, low) == pytest.approx(0.99 / 2)


def test_a_cycle_begins_anywhere_but_in_the_drain_with_equal_chances():
    law = BBR()
    begun = [
        round(after(law, known(law, DRAIN), flight=0.9 * BDP, random=(k + 0.5) / 70).phase)
        for k in range(70)
    ]
    assert {phase: begun.count(phase) for phase in begun} == dict.fromkeys(range(2, 9), 10)


def test_a_drain_of_version_3_ends_at_the_product_or_after_three_round_trips():
    law = BBR3()
    assert after(law, known(law, DRAIN), flight=0.99 * BDP).mode == DOWN
    s, trips = known(law, DRAIN), 0
    while s.mode == DRAIN:
        s, trips = after(law, s, flight=1.5 * BDP), trips + 1
    assert trips == 4  # the round count is then more than 3 above that of its start


@pytest.mark.parametrize(
    ("mode", "share"), [(DOWN, 1.0), (CRUISE, 0.85), (UP, 1.0), (PROBE_RTT3, 0.85)]
)
def test_headroom_below_the_bound_of_flight(mode, share):
    law = BBR3()
    s = known(law, mode, long_flight=0.5 * BDP, flat=0.0, round_end=2e5)
    s = after(law, s, flight=0.5 * BDP, acked=0.4 * BDP)
    assert s.window == pytest.approx(min(share * 0.5 * BDP, 0.5 * BDP))


def test_a_probe_of_version_3_loses_at_most_two_percent():
    law = BBR3()
    s = known(law, UP, sampled=1.0, flat=0.0, window=2.25 * BDP)
    mild = after(law, s, acked=1.5 * BDP, lost=0.019 * 1.5 * BDP, rate=RATE)
    assert mild.mode == UP and mild.long_flight > 1e6
    sent = 1.5 * BDP
    s = after(law, s, acked=0.979 * sent, lost=0.021 * sent, rate=RATE)
    assert s.mode == DOWN and s.high == 1 and s.sampled == 0
    assert s.long_flight == pytest.approx(sent)
    again = after(law, s, acked=0.9 * sent, lost=0.1 * sent, rate=RATE)  # once a probe
    assert again.long_flight == s.long_flight


def test_a_bound_is_no_lower_than_0_7_of_the_path():
    law = BBR3()
    s = known(law, UP, sampled=1.0, flat=0.0)
    s = after(law, s, acked=0.5 * BDP, lost=0.1 * BDP, rate=RATE)
    assert s.long_flight == pytest.approx(0.7 * BDP)


def test_losses_between_probes_lower_rate_and_flight_to_0_7_once_a_round_trip():
    law = BBR3()
    s = known(law, CRUISE, wait=10.0)
    s = after(law, s, 0.3 * BDP, lost=1.0, flight=0.9 * BDP)
    assert s.most_rate == pytest.approx(0.7 * RATE)
    assert s.most_flight == pytest.approx(1.4 * BDP)
    within = after(law, s._replace(round_end=2e5), 1.0, acked=0.3 * BDP, lost=1.0, rate=RATE)
    assert within.most_rate == s.most_rate  # the round trip goes on
    floor = after(law, s, 0.65 * BDP, lost=1.0)  # no lower than is delivered
    assert floor.most_rate == pytest.approx(0.65 * RATE)
    fresh = after(law, s._replace(wait=0.01), rate=RATE)
    assert fresh.mode == REFILL and min(fresh.most_rate, fresh.most_flight) > 1e6


@pytest.mark.parametrize(("marked", "ends"), [(0.45, False), (0.55, True)])
def test_marks_end_a_probe_at_a_half_and_lower_the_flight_by_a_third_of_their_share(marked, ends):
    """As tcp_bbr.c of Linux, version 3, has it."""
    law = BBR3()
    s = known(law, UP, sampled=1.0, flat=0.0)
    s = after(law, s, marked=marked, rate=RATE, acked=1.2 * BDP, count=1.2 * BDP, rtt=1.2 * TRIP)
    assert (s.mode == DOWN) == ends
    s = known(law, CRUISE, wait=10.0, alpha=0.5)
    s = after(law, s, marked=0.5, flight=BDP)
    assert s.most_flight == pytest.approx(2 * BDP * (1 - 0.5 / 3))
    s = known(law, CRUISE, wait=10.0)
    assert after(law, s, marked=0.8, flight=BDP).alpha == pytest.approx(0.8 / 16)


def test_probes_of_version_3_follow_after_2_to_3_s_or_63_round_trips():
    law = BBR3()
    for random in (0.0, 0.9):
        s = after(law, known(law, UP, flat=3.0, full=RATE), random=random, rate=RATE)
        assert s.mode == DOWN and s.wait == pytest.approx(2 + random)
        s = s._replace(turns=-1e3)
        waited = 0.0
        while s.mode in (DOWN, CRUISE):
            s, waited = after(law, s, flight=0.8 * BDP, rate=RATE), waited + TRIP
        assert s.mode == REFILL and waited == pytest.approx(2 + random, abs=2 * TRIP)
        s = after(law, s, rate=RATE)
        assert s.mode == UP and s.sampled == 1
    s, trips = known(law, CRUISE, wait=1e3), 0
    while s.mode == CRUISE:
        s, trips = after(law, s, flight=0.8 * BDP, rate=RATE), trips + 1
    assert trips == 63
    s, trips = known(law, CRUISE, wait=1e3, newest=RATE / 10, oldest=RATE / 10), 0
    while s.mode == CRUISE:
        s, trips = after(law, s, BDP / 10), trips + 1
    assert trips == math.ceil(BDP / 10)  # as Reno would


def test_a_bound_that_held_is_passed_a_round_trip_after_a_careful_probe():
    """It stops at the bound; without more than 2 % lost, it refills and doubles what it adds."""
    law = BBR3()
    s = known(law, UP, sampled=1.0, flat=0.0, high=1.0, long_flight=1.1 * BDP, window=1.1 * BDP)
    s = after(law, s, flight=1.1 * BDP, acked=BDP, rate=RATE)
    assert (s.mode, s.careful, s.high) == (DOWN, 1, 0)
    s = after(law, s, rate=RATE, flight=1.1 * BDP)
    assert s.mode == REFILL and s.careful == 0
    s = after(law, s, rate=RATE, flight=1.1 * BDP)
    assert s.mode == UP and s.rise == 1
    bounds = [s.long_flight]
    for _ in range(4):
        s = after(law, s, s.window, flight=s.window, acked=0.5 * BDP, rate=RATE)
        bounds.append(s.long_flight)
    assert np.diff(bounds) == pytest.approx([1, 2, 4, 8])


def test_a_rate_of_version_3_is_kept_for_two_probes():
    law = BBR3()
    s = known(law, DOWN, stopping=1.0, newest=2 * RATE, oldest=RATE, wait=10.0)
    s = after(law, s, rate=RATE)
    assert (s.newest, s.oldest) == (0, 2 * RATE)
    s = after(law, s._replace(mode=DOWN, stopping=1.0), rate=RATE)
    assert (s.newest, s.oldest) == (0, RATE)


def test_the_least_round_trip_of_version_3_is_that_of_ten_seconds():
    law = BBR3()
    s = known(law, CRUISE, trip=1.5 * TRIP, age=1.0, wait=1e3, turns=-1e3, least_age=9.9)
    s = after(law, s, rtt=2 * TRIP, rate=RATE)
    assert s.least == TRIP
    s = after(law, s, rtt=2 * TRIP, rate=RATE)
    assert s.least == 1.5 * TRIP


# -- packets
def alone(law: str, n: int, buffer: float, **parameters: Any) -> fc.Network:
    """So many flows over a buffer in bandwidth-delay products."""
    net = fc.replace(fc.load("cardwell2017/single"), {"flow.window.law": law, "flow.n": n})
    changes = {f"flow.window.{name}": value for name, value in parameters.items()}
    return fc.replace(net, changes | {"link.buffer": round(buffer * BDP)})


def run(net: fc.Network, until: float = 60.0, seeds=(1,), **options: Any) -> Any:
    return fc.simulate_packets(net, until=until, warmup=20.0, seeds=seeds, **options).to_xarray()


def queue(runs: Any) -> float:
    return runs.link_queue_mean.mean().item() / BDP


def loss(runs: Any) -> float:
    return runs.link_drop_fraction.mean().item()


@pytest.mark.parametrize(("law", "interval", "few"), [("bbr", 10.0, 4.0), ("bbr3", 5.0, 0.5 * BDP)])
def test_one_flow_knows_its_path(law, interval, few):
    """The rate within 2 % and two bandwidth-delay products of window (the draft, appendix A), and
    the round trip probed for 200 ms and a round trip after each interval.
    """
    runs = run(alone(law, 1, 4.0), 45.0, sample=0.01)
    window, time = runs.flow_window[0, :, 0].to_numpy(), runs.time.to_numpy()
    settled = window[time > 5]
    assert np.median(settled) == pytest.approx(2 * BDP, rel=0.02)
    assert settled.max() < 2.27 * BDP and runs.link_utilization.item() > 0.96
    low = window <= 1.02 * few
    begins = time[1:][low[1:] & ~low[:-1] & (time[1:] > 9)]
    assert np.diff(begins) == pytest.approx(interval + 0.25, abs=0.15)
    spans = low[time > 9].sum() * 0.01 / len(begins)
    assert spans == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("n", [2, 10])
def test_flows_of_version_1_keep_a_product_in_a_deep_buffer(n):
    """Scherrer et al. (2022): q = C d, as windows hold two products."""
    assert queue(run(alone("bbr", n, 4.0), seeds=(1, 2))) == pytest.approx(1.0, abs=0.15)


def test_windows_of_version_2_hold_more_than_the_published_queue():
    """Scherrer et al. (2022), at second hand: q = (N - 1)/(4 N + 1) C d. Each flow believes in the
    rate that it has alone in a probe, C 5/(4 N + 1), and holds that times d. The rule lets windows
    come to twice that between probes (`validation/bbr_mixes.py --held` has both).
    """
    n, net = 5, alone("bbr3", 5, 4.0, **VERSION_2)
    found = queue(run(net, 80.0, (1, 2)))
    assert 4 * (n - 1) / (4 * n + 1) < found < 2 * 5 * n / (4 * n + 1) - 1


@pytest.mark.parametrize("n", [2, 10])
def test_version_3_loses_far_less_in_shallow_buffers(n):
    first, third = (loss(run(alone(law, n, 0.25), seeds=(1, 2))) for law in ("bbr", "bbr3"))
    assert first > 0.05 and third < first / 4


def test_marks_lower_the_flight_of_version_3_alone():
    step = {"link.queue": {"law": "threshold", "at": 20.0}, "flow.feedback": "mark_tail"}
    for law, least, most in (("bbr", 0.7, 1.0), ("bbr3", 0.0, 0.35)):
        runs = run(fc.replace(alone(law, 4, 4.0), step))
        assert least < queue(runs) < most


@pytest.mark.parametrize(("x", "measured"), [(4, 0.44), (8, 0.45), (16, 0.44)])
def test_version_1_beside_reno(x, measured):
    """Ware et al. (2019): loss-based senders have p = 1/2 - 1/(2 X) - 4 N/q, and probes of the
    round trip cost (q/C + 0.2 s + d)/10 s. Of their packets those in the pipe are counted as if
    they stayed there in a probe; without that p = 1/2 - 4 N/(q + C d), which packets meet.
    """
    net = fc.replace(fc.load("cardwell2026/reno"), {"flows.bbr.window": {"law": "bbr"},
        "flows.bbr.n": 1, "flows.reno.n": 1, "link.buffer": round(x * BDP)})  # fmt: skip
    goodput = run(net, 120.0, seeds=(1, 2)).group_goodput.mean("seed").to_numpy()
    share = goodput[0] / goodput.sum()
    probes = 1 - (x * TRIP + 0.2 + TRIP) / 10
    published = (0.5 + 1 / (2 * x) + 4 / (x * BDP)) * probes
    assert share == pytest.approx(measured, abs=0.03)
    assert 0.02 < published - share < 0.2
    assert share == pytest.approx((0.5 + 4 / ((x + 1) * BDP)) * probes, abs=0.06)


# -- the fluid model of Scherrer et al. (2022)
ONE_EACH = [("bbr", 1), ("reno", 1)]


@pytest.mark.parametrize(("x", "renew", "of_queue"), [(0.5, False, 0.06), (4.0, True, 0.15)])
def test_version_1_beside_reno_is_that_of_the_fluid_model(x, renew, of_queue):
    """Over half a product, of which probes at 5/4 lose what does not fit; and over four, if least
    round trips are renewed: in packets a probe of them sees the queue of the others.
    """
    law, counts = {"flows.bbr.window": {"law": "bbr"}}, {"flows.bbr.n": 1, "flows.reno.n": 1}
    net = fc.replace(fc.load("cardwell2026/reno"), law | counts | {"link.buffer": round(x * BDP)})
    runs, times = run(net, 120.0, seeds=(1, 2)), {"until": 120.0, "warmup": 20.0}
    goodput = runs.group_goodput.mean("seed").to_numpy()
    found = fluid.solve(ONE_EACH, x, fluid.Reading(renew=renew), **times)
    assert goodput[0] / goodput.sum() == pytest.approx(found.shares[0], abs=0.05)
    assert queue(runs) == pytest.approx(found.queue, rel=of_queue)
    if renew:
        assert fluid.solve(ONE_EACH, x, **times).shares[0] < 0.02
    else:
        assert loss(runs) == pytest.approx(found.loss, rel=0.1)


def test_equilibria_of_the_fluid_model():
    """Of its equations: version 1 keeps a product, beyond the formula for version 2 it has half."""
    kept = mixes.rows(mixes.FLUID)
    for n in fluid.ALONE:
        first, second = (float(kept["least", v, "", str(n), "4"]["queue"]) for v in "12")
        assert first == pytest.approx(1.0, abs=0.12)
        assert 2 * (n - 1) / (4 * n + 1) < second < 0.75


def test_the_table_of_the_fluid_model_is_its_own():
    """Half the step moves shares and queues by less than a hundredth."""
    kept = mixes.rows(mixes.FLUID)["least", "1", "Reno", "1", "0.5"]
    found, finer = (fluid.solve(ONE_EACH, 0.5, step=h) for h in (fluid.STEP, fluid.STEP / 2))
    values = [float(kept[name]) for name in ("share", "queue", "loss")]
    assert [found.shares[0], found.queue, found.loss] == pytest.approx(values, abs=2e-4)
    assert finer.shares[0] == pytest.approx(found.shares[0], abs=0.01)
    assert finer.queue == pytest.approx(found.queue, abs=0.01)


def test_the_table_of_mixes_is_that_of_packets():
    kept = mixes.rows()["2", "Reno", "1", "1"]
    found = mixes.measure("2", "Reno", 1, 1.0)
    values = [float(kept[name]) for name in ("share", "queue", "loss")]
    assert found == pytest.approx(values, rel=1e-3, abs=1e-4)
    card = mixes.CARD.read_text(encoding="utf-8")
    assert mixes.with_tables(card) == card, "run python validation/bbr_mixes.py --table"
