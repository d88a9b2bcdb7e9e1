"""The adaptive virtual queue packet by packet, against the published algorithm and the mean."""

import csv
import dataclasses
import importlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_cases import dumbbell, flows, within

import fluidcc as fc
from fluidcc.laws import AVQ, Arrival, ECNMod, EqualWindow, MarkFront, PerMark, ReceiverWindow
from fluidcc.packets.plan import PacketError

Virtual = AVQ().in_packets(1.0).state_of

VALIDATION = Path(__file__).parents[2] / "validation"
CAPACITY = 1250.0  # packet/s


def published(
    arrivals: Iterable[tuple[float, float]], law: AVQ, buffer: float
) -> Iterator[tuple[bool, float]]:
    """Kunniyur and Srikant (2001), Fig. 1: whether each packet is marked, and the rate after it.

    `arrivals` are times [s] and sizes [mean packets].
    """
    queue, rate, before = 0.0, CAPACITY, 0.0
    for time, size in arrivals:
        queue = max(queue - rate * (time - before), 0.0)
        marked = queue + size > buffer
        if not marked:
            queue += size
        rate = min(rate + law.alpha * law.gamma * CAPACITY * (time - before), CAPACITY)
        rate = max(rate - law.alpha * size, 0.0)
        before = time
        yield marked, rate


def by_rules(law: AVQ, gaps: Iterable[float], sizes: Iterable[float], first):
    """Memory of the law after each packet."""
    x = first
    for gap, size in zip(gaps, sizes, strict=True):
        change = law.on_arrival(x, Arrival(1.0, gap, 0.0, CAPACITY, size))
        x = Virtual(*(old + new for old, new in zip(x, change, strict=True)))
        yield x


