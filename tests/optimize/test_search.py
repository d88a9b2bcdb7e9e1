"""The search itself, on problems whose optima are known in closed form."""

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.optimize import search as module
from fluidcc.optimize import solve as solving
from fluidcc.optimize.constraints import Constraint
from fluidcc.optimize.descent import Descent
from fluidcc.optimize.measures import REST, Measure
from fluidcc.optimize.problem import Evaluator, Problem, Seen
from fluidcc.optimize.ranges import Range
from fluidcc.optimize.runs import Runs
from fluidcc.optimize.scaled import ENOUGH
from fluidcc.optimize.stationary import forces

NET = fc.load("hollot2001/pi")
PATHS = ("link.queue.k_pi", "link.queue.z")


def measured(name):
    return Measure(name, REST, "loop", "", name, "1")


def problem(bounds=(), *, sign=-1, scenarios=({},), ends=((-3.0, 3.0), (-3.0, 3.0)), whole=False):
    """A problem over x and y with constraints `(name, sign, bound)`."""
    ranges = tuple(
        Range(path, low, high, "1", whole) for path, (low, high) in zip(PATHS, ends, strict=False)
    )
    rules = tuple(Constraint(measured(name), s, bound) for name, s, bound in bounds)
    return Problem(NET, ranges, measured("goal"), sign, rules, scenarios, Runs(1.0, 0.0, (1,)))


@pytest.fixture
def solved(monkeypatch):
    """Search a problem whose quantities are functions of (values, scenario) with slopes.

    What the functions are stays so for further searches.
    """

    def call(given, functions, *, starts=2):
        class Known(Evaluator):
            def _look(self, point):
                pairs = list(zip(self.problem.ranges, point, strict=True))
                values = np.array([r.value(u) for r, u in pairs])
                scale = np.array([r.slope(u) for r, u in pairs])
                seen = [[f(values, s) for f in functions] for s in self.problem.scenarios]
                numbers = np.array([[value for value, _ in row] for row in seen], float)
                slopes = np.array([[np.array(by) * scale for _, by in row] for row in seen], float)
                reasons = tuple("nothing here" if np.isnan(row).any() else "" for row in numbers)
                return Seen(numbers, slopes, reasons)

        monkeypatch.setattr(module, "Evaluator", Known)
        monkeypatch.setattr(solving, "Evaluator", Known)
        return module.search(given, starts=starts)

    return call


def at(found, given):
    return np.array(list(given.values(found.shares).values()))


def rosenbrock(v, _):
    x, y = v
    value = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    return value, (-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2))


def test_a_curved_valley_is_followed_to_its_end(solved):
    given = problem()
    found = solved(given, [rosenbrock])
    assert found.status == "ok"
    np.testing.assert_allclose(at(found, given), (1.0, 1.0), atol=1e-4)


def test_constraints_hold_with_their_multipliers(solved):
    # least (x - 2)^2 + (y - 1)^2 with x + y <= 2: at (1.5, 0.5) with multiplier 1
    given = problem([("sum", -1, 2.0)])
    found = solved(
        given,
        [
            lambda v, _: ((v[0] - 2) ** 2 + (v[1] - 1) ** 2, (2 * (v[0] - 2), 2 * (v[1] - 1))),
            lambda v, _: (v[0] + v[1], (1.0, 1.0)),
        ],
    )
    np.testing.assert_allclose(at(found, given), (1.5, 0.5), atol=1e-6)
    (held,) = forces(found.scaled, found.shares).active
    assert held.text == "sum <= 2"
    assert held.multiplier == pytest.approx(1.0, abs=1e-5)


def test_ends_of_ranges_hold_with_their_multipliers(solved):
    # greatest 3 x + y^0.5 over logarithmic ranges: both at their high ends, by 3 and 0.25
    given = problem(sign=1, ends=((0.01, 2.0), (0.04, 4.0)))
    found = solved(given, [lambda v, _: (3 * v[0] + v[1] ** 0.5, (3.0, 0.5 * v[1] ** -0.5))])
    np.testing.assert_array_equal(at(found, given), (2.0, 4.0))
    held = forces(found.scaled, found.shares).active
    assert [each.text.split(" of ")[0] for each in held] == [f"{p} at the high end" for p in PATHS]
    assert [each.multiplier for each in held] == pytest.approx([3.0, 0.25], rel=1e-4)


def test_the_worst_of_scenarios_is_made_best(solved):
    # least of the largest of (x - s)^2 for s in -1, 2: halfway, with both scenarios active
    given = problem(scenarios=({"s": -1.0}, {"s": 2.0}))

    def apart(v, s):
        return (v[0] - s["s"]) ** 2 + v[1] ** 2, (2 * (v[0] - s["s"]), 2 * v[1])

    found = solved(given, [apart])
    np.testing.assert_allclose(at(found, given), (0.5, 0.0), atol=1e-5)
    held = forces(found.scaled, found.shares)
    np.testing.assert_allclose(held.weights, (0.5, 0.5), atol=1e-4)
    assert held.residual < 1e-4


