"""The mean of many packets under a rule is the fluid model's drift.

Reactions are random: their means are compared within 5 standard errors of a run with a fixed
seed (chosen once; a right rule fails one seed in two million). Spreading and averaging are not:
their means are computed exactly.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from law_cases import Case

from fluidcc import ops
from fluidcc.fluid.rates import queue_law_rate
from fluidcc.fluid.senders import sender_change, start_sender
from fluidcc.laws.law import Ack, Arrival, Shares, Signal, Since
from fluidcc.laws.parameters import infos
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT, PerMark, Refractory
from fluidcc.laws.registry import LAWS
from fluidcc.network import Flows, Link

RTT = 0.25  # s; with windows of powers of two, ACKs come at exact binary fractions of it
ERRORS = 5
WINDOW_LAWS = list(LAWS["window"].values())
SPREADINGS = list(LAWS["spreading"].values())


def counts_per_block(reaction, p: float, w: int, blocks: int, seed: int) -> np.ndarray:
    """(growing ACKs, reactions) in each of many blocks of ACKs under a reaction's own rules.

    The window is held at w and the ACKs are spaced RTT/w. `once_per_rtt` states its mean for
    blocks of w ACKs, so its window of data ends with the block; the blocks of the others are
    long enough to hold many reactions.
    """
    fixed = isinstance(reaction, OncePerRTT)
    length = w if fixed else 50 * w
    growing, ready = Case(reaction, "growing").sympy, Case(reaction, "ready").sympy
    marks = np.random.default_rng(seed).random((blocks, length)) < p
    counts, since = np.zeros((blocks, 2)), 10**9
    for block in range(blocks):
        reacted = False
        for marked in marks[block].tolist():
            since += 1
            time = Since(since * RTT / w, RTT, 0.0 if fixed and reacted else 1.0)
            counts[block, 0] += growing(*time, float(marked))[0]
            if marked and ready(*time)[0]:
                counts[block, 1] += 1
                since, reacted = 0, True
    return counts / length


def assert_mean(samples: np.ndarray, expected: float) -> None:
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert abs(samples.mean() - expected) <= ERRORS * error + 1e-12


REACTIONS = [
    kind(growth=growth) if "growth" in infos(kind) else kind()
    for kind in LAWS["reaction"].values()
    for growth in (("clean", "all") if "growth" in infos(kind) else ("",))
]


@pytest.mark.parametrize(("p", "w"), [(0.02, 16), (0.3, 8)])
@pytest.mark.parametrize("reaction", REACTIONS, ids=str)
def test_senders_drift_is_the_mean_of_packet_events(reaction, p: float, w: int):
    blocks = 4000 if isinstance(reaction, OncePerRTT) else 100
    counts = counts_per_block(reaction, p, w, blocks, seed=20261)
    shares = reaction.shares(p, float(w))
    assert_mean(counts[:, 0], float(shares.growing))
    assert_mean(counts[:, 1], float(shares.heard))
    pace = 40.0  # ACKs per second, of all the flows' rates
    one = Ack(1.0, 0.0, RTT, 0.9, p)
    for law in (k() for k in WINDOW_LAWS):
        flows = Flows(law, n=jnp.ones(1), rtt=jnp.array([RTT]), reaction=reaction)
        signal = Signal(jnp.array([p]), jnp.array([0.0]), jnp.array([0.9]))
        acks, window = jnp.array([pace]), jnp.array([float(w)])
        rate = sender_change(
            flows, start_sender(flows, window), growth=acks * shares.growing, acks=acks,
            carried=acks, signal=signal, rtt=flows.rtt,
        ).law  # fmt: skip
        s = law.start(float(w))
        own = [float(law.window(change)) for change in (law.on_ack(s, one), law.on_mark(s, one))]
        grown = ops.slope(lambda k: law.on_ack(s, Ack(0.0, k, RTT, 0.9, p)))  # noqa: B023
        changes = pace * (counts @ np.array(own)) + float(law.window(grown))
        assert_mean(changes, float(law.window(rate)[0]))


def test_refractory_mean_is_that_of_a_renewal_process():
    # dead for w packets, then a geometric wait: a reaction each w + 1/p packets, exactly
    w, p = sp.symbols("w p", positive=True)
    shares = Refractory().shares(p, w)
    assert sp.simplify(shares.heard - 1 / (w + 1 / p)) == 0


def test_per_mark_counts_every_mark():
    assert PerMark().shares(0.25, 7.0) == Shares(0.75, 0.25)


# -- spreading --------------------------------------------------------------------------------


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
    gap = mean_gap(lambda j: spreading.chance(p, j), 2 * m)
    assert 1 / gap == sp.nsimplify(spreading.rate(p))


@pytest.mark.parametrize(
    ("name", "rate"),
    [("geometric", sp.Rational(1, 10)), ("uniform", sp.Rational(2, 11)),
     ("wait", sp.Rational(2, 29))],
)  # fmt: skip
def test_spreading_at_one_in_ten(name: str, rate: sp.Rational):
    spreading = LAWS["spreading"][name]()
    assert spreading.rate(sp.Rational(1, 10)) == rate
    assert float(spreading.rate(0.1)) == pytest.approx(float(rate), rel=1e-15)


def test_geometric_spreading_forgets():
    spreading, p, gap = LAWS["spreading"]["geometric"](), sp.Symbol("p"), sp.Symbol("j")
    assert spreading.chance(p, gap) == spreading.rate(p) == p


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
    gap = mean_gap(lambda j: law.chance(x, seen, j), 40)
    assert 1 / gap == sp.nsimplify(law.signal(x, seen).mark)


# -- averages ---------------------------------------------------------------------------------


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


def test_red_average_ends_at_the_queue():
    law = RED()
    settled = 5.0 + law.on_arrival(5.0, Arrival(1e12, 1e12, 31.0, 1250.0))
    assert settled == 31.0
