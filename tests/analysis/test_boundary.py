"""Boundaries over two parameters, against models whose boundary is known in closed form."""

import functools
import itertools
import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from analysis_cases import CAPACITY, ecn_mod, hollot

import fluidcc as fc
from fluidcc import Boundary, DelayEquation, boundary, equilibrium, replace, stability
from fluidcc.analysis.characteristic import Characteristic
from fluidcc.analysis.roots import approximate_roots, polish


def one(t, y, p):
    return 1.0


def tau(t, y, p):
    return p["tau"]


HAYES = DelayEquation(
    lambda t, y, z, p: p["a"] * y + p["b"] * z[0], (tau,), {"a": -1.0, "b": -1.0, "tau": 1.0}, 0.0
)
TWO_DELAYS = DelayEquation(
    lambda t, y, z, p: -p["a"] * z[0] - p["b"] * z[1],
    (lambda t, y, p: p["s"], lambda t, y, p: p["u"]),
    {"a": 1.0, "b": 0.7, "s": 1.0, "u": 1.0}, 0.0,
)  # fmt: skip
HUTCHINSON = DelayEquation(
    lambda t, y, z, p: p["r"] * y * (1 - z[0]), (tau,), {"r": 1.0, "tau": 1.0}, 1.0
)
KELLY = DelayEquation(  # rate control by marks (x/C)^B: Kelly (2001)
    lambda t, y, z, p: p["k"] * (p["w"] - z[0] * (z[0] / 10.0) ** p["B"]),
    (tau,), {"k": 1.0, "w": 1.0, "B": 2.0, "tau": 0.3},
    lambda p: (p["w"] * 10.0 ** p["B"]) ** (1 / (1 + p["B"])),
)  # fmt: skip
MACKEY_GLASS = DelayEquation(
    lambda t, y, z, p: p["b"] * z[0] / (1 + z[0] ** p["n"]) - p["g"] * y,
    (tau,), {"b": 0.2, "g": 0.1, "n": 10.0, "tau": 17.0},
    lambda p: (p["b"] / p["g"] - 1) ** (1 / p["n"]),
)  # fmt: skip
RINGS = DelayEquation(  # Hopf points where the gain is pi/2: on circles
    lambda t, y, z, p: -(math.pi / 2 + p["sign"] * bumps(p)) * z[0],
    (one,), {"x": 0.0, "y": 0.0, "sign": 1.0}, 0.0,
)  # fmt: skip
CENTRES = ((0.31, 0.42, 0.05), (0.73, 0.66, 0.11))


def bumps(p):
    """Positive within the circles, negative outside of them."""
    away = [(p["x"] - x) ** 2 + (p["y"] - y) ** 2 - r**2 for x, y, r in CENTRES]
    return jnp.tanh(-8 * away[0] * away[1])


def hayes_roots(a, b, w, delay=1.0):
    """What is left of the characteristic equation at i w."""
    return 1j * w - a - b * np.exp(-1j * w * delay)


def covered(found, x, y, ranges, near=0.012):
    """Whether every point (x, y) lies next to one of the curves, in parts of the ranges."""
    (x0, x1), (y0, y1) = ranges
    corners = []
    for curve in found.curves:
        points = np.stack([(curve.x - x0) / (x1 - x0), (curve.y - y0) / (y1 - y0)], axis=1)
        a, way = points[:-1], np.diff(points, axis=0)
        corners.append((a, way))
    out = []
    for p in np.stack([(x - x0) / (x1 - x0), (y - y0) / (y1 - y0)], axis=1):
        distances = []
        for a, way in corners:
            share = np.sum((p - a) * way, 1) / np.maximum(np.sum(way**2, 1), 1e-300)
            nearest = a + np.clip(share, 0, 1)[:, None] * way
            distances.append(np.min(np.linalg.norm(nearest - p, axis=1)))
        out.append(min(distances, default=np.inf) < near)
    return np.array(out)


def inside(x, y, ranges):
    (x0, x1), (y0, y1) = ranges
    return (x > x0) & (x < x1) & (y > y0) & (y < y1)


