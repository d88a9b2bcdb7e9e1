"""What changes in a run, and what receivers do: starts and stops of flows, schedules of links,
random losses, delayed ACKs and byte counting.
"""

import csv
import itertools
import math

import numpy as np
import pytest
from packet_cases import dumbbell, flows, known_marks, listed
from scipy import stats

from fluidcc import advice, compare, equilibrium, simulate, simulate_packets, simulate_trains
from fluidcc.laws import DCTCP, Droptail, Loss, NewReno
from fluidcc.packets.plan import PacketError
from fluidcc.scenario.network import Change, Start

TRIP, FAST = 0.1, {"capacity": 1e5, "delay": 0.01, "buffer": math.inf}


def lone(window=math.inf, *, sender=(), link=None, **group):
    """One flow, from 0 on, over a link that is fast unless it is given."""
    given = {"window": NewReno(max_window=window), "rtt": np.array([TRIP]), "start": Start()}
    given |= {"access_capacity": math.inf, "access_delay": None, "feedback": Loss()}
    return dumbbell(flows(1, sender=sender, **(given | group)), Droptail(), **(FAST | (link or {})))


def traced(net, path, until, **options):
    """The lines of a trace, and the run."""
    runs = simulate_packets(net, until=until, trace=path / "trace.csv", **options)
    with (path / "trace.csv").open(newline="") as file:
        return list(csv.DictReader(file)), runs


def times(lines, event, **wanted):
    chosen = [x for x in lines if x["event"] == event]
    return [float(x["time (s)"]) for x in chosen if all(x[k] == v for k, v in wanted.items())]


# -- Starts and stops
def test_flows_begin_and_end_at_their_times(tmp_path):
    starts, stops = (0.5, 3.0, 1.25), (6.0, 5.0, 7.5)
    group = flows(3, start=Start.at(*starts), stop=stops, feedback=Loss())
    net = dumbbell(group, Droptail(), buffer=20.0)
    lines, runs = traced(net, tmp_path, 12.0, sample=0.1)
    for flow, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        sent = [x for x in lines if x["event"] == "send" and x["flow"] == str(flow)]
        assert float(sent[0]["time (s)"]) == start
        late = [x for x in sent if float(x["time (s)"]) > stop]
        before = {x["sequence"] for x in sent} - {x["sequence"] for x in late}
        assert {x["sequence"] for x in late} <= before | {x["sequence"] for x in sent[: -len(late)]}
        assert max(times(lines, "ack", flow=str(flow))) < stop + 1.0
        windows = runs.series["flow_window"].sel(seed=1).isel(flow=flow).to_numpy()
        assert np.isnan(windows[-1]) and windows[int(10 * stop) - 5] > 0
    # all that was sent has arrived: the data of each packet once
    sent = {(x["flow"], x["sequence"]) for x in lines if x["event"] == "send"}
    data = sum(f["goodput"] * 3 * 12 / 8000 for f in runs.runs[0]["flows"].values())
    assert data == pytest.approx(len(sent) - 3, rel=1e-12)  # less the SYNs


def test_what_does_not_fit_the_flows_is_refused():
    with pytest.raises(
        ValueError, match=r"flows.stop: expected a time after the start, 2 s, got 1"
    ):
        flows(3, start=Start(0.0, 2.0), stop=(1.0,))
    net = dumbbell(flows(3, start=Start.at(0.0, 1.0)), Droptail())
    with pytest.raises(PacketError, match=r"flows.flows.start: expected 3 times, got 2"):
        simulate_packets(net, until=1.0)


# -- Schedules of links
def test_a_full_link_serves_at_the_rate_of_its_schedule(tmp_path):
    changes = (Change(2.0, capacity=625.0), Change(4.0, capacity=2500.0))
    link = {"capacity": 1250.0, "schedule": changes}
    lines, _ = traced(lone(400.0, link=link), tmp_path, 6.0)
    left = np.array(times(lines, "leave", link="bottleneck"))
    for (low, high), rate in {(1.5, 2.0): 1250.0, (2.0, 4.0): 625.0, (4.0, 6.0): 2500.0}.items():
        count = ((left > low) & (left <= high)).sum()
        assert count == pytest.approx(rate * (high - low), abs=1)


def test_a_packet_in_service_goes_on_at_the_new_rate(tmp_path):
    link = {"capacity": 10.0, "schedule": (Change(0.05, capacity=5.0), Change(0.07, capacity=20.0))}
    lines, _ = traced(lone(sender=(("syn", False),), link=link), tmp_path, 0.3)
    # half of it is left at 0.05 s, of which 0.1 packet goes at 5/s and 0.4 at 20/s
    first, second, *_ = times(lines, "leave", link="bottleneck")
    assert first == pytest.approx(0.07 + 0.4 / 20, rel=1e-12)
    assert second == pytest.approx(first + 1 / 20, rel=1e-12)


