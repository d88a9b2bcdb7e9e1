"""Limit cycles: exact ones, published amplitudes, and the settled end of located simulations."""

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from analysis_cases import hollot
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.analysis.cycles import simulated as taken
from fluidcc.analysis.cycles import verb
from fluidcc.analysis.cycles.newton import LostError
from fluidcc.analysis.cycles.settled import simulated
from fluidcc.analysis.cycles.subjects import alike_joined, network_model, steady
from fluidcc.analysis.linear import Linear
from fluidcc.analysis.roots import rightmost_roots
from fluidcc.cli import report
from fluidcc.fluid.simulate import uniform_mesh
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.network import Start

HUTCHINSON = fc.DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 2.0}, 0.0
)
SPEED, LAG = 2.0, 0.7


def _turning(t, y, z, p):
    """A plane that turns at SPEED; its radius grows at the rate mu + a r^2 + b r^4, r^2 as it was
    a lag ago.
    """
    square = z[0] @ z[0]
    growth = p["mu"] + p["a"] * square + p["b"] * square**2
    return jnp.stack([growth * y[0] - SPEED * y[1], growth * y[1] + SPEED * y[0]])


def _lag(t, y, p):
    return p["lag"]


def turning(mu, a, b, lag=LAG):
    """A circle is its cycle, of period 2 pi/SPEED; multipliers by Lambert's function."""
    params = {"mu": mu, "a": a, "b": b, "lag": lag}
    return fc.DelayEquation(_turning, [_lag], params, np.zeros(2))


def radial_multipliers(slope, lag=LAG):
    """Of small changes of log r with d(log r)/dt = slope (log r)(t - lag), largest first."""
    exponents = np.array([lambertw(slope * lag, k) for k in range(-6, 6)]) / lag
    found = np.exp(exponents * 2 * math.pi / SPEED)
    return found[np.argsort(-np.abs(found))]


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


def test_a_branch_is_shown(fold):
    """As text, as a table, as a dataset and as a picture."""
    assert "fold at -0.2" in repr(fold) and fold.failure == ""
    (head, *_) = report.cycles(fold.to_dict(), fold.path, fold.unit)
    assert head.row_count == len(fold.branches[0].cycles)
    data = fold.to_dataset()
    assert data["state_0"].dims == ("point", "extreme") and (fold.low, fold.high) == (-0.35, 0.15)
    extremes, periods = fc.plot(fold).get_axes()
    assert (extremes.get_ylabel(), periods.get_ylabel()) == ("state", "period [s]")
    nothing = fc.cycles(turning(0.1, 1.0, -1.0), "mu", -0.9, -0.5)
    assert not nothing.branches and "no Hopf point" in nothing.message and fc.plot(nothing)


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
    run = simulated(*network_model(net), 70.0)
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


@pytest.mark.slow
def test_a_network_is_followed_from_its_hopf_point_through_a_corner():
    """Twenty seconds."""
    found = fc.cycles(hollot(), "link.queue.w_q", 9e-5, 1.2e-4, points=4)
    (branch,) = found.branches
    assert branch.hopf == pytest.approx(1.048513e-4, rel=1e-6)
    assert branch.cycles[0].status == "smooth"
    assert branch.cycles[-1].status == "nonsmooth" and branch.values[-1] == pytest.approx(1.2e-4)
    assert branch.cycles[0].period == pytest.approx(2 * math.pi / branch.frequency, rel=1e-3)
    assert all(c.floquet[0] == pytest.approx(1.0, abs=1e-6) for c in branch.cycles)


def test_a_relay_is_answered_by_its_exact_cycle():
    flows = fc.Flows(ECNMod(), n=np.array([50.0]), rtt=np.array([0.1]), reaction=PerMark())
    link = fc.Link(Threshold(at=100.0), capacity=1000.0)
    net = fc.Network((link,), (flows,), rates="self_clocked", delay="fifo")
    found, exact = fc.cycle(net), fc.relay_cycle(net)
    assert (found.status, found.period, found.floquet) == ("relay", exact.period, ())
    assert found.links["bottleneck"].queue == exact.queue