def test_hayes_has_a_hopf_curve_and_a_line_of_zero_roots():
    random = np.random.default_rng(0)
    a0, a1 = -random.uniform(0.5, 4), random.uniform(1.2, 3)
    b0, b1 = -random.uniform(2, 5), random.uniform(0.5, 4)
    ranges = ((a0, a1), (b0, b1))
    found = boundary(HAYES, "a", "b", *ranges, points=7)
    assert found.status == "ok" and found.certified, found
    w = np.linspace(0.02, np.pi - 0.02, 400)
    a, b = w / np.tan(w), -w / np.sin(w)
    keep = inside(a, b, ranges)
    assert keep.any() and covered(found, a[keep], b[keep], ranges).all()
    a = np.linspace(a0, min(a1, 1.0), 100)
    keep = inside(a, -a, ranges)
    assert covered(found, a[keep], -a[keep], ranges).all()
    for curve in found.curves:
        assert np.max(np.abs(hayes_roots(curve.x, curve.y, curve.frequency))) < 1e-9
        assert (curve.below, curve.above) == ((0, 2) if curve.kind == "hopf" else (0, 1))
        assert np.all(curve.x <= 1 + 1e-5)  # beyond, another root is unstable


def two_delay_boundary(a, b, ranges):
    """All (s, u) with a root on the axis: iw = -a e^(-iws) - b e^(-iwu), by the triangle."""
    w = np.linspace(abs(a - b) + 1e-4, a + b - 1e-4, 1500)
    # e^(-iws) has the angle at which |iw + a e^(-iws)| = b
    across = (b**2 - w**2 - a**2) / (2 * w * a)
    out = []
    for sign in (1, -1):
        angle = np.pi / 2 + sign * np.arccos(np.clip(across, -1, 1))  # arg of a e^(-iws)
        other = np.angle(-(1j * w + a * np.exp(1j * angle)))
        for k in range(-1, 4):
            for m in range(-1, 4):
                out.append(((2 * np.pi * k - angle) / w, (2 * np.pi * m - other) / w, w))
    s, u, w = (np.concatenate(v) for v in zip(*out, strict=True))
    keep = inside(s, u, ranges)
    return s[keep], u[keep], w[keep]


def test_no_branch_of_two_delays_is_lost():
    b = 1.6
    ranges = ((0.05, 4.0), (0.5, 4.0))
    model = TWO_DELAYS.replace({"b": b})
    found = boundary(model, "s", "u", *ranges, points=8)
    assert found.status == "ok" and found.certified, found
    s, u, w = two_delay_boundary(1.0, b, ranges)
    left = np.abs(1j * w + np.exp(-1j * w * s) + b * np.exp(-1j * w * u))
    assert np.max(left) < 1e-9
    every = Boundary(**{**found.__dict__, "curves": (*found.curves, *found.secondary)})
    scaled = ((np.log(0.05), np.log(4.0)), ranges[1])  # the first range spans decades
    both = tuple(
        type(c)(**{**c.__dict__, "x": np.log(c.x)}) for c in every.curves
    )  # fmt: skip
    every = Boundary(**{**every.__dict__, "curves": both})
    assert covered(every, np.log(s), u, scaled).all()
    for c in found.curves:
        left = (
            1j * c.frequency + np.exp(-1j * c.frequency * c.x) + b * np.exp(-1j * c.frequency * c.y)
        )
        assert np.max(np.abs(left)) < 1e-9
        middle = len(c.x) // 2
        root = stability(model.replace({"s": c.x[middle], "u": c.y[middle]})).rightmost
        assert abs(root.real) < 1e-9


