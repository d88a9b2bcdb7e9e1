"""Twenty random legal networks; `networks.py` beside it judges ten thousand."""

import dataclasses

import numpy as np
import pytest
from net_cases import OWN, networks, structure
from net_checks import known_numbers, loads_of_links, rescaled, split_and_permuted, units
from networks import Found, Structure

import fluidcc as fc
from fluidcc.laws.own import loaded

SLOW = "hollot2001/slow"


@pytest.fixture(autouse=True)
def _own_laws():
    with loaded(OWN):
        yield


def judge(number: int, count: int) -> Found:
    return Structure(1, number, lambda *at: None).judge(count, 0, None)


@pytest.mark.parametrize("number", [11, 31])
def test_what_is_answered_holds(number):
    found = judge(number, 10)
    assert found.networks + sum(found.refused.values()) == 10
    assert found.networks > 5
    assert not found.findings, found.findings[0]
    assert found.withheld.total() <= 1, found.examples


def test_a_number_gives_the_same_networks_again():
    form = structure(1, 5)
    assert fc.dumps(form) == fc.dumps(structure(1, 5))
    again = [networks(form, 1, 5, 4) for _ in "ab"]
    assert [v if isinstance(v, str) else fc.dumps(v) for v in again[0]] == [
        v if isinstance(v, str) else fc.dumps(v) for v in again[1]
    ]


def test_a_wrong_answer_is_found():
    rest = fc.equilibrium(fc.load(SLOW))
    link = rest.links["bottleneck"]
    idle = dataclasses.replace(link, utilization=0.9)
    wrong = dataclasses.replace(rest, links={"bottleneck": idle})
    assert list(known_numbers(rest)) == list(loads_of_links(rest)) == []
    assert "utilization of 0.9" in next(loads_of_links(wrong))
    assert "undetermined" in next(known_numbers(dataclasses.replace(rest, status="undetermined")))
    nowhere = dataclasses.replace(link, queue=np.nan)
    assert list(known_numbers(dataclasses.replace(rest, links={"bottleneck": nowhere})))
    assert "queue" in " ".join(units(fc.replace(rest.net, {"link.capacity": 3700.0}), rest))


def test_the_same_network_is_written_otherwise():
    net = fc.load("misra2003/mixed")
    slow = rescaled(net, 60.0)
    assert slow.links[0].capacity == pytest.approx(net.links[0].capacity / 60)
    assert slow.flows[0].rtt == pytest.approx(60 * net.flows[0].rtt)
    assert slow.flows[0].loss.min_rto == pytest.approx(60 * net.flows[0].loss.min_rto)
    assert slow.links[0].buffer == net.links[0].buffer
    other = split_and_permuted(net)
    assert other.flow_names == ("other_half", *net.flow_names[::-1])
    assert sum(f.n.sum() for f in other.flows) == sum(f.n.sum() for f in net.flows)
