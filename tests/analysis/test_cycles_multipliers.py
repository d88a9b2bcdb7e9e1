"""Floquet multipliers by moved states: exact ones, those of collocation, decays, and refusals."""

import dataclasses
import math

import numpy as np
import pytest
from analysis_cases import HUTCHINSON, SPEED, hollot, radial_multipliers, turning

import fluidcc as fc
from fluidcc.analysis.cycles import multipliers, verb
from fluidcc.analysis.cycles.collocation import LostError
from fluidcc.analysis.cycles.simulated import network_moves
from fluidcc.analysis.cycles.subjects import steady, subject_of
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system


@pytest.fixture
def lost(monkeypatch):
    """Collocation finds nothing, so that the simulation tells."""

    def nothing(*_):
        raise LostError("it is lost")

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


def test_eigenvalues_come_out_of_sequences():
    """Of a map with a rotation in it, that two vectors are sent through."""
    turn = 0.6 * np.array([[0.8, -0.6], [0.6, 0.8]])
    shift = np.array([[1.0, 2.0, 0.5, 0.0], [0.0, 1.0, 1.0, 3.0], [0.5, 0, 1, 0], [0, 1, 0, 1.0]])
    whole = np.zeros((4, 4))
    whole[0, 0], whole[1, 1], whole[2:, 2:] = 1.0, 0.2, turn
    whole = shift @ whole @ np.linalg.inv(shift)
    starts = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 2.0]])
    steps = [starts @ np.linalg.matrix_power(whole, j).T for j in range(6)]
    values, residuals = multipliers.of_sequences(np.stack(steps, axis=1), 1e-10)
    exact = np.array([1.0, 0.6 * (0.8 + 0.6j), 0.6 * (0.8 - 0.6j), 0.2])
    assert np.max(residuals) < 1e-10 and len(values) == 4
    assert all(np.min(np.abs(values - mu)) < 1e-9 for mu in exact)


def test_what_is_no_cycle_has_no_multipliers():
    """A run that comes to rest, one of another period, and one that would take too long."""
    still, cycling = (subject_of(HUTCHINSON.replace({"r": r})) for r in (1.2, 1.8))
    moves = multipliers.Moves(np.zeros(1, bool), np.eye(1))

    def tried(subject, **more):
        model, y0 = subject.model, subject.start
        options = {"period": 4.0, "until": 60.0, "step": 0.05, **more}
        with pytest.raises(multipliers.NoMultipliersError) as told:
            multipliers.multipliers_of_run(model.system, y0, model.args, moves, **options)
        return str(told.value)

    assert "same period" in tried(still)
    assert "same period" in tried(cycling, period=5.0)
    assert "steps" in tried(cycling, step=1e-5)


def test_ticks_that_come_at_other_phases_are_told():
    clock = np.array([False, True])
    seen = np.zeros((4, 3, 2))
    assert multipliers.returned(seen, clock) == 0.0
    seen[1, 2, 1] = 0.1
    with pytest.raises(multipliers.NoMultipliersError, match="ticks"):
        multipliers.returned(seen, clock)
    with pytest.raises(multipliers.NoMultipliersError, match="comes back only"):
        multipliers.returned(seen, ~clock)


def test_ticks_of_fixed_periods_are_moved_as_one():
    net = steady(fc.load("govindaswamy2012/ared_ecn"))
    clock, along = network_moves(net)
    ticking = [k for k, link in enumerate(net.links) if link.queue.period is not None]
    assert np.sum(clock) == len(ticking) > 0
    assert np.array_equal(along[-1], clock) and len(along) == len(clock) - len(ticking) + 1
    plain = network_moves(hollot())
    assert not np.any(plain.clock) and np.array_equal(plain.along, np.eye(len(plain.clock)))


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


@pytest.mark.slow
def test_multipliers_under_fifo_near_the_hopf_point():
    """Half a minute. By the normal form the radius comes back twice as fast as the equilibrium
    loses it; to first order in the distance."""
    net = steady(dataclasses.replace(hollot(w_q=1.07e-4), delay="fifo"))
    root = fc.stability(net).roots[0]
    assert root.real > 0
    period = 2 * math.pi / abs(root.imag)
    system, y0, args = network_system(net)
    found = multipliers.multipliers_of_run(
        system, y0, args, network_moves(net), period=period, until=900.0, step=0.02
    )
    assert found.floquet[0] == pytest.approx(1.0, abs=1e-4) and found.stable
    assert math.log(found.floquet[1].real) == pytest.approx(-2 * root.real * period, rel=0.02)
