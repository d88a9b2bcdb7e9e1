"""Counts of unstable roots proven in ball arithmetic."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import extras
from fluidcc.analysis.certify import certify
from fluidcc.analysis.linear import Linear

# x' = a x + b x(t - 1). Hayes (1950); roots of x' = -b x(t - 1) cross at b = pi/2 + 2 k pi
HAYES = {
    (0.0, -1.57): 0,
    (0.0, -1.58): 2,
    (0.0, -(np.pi / 2) * (1 - 1e-9)): 0,
    (0.0, -(np.pi / 2) * (1 + 1e-9)): 2,
    (0.0, -8.0): 4,
    (0.5, -1.0): 0,
    (2.0, 1.0): 1,
    (-1.0, -5.0): 2,
    (-3.0, 2.9): 0,
}


@pytest.mark.parametrize("numbers", HAYES, ids=str)
def test_the_count_is_that_of_hayes(numbers):
    a, b = numbers
    found = certify(Linear.retarded(a, [[[b]]], [1.0]))
    assert found.unstable == HAYES[numbers], found.reason


def test_two_delays():
    # x' = -b (x(t - 1) + x(t - 3)) = -2 b x(t - 2) cos(s): i w is a root where cos(2 w) = 0 and
    # w = 2 b sin(2 w) cos(w), first at w = pi/4: b = pi/(4 sqrt(2)) = 0.5554
    first = np.pi / (4 * np.sqrt(2.0))
    for b, unstable in ((0.99 * first, 0), (1.01 * first, 2)):
        system = Linear.retarded(0.0, [[[-b]], [[-b]]], [1.0, 3.0])
        assert certify(system).unstable == unstable


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_root_on_the_axis_is_refused(shift):
    # s^2 + shift^2: roots at +- i shift, exactly
    found = certify(Linear.retarded([[0.0, 1.0], [-shift, 0.0]], [], []))
    assert found.unstable is None
    assert "too near the imaginary axis" in found.reason


def test_what_is_conserved_is_refused():
    system = Linear.retarded([[0.0]], [], [])
    conserved = Linear(**{**vars(system), "conserved": 1})
    assert "conserved" in certify(conserved).reason


@pytest.mark.parametrize(("name", "unstable"), [("hollot2001/slow", 0), ("hollot2001/fast", 2)])
def test_stability_of_a_scenario_as_a_theorem(name, unstable):
    net = fc.load(name)
    plain, proven = fc.stability(net), fc.stability(net, certify=True)
    assert (plain.proof, proven.proof) == ("double precision", "ball arithmetic")
    assert proven.unstable == plain.unstable == unstable
    assert proven.stable == (unstable == 0)
    assert proven.certified
    assert "in ball arithmetic" in repr(proven)
    assert proven.to_dict()["proof"] == "ball arithmetic"


def test_without_the_library_the_command_that_installs_it_is_told(monkeypatch):
    def absent(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(extras, "import_module", absent)
    with pytest.raises(extras.MissingExtra, match=r"pip install 'fluidcc\[certify\]'"):
        certify(Linear.retarded(0.0, [[[-1.0]]], [1.0]))
