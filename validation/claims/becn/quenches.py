"""Quenches: when they are sent, how soon and how many arrive, and what a sender does on one."""

import numpy as np
import sympy as sp

from ...lab.judging import alike, all_of, judge, near, ordered, searched, shown, told
from .common import LINK, QUENCHED, READINGS, WORDS, at_rest, claimed, noting_fluid

_CONGESTED = (*READINGS, "forty_flows")


@judge("BECN-05", needs=("web_becn", "quenches_without_size"))
def overhead(lab, claim):
    """Long-lived flows get the same goodput when quenches have next to no size, on a way back with
    a queue of its own; and no packet is lost there.
    """
    own, light = (lab.packets(name) for name in ("web_becn", "quenches_without_size"))
    same = alike(own.values("flows.ftp.goodput"), light.values("flows.ftp.goodput"), x=own.x,
                 what="goodput with quenches of 56 B beside 1 B")  # fmt: skip
    lost = sum(own.values(f"flows.{g}.acks_lost").sum() for g in ("ftp", "web"))
    busy = own.values("links.back.utilization").max()
    why = f"{lost:.0f} packets lost on the way back, which is {100 * busy:.3g} % busy at most"
    return all_of(same, shown(lost == 0, why, engine="packets"))


@judge("BECN-06", needs=("homogeneous_becn",))
def reactions(lab, claim):
    """The bound on reactions in its quick search; and a lost quench is no worse than a lost echo,
    which the next ACK repeats, if the flow's next quench comes within a round trip, at 45 flows.
    """
    found = lab.bound("becn.reactions")["bounds"]
    enhanced = [entry for entry in found if entry["definitions"]["reaction"] == "enhanced"]
    often = searched(enhanced, "packets", "reactions per round trip")
    runs = lab.packets("homogeneous_becn")
    span = 45 * (runs.experiment.until - runs.experiment.warmup)
    trips = span / (runs.at(45, "flows.becn.rtt_mean") * runs.at(45, "flows.becn.source_quenches"))
    again = shown(
        bool((trips <= 1).all()),
        f"at 45 flows the next quench of the same flow comes {trips.mean():.2g} round trips later "
        "in the mean, where an echo is repeated by every ACK",
        engine="packets", otherwise="contradicted" if (trips > 1).all() else "not_reproduced",
        value=float(trips.mean()), unit="round trip",
    )  # fmt: skip
    return all_of(often, again)


@judge("BECN-07", needs=QUENCHED, definition=True)
def only_marks_and_drops(lab, claim):
    """Quenches are as many as marks and drops, but for 20 at most at either end of the time
    measured.
    """
    gaps = []
    for name in QUENCHED:
        runs = lab.packets(name)
        told_of = runs.values(f"{LINK}.marks") + runs.values(f"{LINK}.drops")
        gaps.append(np.abs(runs.values("flows.becn.source_quenches") - told_of))
    apart = float(np.max(np.concatenate(gaps)))
    why = f"quenches and the sum of marks and drops differ by {apart:.0f} at most in any run"
    return shown(apart <= 20, why, engine="packets", value=apart)


@judge("BECN-08")
def sooner(lab, claim):
    """The bound on ages, searched over networks, for routers anywhere and for those in the first
    half of the way there, where the paper's is.
    """
    found = lab.bound("becn.sooner")["bounds"]
    return searched(found, "analytic").noting(
        f"{found[0]['derivation'][0]}, with the propagation to the router f and from there on b, "
        "and the queueing w"
    )


@judge("BECN-09", needs=("few_becn", "few_becn_dropped"), definition=True)
def window_law(lab, claim):
    """Sampled windows of two flows: what remains after each fall, and how long growth waits, in
    round trips; quenches for marks, then for drops alone. Growth begins in the second round trip
    after a fall by a mark (0.9 to 2): a halved sender stands still until half of its packets are
    acknowledged, so that none of its ACKs may come when the pause ends.
    """
    parts = []
    for name, kind in (("few_becn", "mark"), ("few_becn_dropped", "drop")):
        runs = lab.packets(name)
        time, windows = runs.series(0, "flow_window", "becn")
        trip = float(runs.values("flows.becn.rtt_mean").mean())
        left, wait = falls(time[time > 10], windows[time > 10], trip)
        why = (
            f"{kind}: {np.median(left):.3g} of the window left, growth after "
            f"{np.median(wait):.2g} round trips (medians of {len(left)} falls)"
        )
        late = np.median(wait) < 0.9
        if kind == "mark":
            late = wait.min() >= 0.9 and np.median(wait) <= 2
            why += f", {wait.min():.2g} at least"
        right = bool(late and abs(np.median(left) - 0.5) <= 0.05)
        parts.append(shown(right, why, engine="packets", otherwise="not_reproduced"))
    return all_of(*parts).noting(
        "after a mark growth begins with the first ACK after the full round trip, which is late "
        "where the halved sender has stood still"
    )


