"""Switching cycles under step marking against their closed forms and against trajectories."""

import importlib
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc import Flows, Link, Network, laws, relay_cycle
from fluidcc.laws import BMCC, LoadFactor, OncePerRTT
from fluidcc.laws import LoadFactorFeedback as LoadFeedback
from fluidcc.scenario.network import FlowsInitial, LinkInitial

C, N, T, STEP = 1000.0, 50.0, 0.1, 100.0
K = C / N
CROSSING = (C * T + STEP) / N
TAU = {"tail": T + STEP / C, "front": T}
FEEDBACK = {"tail": laws.MarkTail(), "front": laws.MarkFront()}


def relay(window=None, *, feedback=None, reaction=None, at=STEP, n=(N,), rtt=(T,), queue=None,
          buffer=math.inf, window0=CROSSING):  # fmt: skip
    link = Link(
        laws.Threshold(at=at) if queue is None else queue, capacity=C, buffer=buffer,
        initial=LinkInitial(queue=at),
    )  # fmt: skip
    flows = Flows(
        laws.ECNMod() if window is None else window, n=np.array(n), rtt=np.array(rtt),
        reaction=laws.PerMark() if reaction is None else reaction,
        feedback=laws.MarkTail() if feedback is None else feedback,
        initial=FlowsInitial(window=window0),
    )  # fmt: skip
    return Network((link,), (flows,), rates="self_clocked", delay="fifo")


@pytest.mark.parametrize("where", ["tail", "front"])
def test_linear_laws_have_logarithms(where):
    """alpha = 0, beta = 1: straight up, exponentially down."""
    tau, c1, c2 = TAU[where], 0.0625, 0.125
    cycle = relay_cycle(relay(feedback=FEEDBACK[where]))
    top, low = CROSSING + K * c1 * tau, CROSSING * math.exp(-K * c2 * tau)
    period = 2 * tau + math.log(top / CROSSING) / (K * c2) + (CROSSING - low) / (K * c1)
    assert cycle.delay == pytest.approx(tau, rel=1e-14)
    np.testing.assert_allclose(cycle.window, (low, top), rtol=1e-11)
    np.testing.assert_allclose(cycle.queue, (N * low - C * T, N * top - C * T), rtol=1e-10)
    assert cycle.period == pytest.approx(period, rel=1e-11)
    assert cycle.valid and cycle.exact and cycle.message == ""


@pytest.mark.parametrize("where", ["tail", "front"])
def test_tcp_with_a_halving_per_mark(where):
    tau = TAU[where]
    cycle = relay_cycle(relay(laws.Reno(), feedback=FEEDBACK[where], at=300.0))
    tau = T + 0.3 if where == "tail" else T
    crossing = (C * T + 300.0) / N
    top, low = math.sqrt(crossing**2 + 2 * K * tau), crossing * math.exp(-K * tau / 2)
    np.testing.assert_allclose(cycle.window, (low, top), rtol=1e-11)
    rising = (crossing**2 - low**2) / (2 * K)
    assert cycle.period == pytest.approx(2 * tau + 2 / K * math.log(top / crossing) + rising)
    assert cycle.valid == (N * low > C * T)


@pytest.mark.parametrize("where", ["tail", "front"])
def test_tcp_with_one_halving_per_episode(where):
    cycle = relay_cycle(
        relay(laws.Reno(), reaction=laws.OncePerRTT(), feedback=FEEDBACK[where]), one_reaction=True
    )
    top = math.sqrt(CROSSING**2 + 2 * K * TAU[where])
    np.testing.assert_allclose(cycle.window, (top / 2, top), rtol=1e-11)
    assert cycle.period == pytest.approx((top**2 - (top / 2) ** 2) / (2 * K), rel=1e-10)


@pytest.mark.parametrize(
    ("feedback", "least"),
    [(laws.MarkTail(), 9.02498), (laws.MarkFront(), 9.49359)],
    ids=["tail", "front"],
)
def test_least_threshold_of_full_use(feedback, least):
    """Result 3 of Durresi et al. (2001): one flow, C T = 10; the queue just does not run empty."""
    net = relay(
        laws.Reno(), reaction=laws.OncePerRTT(), feedback=feedback, n=(1.0,), rtt=(0.01,), at=least
    )
    assert relay_cycle(net, one_reaction=True).queue[0] == pytest.approx(0.0, abs=1e-5)


