"""What Durresi et al. (2001) state about marks at the front, and about thresholds and buffers."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Ack, PathTimes
from fluidcc.laws.window.reno import Reno
from fluidcc.scenario.network import Start

from ..lab.bound import Identity, Judged, Range, at_least, at_most, bound, packet_means, within
from ..relay_cycle import relay_cycle
from .one_connection import (
    ANY,
    END,
    FAST,
    FRONT,
    GROWS,
    HYPOTHESES,
    PATH,
    QUEUES,
    RATE,
    ROUND_TRIPS,
    TAIL,
    THRESHOLD,
    TWO,
    WHOLE,
    access_ranges,
    connection,
    connection_at,
    exact,
    feedback,
    fluid,
    found_in,
    latest,
    numbers,
    obstacle,
    optimal,
    peak,
    published,
    rounds,
    utilization,
)

# -- slow start, of whole packets (results 1 and 2) -------------------------------------------

_SMALL = tuple(float(k) for k in range(1, 10))
_ALL_WAITING = {"when": "reaches", "round_trip": WHOLE, "queue": "waiting"}


def _trip(rate, round_trip, queue):
    """One packet's way through a queue, for symbols; the link is half way."""
    half = sp.Rational(1, 2) * round_trip
    return PathTimes(round_trip + queue / rate, half, queue / rate, half)


def _growth():
    """Fluid: one packet more per ACK, at the link's rate, from the crossing to the reaction."""
    rate, length, at = sp.symbols("C T Th", positive=True)
    way, out = _trip(rate, length, at), []
    for marks, correction in ((TAIL, 1), (FRONT, 0)):
        heard = feedback(marks).age(way) + way.forward
        limit = published(marks, at, rate * length) + correction
        words = f"longest queue in the fluid, marks at the {marks}"
        out.append(Identity(words, at + rate * heard, limit))
    return tuple(out)


@bound(
    "mark_front.slow_start", "durresi2001, section 4, results 1 and 2",
    "the queue of slow start is at most 2 T + r d - 1 with marks at the tail, T + r d with "
    "marks at the front",
    claims=("MF-01", "MF-02"), hypotheses=HYPOTHESES, engine="packets",
    axes={**THRESHOLD, "queue": QUEUES, "round_trip": ROUND_TRIPS}, judged=("queue", "round_trip"),
    readings=(
        {"marks": TAIL},
        {"marks": TAIL, "round_trip": WHOLE},
        {"marks": TAIL, **_ALL_WAITING, "counts": "waiting"},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches"},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "access": FAST},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "access": ANY},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "sender": TWO},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE, "sender": GROWS},
        {"marks": FRONT},
        {"marks": FRONT, "round_trip": WHOLE},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE},
        {"marks": FRONT, **_ALL_WAITING},
        {"marks": FRONT, **_ALL_WAITING, "access": FAST},
        {"marks": FRONT, **_ALL_WAITING, "access": ANY},
        {"marks": END},
        {"marks": END, "round_trip": WHOLE},
        {"marks": END, "when": "reaches"},
        {"marks": END, **_ALL_WAITING},
        {"marks": END, "round_trip": WHOLE, "access": ANY},
    ),
    quick=112,
    ranges=lambda definitions: {
        "threshold": Range(1.0, 120.0, 1.0, "whole", small=_SMALL),
        "pipe": Range(0.5, 80.0, 1.0, "log", grid=1.0, small=(0.5, 1.0, 1.5, 2.0, 3.0, 4.5)),
        **access_ranges(definitions),
    },
    subject=connection_at, measure=peak, obstacle=obstacle, found_in=found_in, derivation=_growth,
)  # fmt: skip
def slow_start(net, longest, definitions):
    """Compare with results 1 and 2."""
    known = numbers(net)
    pipe = known.pipe(definitions["round_trip"])
    limit = published(definitions["marks"], known.threshold, pipe)
    return at_most(getattr(longest, definitions["queue"]), limit)


# -- congestion avoidance, of whole packets (result 3) ----------------------------------------

ENOUGH, NEEDED = "T of r d - 1 or more keeps the link busy", "less leaves it idle at times"
_IDLE = 1e-6  # share of the time: packets that just miss each other by rounding


def _beside_optimal(definitions):
    """Pipes up to 40 packets; thresholds above r d - 1, or below."""
    other = {"above": Range(0.0, 10.0, 0.0, grid=1.0)}
    if definitions["side"] == NEEDED:
        other = {"below": Range(0.01, 10.0, 0.01, "log", grid=1.0)}
    return {"pipe": Range(3.0, 40.0, 3.0, grid=1.0), **other, **access_ranges(definitions)}


