"""Networks with load factors: known ones, told by a queue law of their own, and measured ones."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest
from packet_cases import advanced, begun, dumbbell, finished, flows, queue_memory, still

from fluidcc import Network, gain_and_loss, laws, simulate_packets
from fluidcc.bundled.validation.lab.experiments import experiments
from fluidcc.bundled.validation.lab.formulas import mean_error, share_above, share_below
from fluidcc.scenario.network import Start


class KnownLoad(laws.AbstractQueueLaw):
    """Tells one load factor, and marks every packet with one probability."""

    name: ClassVar[str] = "known_load"
    source: ClassVar[str] = "test"
    emits: ClassVar[tuple[str, ...]] = ("mark", "drop", "load")
    f: float = laws.param(0.5, "f", unit="1", doc="load factor", within="[0, inf)")
    p: float = laws.param(0.0, "p", unit="1", doc="probability", within="[0, 1]")

    def signal(self, x, seen):
        return laws.Signal(mark=self.p, load=self.f)


def known_load(queue: laws.AbstractQueueLaw, window: Any = None, **changes: Any) -> Network:
    """Flows of 100 ms that never fill their fast link."""
    given: dict[str, Any] = {
        "window": window or laws.BMCC(max_window=1e4),
        "feedback": laws.LoadFactorFeedback(),
        "rtt": np.array([0.1]),
        "start": Start(),
        "access_capacity": float("inf"),
        "sender": (("recovery", "newreno"),),
    }
    group = flows(changes.pop("count", 1), **(given | changes))
    return dumbbell(group, queue, capacity=1e6, delay=0.01, buffer=float("inf"))


def measured_load(
    count: int, queue: laws.AbstractQueueLaw | None = None, **changes: Any
) -> Network:
    """BMCC flows that share a link of 10 Mbit/s."""
    given: dict[str, Any] = {
        "window": laws.BMCC(max_window=1e3),
        "feedback": laws.LoadFactorFeedback(),
        "rtt": np.array([0.0413]),
        "access_delay": 0.0171,
        "start": Start(0.0, 1.0),
        "sender": (("recovery", "newreno"),),
    }
    group = flows(count, **(given | changes))
    return dumbbell(group, queue or laws.LoadFactor(), delay=0.0021, buffer=50.0)


# -- Load factors in packet runs: what routers sample, what receivers make of it
FLOWS = 400
CODE = laws.ADPM()


@pytest.mark.parametrize("law", [laws.LoadFactor, laws.ModifiedLoadFactor])
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_load_factor_of_a_standing_queue(law, gamma):
    """Eq. 1 at full load: (1 + kappa_1 q/(C t_p))/gamma."""
    more = {"min_th": 1e4, "max_th": 2e4} if law is laws.ModifiedLoadFactor else {"highest": np.inf}
    run = finished(still(60.0, law(gamma=gamma, **more)), 60.001)
    arrived, slow, factor = queue_memory(run, 3)
    assert slow == pytest.approx(60 - 20 - 2, abs=0.5)  # without those served and arriving
    assert factor == pytest.approx((1 + 0.75 * slow / 250) / gamma, abs=1.5 / 250)
    assert arrived <= 2  # a sample was taken just now


def coded(load, **changes):
    """Many receivers of a known load factor, with windows of a packet that nothing changes."""
    law = laws.BMCC(max_window=1.0)
    return known_load(KnownLoad(f=load), law, estimator=laws.ADPM(), count=FLOWS, **changes)


@pytest.mark.parametrize("load", [0.4, 0.9, 1.05])
@pytest.mark.parametrize("packets", [4, 20, 80])
def test_distribution_of_estimates_from_below(load, packets):
    run = finished(coded(load), 0.05 + 0.1 * packets)
    assert set(run.flows["received"]) == {packets + 1}
    found = run.receivers["estimate"]
    assert np.all(found <= load)
    for value in np.linspace(CODE.lowest, load, 6)[1:]:
        expected = share_below(CODE, value, load, packets)
        spread = np.sqrt(expected * (1 - expected) / FLOWS)
        assert np.mean(found < value) == pytest.approx(expected, abs=5 * spread + 1e-12)


@pytest.mark.parametrize("load", [0.15, 0.4, 0.9, 1.05])
@pytest.mark.parametrize("packets", [4, 20, 80])
def test_mean_error_of_estimates_from_above(load, packets):
    run = begun(coded(load))
    run.receivers["estimate"] = CODE.highest
    error = advanced(run, 0.05 + 0.1 * packets).receivers["estimate"] - load
    assert np.all(error >= 0)
    spread = error.std(ddof=1) / np.sqrt(FLOWS)
    assert error.mean() == pytest.approx(mean_error(CODE, load, packets), abs=5 * spread)
    for value in np.linspace(load, CODE.highest, 6)[:-1]:
        expected = share_above(CODE, value, load, packets)
        spread = np.sqrt(expected * (1 - expected) / FLOWS)
        found = np.mean(error > value - load)
        assert found == pytest.approx(expected, abs=5 * spread + 1e-12)


# -- BMCC senders against the closed forms of Qazi, Znati and Andrew, section 3.3
WIDE = laws.BMCC(max_window=1e4)
MARKED = dataclasses.replace(WIDE, needs_mark=True)
T_P, TRIP = 0.2, 0.1
OPEN = ("syn", False), ("recovery", "newreno")  # or the SYN may be lost where all is marked


def windows(net, *times):
    """Windows of the first flow at some times."""
    run = begun(net)
    return [float(advanced(run, t).flows["window"][0]) for t in times]


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
    law = dataclasses.replace(WIDE, md=md)
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
    law = dataclasses.replace(WIDE, lowest=0.1, mild=0.11)  # so that little grows in between
    group = {"initial_window": 4000.0} | dict(OPEN)
    net = known_load(KnownLoad(f=load, p=1.0), law, sender=tuple(group.items()))
    before, after = windows(net, 0.35, 0.75)
    assert after / before == pytest.approx(0.65**4, rel=0.01)


def test_marks_of_a_load_that_is_known_do_not_decrease_twice():
    """A load factor of 120 % and its (11) marks are one signal: one decrease a t_p."""
    group = {"initial_window": 4000.0} | dict(OPEN)
    net = known_load(KnownLoad(f=1.3, p=1.0), estimator=laws.ADPM(), sender=tuple(group.items()))
    found = windows(net, 0.3, 0.5, 0.7)
    assert np.divide(found[1:], found[:-1]) == pytest.approx(0.65)


def test_needs_mark_waits_for_marks():
    """Overload alone does nothing; with all packets marked, a decrease in each round trip."""
    group = {"initial_window": 1000.0} | dict(OPEN)
    given = {"sender": tuple(group.items())}
    assert windows(known_load(KnownLoad(f=1.1), MARKED, **given), 3.0) == [1000.0]
    net = known_load(KnownLoad(f=1.1, p=1.0), MARKED, **given)
    before, after = windows(net, 0.35, 0.75)
    assert after / before == pytest.approx((0.875 - 0.1125) ** 4)


@pytest.mark.parametrize("estimator", [None, laws.ADPM()], ids=["exact", "adpm"])
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
    own, _ = shared(laws.LoadFactor(), WIDE)
    assert own["bmcc"] < 0.1
    assert own["tcp"] > 1.8
    modified, bmcc = shared(laws.ModifiedLoadFactor(min_th=5.0, max_th=15.0), MARKED)
    assert bmcc["window_reductions"] > 0
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
