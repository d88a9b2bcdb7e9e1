"""First Lyapunov coefficients, against known ones and against cycles near Hopf points."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from analysis_cases import CAPACITY, hollot

from fluidcc.analysis.crossings import crossings
from fluidcc.analysis.delay_equation import DelayEquation
from fluidcc.analysis.normal_form import normal_form
from fluidcc.analysis.stability import stability

HARMONICS = 6


def one(t, y, p):
    return 1.0


HUTCHINSON = DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] * (1 + y), (one,), {"r": math.pi / 2}, 0.0
)
MOVING = DelayEquation(  # the lag moves with the state, otherwise linear
    lambda t, y, z, p: -p["r"] * z[0],
    (lambda t, y, p: 1 + p["c"] * y + p["d"] * y**2,),
    {"r": math.pi / 2, "c": 0.4, "d": 0.0}, 0.0,
)  # fmt: skip
CUBIC = DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] + p["e"] * z[0] ** 3,
    (one,),
    {"r": math.pi / 2, "e": 1.0},
    0.0,
)


def round_trip(t, y, p):
    return 0.2 + y[1] / CAPACITY


TCP = DelayEquation(  # the network of analysis_cases.hollot as one equation
    lambda t, y, z, p: jnp.stack([
        1 / round_trip(0, y, p)
        - y[0] * z[0][0] / (2 * round_trip(0, z[0], p)) * 0.1 / 550 * (z[0][2] - 150),
        60 * y[0] / round_trip(0, y, p) - CAPACITY,
        -CAPACITY * jnp.log1p(-p["w_q"]) * (y[1] - y[2]),
    ]),
    (round_trip,), {"w_q": 1e-4}, np.array([15.0, 190.0, 190.0]),
)  # fmt: skip


@functools.cache
def balance(field, lag, path, n, component):
    """Residual of harmonic balance, and its derivative, compiled.

    Unknown are parameter, frequency and Fourier coefficients; the first harmonic of one component
    has a given amplitude.
    """
    k = HARMONICS
    phase = 2 * np.pi * np.arange(4 * k) / (4 * k)
    waves = np.stack(
        [np.cos(j * phase) for j in range(k + 1)] + [np.sin(j * phase) for j in range(1, k + 1)]
    )

    def value(coefficients, angle):
        j = np.arange(1.0, k + 1)
        both = jnp.stack([jnp.cos(j * angle), jnp.sin(j * angle)], axis=1).ravel()
        return coefficients[0] + both @ coefficients[1:]

    def residual(unknown, amplitude, params):
        w, coefficients = unknown[1], unknown[2:].reshape(2 * k + 1, n)
        params = {**params, path: unknown[0]}

        def at(angle):
            y = value(coefficients, angle)
            slope = jax.jvp(lambda a: value(coefficients, a), (angle,), (w,))[1]
            state = y if n > 1 else y[0]
            z = value(coefficients, angle - w * lag(0.0, state, params))
            return slope - jnp.atleast_1d(field(0.0, state, (z if n > 1 else z[0],), params))

        left = jax.vmap(at)(jnp.asarray(phase))
        fixed = jnp.stack([coefficients[1, component] - amplitude, coefficients[2, component]])
        return jnp.concatenate([(waves @ left).ravel() / len(phase), fixed])

    return jax.jit(lambda *args: (residual(*args), jax.jacfwd(residual)(*args)))


def cycle_at(model, path, frequency, amplitude, component=0, start=None):
    """Parameter and all unknowns of the cycle whose first harmonic has an amplitude."""
    rest = model.equilibrium().flat
    n = len(rest)
    function = balance(model.field, model.lags[0], path, n, component)
    if start is None:
        first = np.zeros((2 * HARMONICS + 1, n))
        first[0], first[1, component] = rest, amplitude
        start = np.concatenate([[model.params[path], frequency], first.ravel()])
    params = {name: np.float64(v) for name, v in model.params.items()}
    x, scale = np.asarray(start, float), np.maximum(np.abs(start), 1e-3)
    for _ in range(30):
        left, slope = map(np.asarray, function(x, np.float64(amplitude), params))
        step = scale * np.linalg.lstsq(slope * scale, left, rcond=None)[0]
        x = x - step
        if np.max(np.abs(step / scale)) < 1e-11:
            break
    assert np.max(np.abs(left)) < 1e-7
    return x[0], x


def test_hutchinson_has_the_known_coefficient():
    form = normal_form(HUTCHINSON.equilibrium(), math.pi / 2)
    velocity = 1j / (1 + 1j * math.pi / 2)  # d(root)/dr at the Hopf point
    known = -velocity.real * (3 * math.pi - 2) / 10
    assert form.coefficient.real == pytest.approx(known, rel=1e-12)
    assert form.lyapunov == pytest.approx(known / (math.pi / 2), rel=1e-12)
    assert form.criticality == "supercritical"
    excess = 0.003
    (amplitude,) = form.amplitudes(velocity.real * excess)
    assert amplitude == pytest.approx(math.sqrt(40 * excess / (3 * math.pi - 2)), rel=1e-12)
    with pytest.raises(ValueError, match="no cycle on this side"):
        form.amplitudes(-0.1)


@pytest.mark.parametrize("e", [1.0, -1.0, 0.0])
def test_a_cubic_term_alone(e):
    """First order: c = 3 e |e^(-iw)|^2 e^(-iw) / (1 - ...) with the delayed state at -i."""
    form = normal_form(CUBIC.replace({"e": e}).equilibrium(), math.pi / 2)
    known = 3 * e * -1j / (1 + 1j * math.pi / 2)
    assert form.coefficient == pytest.approx(known, rel=1e-12, abs=1e-15)
    expected = {1.0: "supercritical", -1.0: "subcritical", 0.0: "degenerate"}
    assert form.criticality == expected[e]


@pytest.mark.parametrize(("c", "d"), [(0.4, 0.0), (0.0, 0.5), (0.3, -0.4)])
def test_lags_that_move_with_the_state_count(c, d):
    """The curvature of the branch of cycles, solved for, is that of the normal form."""
    model = MOVING.replace({"c": c, "d": d})
    form = normal_form(model.equilibrium(), math.pi / 2)
    velocity = 1j / (1 + 1j * math.pi / 2)
    predicted = -form.coefficient.real / (4 * velocity.real)  # r - pi/2 per squared amplitude
    found = []
    for amplitude in (0.02, 0.04):
        r, _ = cycle_at(model, "r", math.pi / 2, amplitude)
        found.append((r - math.pi / 2) / amplitude**2)
    extrapolated = (4 * found[0] - found[1]) / 3
    assert predicted == pytest.approx(extrapolated, rel=1e-4)
    assert form.criticality == ("supercritical" if extrapolated > 0 else "subcritical")


def test_a_network_has_the_coefficient_of_its_equation():
    """TCP with RED as a network and written down as one equation, lags by the present queue."""
    (hopf,) = crossings(hollot(), "link.queue.w_q", 5e-5, 2e-4, points=3).crossings
    (same,) = crossings(TCP, "w_q", 5e-5, 2e-4, points=3).crossings
    assert same.value == pytest.approx(hopf.value, rel=1e-9)
    assert (hopf.criticality, same.criticality) == ("supercritical", "supercritical")
    assert hopf.lyapunov == pytest.approx(same.lyapunov, rel=1e-6)


def test_cycles_near_the_hopf_point_of_the_network_have_the_amplitude_told():
    rest = stability(TCP.replace({"w_q": 1.048512513e-4}))
    frequency = abs(rest.rightmost.imag)
    form = normal_form(rest.equilibrium, frequency)
    w_q = 1.0505e-4
    growth = stability(TCP.replace({"w_q": w_q})).rightmost.real
    amplitudes = form.amplitudes(growth)
    start, hopf = None, TCP.replace({"w_q": 1.048512513e-4})
    for size in (0.5, 1.0):
        there, start = cycle_at(hopf, "w_q", frequency, size * amplitudes[1], 1, start)
    assert there - 1.048512513e-4 == pytest.approx(w_q - 1.048512513e-4, rel=0.02)
