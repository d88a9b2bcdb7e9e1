"""Mistakes of newcomers in Python: what is raised says what is wrong, where, and what to do."""

from functools import partial

import jax.numpy as jnp
import pytest

import fluidcc as fc

SLOW = "hollot2001/slow"
NET = fc.load(SLOW)
W_Q = {"link.queue.w_q": (1e-6, 0.1)}


def field(t, y, z, p):
    return -z[0]


def history(t, p):
    return jnp.ones(1)


def lag(t, y, p):
    return 1.0


def solve(field=field, history=history, t0=0.0, t1=1.0, lags=(lag,), **options):
    return fc.solve_dde(field, history, t0, t1, lags=lags, **options)


def network(call):
    """Every verb says how to get a network where it is given a name."""
    return call, TypeError, f"a network, such as fluidcc.load('{SLOW}') gives, got '{SLOW}' (str)"


MISTAKES = [
    (lambda: fc.load(42), TypeError, "load: expected a scenario's name or a file, got 42 (int)"),
    (lambda: fc.loads(42), TypeError, "loads: expected the text of a scenario, got 42 (int)"),
    (lambda: fc.load("slow"), fc.ScenarioError, f"did you mean '{SLOW}'?"),
    (lambda: fc.equilibrum, AttributeError, "did you mean 'equilibrium'?"),
    network(lambda: fc.equilibrium(SLOW)),
    network(lambda: fc.sweep(SLOW, {"flow.n": [3]}, fc.equilibrium)),
    (lambda: fc.replace(NET, {"flow.n": None}), fc.ScenarioError, "flows.tcp.n: expected a number"),
    (lambda: fc.replace(NET, ["flow.n", 3]), fc.ScenarioError, 'such as {"flow.n": 40}, got ['),
    (lambda: fc.replace(NET, {3: 3}), fc.ScenarioError, 'values by path, such as {"flow.n": 40}'),
    (lambda: fc.number_at(NET, "flow.windw"), fc.ScenarioError, "did you mean 'flow.window.law'"),
    (lambda: fc.simulate(NET, until=-1), ValueError, "until: expected a time in (0, 1e+09] s, got"),
    (lambda: fc.simulate(NET, until="60 s"), ValueError, "until: expected a time in (0, 1e+09] s"),
    (lambda: fc.simulate(NET, until=5, mesh="x"), ValueError, "mesh: expected Uniform, Located or"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=5), ValueError, "a list of whole numbers"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=range(10**12)), ValueError, "at most 1000000"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=[]), ValueError, "different whole numbers"),
    (lambda: fc.simulate_packets(NET, until=5, warmup=5), ValueError, "0 <= warmup < until"),
    (lambda: fc.simulate_packets(fc.replace(NET, {"flow.n": 1e12}), until=5), ValueError,
     "expected at most 200000, got 1e+12"),
    (lambda: fc.compare(NET, until="5"), ValueError, "until: expected a time in s, got '5'"),
    (lambda: fc.compare(NET, until=5, warmup=6), ValueError, "warmup: expected a time in [0, 5)"),
    (lambda: fc.sweep(NET, {}, fc.equilibrium), fc.ScenarioError, 'such as {"flow.n": [10, 20]}'),
    (lambda: fc.sweep(NET, {"flow.n": []}, fc.equilibrium), fc.ScenarioError,
     "over: flow.n: expected a list of at least one value, got []"),
    (lambda: fc.sweep(NET, {"flow.n": "1,2", "link.delay": 3}, fc.equilibrium), fc.ScenarioError,
     "got '1,2'\nover: link.delay: expected a list of at least one value, got 3"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, "equilibrium"), TypeError, "verb: expected a function"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, fc.simulate_map), TypeError,
     "until=60), got simulate_map: missing a required argument: 'until'"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, partial(fc.simulate, untill=3), workers=0), TypeError,
     "got simulate: missing a required argument: 'until'"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, partial(fc.stability, certified=True)), TypeError,
     "got stability: got an unexpected keyword argument 'certified'"),
    (lambda: fc.crossings(NET, "link.queue.w_q", 0.1, 1e-6), fc.ScenarioError, "low < high"),
    (lambda: fc.boundary(NET, "link.queue.w_q", "link.queue.p_max", x_range=3), fc.ScenarioError,
     "boundary: link.queue.w_q: expected a range (low, high), got 3"),
    (lambda: fc.gradient(NET, "phase", ["flow.n"]), fc.ScenarioError, "'phase_margin'"),
    (lambda: fc.gradient(NET, "queue", "flow.n"), fc.ScenarioError, "a list of paths, got the tex"),
    (lambda: fc.gradient(NET, "queue", []), fc.ScenarioError, "at least one path, got none"),
    (lambda: fc.sensitivity(NET, "flow.n", until=5), fc.ScenarioError, "a list of paths, got the"),
    (lambda: fc.optimize(NET, W_Q), fc.ScenarioError, "either maximize or minimize, got neither"),
    (lambda: fc.optimize(NET, W_Q, maximize="queue", subject_to="utilization >= 0.9"),
     fc.ScenarioError, "subject_to: expected a list of texts, got 'utilization >= 0.9' alone"),
    (lambda: fc.check_bound("slow_start", NET), fc.ScenarioError, "'mark_front.slow_start'"),
    (lambda: fc.plot(3), TypeError, "plot: expected a result or a sweep, got int"),
    (lambda: fc.plot(), TypeError, "plot: expected at least one result, got none"),
    (lambda: fc.Uniform(0), ValueError, "Uniform(step) must be positive, got 0"),
    (lambda: fc.Sampled([1, 2], [1]), ValueError, "k + 1 values, got shapes (2,) and (1,)"),
    (lambda: fc.Sampled([2, 1], [1, 2, 3]), ValueError, "Sampled needs increasing times, got [2."),
    (lambda: solve(t1=-1.0), ValueError, "solve_dde needs t0 < t1, got 0.0 and -1.0"),
    (lambda: solve(lags=1.0), TypeError,
     "lags: expected a list of functions (t, y, params) -> lag"),
    (lambda: solve(history=jnp.ones(1)), TypeError, "history: expected a function (t, params) -> "),
    (lambda: solve(field=3), TypeError, "field: expected a function (t, y, z, params) -> dy/dt"),
    (lambda: solve(mesh=0.01), ValueError, "mesh: expected Uniform, Located or MethodOfSteps"),
    (lambda: solve(lambda *_: jnp.ones(2)), ValueError,
     "field must return shapes (1,) like y, got"),
    (lambda: solve(y0=jnp.ones(3)), ValueError, "history must return shapes (3,) like y, got (1,)"),
    (lambda: solve(lags=[lambda *_: jnp.ones(2)]), ValueError, "lags[0] must return one number"),
    (lambda: solve(ts=[0.5, 0.2]), ValueError, "ts must increase within [t0, t1]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[m[2][:30] for m in MISTAKES])
def test_a_mistake_is_answered(call, kind, says):
    with pytest.raises(kind) as found:
        call()
    assert says in str(found.value)
    assert all(len(line) < 500 for line in str(found.value).splitlines())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"field": lambda t, y, z, p: y * jnp.nan}, "finite"), ({"lags": [lambda *_: -1.0]}, "lag")],
)
def test_an_equation_that_breaks_down_says_so_in_its_status(wrong, says):
    found = solve(**wrong)
    assert says in fc.Status(int(found.status)).advice
