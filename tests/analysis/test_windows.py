"""Stationary windows of networks: what each group hears, and why others have none."""

import json

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


def test_groups_without_a_stationary_window_say_why():
    found = fc.stationary_windows(fc.load("qazi2010/mix_droptail"))
    assert found.status == "none"
    assert set(found.missing) == {"bmcc", "sack"}  # files are traffic of their own
    assert "losses" in found.missing["sack"]
    with pytest.raises(ValueError, match=r"no picture: flows\.bmcc"):
        fc.plot(found)


def test_results_are_labelled_and_plain(mixed):
    told = json.loads(json.dumps(mixed.to_dict()))
    assert told["status"] == "ok" and set(told["groups"]) == {"mod", "newreno"}
    data = mixed.to_dataset()
    assert data["variance"].attrs["units"] == "packet^2"
    for name, own in mixed.groups.items():
        middle = float(data["quantile"].sel(group=name, share=0.5))
        assert own.time[own.window < middle].sum() < 0.5 <= own.time[own.window <= middle].sum()
    assert "newreno" in repr(mixed)
    assert len(fc.plot(mixed).subfigs[0].axes) == 2
