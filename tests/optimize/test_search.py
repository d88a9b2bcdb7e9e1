"""The search itself, on problems whose optima are known in closed form."""

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.measures import EQUILIBRIUM, Measure
from fluidcc.optimize.problem import Constraint, Problem, Range, Runs
from fluidcc.optimize.search import multipliers, search

NET = fc.load("hollot2001/pi")
PATHS = ("link.queue.k_pi", "link.queue.z")
NOTHING = math.nan, (math.nan, math.nan)
INFINITE = math.inf, (math.nan, math.nan)


def measured(name):
    return Measure(name, EQUILIBRIUM, "loop", "", name, "1")


class Known(Problem):
    """Its quantities are functions of (values, scenario) that give a value and its slopes."""

    functions = ()

    def numbers(self, x, scenario):
        values = np.array(list(self.values(x).values()))
        scale = np.array([r.slope(u) for r, u in zip(self.ranges, x, strict=True)])
        found = [function(values, scenario) for function in self.functions]
        numbers = np.array([value for value, _ in found], float)
        slopes = np.array([np.array(by) * scale for _, by in found], float)
        return numbers, slopes, "nothing here" if np.isnan(numbers).any() else ""


def problem(functions, bounds=(), *, sign=-1, scenarios=({},), ends=2 * [(-3.0, 3.0)], whole=False):
    """A problem over x and y with constraints `(name, sign, bound)`."""
    ranges = tuple(Range(p, *pair, "1", whole) for p, pair in zip(PATHS, ends, strict=False))
    rules = tuple(Constraint(measured(name), s, bound) for name, s, bound in bounds)
    known = type("Known", (Known,), {"functions": functions})
    return known(NET, ranges, measured("goal"), sign, rules, scenarios, Runs(1.0, 0.0, (1,)))


def solved(functions, bounds=(), *, starts=2, **options):
    return search(problem(functions, bounds, **options), starts=starts)


def at(found):
    return np.array(list(found.evaluator.problem.values(found.x).values()))


def held(found):
    return multipliers(found.evaluator, found.x)


def rosenbrock(v, _):
    x, y = v
    value = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    return value, (-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2))


def away(x, y):
    """The squared distance from a point."""
    return lambda v, _: ((v[0] - x) ** 2 + (v[1] - y) ** 2, (2 * (v[0] - x), 2 * (v[1] - y)))


def margin_below(end):
    """x, and infinite beyond the end."""
    return lambda v, _: INFINITE if v[0] > end else (v[0], (1.0, 0.0))


def test_a_curved_valley_is_followed_to_its_end():
    found = solved([rosenbrock])
    assert found.status == "ok"
    np.testing.assert_allclose(at(found), (1.0, 1.0), atol=1e-4)


def test_constraints_hold_with_their_multipliers():
    # least (x - 2)^2 + (y - 1)^2 with x + y <= 2: at (1.5, 0.5) with multiplier 1
    found = solved([away(2, 1), lambda v, _: (v[0] + v[1], (1.0, 1.0))], [("sum", -1, 2.0)])
    np.testing.assert_allclose(at(found), (1.5, 0.5), atol=1e-6)
    (active,) = held(found).active
    assert active.text == "sum <= 2"
    assert active.multiplier == pytest.approx(1.0, abs=1e-5)


def test_ends_of_ranges_hold_with_their_multipliers():
    # greatest 3 x + y^0.5 over logarithmic ranges: both at their high ends, by 3 and 0.25
    goal = [lambda v, _: (3 * v[0] + v[1] ** 0.5, (3.0, 0.5 * v[1] ** -0.5))]
    found = solved(goal, sign=1, ends=((0.01, 2.0), (0.04, 4.0)))
    np.testing.assert_array_equal(at(found), (2.0, 4.0))
    active = held(found).active
    assert [a.text.split(" of ")[0] for a in active] == [f"{p} at the high end" for p in PATHS]
    assert [a.multiplier for a in active] == pytest.approx([3.0, 0.25], rel=1e-4)


