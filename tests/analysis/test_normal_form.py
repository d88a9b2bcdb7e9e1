"""First Lyapunov coefficients, against known ones and against cycles near Hopf points."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from analysis_cases import CAPACITY, hollot

import fluidcc as fc
from fluidcc.analysis.linear import LINK, Linear
from fluidcc.analysis.normal_form import TIMES, normal_form, reduced
from fluidcc.analysis.winding import difference_decays
from fluidcc.laws import ECNMod, MarkTail, PerMark, Threshold

HARMONICS = 6


def one(t, y, p):
    return 1.0


HUTCHINSON = fc.DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] * (1 + y), (one,), {"r": math.pi / 2}, 0.0
)
MOVING = fc.DelayEquation(  # the lag moves with the state, otherwise linear
    lambda t, y, z, p: -p["r"] * z[0],
    (lambda t, y, p: 1 + p["c"] * y + p["d"] * y**2,),
    {"r": math.pi / 2, "c": 0.4, "d": 0.0}, 0.0,
)  # fmt: skip
CUBIC = fc.DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] + p["e"] * z[0] ** 3,
    (one,),
    {"r": math.pi / 2, "e": 1.0},
    0.0,
)


def round_trip(t, y, p):
    return 0.2 + y[1] / CAPACITY


TCP = fc.DelayEquation(  # the network of analysis_cases.hollot as one equation
    lambda t, y, z, p: jnp.stack([
        1 / round_trip(0, y, p)
        - y[0] * z[0][0] / (2 * round_trip(0, z[0], p)) * 0.1 / 550 * (z[0][2] - 150),
        60 * y[0] / round_trip(0, y, p) - CAPACITY,
        -CAPACITY * jnp.log1p(-p["w_q"]) * (y[1] - y[2]),
    ]),
    (round_trip,), {"w_q": 1e-4}, np.array([15.0, 190.0, 190.0]),
)  # fmt: skip


def cycle_at(model, amplitude):
    """The r with which the cycle of `MOVING` has a first harmonic of an amplitude, by balance."""
    p, m = model.params, 2 * HARMONICS + 1
    angle = 2 * np.pi * np.arange(m) / m

    def residual(x):
        y, change = fourier(x[2:], angle)
        late, _ = fourier(x[2:], angle - x[1] * (1 + p["c"] * y + p["d"] * y**2))
        return np.concatenate([x[1] * change + x[0] * late, [x[3] - amplitude, x[4]]])

    start = np.zeros(2 + m)
    start[:2], start[3] = math.pi / 2, amplitude
    found = scipy.optimize.least_squares(residual, start, jac="3-point", xtol=1e-15, gtol=1e-15)
    assert np.max(np.abs(found.fun)) < 1e-10
    return found.x[0]


def test_hutchinson_has_the_known_coefficient():
    form = normal_form(HUTCHINSON.equilibrium(), math.pi / 2)
    velocity = 1j / (1 + 1j * math.pi / 2)  # d(root)/dr at the Hopf point
    known = -velocity.real * (3 * math.pi - 2) / 10
    assert form.coefficient.real == pytest.approx(known, rel=1e-12)
    assert form.lyapunov == pytest.approx(known / (math.pi / 2), rel=1e-12)
    assert form.criticality == "supercritical"
    excess = 0.003
    amplitude = 2 * abs(form.vector) * np.sqrt(-velocity.real * excess / form.coefficient.real)
    assert amplitude == pytest.approx(math.sqrt(40 * excess / (3 * math.pi - 2)), rel=1e-12)


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
        found.append((cycle_at(model, amplitude) - math.pi / 2) / amplitude**2)
    extrapolated = (4 * found[0] - found[1]) / 3
    assert predicted == pytest.approx(extrapolated, rel=1e-4)
    assert form.criticality == ("supercritical" if extrapolated > 0 else "subcritical")


def test_a_network_has_the_coefficient_of_its_equation():
    """TCP with RED as a network and written down as one equation, lags by the present queue."""
    (hopf,) = fc.crossings(hollot(), "link.queue.w_q", 5e-5, 2e-4, points=3).crossings
    (same,) = fc.crossings(TCP, "w_q", 5e-5, 2e-4, points=3).crossings
    assert same.value == pytest.approx(hopf.value, rel=1e-9)
    assert (hopf.criticality, same.criticality) == ("supercritical", "supercritical")
    assert hopf.lyapunov == pytest.approx(same.lyapunov, rel=1e-6)


# -- Neutral systems: by hand, by harmonic balance
# -- the neutral logistic equation: v'(t) = -r (1 + v(t)) (v(t - 1) + rho v'(t - 1))
def logistic(r, rho):
    """Its linear system, with v and v' on the wire."""
    own = np.array([LINK])
    return Linear(
        A=np.zeros((1, 1)), B=np.array([[-r, -r * rho]]), C=np.array([[1.0], [0.0]]),
        D=np.array([[0.0, 0.0], [-r, -r * rho]]), pick=np.array([0, 1]), lag=np.ones(2),
        state_owner=own, output_owner=np.array([LINK, LINK]),
    )  # fmt: skip