@pytest.mark.parametrize("elide", [True, False])
def test_round_trips_follow_the_delay_and_nothing_is_overtaken(tmp_path, elide):
    link = {"delay": 0.03, "schedule": (Change(1.0, delay=0.005), Change(2.0, delay=0.045))}
    net = lone(1.0, link=link)
    service = 1 / FAST["capacity"]
    for low, high, more in ((0.3, 0.9, 0.0), (1.2, 1.9, -0.025), (2.2, 2.9, 0.015)):
        run = simulate_packets(net, until=high, warmup=low, elide=elide).runs[0]["flows"]["flows"]
        assert run["rtt_mean"] == pytest.approx(TRIP + more + service, rel=1e-9)
    if elide:
        lines, _ = traced(lone(50.0, link=link), tmp_path, 3.0)
        order = [int(x["sequence"]) for x in lines if x["event"] == "receive"]
        assert order == sorted(order) and len(order) > 1000


def test_changes_out_of_order_are_refused():
    with pytest.raises(ValueError, match=r"link.schedule: expected times that increase from 0 on"):
        lone(link={"schedule": (Change(2.0, 5.0), Change(1.0, 6.0))})


# -- Random losses
@pytest.mark.parametrize("simulated", [simulate_packets, simulate_trains])
def test_random_losses_are_binomial(simulated):
    p = 0.02
    net = dumbbell(flows(5, feedback=Loss()), Droptail(), **FAST, random_loss=p)
    link = simulated(net, until=200.0).runs[0]["links"]["bottleneck"]
    low, high = stats.binom.interval(1 - 1e-4, int(link["arrivals"]), p)
    assert low <= link["drops"] <= high and link["arrivals"] > 2e4


def test_windows_under_random_losses_follow_the_square_root():
    """1.31/sqrt(p), the mean over time of an ideal TCP under independent losses: Ott, Kemperman and
    Mathis (1996). Recoveries, of a round trip in which a window does not grow, take 6 % at
    p = 0.01 from it and go as sqrt(p); the equilibrium of all windows has them.
    """
    seen = {}
    for p in (0.01, 0.0004):
        net = lone(link={"random_loss": p})
        runs = simulate_packets(net, until=3000.0, warmup=100.0, seeds=(1, 2, 3, 4))
        seen[p] = runs.mean["flows"]["flows"]["window_mean"] * math.sqrt(p)
        population = equilibrium(net.__class__(**{**vars(net), "closure": "population"}))
        own = float(population.flows["flows"].window[0]) * math.sqrt(p)
        assert seen[p] == pytest.approx(own, rel=0.03)
    assert seen[0.0004] == pytest.approx(1.31, rel=0.03)
    assert seen[0.01] < seen[0.0004]


def test_random_losses_draw_from_a_stream_of_their_own():
    net = dumbbell(flows(3), Droptail(), cross=500.0)
    lossy = dumbbell(flows(3), Droptail(), cross=500.0, random_loss=1e-12)
    plain, other = (simulate_packets(n, until=10.0).to_dict() for n in (net, lossy))
    assert plain == other


# -- Delayed ACKs and byte counting
DELAYED, COUNTING = (("delayed_acks", True),), (("delayed_acks", True), ("byte_counting", 2))
OPEN = (("initial_ssthresh", 2.0),)  # no slow start


@pytest.mark.parametrize(
    ("sender", "acks", "growth"), [((), 1.0, 1.0), (DELAYED, 0.5, 0.5), (COUNTING, 0.5, 1.0)]
)
def test_delayed_acks_are_half_as_many_and_halve_the_growth(tmp_path, sender, acks, growth):
    """By `growth` packets a round trip, less what whole windows and pairs take: 1/w of it."""
    options = (*OPEN, *sender, ("initial_window", 100.0))
    lines, runs = traced(lone(sender=options), tmp_path, 10.0, sample=1.0)
    answered, received = (len(times(lines, event)) for event in ("ack", "receive"))
    assert answered / received == pytest.approx(acks, rel=0.03)
    windows = runs.series["flow_window"].sel(seed=1).isel(flow=0).to_numpy()
    trips = (10.0 - 4.0) / (TRIP + 1 / FAST["capacity"])
    assert windows[10] - windows[4] == pytest.approx(growth * trips, rel=1.5 / 100)


@pytest.mark.parametrize(
    ("sender", "factor"),
    [((), 2.0), (DELAYED, 1.5), (COUNTING, 2.0), ((*DELAYED, ("byte_counting", 1)), 1.5)],
)
def test_slow_start_grows_by_the_acks_or_by_what_they_cover(sender, factor):
    """RFC 3465: a window doubles with L = 2, and grows by half with delayed ACKs and L = 1."""
    options = (*sender, ("initial_window", 32.0), ("syn", False))
    runs = simulate_packets(lone(sender=options), until=0.5, sample=0.05)
    windows = runs.series["flow_window"].sel(seed=1).isel(flow=0).to_numpy()
    assert windows[8] / windows[6] == pytest.approx(factor, rel=0.03)  # a round trip later