def _connection_beside(point, definitions):
    net = connection_at(point, definitions)
    least = float(optimal(numbers(net).pipe(definitions["round_trip"])))
    threshold = least + point.get("above", 0.0) - point.get("below", 0.0)
    return connection_at({**point, "threshold": max(threshold, 0.0)}, definitions)


def _side(net):
    """Also the side that its threshold is on; r without the link's transmission."""
    known = numbers(net)
    enough = known.threshold >= optimal(known.path)
    return {**found_in(net), "side": ENOUGH if enough else NEEDED, "round_trip": PATH}


def _emptied():
    """Fluid, N flows: the rules lead from the crossing at `exact` to a window whose half fills the
    pipe, P = C T.
    """
    pipe, rate, count, w = sp.symbols("P C N w", positive=True)
    law, event, out = Reno(), Ack(1, 0, 1), []
    for marks in (TAIL, FRONT):
        at = exact(marks, pipe, count)
        way = _trip(rate, pipe / rate, at)
        pace = rate / count * law.on_ack(w, event)  # packets per second
        time = sp.integrate(1 / pace, w)
        crossing = (pipe + at) / count
        delay = feedback(marks).age(way) + way.forward
        top = sp.sqrt(crossing**2 + 2 * rate / count * delay)
        passed = time.subs(w, top) - time.subs(w, crossing)
        left = count * (top + sp.nsimplify(law.on_mark(top, event)))
        words = f"least threshold of full use, N flows, marks at the {marks}, by C T = P"
        difference = (passed - delay) ** 2 + (left**2 - pipe**2) ** 2  # both are 0
        out.append(Identity(words, at + difference, at))
    return tuple(out)


@bound(
    "mark_front.full_use", "durresi2001, section 4, result 3",
    "T = r d - 1 is the least threshold that keeps the link busy", claims=("MF-03", "MF-04"),
    hypotheses=(*HYPOTHESES, "congestion avoidance, after slow start"), engine="packets",
    axes={"side": (ENOUGH, NEEDED), "round_trip": ROUND_TRIPS, **THRESHOLD},
    readings=(
        {"marks": TAIL},
        {"marks": TAIL, "when": "reaches"},
        {"marks": TAIL, "round_trip": WHOLE},
        {"marks": FRONT},
        {"marks": FRONT, "round_trip": WHOLE},
        {"marks": TAIL, "side": NEEDED},
        {"marks": TAIL, "side": NEEDED, "round_trip": WHOLE},
        {"marks": FRONT, "side": NEEDED},
        {"marks": FRONT, "side": NEEDED, "round_trip": WHOLE},
    ),
    quick=40, clear=1e-3, ranges=_beside_optimal, subject=_connection_beside, measure=utilization,
    obstacle=obstacle, found_in=_side, derivation=_emptied,
)  # fmt: skip
def full_use(net, busy, definitions):
    """Compare with full use."""
    if definitions["side"] == ENOUGH:
        return at_least(busy, 1.0 - _IDLE)
    known = numbers(net)
    if known.threshold >= optimal(known.pipe(definitions["round_trip"])) - _IDLE:
        return Judged(1.0, busy, math.nan)
    return at_most(busy, 1.0 - 2 * _IDLE)


# -- buffers ----------------------------------------------------------------------------------

ALONE, TOGETHER, LATER = "one connection", "ten at once", "ten, one every 0.3 s"
FIRST, WHOLE_RUN = "the queue of slow start", "the queue of the whole run"
_APART = 0.3  # s between the starts (scenario 2)
_MANY = 10


class Lost(NamedTuple):
    """Packets that a link drops, and those that it would with one place less."""

    here: float
    shorter: float


def _lost(net, until):
    """Packets that the link drops until then [packet times]."""
    here, places = _drops(net, until), float(net.links[0].buffer)
    if here > 0 or places <= 1:
        return Lost(here, here)
    return Lost(here, _drops(_with_buffer(net, places - 1), until))


def _none_lost(net, lost, definitions):
    """Nothing may be lost; the bound is met if a place less would lose something."""
    met = 0.0 if lost.shorter > 0 else -1.0
    return Judged(0.0, lost.here, lost.here if lost.here > 0 else met)


def _with_buffer(net, buffer):
    return dataclasses.replace(net, links=(dataclasses.replace(net.links[0], buffer=buffer),))


def _drops(net, until):
    end = latest(net) + until / float(net.links[0].capacity)
    return float(packet_means(net, until=end)["links"][net.link_names[0]]["drops"])