def test_parts_without_numbers_do_not_stop_a_search(solved):
    # the optimum (1.5, 0.5) lies beside a half plane of nothing, and the goal falls towards it
    def goal(v, _):
        if v[0] + v[1] > 2.0:
            return math.nan, (math.nan, math.nan)
        return (v[0] - 2) ** 2 + (v[1] - 1) ** 2, (2 * (v[0] - 2), 2 * (v[1] - 1))

    given = problem()
    found = solved(given, [goal], starts=3)
    assert found.status == "ok"
    assert np.sum(at(found, given)) <= 2.0
    best = goal(at(found, given), {})[0]
    assert best < 0.5 + 0.02  # at the border itself no slope tells where to go


def test_what_cannot_be_met_is_named_with_how_near_it_came(solved):
    # x^2 + y^2 reaches 18 in a corner, x + y stays below its 10
    given = problem([("far", 1, 40.0), ("sum", -1, 10.0)], ends=((-2.0, 3.0), (-2.0, 3.0)))
    found = solved(
        given,
        [
            lambda v, _: (v[0], (1.0, 0.0)),
            lambda v, _: (v[0] ** 2 + v[1] ** 2, (2 * v[0], 2 * v[1])),
            lambda v, _: (v[0] + v[1], (1.0, 1.0)),
        ],
        starts=4,
    )
    assert found.status == "infeasible"
    assert "far >= 40 came to 18" in found.message
    assert "sum" not in found.message  # it is met
    np.testing.assert_allclose(at(found, given), (3.0, 3.0), atol=1e-6)


def test_a_goal_without_bound_is_told(solved):
    def margin(v, _):
        return (math.inf, (math.nan, math.nan)) if v[0] > 2.5 else (v[0], (1.0, 0.0))

    found = solved(problem(sign=1), [margin])
    assert found.status == "unbounded"
    assert "goal is infinite at link.queue.k_pi = 2.6" in found.message


def test_infinite_margins_meet_a_constraint(solved):
    def margin(v, _):
        return (math.inf, (math.nan, math.nan)) if v[0] > 1 else (v[0], (1.0, 0.0))

    given = problem([("margin", 1, 0.5)])
    found = solved(given, [lambda v, _: (v @ v, tuple(2 * v)), margin])
    np.testing.assert_allclose(at(found, given), (0.5, 0.0), atol=1e-5)


def test_points_without_any_number_are_explained(solved):
    found = solved(problem(), [lambda v, _: (math.nan, (math.nan, math.nan))])
    assert found.status == "unknown" and found.shares is None
    assert "none of 17 points of the ranges has all numbers: nothing here (17 times)" in (
        found.message
    )


def test_kinks_are_ends_of_a_search(solved):
    # |x - 1| + 2 |y + 0.5| has no slope where it is least
    def folded(v, _):
        x, y = v[0] - 1, v[1] + 0.5
        return abs(x) + 2 * abs(y), (np.sign(x), 2 * np.sign(y))

    given = problem()
    found = solved(given, [folded], starts=3)
    assert found.status == "ok" and "kink" in found.message
    np.testing.assert_allclose(at(found, given), (1.0, -0.5), atol=1e-2)


def test_whole_numbers_next_to_the_optimum_are_compared(solved):
    # least (x - 1.4)^2 + 3 (y - x)^2 over whole numbers: (1, 1) with 0.16
    def goal(v, _):
        x, y = v
        value = (x - 1.4) ** 2 + 3 * (y - x) ** 2
        return value, (2 * (x - 1.4) - 6 * (y - x), 6 * (y - x))

    given = problem(whole=True)
    found = solved(given, [goal])
    np.testing.assert_array_equal(at(found, given), (1.0, 1.0))
    assert "link.queue.k_pi was 1.4" in found.message


def test_a_steep_ridge_is_followed_to_its_end(solved):
    # 10 |y - x| + (x - 1)^2: the slope on either side leads across the ridge, not along it
    def goal(v, _):
        x, y = v
        across = 10 * np.sign(y - x)
        return 10 * abs(y - x) + (x - 1) ** 2, (2 * (x - 1) - across, across)

    given = problem()
    found = solved(given, [goal], starts=1)
    assert "kink" in found.message
    np.testing.assert_allclose(at(found, given), (1.0, 1.0), atol=0.02)


def test_an_infinite_margin_in_one_scenario_is_simply_good(solved):
    # at s = 1 the margin is infinite from x = 1 on; at s = 2 it is 5 - (x - 2)^2 - y^2
    def margin(v, s):
        x, y = v
        if s["s"] == 1:
            return (math.inf, (math.nan, math.nan)) if x > 1 else (2 + x, (1.0, 0.0))
        return 5 - (x - 2) ** 2 - y**2, (-2 * (x - 2), -2 * y)

    given = problem(sign=1, scenarios=({"s": 1}, {"s": 2}))
    found = solved(given, [margin])
    assert found.status == "ok"
    np.testing.assert_allclose(at(found, given), (2.0, 0.0), atol=1e-5)
    np.testing.assert_allclose(forces(found.scaled, found.shares).weights, (0.0, 1.0))


