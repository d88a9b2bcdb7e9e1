"""Cycles of BMCC around full load against a closed recursion and against trajectories."""

import importlib
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import BMCC, LoadFactor, OncePerRTT
from fluidcc.laws import LoadFactorFeedback as LoadFeedback
from fluidcc.scenario.network import FlowsInitial

C, T, T_P = 5000.0, 0.04, 0.2
BELOW = math.nextafter(1.0, 0.0)


VALIDATION = Path(__file__).parents[2] / "validation"


@pytest.fixture
def oracle(monkeypatch):
    monkeypatch.syspath_prepend(str(VALIDATION))
    return importlib.import_module("load_cycle")


def bmcc(n=20.0, *, hop=None, queue=None, window=None):
    link = fc.Link(LoadFactor() if queue is None else queue, capacity=C)
    flows = fc.Flows(
        BMCC() if window is None else window, n=np.array([n]), rtt=np.array([T]),
        feedback=LoadFeedback(), reaction=OncePerRTT(), access_delay=hop,
        initial=FlowsInitial(window=0.15 * C * T / n),
    )  # fmt: skip
    return fc.Network((link,), (flows,))


def recursion(n, gamma, turns):
    """Times of first decreases and windows after them, without any queue, sources at the link.

    Rates rise by 1/t_p^2 per second while the load known is below 1. It is the mean rate of a
    period, heard T after its end; senders decrease at the ends of periods, by eqs 5 and 6.
    """
    rate, old, new, falling = gamma * C / n, BELOW, BELOW, False
    time, found = 0.0, []
    while len(found) < turns:
        time += T_P
        middle = rate + (old < 1) * T / T_P**2
        last = middle + (new < 1) * (T_P - T) / T_P**2
        sent = 0.5 * (rate + middle) * T + 0.5 * (middle + last) * (T_P - T)
        kept = 1.0 if new < 1 else 0.875 - 0.225 * (new - 1) / 0.2
        if kept < 1 and not falling:
            found.append((time, kept * last * T))
        falling, rate = kept < 1, kept * last
        old, new = new, n * sent / (gamma * C * T_P)
    return np.array(found)


@pytest.mark.parametrize(("n", "gamma"), [(3.0, 0.9), (8.0, 0.9)])
def test_without_a_queue_turns_have_a_closed_recursion(oracle, n, gamma):
    """Below the capacity all is linear between events: every turn is right to round-off."""
    net = oracle.as_one_class(bmcc(n, queue=LoadFactor(gamma=gamma)))
    loop, found = oracle.begin(net, jnp.asarray(gamma * C * T / n)), []
    for _ in range(5):
        loop, turn = oracle.next_turn(net, loop)
        found.append((float(loop.time), float(loop.window)))
    assert int(turn.decreases) == 2
    np.testing.assert_allclose(found, recursion(n, gamma, 5), rtol=1e-10)


def test_trajectories_go_round_in_this_cycle(oracle):
    """60 flows, with a queue in each turn; the way to the cycle still shows by up to 1 %.

    The queue, what n W is above the pipe, is compared to half a percent of n W.
    """
    net = bmcc(60.0, hop=0.017)
    cycle = oracle.load_cycle(net)
    run = fc.simulate(net, until=9.0, points=np.arange(0.0, 9.0, 0.001))
    windows = fc.oscillation(run.time, run.flows["flows"].window[:, 0], after=4.5)
    queue = fc.oscillation(run.time, run.links["bottleneck"].queue, after=4.5)
    used = run.links["bottleneck"].utilization[run.time > 4.5].mean()
    assert windows.period == pytest.approx(cycle.period, rel=0.02)
    assert (windows.lowest, windows.highest) == pytest.approx(cycle.window, rel=0.01)
    assert queue.highest == pytest.approx(cycle.queue[1], abs=0.005 * 60 * cycle.window[1])
    assert used == pytest.approx(cycle.utilization, abs=0.01)


def test_a_decrease_per_round_trip_goes_deeper(oracle):
    """Eq. 5 by the letter: five decreases in a period instead of one."""
    often, once = (oracle.load_cycle(bmcc(window=BMCC(md=md))) for md in ("per_rtt", "per_tp"))
    assert often.window[0] < 0.8 * once.window[0] and often.utilization < once.utilization
    assert often.window[1] == pytest.approx(once.window[1], rel=0.03)


@pytest.mark.slow
def test_the_cycle_of_the_paper_s_router(oracle):
    """Two flows at 40 ms: twice the return time of one decrease, for two come in a row. 20 s."""
    net = fc.load("qazi2010/two_bmcc_router")
    found, exact = fc.cycle(net), oracle.load_cycle(net)
    assert exact.period == pytest.approx(24.2, rel=1e-9) and exact.decreases == (2, 2)
    assert found.status == "simulated" and found.period == pytest.approx(exact.period, rel=1e-5)
    assert found.flows["bmcc"].window[0] == pytest.approx(exact.window, rel=1e-4)
    assert found.links["bottleneck"].queue == pytest.approx(exact.queue, abs=1e-3)
