"""Quenches of several links, each with its own way back, against equations written down by hand."""

import math

import numpy as np

from fluidcc import Flows, Link, Network, Uniform, simulate, stability
from fluidcc.laws import RED, Backward, PerMark, Reno
from fluidcc.scenario.network import FlowsInitial, LinkInitial

C = (1250.0, 500.0)  # packet/s
N = (8.0, 4.0)  # flows over both links, and over the first alone
T = (0.16, 0.07)  # s
HOP, ACCESS = 0.02, 0.003  # s, between the links and from the sources to the first
BACK = (0.004, 0.06)  # s; the second way back is a long one
NEAR = 0.011  # s, of the flows over the first link alone
W_Q, SLOPE = 1e-3, 0.2 / 180


def chain(reverse, start=((6.0, 5.0), (40.0, 45.0))):
    """Eight flows over two links, and four more over the first of them."""
    law = RED(min_th=20.0, max_th=200.0, p_max=0.2, w_q=W_Q)
    links = tuple(
        Link(law, capacity=c, delay=HOP, initial=LinkInitial(queue=q, average=q))
        for c, q in zip(C, start[1], strict=True)
    )
    groups = tuple(
        Flows(
            Reno(), n=np.array([n]), rtt=np.array([t]), reaction=PerMark(growth="all"),
            feedback=Backward(), access_delay=ACCESS, route=route, reverse_delay=back,
            initial=FlowsInitial(window=w),
        )
        for n, t, route, back, w in zip(N, T, ((0, 1), (0,)), (reverse, NEAR), start[0],
                                        strict=True)
    )  # fmt: skip
    return Network(links, groups, link_names=("near", "far"), flow_names=("long", "short"))


def loop(s, windows, queues):
    """The matrix that is singular at the roots, for changes of W, w, q_1, q_2, v_1, v_2."""
    e = lambda age: np.exp(-s * age)  # noqa: E731
    waits = [q / c for q, c in zip(queues, C, strict=True)]
    marks = [SLOPE * (q - 20.0) for q in queues]
    poles = [-c * math.log1p(-W_Q) for c in C]
    rtts = (T[0] + sum(waits), T[1] + waits[0])
    ahead = (ACCESS, ACCESS + waits[0] + HOP)
    W, w = windows
    long = np.array([1, 0, -W / rtts[0] / C[0], -W / rtts[0] / C[1], 0, 0]) / rtts[0]
    short = np.array([0, 1, -w / rtts[1] / C[0], 0, 0, 0]) / rtts[1]
    x, unit, M = W / rtts[0], np.eye(6), np.zeros((6, 6), complex)
    p = 1 - (1 - marks[0]) * (1 - marks[1])
    told = [(1 - marks[1 - j]) * SLOPE * e(BACK[j]) * unit[4 + j] for j in (0, 1)]
    weights = [m / sum(marks) for m in marks]
    sent = sum(weights[j] * e(BACK[j] + ahead[j]) for j in (0, 1))
    M[0] = e(rtts[0]) / W * long - 2 * x / W**2 * unit[0] - W / 2 * (
        x * (told[0] + told[1]) + p * sent * long
    )  # fmt: skip
    M[1] = e(rtts[1]) / w * short - 2 / (w * rtts[1]) * unit[1] - w / 2 * (
        w / rtts[1] * SLOPE * e(NEAR) * unit[4] + marks[0] * e(NEAR + ACCESS) * short
    )  # fmt: skip
    M[2] = e(ACCESS) * (N[0] * long + N[1] * short)
    passed = s / C[0] * e(ahead[1] - ahead[0]) * unit[2]  # the first link passes C/(C + q')
    M[3] = N[0] * (e(ahead[1]) * long - x * passed)
    for j in (0, 1):
        M[4 + j] = poles[j] * (unit[2 + j] - unit[4 + j])
    return s * np.eye(6) - M


