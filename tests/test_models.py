"""What the cards of the bundled scenarios say."""

import numpy as np
import pytest

import fluidcc as fc


def test_hollot_equilibrium_solves_its_cubic():
    rest = fc.equilibrium(fc.load("hollot2001/slow"))
    link, tcp = rest.links["bottleneck"], rest.flows["tcp"]
    assert (link.queue - 150) * (750 + link.queue) ** 2 == pytest.approx(2 * 3600 * 550 / 0.1)
    assert link.signal * tcp.window[0] ** 2 == pytest.approx(2)
    assert (round(link.queue, 4), round(link.signal, 8)) == (194.4, 0.00807273)


def test_slow_and_fast_differ_in_the_filter_alone():
    slow, fast = fc.load("hollot2001/slow"), fc.load("hollot2001/fast")
    same = fc.replace(fast, {"link.queue.w_q": 1.33e-6})
    assert fc.dumps(same).splitlines()[1:] == fc.dumps(slow).splitlines()[1:]


def test_newreno_twin_differs_in_the_flows_alone():
    mod, twin = fc.load("misra2003/besteffort"), fc.load("misra2003/besteffort_newreno")
    assert mod.links[0].queue == twin.links[0].queue
    assert float(mod.links[0].capacity) == float(twin.links[0].capacity) == 630.0
    assert np.array_equal(mod.flows[0].rtt, twin.flows[0].rtt)


@pytest.mark.parametrize(
    ("w_q", "stable"), [(0.0023, True), (0.0024, False), (0.082, False), (0.084, True)]
)
def test_aggressive_flows_are_unstable_between_two_filters(w_q, stable):
    net = fc.replace(fc.load("misra2003/aggressive"), {"link.queue.w_q": w_q})
    found = fc.stability(net)
    assert found.certified and found.stable == stable
