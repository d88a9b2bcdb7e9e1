"""Networks at rest and their loops in closed form, written down from the papers' equations."""

import numpy as np
from scipy.optimize import brentq


def red_queue(p_max, n=60.0, trip=0.2, capacity=3750.0, low=150.0, high=700.0):
    """The queue of TCP over RED at rest, and its slope by p_max: a cubic, 2 (N/(CT + q))^2 = p."""
    pipe = capacity * trip
    cubic = np.poly1d([1.0, -low]) * np.poly1d([1.0, pipe]) ** 2
    top = 2 * n**2 * (high - low) / p_max
    q = max(float(r.real) for r in (cubic - top).roots if abs(r.imag) < 1e-9)
    return q, -top / p_max / float(cubic.deriv()(q))


def red_p_max(queue, n=60.0, trip=0.2, capacity=3750.0, low=150.0, high=700.0):
    """The p_max with which that queue is at rest."""
    return 2 * n**2 * (high - low) / (queue - low) / (capacity * trip + queue) ** 2


def margin_at(loop, frequency):
    """Phase margin [deg] at a frequency [rad/s], the phase followed from far below."""
    phases = np.unwrap(np.angle(loop(1j * np.geomspace(1e-4, 1.0, 20_001) * frequency)))
    return 180.0 + float(np.degrees(phases[-1]))


def crossover(loop, low=0.01, high=20.0):
    """The first frequency [rad/s] at which the gain of a loop falls through 1."""
    grid = np.geomspace(low, high, 20_001)
    gain = np.abs(loop(1j * grid))
    k = int(np.flatnonzero((gain[:-1] >= 1) & (gain[1:] < 1))[0])
    return brentq(lambda w: abs(loop(1j * w)) - 1, grid[k], grid[k + 1], xtol=1e-14)


def pi_loop(k, z, n=60.0, trip=0.2, capacity=3750.0, target=200.0, interval=1 / 160):
    """TCP under PI: Hollot, Misra, Towsley and Gong (2001), the linearised equations in full.

    The controller k (s/z + 1)/s by the bilinear rule, where what a sample changes comes evenly over
    the interval: p interval s = (k/z + k interval/2) q - (k/z - k interval/2) q/(1 + interval s).
    """
    rtt = trip + target / capacity
    slow, by_queue = n / (rtt**2 * capacity), 1 / (rtt**2 * capacity)
    by_mark = rtt * capacity**2 / (2 * n**2)

    def loop(s):
        late = np.exp(-s * rtt)
        # s W = -slow (1 + late) W - by_queue (1 - late) Q - by_mark late P; s Q = (n W - Q)/rtt
        queue = n / rtt / (s + 1 / rtt)
        window = by_mark * late / (s + slow * (1 + late) + by_queue * (1 - late) * queue)
        control = k * (s * (1 / z + interval / 2) + 1) / s / (1 + interval * s)
        return control * queue * window

    return loop


def becn_needs(queue=40.0, n=45.0, trip=0.088, capacity=1250.0, low=15.0, high=45.0):
    """The p_max of RED with which that queue of BECN is at rest, theory's W = sqrt(2/p).

    Marks wait for each other: of a marking b there are p = 2 b/(3 - b).
    """
    window = capacity * (trip + queue / capacity) / n
    p = 2 / window**2
    return 3 * p / (2 + p) * (high - low) / (queue - low)


def becn_loop(w_q, p_max, queue=40.0, n=45.0, trip=0.088, capacity=1250.0, low=15.0, high=45.0):
    """BECN with its pause over RED, linearised: quenches are heard 2 ms late, of 4 ms ago."""
    rtt, way = trip + queue / capacity, 0.002
    window = capacity * rtt / n
    p = 2 / window**2
    b, free, memory = 3 * p / (2 + p), 1 / (1 + window * p), -capacity * np.log1p(-w_q)
    steep = 6 / (3 - b) ** 2 * p_max / (high - low)

    def loop(s):
        late = np.exp(-s * way)
        rate = 1 / rtt / (1 + n * window * late / (rtt**2 * capacity * s))  # per window
        growth = free * (rate * (np.exp(-s * rtt) - late**2) / window - 2 / (window * rtt))
        by_mark = free * window**2 / (2 * rtt) * late / (s - growth)
        return steep * memory / (s + memory) * n * late * rate / s * by_mark

    return loop


TRIPS = np.linspace(0.025, 0.25, 10)
"""Round trips without queue of the ECN-mod scenarios [s]: one flow of each kind for each."""


def mixed_rest(trips=TRIPS, capacity=1250.0, low=20.0, high=60.0, p_max=0.2):
    """Queue, marking p and the windows of both where ECN-mod and NewReno share RED.

    ECN-mod has sqrt(2(1 - p)/p) by eq. 7 of Misra and Ott (2003); NewReno halves once per window,
    where 1/W = (1 - (1 - p)^W)/2.
    """

    def windows(queue):
        p = p_max * (queue - low) / (high - low)
        reno = brentq(lambda w: 1 / w - (1 - (1 - p) ** w) / 2, 1.0, 1e6)
        return p, np.sqrt(2 * (1 - p) / p), reno

    def excess(queue):
        _, mod, reno = windows(queue)
        return np.sum((mod + reno) / (trips + queue / capacity)) - capacity

    queue = brentq(excess, low + 0.1, high)
    return queue, *windows(queue)


def mixed_loop(kappa, trips=TRIPS, capacity=1250.0, w_q=0.002, steep=0.2 / 40, way=0.001):
    """ECN-mod and NewReno over RED, linearised: kappa = c2 p_mod is all that is seen of c1, c2."""
    queue, p, mod, reno = mixed_rest(trips)
    rtt, memory = trips + queue / capacity, -capacity * np.log1p(-w_q)
    kept = (1 - p) ** reno
    slow = kappa * mod / rtt, (1 / reno**2 - kept * np.log1p(-p) / 2) * reno / rtt
    by_mark = slow[0] / (mod * p**2), reno / rtt * reno * kept / (1 - p) / 2

    def loop(s):
        s = np.asarray(s)[..., None]
        rates = sum(m / rtt / (s + a) for a, m in zip(slow, by_mark, strict=True))
        filled = s[..., 0] + np.exp(-s[..., 0] * way) * np.sum((mod + reno) / rtt**2) / capacity
        heard = np.sum(rates * np.exp(-s * rtt), axis=-1)
        return steep * memory / (s[..., 0] + memory) * heard / filled

    return loop


def decay_rate(loop, box=8.0):
    """Minus the largest real part of a root of 1 + L(s) [1/s], by Newton from all over a box.

    Real roots between poles that are close together may be missed.
    """
    real, imaginary = np.meshgrid(np.linspace(-box, 0.5, 35), np.linspace(0.5, 2 * box, 32))
    starts = [(real + 1j * imaginary).ravel(), -np.geomspace(1e-4, box, 200)]
    s, step = np.concatenate(starts), 1e-6
    with np.errstate(all="ignore"):
        for _ in range(60):
            s = s - (1 + loop(s)) * 2 * step / (loop(s + step) - loop(s - step))
        roots = s[np.abs(1 + loop(s)) < 1e-8]
    return -float(np.max(roots.real))
