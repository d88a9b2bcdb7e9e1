"""Load factors in packet runs: what routers sample, what packets bring, what receivers make of it.

References: Qazi, Znati and Andrew (2010), eq. 1 and section 3.2, and the closed forms of ADPM.
Seeds are fixed; shares are compared within 5 standard errors.
"""

import dataclasses

import numba
import numpy as np
import pytest
from load_cases import KnownLoad, Stepwise, known_load
from packet_cases import dumbbell, flows

from fluidcc.laws.load_code import ADPM
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.engine.records import FLOW_RECORD, flow_at
from fluidcc.packets.engine.streams import hashed, stream_key, uniform
from fluidcc.scenario.network import Network, Start

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


@pytest.mark.parametrize("law", [LoadFactor(), ModifiedLoadFactor()])
def test_idle_time_is_no_load(law):
    """A window of 5 packets on a link that has room for 20 of them."""
    run = Stepwise(steady(5.0, law)).until(20.0)
    assert run.queue_block(0, 3)[2] == pytest.approx(5 / 20, abs=0.02)


def test_short_packets_are_a_part_of_the_load():
    """The connection is opened by 40 bytes of a link that counts in 1000."""
    run = Stepwise(known_load(LoadFactor(t_p=0.15), rtt=np.array([0.2]))).until(0.1)
    assert run.queue_block(0, 1)[0] == pytest.approx(0.04)


@numba.njit
def _hashes(address, count):
    out = np.empty(count)
    for k in range(count):
        out[k] = hashed(flow_at(address, 0).hash_key, k)
    return out


def test_hash_is_a_draw_of_the_flow():
    flow = np.zeros(1, FLOW_RECORD)
    flow["hash_key"] = key = stream_key(3, "hash", 5)
    found = _hashes(flow.ctypes.data, 2000)
    assert found.tolist() == [uniform(key, number) for number in range(2000)]
    assert np.mean(found) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 2000))


def test_one_bit_is_enough():
    """`decode` asks two things of a load: is it above the hash, and can it be told at all."""
    for place in np.linspace(0, 0.999, 57).tolist():
        value = CODE.hash_value(place)
        ranges = ((0.0, value), (value + 1e-9, 1.2 - 1e-9))
        below, above = (
            {CODE.decode(0.8, place, f) for f in np.linspace(*ends, 9).tolist()} for ends in ranges
        )
        beyond = {CODE.decode(0.8, place, f) for f in (1.2, 2.0, 1e300)}
        assert len(below) == len(above) == len(beyond) == 1


def test_a_hash_of_one_tells_nothing():
    for estimate in (0.0, 0.15, 0.8, 1.2):
        for load in (0.0, 0.5, 1.19):
            assert CODE.decode(estimate, 1.0, load) == pytest.approx(0.0, abs=1e-15)


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


@pytest.mark.parametrize("estimator", [None, ADPM()])
def test_senders_know_what_the_last_acknowledgement_told(estimator):
    net = known_load(KnownLoad(f=0.6), **({"estimator": estimator} if estimator else {}))
    run = Stepwise(net)
    assert run.until(0.0999).flow("load") == 0  # the ACK of the SYN says nothing yet
    known = run.until(2.0).flow("load")
    assert known == pytest.approx(0.6, abs=0.05 if estimator else 0)
    assert known <= run.estimates()


def test_severe_overload_is_known_after_one_packet():
    assert np.all(Stepwise(coded(1.3)).until(0.25).estimates() == 1.2)


def test_the_busiest_link_is_told():
    loads = (KnownLoad(f=0.3), KnownLoad(f=0.8), Droptail(), KnownLoad(f=0.5))
    net = known_load(loads[0])
    links = tuple(dataclasses.replace(net.links[0], queue=law) for law in loads)
    group = dataclasses.replace(net.flows[0], route=(0, 1, 2, 3))
    names = ("a", "b", "c", "d")
    whole = Network(links=links, flows=(group,), link_names=names)
    assert Stepwise(whole).until(1.0).flow("load") == 0.8


def test_acknowledgements_keep_what_they_tell():
    """A busier link on the way back changes nothing."""
    net = known_load(KnownLoad(f=0.3))
    back = dataclasses.replace(net.links[0], queue=KnownLoad(f=0.9))
    group = dataclasses.replace(net.flows[0], reverse_route=(1,))
    net = Network((net.links[0], back), (group,), link_names=("there", "back"))
    assert Stepwise(net).until(1.0).flow("load") == 0.3


@pytest.mark.parametrize("law", [LAW, NEEDS_MARK, FALLBACK])
def test_marks_hide_the_code_or_are_the_code(law):
    """All packets marked at half load: only receivers that trust marks know of any load."""
    begun = (("recovery", "newreno"), ("syn", False))  # SYNs would be dropped
    net = known_load(KnownLoad(f=0.5, p=1.0), law, estimator=ADPM(), sender=begun)
    run = Stepwise(net).until(5.0)
    assert run.estimates() == (1.2 if law.marks_tell_load else 0.0)


def test_load_factors_need_someone_to_tell_and_to_hear():
    """Flows that do not read load factors are told nothing and lose nothing by it."""
    plain = flows(3, start=Start(0.0, 1.0))
    found = [
        Stepwise(dumbbell(plain, queue, buffer=60.0)).until(20.0).flow("acked").tolist()
        for queue in (Droptail(), KnownLoad(f=0.7))
    ]
    assert found[0] == found[1]
