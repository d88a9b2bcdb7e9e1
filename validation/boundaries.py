"""Boundaries that are known in closed form, over random ranges: whether a branch is lost.

    uv run python validation/boundaries.py [--cases N] [--seed S]

Five models: x' = a x + b x(t - 1) (Hayes: a curve of Hopf points and a line of zero roots), two
delays, Hutchinson, Kelly's rate control and Mackey-Glass. One row per model: cases, points of the
closed form inside the ranges, points of it that no curve passes, and the largest residual of the
characteristic equation on the curves found. Exits with 1 if a point is lost. Some three
seconds a range.
"""

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import fluidcc as fc

Ranges = tuple[tuple[float, float], tuple[float, float]]
_NEAR = 0.015  # of the ranges: how far off the chords of a curve may be


def _tau(t: Any, y: Any, p: Any) -> Any:
    return p["tau"]


HAYES = fc.DelayEquation(
    lambda t, y, z, p: p["a"] * y + p["b"] * z[0], (_tau,), {"a": -1.0, "b": -1.0, "tau": 1.0}, 0.0
)
TWO_DELAYS = fc.DelayEquation(
    lambda t, y, z, p: -z[0] - p["b"] * z[1],
    (lambda t, y, p: p["s"], lambda t, y, p: p["u"]), {"b": 0.7, "s": 1.0, "u": 1.0}, 0.0,
)  # fmt: skip
HUTCHINSON = fc.DelayEquation(
    lambda t, y, z, p: p["r"] * y * (1 - z[0]), (_tau,), {"r": 1.0, "tau": 1.0}, 1.0
)
KELLY = fc.DelayEquation(
    lambda t, y, z, p: p["k"] * (1 - z[0] * (z[0] / 10.0) ** p["B"]), (_tau,),
    {"k": 1.0, "B": 2.0, "tau": 0.3}, lambda p: 10.0 ** (p["B"] / (1 + p["B"])),
)  # fmt: skip
MACKEY_GLASS = fc.DelayEquation(
    lambda t, y, z, p: 0.2 * z[0] / (1 + z[0] ** p["n"]) - 0.1 * y, (_tau,),
    {"n": 10.0, "tau": 17.0}, 1.0,
)  # fmt: skip


def hayes(_: Any) -> tuple[Any, Any]:
    """The Hopf curve up to its end, and the line a = -b of zero roots up to there."""
    w = np.linspace(0.02, np.pi - 0.02, 3000)
    line = np.linspace(-20.0, 0.99, 3000)
    return np.concatenate([w / np.tan(w), line]), np.concatenate([-w / np.sin(w), -line])


def two_delays(model: Any) -> tuple[Any, Any]:
    """Every pair of delays with a critical root, by the triangle of the three terms."""
    b = model.params["b"]
    w = np.linspace(abs(1 - b) + 1e-3, 1 + b - 1e-3, 4000)
    parts = []
    for sign in (1, -1):
        angle = np.pi / 2 + sign * np.arccos((b**2 - w**2 - 1) / (2 * w))
        other = np.angle(-(1j * w + np.exp(1j * angle)))
        for k in range(-1, 6):
            parts += [
                ((2 * np.pi * k - angle) / w, (2 * np.pi * m - other) / w) for m in range(-1, 6)
            ]
    s, u = (np.concatenate(v) for v in zip(*parts, strict=True))
    return s, u


def hutchinson(_: Any) -> tuple[Any, Any]:
    """Where r tau = pi/2; further pairs where it is that plus 2 pi k."""
    r = np.concatenate([np.geomspace(0.05, 50, 3000)] * 3)
    return r, (np.pi / 2 + 2 * np.pi * np.repeat(range(3), 3000)) / r


def kelly(model: Any) -> tuple[Any, Any]:
    """Where k tau (1 + B)/x = pi/2, or that plus 2 pi j, at the rate x of rest."""
    power = np.tile(np.linspace(0.1, 20, 3000), 3)
    x = 10.0 ** (power / (1 + power))
    phase = np.pi / 2 + 2 * np.pi * np.repeat(range(3), 3000)
    return phase * x / (model.params["tau"] * (1 + power)), power