@settings(max_examples=10, deadline=None)
@given(
    alpha=st.floats(0.05, 50.0), gamma=st.floats(0.5, 1.0), buffer=st.floats(1.0, 20.0),
    load=st.floats(0.5, 2.0), seed=st.integers(0, 1000),
)  # fmt: skip
def test_the_rules_are_the_published_algorithm(alpha, gamma, buffer, load, seed):
    rng = np.random.default_rng(seed)
    gaps, sizes = rng.exponential(1 / (load * CAPACITY), 200), rng.uniform(0.05, 1.5, 200)
    mean = AVQ(alpha=alpha, gamma=gamma)
    law = mean.in_packets(buffer)
    memories = by_rules(law, gaps, sizes, law.start(0.0))
    expected = published(zip(np.cumsum(gaps), sizes, strict=True), mean, buffer)
    for x, (marked, rate) in zip(memories, expected, strict=True):
        assert float(law.signal(x, Arrival(1.0, 0.0, 0.0, CAPACITY)).mark) == marked
        assert float(x.c) == pytest.approx(rate / CAPACITY, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("buffer", [2.0, 2.5, 100.0])
@pytest.mark.parametrize(("share", "load"), [(0.6, 0.9), (0.95, 0.98), (0.7, 1.6)])
def test_marks_of_a_virtual_link_of_constant_rate_are_those_of_the_mean(share, load, buffer):
    """A full virtual queue loses what is above its rate, with room for two packets or more."""
    still = AVQ(alpha=1e-300, buffer=buffer)
    law, gap, count = still.in_packets(math.inf), 1 / (load * CAPACITY), 1500
    first = Virtual(share, buffer, 0.0)
    marks = sum(x.lost for x in by_rules(law, [gap] * count, [1.0] * count, first))
    mean = float(still.signal(share, Arrival(1.0, gap, 0.0, CAPACITY)).mark)
    assert mean == pytest.approx(1 - share / load, rel=1e-12)
    assert abs(marks - count * mean) <= 2  # no more than the virtual queue holds besides


@pytest.mark.parametrize("load", [0.9, 1.6])
@pytest.mark.parametrize("count", [4, 64])
def test_packets_that_come_together_are_marked_by_the_share_without_room(load, count):
    """As one after the other, up to a packet that does not fit as a whole."""
    law, gap = AVQ(alpha=1e-300).in_packets(500.0), 1 / (load * CAPACITY)
    first = Virtual(0.7, 495.0, 0.0)
    singly = list(by_rules(law, [gap] * count, [1.0] * count, first))
    change = law.on_arrival(first, Arrival(count, count * gap, 0.0, CAPACITY))
    together = Virtual(*(old + new for old, new in zip(first, change, strict=True)))
    assert abs(together.lost * count - sum(x.lost for x in singly)) <= 1
    assert abs(together.queued - singly[-1].queued) <= 1


def test_the_engine_is_the_published_algorithm(tmp_path):
    """Every packet of a run that came to the link, by its time, size and fate."""
    law = AVQ(alpha=2.0)  # the rate moves by a tenth
    net = dumbbell(flows(6), law, buffer=25.0, cross=200.0, cross_sizes="exponential")
    path = tmp_path / "trace.csv"
    fc.simulate_packets(net, until=20.0, seeds=(3,), trace=path)
    with path.open() as file:
        lines = [row for row in csv.DictReader(file) if row["event"] in ("enter", "drop")]
    arrivals = [(float(row["time (s)"]), float(row["size (B)"]) / 1000.0) for row in lines]
    fates = [marked for marked, _ in published(arrivals, law, 25.0)]
    markable = ["ect" in row["flags"] for row in lines]
    told = ["ce" in row["flags"].split("+") or row["event"] == "drop" for row in lines]
    assert sum(fates) > 300 and not all(markable)
    kept = [f for f, row in zip(fates, lines, strict=True) if row["event"] == "enter"]
    marked = ["ce" in row["flags"].split("+") for row in lines if row["event"] == "enter"]
    assert marked == kept
    assert all(t for t, m in zip(told, fates, strict=True) if m)


def test_the_scenario_beside_its_rest():
    """gamma of the link, whatever the senders do; the marks of the fluid model where windows grow
    on echoes, as they do there, and else half of them.
    """
    net = fc.load("kunniyur2001/avq")
    rest = fc.equilibrium(net).links["bottleneck"]
    assert rest.utilization == pytest.approx(0.98, rel=1e-9)
    for grow, least, most in ((False, 0.45, 0.6), (True, 0.97, 1.03)):
        group = dataclasses.replace(net.flows[0], sender=(("grow_on_echo", grow),))
        runs = fc.simulate_packets(
            dataclasses.replace(net, flows=(group,)), until=200.0, warmup=50.0, seeds=(1, 2, 3, 4)
        )
        assert within(runs, "utilization", rest.utilization)
        assert runs.ci95["links"]["bottleneck"]["utilization"] < 1e-3
        marks, half = (r["links"]["bottleneck"]["mark_fraction"] for r in (runs.mean, runs.ci95))
        assert (
            least < (marks - half) / rest.mark_probability
            and (marks + half) / rest.mark_probability < most
        )


def test_flows_with_small_steps_are_marked_as_at_rest(monkeypatch):
    """1/(1 + w) with an empty queue; windows are half a packet more than flights, and larger where
    marks are, by which the fluid model is off.
    """
    monkeypatch.syspath_prepend(str(VALIDATION))
    beside = importlib.import_module("fluid_beside_packets")
    window = ECNMod(c1=0.0625, c2=0.0625)
    net = beside.network(AVQ(buffer=20.0), window=window, reaction=PerMark())
    runs = fc.simulate_packets(net, until=120.0, warmup=60.0, seeds=(1, 2))
    flight = 0.98 * beside.PER_FLOW * beside.TRIP
    seen = (flight + 0.5) * (1 + window.c2 / 2)
    found = runs.mean["links"]["bottleneck"]
    assert found["mark_fraction"] == pytest.approx(1 / (1 + seen), rel=0.02)
    assert found["utilization"] == pytest.approx(0.98, abs=5e-4)
    assert found["number_in_system_mean"] < 3.0


@pytest.mark.parametrize(
    ("changes", "link", "words"),
    [
        ({"feedback": MarkFront()}, {}, "feedback: avq judges data packets as they enter .*leaves"),
        ({"feedback": ReceiverWindow()}, {}, "feedback: avq judges .* receiver_window decides as"),
        (
            {"window": ECNMod(), "reaction": PerMark(), "marking": EqualWindow()}, {},
            "marking: avq decides for each packet whether it is marked, equal_window needs a prob",
        ),
        ({}, {"buffer": math.inf}, "queue: avq marks what a virtual queue has no room for; give"),
    ],
)  # fmt: skip
def test_what_a_virtual_queue_cannot_say_is_refused(changes, link, words):
    with pytest.raises(PacketError, match=words):
        fc.simulate_packets(dumbbell(flows(2, **changes), AVQ(), **link), until=1.0)
