"""DCQCN and TIMELY, laws by rates, beside the equations of Zhu et al. (2016) and in packets."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

C, DELAY = 5e6, 50e-6  # packet/s, s
TAU, ALPHA_TIMER, TIMER, COUNTER, STEPS = 50e-6, 55e-6, 55e-6, 1e4, 5
G, INCREASE, LOW, HIGH, TOP = 1 / 256, 5000.0, 5.0, 200.0, 0.01


def dcqcn(n: int, delay: float = DELAY, **changes) -> fc.Network:
    """The bundled scenario; its ramp goes on at the same slope, as the linear model has it."""
    most = C * delay
    return fc.replace(
        fc.load("zhu2016/dcqcn"),
        {
            "flows.dcqcn.n": n, "flows.dcqcn.rtt": delay,
            "flows.dcqcn.window.max_window": most, "flows.dcqcn.initial.window": most / n,
            "links.switch.queue.width": 10 * (HIGH - LOW), "links.switch.queue.top": 10 * TOP,
        } | changes,
    )  # fmt: skip


def timely(n: int, delay: float = DELAY, **changes) -> fc.Network:
    most = 1.25e6 * (delay + 0.8e-6)
    return fc.replace(
        fc.load("zhu2016/timely"),
        {
            "flows.timely.n": n, "flows.timely.rtt": delay + 0.8e-6,
            "flows.timely.window.max_window": most, "flows.timely.initial.window": most / n,
        } | changes,
    )  # fmt: skip


def steps(p, packets):
    """Increases per packet by a counter that a mark resets. Zhu et al. (2016), equations 4, 5."""
    return p / ((1 - p) ** -packets - 1)


@pytest.mark.parametrize("n", [2, 4, 10])
def test_the_fixed_point_of_dcqcn_is_that_of_the_paper(n: int):
    """Equation 11: a^2 alpha / ((b + d)(c + e)) = tau^2 R_AI R_C, whose left side rises with p."""
    rate = C / n

    def excess(p: float) -> float:
        a, alpha = (1 - (1 - p) ** (span * rate) for span in (TAU, ALPHA_TIMER))
        pairs = [(steps(p, m), (1 - p) ** (STEPS * m)) for m in (COUNTER, TIMER * rate)]
        both, late = sum(b for b, _ in pairs), sum(b * c for b, c in pairs)
        return a**2 * alpha / (both * late) - TAU**2 * INCREASE * rate

    p = brentq(excess, 1e-5, 0.05, xtol=1e-12)
    eq = fc.equilibrium(dcqcn(n))
    assert eq.status == "regular"
    assert eq.links["switch"].mark_probability == pytest.approx(p, rel=1e-6)
    assert eq.links["switch"].queue == pytest.approx(LOW + p / TOP * (HIGH - LOW), rel=1e-6)


def field(t, y, z, params):
    """Equations 2 to 5 of n equal flows: rates, alpha and queue; ACKs are a round trip old, marks
    a propagation delay.
    """
    rate, target, alpha, _ = y
    x, p = z[0][0], TOP / (HIGH - LOW) * (z[1][3] - LOW)
    some = 1 - (1 - p) ** (TAU * x)
    by_bytes, by_time = steps(p, COUNTER), steps(p, TIMER * x)
    raising = by_bytes * (1 - p) ** (STEPS * COUNTER) + by_time * (1 - p) ** (STEPS * TIMER * x)
    return jnp.stack(
        [
            -rate * alpha / 2 * some / TAU + (target - rate) / 2 * x * (by_bytes + by_time),
            -(target - rate) * some / TAU + INCREASE * x * raising,
            G / ALPHA_TIMER * (1 - (1 - p) ** (ALPHA_TIMER * x) - alpha),
            params["n"] * rate - C,
        ]
    )


@pytest.mark.parametrize("n", [2, 10])
def test_roots_are_those_of_the_paper_s_equations(n: int):
    net = dcqcn(n)
    law, eq = fc.stability(net), fc.equilibrium(net)
    group, link = eq.flows["dcqcn"], eq.links["switch"]
    p = float(link.mark_probability)
    alpha = 1 - (1 - p) ** (ALPHA_TIMER * C / n)
    start = np.array([C / n, 1.01 * C / n, alpha, float(link.queue)])
    assert group.rate[0] == pytest.approx(C / n, rel=1e-6)
    lags = [lambda t, y, params: DELAY + y[3] / C, lambda t, y, params: DELAY]
    paper = fc.DelayEquation(field, lags, {"n": float(n)}, guess=start)
    found = fc.stability(paper)
    ours, theirs = (np.array(each.roots[:4]) for each in (law, found))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_packets_of_dcqcn_are_beside_their_mean():
    """Packets count bytes and run timers; their queue is a tenth above that of mean rates."""
    net = fc.replace(dcqcn(2), {"links.switch.queue.width": 195, "links.switch.queue.top": TOP})
    runs = fc.simulate_packets(net, until=0.3, warmup=0.1, seeds=(1, 2)).to_xarray()
    trains = fc.simulate_trains(net, until=0.3, warmup=0.1, seeds=(1, 2)).to_xarray()
    queue = float(fc.equilibrium(net).links["switch"].queue)
    packets = float(runs["link_queue_mean"].mean())
    assert packets == pytest.approx(queue, rel=0.2)
    assert float(trains["link_queue_mean"].mean()) == pytest.approx(packets, rel=0.1)
    assert float(runs["group_jain"].mean()) > 0.98


@pytest.mark.parametrize(("n", "queue"), [(2, 78.125), (4, 93.75), (6, 109.375), (40, 375.0)])
def test_the_fixed_point_of_patched_timely_is_that_of_the_paper(n: int, queue: float):
    """q = C T_low (1 + N delta / (beta C))."""
    eq = fc.equilibrium(timely(n))
    assert eq.status == "regular"
    assert eq.links["switch"].queue == pytest.approx(queue, rel=1e-6)


def test_timely_as_published_has_no_fixed_point():
    """At a constant delay the slope is 0, and rates rise, whatever they are, up to C T_high: there
    its rule jumps.
    """
    changes = {"flows.timely.window.patched": False, "flows.timely.window.beta": 0.8}
    eq = fc.equilibrium(timely(4, **changes))
    assert eq.status == "undetermined"
    assert "jumps at the queue found (625 packets)" in eq.message


def loop_of_timely(n: int, delay: float, w: np.ndarray, slope: float = 1.0) -> np.ndarray:
    """The loop of the mean rate, slope and queue of Zhu et al. (2016), eqs 20 to 22 and 29, at the
    fixed point; `slope` weighs the part of the delay's growth.
    """
    c, s = 1.25e6, 1j * w
    rate, low = c / n, c * 50e-6
    every, old = max(16 / rate, 20e-6), low * (1 + n * 1250 / (0.008 * c)) / c + delay + 0.8e-6
    growth = 0.875 / (s * every + 0.875) * (1 - np.exp(-s * every)) / (c * 20e-6)
    back = slope * 4 * 1250 * growth + 0.008 * rate / (2 * low)
    return n / s * np.exp(-s * old) * back / every / (s + 1250 / (2 * rate * every))


def margin_of(loop: np.ndarray) -> float:
    """Phase where the magnitude passes 1 for the last time, from -180 degrees."""
    last = int(np.flatnonzero(np.abs(loop) > 1)[-1])
    return 180 + float(np.degrees(np.unwrap(np.angle(loop))[last]))


@pytest.mark.parametrize("delay", [50e-6, 100e-6])
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_margins_of_patched_timely_are_those_of_its_equations(n: int, delay: float):
    found = fc.stability(timely(n, delay))
    exact = margin_of(loop_of_timely(n, delay, np.geomspace(1.0, 1e6, 400001)))
    assert found.phase_margin == pytest.approx(exact, abs=0.01)
    assert found.stable is (exact > 0)


@pytest.mark.parametrize(
    ("n", "delay", "published", "swings"),
    [(2, 50e-6, -7.0458, True), (4, 50e-6, 1.6133, False), (6, 50e-6, 9.8618, False),
     (2, 100e-6, -12.138, True), (6, 100e-6, 6.8178, False), (3, 50e-6, -2.54, False),
     (3, 100e-6, -6.70, False), (4, 100e-6, -2.02, False)],
)  # fmt: skip
def test_packets_of_timely_swing_where_the_margin_is_next_to_none(n, delay, published, swings):
    """The published margins, and those of the same formula at other places, come out if the growth
    of the delay has a quarter of its weight in the equations. Packets are steady at three places
    where these are negative, and the ones of the equations 9 degrees and more.
    """
    grid = np.geomspace(1.0, 1e6, 400001)
    assert margin_of(loop_of_timely(n, delay, grid, 0.25)) == pytest.approx(published, abs=0.05)
    runs = fc.simulate_packets(timely(n, delay), until=0.4, warmup=0.2, seeds=(1,)).to_xarray()
    spread = float(runs["link_queue_var"].mean()) ** 0.5
    assert (margin_of(loop_of_timely(n, delay, grid)) < 5) is swings
    assert spread > 10 if swings else spread < 1
    if not swings:
        queue = 62.5 * (1 + n * 1250 / (0.008 * 1.25e6))
        assert float(runs["link_queue_mean"].mean()) == pytest.approx(queue, rel=0.015)


def test_a_law_whose_packets_have_no_delay_before_is_refused():
    from fluidcc.laws import TIMELY

    class Forgetful(TIMELY):
        """Without counters."""

        def in_packets(self) -> TIMELY:
            """The mean itself."""
            return self

    net = timely(4)
    law = Forgetful(patched=True, beta=0.008)
    own = fc.Network(net.links, (fc.Flows(law, n=4.0, rtt=5e-5, feedback=net.flows[0].feedback),))
    with pytest.raises(ValueError, match=r"reads ack\.earlier, which the mean alone has"):
        fc.simulate_packets(own, until=0.01)