def test_a_goal_that_is_infinite_in_every_scenario_is_without_bound(solved):
    def margin(v, s):
        return (math.inf, (math.nan, math.nan)) if v[0] > s["s"] else (v[0], (1.0, 0.0))

    given = problem(sign=1, scenarios=({"s": 1.0}, {"s": 2.0}))
    found = solved(given, [margin])
    assert found.status == "unbounded"
    assert at(found, given)[0] > 2


def test_an_infinite_margin_above_its_bound_leads_back(solved):
    # least (x - 3)^2 + y^2 where the margin, x and infinite beyond 1, is at most -2.9: no point of
    # the sample
    def margin(v, _):
        return (math.inf, (math.nan, math.nan)) if v[0] > 1 else (v[0], (1.0, 0.0))

    given = problem([("margin", -1, -2.9)])
    found = solved(given, [lambda v, _: ((v[0] - 3) ** 2 + v[1] ** 2, (2 * v[0] - 6, 2 * v[1])),
                           margin])  # fmt: skip
    assert found.status == "ok"
    np.testing.assert_allclose(at(found, given), (-2.9, 0.0), atol=1e-5)
    rows = found.scaled.rows(np.array([0.9, 0.5]))
    assert rows.slacks == [-ENOUGH] and not rows.met  # solvers take no infinite numbers
    np.testing.assert_array_equal(rows.slack_slopes, [[0.0, 0.0]])


def test_no_bound_is_told_wherever_it_is_seen_first(solved, monkeypatch):
    # nothing but the ridge is followed, and the goal is infinite at its end only
    def stay(scaled, begin, **_):
        return Descent(begin, begin, 0)

    def goal(v, _):
        x, y = v
        if abs(x - 1) + abs(y - 1) < 0.3:
            return math.inf, (math.nan, math.nan)
        across = -10 * np.sign(y - x)
        return -10 * abs(y - x) - (x - 1) ** 2, (-2 * (x - 1) - across, across)

    monkeypatch.setattr(module, "descend", stay)
    monkeypatch.setattr(module, "finish", stay)
    found = solved(problem(sign=1), [goal], starts=1)
    assert found.status == "unbounded"


def test_a_constraint_is_met_up_to_rounding_of_its_bound(solved):
    for bound, scale in ((40.0, 40.0), (-1e-3, 1e-3), (0.0, 1.0)):
        for sign in (1, -1):
            rule = Constraint(measured("any"), sign, bound)
            assert rule.met(bound - sign * 0.9e-8 * scale)
            assert not rule.met(bound - sign * 1.1e-8 * scale)
            assert not rule.met(math.nan)
            assert rule.met(sign * math.inf) and not rule.met(-sign * math.inf)
    # ... however much the quantity varies: least x with 1e4 x >= 1e-3
    given = problem([("much", 1, 1e-3)], ends=((-3.0, 3.0),))
    found = solved(given, [lambda v, _: (v[0], (1.0,)), lambda v, _: (1e4 * v[0], (1e4,))])
    assert found.status == "ok"
    assert 1e4 * at(found, given)[0] >= 1e-3 * (1 - 1e-8)
    nothing = np.array([0.5])  # x = 0 misses by all of the bound
    assert found.scaled.merit(nothing)[0] == 1
    assert not given.met(found.scaled.look(nothing).values)


def test_rounds_of_a_box_count_together(solved):
    """The worst s, 0.3, lies inside of the box: scenarios are added until those near it are in.

    Costs and points of all rounds are told, and the progress never goes back.
    """
    box = (Range("s", -1.0, 2.0, "1", False),)
    given = problem(scenarios=solving.scenarios(box))
    looked, shown = [], []

    def goal(v, s):
        looked.append(s["s"])
        x, y = v[0] - 1, v[1] + 0.5
        return x**2 + y**2 - (s["s"] - 0.3) ** 2, (2 * x, 2 * y)

    solved(given, [goal])
    looked.clear()
    final, found = solving.robust(given, box, solving.Effort(2, 1, 1), progress=shown.append)
    added = [s["s"] for s in final.scenarios[len(given.scenarios) :]]
    checked = [-1 + 3 * k / 16 for k in range(1, 16)]  # Halton's sixteenths of the box
    assert added == [min(checked, key=lambda s: abs(s - 0.3))]
    np.testing.assert_allclose(at(found, final), (1.0, -0.5), atol=1e-5)
    # the corner is looked at once for each point of both rounds, what was added in the second only
    assert found.points == looked.count(-1.0) > looked.count(added[0]) + 10
    assert len(found.starts) == 2 + 1
    assert shown == sorted(shown) and 0.5 < shown[-1] < 1
