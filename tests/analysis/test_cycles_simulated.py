"""Cycles from the settled end of simulations: what it tells, and how long it is."""

import numpy as np
import pytest
from analysis_cases import hollot

import fluidcc as fc
from fluidcc.analysis.cycles import simulated as taken
from fluidcc.analysis.cycles.result import Label


def settled(time, course):
    """What one queue tells."""
    labels = [Label("links", "l", "queue"), Label("links", "l", "average")]
    return taken.settled_cycle(time, np.column_stack([course, course]), labels, "because")


def at_the_end_of(net):
    """What a simulation of 80 s tells."""
    run = fc.simulate(net, until=80.0, points=np.linspace(0.0, 80.0, 8001))
    return taken.settled_cycle(run.time, taken.values_of(run), taken.labels_of(net), "because")[0]


def test_a_settled_simulation_tells_the_same_cycle_and_a_decaying_one_none():
    """What stands for a cycle where collocation cannot."""
    exact = fc.cycle(hollot(w_q=0.005))
    found, still = (at_the_end_of(hollot(w_q=w_q)) for w_q in (0.005, 5e-5))
    assert (found.status, found.stable, found.floquet) == ("simulated", None, ())
    assert found.period == pytest.approx(exact.period, rel=1e-3) and "because" in found.message
    assert 0 < found.spread < 1e-3 and "periods, equal to" in found.message
    ends = exact.links["bottleneck"].queue
    assert found.links["bottleneck"].queue == pytest.approx(ends, rel=2e-3)
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
    found, _ = settled(time, course(time))
    assert found.status == status and "because" in found.message
    assert (found.period == pytest.approx(7.0, rel=1e-3)) == (status == "simulated")