def test_the_worst_of_scenarios_is_made_best():
    # least of the largest of (x - s)^2 for s in -1, 2: halfway, with both scenarios active
    found = solved(
        [lambda v, s: ((v[0] - s["s"]) ** 2 + v[1] ** 2, (2 * (v[0] - s["s"]), 2 * v[1]))],
        scenarios=({"s": -1.0}, {"s": 2.0}),
    )
    np.testing.assert_allclose(at(found), (0.5, 0.0), atol=1e-5)
    np.testing.assert_allclose(held(found).weights, (0.5, 0.5), atol=1e-4)
    assert held(found).residual < 1e-4


def test_parts_without_numbers_do_not_stop_a_search():
    # the optimum (1.5, 0.5) lies beside a half plane of nothing, and the goal falls towards it
    def goal(v, s):
        return NOTHING if v[0] + v[1] > 2.0 else away(2, 1)(v, s)

    found = solved([goal], starts=3)
    assert found.status == "ok" and np.sum(at(found)) <= 2.0
    assert goal(at(found), {})[0] < 0.5 + 0.02  # at the border no slope tells where to go


def test_what_cannot_be_met_is_named_with_how_near_it_came():
    # x^2 + y^2 reaches 18 in a corner, x + y stays below its 10
    found = solved(
        [lambda v, _: (v[0], (1.0, 0.0)), away(0, 0), lambda v, _: (v[0] + v[1], (1.0, 1.0))],
        [("far", 1, 40.0), ("sum", -1, 10.0)], ends=((-2.0, 3.0), (-2.0, 3.0)), starts=4,
    )  # fmt: skip
    assert found.status == "infeasible"
    assert "far >= 40 came to 18" in found.message
    assert "sum" not in found.message  # it is met
    np.testing.assert_allclose(at(found), (3.0, 3.0), atol=1e-6)


def test_a_goal_without_bound_is_told():
    found = solved([margin_below(2.5)], sign=1)
    assert found.status == "unbounded"
    assert "goal is infinite at link.queue.k_pi = 2.6" in found.message


def test_a_steep_ridge_is_followed_to_its_end():
    # 10 |y - x| + (x - 1)^2: the slope on either side leads across the ridge, not along it
    def goal(v, _):
        x, y = v
        across = 10 * np.sign(y - x)
        return 10 * abs(y - x) + (x - 1) ** 2, (2 * (x - 1) - across, across)

    np.testing.assert_allclose(at(solved([goal], starts=1)), (1.0, 1.0), atol=1e-3)


def test_whole_numbers_next_to_the_optimum_are_compared():
    # least (x - 1.4)^2 + 3 (y - x)^2 over whole numbers: (1, 1) with 0.16
    def goal(v, _):
        x, y = v
        value = (x - 1.4) ** 2 + 3 * (y - x) ** 2
        return value, (2 * (x - 1.4) - 6 * (y - x), 6 * (y - x))

    found = solved([goal], whole=True)
    np.testing.assert_array_equal(at(found), (1.0, 1.0))
    assert "link.queue.k_pi was 1.4" in found.message


def test_an_infinite_margin_in_one_scenario_is_simply_good():
    # at s = 1 the margin is infinite from x = 1 on; at s = 2 it is 5 - (x - 2)^2 - y^2
    def margin(v, s):
        x, y = v
        if s["s"] == 1:
            return INFINITE if x > 1 else (2 + x, (1.0, 0.0))
        return 5 - (x - 2) ** 2 - y**2, (-2 * (x - 2), -2 * y)

    found = solved([margin], sign=1, scenarios=({"s": 1}, {"s": 2}))
    assert found.status == "ok"
    np.testing.assert_allclose(at(found), (2.0, 0.0), atol=1e-5)
    np.testing.assert_allclose(held(found).weights, (0.0, 1.0))
