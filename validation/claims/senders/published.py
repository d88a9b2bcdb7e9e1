"""Published numbers of window laws that pace, measure delays and rates, or hear numbers."""

import itertools
import math

import numpy as np

import fluidcc as fc
from fluidcc.laws import HTCP, Compound, HighSpeed, Illinois, RateControl, Scalable
from fluidcc.laws.law import Ack

from ...bbr_mixes import FLUID, rows
from ...lab.judging import all_of, judge, near, shown
from ...lab.losses import mean_window

# -- DCQCN and TIMELY
C, DELAY = 5e6, 50e-6  # packet/s, s
G, STEPS, BYTES, TIMER, INTERVAL = 1 / 256, 5, 1e4, 55e-6, 50e-6
RISE, LOW, HIGH, TOP = 5000.0, 5.0, 200.0, 0.01


def _dcqcn(n):
    """The scenario; its ramp goes on at the same slope, as the linear model has it."""
    return fc.replace(
        fc.load("zhu2016/dcqcn"),
        {"flows.dcqcn.n": n, "links.switch.queue.width": 1950, "links.switch.queue.top": 0.1},
    )


@judge("SENDERS-01")
def fixed_point(lab, claim):
    """Both sides of eq. 11 at our equilibrium: its left side rises with p."""
    worst = 0.0
    for n in (2, 4, 10):
        p = lab.ask(fc.equilibrium, _dcqcn(n))["links"]["switch"]["mark_probability"]
        rate = C / n
        a, alpha = (1 - (1 - p) ** (span * rate) for span in (INTERVAL, TIMER))
        parts = [(p / ((1 - p) ** -m - 1), (1 - p) ** (STEPS * m)) for m in (BYTES, TIMER * rate)]
        both, late = sum(b for b, _ in parts), sum(b * c for b, c in parts)
        left, right = a**2 * alpha / (both * late), INTERVAL**2 * RISE * rate
        worst = max(worst, abs(left / right - 1))
    said = f"with 2, 4 and 10 flows our equilibrium solves eq. 11 to {worst:.1e}"
    return shown(worst < 1e-6, said, engine="fluid")


def _margin(loop):
    """Phase margin [degrees] of a loop at the last crossing of 1 by its gain."""
    w = np.geomspace(1.0, 1e7, 200_001)
    above = np.abs(loop(w)) > 1
    low, high = w[np.flatnonzero(above[:-1] & ~above[1:])[-1] + np.arange(2)]
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if abs(loop(middle)) > 1 else (low, middle)
    return (math.degrees(np.angle(loop(low))) + 360) % 360 - 180


def _loop_of_dcqcn(n):
    """The paper's loop in Laplace's s, with its p* and its expansions; stability.m of the authors.

    In eqs 3 to 5 p/((1 - p)^-m - 1) is 1/m - p/2 there.
    """
    rate = C / n
    p = (RISE * n**2 / TIMER / C**2 * (1 / BYTES + n / C / TIMER) ** 2) ** (1 / 3)
    a = 1 - (1 - p) ** (INTERVAL * rate)
    late = sum((1 - p) ** (STEPS * m) * p / ((1 - p) ** -m - 1) for m in (BYTES, TIMER * rate))
    target, alpha = rate * (1 + late * INTERVAL * RISE / a), 1 - (1 - p) ** (TIMER * rate)
    steps, slope = 1 / BYTES + 1 / TIMER / rate, TOP / (HIGH - LOW)
    quarter, half = 0.5 + steps / 4, steps / 2 - (0.5 + steps / 4) * p
    by_queue = (-0.5 * rate**2 * alpha - quarter * rate * (target - rate)) * n * slope
    by_acks = -0.5 * p * rate * alpha - half * rate
    own = by_acks + half * target
    by_alpha = -0.5 * p * rate**2 * G * C * n * slope
    held = half * rate * (p * rate + steps * RISE)
    raised = (1 + 2 * STEPS + steps / 2) * RISE
    back = half * rate * (p * (rate - target) + steps * RISE - raised * p)
    late_back = half * rate * rate * (rate - target - raised) * n * slope

    def loop(w):
        s = 1j * w
        u, v = n * s + G * C, s + p * rate
        top = u * v * (by_queue + s * by_acks) + v * by_alpha + u * (s * back + late_back)
        bottom = -s * u * v * s + u * v * s * own + s * u * held
        return top / bottom * np.exp(-s * DELAY)

    return loop


