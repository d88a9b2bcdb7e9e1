"""Ticks of queue laws in packet runs, where the queue stands still and the outcome is known."""

import ctypes
import itertools

import numpy as np
import pytest
from packet_cases import dumbbell, finished, flows

from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.rem import REM
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.engine import records as r
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import LinkInitial, Start

WINDOW, ON_THE_WAY = 60.0, 20.0
WAITING = WINDOW - ON_THE_WAY - 1  # and one in service
SETTLED = 5.0  # s


def still(queue, **changes):
    """One flow whose window nothing changes: 20 packets under way, the others in the queue."""
    group = flows(
        1, window=NewReno(max_window=WINDOW, min_window=WINDOW), rtt=np.array([ON_THE_WAY / 1250]),
        start=Start(), access_delay=0.001, feedback=MarkTail(), access_capacity=float("inf"),
    )  # fmt: skip
    return dumbbell(group, queue, delay=0.001, buffer=float("inf"), **changes)


def memory(net, until, *, count, seed=1):
    """Numbers that the first link's law remembers at a time."""
    simulation = finished(net, until, seed=seed)
    block = int(simulation.ports["block"][0]) + 8 * r.Q_STATE
    return np.array((ctypes.c_double * count).from_address(block))


def test_pi_adds_its_error_at_every_sample():
    law = PI(q_ref=9.0, interval=0.01, k_pi=1e-4)
    (first, before), (second, _) = (memory(still(law), t, count=2) for t in (SETTLED, 25.005))
    assert before == pytest.approx(WAITING, abs=1.0)
    # with equal queues each sample adds K_PI x interval x error
    samples = round((25.0 - SETTLED) / 0.01)
    expected = samples * 1e-4 * 0.01 * (WAITING - 9.0)
    assert second - first == pytest.approx(expected, rel=0.02)
    marks = simulate_packets(still(law), until=25.0, warmup=SETTLED).runs[0]["links"]["bottleneck"]
    mean = (first + second) / 2
    spread = np.sqrt(mean / marks["arrivals"])
    assert abs(marks["mark_fraction"] - mean) < 4 * spread


def test_rem_moves_its_price_by_the_backlog():
    law = REM(q_ref=9.0, interval=0.05)
    (first, _), (second, _) = (memory(still(law), t, count=2) for t in (SETTLED, 25.01))
    assert second - first == pytest.approx(400 * 0.001 * 0.1 * (WAITING - 9.0), rel=0.02)


def _steps(p, up):
    """p_max of adaptive RED over its steps, by the paper's figure."""
    while True:
        yield p
        if up:
            p += min(0.01, p / 4) if p < 0.5 else 0.0
        else:
            p *= 0.9 if p > 0.01 else 1.0


@pytest.mark.parametrize(("start", "up"), [(0.02, True), (0.4, False), (0.495, True)])
def test_adaptive_red_steps_every_interval(start, up):
    low, high = (10.0, 50.0) if up else (30.0, 70.0)
    law = AdaptiveRED(min_th=low, max_th=high, p_max=start, w_q=0.5, interval=0.5)
    queue = LinkInitial(average=WAITING)
    average, p_max = memory(still(law, initial=queue), 20.25, count=2)
    assert average == pytest.approx(WAITING, abs=1.0)
    ticks = 40  # the first may see the queue before it has filled
    near = list(itertools.islice(_steps(start, up), ticks - 1, ticks + 1))
    assert min(abs(p_max - p) for p in near) < 1e-12


def test_blue_steps_once_per_freeze_time_while_the_queue_is_long():
    law = BLUE(threshold=30.0, freeze_time=0.25, increase=0.001, decrease=0.001)
    (first,), (second,) = (memory(still(law), t, count=1) for t in (SETTLED, 25.0))
    assert second - first == pytest.approx(80 * 0.001, abs=0.0011)


def test_random_freeze_times_have_their_mean():
    law = BLUE(
        threshold=30.0, freeze_time=0.05, increase=0.0002, decrease=0.0002, random_freeze=True
    )
    steps = [memory(still(law), 50.0, count=1, seed=s)[0] / 0.0002 for s in range(1, 7)]
    # renewals of mean F and variance F^2/3: 1000 +- sqrt(1000/3)
    assert np.mean(steps) == pytest.approx(1000.0, abs=3 * np.sqrt(1000 / 3 / 6) + 2)
    assert np.std(steps, ddof=1) > 4.0