def falls(time, windows, trip):
    """Windows left after falls, as a share, and waits until the next growth [round trips]."""
    left, waits = [], []
    for window in windows.T:
        for k in np.flatnonzero(np.diff(window) < -0.3 * window[:-1]):
            after = np.flatnonzero(window[k + 1 :] > window[k + 1])
            if after.size:
                left.append(window[k + 1] / window[k])
                waits.append(time[after[0]] / trip - time[0] / trip)
    return np.array(left), np.array(waits)


@judge("BECN-10", readings=("once",), needs=(
    *QUENCHED, "homogeneous_becn_original", "homogeneous_becn_original_250ms"))  # fmt: skip
def original_aggressive(lab, claim):
    """More aggressive is a longer queue, over all points of each delay, and more loss, over those
    where either form loses any packet.
    """
    parts = []
    for delay in ("", "_250ms"):
        new, old = (lab.packets(f"homogeneous_becn{form}{delay}") for form in ("", "_original"))
        where = "250 ms" if delay else "40 ms"
        for metric, unit in (("queue_mean", "packet"), ("drop_fraction", "")):
            less, more = (runs.values(f"{LINK}.{metric}") for runs in (new, old))
            some = (less + more).max(axis=1) > 0
            if some.any():
                what = f"{WORDS[metric]} at {where}, enhanced below original"
                parts.append(ordered(less[some], more[some], x=new.x[some], unit=unit, what=what))
    return all_of(*parts)


@judge("BECN-47", needs=QUENCHED[:1], readings=_CONGESTED)
def quench_share(lab, claim):
    """Quenches at 45 flows and 40 ms, those that arrive, among quenches and ACKs."""
    return _quench_share(lab, claim, "homogeneous_becn")


@judge("BECN-48", needs=QUENCHED[1:], readings=_CONGESTED)
def quench_share_250(lab, claim):
    """Quenches at 45 flows and 250 ms, those that arrive, among quenches and ACKs."""
    return _quench_share(lab, claim, "homogeneous_becn_250ms")


def _quench_share(lab, claim, name):
    """The number of flows that is high congestion is not said: 45, the most, or by a reading 40."""
    points = lab.experiment(name).x
    n, other = (40, 45) if lab.reading == "forty_flows" else (45, 40)
    share = {x: 100 * lab.packets(name).at(x, "flows.becn.quench_fraction")
             for x in (n, other) if x in points}  # fmt: skip
    what = f"quenches among quenches and ACKs at {n} flows"
    found = near(claim.value, share[n], of="share", unit="%", what=what)
    if other in share:
        found = found.noting(f"quenches at {other} flows: {told(share[other].mean(), unit='%')}")
    fluid = at_rest(lab, name, n, lambda rest: 100 * rest["links"]["bottleneck"]["quench_fraction"])
    return noting_fluid(found, [fluid], claimed(claim, "share"), unit="%")


@judge("BECN-49", needs=QUENCHED[:1])
def quench_bytes(lab, claim):
    """The size by the headers in a quench; and its share of the bytes, beside ACKs of 40 B as in
    the runs, below its share of the packets. Packets of a real network are not among the runs.
    """
    ip, icmp, told_of, ack = 20, 8, 8, 40
    size = ip + icmp + ip + told_of
    f, mean = sp.symbols("f s", positive=True)
    share = size * f / (size * f + mean * (1 - f))
    least = sp.solve(sp.Eq(share, f), mean)[0]
    runs = lab.packets("homogeneous_becn")
    packets = runs.values("flows.becn.quench_fraction")
    data = sp.lambdify((f, mean), share)
    octets = data(packets, ack)
    low, high = (100 * part[-1].mean() for part in (packets, octets))
    why = (
        f"at 45 flows quenches are {low:.2g} % of the packets and {high:.2g} % of the bytes beside "
        f"ACKs of {ack} B"
    )
    return all_of(
        shown(size == claim.value, f"IP and ICMP header with the IP header and 8 bytes of what was "
              f"dropped: {size} B", engine="analytic"),
        shown(bool((octets < packets).all()), why, engine="packets", otherwise="not_reproduced",
              value=high, unit="%"),
    ).noting(
        f"their share of the bytes is less only if the other packets have more than {least} B in "
        f"the mean, such as {100 * data(packets[-1].mean(), 576):.2g} % beside packets of 576 B"
    )  # fmt: skip
