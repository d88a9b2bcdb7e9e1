"""Voice: blocking, means, what is left of the link, and the distribution of its random course."""

import math

import jax
import numpy as np
import pytest

from fluidcc import Voice
from fluidcc.laws.voice import erlang_blocking, present_calls

SIZE = 1000.0  # B
TALKER = 8.0  # packet/s of 1000 B at 64 kbit/s


def by_sum(a, n):
    """Erlang's formula B from its definition."""
    terms = [math.exp(k * math.log(a) - math.lgamma(k + 1)) for k in range(n + 1)]
    return terms[-1] / math.fsum(terms)


@pytest.mark.parametrize(("a", "n"), [(1.0, 1), (0.5, 3), (10.0, 5), (200.0, 210), (150.0, 60)])
def test_blocking_is_that_of_the_definition(a, n):
    assert float(erlang_blocking(a, float(n))) == pytest.approx(by_sum(a, n), rel=1e-12)
    step = 1e-4 * a
    slope = (by_sum(a + step, n) - by_sum(a - step, n)) / (2 * step)
    assert float(jax.grad(erlang_blocking)(a, float(n))) == pytest.approx(slope, rel=1e-6)


def test_the_mean_rate_is_calls_times_talkers():
    calls = Voice(calls=200, overhead=0.25)
    assert calls.talker(500.0) == 64e3 * 1.25 / 4000
    assert calls.mean(SIZE) == 200 * 0.3875 * TALKER * 1.25
    assert Voice(arrivals=2.0, holding=50.0).mean(SIZE) == 100 * 0.3875 * TALKER
    limited = Voice(arrivals=2.0, holding=50.0, most=90)
    assert limited.carried() == pytest.approx(100 * (1 - by_sum(100.0, 90)), rel=1e-12)


def test_best_effort_has_its_share_at_least():
    queues, one = Voice(calls=1), Voice(calls=1, discipline="fifo")
    assert queues.left(1000.0, 300.0) == 700.0 and queues.mixed(300.0) == 0.0
    assert queues.left(1000.0, 900.0) == pytest.approx(200.0, rel=1e-15)
    assert one.left(1000.0, 900.0) == 1000.0 and one.mixed(900.0) == 900.0


def held_between(held, until):
    return np.diff(np.concatenate([[0.0], held.times, [until]]))


def test_a_path_is_a_course_of_the_seed_from_0_to_the_end():
    held = Voice(arrivals=2.0, holding=5.0).path(100.0, SIZE)
    again = Voice(arrivals=2.0, holding=5.0).path(100.0, SIZE)
    other = Voice(arrivals=2.0, holding=5.0, seed=2).path(100.0, SIZE)
    assert np.array_equal(held.times, again.times) and np.array_equal(held.rates, again.rates)
    assert not np.array_equal(held.rates[:5], other.rates[:5])
    assert len(held.rates) == len(held.times) + 1
    assert np.all(np.diff(held.times) >= 0) and held.times[0] > 0 and held.times[-1] < 100
    assert set(np.diff(held.rates)) == {-TALKER, TALKER} and np.min(held.rates) == 0


def moments(voice, until=10.0, runs=800):
    """Talkers at 0 and at the end over many independent runs: mean, its error, variance."""
    paths = [
        Voice(**{**voice, "seed": seed}).path(until, SIZE).rates / TALKER for seed in range(runs)
    ]
    for k in (0, -1):
        talkers = np.array([p[k] for p in paths])
        yield talkers.mean(), talkers.std() / math.sqrt(runs), talkers.var()


def chances(a, n):
    """Stationary distribution of calls: a Poisson distribution cut at n."""
    weights = np.array([math.exp(k * math.log(a) - math.lgamma(k + 1) - a) for k in range(n + 1)])
    return weights / weights.sum()


@pytest.mark.parametrize("most", [math.inf, 12])
@pytest.mark.parametrize("active", [0.3875, 1.0])
def test_talkers_have_their_stationary_distribution_at_the_start_and_at_the_end(most, active):
    """Given n calls talkers are binomial: mean n a, variance n a (1 - a) + a^2 var(n)."""
    a = 10.0
    p = chances(a, 80 if math.isinf(most) else most)
    n = np.arange(len(p))
    mean = p @ n
    variance = active * (1 - active) * mean + active**2 * (p @ n**2 - mean**2)
    voice = {"arrivals": 2.0, "holding": 5.0, "active": active, "most": most}
    assert float(Voice(**voice).carried()) == pytest.approx(mean, rel=1e-9)
    for found, error, spread in moments(voice):
        assert abs(found - active * mean) < 4.5 * error
        # the error of a variance, kurtosis at most 4
        assert abs(spread - variance) < 4.5 * variance * math.sqrt(3 / 800)


def test_spurts_and_pauses_have_their_means():
    """A never ending call: on and off times by the mean talk spurt and the share of time."""
    held = Voice(calls=400.0, holding=1e9, talk=0.5, active=0.25).path(200.0, SIZE)
    talkers, widths = held.rates / TALKER, held_between(held, 200.0)
    share = talkers @ widths / 200.0
    # stops per second of talking and starts per second of silence
    stops = np.count_nonzero(np.diff(talkers) < 0)
    assert stops / (talkers @ widths) == pytest.approx(1 / 0.5, rel=4.5 / math.sqrt(stops))
    calls = np.random.default_rng(1).poisson(400.0)
    assert share == pytest.approx(0.25 * calls, rel=0.02)


def test_the_number_of_talkers_forgets_at_the_rates_of_calls_and_spurts():
    """For endless calls the covariance falls as exp(-(1/on + 1/off) t)."""
    voice = {"calls": 40.0, "holding": 1e9, "talk": 1.0, "active": 0.5}
    lag = 0.5
    pairs = []
    for seed in range(1000):
        held = Voice(**voice, seed=seed).path(lag, SIZE)
        calls = present_calls(np.random.default_rng(seed).uniform(), 40.0, math.inf)  # drawn first
        pairs.append((held.rates[0] / TALKER - calls / 2, held.rates[-1] / TALKER - calls / 2))
    first, last = np.array(pairs).T
    correlation = np.corrcoef(first, last)[0, 1]
    expected = math.exp(-lag * (1.0 + 1.0))
    assert abs(correlation - expected) < 4.5 * (1 - expected**2) / math.sqrt(1000)
