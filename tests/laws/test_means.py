"""The mean of many packets under a rule is the fluid model's drift.

Reactions are random: their means are compared within 5 standard errors of a run with a fixed
seed (chosen once; a right rule fails one seed in two million). Spreading and averaging are not:
their means are computed exactly. What judges is the battery of the package.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq

from fluidcc import Link
from fluidcc.check import means
from fluidcc.laws import PFTK, RED, Accumulated, Ack, Arrival, Recovery, Reno, Uniform, Wait
from fluidcc.laws.parameters import infos
from fluidcc.laws.reaction import backed_off, indications
from fluidcc.laws.registry import LAWS
from fluidcc.model.rates import queue_law_rate

WINDOW_LAWS = list(LAWS["window"].values())
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
@pytest.mark.parametrize("kind", [Uniform, Wait], ids=lambda k: k.name)
def test_spreading_meets_its_rate(kind, m: int):
    spreading, p = kind(), sp.Rational(1, m)
    gap = mean_gap(lambda j: spreading.gap_probability(p, j), 2 * m)
    assert 1 / gap == sp.nsimplify(spreading.rate(p))


@pytest.mark.parametrize("m", [1, 2, 7, 20, 27, 40, 1000, 3001])
def test_accumulated_probabilities_meet_their_rate_to_one_packet(m):
    spreading = Accumulated()
    left, gap = 1.0, 0.0
    for number in range(1, 9 * m + 2):
        gap += left
        left *= 1 - float(spreading.gap_probability(1 / m, float(number)))
    assert left == 0
    assert abs(1 / float(spreading.rate(1 / m)) - gap) < 1 + 3e-4 * gap


@pytest.mark.parametrize("size", [sp.Integer(1), sp.Integer(2), sp.Rational(1, 2)])
@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize("kind", [Uniform, Wait], ids=lambda k: k.name)
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


# -- What losses mean in the fluid model, against series, limits and the full model of Padhye et al
R = 0.1


@pytest.mark.parametrize("drop", [0.0, 0.01, 0.3, 0.9])
def test_mean_length_of_a_series_of_timeouts(drop: float):
    # k timeouts in a row with probability drop^(k-1) (1 - drop), lasting 1 + 2 + 4 + ... 64 + 64
    lengths = np.cumsum(2.0 ** np.minimum(np.arange(2000), 6))
    chances = drop ** np.arange(2000) * (1 - drop)
    assert backed_off(drop) == pytest.approx(lengths @ chances, rel=1e-12)


@pytest.mark.parametrize("w", [1.0, 5.0, 200.0])
def test_one_indication_per_round_trip_at_most(w: float):
    acks = w / R
    assert indications(1e-9, w, acks) == pytest.approx(acks * 1e-9, rel=1e-6)
    assert indications(1.0, w, acks) * R == pytest.approx(1.0, rel=1e-11)
    marks = np.random.default_rng(3).random((20_000, round(w))) < 0.05
    windows = marks.any(axis=1)
    error = windows.std() / np.sqrt(len(windows))
    assert abs(windows.mean() - indications(0.05, w, acks) * R) <= 5 * error


def test_small_windows_time_out():
    closure = Recovery()
    for w, share in ((2.0, 1.0), (3.0, 1.0), (6.0, 0.5), (300.0, 0.01)):
        lost = closure.lost(0.02, w, R, w / R, "reno")
        found = indications(0.02, w, w / R)
        assert lost.timing_out == pytest.approx(share * found, rel=1e-14)
        assert lost.recovering + lost.timing_out == pytest.approx(found, rel=1e-14)


def test_time_in_recovery():
    # a busy period after each indication: running/(1 - running) = mean time between / mean stay
    drop, w, rtt = 0.02, 12.0, 0.3
    found = indications(drop, w, w / rtt)
    timeout = 0.25 * 2 * rtt * backed_off(drop)
    lost_packets = drop * w / (1 - (1 - drop) ** w)  # in a window with a loss
    for recovery, trips in (("reno", 1.0), ("sack", 1.0), ("newreno", lost_packets)):
        stay = 0.75 * trips * rtt + timeout
        expected = (1 / found) / (1 / found + stay)
        assert Recovery().lost(drop, w, rtt, w / rtt, recovery).running == pytest.approx(expected)


# -- Padhye et al.
def full_model(p: float, rtt: float, timer: float) -> float:
    """Throughput [packet/s] by the full model, one ACK per packet, no limit of the window."""
    w = 1 + np.sqrt(8 * (1 - p) / (3 * p) + 1)  # (2 + b)/(3b) = 1
    clean = (1 - p) ** 3
    timeout = min(1.0, (1 - clean) * (1 + clean * (1 - (1 - p) ** (w - 3))) / (1 - (1 - p) ** w))
    series = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    sent = (1 - p) / p + w + timeout / (1 - p)
    return sent / (rtt * (w / 2 + 1) + timeout * timer * series / (1 - p))


@pytest.mark.parametrize(("p", "within"), [(1e-4, 0.005), (1e-3, 0.01), (0.01, 0.02), (0.03, 0.02)])
@pytest.mark.parametrize("rtt", [0.05, 0.1, 0.5])
def test_pftk_approximates_the_full_model(p: float, within: float, rtt: float):
    closure = PFTK()
    rate = float(closure.window(p, rtt)) / rtt
    assert rate == pytest.approx(full_model(p, rtt, closure.timer(rtt)), rel=within)


def test_pftk_tends_to_the_square_root_law():
    p = 1e-10
    assert float(PFTK().window(p, R)) == pytest.approx(np.sqrt(1.5 / p), rel=1e-4)


@pytest.mark.parametrize(("p", "within"), [(1e-3, 0.1), (0.01, 0.02), (0.03, 0.08), (0.1, 0.2)])
@pytest.mark.parametrize("rtt", [0.05, 0.1, 0.5])
def test_recovery_is_near_the_full_model(p: float, within: float, rtt: float):
    # the window where growth balances, at the rate of the time that is not spent in recovery
    closure, law = Recovery(), Reno()

    def lost(w: float):
        return closure.lost(p, w, rtt, w / rtt, law.recovery)

    def drift(w: float) -> float:
        halved = lost(w).recovering * law.on_loss(w, Ack(1.0, 0.0, rtt))
        return 1 / rtt + halved + lost(w).timing_out * min(1 - w, 0.0)

    w = brentq(drift, 1e-3, 1e5)
    rate = lost(w).running * w / rtt
    assert rate == pytest.approx(full_model(p, rtt, closure.timer(rtt)), rel=within)
