"""Switching cycles under step marking against their closed forms and against trajectories."""

import math

import numpy as np
import pytest

from fluidcc import Flows, Link, Network, laws
from fluidcc.bundled.validation.relay_cycle import relay_cycle
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
