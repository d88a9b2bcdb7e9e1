"""HyStart++ (RFC 9406): thresholds, rounds beside those of sequence numbers, packets lost."""

import math

import pytest

import fluidcc as fc
from fluidcc.laws import CUBIC, Ack

LAW = CUBIC(hystart=True)


def acked(s, *round_trips):
    """The state after ACKs, of which the first one with each new round trip begins a round."""
    before = None
    for rtt in round_trips:
        ack = Ack(1.0, rtt if rtt != before else 1e-6, rtt)
        s = type(s)(*(a + b for a, b in zip(s, LAW.observe(s, ack), strict=True)))
        before = rtt
    return s


def is_slow(s):
    """Whether slow start is conservative: no usual one, and a quarter of a packet for an ACK."""
    grown = LAW.on_ack(s, Ack(1.0, 0.01, 0.1)).window
    return float(LAW.slow_start(s)) == 0 and grown == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("rtt", "threshold"), [(0.02, 0.004), (0.064, 0.008), (0.1, 0.0125), (0.3, 0.016)]
)
def test_slow_start_is_conservative_beyond_the_threshold(rtt, threshold):
    begun = acked(LAW.start(10.0), *[rtt] * 8)
    assert not is_slow(acked(begun, *[rtt + 0.9 * threshold] * 20))
    later = [rtt + 1.1 * threshold] * 8
    assert not is_slow(acked(begun, *later[:7]))
    assert is_slow(acked(begun, *later))


def test_after_five_rounds_the_window_grows_by_the_law():
    s = acked(LAW.start(10.0), *[0.1] * 8, *[0.12] * 8)
    for k in range(5):
        assert is_slow(s)
        s = acked(s, *[0.13 + 0.01 * k] * 8)
    assert float(LAW.slow_start(s)) == 0 and not is_slow(s)
    assert acked(s, 0.05, *[0.09] * 8) == s


def test_a_shorter_round_trip_resumes_slow_start():
    s = acked(LAW.start(10.0), *[0.1] * 8, *[0.12] * 8)
    assert is_slow(acked(s, *[0.125] * 8))
    assert float(LAW.slow_start(acked(s, *[0.119] * 8))) == 1


@pytest.mark.parametrize("rule", [LAW.on_mark, LAW.on_loss])
def test_a_signal_ends_it_for_good(rule):
    s = acked(LAW.start(10.0), *[0.1] * 8, *[0.12] * 8)
    s = type(s)(*(a + b for a, b in zip(s, rule(s, Ack(1.0, 0.0, 0.12)), strict=True)))
    assert float(LAW.slow_start(s)) == 1 and acked(s, *[0.1] * 8, *[0.2] * 8) == s


def reference(events):
    """Times at which slow start becomes conservative and ends: section 4.2, by sequence numbers."""
    sent, following, end, found = {}, 0, None, []
    last = shortest = longer = math.inf
    samples = rounds = 0
    for time, event, sequence in events:
        if event == "send":
            sent[sequence], following = time, max(following, sequence + 1)
            end = following if end is None else end
            continue
        rtt = time - sent[sequence]
        shortest, samples = min(shortest, rtt), samples + 1
        threshold = max(0.004, min(last / 8, 0.016))
        if not rounds and samples >= 8 and last < math.inf and shortest >= last + threshold:
            rounds, longer = 1, shortest
            found.append(time)
        elif rounds and samples >= 8 and shortest < longer:
            rounds = 0
        if sequence + 1 >= end:
            rounds += rounds > 0
            if rounds > 5:
                return [*found, time]
            last, shortest, samples, end = shortest, math.inf, 0, following
    return found


def test_rounds_in_time_are_those_by_sequence_numbers(tmp_path):
    net = fc.replace(fc.load("rfc9406/droptail"), {"link.buffer": 20_000})
    fc.simulate_packets(net, until=2.0, seeds=[1], trace=tmp_path / "trace.csv")
    trace = fc.read_trace(tmp_path / "trace.csv")
    rows = trace[trace.event.isin(["send", "ack"])]
    events = zip(rows.time, rows.event, rows.sequence.astype(int), strict=True)
    begins, ends = reference(events)
    windows = trace[trace.event == "window"]
    grown = windows.window.diff()
    slow = windows.time[(grown > 0.24) & (grown < 0.26)]
    spacing = 1 / 5000  # s, of ACKs
    assert slow.min() == pytest.approx(begins, abs=3 * spacing)
    assert slow.max() == pytest.approx(ends, abs=5 * spacing)


@pytest.mark.parametrize("run", [fc.simulate_packets, fc.simulate_trains])
def test_fewer_packets_are_lost_as_a_flow_begins(run):
    net = fc.load("rfc9406/droptail")
    lost = [
        run(fc.replace(net, {"flow.window.hystart": on}), until=4.0, seeds=[1])
        .to_dict()["mean"]["links"]["bottleneck"]["drops"]
        for on in (True, False)
    ]  # fmt: skip
    assert 0 < lost[0] < lost[1] / 4
