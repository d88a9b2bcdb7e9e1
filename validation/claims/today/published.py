"""Published numbers of the laws of today: windows, margins, shares, thresholds."""

import dataclasses

import numpy as np

import fluidcc as fc
from fluidcc.laws import CUBIC, PIE
from fluidcc.laws.law import Arrival

from ...lab.judging import alike, all_of, judge, near, shown
from ...lab.losses import mean_window

# -- CUBIC


def _random(lab, p, **window):
    """Mean window over (R/p)^(3/4) where losses are random: the population of windows."""
    changes = {f"flow.window.{key}": value for key, value in window.items()}
    net = fc.replace(
        fc.load("rfc9438/lossy"),
        {"link.random_loss": p, "link.capacity": 1e9, "flow.n": 1, **changes},
    )
    flows = lab.ask(fc.equilibrium, net)["flows"]["cubic"]
    (rate,), (rtt,) = flows["rate"], flows["rtt"]
    return rate * rtt / (rtt / p) ** 0.75


@judge("TODAY-01", "TODAY-02")
def windows_of_cubic(lab, claim):
    """The law's own rules between losses that are evenly spaced."""
    rtt = claim.value["rtt"]
    parts = [
        near(theirs, mean_window(CUBIC(), float(p), rtt), of="factor", unit="packets",
             what=f"mean window at p = {p}", engine="analytic")
        for p, theirs in claim.value["windows"].items()
    ]  # fmt: skip
    worst = all_of(*parts)
    if claim.id != "TODAY-01":
        return worst
    ratio = _random(lab, 1e-6)
    return worst.noting(
        f"random losses leave {ratio:.3f} (R/p)^(3/4), the formula has 1.054 (R/p)^(3/4)"
    )


@judge("TODAY-03")
def constant_of_random_losses(lab, claim):
    """Equilibrium of the population of windows, without fast convergence."""
    found = _random(lab, 1e-6, fast_convergence=False)
    mean = _random(lab, 1e-6)
    judged = near(claim.value, found, tolerance=0.005, unit="", engine="fluid",
                  what="mean window over (R/p)^(3/4)")  # fmt: skip
    return judged.noting(f"with fast convergence {mean:.4g}")


# -- PI2, PIE and coupled marking
WINDOWS = (5, 10, 20, 50)  # packets
TRIP = 0.1  # s, with 15 ms of queue


def _margin(lab, scenario, window, **model):
    """Gain margin [dB] of Reno at 100 ms, queue included."""
    changes = {
        "link.capacity": 10_000, "link.buffer": 4000, "flow.n": 10_000 * TRIP / window,
        "flow.feedback": "mark_tail", **{f"model.{key}": value for key, value in model.items()},
    }  # fmt: skip
    found = lab.ask(fc.stability, fc.replace(fc.load(scenario), changes), roots=0)
    return 20 * np.log10(found["gain_margin"])


@judge("TODAY-04")
def ten_decibels(lab, claim):
    """Windows of 5 to 50 packets, as a population, and as mean windows in three plants."""
    plants = {
        "a population of windows": {"closure": "population"},
        "self-clocked mean windows": {"rates": "self_clocked"},
        "the textbook plant": {"rates": "mgt"},
    }
    found = {name: [_margin(lab, "rfc9332/pi2", w, **how) for w in WINDOWS]
             for name, how in plants.items()}  # fmt: skip
    said = "; ".join(
        f"{name}: {', '.join(f'{m:.1f}' for m in margins)} dB" for name, margins in found.items()
    )
    least = min(min(margins) for margins in found.values())
    judged = near(claim.value, found["a population of windows"][1], of="about", unit="dB",
                  neutral=0.0, what="gain margin of Reno with windows of 10 packets",
                  engine="fluid")  # fmt: skip
    sizes = ", ".join(map(str, WINDOWS))
    return judged.noting(
        f"with windows of {sizes} packets {said}",
        f"every loop is stable, by {least:.1f} dB at least",
    )


@judge("TODAY-05", needs=("coupled_reno", "dualpi2_reno"))
def shares_of_reno(lab, claim):
    """Goodput of Reno and of Prague at equal round trips."""
    return _shares(lab, "reno")


@judge("TODAY-06", needs=("coupled_cubic", "dualpi2_cubic"))
def shares_of_cubic(lab, claim):
    """Goodput of CUBIC and of Prague at equal round trips."""
    return _shares(lab, "cubic")


_ONE_QUEUE = "in one queue, where both have one round trip, eq. 10 of C.2 has 1.22"


def _shares(lab, sender):
    """Roughly equal: within 25 % at more than half of the places, and within a factor of two."""
    parts = []
    for aqm, where in (("coupled", "one queue"), ("dualpi2", "DualPI2")):
        runs = lab.packets(f"{aqm}_{sender}")
        rates = [runs.values(f"flows.{name}.goodput").mean(axis=1) for name in ("cubic", "prague")]
        ratio = rates[0] / rates[1]
        places = [
            f"{x} ms and {share:g} Mbit/s a flow"
            for x, share in zip(runs.x, runs.equal_share, strict=True)
        ]
        apart = np.maximum(ratio, 1 / ratio)[:, None]
        found = alike(apart, np.ones_like(apart), x=places, usual=0.25, most=1.0, what=where)
        said = f"{found.said} (ratios of {ratio.min():.2f} to {ratio.max():.2f})"
        parts.append(dataclasses.replace(found, said=said))
    return all_of(*parts).noting(*([_ONE_QUEUE] if sender == "reno" else []))


