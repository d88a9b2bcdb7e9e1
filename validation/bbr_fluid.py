"""BBR beside CUBIC and Reno in the fluid model of Scherrer et al. (2022).

    uv run python validation/bbr_fluid.py            # all mixes: 20 minutes; writes bbr_fluid.csv
    uv run python validation/bbr_fluid.py --check    # half the step, and CUBIC as in the program

S. Scherrer, M. Legner, A. Perrig and S. Schmid, "Model-Based Insights on the Performance, Fairness,
and Stability of BBR" (IMC 2022, arXiv:2208.10103). The text could not be had: the equations are
those of the program that its authors published, written anew. It counts in milliseconds, and what
relaxes at once does so in 1 ms.

What flows send comes to a link with one drop-tail queue after a part of their round trip, and they
hear of it after the rest, which has the queue. BBR learns its rate from what comes out, sends by a
clock of eight round trips (version 1) or by one of seconds and by its bounds of flight (version 2),
and probes the round trip each 10 s. The least round trip never grows: in packets, by the drafts,
one of 10 s ago is forgotten. `Reading` has both.

What differs from the program:

* CUBIC has K = cbrt((1 - 0.7) W/0.4). There it is cbrt(0.7 W/0.4), and time begins at 2 s: with
  that one flow of version 1 has 0.03 to 0.07 less over up to one product, of version 2 0.03 to
  0.17 less, and queues are 0.3 products longer over four and 1.2 shorter over 16.
* What does not fit into the buffer is lost. There the share 1 - C/y is if the buffer is full at
  the end of a step, which it is after each second step while rates fall.
* All flows have one round trip, as in `bbr_mixes`; there each has another.

With its CUBIC and one round trip the program gives the same in twelve mixes of two flows over 15 s:
shares to 0.006 and queues to 0.025 products. It counts fewer losses: of version 1 by up to a fifth,
of the few of version 2 by up to a half.

Shares of goodput, mean queues in bandwidth-delay products and shares of packets lost are from 60
to 300 s. Version 1 has no chance in it; of version 2, whose clocks begin by chance, it is the mean
of two seeds. Steps of 0.1 ms: with half of that, in the mixes of one flow each, shares of version 1
differ by at most 0.003 and queues by 0.04 products; shares of version 2, in which a probe more or
less shifts all that follow, by 0.01, and over one product by 0.03 beside CUBIC, 0.09 beside Reno.
"""

import csv
import itertools
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from fluidcc.bundled.validation.bbr_mixes import BUFFERS, COUNTS, OTHERS, rows

TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = ("trip", "version", "other", "flows", "buffer", "share", "queue", "loss")
LAWS = ("bbr", "bbr2", "reno", "cubic")
VERSIONS = {"1": "bbr", "2": "bbr2"}
STEP, SEEDS = 1e-4, (1, 2)
ALONE = (2, 5, 10)  # flows of one version, over four products

FIRST, SECOND, RENO, CUBIC = map(float, range(4))
QUICK = 1e3  # 1/s, of what relaxes at once
SHARP, SOFT = 5e5, 5e3  # 1/s, of edges in time
FLOW = np.dtype([(name, float) for name in (
    "law", "count", "turn",  # turn: among the flows, as a phase or a part of a second
    "window", "rate", "flight",  # packet, packet/s, packet
    "peak", "since",  # CUBIC: window before the last loss, s since it
    "begun", "trip", "most", "known",  # s, s, packet/s, packet/s
    "wait", "probing",  # s until a probe of the round trip begins or ends, whether there is one
    "cruising", "down", "high", "low",  # version 2: phases, bounds of flight
)])  # fmt: skip


class Link(NamedTuple):
    """A drop-tail queue on a path; `ahead` of the round trip `trip` lies before it [s]."""

    capacity: float  # packet/s
    buffer: float  # packet
    trip: float
    ahead: float


