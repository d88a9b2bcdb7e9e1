"""Twenty random legal networks; `networks.py` beside it judges ten thousand."""

import dataclasses

import numpy as np
import pytest
from net_cases import OWN, every_law
from net_checks import known_numbers, loads_of_links, units
from networks import judge

import fluidcc as fc
from fluidcc.laws.own import loaded

SLOW = "hollot2001/slow"


@pytest.fixture(autouse=True)
def _own_laws():
    with loaded(OWN):
        yield


@pytest.mark.parametrize("law", ["fast", "threshold"])
def test_what_is_answered_holds(law):
    """Of networks with a law whose rest is no jump of a rule."""
    number = next(k for k, own in enumerate(every_law()) if own.name == law)
    found = judge(1, number, 10)
    assert found.networks + sum(found.refused.values()) == 10
    assert found.networks > 5
    assert not found.findings, found.findings[0]
    assert found.withheld.total() <= 1, found.examples


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