def _connection_with_buffer(point, definitions):
    """One connection with the buffer that is stated, in whole packets."""
    length = numbers(connection_at(point, definitions)).pipe(definitions["round_trip"])
    threshold = float(optimal(length))
    places = math.floor(float(published(definitions["marks"], threshold, length)) + 1e-9)
    waiting = places - 1 if definitions["buffer"] == "system" else places
    access = point.get("access", math.inf)
    return connection(threshold, point["pipe"], access, definitions, buffer=float(max(waiting, 1)))


def _at_optimal():
    """Results 1 and 2 at the threshold of result 3."""
    pipe = sp.Symbol("rd", positive=True)
    return (
        Identity("buffer, tail", published(TAIL, optimal(pipe), pipe), 3 * pipe - 3),
        Identity("buffer, front", published(FRONT, optimal(pipe), pipe), 2 * pipe - 1),
    )


buffer = bound(
    "mark_front.buffer", "durresi2001, section 4, after result 3",
    "at T = r d - 1 a buffer of 3 r d - 3 packets (tail) or 2 r d - 1 (front) loses nothing",
    claims=("MF-05",), hypotheses=HYPOTHESES[:2], engine="packets",
    axes={**THRESHOLD, "round_trip": ROUND_TRIPS, "buffer": QUEUES},
    readings=(
        {"marks": TAIL},
        {"marks": TAIL, "when": "reaches", "round_trip": WHOLE},
        {"marks": TAIL, "when": "reaches", "counts": "waiting", "buffer": "waiting"},
        {"marks": FRONT},
        {"marks": FRONT, "when": "reaches", "round_trip": WHOLE, "buffer": "waiting"},
        {"marks": END, "when": "reaches", "round_trip": WHOLE},
    ),
    quick=60,
    ranges=lambda definitions: {
        "pipe": Range(2.0, 100.0, 2.0, "log", grid=1.0,
                      small=tuple(2.0 + 0.5 * k for k in range(25))),
        **access_ranges(definitions),
    },
    subject=_connection_with_buffer, measure=lambda net: _lost(net, rounds(net)),
    obstacle=lambda net: (
        "it speaks of the threshold r d - 1 and the buffer that follows: search it by name"
    ),
    derivation=_at_optimal,
)(_none_lost)  # fmt: skip


def _crowd(point, definitions):
    """Connections that share a link whose buffer is the longest queue without losses."""
    net, connections = connection_at(point, definitions), definitions["connections"]
    (flows,) = net.flows
    if connections == TOGETHER:
        net = dataclasses.replace(net, flows=(dataclasses.replace(flows, n=np.array([10.0])),))
    elif connections == LATER:
        starts = [_APART * k for k in range(_MANY)]
        groups = tuple(dataclasses.replace(flows, start=Start(t, t)) for t in starts)
        names = tuple(f"flow{k + 1}" for k in range(_MANY))
        net = dataclasses.replace(net, flows=groups, flow_names=names)
    places = _longest(net, whole=definitions["requirement"] == WHOLE_RUN)
    return _with_buffer(net, max(places, 1.0))


def _whole(net):
    """Packet times of a whole run."""
    return 3 * rounds(net) + 2000.0


def _longest(net, *, whole):
    """Longest queue of waiting packets: of the first slow start, or of the whole run."""
    first = min(float(f.start.high) for f in net.flows)
    start, length = (latest(net), _whole(net)) if whole else (first, rounds(net))
    until = start + length / float(net.links[0].capacity)
    return float(packet_means(net, until=until)["links"][net.link_names[0]]["queue_max"])


def _with_needed_buffer(net):
    """The network with the buffer that its slow start needs."""
    return _with_buffer(net, _longest(_with_buffer(net, math.inf), whole=False))


def _connections(net):
    """Slow start, and the words for the nearest number of connections."""
    many = sum(float(np.sum(f.n)) for f in net.flows) > 1
    words = (LATER if latest(net) > 0 else TOGETHER) if many else ALONE
    return {**found_in(net), "requirement": FIRST, "connections": words}


def _other_links(net):
    return obstacle(net, many=True, lossless=False)