@judge("TODAY-07", definition=True)
def divisors_of_pie(lab, claim):
    """What a tick adds to p beyond the target, of the whole step."""
    law, found = PIE(), {}
    seen = Arrival(0.0, 0.0, 31.0, 1000.0)
    whole = float(law.on_tick(law.state_of(0.2, 0.025, 0.0), seen).p)
    for p in claim.value:
        moved = law.on_tick(law.state_of(0.5 * float(p), 0.025, 0.0), seen)
        found[p] = round(whole / float(moved.p))
    said = ", ".join(f"{divisor} below {p}" for p, divisor in found.items())
    return shown(found == claim.value, f"steps are divided by {said}", engine="analytic")


@judge("TODAY-08")
def margins_of_pie(lab, claim):
    """Smallest gain margin over windows of 5 to 1000 packets, at 100 ms with the queue."""
    windows = (5, 10, 20, 30, 50, 100, 200, 500, 1000)
    found = {name: [_margin(lab, name, w, rates="self_clocked") for w in windows]
             for name in ("rfc8033/pie", "rfc9332/pi2")}  # fmt: skip
    spread = {name: max(own) - min(own) for name, own in found.items()}
    pie, pi2 = found["rfc8033/pie"], found["rfc9332/pi2"]
    said = (
        f"gain margins of PIE are {min(pie):.1f} to {max(pie):.1f} dB, those of PI2 {min(pi2):.1f} "
        f"to {max(pi2):.1f} dB, over shares of marks from 1e-6 to 0.1"
    )
    held = min(pie) > 0 and spread["rfc9332/pi2"] < spread["rfc8033/pie"]
    return shown(held, said, engine="fluid", otherwise="not_reproduced")


# -- DCTCP over a step
@judge("TODAY-09", needs=("step_dctcp",))
def seventh(lab, claim):
    """Utilisation with thresholds of a seventh of the pipe or more."""
    runs = lab.packets("step_dctcp")
    enough = np.array([x >= 1 / 7 - 1e-3 for x in runs.x])
    use = runs.values("links.bottleneck.utilization").mean(axis=1)
    least = next((x for x, u in zip(runs.x, use, strict=True) if u > 0.999), None)
    pipe = 10e9 / 12e3 * 500e-6  # packets
    two = (np.sqrt(4 * pipe - 7) - 3) / 2 / pipe  # where eq. 12 is 0 with N = 2
    said = (
        f"utilisation from {100 * use[enough].min():.2f} % on with a seventh of the pipe or more; "
        f"two flows keep the link busy from {least:g} of it on, where eq. 12 has {two:.2g}"
    )
    return shown(use[enough].min() > 0.999, said, engine="packets", otherwise="contradicted")


@judge("TODAY-10", needs=("step_peak",))
def peak_of_dctcp(lab, claim):
    """The longest queue, the packet in service included. Ten and more are not synchronised."""
    runs = lab.packets("step_peak")
    peaks = {n: runs.at(n, "links.bottleneck.number_in_system_max") for n in runs.x}
    judged = all_of(*(
        near(40.0 + n, peak, of="queue", unit="packets", what=f"longest queue of {n} flows")
        for n, peak in peaks.items() if n < 10
    ))  # fmt: skip
    more = ", ".join(f"{p.mean():.3g} with {n} flows" for n, p in peaks.items() if n >= 10)
    return judged.noting(f"{more}, out of step as in figure 12")


# -- The designs of Hollot, Misra, Towsley and Gong
@judge("TODAY-11", "TODAY-12")
def designs(lab, claim):
    """Numbers of flows from 60, and round trips with the queue up to 246 ms."""
    net = fc.load("hollot2001/slow" if claim.id == "TODAY-11" else "hollot2001/pi")
    places = [(n, trip) for n in (60.0, 100.0, 200.0) for trip in (0.08, 0.15, 0.246)]
    seen = {}
    for n, trip in places:
        here = fc.replace(net, {"flow.n": n, "link.delay": 0.001})
        queue = lab.ask(fc.equilibrium, here)["links"]["bottleneck"]["queueing_delay"]
        for _ in range(6):  # RED's queue depends on the round trip
            if queue + 0.005 > trip:
                break
            here = fc.replace(here, {"flow.rtt": trip - queue})
            queue = lab.ask(fc.equilibrium, here)["links"]["bottleneck"]["queueing_delay"]
        else:
            seen[n, trip] = lab.ask(fc.stability, here, roots=0)
    stable = sum(found["stable"] is True for found in seen.values())
    margins = {at: found["phase_margin"] for at, found in seen.items()}
    (n, trip), least = min(
        ((at, margin) for at, margin in margins.items() if margin is not None),
        key=lambda own: own[1],
    )
    said = (
        f"stable at {stable} of {len(seen)} places; the least phase margin is "
        f"{least:.0f} degrees, with {n:g} flows at {1e3 * trip:.0f} ms"
    )
    return shown(stable == len(seen), said, engine="fluid", otherwise="contradicted")
