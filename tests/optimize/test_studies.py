"""What the studies of `validation/studies` found, looked at where it was found."""

import sys
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.optimize.constraints import constraint
from fluidcc.optimize.measures import measure
from fluidcc.optimize.points import halton
from fluidcc.optimize.problem import Evaluator, Problem
from fluidcc.optimize.ranges import ranges
from fluidcc.optimize.runs import Runs
from fluidcc.optimize.scaled import Scaled
from fluidcc.optimize.stationary import STATIONARY, forces

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


def test_better_weights_make_quenches_stable():
    far = fc.load("akujobi2002/homogeneous_becn_250ms")
    near = fc.load("akujobi2002/homogeneous_becn")
    best = {"link.queue.w_q": 0.2, "link.queue.p_max": 0.02}
    assert fc.stability(far).stable is False
    assert fc.stability(fc.replace(far, best)).phase_margin == pytest.approx(43.974, abs=1e-3)
    assert fc.equilibrium(near).status == "saturated"
    best = {"link.queue.w_q": 1.302877e-4, "link.queue.p_max": 0.29724771}
    found = fc.stability(fc.replace(near, best))
    assert found.phase_margin == pytest.approx(95.437, abs=1e-3)
    assert found.equilibrium.links["bottleneck"].queue == pytest.approx(40.0, abs=1e-5)
    lost = [
        fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=(1, 2))
        .mean["flows"]["becn"]["loss_fraction"]
        for net in (near, fc.replace(near, best))
    ]  # fmt: skip
    assert lost[0] > 0.005 and lost[1] < 0.0005
    assert set(becn_red.OVER) == set(best)


def test_the_published_gains_are_the_fastest_with_their_margins():
    net = fc.load("hollot2001/pi")
    found = fc.stability(net)
    rules = (
        f"phase_margin >= {found.phase_margin!r}", f"gain_margin >= {found.gain_margin!r}"
    )  # fmt: skip
    problem = Problem(
        net, ranges(net, pi_gains.OVER, where="over"), measure(net, "gain_crossover"), 1,
        tuple(constraint(net, rule) for rule in rules), ({},), Runs(1.0, 0.0, (1,)),
    )  # fmt: skip
    own = np.array([r.share(v) for r, v in zip(problem.ranges, (9.64e-6, 0.53), strict=True)])
    scaled = Scaled(Evaluator(problem), [own, *halton(2, 4)])
    held = forces(scaled, own)
    short = fc.stability(fc.replace(net, {"flow.rtt": 0.246 - 200 / 3750}))
    assert short.phase_margin == pytest.approx(75.0, abs=0.5)  # as published, at 246 ms
    assert held.residual < STATIONARY
    multipliers = [each.multiplier for each in held.active]
    assert multipliers == pytest.approx([0.004825, 0.05704], rel=1e-3)


def test_better_gains_are_three_times_as_fast_in_the_worst_case():
    net = fc.load("hollot2001/pi")
    worst = []
    for gains in ((9.64e-6, 0.53), (3.14974e-5, 0.73828234)):
        given = dict(zip(pi_gains.OVER, gains, strict=True))
        every = [
            fc.stability(fc.replace(net, {**given, "flow.n": n, "flow.rtt": trip}))
            for n in (60, 120) for trip in (0.12, 0.2)
        ]  # fmt: skip
        worst.append(min(-s.rightmost.real for s in every))
        assert min(s.phase_margin for s in every) > 45 - 1e-4
    assert worst == pytest.approx([0.043719, 0.137178], rel=1e-4)


def test_one_number_of_the_steps_decides_the_linearised_model():
    net = fc.load("misra2003/mixed")
    given = fc.stability(net)
    window = float(given.equilibrium.flows["mod"].window[0])
    same = ecn_mod_steps.single(0.0625, 0.125, window)
    c1 = window / (1 / same - 1 / 0.5)
    other = fc.stability(fc.replace(net, dict(zip(ecn_mod_steps.OVER, (c1, 0.5), strict=True))))
    assert ecn_mod_steps.single(c1, 0.5, window) == pytest.approx(same)
    assert other.phase_margin == pytest.approx(given.phase_margin, rel=1e-9)
    np.testing.assert_allclose(other.roots[:5], given.roots[:5], rtol=1e-8)
