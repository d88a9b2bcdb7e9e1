"""Stationary windows of networks: what each group hears, and why others have none."""

import pytest

import fluidcc as fc

MIXED = fc.load("misra2003/mixed")


@pytest.fixture(scope="module")
def mixed():
    return fc.stationary_windows(MIXED)


def test_every_group_has_the_marks_that_it_hears_at_rest(mixed):
    rest = fc.equilibrium(MIXED)
    for name, found in mixed.groups.items():
        assert found.p == pytest.approx(float(rest.flows[name].signal[0]), rel=1e-12)
        assert found.fluid == pytest.approx(float(rest.flows[name].window[0]), rel=1e-6)
    # the mean of a linear drift is exact over packets. Misra and Ott (2003), eq. 4
    mod = mixed.groups["mod"]
    assert mod.mean == pytest.approx(mod.fluid, rel=1e-4)


def test_a_given_probability_takes_the_place_of_the_rest():
    law = MIXED.flows[0].window
    found = fc.stationary_windows(MIXED, p=0.02)
    assert {own.p for own in found.groups.values()} == {0.02}
    expected = float(law.c1 / law.c2) * (1 - 0.02) / 0.02
    assert found.groups["mod"].mean == pytest.approx(expected, rel=1e-4)