def test_a_settled_simulation_tells_the_same_cycle_and_a_decaying_one_none():
    """What stands for a cycle where collocation cannot."""
    points, exact = np.linspace(0.0, 80.0, 8001), fc.cycle(hollot(w_q=0.005))
    net, calm = hollot(w_q=0.005), hollot(w_q=5e-5)
    found, _ = taken.of_trajectory(fc.simulate(net, until=80.0, points=points), "because")
    assert (found.status, found.stable, found.floquet) == ("simulated", None, ())
    assert found.period == pytest.approx(exact.period, rel=1e-3) and "because" in found.message
    assert 0 < found.spread < 1e-3 and "periods, equal to" in found.message
    ends = exact.links["bottleneck"].queue
    assert found.links["bottleneck"].queue == pytest.approx(ends, rel=2e-3)
    still, _ = taken.of_trajectory(fc.simulate(calm, until=80.0, points=points), "because")
    assert still.status == "none" and ("dies away" in still.message or "rest" in still.message)


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
    link = SimpleNamespace(queue=course(time), average=course(time))
    run: Any = SimpleNamespace(time=time, links={"l": link}, flows={})
    found, _ = taken.of_trajectory(run, "because")
    assert found.status == status and "because" in found.message
    assert (found.period == pytest.approx(7.0, rel=1e-3)) == (status == "simulated")


def test_a_cycle_of_two_turns_is_one_period():
    """Rises 6 s and 8 s apart in turn."""
    time = np.linspace(0.0, 200.0, 8001)
    turn = time % 14
    course = 30 + np.where(turn < 6, np.sin(np.pi * turn / 3), np.sin(np.pi * (turn - 6) / 4))
    link = SimpleNamespace(queue=course, average=course)
    run: Any = SimpleNamespace(time=time, links={"l": link}, flows={})
    found, settled = taken.of_trajectory(run, "because")
    assert (found.status, settled) == ("simulated", True) and "after 2 rises" in found.message
    assert found.period == pytest.approx(14.0, rel=1e-3) and found.spread < 1e-3


def waves(gaps) -> Any:
    """A run that rises through its middle after each of the gaps and ends in the last but one."""
    starts = np.cumsum(gaps)
    time = np.linspace(0.0, 0.98 * starts[-1], 8001)
    course = 30 + np.sin(2 * np.pi * np.interp(time, [0.0, *starts], np.arange(len(gaps) + 1)))
    link = SimpleNamespace(queue=course, average=course)
    return SimpleNamespace(time=time, links={"l": link}, flows={})


ORDER = np.arange(62)
UNEVEN_GAPS = {
    f"jitter {seed}": 1 + 0.005 * np.random.default_rng(seed).standard_normal(62)
    for seed in range(5)
} | {"quasi-periodic": 1 + 0.006 * np.sin(2 * np.pi * 0.618 * ORDER)}


@pytest.mark.parametrize("gaps", UNEVEN_GAPS.values(), ids=UNEVEN_GAPS)
def test_gaps_that_do_not_come_back_are_no_period_doubling(gaps):
    """Sums of more gaps are more even, but none comes back."""
    found, settled = taken.of_trajectory(waves(gaps), "because")
    assert (found.status, settled) == ("simulated", False) and "rises" not in found.message
    starts, end = np.cumsum(gaps), 0.98 * np.sum(gaps)
    late = np.diff(starts[(starts > end / 2 + 0.5) & (starts < end)])  # after a trough
    assert found.period == pytest.approx(np.mean(late), rel=1e-4)
    assert found.spread == pytest.approx(np.ptp(late) / np.mean(late), abs=2e-4)


def test_gaps_that_come_back_are_one_with_jitter_too():
    """Jitter of 0.5 % does not make a period of 2 gaps one of 4 or 6, whose sums are more even."""
    jitter = 1 + 0.005 * np.random.default_rng(1).standard_normal(62)
    found, _ = taken.of_trajectory(waves(np.where(ORDER % 2, 6.0, 8.0) * jitter), "because")
    assert "after 2 rises" in found.message and found.period == pytest.approx(14.0, rel=5e-3)
    deep = np.resize([6.0, 8.0, 6.3, 8.2], 62)
    found, _ = taken.of_trajectory(waves(deep), "because")
    assert "after 4 rises" in found.message and found.period == pytest.approx(28.5, rel=1e-3)


def test_what_repeats_in_part_has_no_spread():
    """The gaps, from 0.94 to 1.06 s, are not the period told."""
    gaps = 1 + 0.06 * np.sin(2 * np.pi * 0.618 * ORDER)
    found, settled = taken.of_trajectory(waves(gaps), "because")
    assert (found.status, settled) == ("simulated", False) and "in part" in found.message
    assert found.period is not None and found.spread is found.to_dict()["spread"] is None


