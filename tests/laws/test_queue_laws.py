"""Queue laws against the published algorithms, written out here in plain Python."""

import itertools

import numpy as np
import pytest
from scipy.signal import cont2discrete

from fluidcc import laws

Adapted = laws.AdaptiveRED().state_of
Load, ModifiedLoad = laws.LoadFactor().state_of, laws.ModifiedLoadFactor().state_of
Control = laws.PI().state_of

CAPACITY = 1250.0  # packet/s


def found(queue: float, *, count: float = 0.0, elapsed: float = 0.0) -> laws.Arrival:
    return laws.Arrival(count, elapsed, queue, CAPACITY)


def after(x, change):
    """The state after a change."""
    if not isinstance(x, tuple):
        return x + change
    return type(x)(*(a + b for a, b in zip(x, change, strict=True)))


# -- adaptive RED
def fig3(p: float, average: float, target: float) -> float:
    """Govindaswamy et al. (2012), Fig. 3."""
    if average > target and p < 0.5:
        return p + min(0.01, p / 4)
    if average < target and p > 0.01:
        return p * 0.9
    return p


@pytest.mark.parametrize("average", [26.0, 49.9, 50.0, 50.1, 74.0])
@pytest.mark.parametrize("p", [0.001, 0.01, 0.0101, 0.03, 0.1, 0.4999, 0.5, 0.9])
def test_adaptive_red_steps_as_published(average: float, p: float):
    x = Adapted(average, p)
    moved = after(x, laws.AdaptiveRED().on_tick(x, found(0.0)))
    assert moved == pytest.approx((average, fig3(p, average, 50.0)), rel=1e-14)


REDS = {
    laws.RED: lambda v: v,
    laws.AdaptiveRED: lambda v: Adapted(v, 0.1),
    laws.ModifiedLoadFactor: lambda v: ModifiedLoad(0.0, v, 0.7, v, 0.1),
}


@pytest.mark.parametrize(
    "spreading", [laws.Geometric(), laws.Uniform(), laws.Wait()], ids=lambda s: s.name
)
@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize("kind", REDS, ids=lambda kind: kind.name)
def test_red_marks_and_drops_all_above_its_last_threshold(kind, gentle, spreading):
    """However long ago the last choice was; small packets in byte mode by their share."""
    law = kind(gentle=gentle, spreading=spreading, bytes=True, min_th=20.0, max_th=60.0)
    last = 120.0 if gentle else 60.0
    for size, share in ((1.0, 1.0), (1.5, 1.0), (0.04, 0.04)):
        packet = found(5.0)._replace(size=size)
        x = REDS[kind](last + 1e-9)
        said = law.signal(x, packet)
        assert (said.mark, said.drop, law.gap_probability(x, packet, 1.0)) == (share, share, share)
        below = law.signal(REDS[kind](last), packet)
        assert below.drop == 0.0
        assert gentle or below.mark < 0.5


# -- BLUE
@pytest.mark.parametrize(
    ("trigger", "queue", "step"),
    [("queue", 0.0, -0.002), ("queue", 1e-9, 0.0), ("queue", 50.0, 0.0), ("queue", 50.1, 0.02),
     ("loss", 0.0, -0.002), ("loss", 49.9, 0.0), ("loss", 50.0, 0.02),
     ("loss", 50.0 * (1 - 1e-12), 0.02)],
)  # fmt: skip
def test_blue_steps_at_its_triggers(trigger: str, queue: float, step: float):
    law = laws.BLUE(trigger=trigger)
    assert law.on_tick(0.3, found(queue)) == pytest.approx(step, abs=1e-16)


# -- load factors
@pytest.mark.parametrize("steps", [1, 7])
def test_the_load_factor_is_eq1(steps: int):
    law = laws.LoadFactor(t_p=0.2, kappa_1=0.75, gamma=0.9)
    x, arrivals, queue = Load(0.0, 40.0, 0.0), 300.0, 40.0
    for _ in range(steps):
        part = found(queue, count=arrivals / steps, elapsed=0.2 / steps)
        x = after(x, law.on_arrival(x, part))
    assert x.factor == 0.0  # held until the period ends
    x = after(x, law.on_tick(x, found(queue)))
    expected = (arrivals + 0.75 * queue) / (0.9 * CAPACITY * 0.2)
    assert x == pytest.approx((0.0, queue, expected), rel=1e-14)
    assert law.signal(x, found(0.0)).load == x.factor


# -- PI and REM
def test_the_weights_of_pi_are_those_published():
    new, old = laws.PI().weights
    assert (f"{new:.3e}", f"{old:.3e}") == ("1.822e-05", "1.816e-05")


def test_pi_is_the_bilinear_sample_of_its_controller():
    law = laws.PI(k_pi=2e-4, z=0.8, q_ref=0.0, interval=0.05)
    ((new, old),), (_, feedback), _ = cont2discrete(
        ([law.k_pi / law.z, law.k_pi], [1.0, 0.0]), law.interval, method="bilinear"
    )
    queues = np.random.default_rng(7).uniform(0.0, 40.0, 50)
    x, p = Control(0.2, 0.0), 0.2
    for before, queue in zip([0.0, *queues], queues, strict=False):
        x = after(x, law.on_tick(x, found(queue)))
        p = -feedback * p + new * queue + old * before
        assert x == pytest.approx((p, queue), rel=1e-12)


def test_the_price_of_rem_adds_excess_and_backlog():
    law, queues = laws.REM(gamma=0.002, alpha=0.3, q_ref=15.0), [20.0, 26.0, 90.0, 80.0, 85.0]
    x, price = law.start(20.0), 0.0
    for old, new in itertools.pairwise(queues):
        x = after(x, law.on_tick(x, found(new)))
        price = max(0.0, price + 0.002 * (new - (1 - 0.3) * old - 0.3 * 15.0))
        assert x == pytest.approx((price, new), rel=1e-13)
    assert price > 0


# -- AVQ


LINUX, RAMP = laws.Step(), laws.Step(at=0.8e-3, width=0.4e-3)


@pytest.mark.parametrize(
    ("law", "time", "mark"),
    [(LINUX, 0.99e-3, 0.0), (LINUX, 1.01e-3, 1.0), (RAMP, 0.79e-3, 0.0), (RAMP, 0.9e-3, 0.25),
     (RAMP, 1.1e-3, 0.75), (RAMP, 1.21e-3, 1.0)],
)  # fmt: skip
def test_the_l4s_queue_marks_from_a_millisecond_on(law: laws.Step, time: float, mark: float):
    """Linux's step of 1 ms by default; the ramp of RFC 9332, A.1, from 0.8 to 1.2 ms."""
    seen = laws.Arrival(1.0, 0.0, 5.0, CAPACITY, 1.0, time)
    assert float(law.signal((), seen).mark) == pytest.approx(mark)
    assert float(law.signal((), seen._replace(queue=0.0)).mark) == 0.0
