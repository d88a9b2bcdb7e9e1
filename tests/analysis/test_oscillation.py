"""Period and extremes of curves that are known."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.oscillation import repeating_period


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
