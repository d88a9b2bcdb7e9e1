"""CoDel against the algorithm of RFC 8289, its published sequences, and head drops in packets."""

import math
import random

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import AbstractQueueLaw, Arrival, CoDel, Signal, ops, state
from fluidcc.laws.own import loaded
from fluidcc.laws.registry import register
from fluidcc.model.rates import summed

TARGET, INTERVAL = 0.005, 0.1  # s: RFC 8289, section 4


class Algorithm:
    """CoDel in clock times, as section 5 of RFC 8289 states it."""

    def __init__(self):
        self.first_above = self.next = 0.0
        self.count = self.last = 0
        self.dropping = False

    def may_drop(self, now, sojourn, behind):
        """Whether the delay has been above the target for an interval."""
        if sojourn < TARGET or behind <= 1:
            self.first_above = 0.0
            return False
        if self.first_above == 0:
            self.first_above = now + INTERVAL
            return False
        return now >= self.first_above

    def drops(self, now, heads):
        """Packets that are dropped before one is sent; `heads` has the sojourns and the packets
        behind of those at the head in turn.
        """
        ready, dropped = self.may_drop(now, *next(heads)), 0
        if self.dropping:
            self.dropping = ready
            while self.dropping and now >= self.next:
                dropped, self.count = dropped + 1, self.count + 1
                self.dropping = self.may_drop(now, *next(heads))
                if self.dropping:
                    self.next += INTERVAL / math.sqrt(self.count)
        elif ready:
            self.may_drop(now, *next(heads))
            gained, dropped, self.dropping = self.count - self.last, 1, True
            near = gained > 1 and now - self.next < 16 * INTERVAL
            self.count = self.last = gained if near else 1
            self.next = now + INTERVAL / math.sqrt(self.count)
        return dropped


class Rules:
    """The law, packet by packet."""

    def __init__(self, law):
        self.law = law.in_packets(100.0)
        self.memory, self.before = self.law.start(0.0), 0.0

    def drops(self, now, heads):
        dropped = 0
        for sojourn, behind in heads:
            seen = Arrival(1.0, now - self.before, behind, 1000.0, 1.0, sojourn)
            self.memory = summed(self.memory, self.law.on_departure(self.memory, seen))
            self.before = now
            if self.law.signal(self.memory, seen).drop < 1:
                return dropped
            self.memory = summed(self.memory, self.law.on_signal(self.memory, seen))
            dropped += 1
        raise AssertionError("the queue is empty")


def departures(seed, count=4000):
    """Times of departures with the sojourn of the head: delays that stay above or below the target
    for a random time; sometimes the queue is nearly empty.
    """
    draw = random.Random(seed)
    now, level = 0.0, 0.0
    for _ in range(count):
        now += draw.expovariate(700)
        if draw.random() < 0.004:
            level = draw.choice([0.0, 0.002, 0.006, 0.02, 0.02, 0.05])
        waited = max(0.0, level + draw.gauss(0, 3e-4))
        behind = draw.choice([0, 1, 2, 10]) if draw.random() < 0.001 else 30
        heads = [(max(waited - 1e-4 * j, 0.0), max(behind - j, 0)) for j in range(60)]
        yield now, heads


@pytest.mark.parametrize("seed", range(12))
def test_drops_are_those_of_the_rfc_at_every_departure(seed):
    algorithm, rules = Algorithm(), Rules(CoDel(ecn=False))
    pairs = [
        (algorithm.drops(now, iter(heads)), rules.drops(now, heads))
        for now, heads in departures(seed)
    ]
    theirs, ours = np.array(pairs).T
    assert theirs.sum() > 10
    assert (theirs == ours).all()


