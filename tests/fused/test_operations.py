"""What a kernel is made of computes what JAX does, operation by operation."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax import lax

import fluidcc as fc

X = np.array([0.3, -1.7, 2.5, 0.9, -0.2, 4.0])
ODD = np.array([0.0, -0.0, np.inf, np.nan, 1e12, -np.inf])


def functions(x, i):
    small = 1e-7 * x
    positive = jnp.abs(x) + 0.1
    inside = x / 5.0
    return [
        jnp.exp(x), jnp.exp2(x), jnp.log(positive), jnp.sqrt(positive), jnp.cbrt(x),
        jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sinh(x), jnp.cosh(x), jnp.tanh(x),
        jnp.arcsin(inside), jnp.arccos(inside), jnp.arctan(x), jnp.arctan2(x, positive),
        lax.erf(x), lax.erfc(x), jnp.log1p(small), jnp.log1p(positive), jnp.expm1(small),
        jnp.expm1(x), jax.nn.sigmoid(x), jax.nn.softplus(x), lax.rsqrt(positive),
        positive**2.3, x**3, positive**-2, x**0, jnp.square(x), jnp.sign(x), jnp.sign(x * 0.0),
        jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x + 0.2), jnp.abs(x), x % 0.7,
        jnp.maximum(x, 0.5), jnp.minimum(x, 0.5), jnp.clip(x, -1.0, 1.0), lax.clamp(-1.0, x, 1.0),
        lax.clamp(1.0, x, -1.0), lax.clamp(0.5, x, 0.5), jnp.log1p(x),
    ]  # fmt: skip


def conditions(x, i):
    none = jnp.where(x > 0.0, jnp.nan, x)
    high, low, whole = x > 0.5, x <= 0.9, jnp.clip(jnp.abs(x).astype(jnp.int32), 0, 2)
    return [
        jnp.where(high & low, 1.0, 2.0), jnp.where(high | ~low, x, -x),
        jnp.where(high ^ low, x, 0.0),
        jnp.isnan(jnp.maximum(none, 0.0)), jnp.isnan(jnp.minimum(0.0, none)), jnp.isfinite(none),
        jnp.isfinite(x / 0.0), x == 0.9, x != 0.9, x >= 0.9, lax.select_n(whole, x, -x, 2.0 * x),
        jnp.where(i == 1, 3.0, jnp.inf), x + jnp.inf, jnp.nan + x,
        jnp.where(jnp.arange(6) < 3, x, 0.0),
    ]  # fmt: skip


def integers(x, i):
    n, least = (10.0 * x).astype(jnp.int32), jnp.int32(-(2**31))
    long = n.astype(jnp.int64) * 3_000_000_000
    return [
        n, n // 3, n % 4, lax.rem(n, jnp.int32(4)), jnp.abs(n), jnp.sign(n), jnp.maximum(n, 5), -n,
        n & 7, n | 8, n ^ 3, ~n, jnp.minimum(n, jnp.iinfo(jnp.int32).min + 1), long, n > i,
        n.astype(bool), n**2,
        lax.clamp(jnp.int32(-3), n, jnp.int32(3)), lax.div(7 + 0 * n, n), lax.rem(7 + 0 * n, n),
        lax.div(n, 0 * n + i - 1), lax.rem(n, 0 * n + i - 1), lax.div(least + 0 * n, 0 * n - 1),
        x.astype(jnp.uint32), x.astype(jnp.int64), jnp.max(n > 0),
        lax.div(x.astype(jnp.uint32), 3 + jnp.zeros(6, jnp.uint32)),
        jnp.array([7, -7, 5]) // jnp.array([2, 2, -2]),
    ]  # fmt: skip


def truths(x, i):
    some, other = x > 0.5, jnp.roll(x, 1) > 0.5
    return [
        some & other, some | other, some ^ other, ~some, some == other, some != other,
        some < other, some <= other, some > other, some >= other, jnp.where(some, other, ~other),
        some[i], jnp.any(some), jnp.all(some), jnp.max(some), jnp.min(some), some.astype(float),
        jnp.array([True, False, True, True])[i + some.astype(jnp.int32)],
        some.reshape(2, 3) @ other.reshape(3, 2), some * other, jnp.prod(some),
    ]  # fmt: skip


def moves(x, i):
    table = x.reshape(2, 3)
    return [
        table.T, table[:, ::-1], table[None, :, 1:], jnp.broadcast_to(table[:, :1], (2, 4)),
        jnp.concatenate([x, x[:2]]), jnp.stack([x, -x]), jnp.stack([x, -x], axis=-1),
        *jnp.split(x, [1, 4]), x[1:6:2], jnp.flip(table), jnp.tile(x, 2), jnp.roll(x, 2),
        jnp.expand_dims(x, 1) * jnp.ones((6, 2)), jnp.repeat(table, 2, axis=1), jnp.eye(3) @ x[:3],
    ]  # fmt: skip


def joins(x, i):
    table = x.reshape(2, 3)
    batch = jnp.stack([table, table + 1.0])
    return [
        x.sum(), table.sum(axis=0), table.max(axis=1), table.min(), x.prod(),
        (table > 0.0).all(axis=1), (table > 0.0).any(), table @ table.T, table @ x[:3],
        jnp.vdot(x, x), jnp.einsum("bij,bkj->bik", batch, batch), jnp.zeros((0,)).sum() + x,
        jnp.mean(x), jnp.var(x), jnp.linalg.norm(x),
    ]  # fmt: skip


def indices(x, i):
    table = x.reshape(2, 3)
    places = jnp.stack([i, i + 3, i - 1])
    return [
        x[i], table[i], table[:, i], x[places], x[jnp.array([5, 0])], table[i, 2 - i],
        x.at[i + 90].get(mode="fill"), x.at[i + 90].get(mode="clip"),
        x.at[i].get(mode="promise_in_bounds"), lax.dynamic_slice(x, (i + 3,), (4,)),
        lax.dynamic_slice(table, (0 * i, i), (2, 2)), x.at[2].set(9.0), x.at[2].add(1.0),
        x.at[jnp.array([1, 3])].add(x[:2]), jnp.take(x, 3), x[:2][i],
        jnp.array([1.0, 2.0, 4.0])[i], jnp.searchsorted(jnp.sort(jnp.array(X)), x[0]),
    ]  # fmt: skip


def flows(x, i):
    def collatz(state):
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    halved = lax.while_loop(lambda v: jnp.any(jnp.abs(v) > 1.0), lambda v: v[::-1] / 2.0, x)

    def halvings(v):  # loops within loops, a branch within
        def inner(s):
            return s[0] + 1, lax.cond(
                s[1] > 2.0, lambda q: 0.5 * q, lambda q: q + v * v + 0.1, s[1]
            )

        def outer(s):
            return s[0] + 1, lax.while_loop(lambda w: w[0] < s[0], inner, (0, s[1]))[1]

        return lax.while_loop(lambda s: s[0] + s[1] < 4.0 + v, outer, (0, v))[1]

    total, parts = lax.scan(lambda s, v: (s + v, s * v), 0.0, x)
    back, _ = lax.scan(lambda s, v: (0.5 * s + v, None), 0.0, x, reverse=True)
    return [
        *lax.while_loop(lambda s: s[0] != 1, collatz, (6 + i, 0)), halved, total, parts, back,
        lax.cond(i > 0, jnp.sin, jnp.cos, x), lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x),
        lax.switch(i + 1, [jnp.sin, jnp.cos, jnp.exp], x),
        lax.fori_loop(0, 4, lambda k, v: v + k.astype(float), x),
        lax.fori_loop(0, i + 2, lambda k, v: v * k.astype(float), x),
        jax.grad(lambda v: jnp.sum(v**3))(x),
        jax.jit(jnp.sinc)(x), jax.vmap(lambda v: lax.cond(v > 0, jnp.exp, jnp.sin, v))(x),
        lax.cond(jnp.asarray(True), jnp.sin, jnp.cos, x), halvings(x[0]), jax.vmap(halvings)(x),
    ]  # fmt: skip


def flat(values):
    """All numbers in turn; what is no finite one as one that stands for it."""
    parts = [jnp.ravel(jnp.asarray(v)).astype(float) for v in values]
    return jnp.nan_to_num(jnp.concatenate(parts), nan=77.25, posinf=88.5, neginf=-88.5)


def ends(group, p, batched):
    """End states after one step of length one by a slope that depends on parameters alone: it."""
    one = jax.tree.map(lambda v: v[1], p)
    size = jax.eval_shape(lambda p: flat(group(p["x"], p["i"])), one)
    found = fc.solve_dde(
        lambda t, y, z, p: flat(group(p["x"], p["i"])), lambda t, p: jnp.zeros(size.shape),
        0.0, 1.0, lags=(), params=p if batched else one, ts=[1.0],
        mesh=fc.Uniform(1.0, fused=True), batched=batched,
    )  # fmt: skip
    assert np.all(np.asarray(found.status) == fc.Status.ok)
    return np.asarray(found.y)[..., 0, :]


@pytest.mark.parametrize(
    ("group", "x", "i"),
    [
        *((g, X, 1) for g in (functions, conditions, integers, moves, joins, indices, flows)),
        (truths, X, 1),
        *((g, ODD, 0) for g in (functions, conditions, integers, moves, joins)),
    ],
)
def test_operations_are_those_of_jax(group, x, i):
    """One trajectory, and several abreast that branch and loop each in its own way."""
    turned = np.array([np.roll(x, k) * (1.0 if k < 6 else 0.7) for k in range(11)])
    p = {"x": jnp.asarray(turned), "i": jnp.asarray(np.arange(11) * (i > 0) % 3, jnp.int32)}
    expected = jax.jit(jax.vmap(lambda p: flat(group(p["x"], p["i"]))))(p)
    several = ends(group, p, True)
    np.testing.assert_allclose(several, expected, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(ends(group, p, False), expected[1], rtol=1e-14, atol=1e-300)


def test_those_whose_loop_has_ended_take_no_branches_in_its_body():
    """There the loop within would never end."""

    def group(limit, i):
        def test(s):
            return lax.cond(i > 0, lambda k: k < limit[0], lambda k: k < 20.0 + limit[0], s)

        def to_seven(s):
            return lax.while_loop(lambda q: q != 7.0, lambda q: q + 1.0, s) + 2.0

        body = lambda s: lax.cond(i > 0, to_seven, lambda k: k + 1.0, s)  # noqa: E731
        return [lax.while_loop(test, body, 0.0)]

    p = {"x": jnp.arange(9.0)[:, None] % 5.0, "i": jnp.arange(9, dtype=jnp.int32) % 2}
    each = zip(p["x"][:, 0], p["i"], strict=True)
    expected = [(9.0 if x else 0.0) if i else 20.0 + x for x, i in each]
    np.testing.assert_array_equal(ends(group, p, True)[:, 0], expected)


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (lambda x, i: jnp.sort(x), "cannot be made of 'sort'"),
        (lambda x, i: x * jnp.argmax(x).astype(float), "cannot be made of 'argmax'"),
        (lambda x, i: x.astype(jnp.float32), "has numbers of float64, int32"),
        (lambda x, i: x.at[i].set(0.0), "cannot write to a computed index"),
        (lambda x, i: x.at[jnp.array([1, 1])].add(1.0), "cannot add twice to one index"),
        (lambda x, i: lax.scan(lambda s, _: (0.5 * s, None), x, None, 65)[0], "a scan of 65 steps"),
        (lambda x, i: jnp.real(lax.complex(x, x)), "cannot be made of 'complex'"),
    ],
)
def test_what_has_no_rule_is_refused(operation, said):
    p = {"x": jnp.asarray(X), "i": jnp.int32(1)}
    with pytest.raises(ValueError, match=said) as caught:
        fc.solve_dde(
            lambda t, y, z, p: operation(p["x"], p["i"]), lambda t, p: p["x"], 0.0, 1.0, lags=(),
            params=p, ts=[1.0], mesh=fc.Uniform(1.0, fused=True),
        )  # fmt: skip
    assert "fused" in str(caught.value)


# -- Functions that kernels take of several trajectories at once, written out in series
DIGIT = 5e-16
LEAST = 5e-324


def taken(group, **columns):
    """What a function of parameters gives for several trajectories, each a row of the columns."""
    p = {name: jnp.asarray(value) for name, value in columns.items()}
    size = sum(v[0].size for v in group(p))
    found = fc.solve_dde(
        lambda t, y, z, p: jnp.concatenate(group(p)), lambda t, p: jnp.zeros(size), 0.0, 1.0,
        lags=(), params=p, ts=[1.0], mesh=fc.Uniform(1.0, fused=True), batched=True,
    )  # fmt: skip
    return np.asarray(found.y)[:, 0]


def exact(function, *columns):
    """A function of mpmath's at these very numbers, with 40 digits."""
    with mpmath.workdps(40):
        rows = zip(*(map(mpmath.mpf, v.ravel().tolist()) for v in columns), strict=True)
        return np.array([float(function(*row)) for row in rows]).reshape(columns[0].shape)


