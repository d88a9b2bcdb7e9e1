"""Functions that kernels take of several trajectories at once, written out in series."""

import jax.numpy as jnp
import mpmath
import numpy as np

import fluidcc as fc

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
