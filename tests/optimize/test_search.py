"""The search itself, on problems whose optima are known in closed form."""

import math

import numpy as np

import fluidcc as fc
from fluidcc.analysis.measures import EQUILIBRIUM, Measure
from fluidcc.optimize.problem import Problem, Range, Runs
from fluidcc.optimize.search import multipliers, search

NET = fc.load("hollot2001/pi")
PATHS = ("link.queue.k_pi", "link.queue.z")
NOTHING = math.nan, (math.nan, math.nan)
INFINITE = math.inf, (math.nan, math.nan)


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


def solved(goal, *, starts=2, sign=-1, scenarios=({},)):
    """The best of a function of x and y."""
    ranges = tuple(Range(path, -3.0, 3.0, "1", False) for path in PATHS)
    known = type("Known", (Known,), {"functions": [goal]})
    measure = Measure("goal", EQUILIBRIUM, "loop", "", "goal", "1")
    problem = known(NET, ranges, measure, sign, (), scenarios, Runs(1.0, 0.0, (1,)))
    return search(problem, starts=starts)


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
    found = solved(rosenbrock)
    assert found.status == "ok"
    np.testing.assert_allclose(at(found), (1.0, 1.0), atol=1e-4)


def test_the_worst_of_scenarios_is_made_best():
    # least of the largest of (x - s)^2 for s in -1, 2: halfway, with both scenarios active
    found = solved(
        lambda v, s: ((v[0] - s["s"]) ** 2 + v[1] ** 2, (2 * (v[0] - s["s"]), 2 * v[1])),
        scenarios=({"s": -1.0}, {"s": 2.0}),
    )
    np.testing.assert_allclose(at(found), (0.5, 0.0), atol=1e-5)
    np.testing.assert_allclose(held(found).weights, (0.5, 0.5), atol=1e-4)
    assert held(found).residual < 1e-4


def test_parts_without_numbers_do_not_stop_a_search():
    # the optimum (1.5, 0.5) lies beside a half plane of nothing, and the goal falls towards it
    def goal(v, s):
        return NOTHING if v[0] + v[1] > 2.0 else away(2, 1)(v, s)

    found = solved(goal, starts=3)
    assert found.status == "ok" and np.sum(at(found)) <= 2.0
    assert goal(at(found), {})[0] < 0.5 + 0.02  # at the border no slope tells where to go


def test_a_goal_without_bound_is_told():
    found = solved(margin_below(2.5), sign=1)
    assert found.status == "unbounded"
    assert "goal is infinite at link.queue.k_pi = 2.6" in found.message


def test_a_steep_ridge_is_followed_to_its_end():
    # 10 |y - x| + (x - 1)^2: the slope on either side leads across the ridge, not along it
    def goal(v, _):
        x, y = v
        across = 10 * np.sign(y - x)
        return 10 * abs(y - x) + (x - 1) ** 2, (2 * (x - 1) - across, across)

    np.testing.assert_allclose(at(solved(goal, starts=1)), (1.0, 1.0), atol=1e-3)


def test_an_infinite_margin_in_one_scenario_is_simply_good():
    # at s = 1 the margin is infinite from x = 1 on; at s = 2 it is 5 - (x - 2)^2 - y^2
    def margin(v, s):
        x, y = v
        if s["s"] == 1:
            return INFINITE if x > 1 else (2 + x, (1.0, 0.0))
        return 5 - (x - 2) ** 2 - y**2, (-2 * (x - 2), -2 * y)

    found = solved(margin, sign=1, scenarios=({"s": 1}, {"s": 2}))
    assert found.status == "ok"
    np.testing.assert_allclose(at(found), (2.0, 0.0), atol=1e-5)
    np.testing.assert_allclose(held(found).weights, (0.0, 1.0))