@pytest.mark.parametrize(("trips", "ends"), [(7.0, [100]), (250.0, [100, 400, 1600, 3000])])
def test_simulations_last_as_long_as_their_period_needs(monkeypatch, trips, ends):
    """The period is given in round trips; slow ones pass for a transient at first."""
    net, lengths = hollot(), []
    trip = float(net.flows[0].rtt[0])

    def simulated(net, *, until, points, mesh):
        lengths.append(until / trip)
        course = 30 + np.sin(2 * np.pi * points / (trips * trip))
        link = SimpleNamespace(queue=course, average=course)
        windows = SimpleNamespace(window=course[:, None])
        return SimpleNamespace(
            time=points,
            links={"bottleneck": link},
            flows={"flows": windows},
            status=taken.Status.ok,
        )

    monkeypatch.setattr(taken, "simulate", simulated)
    found = taken.from_simulation(net, "because")
    assert lengths == pytest.approx(ends)
    assert (found.status, found.period) == ("simulated", pytest.approx(trips * trip, rel=1e-5))
    assert "not settled" not in found.message and found.spread < 1e-4


def test_what_collocation_loses_is_taken_from_the_located_simulation(monkeypatch):
    equation = HUTCHINSON.replace({"r": 1.8})
    exact = fc.cycle(equation)

    def lost(*_):
        raise LostError("it is lost")

    monkeypatch.setattr(verb, "collocated", lost)
    found = fc.cycle(equation)
    assert (found.status, found.stable, found.floquet) == ("simulated", None, ())
    assert "it is lost" in found.message and found.to_dict()["spread"] == found.spread < 1e-3
    assert found.period == pytest.approx(exact.period, rel=1e-4)
    assert np.array(found.states) == pytest.approx(np.array(exact.states), rel=1e-3)


# Uniform steps of 1.8 ms/64, /256, /1024, from 16 s to 20 s: 0.481725, 0.481437, 0.481402 s
JUMPING = 0.4814016


@pytest.mark.slow
def test_a_cycle_over_a_jump_of_the_marking_agrees_with_small_steps():
    """Twenty seconds: RED without a gentle end drops all above max_th, where the queue's slope
    jumps with the average. The first-order error of the smallest steps is below 1e-5."""
    found = fc.cycle(fc.load("akujobi2002/homogeneous_becn_original"))
    assert (found.status, found.stable) == ("nonsmooth", True) and found.error < 1e-6
    assert found.period == pytest.approx(JUMPING, rel=1e-5)


def in_two_groups():
    """Flows of one kind in two groups, of which one starts later and the other has more."""
    net = hollot(w_q=0.005)
    first = dataclasses.replace(net.flows[0], n=np.array([40.0]))
    second = dataclasses.replace(first, n=np.array([20.0]), start=Start(2.0, 2.0))
    return dataclasses.replace(
        net, flows=(first, second), flow_names=("first", "second"), delay="fifo"
    )


def test_groups_that_are_alike_are_joined():
    net = steady(in_two_groups())
    one, place = alike_joined(net)
    assert (place, one.flow_names) == ((0, 0), ("first",))
    assert one.flows[0].n == pytest.approx([60.0])
    other = dataclasses.replace(net.flows[1], rtt=np.array([0.3]))
    apart = dataclasses.replace(net, flows=(net.flows[0], other))
    assert alike_joined(apart) == (apart, (0, 1))


@pytest.mark.slow
def test_groups_that_are_alike_end_in_the_cycle_in_which_they_move_as_one():
    """Half a minute."""
    net = in_two_groups()
    found = fc.cycle(net)
    assert found.status == "simulated" and "2 groups of flows that are alike" in found.message
    assert found.flows["first"] == found.flows["second"]
    points = np.linspace(0.0, 60.0, 12001)
    run = fc.simulate(net, until=60.0, points=points, mesh=uniform_mesh(net))
    seen = fc.oscillation(run.time, run.links["bottleneck"].queue, after=40.0)
    assert found.period == pytest.approx(seen.period, rel=1e-3)
    ends = found.links["bottleneck"].queue
    assert ends == pytest.approx((seen.lowest, seen.highest), rel=2e-3)


def test_results_are_labelled_and_plain():
    found = fc.cycle(HUTCHINSON.replace({"r": 1.7}))
    data, plain = found.to_dataset(), found.to_dict()
    assert data["period"].attrs["units"] == "s" and data.sizes["phase"] == 401
    assert plain["floquet"][0] == [pytest.approx(1.0), 0.0] and plain["period"] == found.period
    assert "period 4.096" in repr(found)
    assert fc.plot(found).get_axes()