def mackey_glass(_: Any) -> tuple[Any, Any]:
    """cos(w tau) = 0.1/slope, w^2 = slope^2 - 0.01; rest at 1."""
    n = np.tile(np.linspace(4.05, 40, 4000), 3)
    slope = 0.05 * (2 - n)
    w = np.sqrt(slope**2 - 0.01)
    return n, (np.arccos(0.1 / slope) + 2 * np.pi * np.repeat(range(3), 4000)) / w


CASES: dict[str, tuple[Any, str, str, Callable[[Any], tuple[Any, Any]], Ranges]] = {
    "Hayes": (HAYES, "a", "b", hayes, ((-6.0, 3.0), (-7.0, 5.0))),
    "two delays": (TWO_DELAYS, "s", "u", two_delays, ((0.1, 6.0), (0.1, 6.0))),
    "Hutchinson": (HUTCHINSON, "r", "tau", hutchinson, ((0.2, 5.0), (0.2, 5.0))),
    "Kelly": (KELLY, "k", "B", kelly, ((0.1, 30.0), (0.3, 12.0))),
    "Mackey-Glass": (MACKEY_GLASS, "n", "tau", mackey_glass, ((3.0, 20.0), (1.0, 40.0))),
}


def drawn(random: np.random.Generator, within: Ranges) -> Ranges:
    """A random part of the ranges, at least a fifth of each."""
    out = []
    for low, high in within:
        size = random.uniform(0.2, 1.0) * (high - low)
        start = random.uniform(low, high - size)
        out.append((start, start + size))
    return out[0], out[1]


def _scaled(values: Any, ends: tuple[float, float]) -> Any:
    low, high = ends
    if low > 0 and high > 10 * low:
        return np.log(values / low) / np.log(high / low)
    return (np.asarray(values) - low) / (high - low)


def lost(found: fc.Boundary, x: Any, y: Any) -> int:
    """How many points no curve passes."""
    points = np.stack([_scaled(x, found.ranges[0]), _scaled(y, found.ranges[1])], axis=1)
    least = np.full(len(points), np.inf)
    for curve in (*found.curves, *found.secondary):
        pairs = zip((curve.x, curve.y), found.ranges, strict=True)
        p = np.stack([_scaled(values, ends) for values, ends in pairs], axis=1)
        for a, b in itertools.pairwise(p):
            way = b - a
            share = np.clip((points - a) @ way / max(way @ way, 1e-300), 0, 1)
            least = np.minimum(least, np.linalg.norm(points - a - share[:, None] * way, axis=1))
    return int(np.sum(least > _NEAR))


def residual(model: Any, x: str, y: str, found: fc.Boundary) -> float:
    """Largest real part, over its modulus, of the critical root in the middle of the curves."""
    worst = 0.0
    for curve in found.curves:
        k = len(curve.x) // 2
        there = fc.stability(model.replace({x: curve.x[k], y: curve.y[k]}))
        root = there.rightmost
        worst = max(worst, abs(root.real) / max(abs(root), 1.0)) if root is not None else np.inf
    return worst


def main() -> int:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    failed = 0
    for name, (model, x, y, exact, within) in CASES.items():
        random = np.random.default_rng(told.seed)
        seen = missed = unsure = 0
        worst = 0.0
        for _ in range(told.cases):
            if name == "two delays":
                model = model.replace({"b": random.uniform(0.3, 2.0)})
            ranges = drawn(random, within)
            found = fc.boundary(model, x, y, *ranges)
            px, py = exact(model)
            (x0, x1), (y0, y1) = ranges
            keep = (px > x0) & (px < x1) & (py > y0) & (py < y1)
            seen += int(keep.sum())
            here = lost(found, px[keep], py[keep])
            if here or found.status != "ok":
                print(f"  {ranges} b={model.params.get('b')}: {here} lost, {found.message}")
            missed += here
            unsure += not found.certified
            worst = max(worst, residual(model, x, y, found))
        print(
            f"{name:14s} {told.cases} ranges, {seen} points, {missed} lost, "
            f"{unsure} not certified, largest residual {worst:.1e}",
            flush=True,
        )
        failed += missed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