def logistic_terms(r, rho):
    """Its Taylor coefficients along a motion."""

    def derivatives(start, frequency, vector, mean, double):
        def waves(t):
            turn = np.exp(1j * frequency * t)
            return 2 * np.real(vector * turn), mean + 2 * np.real(double * turn**2)

        second, third = [], []
        for t in 2 * math.pi / frequency * np.arange(TIMES) / TIMES:
            (v, w), (late, late2) = waves(t), waves(t - 1)
            told, told2 = (x[1] + rho * x[2] for x in (late, late2))
            of_second, of_third = -r * v[0] * told, -r * (v[0] * told2 + w[0] * told)
            second.append([of_second, 0.0, of_second])
            third.append([of_third, 0.0, of_third])
        return np.array(second), np.array(third)

    return derivatives


@pytest.mark.parametrize("rho", [0.0, 0.3, -0.4])
def test_the_neutral_logistic_equation_has_the_coefficient_found_by_hand(rho):
    """Gopalsamy and Zhang (1988). With g(s) = -r e^-s (1 + rho s) the product of a wave and of its
    own g has no mean; at twice the frequency it makes d; the cubic terms are i w (d - 1).
    """
    w = scipy.optimize.brentq(lambda w: w - math.atan(rho * w) - math.pi / 2, 0.5, 3.0)
    r = w / math.hypot(1, rho * w)
    system = logistic(r, rho)
    assert abs(r * rho) < 1 and difference_decays(system)
    assert abs(np.linalg.det(system.matrix(1j * w))) < 1e-12
    double = 1j * w / (2j * w + r * np.exp(-2j * w) * (1 + 2j * w * rho))
    known = 1j * w * (double - 1) / (1 + 1j * w + r * rho * np.exp(-1j * w))
    form = reduced(system, np.zeros(3), w, logistic_terms(r, rho))
    assert form.coefficient == pytest.approx(known, rel=1e-12)
    assert form.criticality == "supercritical"


# -- one self-clocked class under a ramp of marks
C, N, T, AT, C1, C2 = 1000.0, 40.0, 0.1, 20.0, 0.5, 0.5


def ramp(width, *, delay, cross=0.0):
    """ECN-mod flows, marks at the tail."""
    flows = fc.Flows(
        ECNMod(c1=C1, c2=C2), n=np.array([N]), rtt=np.array([T]), reaction=PerMark(),
        feedback=MarkTail(),
    )  # fmt: skip
    link = fc.Link(Threshold(at=AT, width=width), capacity=C, cross=cross)
    return fc.Network((link,), (flows,), rates="self_clocked", delay=delay)


def hopf():
    """Width of the ramp and frequency at which y' = -a y - b y(t - lag) has roots on the axis."""

    def parts(width):
        w = scipy.optimize.brentq(
            lambda w: C1 - (N * w - C * T - AT) / width * (C1 + C2 * w), 3.0, 20.0, xtol=1e-14
        )
        p = (N * w - C * T - AT) / width
        return C / N * p * C2, C / N * (C1 + C2 * w) * N / width, N * w / C

    def phase(width):
        a, b, lag = parts(width)
        return math.sqrt(b * b - a * a) * lag - math.acos(-a / b)

    width = scipy.optimize.brentq(phase, 150.0, 400.0, xtol=1e-12)
    a, b, _ = parts(width)
    return width, math.sqrt(b * b - a * a)