@judge("SENDERS-02")
def margins_of_dcqcn(lab, claim):
    """By the paper's own expansions, and by the exact linear model."""
    found = {n: _margin(_loop_of_dcqcn(int(n))) for n in claim.value}
    exact = {n: lab.ask(fc.stability, _dcqcn(int(n)), roots=0)["phase_margin"] for n in claim.value}
    parts = [
        near(theirs, found[n], absolute=0.05, unit="degrees", engine="analytic",
             what=f"by the paper's formula with {n} flows")
        for n, theirs in claim.value.items()
    ]  # fmt: skip
    said = ", ".join(f"{m:.1f}" for m in exact.values())
    return all_of(*parts).noting(f"exact, with the fixed point of eq. 11, they are {said} degrees")


@judge("SENDERS-03")
def no_fixed_point(lab, claim):
    """At a constant delay rates rise up to C T_high."""
    net = fc.replace(
        fc.load("zhu2016/timely"), {"flows.timely.window.patched": False, "flow.window.beta": 0.8}
    )
    found = lab.ask(fc.equilibrium, net)
    return shown(
        found["status"] == "undetermined" and "queue found (625 packets)" in found["message"],
        "rates rise up to the queue of 625 packets, C T_high, where the rule jumps",
        engine="fluid",
    )


def _timely(n):
    return fc.replace(fc.load("zhu2016/timely"), {"flows.timely.n": int(n)})


@judge("SENDERS-04", needs=("timely",))
def queue_of_patched_timely(lab, claim):
    """Of mean rates, and of packets that do not swing."""
    runs = lab.packets("timely")
    parts = [
        near(theirs, lab.ask(fc.equilibrium, _timely(n))["links"]["switch"]["queue"],
             absolute=1e-3, unit="packets", engine="fluid", what=f"queue of {n} flows")
        for n, theirs in claim.value.items()
    ]  # fmt: skip
    met = ", ".join(f"{runs.at(n, 'links.switch.queue_mean').mean():.1f}" for n in runs.x)
    return all_of(*parts).noting(f"in packets {met}")


def _loop_of_timely(n, delay=DELAY):
    """The paper's loop; stability_fixed_final.m of the authors, in bits."""
    c, segment, mtu, rise, low, least = 10e9, 16 * 8e3, 8e3, 10e6, 50e-6, 20e-6
    beta, weight = 8e-3, 0.875
    reference, rate = c * low, c / n
    queue = reference * (1 + n * rise / beta / c)
    apart, old = segment / rate, queue / c + mtu / c + delay

    def loop(w):
        s = 1j * w
        slope = 2 * rate * rise * weight / s / least / (segment * s + weight * rate) / 2
        level = rate**2 / 2 * beta / reference * n / s
        return (
            ((slope + level) - slope * np.exp(-s * apart))
            * np.exp(-s * old)
            / (s * segment + rise / 2)
        )

    return loop