def test_a_lone_packet_is_acknowledged_when_the_timer_fires():
    net = lone(1.0, sender=(*DELAYED, ("ack_delay", 0.04)))
    run = simulate_packets(net, until=20.0, warmup=1.0).runs[0]["flows"]["flows"]
    assert run["rtt_mean"] == pytest.approx(TRIP + 1 / FAST["capacity"] + 0.04, rel=1e-9)
    assert run["timeouts"] == 0


def test_packets_out_of_order_are_acknowledged_at_once(tmp_path):
    """Three duplicate ACKs come in the round trip of the loss, and no timer has to fire."""
    group = {"sender": (*DELAYED, *OPEN, ("initial_window", 20.0)), "feedback": Loss()}
    net = known_marks(listed(drops=(61,)), NewReno(max_window=20.0), **group)
    lines, runs = traced(net, tmp_path, 3.0)
    assert runs.runs[0]["flows"]["flows"]["recoveries"] == 1
    assert runs.runs[0]["flows"]["flows"]["timeouts"] == 0
    lost = next(x for x in lines if x["event"] == "drop")
    first, again = times(lines, "send", sequence=lost["sequence"])
    assert again - first < 2 * TRIP
    repaired = next(
        k
        for k, x in enumerate(lines)
        if x["event"] == "receive" and x["sequence"] == lost["sequence"]
    )
    behind = [
        x
        for x in lines[:repaired]
        if x["event"] == "receive" and int(x["sequence"]) > int(lost["sequence"])
    ]
    acks = [
        x for x in lines if x["event"] == "ack" and x["sequence"] == str(int(lost["sequence"]) - 1)
    ]
    assert len(acks) >= len(behind)


def test_echoes_of_delayed_acks_cover_the_marked_packets_alone(tmp_path):
    """RFC 8257, 3.2: the sender can tell how many packets were marked."""
    marks = (20, 21, 22, 35, 40, 41, 77, 79)
    group = {"sender": (*DELAYED, *OPEN, ("initial_window", 10.0)), "reaction": DCTCP_REACTION}
    net = known_marks(listed(marks=marks), DCTCP(max_window=10.0, min_window=10.0), **group)
    lines, _ = traced(net, tmp_path, 3.0)
    acks = [(int(x["sequence"]), "ece" in x["flags"]) for x in lines if x["event"] == "ack"]
    covered = sum(b - a for (a, _), (b, ece) in itertools.pairwise(acks) if ece)
    assert covered == len(marks)


DCTCP_REACTION = flows(1, window=DCTCP()).reaction


def test_an_initial_window_of_ten_goes_at_once(tmp_path):
    """RFC 6928."""
    lines, _ = traced(lone(sender=(("initial_window", 10.0),)), tmp_path, 0.25)
    opened = times(lines, "ack", sequence="0")[0]  # of the SYN
    assert sum(t == opened for t in times(lines, "send")) == 10


# -- Levels below packets
def test_levels_below_packets_say_what_they_do_not_follow():
    link = {"capacity": 1250.0, "buffer": 60.0, "schedule": (Change(2.0, 625.0),)}
    net = lone(100.0, link=link, stop=(8.0,))
    said = (
        "only packet runs (fluidcc packets) follow links.bottleneck.schedule and flows.flows.stop"
    )
    assert any(said in line for line in advice(net))
    with pytest.raises(ValueError, match="only packet runs"):
        simulate(net, until=1.0)
    with pytest.raises(PacketError, match=r"not simulated by trains: only packet runs"):
        simulate_trains(net, until=1.0)
    both = compare(net, until=5.0, seeds=(1, 2))
    assert both.level == "packets" and both.fluid is None
    assert any(said in line for line in both.validity_warnings)
    assert said in both.trains_message


def test_the_fluid_and_trains_have_the_mean_of_losses_and_delayed_acks():
    p = 0.002
    net = lone(link={"random_loss": p}, sender=DELAYED)
    eq = equilibrium(net)
    # growth of b/w per packet against halvings: b (1 - p) / w = p w / 2, with b = 1/2
    assert eq.flows["flows"].window[0] == pytest.approx(math.sqrt(2 * 0.5 / p), rel=0.1)
    runs = [
        run(net, until=1500.0, warmup=50.0, seeds=(1, 2)).mean
        for run in (simulate_packets, simulate_trains)
    ]
    packets, trains = (run["flows"]["flows"]["window_mean"] for run in runs)
    assert trains == pytest.approx(packets, rel=0.05)
    assert packets == pytest.approx(1.31 * math.sqrt(0.5 / p), rel=0.06)
    assert any("delayed ACKs" in line for line in advice(net))