class Reading(NamedTuple):
    """What the program and the drafts have otherwise.

    `cut` is what CUBIC's K is of, and `later` where its time begins [s]: 0.7 and 2 in the program.
    With `renew` a least round trip is forgotten as a probe of it begins, as in the drafts.
    """

    cut: float = 0.3
    later: float = 0.0
    renew: bool = False


READINGS = {"least": Reading(), "renewed": Reading(renew=True)}


class Heard(NamedTuple):
    """What all flows see at a time: `arrived` and the rest a part of a round trip ago."""

    time: float
    rtt: float  # s, of what is sent now
    before: float  # s, of what is acknowledged now
    arrived: float  # packet/s at the link
    lost: float  # share of it
    nearly: float  # the same, if the buffer is almost full
    queued: float  # packet
    capacity: float  # packet/s


class Found(NamedTuple):
    """Shares of the goodput of each group, mean queue over the bandwidth-delay product, loss."""

    shares: tuple[float, ...]
    queue: float
    loss: float


_jit: Any = numba.njit(error_model="numpy")


@_jit
def _edge(x, slope):
    """From 0 to 1 as x passes 0."""
    z = slope * x
    if z < 0:
        small = math.exp(z)
        return small / (1 + small)
    return 1 / (1 + math.exp(-z))


@_jit
def _is(condition):
    return 1.0 if condition else 0.0


@_jit
def _reno(flow, sent, heard, step):
    grown = sent * (1 - heard.lost) / flow.window
    flow.window += step * (grown - sent * heard.lost * flow.window / 2)
    flow.window = max(flow.window, 1.0)
    flow.rate = flow.window / heard.rtt


@_jit
def _cubic(flow, earlier, heard, step, reading):
    """`earlier` is the window two round trips without queue ago."""
    lost = _is(heard.lost >= 1e-6)
    flow.peak += step * QUICK * lost * (earlier - flow.peak)
    flow.since += step * (1 - QUICK * lost * flow.since)
    back = (flow.peak * reading.cut / 0.4) ** (1 / 3)
    flow.window = max(flow.peak + 0.4 * (flow.since + reading.later - back) ** 3, 1.0)
    flow.rate = flow.window / heard.rtt


@_jit
def _probe_trip(flow, waited, probed, oldest, step):
    """Count down to a probe of the round trip, 200 ms of it, and the next."""
    stale = _is(flow.trip >= oldest) * (1 - probed)
    due = QUICK * _is(waited <= 0)
    flow.probing += step * due * (stale - flow.probing)
    flow.wait += step * (due * (10.0 - 9.8 * stale - flow.wait) - 1)


@_jit
def _gain_of_first(flow, since, trip):
    """5/4 for a round trip, then 3/4 for one."""
    at = since - flow.turn * trip
    more = _edge(at, SOFT) * _edge(trip - at, SOFT)
    less = _edge(at - trip, SOFT) * _edge(2 * trip - at, SOFT)
    return 1 + 0.25 * (more - less)


@_jit
def _gain_of_second(flow, since, trip, product, lossy):
    """A round trip at the rate, then 5/4 until flight or losses end it, then 3/4; and whether the
    last ends.
    """
    probes = (1 - flow.cruising) * _is(since >= trip)
    enough = max(_is(flow.flight >= 499 / 400 * product), lossy)
    drained = max(_is(min(product, 0.85 * flow.high) >= flow.flight), _is(since >= 10 * trip))
    turn = probes * enough * (1 - flow.down) - flow.down * drained
    flow.down += turn
    more = (1 - flow.cruising) * _edge(since - trip, SHARP) * (1 - flow.down)
    return 1 + 0.25 * (more - flow.down), turn <= -0.1