def test_right_to_the_last_digits():
    """A power loses digits with its logarithm."""
    rng = np.random.default_rng(5)
    sign = rng.choice([-1.0, 1.0], (2, 8, 12))
    wide = 10.0 ** rng.uniform(-323.0, 300.0, (8, 12))
    wide[:, :2] = LEAST * rng.integers(1, 1 << 40, (8, 2))
    near = 1.0 + sign[0] * 10.0 ** rng.uniform(-15.0, -0.4, (8, 12))
    powers = rng.uniform(-690.0, 690.0, (8, 12))
    powers[0, :6] = [-708.0, -744.0, -745.5, 0.0, 1e-300, -1e-17]
    small = sign[1] * 10.0 ** rng.uniform(-300.0, -0.05, (8, 12))
    log, exp, power = mpmath.log, mpmath.exp, mpmath.power
    rows = [
        (jnp.log, log, ("wide",), 1),
        (jnp.log, log, ("near",), 1),
        (jnp.exp, exp, ("powers",), 1),
        (jnp.log1p, mpmath.log1p, ("small",), 2),
        (jnp.expm1, mpmath.expm1, ("small",), 2),
        (jnp.power, power, ("near", "powers"), 1 + np.abs(powers * np.log(near))),
        (jnp.power, power, ("wide", "small"), 1 + np.abs(small * np.log(wide))),
    ]
    given = {"wide": wide, "near": near, "powers": powers, "small": small}
    found = taken(lambda p: [f(*(p[name] for name in names)) for f, _, names, _ in rows], **given)
    for values, (_, function, names, digits) in zip(np.split(found, 7, 1), rows, strict=True):
        right = exact(function, *(given[name] for name in names))
        close = np.abs(values - right) <= DIGIT * digits * np.abs(right) + LEAST
        assert close.all(), (names, values[~close], right[~close])