@judge("SENDERS-05", needs=("timely",))
def margins_of_patched_timely(lab, claim):
    """By the paper's loop; by the linear model of its equations; and packets."""
    runs = lab.packets("timely")
    exact = {
        n: lab.ask(fc.stability, _timely(int(n)), roots=0)["phase_margin"] for n in claim.value
    }
    parts = [
        near(theirs, _margin(_loop_of_timely(int(n))), absolute=0.05, unit="degrees",
             engine="analytic", what=f"by the paper's formula with {n} flows")
        for n, theirs in claim.value.items()
    ]  # fmt: skip
    spread = [runs.at(n, "links.switch.queue_var").mean() ** 0.5 for n in runs.x]
    swings = ", ".join(f"{s:.1f}" for s in spread)
    said = ", ".join(f"{m:.1f}" for m in exact.values())
    return all_of(*parts).noting(
        f"by the linear model of its equations they are {said} degrees: the formula has a quarter "
        f"of their weight of the delay's growth; in packets the queue has deviations of {swings} "
        "packets"
    )


# -- BBR
PRODUCT = 40e6 / 12e3 * 0.04  # packets


@judge("SENDERS-06", needs=("bbr_deep",))
def queue_of_version_1(lab, claim):
    """The queue over the bandwidth-delay product."""
    return _queues_of_bbr(lab, "bbr_deep", {2: 1.0, 5: 1.0, 10: 1.0}, "1")


@judge("SENDERS-07", needs=("bbr_version2",))
def queue_of_version_2(lab, claim):
    """The same."""
    return _queues_of_bbr(lab, "bbr_version2", {int(n): v for n, v in claim.value.items()}, "2")


def _queues_of_bbr(lab, name, theirs, version):
    runs, fluid = lab.packets(name), rows(FLUID)
    own = ", ".join(
        f"{float(fluid['least', version, '', str(n), '4']['queue']):.2f}" for n in theirs
    )
    return all_of(*(
        near(theirs[n], runs.at(n, "links.bottleneck.queue_mean") / PRODUCT, of="about",
             what=f"queue of {n} flows over the product")
        for n in runs.x
    )).noting(f"the fluid model of which that is the equilibrium has {own} itself")  # fmt: skip


@judge("SENDERS-08", needs=("bbr_cubic",))
def share_beside_cubic(lab, claim):
    """Share of version 1 in the goodput."""
    runs = lab.packets("bbr_cubic")
    return all_of(*(
        near(theirs, _share(runs, float(x), "cubic"), of="about", what=f"share at X = {x}")
        for x, theirs in claim.value.items()
    )).noting(
        "eq. 9 counts the other sender's packets in the pipe as if they stayed there in a probe: "
        "without them 0.49, 0.48 and 0.46"
    )  # fmt: skip


def _share(runs, x, other):
    """Share of BBR in the goodput over so many products of buffer."""
    own, others = (runs.at(x, f"flows.{name}.goodput") for name in ("bbr", other))
    return own / (own + others)


PARTS = {"SENDERS-27": (0.5, 1), "SENDERS-28": (4, 16), "SENDERS-29": (0.5, 1),
         "SENDERS-30": (4, 16)}  # fmt: skip
"""Products of buffer of claims on some of those that were run."""


@judge("SENDERS-27", "SENDERS-28", needs=("bbr_cubic",))
def first_beside_cubic(lab, claim):
    """Share of version 1 in the goodput, as the fluid model of `bbr_fluid` has it."""
    return _beside(lab, claim, "bbr_cubic", "1", "CUBIC")


@judge("SENDERS-29", "SENDERS-30", needs=("bbr_reno",))
def first_beside_reno(lab, claim):
    """The same beside Reno."""
    return _beside(lab, claim, "bbr_reno", "1", "Reno")


@judge("SENDERS-31", needs=("bbr2_cubic",))
def second_beside_cubic(lab, claim):
    """Share of version 2."""
    return _beside(lab, claim, "bbr2_cubic", "2", "CUBIC")


@judge("SENDERS-32", needs=("bbr2_reno",))
def second_beside_reno(lab, claim):
    """The same beside Reno."""
    return _beside(lab, claim, "bbr2_reno", "2", "Reno")


