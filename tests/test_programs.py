"""One code for NumPy and JAX: derivatives, loops, brackets, and equilibria by either."""

import math
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc import ops
from fluidcc.analysis.bisection import bisect, find_zero, first_crossing
from fluidcc.programs import compiling, jacobian, jvp, leaves, slope, write_out


def composed(v):
    """A function (4,) -> (3,) of everything that rules are made of, with ties of extremes."""
    a, b, c, d = (v[k] for k in range(4))
    first = ops.where(a > b, ops.exp(-a) * b, ops.log(a) / b) + ops.maximum(c, d) ** 1.5
    second = ops.expm1(a * c) - ops.log1p(b) + 2.0**d + ops.clip(b, 0.0, d) - abs(a - b)
    third = ops.total(ops.concatenate([v[:2], v[2:] * a])) / ops.sqrt(ops.minimum(a, b))
    return ops.stack([first, second, third])


@pytest.mark.parametrize("point", [(0.3, 0.7, 1.1, 0.4), (2.0, 0.5, 0.8, 0.8)])
def test_derivatives_are_those_of_jax(point):
    v = np.array(point)
    assert jacobian(composed, v) == pytest.approx(np.asarray(jax.jacfwd(composed)(jnp.array(v))))
    along = np.array([0.2, -1.0, 0.5, 0.1])
    value, change = jvp(composed, v, along)
    there = jax.jvp(composed, (jnp.array(v),), (jnp.array(along),))
    assert value == pytest.approx(np.asarray(there[0]), rel=1e-14)
    assert change == pytest.approx(np.asarray(there[1]), rel=1e-13)


def rules(a, b, c, d):
    """The first two of `composed`, their rates of change along a line, and numbers of no input."""
    first = ops.where(a > b, ops.exp(-a) * b, ops.log(a) / b) + ops.maximum(c, d) ** 1.5
    second = ops.expm1(a * c) - ops.log1p(b) + 2.0**d + ops.clip(b, 0.0, d) - abs(a - b)
    both = slope(lambda k: (first * (1 + k * second), (-0.5) ** (2 + 0 * k) * (b + k) ** 2.0), a, b)
    counted = sum([a > b, c > d, a > d], 0.0 * a) - 1.0 * (a > 0.5) + (b % 0.3) // 0.1
    constant = ops.log(1.0 + 0.0 * a) + 3.0 + ops.zeros_like(b)
    return first, second, both, 0.0 * a, (a >= b) & ~(c == d) | (d != 0.4), counted, constant


def test_rules_written_out_give_the_same_for_any_shape():
    draw = np.random.default_rng(0)
    program = write_out(rules, (), tuple(np.float64(v) for v in (0.3, 0.7, 1.1, 0.4)))
    for shapes in [((), (), (), ()), ((5,), (3, 1), (), (5,))]:
        given = [draw.uniform(0.1, 2.0, shape) for shape in shapes]
        with np.errstate(all="ignore"):
            expected = leaves(rules(*given))
        for one, other in zip(program(*given), expected, strict=True):
            assert np.broadcast_to(one, np.shape(other)) == pytest.approx(
                other, rel=1e-15, nan_ok=True
            )


def test_a_constant_is_divided_by_as_numpy_does():
    with np.errstate(all="ignore"):
        assert write_out(lambda a: 1 / (0.0 * a), (), (1.0,))(2.0) == (np.inf,)


def test_a_rule_that_branches_in_python_is_refused():
    with pytest.raises(ValueError, match=r"branches in Python on a number.*ops\.where"):
        write_out(lambda a: 1.0 if a > 0 else -a, (), (1.0,))


def test_a_rate_within_a_derivative_has_its_closed_form():
    """Of 1 - (1 - g)^(k/w) at k = 0: -ln(1 - g)/w, and its derivatives by g and w."""
    g, w = 0.1, 5.0

    def rate(v):
        rates = slope(lambda k: (1 - (1 - v[0]) ** (k / v[1]), k * ops.stack([v[0], v[1]])), v)
        return ops.concatenate([ops.ravel(rates[0]), rates[1]])

    found = jacobian(rate, np.array([g, w]))
    log = np.log(1 - g)
    expected = [[1 / ((1 - g) * w), log / w**2], [1.0, 0.0], [0.0, 1.0]]
    assert found == pytest.approx(np.array(expected), rel=1e-14)


def test_threads_do_not_mix_their_derivatives():
    def work(k):
        return jvp(lambda x: slope(lambda n: n * x**2, x), np.float64(k), 1.0)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(1, 2000)))
    assert found == [(k**2, 2 * k) for k in range(1, 2000)]