def test_whole_powers_of_whole_numbers_are_whole():
    x, to = np.meshgrid(np.arange(1.0, 9.0), np.arange(13.0))
    (expected,) = np.split(x**to, 1)
    found = taken(lambda p: [p["x"] ** p["to"], p["x"] ** -p["to"]], x=x, to=to)
    np.testing.assert_array_equal(found[:, :8], expected)
    np.testing.assert_allclose(found[:, 8:], 1.0 / expected, rtol=DIGIT)


def test_infinite_ones_and_those_that_are_no_numbers():
    """As NumPy has them."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, -1.0, 800.0, 1e-310])
    to = np.array([0.0, 3.0, -2.0, 0.5, 1.0, np.inf, -np.inf, np.nan])
    x, to = np.broadcast_arrays(x, to[:, None])

    def kept(np, p):
        x, to = p["x"], p["to"]
        values = np.concatenate([f(x) for f in (np.exp, np.log, np.log1p, np.expm1)] + [x**to], -1)
        return [np.nan_to_num(values, nan=77.25, posinf=88.5, neginf=-88.5)]

    with np.errstate(all="ignore"):
        (expected,) = kept(np, {"x": x, "to": to})
    found = taken(lambda p: kept(jnp, p), x=x, to=to)
    np.testing.assert_allclose(found, expected, rtol=20 * DIGIT, atol=LEAST)
