"""Limit cycles: exact ones, published amplitudes, and those with corners."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from analysis_cases import (
    HUTCHINSON,
    LAG,
    SPEED,
    hollot,
    radial_multipliers,
    turning,
)

import fluidcc as fc
from fluidcc.analysis.cycles.settled import simulate
from fluidcc.analysis.cycles.subjects import subject_of
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.ecn_mod import ECNMod


def test_the_exact_circle_and_its_multipliers():
    found = fc.cycle(turning(0.6, -0.6, 0.0))
    assert (found.status, found.stable) == ("smooth", True)
    assert found.period == pytest.approx(2 * math.pi / SPEED, rel=1e-12)
    assert np.array(found.states) == pytest.approx(np.array([[-1, 1], [-1, 1]]), rel=1e-7)
    exact = radial_multipliers(-1.2)[:4]
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-11)  # the trivial one tells the accuracy
    for mu, nu in zip(found.floquet[1:3], exact, strict=False):
        assert min(abs(mu - nu), abs(mu - nu.conjugate())) < 1e-8
    for mu, nu in zip(found.floquet[3:5], exact[2:], strict=False):
        assert min(abs(mu - nu), abs(mu - nu.conjugate())) < 1e-3 * abs(nu)


def test_a_lag_of_more_than_two_periods():
    found = fc.cycle(turning(0.1, -0.1, 0.0, lag=7.0))
    exact = radial_multipliers(-0.2, lag=7.0)
    assert found.period == pytest.approx(2 * math.pi / SPEED, rel=1e-10) and 7.0 > 2 * found.period
    others = np.array(found.floquet[1:])
    for nu in exact[:4]:
        assert np.min(np.abs(others - nu)) < 1e-7
    assert np.max(np.abs(others)) == pytest.approx(abs(exact[0]), rel=1e-7)


GAIN, PULL = 0.8, 0.7


def _waves(t, y, z, p):
    """A wave that turns at SPEED on the circle, pushed by where it was about 1 s ago."""
    growth = PULL - GAIN * math.cos(SPEED) - PULL * (y @ y)
    speed = SPEED + GAIN * math.sin(SPEED)
    here = jnp.stack([growth * y[0] - speed * y[1], growth * y[1] + speed * y[0]])
    return here + GAIN * z[0]


def test_a_lag_that_depends_on_the_state():
    """In turning coordinates the circle is at rest, and the roots there give the multipliers."""
    bend = 0.2
    lag = lambda t, y, p: 1.0 + p["bend"] * (y @ y - 1.0)  # noqa: E731
    found = fc.cycle(fc.DelayEquation(_waves, [lag], {"bend": bend}, np.zeros(2)))
    assert found.period == pytest.approx(2 * math.pi / SPEED, rel=1e-10)

    def matrix(c):
        return np.array([[c.real, -c.imag], [c.imag, c.real]])

    push = GAIN * np.exp(-1j * SPEED)
    here = -GAIN * math.cos(SPEED) + 1j * GAIN * math.sin(SPEED) - PULL
    moved = -2j * SPEED * bend * push  # what the change of the lag does
    now = matrix(here) - PULL * np.diag([1.0, -1.0])
    now = now + np.array([[moved.real, 0.0], [moved.imag, 0.0]])
    roots = rightmost_roots(Linear.retarded(now, [matrix(push)], [1.0])).values
    exact = np.exp(roots * 2 * math.pi / SPEED)
    for nu in exact[np.argsort(-np.abs(exact))][:4]:
        assert np.min(np.abs(np.array(found.floquet) - nu)) < 1e-7


def test_hutchinson_near_its_hopf_point():
    found = fc.cycle(HUTCHINSON.replace({"r": math.pi / 2 + 0.01}))
    (low, high), = found.states  # fmt: skip
    assert (high - low) / 2 == pytest.approx(0.23135, abs=1e-5)  # a simulation by other means
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-10)
    assert found.error < 1e-7 and found.stable


def test_hutchinson_far_from_it_agrees_with_a_simulation():
    equation = HUTCHINSON.replace({"r": 2.2})
    found = fc.cycle(equation)
    run = fc.solve_dde(
        lambda t, y, z, p: -p * z[0] * (1 + y), lambda t, p: jnp.array(0.5), 0.0, 300.0,
        lags=[lambda t, y, p: 1.0], params=2.2, mesh=fc.Located(0.02),
    )  # fmt: skip
    late = np.asarray(run(np.linspace(280.0, 300.0, 20001)))
    assert found.states[0] == pytest.approx((late.min(), late.max()), rel=1e-5)
    again = float(run(np.array([280.0]))[0])
    assert float(run(np.array([280.0 + 4 * found.period]))[0]) == pytest.approx(again, abs=1e-4)


def test_a_stable_equilibrium_has_no_cycle():
    found = fc.cycle(HUTCHINSON.replace({"r": 1.2}))
    assert (found.status, found.period, found.floquet) == ("none", None, ())
    assert "comes to rest" in found.message or "decays" in found.message


@pytest.fixture(scope="module")
def fold():
    """Subcritical at mu = 0; r^2 = (1 -+ sqrt(1 + 4 mu))/2, which fold at mu = -1/4."""
    return fc.cycles(turning(0.1, 1.0, -1.0), "mu", -0.35, 0.15)


def test_a_branch_begins_at_the_hopf_point_and_goes_through_the_fold(fold):
    (branch,) = fold.branches
    assert branch.hopf == pytest.approx(0.0, abs=1e-9)
    assert branch.frequency == pytest.approx(SPEED)
    assert min(branch.values) == pytest.approx(-0.25, abs=0.02) and len(branch.folds) == 1
    assert branch.values[-1] > 0.05 and branch.message == ""
    squares = [c.states[0][1] ** 2 for c in branch.cycles]
    residual = [mu + s - s**2 for mu, s in zip(branch.values, squares, strict=True)]
    assert np.max(np.abs(residual)) < 1e-7


def test_cycles_are_unstable_before_the_fold_and_after_it_until_the_delay_is_too_long(fold):
    (branch,) = fold.branches
    verdicts = []
    for found in branch.cycles:
        square = found.states[0][1] ** 2
        slope = 2 * square - 4 * square**2
        assert abs(found.floquet[1]) == pytest.approx(abs(radial_multipliers(slope)[0]), rel=1e-5)
        assert found.stable == (square > 0.5 and -slope * LAG < math.pi / 2)
        verdicts.append(found.stable)
    assert (verdicts[0], True in verdicts, verdicts[-1]) == (False, True, False)


# by located Runge-Kutta runs of 128 steps per lag, settled to rounding; order 4 was observed
SETTLED = {
    0.005: (1.87418733, (113.3437093, 266.8709940), (13.96771235, 17.36325661)),
    2e-4: (3.98719620, (0.0, 403.3242946), (12.02225312, 19.61016477)),
}


@pytest.mark.parametrize("w_q", SETTLED)
def test_cycles_with_corners_agree_with_located_simulations(w_q):
    """TCP with RED: the average passes min_th; with the slower filter the queue runs empty."""
    found = fc.cycle(hollot(w_q=w_q))
    period, queue, window = SETTLED[w_q]
    assert (found.status, found.stable) == ("nonsmooth", True) and found.error < 1e-6
    assert found.period == pytest.approx(period, rel=1e-8)
    assert found.links["bottleneck"].queue == pytest.approx(queue, rel=1e-8)
    assert found.flows["flows"].window[0] == pytest.approx(window, rel=1e-8)
    assert ("runs empty" in found.message) == (queue[0] == 0)


def test_multipliers_of_a_cycle_with_corners_are_what_simulations_do():
    net = hollot(w_q=2e-4)
    found = fc.cycle(net)
    subject = subject_of(net)
    run = simulate(subject.model, subject.start, 70.0)
    times = np.arange(10.0, 60.0, 0.005)
    above = run.states(times)[:, -1] > 150.0
    rises = times[1:][above[1:] & ~above[:-1]]
    queues = []
    for t in rises[1:7]:  # where the average passes the corner
        near = np.linspace(t - 0.01, t + 0.01, 2001)
        average, queue = run.states(near)[:, -1], run.states(near)[:, -2]
        queues.append(np.interp(150.0, average, queue))
    steps = np.diff(queues)
    assert steps[1] / steps[0] == pytest.approx(found.floquet[1].real, rel=0.05)


def test_a_relay_goes_round_in_the_closed_form():
    """Self-clocked flows are simulated; the closed form is that of Durresi et al. (2001)."""
    flows = fc.Flows(ECNMod(), n=np.array([50.0]), rtt=np.array([0.1]), reaction=PerMark())
    link = fc.Link(Threshold(at=100.0), capacity=1000.0)
    net = fc.Network((link,), (flows,), rates="self_clocked", delay="fifo")
    found, exact = fc.cycle(net), fc.relay_cycle(net)
    assert found.status == "simulated" and found.period == pytest.approx(exact.period, rel=1e-5)
    assert found.links["bottleneck"].queue == pytest.approx(exact.queue, abs=0.01)
    assert found.stable is None  # packets in flight are conserved: two multipliers are 1


# Uniform steps of 1.8 ms/64, /256, /1024, from 16 s to 20 s: 0.481725, 0.481437, 0.481402 s
JUMPING = 0.4814016


@pytest.mark.slow
def test_a_cycle_over_a_jump_of_the_marking_agrees_with_small_steps():
    """Twenty seconds: RED without a gentle end drops all above max_th, where the queue's slope
    jumps with the average. The first-order error of the smallest steps is below 1e-5."""
    found = fc.cycle(fc.load("akujobi2002/homogeneous_becn_original"))
    assert (found.status, found.stable) == ("nonsmooth", True) and found.error < 1e-6
    assert found.period == pytest.approx(JUMPING, rel=1e-5)