@pytest.mark.parametrize("convert", [np.array, jnp.array])
def test_brackets_end_at_neighbouring_numbers(convert):
    """A root, a jump, a plateau of zeros, and functions that do not change their sign."""

    def function(x):
        rows = [2.0 - x[0] ** 3, ops.where(x[1] < 0.3, 5.0, -1e9), ops.minimum(1.0 - x[2], 0.0)]
        return ops.stack([*rows, 1.0 + 0.0 * x[3], -1.0 + 0.0 * x[4]])

    low, high = bisect(function, convert([0.0] * 5), convert([4.0] * 5))
    assert np.asarray(low)[:2] == pytest.approx([2 ** (1 / 3), 0.3], rel=1e-15)
    assert (np.nextafter(low, 9.0)[:2] == np.asarray(high)[:2]).all()
    assert (low[2], low[3], high[3], low[4], high[4]) == (0.0, 4.0, 4.0, 0.0, 0.0)


def test_a_function_of_plain_numbers_is_bracketed():
    low, high = bisect(lambda x: math.cos(float(x)), 1.0, 2.0)
    assert low == pytest.approx(math.pi / 2, rel=1e-15) and np.nextafter(low, 9.0) == high


@pytest.mark.parametrize(
    "near",
    [
        None, ([0.9] * 5, [1.4] * 5), ([1.2599] * 5, [1.26] * 5), ([3.0] * 5, [3.0] * 5),
        ([0.0] * 5, [0.1] * 5),
    ],
)  # fmt: skip
def test_zeros_are_found_whatever_is_expected(near):
    """Of a power, a kink, a jump, and functions that do not change their sign."""

    def function(x):
        rows = [2.0 - x**3, np.where(x < 0.3, 1.0, -1e-3 * (x - 0.3)), np.where(x < 0.7, 5.0, -1e9)]
        return np.where(row == 3, 1.0, np.where(row == 4, -1.0, np.choose(row % 3, rows)))

    row = np.arange(5)
    low, high = np.zeros(5), np.full(5, 4.0)
    zeros = find_zero(function, low, high, near and tuple(map(np.array, near)))
    assert zeros == pytest.approx([2 ** (1 / 3), 0.3, 0.7, 4.0, 0.0], rel=1e-13)


@pytest.mark.parametrize("convert", [np.array, jnp.array])
def test_a_function_above_0_at_the_high_end_has_its_zero_there(convert):
    """As windows that grow at their cap have, whatever they do before."""
    dips = lambda x: (x - 1.0) * (x - 2.0)  # noqa: E731
    low, high = convert([0.0]), convert([4.0])
    near = (np.array([0.5]), np.array([1.5]))
    found = [find_zero(dips, low, high), find_zero(dips, low, high, near)]
    assert [float(x[0]) for x in found] == [4.0, 4.0]


@pytest.mark.parametrize("convert", [np.array, jnp.array])
def test_the_first_of_several_crossings_is_found(convert):
    """Of cos x, with the values at all points tried."""
    cosine = lambda x: jnp.cos(x) if ops.traced(x) else np.cos(x)  # noqa: E731
    tried = np.arange(0.0, 9.0)
    found = first_crossing(cosine, convert(tried))
    assert found.values == pytest.approx(np.cos(tried))
    assert int(found.first) == 2
    assert float(found.below) == pytest.approx(np.pi / 2, rel=1e-15)
    assert float(found.at_below) > 0 >= float(found.at_above)


@pytest.mark.parametrize(
    "name", ["misra2003/mixed", "alizadeh2010/dctcp", "qazi2010/two_bmcc_router"]
)
def test_compiled_equilibria_are_the_same(name):
    """A root with two groups, a jump with a memory, a load factor; and their linearisations."""
    net = fc.load(name)
    plain = fc.equilibrium(net)
    with compiling():
        found = fc.equilibrium(net)
    told = attrgetter("status", "message", "sliding")
    assert told(found) == told(plain)
    for link, own in plain.links.items():
        assert found.links[link].queue == pytest.approx(own.queue, rel=1e-10, abs=1e-9)
        assert found.links[link].mark_probability == pytest.approx(own.mark_probability, rel=1e-10)
    for group, flows in plain.flows.items():
        assert found.flows[group].window == pytest.approx(flows.window, rel=1e-10)
    if plain.smooth:
        one, other = plain.linear(), found.linear()
        for matrix in ("A", "B", "C", "D", "lag"):
            assert getattr(one, matrix) == pytest.approx(
                np.asarray(getattr(other, matrix)), rel=1e-9
            )
