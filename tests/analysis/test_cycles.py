"""Limit cycles: exact ones, published amplitudes, and those with corners."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from analysis_cases import HUTCHINSON, LAG, SPEED, hollot, radial_multipliers, turning

import fluidcc as fc
from fluidcc.analysis.cycles import simulated as taken
from fluidcc.analysis.cycles import verb
from fluidcc.analysis.cycles.collocation import OrbitLostError
from fluidcc.analysis.cycles.gradient import cycle_gradients
from fluidcc.analysis.cycles.result import Label
from fluidcc.analysis.cycles.settled import simulate
from fluidcc.analysis.cycles.verb import subject_of
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.oscillation import repeating_period
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.bundled.validation.relay_cycle import relay_cycle
from fluidcc.laws import ECNMod, PerMark, Threshold
from fluidcc.model.network_mesh import uniform_mesh


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
    assert "converges" in found.message or "decays" in found.message


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
    net = hollot(w_q=w_q)
    found = fc.cycle(net)
    assert f"period {found.period:.5g} s" in found.plot().subfigs[0].get_suptitle()
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
    found, exact = fc.cycle(net), relay_cycle(net)
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


# -- Floquet multipliers by perturbed states
@pytest.fixture
def lost(monkeypatch):
    """Collocation finds nothing, so that the simulation tells."""

    def nothing(*_):
        raise OrbitLostError("it is lost")

    monkeypatch.setattr(verb, "collocate", nothing)


@pytest.mark.parametrize("r", [1.6, 1.8])
def test_multipliers_agree_with_collocation(r, request):
    equation = HUTCHINSON.replace({"r": r})
    exact = fc.cycle(equation)
    request.getfixturevalue("lost")
    found = fc.cycle(equation)
    assert (exact.status, found.status, found.stable) == ("smooth", "simulated", True)
    assert "it is lost" in found.message and found.to_dict()["spread"] == found.spread < 1e-3
    assert found.period == pytest.approx(exact.period, rel=1e-4)
    assert np.array(found.states) == pytest.approx(np.array(exact.states), rel=1e-3)
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-6) and "trivial one" in found.message
    assert found.floquet[1] == pytest.approx(exact.floquet[1], rel=1e-5)


@pytest.mark.usefixtures("lost")
def test_multipliers_of_the_exact_circle():
    found = fc.cycle(turning(0.2, -0.2, 0.0))
    exact = radial_multipliers(-0.4)
    assert found.period == pytest.approx(2 * math.pi / SPEED, rel=1e-4) and found.stable
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-6)
    assert found.floquet[1] == pytest.approx(exact[0].real, rel=1e-5) and abs(exact[0].imag) < 1e-12


@pytest.mark.slow
def test_multipliers_under_fifo_are_what_another_simulation_does():
    """A minute: how the queue of a uniform mesh comes nearer from rise to rise of the average."""
    net = dataclasses.replace(hollot(w_q=1.15e-4), delay="fifo")
    found = fc.cycle(net)
    assert (found.status, found.stable) == ("simulated", True)
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-5)
    level, points = 200.0, np.linspace(0.0, 60.0, 60001)
    run = fc.simulate(net, until=60.0, points=points, mesh=uniform_mesh(net)).links["bottleneck"]
    rises = np.flatnonzero((run.average[:-1] < level) & (run.average[1:] >= level))
    low, high = run.average[rises], run.average[rises + 1]
    share = (level - low) / (high - low)
    queues = (1 - share) * run.queue[rises] + share * run.queue[rises + 1]
    steps = np.diff(queues)
    assert steps[9] / steps[8] == pytest.approx(found.floquet[1].real, rel=0.01)


# -- Cycles from the settled end of simulations: what it tells, and how long it is
def settled(time, course):
    """What one queue tells."""
    labels = [Label("links", "l", "queue"), Label("links", "l", "average")]
    return taken.settled_cycle(time, np.column_stack([course, course]), labels, "because")


@pytest.mark.parametrize(
    ("course", "status"),
    [
        (lambda t: 30 + np.sin(2 * np.pi * t / 7), "simulated"),
        (lambda t: 30 + np.exp(-t / 20) * np.sin(2 * np.pi * t / 7), "none"),
        (lambda t: 30 - 10 * np.exp(-t / 30), "none"),
        (lambda t: 30 + 0 * t, "none"),
        (lambda t: 30 + t / 10, "incomplete"),
        (lambda t: 30 + 10 * np.cos(2 * np.pi * t / 80), "incomplete"),
        (lambda t: 30 - 10 * np.cos(2 * np.pi * t / 40), "incomplete"),
    ],
    ids=["repeats", "dies away", "comes to rest", "rests", "goes on", "turns once", "repeats once"],
)
def test_what_the_end_of_a_simulation_tells(course, status):
    time = np.linspace(0.0, 100.0, 2001)
    found, _ = settled(time, course(time))
    assert found.status == status and "because" in found.message
    assert (found.period == pytest.approx(7.0, rel=1e-3)) == (status == "simulated")


# -- Derivatives of limit cycles against closed forms and against solved neighbours
def test_circle_has_its_closed_form():
    circle, paths = turning(0.5, -0.8, 0.0, lag=0.3), ("mu", "a", "speed", "lag")
    names = ["cycle.period", "cycle.states.0.max", "cycle.states.1.min"]
    period, top, bottom = cycle_gradients(circle, names, paths)
    radius = math.sqrt(0.5 / 0.8)
    assert period.value == pytest.approx(2 * math.pi / SPEED, rel=1e-10)
    wanted = {"mu": 0.0, "a": 0.0, "speed": -2 * math.pi / SPEED**2, "lag": 0.0}
    assert period.derivatives == pytest.approx(wanted, rel=1e-8, abs=1e-8)
    wanted = {"mu": radius / 2 / 0.5, "a": radius / 2 / 0.8, "speed": 0.0, "lag": 0.0}
    assert top.derivatives == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert bottom.derivatives == pytest.approx({k: -v for k, v in wanted.items()}, abs=1e-6)


# -- Period and extremes of curves that are known
def test_a_sine_with_ripples():
    t = np.linspace(0.0, 20.0, 20001)
    v = 50.0 + 20.0 * np.sin(2 * np.pi * t / 1.7) + 2.0 * np.sin(2 * np.pi * t / 0.0131)
    found = fc.oscillation(t, v, after=5.0)
    assert found.period == pytest.approx(1.7, rel=5e-3)
    assert found.mean == pytest.approx(50.0, rel=1e-2)
    assert (found.lowest, found.highest) == (v[t >= 5.0].min(), v[t >= 5.0].max())


def test_a_sawtooth_from_its_closed_form():
    t = np.linspace(0.0, 12.0, 12001)
    v = 10.0 + 4.0 * (t / 1.5 % 1.0)
    found = fc.oscillation(t, v)
    assert found.period == pytest.approx(1.5, rel=1e-6)
    assert found.mean == pytest.approx(12.0, rel=1e-3)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_a_period_in_noise(noise):
    t = np.linspace(0.0, 40.0, 4001)
    rng = np.random.default_rng(5)
    v = 10.0 + np.sin(2 * np.pi * t / 1.37) + noise * rng.standard_normal(t.size)
    assert repeating_period(t, v) == pytest.approx(1.37, rel=0.02)


def test_noise_that_only_remembers_has_no_period():
    """An autoregression of first order, whose correlation decays without a rhythm."""
    t, rng = np.linspace(0.0, 40.0, 4001), np.random.default_rng(7)
    v = np.zeros(t.size)
    for k in range(1, t.size):
        v[k] = 0.95 * v[k - 1] + rng.standard_normal()
    assert repeating_period(t, 50.0 + v) is None
    assert repeating_period(t, rng.standard_normal(t.size)) is None