def _beside(lab, claim, name, version, other):
    """Our packets beside the kept shares of the fluid model, one flow of each."""
    runs, fluid = lab.packets(name), rows(FLUID)
    buffers = PARTS.get(claim.id, (0.5, 1, 4, 16))
    least, renewed = (
        [float(fluid[trip, version, other, "1", f"{x:g}"]["share"]) for x in buffers]
        for trip in ("least", "renewed")
    )
    judged = all_of(*(
        near(theirs, _share(runs, x, other.lower()), of="about",
             what=f"share over {x:g} products")
        for x, theirs in zip(buffers, least, strict=True)
    ))  # fmt: skip
    said = ", ".join(f"{share:.3g}" for share in renewed)
    return judged.noting(f"if least round trips are forgotten after 10 s the model has {said}")


@judge("SENDERS-09", needs=("bbr_one",))
def window_of_one_flow(lab, claim):
    """The mean window, which probes of the round trip lower for 2 % of the time."""
    found = lab.packets("bbr_one").at(1, "flows.bbr.window_mean") / PRODUCT
    return near(claim.value, found, of="factor", what="window over the product")


# -- Laws by the delay
@judge("SENDERS-10", needs=("copa",))
def queue_of_copa(lab, claim):
    """Packets in the system by Little's law: the delay of a packet holds its own service."""
    found = lab.packets("copa").at(3, "links.bottleneck.number_in_system_mean")
    return near(claim.value, found, of="queue", unit="packets", what="six flows keep")


@judge("SENDERS-11", needs=("ledbat",))
def delay_of_ledbat(lab, claim):
    """With the service of a packet of 1500 B at 2 Mbit/s."""
    found = 1e3 * lab.packets("ledbat").at(1, "flows.ledbat.queueing_delay_mean")
    return near(claim.value, found, of="queue", unit="ms", what="queueing delay")


@judge("SENDERS-12", needs=("vegas",))
def queue_of_vegas(lab, claim):
    """Packets in the system over the number of flows."""
    flows = float(np.sum(fc.load("brakmo1995/round_trips").flows[0].n))
    found = lab.packets("vegas").at(2, "links.bottleneck.number_in_system_mean") / flows
    return near(claim.value, found, unit="packets", what="packets of a flow")


@judge("SENDERS-13")
def queue_of_fast(lab, claim):
    """Of mean windows, over six flows."""
    found = lab.ask(fc.equilibrium, fc.load("wei2006/round_trips"))
    return near(claim.value, found["links"]["bottleneck"]["queue"] / 6, of="queue", unit="packets",
                engine="fluid", what="packets of a flow")  # fmt: skip


@judge("SENDERS-14", needs=("swift",))
def queue_of_swift(lab, claim):
    """The queue rises with the senders by less than a square root, and stays near the target."""
    runs = lab.packets("swift")
    queues = [runs.at(n, "links.bottleneck.queue_mean").mean() for n in runs.x]
    targets = []
    for n in runs.x:
        net = fc.replace(fc.load("kumar2020/incast"), {"flows.swift.n": float(n)})
        targets.append(lab.ask(fc.equilibrium, net)["links"]["bottleneck"]["queue"])
    rises = all(a < b for a, b in itertools.pairwise(queues))
    close = all(abs(q / t - 1) < 0.25 for q, t in zip(queues, targets, strict=True))
    said = "; ".join(
        f"{n} senders: {q:.1f} packets beside a target of {t:.1f}"
        for n, q, t in zip(runs.x, queues, targets, strict=True)
    )
    return shown(rises and close, said, engine="packets", otherwise="not_reproduced")


# -- Laws of high speed
def _windows(claim, law, rtt=0.1):
    return all_of(*(
        near(theirs, mean_window(law, float(p), rtt), of="factor", unit="packets",
             what=f"mean window at p = {p}", engine="analytic")
        for p, theirs in claim.value.items()
    ))  # fmt: skip


