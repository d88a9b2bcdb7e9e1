"""Networks that the tests of the analysis share; few structures, so that little is compiled."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import lambertw

import fluidcc as fc
from fluidcc import laws

CAPACITY, PROPAGATION = 3750.0, 0.2


def hollot(*, n=60.0, w_q=0.005, p_max=0.1, rates="mgt", feedback=None, buffer=1e4):
    """TCP with RED: Misra, Gong and Towsley (2000) as in Hollot et al. (2001)."""
    red = laws.RED(min_th=150.0, max_th=700.0, p_max=p_max, w_q=w_q)
    flows = fc.Flows(
        laws.Reno(), n=np.array([n]), rtt=np.array([PROPAGATION]), reaction=laws.PerMark(),
        feedback=laws.MarkTail() if feedback is None else feedback,
    )  # fmt: skip
    return fc.Network((fc.Link(red, capacity=CAPACITY, buffer=buffer),), (flows,), rates=rates)


def ecn_mod(*, c1=0.0625, c2=0.125, n=(60.0,), rtt=(0.1,), rates="ack", marking=None, **red):
    """Misra and Ott's queue: gentle RED 25/75 at 1250 packet/s, ECN-mod flows."""
    values = {"min_th": 25.0, "max_th": 75.0, "p_max": 0.2, "w_q": 0.002, "gentle": True, **red}
    flows = fc.Flows(
        laws.ECNMod(c1=c1, c2=c2), n=np.array(n), rtt=np.array(rtt), reaction=laws.PerMark(),
        marking=laws.EqualWindow() if marking is None else marking,
    )  # fmt: skip
    return fc.Network(
        (fc.Link(laws.RED(**values), capacity=1250.0, buffer=150.0),), (flows,), rates=rates
    )


def two_links(first=1250.0, second=1000.0):
    """Long flows cross both links, short ones one of them each."""
    links = tuple(
        fc.Link(laws.Threshold(at=20.0, width=80.0), capacity=c, buffer=300.0, delay=0.01)
        for c in (first, second)
    )
    routes = {"long": (0, 1), "one": (0,), "two": (1,)}
    flows = tuple(
        fc.Flows(
            laws.Reno(), n=np.array([n]), rtt=np.array([0.1]), reaction=laws.PerMark(), route=route
        )
        for n, route in zip((20.0, 15.0, 10.0), routes.values(), strict=True)
    )
    return fc.Network(links, flows, link_names=("west", "east"), flow_names=tuple(routes))


def moved(net, path, value):
    """The network with one number changed; `n` of a group in proportion."""
    if path.endswith(".n"):
        return jax.jit(lambda v: fc.replace(net, {path: v}))(value)
    return fc.replace(net, {path: value})


HUTCHINSON = fc.DelayEquation(
    lambda t, y, z, p: -p["r"] * z[0] * (1 + y), [lambda t, y, p: 1.0], {"r": 2.0}, 0.0
)
SPEED, LAG = 2.0, 0.7


def _turning(t, y, z, p):
    """A plane that turns at a speed; its radius grows at the rate mu + a r^2 + b r^4, r^2 as it was
    a lag ago.
    """
    square = z[0] @ z[0]
    growth = p["mu"] + p["a"] * square + p["b"] * square**2
    return jnp.stack([growth * y[0] - p["speed"] * y[1], growth * y[1] + p["speed"] * y[0]])


def _lag(t, y, p):
    return p["lag"]


def turning(mu, a, b, lag=LAG):
    """A circle is its cycle, of period 2 pi/SPEED; multipliers by Lambert's function."""
    params = {"mu": mu, "a": a, "b": b, "speed": SPEED, "lag": lag}
    return fc.DelayEquation(_turning, [_lag], params, np.zeros(2))


def radial_multipliers(slope, lag=LAG):
    """Of small changes of log r with d(log r)/dt = slope (log r)(t - lag), largest first."""
    exponents = np.array([lambertw(slope * lag, k) for k in range(-6, 6)]) / lag
    found = np.exp(exponents * 2 * math.pi / SPEED)
    return found[np.argsort(-np.abs(found))]
