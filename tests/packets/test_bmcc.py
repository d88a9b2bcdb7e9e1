"""BMCC senders in packet runs against the closed forms of Qazi, Znati and Andrew, section 3.3."""

import dataclasses

import numpy as np
import pytest
from load_cases import KnownLoad, Stepwise, known_load, measured_load
from packet_cases import flows

from fluidcc.bundled.validation.lab.experiments import experiments
from fluidcc.laws.adpm import ADPM
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.packets.run import simulate_packets
from fluidcc.results.fairness import gain_and_loss
from fluidcc.scenario.network import Start

LAW = BMCC(max_window=1e4)
NEEDS_MARK, FALLBACK = (dataclasses.replace(LAW, **{k: True}) for k in ("needs_mark", "fallback"))
T_P, TRIP = 0.2, 0.1
OPEN = ("syn", False), ("recovery", "newreno")  # or the SYN may be lost where all is marked


def windows(net, *times, **changes):
    """Windows of the first flow at some times."""
    run = Stepwise(net, **changes)
    return [float(run.until(t).flow("window")[0]) for t in times]


@pytest.mark.parametrize(("load", "known"), [(0.0, 0.15), (0.3, 0.3), (0.5, 0.5), (0.7, 0.7)])
def test_multiplicative_increase(load, known):
    """Eq. 3 takes the place of slow start: (1 + kappa_2 (1 - f)/f) for each t_p, for any trip."""
    factor = 1 + 0.35 * (1 - known) / known
    for trip in (0.05, 0.1):
        net = known_load(KnownLoad(f=load), rtt=np.array([trip]))
        before, after = windows(net, 0.8, 1.6)
        # growth comes with the ACKs of a burst: up to a round trip of it may be due
        periods = np.log(after / before) / np.log(factor)
        assert periods == pytest.approx(0.8 / T_P, abs=0.5 * trip / T_P)
        assert after < 1e4


@pytest.mark.parametrize("load", [0.75, 0.9, 0.99])
@pytest.mark.parametrize("trip", [0.05, 0.1, 0.4])
def test_additive_increase(load, trip):
    """Eq. 4: (T/t_p)^2 packets a round trip."""
    before, after = windows(known_load(KnownLoad(f=load), rtt=np.array([trip])), 2.0, 42.0)
    assert after - before == pytest.approx(40.0 * trip / T_P**2, rel=0.02)


@pytest.mark.parametrize("load", [1.0, 1.1, 1.2, 1.7])
@pytest.mark.parametrize("md", ["per_tp", "per_rtt"])
def test_multiplicative_decrease(load, md):
    """Eqs 5 and 6, once a t_p or a round trip."""
    law = dataclasses.replace(LAW, md=md)
    group = {"initial_window": 4000.0, "recovery": "newreno", "syn": False}
    net = known_load(KnownLoad(f=load), law, sender=tuple(group.items()))
    period, times = T_P if md == "per_tp" else TRIP, np.arange(4) + 3.5
    kept = 0.875 - 0.225 * (min(load, 1.2) - 1) / 0.2
    found = windows(net, *(period * times))
    ratios = np.divide(found[1:], found[:-1])
    assert ratios == pytest.approx(kept, rel=1e-9)


@pytest.mark.parametrize("load", [0.15, 0.5, 0.99])
def test_a_mark_decreases_by_the_largest_load(load):
    """A (11) mark of another router, once a round trip; all are marked."""
    law = dataclasses.replace(LAW, lowest=0.1, mild=0.11)  # so that little grows in between
    group = {"initial_window": 4000.0} | dict(OPEN)
    net = known_load(KnownLoad(f=load, p=1.0), law, sender=tuple(group.items()))
    before, after = windows(net, 0.35, 0.75)
    assert after / before == pytest.approx(0.65**4, rel=0.01)


def test_marks_of_a_load_that_is_known_do_not_decrease_twice():
    """A load factor of 120 % and its (11) marks are one signal: one decrease a t_p."""
    group = {"initial_window": 4000.0} | dict(OPEN)
    net = known_load(KnownLoad(f=1.3, p=1.0), estimator=ADPM(), sender=tuple(group.items()))
    found = windows(net, 0.3, 0.5, 0.7)
    assert np.divide(found[1:], found[:-1]) == pytest.approx(0.65)


def test_needs_mark_waits_for_marks():
    """Overload alone does nothing; with all packets marked, a decrease in each round trip."""
    group = {"initial_window": 1000.0} | dict(OPEN)
    given = {"sender": tuple(group.items())}
    assert windows(known_load(KnownLoad(f=1.1), NEEDS_MARK, **given), 3.0) == [1000.0]
    net = known_load(KnownLoad(f=1.1, p=1.0), NEEDS_MARK, **given)
    before, after = windows(net, 0.35, 0.75)
    assert after / before == pytest.approx((0.875 - 0.1125) ** 4)


@pytest.mark.parametrize("estimator", [None, ADPM()], ids=["exact", "adpm"])
def test_unequal_round_trips_get_equal_rates(estimator):
    """Additive increase by T/t_p^2 a second and decreases at equal pace: section 3.3."""
    trips = {"n": np.ones(3), "rtt": np.array([0.0413, 0.0827, 0.1653])}
    trips |= {"estimator": estimator} if estimator else {}
    net = measured_load(3, **trips)
    link = dataclasses.replace(net.links[0], capacity=2500.0, buffer=500.0)
    net = dataclasses.replace(net, links=(link,))
    found = simulate_packets(net, until=300.0, warmup=100.0, seeds=(1, 2)).mean
    assert found["flows"]["flows"]["jain"] > 0.97
    assert found["links"]["bottleneck"]["utilization"] > 0.9
    assert found["links"]["bottleneck"]["drops"] == 0


def shared(queue, law):
    """Two BMCC flows and two of NewReno; rates of one flow of each kind as shares."""
    net = measured_load(2, queue, window=law)
    plain = flows(2, rtt=np.array([0.0417]), access_delay=0.0171, start=Start(5.0, 6.0))
    net = dataclasses.replace(net, flows=(*net.flows, plain), flow_names=("bmcc", "tcp"))
    found = simulate_packets(net, until=120.0, warmup=20.0, seeds=(1, 2, 3)).mean["flows"]
    return {name: group["goodput"] / 2.5e6 for name, group in found.items()}, found["bmcc"]


def test_sharing_with_tcp():
    """Sections 4.2.2 and 5.2: TCP starves BMCC at its own router, less at the modified one."""
    own, _ = shared(LoadFactor(), LAW)
    assert own["bmcc"] < 0.1
    assert own["tcp"] > 1.8
    modified, bmcc = shared(ModifiedLoadFactor(min_th=5.0, max_th=15.0), NEEDS_MARK)
    assert bmcc["reactions"] > 0
    assert modified["bmcc"] > 2 * own["bmcc"]


def test_gain_of_figure_11():
    """Beside a SACK flow of 20 ms a SACK flow of 10 ms gains, and BMCC does not: section 5.2."""
    times = {"until": 60.0, "warmup": 20.0, "seeds": range(1, 5)}
    runs = {
        name: simulate_packets(experiments("bmcc")[f"gain_{name}"].net(0), **times)
        for name in ("baseline", "bmcc", "short")
    }
    bmcc, short = (
        gain_and_loss(runs[name], runs["baseline"], aggressive="strong", other="weak")
        for name in ("bmcc", "short")
    )
    assert bmcc.gain + bmcc.gain_ci95 < 1 < short.gain - short.gain_ci95
    assert bmcc.loss - bmcc.loss_ci95 > 1 > short.loss + short.loss_ci95