@judge("SENDERS-15")
def windows_of_highspeed(lab, claim):
    """The law's own rules between losses that are evenly spaced."""
    return _windows(claim, HighSpeed())


@judge("SENDERS-16")
def recovery_of_scalable(lab, claim):
    """Round trips, a hundredth at a time, until the window before a loss is back."""
    law, worst = Scalable(), []
    for w in (100.0, 1e3, 1e5):
        now, trips, part = w + law.on_loss(w, Ack(0.0, 0.0, 0.1)), 0.0, 0.01
        while now < w:
            now, trips = now + law.on_ack(now, Ack(part * now, 0.0, 0.1)), trips + part
        worst.append(trips)
    return all_of(*(
        near(claim.value, found, of="factor", what="round trips of a recovery", engine="analytic")
        for found in worst
    ))  # fmt: skip


@judge("SENDERS-17")
def windows_of_compound(lab, claim):
    """The same; round trips without a queue."""
    return _windows(claim, Compound())


@judge("SENDERS-18", definition=True)
def growth_of_htcp(lab, claim):
    """Growth in a round trip, of windows that losses halve."""
    law, found = HTCP(), {}
    for since in claim.value:
        s = law.start(100.0)._replace(**{_clock(law): float(since)})
        found[since] = 100 * law.on_ack(s, Ack(1.0, 0.0, 0.1)).window
    said = ", ".join(f"{g:.4g} after {s} s" for s, g in found.items())
    held = all(abs(found[s] / claim.value[s] - 1) < 1e-9 for s in found)
    return shown(held, f"growth of {said}", engine="analytic")


def _clock(law):
    """The state that counts seconds since the last loss."""
    return next(name for name, field in law.states.items() if field.info.unit == "s")


@judge("SENDERS-19", definition=True)
def ends_of_illinois(lab, claim):
    """Growth and cut at no delay and at the largest."""
    law = Illinois()
    found = {
        "alpha_max": law.increase(0.0), "alpha_min": law.increase(law.largest),
        "beta_min": law.decrease(0.0), "beta_max": law.decrease(law.largest),
    }  # fmt: skip
    said = ", ".join(f"{name} {float(v):.4g}" for name, v in found.items())
    held = all(abs(found[k] / v - 1) < 1e-3 for k, v in claim.value.items())
    return shown(held, said, engine="analytic")


@judge("SENDERS-20")
def rate_of_westwood(lab, claim):
    """Of mean windows that cut at each loss: R is the round trip, d the part of it in queues."""
    net = fc.replace(
        fc.load("mascolo2001/red"),
        {"flow.window.reaction": "per_mark", "flow.window.growth": "clean"},
    )
    group = lab.ask(fc.equilibrium, net)["flows"]["westwood"]
    p, trip, delay, rate = (
        group[k][0] for k in ("mark_probability", "rtt", "queueing_delay", "rate")
    )
    theirs = math.sqrt((1 - p) / p / (trip * delay))
    return near(theirs, rate, of="factor", unit="packet/s", engine="fluid", what="rate of a flow")


# -- Numbers that links write
@judge("SENDERS-21", needs=("vcp",))
def cut_of_vcp(lab, claim):
    """The link is used between beta and all of what the law aims at, without a loss."""
    runs = lab.packets("vcp")
    use = runs.at(10, "links.bottleneck.utilization").mean()
    drops = runs.at(10, "links.bottleneck.drop_fraction").mean()
    said = f"{100 * use:.1f} % of the link are used, between 0.875 and 1 of 98 %; {drops:g} lost"
    return shown(claim.value * 0.98 < use < 0.98 and drops == 0, said, engine="packets")


@judge("SENDERS-22", needs=("hpcc",))
def use_of_hpcc(lab, claim):
    """Of packets, and of mean windows."""
    found = lab.packets("hpcc").at(16, "links.bottleneck.utilization")
    mean = lab.ask(fc.equilibrium, fc.load("li2019/incast"))["links"]["bottleneck"]["utilization"]
    judged = near(claim.value, found, tolerance=0.005, what="use of the link")
    return judged.noting(f"mean windows have {mean:.4f}")