def of_window(form):
    """The coefficient where z is the amplitude of the window."""
    return form.coefficient / abs(form.vector[0]) ** 2


def fourier(c, angle):
    """A series (mean, cos, sin, cos 2, ...) and its derivative by the angle."""
    j = np.arange(1, HARMONICS + 1)[:, None]
    cos, sin = np.cos(j * angle), np.sin(j * angle)
    return c[0] + c[1::2] @ cos + c[2::2] @ sin, c[2::2] @ (j * cos) - c[1::2] @ (j * sin)


def balanced(width, frequency, window, queue, vector, cross, amplitude):
    """Width of the ramp and frequency of the fifo cycle whose window's first harmonic has an
    amplitude: harmonic balance of the window's law and of flight = window.
    """
    m = 2 * HARMONICS + 1
    angle = 2 * np.pi * np.arange(m) / m

    def residual(x):
        w, windows, queues = x[1], x[2 : 2 + m], x[2 + m :]
        sent = angle - w * T
        for _ in range(50):  # Newton's method for sent + w (q(sent)/C + T) = angle
            q, dq = fourier(queues, sent)
            sent = sent - (sent + w * (q / C + T) - angle) / (1 + w * dq / C)
        q, dq = fourier(queues, sent)
        acks = (w * dq + C - cross) / N / (1 + w * dq / C)
        marked = (q - AT) / x[0]
        here, change = fourier(windows, angle)
        law = w * change - acks * ((1 - marked) * C1 - marked * C2 * here)
        flight = ((C - cross) * (angle - sent) / w + fourier(queues, angle)[0] - q) / N
        return np.concatenate([law, flight - here, [windows[1] - amplitude, windows[2]]])

    start = np.zeros(2 + 2 * m)
    start[:4] = width, frequency, window, amplitude
    wave = amplitude * vector[1] / vector[0]
    start[2 + m : 5 + m] = queue, wave.real, -wave.imag
    found = scipy.optimize.least_squares(  # a new Jacobian each step: its condition is near 1e6
        residual, start, jac="3-point", x_scale="jac", ftol=None, xtol=1e-15, gtol=1e-15
    )
    assert np.max(np.abs(found.fun)) < 1e-8
    return found.x[:2]


@pytest.mark.parametrize("cross", [0.0, 300.0])
def test_cycles_of_the_fifo_clock_grow_as_told(cross):
    """With other traffic the system is neutral: 0.3 of a rate comes back a round trip later."""

    def at(width):
        rest = fc.equilibrium(ramp(width, delay="fifo", cross=cross))
        return rest, rest.flows["flows"].window[0], rest.links["bottleneck"].queue

    width, frequency = (120.0, 7.0) if cross else hopf()
    sizes = np.array([0.02, 0.04, 0.08])
    for _ in range(2):
        rest, window, queue = at(width)
        lean = np.linalg.svd(fc.linearize(rest.net, rest).matrix(1j * frequency))[2][-1].conj()
        found = [balanced(width, frequency, window, queue, lean, cross, size) for size in sizes]
        series = np.linalg.solve(np.vander(sizes**2, increasing=True), found)
        width, frequency = series[0]  # where cycles end
    curvature = series[1, 0]
    form = normal_form(at(width)[0], frequency)
    step = 1e-3 * width
    systems = [fc.linearize(ramp(width + s, delay="fifo", cross=cross)) for s in (-step, 0.0, step)]
    low, here, high = (system.matrix(1j * frequency) for system in systems)
    u, values, v = np.linalg.svd(here)
    assert values[-1] < 1e-8 * values[0]
    left, right = u[:, -1].conj(), v[-1].conj()
    slope = left @ systems[1].matrix_slope(1j * frequency) @ right
    velocity = -(left @ (high - low) @ right / (2 * step) / slope).real
    assert -of_window(form).real / (4 * velocity) == pytest.approx(curvature, rel=1e-5)
    assert form.criticality == "supercritical"
