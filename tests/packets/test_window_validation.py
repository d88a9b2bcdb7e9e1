"""Congestion window validation against RFC 2861, section 3: by hand, and line by line of traces."""

import csv

import pytest
from packet_cases import known_marks, listed

import fluidcc as fc
from fluidcc.laws import File, Loss, NewReno

RTO, RTT = 0.45, 0.1


def one_flow(sender, *, modified=0.0, traffic='"bulk"', validation=True):
    """One Reno flow that never fills its link, whose ACKs are modified with a known probability."""
    return fc.loads(f"""
        [links.router]
        capacity    = 1e6
        packet_size = "1000 B"
        delay       = "10 ms"
        buffer      = 1e6
        initial     = {{ average = {5 + 10 * modified} }}

        [links.router.queue]
        law       = "red"
        min_th    = 5
        max_th    = 15
        p_max     = 1
        w_q       = 1e-13  # the average stands still
        spreading = "geometric"

        [flows.tcp]
        n        = 1
        rtt      = {RTT}
        window   = {{ law = "reno", max_window = 40 }}
        feedback = "receiver_window"
        traffic  = {traffic}

        [flows.tcp.sender]
        window_validation = {str(validation).lower()}
        choice_arms       = false
        min_rto           = {RTO}
        initial_rto       = {RTO}
        {sender}
    """)


def traced(net, until, path):
    """Lines of what happens to the sender."""
    fc.simulate_packets(net, until=until, trace=path / "lines.csv")
    with (path / "lines.csv").open(newline="") as file:
        own = [
            x for x in csv.DictReader(file) if x["event"] in ("send", "ack", "window", "timeout")
        ]
    return own


def windows(lines):
    """Times, windows and thresholds after each change."""
    told = [x for x in lines if x["event"] == "window"]
    return [tuple(float(x[key]) for key in ("time (s)", "window", "threshold")) for x in told]


def replayed(lines, window, threshold):
    """Windows and thresholds as RFC 2861 has them after each ACK and burst of an unlimited sender.

    Nothing is lost: what the lines tell of packets alone gives the flight, and what may be sent.
    """
    limit = permitted = 40.0
    acked, out, used, filled, last, first = -1, 0, 0, 0.0, 0.0, True
    for line in lines:
        now, event = float(line["time (s)"]), line["event"]
        if event == "ack":
            held = out < int(window) and out >= int(permitted)  # by ACKs before
            permitted = 1.0 if "ce" in line["flags"].split("+") else limit
            if not held and permitted >= int(window):
                window = min(window + (1.0 if window < threshold else 1 / window), limit)
            out -= int(line["sequence"]) - acked
            acked = int(line["sequence"])
        elif event == "send":
            if now - last >= RTO:
                threshold = max(threshold, 0.75 * window)
                for _ in range(int((now - last) / RTO)):
                    window = max(window / 2, 1.0)
                used, filled = 0, now
            last, out = now, out + 1
            if out >= int(window):
                used, filled = 0, now
            elif out >= int(permitted):
                used = max(used, out)
                if now - filled >= RTO:
                    threshold = max(threshold, 0.75 * window)
                    window, used, filled = (window + used) / 2, 0, now
        else:
            assert event == "window"  # no timeout
            assert (window, threshold) == pytest.approx(
                (float(line["window"]), float(line["threshold"])), rel=1e-12
            )
            first = False
    assert not first


@pytest.mark.parametrize(
    ("modified", "overhead", "changes"),
    [(0.0, 0.0, 30), (0.3, 0.0, 30), (0.9, 0.0, 100), (0.3, 4.0, 100)],
)
def test_windows_are_those_of_the_rfc(modified, overhead, changes, tmp_path):
    """Growth and decay where ACKs are modified, where sends wait for long, and where both."""
    sender = f"syn = false\ninitial_window = 16\ninitial_ssthresh = 24\noverhead = {overhead}"
    lines = traced(one_flow(sender, modified=modified), 200.0, tmp_path)
    assert sum(line["event"] == "window" for line in lines) >= changes
    replayed(lines, 16.0, 24.0)


def test_a_window_that_the_receiver_holds_back_decays(tmp_path):
    """All ACKs permit one packet: halfway to it after each timeout, and slow start from there."""
    sender = "syn = false\ninitial_window = 16\ninitial_ssthresh = 5"
    changes = windows(traced(one_flow(sender, modified=1.0), 3.3, tmp_path))
    known = [8.5, 4.75, 2.875, 1.9375, 2.9375, 1.96875, 2.96875]  # one packet fills 1.9375
    assert [window for _, window, _ in changes[1:8]] == known
    assert [time for time, _, _ in changes[1:8]] == pytest.approx(
        [0.5, 1.0, 1.5, 2.0, 2.1, 2.5, 2.6], abs=1e-3
    )
    assert {threshold for _, _, threshold in changes[1:8]} == {12.0}


def test_a_window_that_data_do_not_fill_decays(tmp_path):
    """A transfer of 20 packets, six of them lost, of which each round trip repairs one.

    The loss halves the window to 15, which 16 packets fill at 0.2 s for the last time. At 0.6 s,
    a timeout later, 14 packets were the most since then.
    """
    sender = {"syn": False, "initial_window": 30.0, "min_rto": 0.35, "initial_rto": 0.35}
    sender |= {"partial_timer_once": False, "window_validation": True}
    net = known_marks(
        listed(drops=range(2, 14, 2)), NewReno(), feedback=Loss(), traffic=File(file=20.0),
        sender=tuple(sender.items()),
    )  # fmt: skip
    time, window, threshold = windows(traced(net, 3.0, tmp_path))[-1]
    assert (window, threshold) == (14.5, 15.0)
    assert time == pytest.approx(0.6, abs=1e-2)


def changed(scenario, **options):
    """A scenario of the RWM paper with other options of its senders."""
    net = fc.load(f"govindaswamy2012/{scenario}")
    return fc.replace(net, {f"flows.tcp.sender.{name}": v for name, v in options.items()})


@pytest.mark.parametrize("recovery", ["reno", "newreno", "sack"])
@pytest.mark.parametrize("scenario", ["red", "red_ecn"])
def test_a_sender_that_fills_its_window_does_not_notice(scenario, recovery):
    """Neither losses, timeouts and marks nor a short pause before sends leave a window unused."""
    runs = [
        fc.simulate_packets(
            changed(scenario, recovery=recovery, overhead=0.001, **given), until=99.0
        )
        for given in ({}, {"window_validation": True})
    ]
    assert runs[0].runs == runs[1].runs