no_loss = bound(
    "mark_front.no_loss", "durresi2001, section 5, metrics",
    "a buffer of the longest queue of slow start loses no packet", claims=("MF-25",),
    hypotheses=HYPOTHESES[1:2], engine="packets",
    axes={"requirement": (FIRST, WHOLE_RUN), "connections": (ALONE, TOGETHER, LATER), **THRESHOLD},
    readings=(
        {"requirement": need, "connections": many, "marks": marks}
        for marks in (TAIL, FRONT)
        for need, many in ((FIRST, ALONE), (FIRST, TOGETHER), (FIRST, LATER), (WHOLE_RUN, LATER))
    ),
    quick=9,
    ranges=lambda definitions: {
        "threshold": Range(1.0, 60.0, 1.0, "whole", small=(2.0, 5.0, 10.0)),
        "pipe": Range(1.0, 60.0, 1.0, grid=1.0, small=(2.0, 5.0, 10.0)),
        **access_ranges(definitions),
    },
    subject=_crowd, measure=lambda net: _lost(net, _whole(net)), of_network=_with_needed_buffer,
    obstacle=_other_links, found_in=_connections,
)(_none_lost)  # fmt: skip

# -- efficiency and delay ---------------------------------------------------------------------

BEGINNING, SETTLED = "from the first packet", "after slow start"


def _efficiencies(net):
    """From the first packet, and after slow start."""
    link, rate = net.links[0], float(net.links[0].capacity)
    warmup, out = latest(net) + rounds(net) / rate, {}
    for counted, begin in ((BEGINNING, 0.0), (SETTLED, warmup)):
        until = warmup + 1900.0 / rate  # 10 s of the paper's link
        flows = packet_means(net, until=until, warmup=begin)["flows"]
        bits = sum(sum(group["flow_goodput"]) for group in flows.values())
        out[counted] = bits / (8.0 * float(link.packet_size) * rate)
    return out


@bound(
    "mark_front.efficiency", "durresi2001, section 5, metrics",
    "acknowledged packets stay below what the link could send", claims=("MF-11",),
    engine="packets", axes={"counted": (BEGINNING, SETTLED), **THRESHOLD}, judged=("counted",),
    readings=(
        {"counted": counted, "marks": marks}
        for marks in (TAIL, FRONT) for counted in (BEGINNING, SETTLED)
    ),
    quick=20,
    ranges=lambda definitions: {
        "threshold": Range(1.0, 120.0, 1.0, "whole"),
        "pipe": Range(0.5, 60.0, 1.0, grid=1.0),
        **access_ranges(definitions),
    },
    subject=connection_at, measure=_efficiencies, obstacle=_other_links, found_in=found_in,
)  # fmt: skip
def efficiency(net, efficiencies, definitions):
    """Compare with 1, which must not be reached."""
    value = efficiencies[definitions["counted"]]
    return Judged(1.0, value, value - 1.0 + 2e-9)


def _time_saved():
    """The difference of the ages at that queue."""
    rate, length = sp.symbols("C T", positive=True)
    way = _trip(rate, length, optimal(rate * length))
    saved = feedback(TAIL).age(way) - feedback(FRONT).age(way)
    return (Identity("time saved at r d = C T", saved, length - 1 / rate),)


@bound(
    "mark_front.delay", "durresi2001, section 4, after result 3",
    "at T = r d - 1 marks at the front are heard one fixed round trip sooner", claims=("MF-06",),
    axes={"sooner": ("by r", "by r less one packet time")}, judged=("sooner",), quick=60,
    ranges={"pipe": Range(2.0, 1000.0, 2.0, "log", grid=1.0), "before": Range(0.0, 0.5, 0.25)},
    derivation=_time_saved,
)  # fmt: skip
def delay(way, measured, definitions):
    """Seconds between the two at a link of RATE, by the laws' ages; `before` is the share of the
    way that lies before the queue.
    """
    round_trip, queued = way["pipe"] / RATE, float(optimal(way["pipe"])) / RATE
    forward, reverse = way["before"] * round_trip, (1 - way["before"]) * round_trip
    trip = PathTimes(round_trip + queued, forward, queued, reverse)
    saved = float(feedback(TAIL).age(trip) - feedback(FRONT).age(trip))
    less = 0.0 if definitions["sooner"] == "by r" else 1 / RATE
    return at_least(saved, round_trip - less)


# -- the fluid model, in which results 1 to 3 are equalities ----------------------------------

_STEP = 0.01  # of a round trip
_MESH_ERROR = 0.002  # of C T: what a step of the mesh lets by
_BUSY = 1 / np.log(2) - 1  # T/(C T_0) at which the link was busy for a round trip at the crossing
LATE, ALL = "T of 0.443 r d or more", "any T"
CLOSED, PRINTED = "the fluid's closed form", "r d - 1"


def _longest_in_fluid(net):
    """The longest queue of the trajectory [packet]."""
    from fluidcc.dde.located import Located
    from fluidcc.model.simulate import simulate

    known, rate = numbers(net), float(net.links[0].capacity)
    until = (np.log2(known.threshold + known.propagation) + 4) * known.propagation / rate
    until += 2 * known.threshold / rate
    mesh = Located(step=_STEP * known.propagation / rate)
    run = simulate(net, until=until, points=np.linspace(0.0, until, int(8 / _STEP)), mesh=mesh)
    return float(np.max(run.links[net.link_names[0]].queue))