@_jit
def _bound(flow, since, trip, lossy, base, step):
    """Bounds of flight of version 2: the upper by probes, the lower by losses between them."""
    probes = 1 - flow.cruising
    if probes > 0 and since >= trip:
        raised = _edge(flow.flight - flow.high, 5.0) * QUICK * 2 ** (since / trip)
        flow.high += step * probes * raised
    flow.high -= step * probes * lossy * 0.3 / base * flow.high
    flow.high = max(flow.high, 1.15 * flow.known * trip)
    flow.low += probes * (flow.high - flow.low)
    flow.low += step * flow.cruising * lossy * math.log(0.9) / base * flow.low


@_jit
def _bbr(flow, sent, trip, waited, probed, oldest, rated, heard, base, step, reading):
    """Both versions; `trip`, `waited` and `probed` are those a round trip without queue ago,
    `oldest` and `rated` the least round trip of 10 s and the largest rate of a cycle ago.
    """
    since, first = heard.time - flow.begun, flow.law == FIRST
    period = 8 * trip if first else min(2 + flow.turn, 63 * trip)
    delivered = sent
    if heard.arrived >= heard.capacity or heard.queued > 0:
        delivered = sent / heard.arrived * heard.capacity
    before = flow.probing
    _probe_trip(flow, waited, probed, oldest, step)
    probing = flow.probing > 0.5

    product, lossy, cruising = flow.known * trip, _is(heard.nearly >= 0.02), flow.cruising
    window, few = 2.0 * math.ceil(product), 4.0
    if not first:
        window = min(window, flow.low, (1 - 0.15 * cruising) * flow.high)
        few = product / 2
    flow.window = few if probing else window
    if not probing:
        excess = delivered - flow.most
        gained = 5 * excess * _edge(excess, SHARP / 1e6) - _edge(0.01 - since, SHARP) * flow.most
        flow.most += step * QUICK * gained
        if first:
            late = _edge(since - period + 0.01, SHARP)
            flow.known += step * QUICK * late * (flow.most - flow.known)
        elif flow.down >= 0.1:
            flow.known = max(rated, flow.most)

    if probing:
        change = QUICK * (flow.window - flow.flight)
    elif cruising > 0:
        change = QUICK * (min(product, 0.85 * flow.high) - flow.flight)
    else:
        change = flow.rate - delivered
    flow.flight = max(flow.flight + step * change, 0.0)

    if first:
        gain, cruises = _gain_of_first(flow, since, trip), False
    else:
        gain, cruises = _gain_of_second(flow, since, trip, product, lossy)
    paced = min(flow.known * gain, flow.window / heard.before)
    flow.rate = flow.flight / heard.rtt if probing else paced
    if not first:
        _bound(flow, since, trip, lossy, base, step)
        flow.cruising += _is(cruises) * (1 - cruising) - _is(since >= period) * cruising

    if reading.renew and probing and before <= 0.5:
        flow.trip = heard.before
    over = flow.trip - heard.before
    flow.trip -= step * QUICK * over * _edge(over, SHARP)
    if since >= period:
        flow.begun = heard.time


SENT, WINDOW, TRIP, WAIT, PROBING, MOST = range(6)  # of flows that are remembered
QUEUE, ARRIVED, LOST, NEARLY = range(4)  # of the link


@_jit
def _ago(now, lag, ring):
    """Place in a ring of what was so many steps before the place `now`."""
    return now - lag if lag <= now else now - lag + ring