def test_growth_on_clean_acks_alone_waits_for_the_marks_to_cease():
    """No growth for the delay in which marks still come: the period is longer by just that."""
    every = relay_cycle(relay(laws.Reno(), reaction=laws.OncePerRTT()), one_reaction=True)
    clean = relay_cycle(
        relay(laws.Reno(), reaction=laws.OncePerRTT(growth="clean")), one_reaction=True
    )
    assert clean.window == every.window
    assert clean.period == pytest.approx(every.period + TAU["tail"], rel=1e-10)


@pytest.mark.parametrize(
    ("net", "word"),
    [(relay(at=20.0, n=(10.0,)), "empty"), (relay(buffer=101.0), "buffer")],
    ids=["empty", "full"],
)
def test_where_the_formulas_end(net, word):
    cycle = relay_cycle(net)
    assert not cycle.valid and word in cycle.message and word in repr(cycle)


@pytest.mark.parametrize(
    ("net", "options", "message"),
    [
        (relay(n=(10.0, 10.0), rtt=(0.1, 0.2)), {}, "one class"),
        (relay(queue=laws.Threshold(at=50.0, width=40.0)), {}, "step of the marking"),
        (relay(queue=laws.RED(min_th=5.0, max_th=10.0, p_max=0.001)), {}, "step of the marking"),
        (relay(feedback=laws.Backward()), {}, "marks on ACKs"),
        (relay(), {"one_reaction": True}, "more than one mark"),
    ],
)
def test_what_is_no_relay_says_why(net, options, message):
    with pytest.raises(ValueError, match=message):
        relay_cycle(net, **options)


# -- Cycles of BMCC around full load against a closed recursion and against trajectories
RATE, TRIP, T_P = 5000.0, 0.04, 0.2
BELOW = math.nextafter(1.0, 0.0)


VALIDATION = Path(__file__).parents[2] / "validation"


@pytest.fixture
def oracle(monkeypatch):
    monkeypatch.syspath_prepend(str(VALIDATION))
    return importlib.import_module("load_cycle")


def bmcc(n=20.0, *, hop=None, queue=None, window=None):
    link = fc.Link(LoadFactor() if queue is None else queue, capacity=RATE)
    flows = fc.Flows(
        BMCC() if window is None else window, n=np.array([n]), rtt=np.array([TRIP]),
        feedback=LoadFeedback(), reaction=OncePerRTT(), access_delay=hop,
        initial=FlowsInitial(window=0.15 * RATE * TRIP / n),
    )  # fmt: skip
    return fc.Network((link,), (flows,))


def recursion(n, gamma, turns):
    """Times of first decreases and windows after them, without any queue, sources at the link.

    Rates rise by 1/t_p^2 per second while the load known is below 1. It is the mean rate of a
    period, heard TRIP after its end; senders decrease at the ends of periods, by eqs 5 and 6.
    """
    rate, old, new, falling = gamma * RATE / n, BELOW, BELOW, False
    time, found = 0.0, []
    while len(found) < turns:
        time += T_P
        middle = rate + (old < 1) * TRIP / T_P**2
        last = middle + (new < 1) * (T_P - TRIP) / T_P**2
        sent = 0.5 * (rate + middle) * TRIP + 0.5 * (middle + last) * (T_P - TRIP)
        kept = 1.0 if new < 1 else 0.875 - 0.225 * (new - 1) / 0.2
        if kept < 1 and not falling:
            found.append((time, kept * last * TRIP))
        falling, rate = kept < 1, kept * last
        old, new = new, n * sent / (gamma * RATE * T_P)
    return np.array(found)


@pytest.mark.parametrize(("n", "gamma"), [(3.0, 0.9), (8.0, 0.9)])
def test_without_a_queue_turns_have_a_closed_recursion(oracle, n, gamma):
    """Below the capacity all is linear between events: every turn is right to round-off."""
    net = oracle.as_one_class(bmcc(n, queue=LoadFactor(gamma=gamma)))
    loop, found = oracle.begin(net, jnp.asarray(gamma * RATE * TRIP / n)), []
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
