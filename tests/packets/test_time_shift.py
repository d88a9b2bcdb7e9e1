"""Two queues of one link, packet by packet: the one that goes first by a time shift, and the delay
that the law of the other one sees.
"""

from collections import deque

import numpy as np
import pytest
from packet_cases import events, watched

import fluidcc as fc

CAPACITY = 40e6 / 8 / 1500  # packet/s


def dual(**changes):
    """DualPI2 with cross traffic of all sizes in both queues."""
    both = {"cross_sizes": "exponential", "cross": 0.25 * CAPACITY}
    usual = {f"links.{k}.{key}": v for k in ("classic", "l4s") for key, v in both.items()}
    usual |= {f"flows.{group}.access_delay": 1e-3 for group in ("reno", "scalable")}
    own = {k.replace("__", "."): v for k, v in changes.items()}
    return fc.replace(fc.load("rfc9332/dualpi2"), usual | own)


def by_definition(arrivals, shift, rate):
    """Services of two queues, class 0 first unless the head of class 1 has waited longer by
    `shift`, and how often it had: RFC 9332, figure 10, lines 28 to 33.
    """
    coming, heads, services, free, turned = deque(arrivals), (deque(), deque()), [], -1.0, 0
    while coming or any(heads):
        now = free
        if not any(heads):  # who comes first to an idle line goes at once
            now = max(free, coming[0][0])
            time, c, size = coming.popleft()
            heads[c].append((time, size))
        while coming and coming[0][0] <= free:  # who comes as another goes is there for the choice
            time, c, size = coming.popleft()
            heads[c].append((time, size))
        first, second = (now - own[0][0] if own else 0.0 for own in heads)
        late = first + shift < second
        turned += bool(heads[0]) and late
        chosen = 0 if heads[0] and not late else 1
        _, size = heads[chosen].popleft()
        services.append((now, chosen, size))
        free = now + size / rate
    return services, turned


@pytest.mark.parametrize(("shift", "least"), [(0.0, 500), (0.003, 500), (1.0, 0)])
def test_services_are_those_of_the_definition(shift, least):
    net = dual(links__l4s__shift=shift)
    arrivals, services = watched(net, 4.0, lambda _: [1, 0])
    assert len({size for _, _, size in services}) > 100 and len(services) > 8000
    expected, turned = by_definition(arrivals, shift, CAPACITY * 1500)
    assert turned >= least and (turned > 0) == (least > 0)
    assert [s[1:] for s in services] == [s[1:] for s in expected[: len(services)]]
    starts = np.array([[t for t, _, _ in s[: len(services)]] for s in (services, expected)])
    np.testing.assert_allclose(starts[0], starts[1], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("scheduler", "value"), [("weight", 0.75), ("shift", 0.0)])
def test_the_law_behind_sees_the_longer_delay_of_both_heads(scheduler, value):
    """At every tick: RFC 9332, appendix A.2, line 2a of figure 8, and sch_dualpi2."""
    changes = {f"links__l4s__{scheduler}": value, "links__l4s__cross": 0.9 * CAPACITY}
    before, longer = 0.0, [0, 0]
    for run in events(dual(**changes), 4.0, seed=3):
        now, delay = float(run.state["now"][0]), float(run.law_states[0][1])
        if delay != before:  # a tick
            arrived = [float(run.packets[int(run.ports[k]["head"])]["arrives"]) for k in (0, 1)]
            waits = [now - t if run.ports[k]["count"] else 0.0 for k, t in enumerate(arrived)]
            assert delay == max(waits)
            longer[int(np.argmax(waits))] += 1
            before = delay
    assert sum(longer) >= 245 and min(longer) > 20
