"""The mean of many packets under a rule is the fluid model's drift.

Reactions are random: their means are compared within 5 standard errors of a run with a fixed
seed (chosen once; a right rule fails one seed in two million). Spreading and averaging are not:
their means are computed exactly. What judges is the battery of the package.
"""

import numpy as np
import pytest
import sympy as sp

from fluidcc import Link
from fluidcc.check import means
from fluidcc.laws import RED, Arrival
from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS
from fluidcc.model.rates import queue_law_rate

WINDOW_LAWS = list(LAWS["window"].values())
SPREADINGS = list(LAWS["spreading"].values())
REACTIONS = [
    kind(growth=growth) if "growth" in infos(kind) else kind()
    for kind in LAWS["reaction"].values()
    for growth in (("clean", "all") if "growth" in infos(kind) else ("",))
]


@pytest.mark.parametrize(("p", "w"), means.POINTS)
@pytest.mark.parametrize("reaction", REACTIONS, ids=str)
def test_senders_drift_is_the_mean_of_packet_events(reaction, p: float, w: int):
    counts = means.counts_per_block(reaction, p, w)
    assert means.shares_are_means(reaction, p, w, counts) is None
    for law in (k() for k in WINDOW_LAWS):
        assert means.drift_is_mean(law, reaction, p, w, counts) is None


@pytest.mark.parametrize("kind", LAWS["queue"].values(), ids=lambda k: k.name)
def test_memories_of_queues_follow_their_drift(kind):
    assert means.memory_follows_its_drift(kind()) is None


# -- spreading
def mean_gap(chance, longest: int) -> sp.Rational:
    """Mean number of packets from one signal to the next, by the chances after a signal."""
    mean, left = sp.Integer(0), sp.Integer(1)
    for gap in range(1, longest + 1):
        mean += left
        left *= 1 - sp.nsimplify(chance(sp.Integer(gap)))
    assert left == 0  # a signal has come with certainty
    return mean


@pytest.mark.parametrize("m", [1, 2, 3, 10, 49])
@pytest.mark.parametrize("kind", SPREADINGS[1:], ids=lambda k: k.name)
def test_spreading_meets_its_rate(kind, m: int):
    spreading, p = kind(), sp.Rational(1, m)
    gap = mean_gap(lambda j: spreading.gap_probability(p, j), 2 * m)
    assert 1 / gap == sp.nsimplify(spreading.rate(p))


@pytest.mark.parametrize("size", [sp.Integer(1), sp.Integer(2), sp.Rational(1, 2)])
@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize("kind", SPREADINGS[1:], ids=lambda k: k.name)
def test_red_marks_packets_of_one_size_at_its_long_run_rate(kind, gentle: bool, size):
    law = RED(
        min_th=sp.Integer(10), max_th=sp.Integer(20), p_max=sp.Rational(1, 4), gentle=gentle,
        bytes=True, spreading=kind(),
    )  # fmt: skip
    x = sp.Integer(14)  # p_b = 1/10
    seen = Arrival(sp.Integer(1), sp.Integer(0), x, sp.Integer(1000), size)
    gap = mean_gap(lambda j: law.gap_probability(x, seen, j), 40)
    assert 1 / gap == sp.nsimplify(law.signal(x, seen).mark)


# -- averages
@pytest.mark.parametrize("pole", ["capacity", "arrivals"])
def test_red_average_of_many_packets_follows_its_drift(pole: str):
    # constant queue: v' = K (q - v) has the solution q + (v0 - q) exp(K t), K from the drift
    capacity, offered, queue, start, time = 1250.0, 1500.0, 60.0, 20.0, 0.4
    law = RED(pole=pole)
    counted = capacity if pole == "capacity" else offered
    v = start
    for _ in range(round(counted * time)):
        v += law.on_arrival(v, Arrival(1.0, 1 / counted, queue, capacity))
    link = Link(law, capacity=capacity)
    pole_rate = float(queue_law_rate(link, start, queue, offered)) / (queue - start)
    assert v == pytest.approx(queue + (start - queue) * np.exp(-pole_rate * time), rel=1e-12)
    assert pole_rate == pytest.approx(-counted * np.log(1 - law.w_q), rel=1e-14)
