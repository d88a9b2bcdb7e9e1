"""Load factors in packet runs: what routers sample, what packets bring, what receivers make of it.

References: Qazi, Znati and Andrew (2010), eq. 1 and section 3.2, and the closed forms of ADPM.
Seeds are fixed; shares are compared within 5 standard errors.
"""

import dataclasses

import numpy as np
import pytest
from load_cases import KnownLoad, Stepwise, known_load
from packet_cases import dumbbell, flows

from fluidcc.laws.adpm import ADPM
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.newreno import NewReno
from fluidcc.scenario.network import Start

FLOWS = 400
CODE = ADPM()
LAW = BMCC(max_window=50.0)
NEEDS_MARK, FALLBACK = (dataclasses.replace(LAW, **{k: True}) for k in ("needs_mark", "fallback"))


def steady(window, queue, **changes):
    """One flow with a window that nothing changes, 20 packets of it under way."""
    law = NewReno(max_window=window, min_window=window)
    group = flows(
        1, window=law, rtt=np.array([20 / 1250]), start=Start(), access_delay=0.001,
        access_capacity=float("inf"),
    )  # fmt: skip
    return dumbbell(group, queue, delay=0.001, buffer=float("inf"), **changes)


@pytest.mark.parametrize("law", [LoadFactor, ModifiedLoadFactor])
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_load_factor_of_a_standing_queue(law, gamma):
    """Eq. 1 at full load: (1 + kappa_1 q/(C t_p))/gamma."""
    more = {"min_th": 1e4, "max_th": 2e4} if law is ModifiedLoadFactor else {"highest": np.inf}
    run = Stepwise(steady(60.0, law(gamma=gamma, **more))).until(60.001)
    arrived, slow, factor = run.queue_block(0, 3)
    assert slow == pytest.approx(60 - 20 - 2, abs=0.5)  # without those served and arriving
    assert factor == pytest.approx((1 + 0.75 * slow / 250) / gamma, abs=1.5 / 250)
    assert arrived <= 2  # a sample was taken just now


def coded(load, **changes):
    """Many receivers of a known load factor, with windows of a packet that nothing changes."""
    law = BMCC(max_window=1.0)
    return known_load(KnownLoad(f=load), law, estimator=ADPM(), count=FLOWS, **changes)


@pytest.mark.parametrize("load", [0.4, 0.9, 1.05])
@pytest.mark.parametrize("packets", [4, 20, 80])
def test_distribution_of_estimates_from_below(load, packets):
    run = Stepwise(coded(load)).until(0.05 + 0.1 * packets)
    assert set(run.flow("received")) == {packets + 1}
    found = run.estimates()
    assert np.all(found <= load)
    for value in np.linspace(CODE.lowest, load, 6)[1:]:
        expected = CODE.share_below(value, load, packets)
        spread = np.sqrt(expected * (1 - expected) / FLOWS)
        assert np.mean(found < value) == pytest.approx(expected, abs=5 * spread + 1e-12)


@pytest.mark.parametrize("load", [0.15, 0.4, 0.9, 1.05])
@pytest.mark.parametrize("packets", [4, 20, 80])
def test_mean_error_of_estimates_from_above(load, packets):
    run = Stepwise(coded(load))
    run.simulation.receivers["estimate"] = CODE.highest
    error = run.until(0.05 + 0.1 * packets).estimates() - load
    assert np.all(error >= 0)
    spread = error.std(ddof=1) / np.sqrt(FLOWS)
    assert error.mean() == pytest.approx(CODE.mean_error(load, packets), abs=5 * spread)
    for value in np.linspace(load, CODE.highest, 6)[:-1]:
        expected = CODE.share_above(value, load, packets)
        spread = np.sqrt(expected * (1 - expected) / FLOWS)
        found = np.mean(error > value - load)
        assert found == pytest.approx(expected, abs=5 * spread + 1e-12)


@pytest.mark.parametrize("law", [LAW, NEEDS_MARK, FALLBACK])
def test_marks_hide_the_code_or_are_the_code(law):
    """All packets marked at half load: only receivers that trust marks know of any load."""
    begun = (("recovery", "newreno"), ("syn", False))  # SYNs would be dropped
    net = known_load(KnownLoad(f=0.5, p=1.0), law, estimator=ADPM(), sender=begun)
    run = Stepwise(net).until(5.0)
    assert run.estimates() == (1.2 if law.marks_tell_load else 0.0)