def test_every_link_has_its_own_way_back():
    found = stability(chain(np.array(BACK)))
    eq = found.equilibrium
    windows = [eq.flows[name].window[0] for name in ("long", "short")]
    queues = [eq.links[name].queue for name in ("near", "far")]
    assert eq.status == "regular" and found.certified and len(found.roots) > 5
    for s in found.roots[:6]:
        values = np.linalg.svd(loop(s, windows, queues), compute_uv=False)
        assert values[-1] < 1e-9 * values[-2]
    swapped = stability(chain(np.array(BACK[::-1])))
    np.testing.assert_allclose(swapped.equilibrium.links["near"].queue, queues[0], rtol=1e-9)
    assert abs(swapped.rightmost - found.rightmost) > 1e-3


def by_hand(until, dt, start):
    """Windows and queues by Heun's method on a record of everything at all nodes."""
    steps = round(until / dt)
    y = np.zeros((steps + 1, 6))
    y[0] = [*start[0], *start[1], *start[1]]
    poles = [-c * math.log1p(-W_Q) for c in C]
    record = np.zeros((steps + 1, 5))  # two rates, two marks, pace of the first link

    def late(k, age, column, now):
        at = k - age / dt
        if at <= 0:
            return record[0, column]
        low = min(int(at), k - 1)
        ends = record[low, column], now[column] if low + 1 == k else record[low + 1, column]
        return ends[0] + (at - low) * (ends[1] - ends[0])

    def present(k, y, now):
        waits = y[2] / C[0], y[3] / C[1]
        rtts = T[0] + sum(waits), T[1] + waits[0]
        ahead = ACCESS, ACCESS + waits[0] + HOP
        rates = y[0] / rtts[0], y[1] / rtts[1]
        m = [late(k, BACK[j], 2 + j, now) for j in (0, 1)]
        c = [late(k, BACK[j] + ahead[j], 0, now) for j in (0, 1)]
        carried = (c[0] * m[0] + c[1] * m[1]) / (m[0] + m[1])
        p = 1 - (1 - m[0]) * (1 - m[1])
        near = late(k, NEAR, 2, now), late(k, NEAR + ACCESS, 1, now)
        first = N[0] * late(k, ACCESS, 0, now) + N[1] * late(k, ACCESS, 1, now)
        pace = late(k, waits[0] + HOP, 4, now)
        slopes = [
            late(k, rtts[0], 0, now) / y[0] - y[0] / 2 * carried * p,
            late(k, rtts[1], 1, now) / y[1] - y[1] / 2 * near[1] * near[0],
            first - C[0],
            N[0] * late(k, ahead[1], 0, now) * pace - C[1],
            poles[0] * (y[2] - y[4]),
            poles[1] * (y[3] - y[5]),
        ]
        marks = [SLOPE * (v - 20.0) for v in y[4:]]
        return np.array(slopes), np.array([*rates, *marks, C[0] / first])

    rates = y[0, 0] / (T[0] + y[0, 2] / C[0] + y[0, 3] / C[1]), y[0, 1] / (T[1] + y[0, 2] / C[0])
    record[0] = [*rates, 0, 0, C[0] / (N[0] * rates[0] + N[1] * rates[1])]
    record[0, 2:4] = SLOPE * (y[0, 4:] - 20.0)
    for k in range(steps):
        k1, record[k] = present(k, y[k], record[k])
        guess = y[k] + dt * k1
        now = present(k + 1, guess, record[k])[1]
        k2, _ = present(k + 1, guess, now)
        y[k + 1] = y[k] + dt / 2 * (k1 + k2)
    return y


def test_trajectories_hear_every_link_at_its_own_time():
    start = ((14.3, 17.2), (30.0, 25.0))
    net = chain(np.array(BACK), start)
    run = simulate(net, until=1.2, points=np.linspace(0.2, 1.2, 6), mesh=Uniform(0.001))
    expected = by_hand(1.2, 1e-3, start)[200::200, :4]
    seen = np.stack(
        [run.flows[n].window[:, 0] for n in ("long", "short")]
        + [run.links[n].queue for n in ("near", "far")], axis=1
    )  # fmt: skip
    assert expected[:, 2:].min() > 1.0 and expected.max() < 100.0
    np.testing.assert_allclose(seen, expected, rtol=1e-5)