def test_the_sequence_of_ns3():
    """Test suite codel-queue-disc of ns-3: 20 packets at time 0, and four looks at the queue."""
    rules, left = Rules(CoDel(ecn=False)), 20
    dropped = []
    for now in (0.01, 0.21, 0.21, 0.42):
        dropped.append(rules.drops(now, ((now, left - 1 - j) for j in range(left))))
        left -= dropped[-1] + 1
    assert dropped == [0, 1, 0, 2]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Events at a link that half as much again comes to as it carries, whatever it drops."""
    file = tmp_path_factory.mktemp("codel") / "trace.csv"
    net = fc.replace(
        fc.load("rfc8289/drops"),
        {
            "link.cross": 1500.0,
            "link.queue.ecn": False,
            "link.buffer": math.inf,
            "flow.n": 1,
            "flow.window.max_window": 1,
            "flow.initial.window": 1,
        },
    )
    fc.simulate_packets(net, until=3.0, seeds=[1], trace=file)
    events = fc.read_trace(file)
    return events[events.link == "bottleneck"]


def test_drops_under_overload_come_at_the_times_of_the_rfc(trace):
    """The n-th one an interval / sqrt(n) after the one before, at the next departure."""
    times = trace.time[trace.event == "drop"].to_numpy()
    due = times[0] + np.concatenate([[0.0], np.cumsum(INTERVAL / np.sqrt(np.arange(1, 1000)))])
    late = times - due[: len(times)]
    assert len(times) == np.searchsorted(due, 3.0) > 180
    assert late.min() > -1e-9 and late.max() < 1.001e-3  # the time of a packet
    entered = trace.time[trace.event == "enter"].to_numpy()
    left = trace.time[trace.event == "leave"].to_numpy() - 1e-3  # begins to leave
    waited = left[:200] - entered[:200]  # in order, as none is dropped so early
    above = left[:200][waited >= TARGET - 1e-9][0]
    assert times[0] - above == pytest.approx(INTERVAL, abs=1.001e-3)


def test_a_drop_is_at_the_head_of_the_queue(trace):
    """Packets leave or are dropped in the order in which they came."""
    came = trace[trace.event == "enter"]
    gone = trace[trace.event.isin(["leave", "drop"])]
    keys = ["flow", "connection", "sequence"]
    own = came[keys].to_numpy()[: len(gone)]
    assert (own == gone[keys].to_numpy()).all()
    waited = gone.time.to_numpy() - came.time.to_numpy()[: len(gone)]
    assert waited[(gone.event == "drop").to_numpy()].min() >= TARGET


def test_the_mean_rate_of_signals_rises_by_50_a_second_each_second():
    """sqrt(count) / interval, with count' that rate, is t / (2 interval^2), whatever the load."""
    net = fc.replace(
        fc.load("rfc8289/codel"),
        {
            "flow.window.min_window": 40.0, "flow.window.max_window": 40.0,
            "flow.initial.window": 40.0, "link.buffer": 4000,
        },
    )  # fmt: skip
    run = fc.simulate(net, until=2.0)
    link, late = run.links["bottleneck"], run.time > 0.5
    rate = link.mark_fraction[late] * float(net.links[0].capacity)
    slope = np.polyfit(run.time[late], rate, 1)[0]
    assert slope == pytest.approx(1 / (2 * INTERVAL**2), rel=1e-3)


@pytest.mark.parametrize("name", ["codel", "drops"])
def test_trains_are_packets_and_the_equilibrium_has_a_reason(name):
    net = fc.load(f"rfc8289/{name}")
    rest = fc.equilibrium(net)
    assert rest.status == "undetermined"
    assert "memory count of links.bottleneck.queue still changes by 10 per second" in rest.message
    found = fc.compare(net, until=40.0, warmup=20.0, seeds=range(1, 5))
    assert found.level == "trains"
    rows = {row.name: row for row in found.rows}
    for quantity, within in (("queue", 0.1), ("queue_std", 0.1), ("utilization", 0.03)):
        row = rows[f"links.bottleneck.{quantity}"]
        assert row.trains == pytest.approx(row.packets, rel=within)


class Five(AbstractQueueLaw):
    """Marks its first five packets, as a law that decides on arrival and counts its signals."""

    name = "five"
    source = "test"
    count = state(0.0, "k", unit="1", doc="signals", within="[0, inf)")

    def on_signal(self, x, seen):
        return 1.0 + 0.0 * x

    def signal(self, x, seen):
        return Signal(mark=ops.where(x < 5, 1.0, 0.0))


def test_a_law_that_decides_on_arrival_heeds_its_signals_at_every_level():
    with loaded([]):
        register(Five)
        net = fc.replace(fc.load("rfc8289/codel"), {"link.queue": "five", "link.buffer": math.inf})
    packets = fc.simulate_packets(net, until=1.0, warmup=0.0, seeds=[1])
    trains = fc.simulate_trains(net, until=1.0, warmup=0.0, seeds=[1], estimate_error=False)
    for runs, within in ((packets, 0), (trains, 4)):  # trains see a few packets at a time
        link = runs.mean["links"]["bottleneck"]
        assert 5 <= link["marks"] + link["drops"] <= 5 + within  # SYNs are dropped
    run = fc.simulate(net, until=10.0)
    link = run.links["bottleneck"]
    rate = link.mark_fraction * link.offered
    assert np.trapezoid(rate, run.time) == pytest.approx(5, rel=0.1)


def test_a_law_is_decided_upon_once():
    with pytest.raises(fc.ScenarioError, match=r"Twice\.on_departure: expected one of on_arrival "):

        class Twice(Five):
            name = "twice"

            def on_arrival(self, x, seen):
                return seen.elapsed + 0.0 * x

            def on_departure(self, x, seen):
                return seen.elapsed + 0.0 * x

        register(Twice)


def test_windows_in_acknowledgements_cannot_be_decided_as_data_leaves():
    net = fc.replace(fc.load("govindaswamy2012/ared_rwm"), {"links.ingress.queue": "codel"})
    with pytest.raises(Exception, match="codel decides as data packets leave the queue, receiver"):
        fc.simulate_packets(net, until=1.0)
