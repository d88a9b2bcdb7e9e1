"""Floquet multipliers by moved states: exact ones, those of collocation, decays, and refusals."""

import dataclasses
import math

import numpy as np
import pytest
from analysis_cases import HUTCHINSON, SPEED, hollot, radial_multipliers, turning

import fluidcc as fc
from fluidcc.analysis.cycles import verb
from fluidcc.analysis.cycles.collocation import LostError
from fluidcc.model.network_mesh import uniform_mesh


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