@_jit
def _run(flows, past, seen, link, reading, step, steps, skip):
    """Explicit Euler; `past` and `seen` are rings of what flows and the link had."""
    got, queued, lost, sent = np.zeros(flows.size), 0.0, 0.0, 0.0
    ring, queue, oldest = seen.shape[1], 0.0, 1
    base, ahead = int(link.trip / step), round(link.ahead / step)
    for k in range(1, steps):
        now, oldest = oldest, oldest + 1 if oldest < ring - 1 else 0
        here, old = _ago(now, ahead, ring), _ago(now, base, ring)
        arrived = 0.0
        for i in range(flows.size):
            arrived += flows[i].count * past[SENT, i, here]
        queue += (arrived - link.capacity) * step
        loss = max(queue - link.buffer, 0.0) / (arrived * step)
        queue = min(max(queue, 0.0), link.buffer)
        over = max(1 - link.capacity / arrived, 0.0)

        before = link.trip + seen[QUEUE, old] / link.capacity
        at = _ago(now, int((before - link.ahead) / step), ring)
        heard = Heard(
            k * step,
            link.trip + queue / link.capacity,
            before,
            seen[ARRIVED, at],
            seen[LOST, at],
            seen[NEARLY, at],
            seen[QUEUE, _ago(now, int((link.trip - link.ahead) / step), ring)],
            link.capacity,
        )
        own, earlier = _ago(now, int(before / step), ring), _ago(now, 2 * base, ring)
        seen[QUEUE, now], seen[ARRIVED, now], seen[LOST, now] = queue, arrived, loss
        seen[NEARLY, now] = over * (queue / link.buffer) ** 100 if over > 0 else 0.0
        for i in range(flows.size):
            flow = flows[i]
            if flow.law == RENO:
                _reno(flow, past[SENT, i, own], heard, step)
            elif flow.law == CUBIC:
                _cubic(flow, past[WINDOW, i, earlier], heard, step, reading)
            else:
                trip = past[TRIP, i, old]
                cycle = min(int(min(2 + flow.turn, 63 * trip) / step), ring - 1)
                _bbr(
                    flow, past[SENT, i, own], trip, past[WAIT, i, old], past[PROBING, i, old],
                    past[TRIP, i, oldest], past[MOST, i, _ago(now, cycle, ring)], heard,
                    link.trip, step, reading,
                )  # fmt: skip
            if k >= skip:
                got[i] += flow.count * past[SENT, i, here] * (1 - loss)
            past[SENT, i, now], past[WINDOW, i, now] = flow.rate, flow.window
            past[TRIP, i, now], past[WAIT, i, now] = flow.trip, flow.wait
            past[PROBING, i, now], past[MOST, i, now] = flow.probing, flow.most
        if k >= skip:
            queued, lost, sent = queued + queue, lost + loss * arrived, sent + arrived
    return got, queued / (steps - skip), lost / sent


def _begin(groups: Sequence[tuple[str, int]], link: Link, seed: int) -> np.ndarray:
    """Flows at equal rates without a queue; those of Reno or CUBIC as one so many times."""
    rng, product = np.random.default_rng(seed), link.capacity * link.trip
    total, rows = sum(count for _, count in groups), []
    window, deep = product / total, max(link.buffer / product - 4, 0.0)
    for law, count in groups:
        many = law in ("reno", "cubic")
        for _ in range(1 if many else count):
            flow = np.zeros(1, FLOW)
            flow["law"], flow["count"] = LAWS.index(law), count if many else 1
            flow["turn"] = len(rows) % 6 if law == "bbr" else len(rows) / total
            flow["window"] = flow["flight"] = flow["low"] = window
            flow["rate"] = flow["most"] = flow["known"] = window / link.trip
            flow["peak"], flow["trip"] = 1.1 * window, link.trip
            flow["wait"] = 5 if law == "bbr2" else 10
            if law == "bbr2":
                flow["begun"] = -10 * link.trip - rng.random()
                flow["cruising"], flow["high"] = 1, 1.25 * (1 + deep / 2) * window
            rows.append(flow)
    return np.concatenate(rows)