def _no_fluid(net):
    if net.rates != "self_clocked" or not net.flows[0].initial.slow_start:
        return "it speaks of self-clocked fluid that begins in slow start"
    return obstacle(net)


def _marks_and_thresholds(net):
    """Where marks are set (both moments of the front are one in the fluid); a late threshold."""
    known = numbers(net)
    return {
        "marks": TAIL if isinstance(net.flows[0].feedback, MarkTail) else FRONT,
        "thresholds": LATE if known.threshold >= _BUSY * known.propagation else ALL,
    }


def _least_of_equality():
    """The queue that a doubling a round trip leaves after the first busy one, in C T."""
    time = sp.Symbol("t", positive=True)
    queue = sp.integrate(2**time - 1, (time, 0, 1))
    return (Identity("least T of equality, in C T", queue, 1 / sp.log(2) - 1),)


@bound(
    "mark_front.fluid_slow_start", "durresi2001, section 4, results 1 and 2",
    "in the fluid the queue of slow start is at most 2 T + r d (tail), T + r d (front)",
    hypotheses=HYPOTHESES, engine="fluid",
    axes={"marks": (TAIL, FRONT), "thresholds": (ALL, LATE)},
    readings=({"marks": TAIL}, {"marks": FRONT}), quick=6, reached=2 * _MESH_ERROR, asked=True,
    ranges=lambda definitions: {
        "share": Range(_BUSY if definitions["thresholds"] == LATE else 0.1, 3.0, 1.0, "log"),
        "pipe": Range(20.0, 60.0, 40.0, "log"),
    },
    subject=lambda point, definitions: fluid(
        definitions["marks"], point["share"] * point["pipe"], point["pipe"]
    ),
    measure=_longest_in_fluid, obstacle=_no_fluid, found_in=_marks_and_thresholds,
    derivation=_least_of_equality,
)  # fmt: skip
def fluid_slow_start(net, longest, definitions):
    """Compare with the fluid's bound, up to what the mesh lets by, as shares of r d."""
    known = numbers(net)
    limit = published(definitions["marks"], known.threshold, known.propagation)
    limit += 1 if definitions["marks"] == TAIL else 0
    missed = (longest - limit) / known.propagation - _MESH_ERROR
    return Judged(float(limit), longest, float(missed))


def _fluid_at_least(point, definitions):
    """Flows over a link with that threshold."""
    marks, pipe, count = definitions["marks"], point["pipe"], point["count"]
    closed = definitions["threshold"] == CLOSED
    threshold = exact(marks, pipe, count) if closed else optimal(pipe)
    return fluid(marks, float(threshold), pipe, count)


def _least_in_cycle(net):
    """The least queue, below 0 where it would run empty [packet]."""
    return relay_cycle(net, one_reaction=True).queue[0]


def _gap_to_optimal():
    """The closed form less r d - 1, for one flow and long pipes."""
    pipe, out = sp.Symbol("P", positive=True), []
    for marks, rest in ((TAIL, sp.Integer(0)), (FRONT, sp.Rational(1, 2))):
        gap = sp.limit(exact(marks, pipe, sp.Integer(1)) - optimal(pipe), pipe, sp.oo)
        words = f"least T less (r d - 1) for long pipes, one flow, marks at the {marks}"
        out.append(Identity(words, gap, rest))
    return tuple(out)


@bound(
    "mark_front.fluid_full_use", "durresi2001, section 4, result 3",
    "in the fluid the queue just does not run empty at the least T",
    hypotheses=("flows that halve together, once each time that the queue is above T",
                "self-clocked fluid"),
    engine="fluid", axes={"marks": (TAIL, FRONT), "threshold": (PRINTED, CLOSED)}, quick=15,
    reached=1e-6,
    ranges={"pipe": Range(8.0, 400.0, 10.0, "log", grid=1.0),
            "count": Range(1.0, 4.0, 1.0, "whole")},
    subject=_fluid_at_least, measure=_least_in_cycle,
    obstacle=lambda net: "it speaks of the thresholds r d - 1 and that of its closed form",
    derivation=_gap_to_optimal,
)  # fmt: skip
def fluid_full_use(net, least, definitions):
    """The queue must just not run empty."""
    if definitions["threshold"] == CLOSED:
        return within(least, 0.0, 1e-6)
    return at_most(-least, 0.0)