def test_hutchinson_kelly_and_mackey_glass():
    (curve,) = boundary(HUTCHINSON, "r", "tau", (0.5, 3.0), (0.5, 3.0), points=4).curves
    np.testing.assert_allclose(curve.x * curve.y, np.pi / 2, rtol=1e-10)
    assert {curve.x[0], curve.x[-1]} == {0.5235987755982988, 3.0} or curve.ends == ("edge", "edge")
    (curve,) = boundary(KELLY, "k", "B", (0.2, 5.0), (0.5, 8.0), points=4).curves
    rate = (10.0**curve.y) ** (1 / (1 + curve.y))
    np.testing.assert_allclose(curve.x * 0.3 * (1 + curve.y) / rate, np.pi / 2, rtol=1e-10)
    (curve,) = boundary(MACKEY_GLASS, "n", "tau", (3.0, 15.0), (2.0, 25.0), points=4).curves
    slope = 0.2 * (2 - curve.x) / 4  # of the feedback at rest 1
    w = np.sqrt(slope**2 - 0.01)
    np.testing.assert_allclose(curve.frequency, w, rtol=1e-9)
    np.testing.assert_allclose(curve.y, np.arccos(0.1 / slope) / w, rtol=1e-9)


def test_closed_curves_smaller_than_a_cell_are_found():
    """Islands, unstable ones in a stable plane and the other way round; cells are 0.17 wide."""
    found = boundary(RINGS.replace({"sign": 1.0}), "x", "y", (0.0, 1.0), (0.0, 1.0), points=7)
    assert found.status == "ok" and found.certified and not found.secondary
    assert len(found.curves) == 2 and all(c.closed for c in found.curves)
    for curve in found.curves:
        x, y, r = min(CENTRES, key=lambda c: math.hypot(curve.x[0] - c[0], curve.y[0] - c[1]))
        np.testing.assert_allclose(np.hypot(curve.x - x, curve.y - y), r, rtol=1e-8)
        np.testing.assert_allclose(curve.frequency, np.pi / 2, rtol=1e-9)
        angle = np.unwrap(np.arctan2(curve.y - y, curve.x - x))
        assert abs(angle[-1] - angle[0]) == pytest.approx(2 * np.pi, rel=1e-6)


def test_a_network_agrees_with_its_roots():
    """Critical roots along the curve; it passes the Hopf point known from another program."""
    net = hollot()
    x, y = "link.queue.w_q", "link.queue.p_max"
    found = boundary(net, x, y, (1e-4, 1.6e-4), (0.0985, 0.13), points=3)
    assert found.status == "ok" and found.certified
    (curve,) = found.curves
    at = np.interp(0.1, curve.y[np.argsort(curve.y)], curve.x[np.argsort(curve.y)])
    assert at == pytest.approx(1.048513e-4, rel=5e-3)
    for k in (0, len(curve.x) // 2, -1):
        root = stability(replace(net, {x: curve.x[k], y: curve.y[k]})).rightmost
        assert abs(root.real) < 1e-9
        assert root.imag == pytest.approx(curve.frequency[k], rel=1e-9)
    out = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"x", "y", "frequency"} <= set(out["curves"][0])
    assert found.to_xarray()["frequency"].attrs["units"] == "rad/s"
    assert "Hopf" in repr(found) and "edge" in repr(found)


def test_stability_jumps_along_a_kink_of_the_marking():
    """Where the queue rests at max_th of a gentle RED the slope of p changes, and so do roots."""
    net = ecn_mod(p_max=0.02, w_q=1e-3, n=(20.0,), rtt=(0.2,))
    x, y = "flow.n", "link.queue.p_max"
    found = boundary(net, x, y, (32.5, 40.0), (0.015, 0.0202), points=3)
    assert found.status == "ok" and found.certified
    (curve,) = found.curves
    assert curve.kind == "jump" and (curve.below, curve.above) == (0, 2)
    assert curve.ends == ("edge", "edge") and np.all(np.isfinite(curve.frequency))
    for n, p in zip(curve.x, curve.y, strict=True):
        rest = equilibrium(replace(net, {x: float(n), y: float(p)}))
        assert rest.links["bottleneck"].queue == pytest.approx(75, abs=1e-2)
        assert rest.links["bottleneck"].mark_probability == pytest.approx(p, rel=1e-4)