def solve(
    groups: Sequence[tuple[str, int]],
    buffer: float,
    reading: Reading = Reading(),  # noqa: B008 - a constant
    *,
    until: float = 300.0,
    warmup: float = 60.0,
    step: float = STEP,
    seed: int = 1,
    capacity: float = 40e6 / 12e3,
    trip: float = 0.04,
) -> Found:
    """Shares, queue and losses of groups of flows over one drop-tail link.

    Parameters
    ----------
    groups
        Law, one of `LAWS`, and number of flows of each.
    buffer
        In bandwidth-delay products.
    until, warmup, step
        End, begin of what is counted, and step of Euler's rule [s].
    seed
        Of the times at which clocks of version 2 begin.
    capacity, trip
        Of the link [packet/s], and round trip without a queue [s], a quarter of it before the link.
    """
    product = capacity * trip
    link = Link(capacity, buffer * product, trip, trip / 4)
    flows = _begin(groups, link, seed)
    ring = round(10 / step) + 1  # nothing older is asked for
    past = np.empty((6, flows.size, ring))
    for kept, name in enumerate(("rate", "window", "trip", "wait", "probing", "most")):
        past[kept] = flows[name][:, None]
    seen = np.zeros((4, ring))
    seen[ARRIVED] = capacity
    got, queue, loss = _run(
        flows, past, seen, link, reading, step, round(until / step), round(warmup / step)
    )
    laws = [LAWS[int(law)] for law in flows["law"]]
    each = [sum(g for g, own in zip(got, laws, strict=True) if own == law) for law, _ in groups]
    return Found(tuple(float(v / got.sum()) for v in each), queue / product, loss)


def mean(groups: Sequence[tuple[str, int]], buffer: float, *readings: Any, **options: Any) -> Found:
    """The same in the mean of its seeds."""
    runs = [solve(groups, buffer, *readings, seed=seed, **options) for seed in _seeds(groups)]
    shares = np.mean([run.shares for run in runs], axis=0)
    queue, loss = (float(np.mean([run[k] for run in runs])) for k in (1, 2))
    return Found(tuple(shares.tolist()), queue, loss)


def _seeds(groups: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    return SEEDS if any(law == "bbr2" for law, _ in groups) else SEEDS[:1]


def mix(version: str, other: str, flows: str) -> list[tuple[str, int]]:
    """Groups of a mix of `bbr_mixes`, or of one version alone if there is no other."""
    groups = [(VERSIONS[version], int(flows))]
    return [*groups, (other.lower(), int(flows))] if other else groups


def _keys() -> list[tuple[str, ...]]:
    buffers, counts = [f"{b:g}" for b in BUFFERS], [str(n) for n in COUNTS]
    keys = list(itertools.product(VERSIONS, OTHERS, counts, buffers))
    keys += itertools.product(VERSIONS, [""], [str(n) for n in ALONE], ["4"])
    return [(trip, *key) for trip in READINGS for key in keys]


def _check() -> None:
    """Largest differences with half the step, and with CUBIC as in the program."""
    found = rows(TABLE)
    for name, options, reading, others in (
        ("half the step", {"step": STEP / 2}, Reading(), OTHERS),
        ("CUBIC of the program", {}, Reading(cut=0.7, later=2.0), ["CUBIC"]),
    ):
        for version, other in itertools.product(VERSIONS, others):
            kept = [found["least", version, other, "1", f"{b:g}"] for b in BUFFERS]
            new = [mean(mix(version, other, "1"), b, reading, **options) for b in BUFFERS]
            said = "; ".join(
                f"{b:g}: {own.shares[0] - float(row['share']):+.3f}, "
                f"{own.queue - float(row['queue']):+.3f}"
                for b, row, own in zip(BUFFERS, kept, new, strict=True)
            )
            print(f"{name}, version {version} beside {other}, share and queue: {said}", flush=True)


def main(command: str = "") -> None:
    """Write the CSV, or check it."""
    if command == "--check":
        _check()
        return
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for key in _keys():
            found = mean(mix(*key[1:4]), float(key[4]), READINGS[key[0]])
            numbers = f"{found.shares[0]:.4f}", f"{found.queue:.4f}", f"{found.loss:.5f}"
            out.writerow([*key, *numbers])
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
