"""Roots of every way back and of sampled laws against loops written down by hand."""

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import laws
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.check.verb import follow_mode

C = 1250.0
AHEAD = 0.002  # s, source to queue


def net(queue, *, n=10.0, rtt=0.088, capacity=C, rates="ack", window=None, **parts):
    group = fc.Flows(
        laws.Reno() if window is None else window, n=np.array([n]), rtt=np.array([rtt]), **parts
    )
    return fc.Network((fc.Link(queue, capacity=capacity, buffer=2e3),), (group,), rates=rates)


def red(w_q=0.002, p_max=0.1):
    return laws.RED(min_th=15.0, max_th=90.0, p_max=p_max, w_q=w_q)


def at_rest(eq):
    """Signal, queue, window and round trip of a network of one class."""
    link, group = eq.links["bottleneck"], eq.flows["flows"]
    return link.mark_probability, link.queue, group.window[0], group.rtt[0]


@pytest.mark.parametrize("reverse", [AHEAD, 0.015])
@pytest.mark.parametrize(
    "reaction", [laws.PerMark(growth="all"), laws.Pause()], ids=["original", "pause"]
)
def test_quenches_have_their_own_age(reaction, reverse):
    """Theory: growth by ACKs at age R, marks at b_r, counted at the rate of b_r + f."""
    system = net(
        red(w_q=1e-4), rtt=0.5, feedback=laws.Backward(), reaction=reaction, access_delay=AHEAD,
        reverse_delay=reverse,
    )  # fmt: skip
    eq = fc.equilibrium(system)
    p, _, W, R = at_rest(eq)
    assert pytest.approx(math.sqrt(2 / p), rel=1e-9) == W
    K, slope, phi = -C * math.log1p(-1e-4), 0.1 / 75, 1 / (1 + W * p)
    phi = 1.0 if isinstance(reaction, laws.PerMark) else phi
    rate = np.array([1 / R, -W / (R**2 * C), 0.0])  # dx by dW, dq, dv

    def rows(first, second=(0, 0, 0), third=(0, 0, 0)):
        return np.array([first, second, third], float)

    present = rows((-phi * 2 / (W * R), 0, 0), (0, 0, 0), (0, K, -K))
    delayed = {
        R: rows(phi * rate / W),
        reverse + AHEAD: rows(-phi * rate / W),
        reverse: rows((0, 0, -phi * W**2 / (2 * R) * slope)),
        AHEAD: rows((0, 0, 0), 10.0 * rate),
    }
    if reverse == AHEAD:
        delayed[AHEAD] = delayed[AHEAD] + rows((0, 0, -phi * W**2 / (2 * R) * slope))
    by_hand = Linear.retarded(present, list(delayed.values()), list(delayed))
    expected, found = rightmost_roots(by_hand), rightmost_roots(fc.linearize(system, eq))
    assert found.certified and found.unstable == expected.unstable
    np.testing.assert_allclose(found.values[:3], expected.values[:3], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("one_way", [0.04, 0.25])
def test_quenches_beside_marks_differ_by_one_field(one_way):
    """The shorter way back has the larger delay margin, the more the longer the path."""
    found = {
        name: fc.stability(
            net(
                red(w_q=2e-5), rtt=2 * (0.004 + one_way), feedback=feedback, access_delay=AHEAD,
                reaction=laws.PerMark(growth="all"),
            )
        )
        for name, feedback in (("becn", laws.Backward()), ("ecn", laws.MarkTail()))
    }  # fmt: skip
    quick, slow = found["becn"], found["ecn"]
    queues = [s.equilibrium.links["bottleneck"].queue for s in (quick, slow)]
    assert queues[0] == pytest.approx(queues[1], rel=1e-10)
    assert quick.certified and slow.certified
    assert quick.delay_margin - slow.delay_margin > one_way


def test_receiver_windows_act_on_the_flight():
    """L(s) = (N/R) |dE/dp| p' K e^{-s (f + b_r)}/((s + e^{-s f}/R)(s + K))."""
    system = net(
        red(p_max=1.0), rtt=0.2, window=laws.Reno(max_window=40.0), feedback=laws.ReceiverWindow(),
        reaction=laws.OncePerRTT(), access_delay=AHEAD, reverse_delay=0.01,
    )  # fmt: skip
    found = fc.stability(system)
    p, _, W, R = at_rest(found.equilibrium)
    assert W == 40.0
    fall = sum((k + 1) * p**k for k in range(39))  # E = w - (p + p^2 + ... + p^39)
    K, slope = -C * math.log1p(-0.002), 1 / 75
    for s in found.roots[:4]:
        pole = s + np.exp(-AHEAD * s) / R
        loop = 10 / R * fall * slope * K * np.exp(-0.012 * s) / (pole * (s + K))
        assert 1 + loop == pytest.approx(0, abs=1e-8)


def hollot_pi():
    return net(laws.PI(), n=60.0, rtt=0.2, capacity=3750.0, rates="mgt", reaction=laws.PerMark())


def test_sampled_integrators_take_change_per_period():
    """The loop of Misra, Gong and Towsley's linearisation and (A - E/(1 + sD))/(sD)."""
    found, law = fc.stability(hollot_pi()), laws.PI()
    A, E = law.weights
    D, N, capacity = law.interval, 60.0, 3750.0
    R = found.equilibrium.flows["flows"].rtt[0]
    assert found.certified and len(found.roots) > 3
    for s in found.roots[:4]:
        late = np.exp(-s * R)
        control = (A - E / (1 + s * D)) / (s * D)
        by_q = (1 - late) / (R**2 * capacity)
        by_p = R * capacity**2 / (2 * N**2) * late
        pole = s + N / (R**2 * capacity) * (1 + late)
        window = -(by_q + by_p * control) / pole  # per packet of queue
        flow = s + 1 / R
        assert (flow - N / R * window) / abs(flow) == pytest.approx(0, abs=1e-8)


def test_a_virtual_queue_marks_by_the_rate():
    """1 = a g' e^{-sT}/(s + a) (N/(T Y)) (1 - p + alpha/s), the queue empty at Y = gamma C."""
    found = fc.stability(net(laws.AVQ(gamma=0.98, alpha=0.15), n=60.0, capacity=3750.0, rtt=0.2))
    p, queue, W, T = at_rest(found.equilibrium)
    Y, a = 0.98 * 3750.0, p * W / T
    assert queue == 0 and T == 0.2 and found.certified
    for s in found.roots[:4]:
        loop = -a / (W * p**2) * np.exp(-s * T) / (s + a) * 60 / (T * Y) * (1 - p + 0.15 / s)
        assert 1 - loop == pytest.approx(0, abs=1e-7)


def test_what_is_adapted_as_far_as_it_can_is_no_state():
    """Adaptive RED at its smallest p_max has the roots of RED."""
    law = laws.AdaptiveRED(min_th=100.0, max_th=300.0, w_q=0.001)
    system = net(law, n=2.0, rtt=0.2, capacity=3750.0)
    eq = fc.equilibrium(system)
    p_max = float(eq.op.laws[0].p)
    plain = net(laws.RED(min_th=100.0, max_th=300.0, p_max=p_max, w_q=0.001), n=2.0, rtt=0.2,
                capacity=3750.0)  # fmt: skip
    found, expected = (
        rightmost_roots(fc.linearize(system, eq)),
        rightmost_roots(fc.linearize(plain)),
    )
    np.testing.assert_allclose(found.values[:3], expected.values[:3], rtol=1e-7)


# -- Trajectories that begin on the mode of a root stay on it
LINK = """
[links.b]
capacity = 1250
packet_size = 1000
buffer = 100
queue = { law = "avq" }

[flows.f]
n = 20
rtt = 0.08
access_delay = 0.001
window = { law = "reno", reaction = "once_per_rtt" }
"""
CASES = {
    "RED": lambda: fc.load("hollot2001/slow"),
    "RED, delays by queues on the way": lambda: fc.replace(
        fc.load("hollot2001/slow"), {"model.delay": "fifo"}
    ),
    "growing": lambda: fc.load("hollot2001/fast"),
    # Kunniyur and Srikant (2001), their link and gains
    "AVQ": lambda: fc.loads(LINK),
}


def _above(found):
    """The proven roots of a stability, one of each pair."""
    return [root for root in found.roots[: found.proven] if root.imag >= 0]


@pytest.mark.parametrize("case", CASES)
def test_the_moving_model_stays_on_the_modes_of_its_roots(case):
    found = fc.stability(CASES[case]())
    assert found.proven > 1 and found.stable is (case != "growing")
    for root, error in zip(_above(found)[:2], (1e-4, 1e-3), strict=True):
        run = follow_mode(found.equilibrium, found.linear, root)
        assert run.status is fc.Status.ok and run.error < error
        size = np.abs(run.mode)
        assert size[-1].max() / size[0].max() == pytest.approx(np.exp(root.real * run.times[-1]))