def test_smooth_equilibria_end_where_the_average_passes_max_th():
    """At max_th of a RED that is not gentle, N sqrt(2 / p_max) packets fill pipe and queue."""
    net = fc.load("hollot2001/slow")
    found = boundary(net, "flow.n", "flow.rtt", (200, 500), (0.1, 0.3), points=3)
    (curve,) = found.curves
    assert (curve.kind, curve.reason) == ("status", "average queue passes max_th")
    assert (curve.below, curve.above, curve.ends) == (0, None, ("edge", "edge"))
    filled = net.links[0].capacity * curve.y + net.links[0].queue.max_th
    np.testing.assert_allclose(curve.x * np.sqrt(2 / 0.1), filled, rtol=1e-5)
    assert (
        "0 | undetermined at higher flow.n" in " ".join(repr(found.tables()).split())
        and found.to_dict()["curves"][0]["above"] is None
    )


def test_equations_without_an_equilibrium_are_gaps():
    """y' = a - y^2 rests for a > 0 only."""
    model = DelayEquation(
        lambda t, y, z, p: p["a"] - y * z[0], (tau,), {"a": 1.0, "tau": 1.0},
        lambda p: abs(p["a"]) ** 0.5,
    )  # fmt: skip
    found = boundary(model, "a", "tau", (-1.0, 2.0), (0.2, 3.0), points=4)
    assert "undetermined at" in found.message and "none" in found.message
    assert np.isnan(found.unstable[0]).all()
    for curve in found.curves:  # i w = -x (1 + e^(-i w tau)) has no solution but w = 0
        assert curve.kind != "hopf"


# -- Changes of stability along a parameter, against closed forms and fine scans
crossings = functools.partial(fc.crossings, criticality=False)  # test_normal_form has it


def test_hopf_point_along_the_filter():
    found = crossings(hollot(), "link.queue.w_q", 1e-7, 0.9)
    assert found.stable_at_low and found.certified
    assert len(found.crossings) == 1 and not found.secondary and not found.without_equilibrium
    hopf = found.crossings[0]
    assert hopf.value == pytest.approx(1.048513e-4, rel=5e-7)
    assert hopf.frequency == pytest.approx(1.341540, abs=1e-6)
    assert (hopf.becomes, hopf.below, hopf.above) == ("unstable", 0, 2)
    root = fc.stability(hollot(w_q=hopf.value)).rightmost
    assert abs(root.real) < 1e-10 and root.imag == pytest.approx(hopf.frequency, rel=1e-10)


def static_boundary(net):
    """All (K, w) with 1 + L(i w) = 0 for L = c a/(s+a) K/(s+K) e^(-sR): self-clocked, one class.

    On the axis the phase gives K(w) and the gain a scalar equation in w.
    """
    eq = fc.equilibrium(net)
    flows, p = eq.flows["flows"], eq.links["bottleneck"].mark_probability
    W, R, red = flows.window[0], flows.rtt[0], net.links[0].queue
    a, c = p * W / R, 60 / (W * p**2) * red.p_max / 550

    def filter_phase(w):  # of K/(K + i w), in (-pi/2, 0)
        return -math.pi + math.atan(w / a) + w * R

    def excess(w):
        return c * math.cos(math.atan(w / a)) * math.cos(filter_phase(w)) - 1

    w = np.linspace(1e-3, (math.pi / 2) / R, 4000)
    w = w[[-math.pi / 2 < filter_phase(x) < 0 for x in w]]
    values = [excess(x) for x in w]
    out = []
    for (low, y0), (high, y1) in itertools.pairwise(zip(w, values, strict=True)):
        if y0 * y1 < 0:
            omega = scipy.optimize.brentq(excess, low, high, xtol=1e-15)
            K = omega / math.tan(-filter_phase(omega))
            out.append((-math.expm1(-K / CAPACITY), omega))
    return sorted(out)


@pytest.mark.parametrize("options", [{}, {"points": 4}], ids=["usual", "both within one cell"])
def test_stability_is_not_monotone_in_the_filter(options):
    """Self-clocked: a slow filter is stable, a middle one not, a fast one again. Theory, 6."""
    net, ends = hollot(rates="self_clocked"), (1e-6, 0.3)
    exact = static_boundary(net)
    assert len(exact) == 2
    between = [
        exact[0][0] < g < exact[1][0] for g in np.geomspace(*ends, options.get("points", 99))
    ]
    assert any(between) != bool(options)
    found = crossings(net, "link.queue.w_q", *ends, **options)
    assert [c.becomes for c in found.crossings] == ["unstable", "stable"]
    np.testing.assert_allclose([(c.value, c.frequency) for c in found.crossings], exact, rtol=1e-9)
    assert found.stable_at_low


