"""What the studies of `validation/studies` find, beside closed forms and published values."""

import sys
from pathlib import Path

import numpy as np
import pytest
from optimize_cases import (
    becn_loop,
    becn_needs,
    crossover,
    decay_rate,
    margin_at,
    mixed_loop,
    mixed_rest,
    pi_loop,
)

import fluidcc as fc

sys.path.append(str(Path(__file__).parents[2] / "validation" / "studies"))

import becn_red
import ecn_mod_steps
import mark_front_threshold
import pi_gains


def busy(name, at):
    net = fc.replace(fc.load(f"durresi2001/{name}"), {"link.queue.at": at})
    end = mark_front_threshold.END
    runs = fc.simulate_packets(net, until=end, warmup=end / 20)
    return runs.mean["links"]["bottleneck"]["utilization"]


@pytest.mark.parametrize(
    ("name", "least"), [("two_front_59ms", 37), ("ten_front_59ms", 24), ("ten_tail_59ms", 39)]
)
def test_less_than_the_least_threshold_leaves_the_link_idle(name, least):
    assert busy(name, least) >= 0.99 > busy(name, least - 1)


def sawtooth_threshold(busy, pipe):
    """The threshold with which flows that halve together use that share of the link.

    A window of x pipes at most, that grows evenly, leaves the link idle while it is below one:
    (3/4) x^2/(x^2 - x + 1) of it is used. Source: Durresi et al. (2001), result 3 is x = 2.
    """
    x = (busy - np.sqrt(3 * busy * (1 - busy))) / (2 * busy - 1.5)
    return float(pipe * (x - 1))


def test_two_flows_need_the_threshold_of_their_sawtooth():
    """Both start together and stay so. Packets come by the threshold before it is heard: 3 to 6."""
    net = fc.load("durresi2001/two_front_59ms")
    pipe = mark_front_threshold.pipe(net)
    least = sawtooth_threshold(0.99, pipe)
    assert sawtooth_threshold(1.0, pipe) == pytest.approx(pipe)  # result 3
    found = mark_front_threshold.best(net, 0.99, low=round(least) - 4, high=round(least) + 8)
    assert found.status == "ok"
    assert 0 <= found.values["link.queue.at"] - least <= 6
    far = sawtooth_threshold(0.99, 196.5)
    assert busy("two_front_259ms", round(far) - 6) < 0.99 < busy("two_front_259ms", round(far) + 6)


def test_better_weights_end_losses_and_make_quenches_stable():
    """Quenches of 17 % need more than the published p_max of 0.1: the average stays at max_th."""
    near = fc.load("akujobi2002/homogeneous_becn")
    best = {"link.queue.w_q": 1.302877e-4, "link.queue.p_max": 0.29724771}
    assert becn_needs(45.0) > 0.1
    assert fc.equilibrium(near).status == "discontinuity"
    lost = [
        fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=(1, 2))
        .mean["flows"]["becn"]["loss_fraction"]
        for net in (near, fc.replace(near, best))
    ]  # fmt: skip
    assert lost[0] > 0.005 and lost[1] < 0.0005
    far = fc.load("akujobi2002/homogeneous_becn_250ms")
    for weights, stable in (((0.002, 0.1), False), ((0.2, 0.02), True)):
        net = fc.replace(far, dict(zip(becn_red.OVER, weights, strict=True)))
        found = fc.stability(net)
        queue = found.equilibrium.links["bottleneck"].queue
        loop = becn_loop(*weights, queue, trip=0.508)
        assert becn_needs(queue, trip=0.508) == pytest.approx(weights[1], rel=1e-9)
        assert found.stable is stable
        closed = margin_at(loop, crossover(loop))
        assert found.phase_margin == pytest.approx(closed, abs=1e-6)


def test_better_gains_are_three_times_as_fast_in_the_worst_case():
    """120 flows at 120 ms decay most slowly, which the closed form has, too."""
    net = fc.load("hollot2001/pi")
    worst = []
    for gains in ((9.64e-6, 0.53), (3.14974e-5, 0.73828234)):
        corners = {
            (n, trip): decay_rate(pi_loop(*gains, n, trip)) for n in (60, 120)
            for trip in (0.12, 0.2)
        }  # fmt: skip
        given = dict(zip(pi_gains.OVER, gains, strict=True))
        slowest = fc.stability(fc.replace(net, {**given, "flow.n": 120, "flow.rtt": 0.12}))
        worst.append(min(corners.values()))
        assert corners[120, 0.12] == worst[-1]
        assert -slowest.rightmost.real == pytest.approx(worst[-1], rel=1e-6)
    loops = [pi_loop(*gains, n, trip) for n in (60, 120) for trip in (0.12, 0.2)]
    assert min(margin_at(loop, crossover(loop)) for loop in loops) > 45 - 1e-4
    assert worst[1] > 3 * worst[0]


def test_one_number_of_the_steps_decides_the_linearised_model():
    """Given eq. 7, c1 and c2 enter the loop by kappa = 1/(1/c2 + w/c1) alone."""
    net = fc.load("misra2003/mixed")
    given = fc.stability(net)
    _, _, window, _ = mixed_rest()
    kappa = ecn_mod_steps.single(0.0625, 0.125, window)
    loop = mixed_loop(kappa)
    assert given.phase_margin == pytest.approx(margin_at(loop, crossover(loop)), abs=1e-6)
    np.testing.assert_allclose(loop(given.roots[:5]), -1.0, rtol=1e-6)
    c1 = window / (1 / kappa - 1 / 0.5)
    other = fc.stability(fc.replace(net, dict(zip(ecn_mod_steps.OVER, (c1, 0.5), strict=True))))
    np.testing.assert_allclose(loop(other.roots[:5]), -1.0, rtol=1e-6)