@judge("SENDERS-23", needs=("rcp",))
def rates_of_rcp(lab, claim):
    """Jain's index of the flows' goodputs."""
    index = lab.packets("rcp").at(3, "flows.rcp.jain").mean()
    return shown(index > 0.999, f"Jain's index is {index:.5f}", engine="packets")


@judge("SENDERS-24")
def region_of_rcp(lab, claim):
    """A little inside and outside, with a queue that stays, at three delays."""
    seen = {}
    for trip in (0.01, 0.1, 2.0):
        for factor in (0.98, 1.02):
            alpha = factor * math.pi / (4 * math.sqrt(2))
            seen[trip, factor] = lab.ask(fc.stability, _rcp(alpha, trip), roots=0)["stable"]
    held = all(stable is (factor < 1) for (_, factor), stable in seen.items())
    said = "stable at 0.98 of the bound and unstable at 1.02 of it, at each delay"
    return shown(held, said if held else f"stable: {seen}", engine="fluid")


def _rcp(alpha, trip, gamma=1.01):
    """Two flows of large windows over a link with these gains, round trip with the queue [s]."""
    beta, rate = gamma * math.sqrt(2) * alpha**2, 2e4 / trip
    law = RateControl(alpha=gamma * alpha, beta=beta, gamma=gamma, base=trip)
    queue = gamma * alpha * (gamma - 1) * rate * trip / beta
    return fc.replace(
        fc.load("dukkipati2005/round_trips"),
        {
            "link.capacity": rate, "link.buffer": 1e5, "link.delay": 0.0, "flow.n": [2.0],
            "flow.rtt": [trip - queue / rate], "flow.initial.window": 1e4,
            **{f"link.queue.{k}": getattr(law, k) for k in ("alpha", "beta", "gamma", "base")},
        },
    )  # fmt: skip


@judge("SENDERS-25", needs=("xcp",))
def rates_of_xcp(lab, claim):
    """Jain's index of the flows' goodputs, and losses."""
    runs = lab.packets("xcp")
    index = runs.at(3, "flows.xcp.jain").mean()
    drops = runs.at(3, "links.bottleneck.drop_fraction").mean()
    said = f"Jain's index is {index:.5f}; {drops:g} lost"
    return shown(index > 0.999 and drops == 0, said, engine="packets")


@judge("SENDERS-26")
def region_of_xcp(lab, claim):
    """A little inside at three delays, and where windows with these gains become unstable."""
    bound = math.pi / (4 * math.sqrt(2))
    inside = [
        lab.ask(fc.stability, _xcp(0.98 * bound, d), roots=0)["stable"] for d in (0.01, 0.1, 2)
    ]
    low, high = bound, 4 * bound
    for _ in range(8):
        middle = (low + high) / 2
        stable = lab.ask(fc.stability, _xcp(middle, 0.1), roots=0)["stable"]
        low, high = (middle, high) if stable else (low, middle)
    said = f"stable at 0.98 of the bound at each delay; windows are stable up to {low:.2f}"
    return shown(all(inside), said, engine="fluid")


def _xcp(alpha, trip):
    """Twenty flows with these gains, round trip with the queue [s]."""
    beta, net = math.sqrt(2) * alpha**2, fc.load("katabi2002/queue")
    rate = float(net.links[0].capacity) * 0.1 / trip
    queue = alpha * (net.links[0].queue.target - 1) * rate * trip / beta
    own = {"alpha": alpha, "beta": beta, "base": trip, "interval": trip}
    return fc.replace(
        net,
        {"link.capacity": rate, "flow.rtt": trip - queue / rate,
         **{f"link.queue.{k}": v for k, v in own.items()}},
    )  # fmt: skip