def test_further_roots_that_cross_are_kept_apart():
    """A fast filter and a steep RED: more pairs follow the first; the verdict changes no more."""
    net = hollot(n=20.0, p_max=1.0, w_q=0.1, rates="self_clocked")
    found = crossings(net, "flow.rtt", 0.04, 0.12, points=7)
    assert found.stable_at_low is False and not found.crossings
    assert len(found.secondary) >= 1
    for c in found.secondary:
        assert c.above == c.below + 2
        system = fc.linearize(fc.replace(net, {"flow.rtt": c.value}))
        on_axis = polish(Characteristic(system), np.array([1j * c.frequency]))
        assert abs(on_axis[0] - 1j * c.frequency) < 1e-9 * c.frequency


def test_saturation_ends_the_scan_but_not_the_search():
    """More flows: stable from some N on; beyond another the marking needed exceeds p_max."""
    net = hollot()
    found = crossings(net, "flow.n", 20.0, 1000.0)
    assert found.stable_at_low is False
    (crossing,) = found.crossings
    assert crossing.becomes == "stable"
    root = fc.stability(fc.replace(net, {"flow.n": crossing.value})).rightmost
    assert abs(root.real) < 1e-9
    (gap,) = found.without_equilibrium
    window = math.sqrt(2 / 0.1)
    limit = CAPACITY * (0.2 + 700 / CAPACITY) / window
    assert gap.status == "discontinuity" and gap.high == 1000.0
    assert gap.low == pytest.approx(limit, rel=1e-9)
    assert found.to_dict()["without_equilibrium"] == [
        {"low": gap.low, "high": 1000.0, "status": "discontinuity"}
    ]


def test_a_jump_at_a_kink_is_a_change_of_stability():
    """Where the queue passes max_th of a gentle RED the slope of p jumps, and with it the roots."""
    net = ecn_mod(p_max=0.02, w_q=1e-3, n=(20.0,), rtt=(0.2,))
    path = "flow.n"
    found = crossings(net, path, 5.0, 60.0, points=12)
    counts = {
        n: fc.stability(fc.replace(net, {path: float(n)})).unstable
        for n in np.linspace(5.5, 59.5, 28)
    }
    for n, count in counts.items():
        passed = [c for c in (*found.crossings, *found.secondary) if c.value < n]
        expected = max(passed, key=lambda c: c.value).above if passed else (
            0 if found.stable_at_low else counts[min(counts)])  # fmt: skip
        assert count == expected
    jumps = [c for c in found.crossings if c.jump]
    assert jumps
    for c in jumps:
        at = fc.equilibrium(fc.replace(net, {path: c.value})).links["bottleneck"].queue
        corners = {"min_th": 25, "max_th": 75, "2 max_th": 150}
        (name,) = (name for name, corner in corners.items() if abs(at - corner) < 1e-6)
        assert c.reason == f"average queue passes {name}"


def test_the_frequency_at_a_jump_is_that_of_the_unstable_side():
    """20 classes; the queue passes a corner of RED at the marking that the flows need there."""
    net = fc.load("misra2003/mixed")
    found = crossings(net, "link.queue.p_max", 0.0222, 0.024, points=3)
    (jump,) = found.crossings
    assert jump.jump and (jump.becomes, jump.below, jump.above) == ("stable", 2, 0)
    before = fc.replace(net, {"link.queue.p_max": jump.value * (1 - 1e-9)})
    eigenvalues = approximate_roots(fc.linearize(before), 16)
    rightmost = eigenvalues[np.argmax(eigenvalues.real)]
    assert jump.frequency == pytest.approx(abs(rightmost.imag), rel=1e-5)
    assert found.to_dict()["crossings"][0]["jump"] is True
